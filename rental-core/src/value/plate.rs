//! License plates and toll transponders in one canonical form. Agencies spell the same plate or number differently.

use super::{
    compared::nfc,
    state::{is_state_code, state_code},
};

/// Letters and digits of the longest plates: those of India.
const PLATE_CHARACTERS: usize = 10;
/// How many digits the number of a transponder has in a column that can also have plates.
const TAG_DIGITS: std::ops::RangeInclusive<usize> = 7..=20;
/// How many digits the serial number of a transponder has, after the agency's prefix.
const SERIAL_DIGITS: usize = 8;

/// A license plate: the number in capital letters and digits, and the state when it is known.
///
/// Two states may issue the same number, so two plates are equal only when their states are equal too.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Plate {
    /// The state's code, such as `NY` or `ON`. An unknown spelling is a code of its own, so it contradicts every known state.
    /// `None` when no state is given.
    pub state: Option<String>,
    /// The plate's number: at least one capital letter or digit, nothing else.
    pub number: String,
}

impl Plate {
    /// Parses the plate of a statement's row. `state` is the value of a separate column, if the row has one.
    ///
    /// A state code at the start or end of `text` counts only when a delimiter separates it: `NY LZA7293`, `CUR123-NJ`,
    /// `MHR9274 - PA`, but not `TX1234`. When both ends are state codes, or `state` names another state, the letters
    /// belong to the number. States are known by code or name: `NJ`, `New Jersey`, `US-NJ`, `ONT`.
    /// `None` when `text` has no letter or digit.
    #[must_use]
    pub fn parse(text: &str, state: Option<&str>) -> Option<Self> {
        let (given, upper) = (state.and_then(state_code), text.to_uppercase());
        let text = nfc(&upper);
        let parts: Vec<&str> = text.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty()).collect();
        let (first, last) = (*parts.first()?, *parts.last()?);
        let ends = [(first, 1..parts.len()), (last, 0..parts.len() - 1)];
        let is_state = |part: &str| match &given {
            Some(given) => state_code(part).as_ref() == Some(given),
            None => is_state_code(part),
        };
        let mut found = ends.into_iter().filter(|(part, rest)| !rest.is_empty() && is_state(part));
        match (found.next(), found.next()) {
            (Some((state, rest)), None) => Some(Self { state: state_code(state), number: parts[rest].concat() }),
            _ => Some(Self { state: given, number: parts.concat() }),
        }
    }
}

/// The number of a transponder as numbers are compared: `006 11743677` is `00611743677`, `hctr 09000001` is `HCTR09000001`.
///
/// Spaces, hyphens and the quotes that spreadsheets add are removed, and letters are capital ones. `None` for text without a
/// digit, and for a number that a spreadsheet rewrote (`1.29143E+11`).
#[must_use]
pub(crate) fn tag_number(text: &str) -> Option<String> {
    let text = text.trim().trim_matches(['\'', '"']).to_uppercase();
    let number: String = nfc(&text).chars().filter(|c| !c.is_whitespace() && *c != '-').collect();
    (number.contains(|c: char| c.is_ascii_digit()) && !number.contains('+')).then_some(number)
}

/// The number of a transponder that has 7 to 20 digits and nothing else.
#[must_use]
pub(crate) fn tag_digits(text: &str) -> Option<String> {
    tag_number(text).filter(|number| TAG_DIGITS.contains(&number.len()) && are_digits(number))
}

/// The number of a transponder that cannot be a plate: one of digits ([`tag_digits`]), or one longer than every plate.
#[must_use]
pub(crate) fn tag_and_no_plate(text: &str) -> Option<String> {
    let is_longer = |plate: Plate| plate.number.chars().count() > PLATE_CHARACTERS;
    tag_digits(text).or_else(|| tag_number(text).filter(|_| Plate::parse(text, None).is_some_and(is_longer)))
}

/// Whether two numbers from [`tag_number`] identify the same transponder. Numbers of digits also do when they differ only in
/// leading zeros, or when one has an agency's prefix (3 or 4 digits before at least 8 more) that the other lacks.
#[must_use]
pub(crate) fn same_tag(a: &str, b: &str) -> bool {
    if !are_digits(a) || !are_digits(b) {
        return a == b;
    }
    let without_prefix = |long: &str, short: &str| {
        let mut rests = [3, 4].into_iter().filter_map(|prefix| long.get(prefix..));
        rests.any(|rest| rest.len() >= SERIAL_DIGITS && bare(rest) == bare(short))
    };
    bare(a) == bare(b) || without_prefix(a, b) || without_prefix(b, a)
}

