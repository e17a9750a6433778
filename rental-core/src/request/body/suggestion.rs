//! Names in error messages: the name that a client sent, and a similar known name.

/// `; did you mean X?` for the most similar name in `known`, if one is similar enough.
pub(crate) fn did_you_mean<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    if name.len() > 64 {
        return String::new();
    }
    let distance = |candidate: &str| match candidate.eq_ignore_ascii_case(name) {
        true => 0,
        false => strsim::damerau_levenshtein(name, candidate),
    };
    let scored = known.map(|candidate| (distance(candidate), candidate));
    match scored.min_by_key(|(distance, _)| *distance) {
        Some((distance, candidate)) if distance <= 1 + candidate.len() / 4 => format!("; did you mean `{candidate}`?"),
        _ => String::new(),
    }
}

/// The text of a client, shortened to 64 characters for an error message.
pub(crate) fn shorten(text: &str) -> String {
    if text.chars().nth(64).is_none() { text.to_owned() } else { text.chars().take(64).chain("…".chars()).collect() }
}
