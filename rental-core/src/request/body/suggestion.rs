//! Names in error messages: the name that a client sent, and a similar known name.

/// Names of other APIs, each with a name of this one. It counts where that name is known; after `=` is the value that is meant.
const SYNONYMS: &[(&str, &str)] = &[
    ("page", "starting_after"),
    ("offset", "starting_after"),
    ("cursor", "starting_after"),
    ("after", "starting_after"),
    ("per_page", "limit"),
    ("page_size", "limit"),
    ("license_plate", "plate"),
    ("price", "daily_rate"),
    ("price", "final_price"),
    ("rate", "daily_rate"),
    ("rate", "final_price"),
    ("unbilled", "billed=false"),
];

/// What turns a word into its opposite: `unpaid` is never suggested as `paid`.
const NEGATIONS: [&str; 5] = ["un", "in", "non", "non_", "not_"];

/// `; did you mean X?` for the name in `known` that is meant by `name`: another word for it, or else the most similar one, if
/// one is similar enough.
pub(crate) fn did_you_mean<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    if name.len() > 64 {
        return String::new();
    }
    let known: Vec<&str> = known.collect();
    let has = |meant: &str| known.contains(&meant.split('=').next().unwrap_or(meant));
    let synonym = SYNONYMS.iter().find(|(word, meant)| word.eq_ignore_ascii_case(name) && has(meant));
    let similar = || {
        let scored = known.iter().map(|candidate| (edits(name, candidate), *candidate));
        let near = scored.filter(|(edits, candidate)| *edits <= most_edits(name, candidate));
        near.filter(|(_, candidate)| !are_opposites(name, candidate)).min_by_key(|(edits, _)| *edits)
    };
    match synonym.map(|(_, meant)| *meant).or_else(|| similar().map(|(_, candidate)| candidate)) {
        Some(meant) => format!("; did you mean `{meant}`?"),
        None => String::new(),
    }
}

/// The letters to insert, remove, replace or swap until a name is the candidate; 0 when only the case of letters differs.
fn edits(name: &str, candidate: &str) -> usize {
    if candidate.eq_ignore_ascii_case(name) { 0 } else { strsim::damerau_levenshtein(name, candidate) }
}

/// The most edits of a misspelling. Of short words, two edits make another word: `page` and `plate`.
fn most_edits(name: &str, candidate: &str) -> usize {
    if name.len().min(candidate.len()) < 6 { 1 } else { 1 + candidate.len() / 4 }
}

/// Whether one of two words is the other one after `un`, `in`, `non` or `not_`.
fn are_opposites(one: &str, other: &str) -> bool {
    let (one, other) = (one.to_ascii_lowercase(), other.to_ascii_lowercase());
    let negates = |long: &str, short: &str| NEGATIONS.iter().any(|prefix| long.strip_prefix(prefix) == Some(short));
    negates(&one, &other) || negates(&other, &one)
}

/// The text of a client, shortened to 64 characters for an error message.
pub(crate) fn shorten(text: &str) -> String {
    if text.chars().nth(64).is_none() { text.to_owned() } else { text.chars().take(64).chain("…".chars()).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, known: &[&str], expected: Option<&str>) {
        let text = expected.map_or(String::new(), |meant| format!("; did you mean `{meant}`?"));
        assert_eq!(did_you_mean(name, known.iter().copied()), text, "{name}");
    }

    #[test]
    fn a_misspelling_leads_to_the_name() {
        check("limt", &["limit", "plate"], Some("limit"));
        check("nmae", &["make", "name"], Some("name"));
        check("stauts", &["status"], Some("status"));
        check("dayly_rate", &["daily_rate"], Some("daily_rate"));
        check("AVAILABLE", &["available"], Some("available"));
        check("maintenence", &["available", "maintenance"], Some("maintenance"));
    }

    #[test]
    fn two_edits_of_a_short_word_are_another_word() {
        check("page", &["plate"], None);
        check("rate", &["name", "make"], None);
        check("sort", &["status", "plate"], None);
        check("", &["limit"], None);
    }

    #[test]
    fn no_word_leads_to_its_opposite() {
        check("unpaid", &["open", "paid", "void"], None);
        check("Inactive", &["active"], None);
        check("active", &["inactive"], None);
        check("not_billed", &["billed"], None);
        check("nonbillable", &["billable"], None);
        check("unbilled", &["billed"], Some("billed=false"));
    }

    #[test]
    fn a_word_of_another_api_leads_to_the_name_where_it_is_known() {
        let list = ["limit", "starting_after", "plate"];
        for word in ["page", "offset", "cursor", "after", "Page"] {
            check(word, &list, Some("starting_after"));
        }
        check("per_page", &list, Some("limit"));
        check("page_size", &list, Some("limit"));
        check("license_plate", &list, Some("plate"));
        check("price", &["name", "daily_rate"], Some("daily_rate"));
        check("price", &["status", "final_price"], Some("final_price"));
        check("rate", &["name", "daily_rate"], Some("daily_rate"));
        check("offset", &["name"], None);
    }

    #[test]
    fn a_name_of_more_than_64_bytes_is_not_compared() {
        let long = "a".repeat(65);
        check(&long, &[&long[..64]], None);
        check(&long[..64], &[&long[..63]], Some(&long[..63]));
    }
}