/// The key of a number in the index of transponders: its last 8 digits without leading zeros, or all of a number with letters.
///
/// Equal transponders ([`same_tag`]) have the same serial. Different ones can share a serial.
#[must_use]
pub(crate) fn tag_serial(number: &str) -> &str {
    if !are_digits(number) {
        return number;
    }
    bare(number.get(number.len().saturating_sub(SERIAL_DIGITS)..).unwrap_or(number))
}

fn are_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The digits without leading zeros; at least the last digit stays.
fn bare(digits: &str) -> &str {
    let zeros = digits.bytes().take_while(|byte| *byte == b'0').count();
    &digits[zeros.min(digits.len().saturating_sub(1))..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &str, column: Option<&str>, state: Option<&str>, number: &str) {
        let expected = Plate { state: state.map(str::to_owned), number: number.to_owned() };
        assert_eq!(Plate::parse(text, column), Some(expected), "{text} {column:?}");
    }

    #[test]
    fn a_state_is_split_off_at_a_delimiter() {
        check("NY LZA7293", None, Some("NY"), "LZA7293");
        check("CUR123-NJ", None, Some("NJ"), "CUR123");
        check("IJNH27-FL", None, Some("FL"), "IJNH27");
        check("MHR9274 - PA", None, Some("PA"), "MHR9274");
        check("ny abc-1234", None, Some("NY"), "ABC1234");
        check("on.cabc 123", None, Some("ON"), "CABC123");
    }

    #[test]
    fn letters_without_a_delimiter_or_of_no_state_stay() {
        check("TX1234", None, None, "TX1234");
        check("ABC1234PA", None, None, "ABC1234PA");
        check("ZZ 1234", None, None, "ZZ1234");
        check("NY", None, None, "NY");
        check(" xab.c-12 3 ", None, None, "XABC123");
        check("NY ABC NJ", None, None, "NYABCNJ");
    }

    #[test]
    fn the_state_of_the_column_decides() {
        check("NY LZA7293", Some("US-NY"), Some("NY"), "LZA7293");
        check("NY LZA7293", Some("nj"), Some("NJ"), "NYLZA7293");
        check("NY ABC NJ", Some("NJ"), Some("NJ"), "NYABC");
        check("LZA7293", Some(" ny "), Some("NY"), "LZA7293");
        check("LZA7293", Some("New York"), Some("NY"), "LZA7293");
        check("ONT CABC 123", Some("Ontario"), Some("ON"), "CABC123");
        check("NY LZA7293", Some("-"), Some("NY"), "LZA7293");
        check("LZA7293", Some("99"), Some("99"), "LZA7293");
        check("1", Some("CA-ON"), Some("ON"), "1");
    }

    #[test]
    fn nothing_is_no_plate() {
        for text in ["", " ", "-", "' '"] {
            assert_eq!(Plate::parse(text, Some("NY")), None, "{text}");
        }
    }

    #[test]
    fn a_plate_is_the_same_composed_and_decomposed() {
        for (text, number) in [
            ("AO\u{308}-AB 123", "AÖAB123"),
            ("ao\u{308} ab123", "AÖAB123"),
            ("\u{1112}\u{1161}\u{11ab} 12", "한12"),
            ("C\u{327}A 34", "ÇA34"),
        ] {
            check(text, None, None, number);
            check(text, Some("Que\u{301}bec"), Some("QC"), number);
        }
        assert_eq!(Plate::parse("A1", Some("Nuevo Leo\u{301}n")), Plate::parse("A1", Some("NUEVO LEÓN")));
        assert_eq!(Plate::parse("A1", Some("Zu\u{308}rich")), Plate::parse("A1", Some("zürich")));
    }

    #[test]
    fn a_tag_is_a_text_without_spaces_and_case() {
        for (text, number) in [
            ("HCTR09000001", "HCTR09000001"),
            (" hctr 0900 0001 ", "HCTR09000001"),
            ("'HCTR-09000001", "HCTR09000001"),
            ("tex.10020030", "TEX.10020030"),
            ("123456", "123456"),
            ("12 34\u{a0}56", "123456"),
            ("e\u{301}1", "É1"),
            ("006 11743677", "00611743677"),
        ] {
            assert_eq!(tag_number(text).as_deref(), Some(number), "{text}");
        }
        for text in ["", " - ", "none", "N/A", "1.29143E+11", "１２３４５６７８"] {
            assert_eq!(tag_number(text), None, "{text}");
        }
    }

    #[test]
    fn only_tags_of_digits_are_compared_by_their_serial() {
        for (a, b) in [("123456", "0123456"), ("123456", "00100123456"), ("HCTR09000001", "HCTR09000001")] {
            assert!(same_tag(a, b) && same_tag(b, a) && tag_serial(a) == tag_serial(b), "{a} {b}");
        }
        for (a, b) in [
            ("HCTR09000001", "09000001"),
            ("HCTR09000001", "HCTR9000001"),
            ("TEX.10020030", "TEX10020030"),
            ("TEX.10020030", "HCTR.10020030"),
            ("123456", "123457"),
        ] {
            assert!(!same_tag(a, b) && !same_tag(b, a), "{a} {b}");
        }
    }

    #[test]
    fn in_a_column_with_plates_a_number_longer_than_a_plate_is_a_tag() {
        for (text, number) in
            [("HCTR 09000001", "HCTR09000001"), ("tex.10020030", "TEX.10020030"), ("006 11743677", "00611743677")]
        {
            assert_eq!(tag_and_no_plate(text).as_deref(), Some(number), "{text}");
        }
        for plate in ["NY LZA7293", "MH12AB1234", "MH-12-AB-1234", "123456", "NEVER AGAIN MORE"] {
            assert_eq!(tag_and_no_plate(plate), None, "{plate}");
        }
    }

    #[test]
    fn in_a_column_with_plates_a_tag_is_7_to_20_digits() {
        for (text, digits) in [
            (" 99900000001", "99900000001"),
            ("006 11743677", "00611743677"),
            ("'00611743677", "00611743677"),
            ("\"004-1234567\"", "0041234567"),
            ("1234567", "1234567"),
        ] {
            assert_eq!(tag_digits(text).as_deref(), Some(digits), "{text}");
        }
        for text in ["1.29143E+11", "123456", "123456789012345678901", "LZA7293", "", "12345678.0", "１２３４５６７８"]
        {
            assert_eq!(tag_digits(text), None, "{text}");
        }
    }

    #[test]
    fn a_tag_is_the_same_without_its_prefix_or_leading_zeros() {
        for (a, b) in [
            ("00611743677", "11743677"),
            ("00611743677", "611743677"),
            ("00604193412", "4193412"),
            ("012900111743", "00111743"),
        ] {
            assert!(same_tag(a, b) && same_tag(b, a), "{a} {b}");
        }
        for (a, b) in [
            ("00611743677", "00411743677"),
            ("00611743677", "1743677"),
            ("00611743677", "11743678"),
            ("0061174367", "1174367"),
        ] {
            assert!(!same_tag(a, b) && !same_tag(b, a), "{a} {b}");
        }
    }

    proptest! {
        #[test]
        fn the_same_tag_has_the_same_serial(a in "0{0,4}[0-9]{7,14}", cut in 0usize..8, zeros in "0{0,3}", other in "[0-9]{7,20}") {
            let b = format!("{zeros}{}", &a[cut.min(a.len() - 1)..]);
            for b in [b, bare(&a).to_owned(), other] {
                if same_tag(&a, &b) {
                    prop_assert_eq!(tag_serial(&a), tag_serial(&b), "{} {}", a, b);
                }
                prop_assert_eq!(same_tag(&a, &b), same_tag(&b, &a));
            }
            prop_assert!(same_tag(&a, &a) && !tag_serial(&a).is_empty());
        }

        #[test]
        fn a_plate_that_was_read_is_read_the_same_again(text in "\\PC{0,20}", state in proptest::option::of("[A-Za-z-]{0,5}")) {
            if let Some(plate) = Plate::parse(&text, state.as_deref()) {
                prop_assert!(!plate.number.is_empty());
                let again = Plate::parse(&plate.number, plate.state.as_deref());
                let whole = plate.number.chars().all(char::is_alphanumeric);
                prop_assert!(!whole || again == Some(plate));
            }
            let _ = (tag_digits(&text), tag_serial(&text), same_tag(&text, "é"));
            if let Some(number) = tag_number(&text) {
                prop_assert!(!number.contains([' ', '-']) && same_tag(&number, &number));
            }
        }
    }
}
