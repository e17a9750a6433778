//! License plates and toll transponders in one canonical form. Agencies spell the same plate or number differently.

use super::state::{is_state_code, state_code};

/// How many digits the number of a transponder has.
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
        let given = state.and_then(state_code);
        let parts: Vec<String> =
            text.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty()).map(str::to_uppercase).collect();
        let (first, last) = (parts.first()?, parts.last()?);
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

/// The digits of a transponder's number, leading zeros kept: `006 11743677` is `00611743677`.
///
/// Spaces, hyphens and the quotes that spreadsheets add are removed. `None` for text with other characters, such as a
/// number that a spreadsheet rewrote (`1.29143E+11`), and for fewer than 7 or more than 20 digits.
#[must_use]
pub(crate) fn tag_digits(text: &str) -> Option<String> {
    let bare = text.trim().trim_matches(['\'', '"']);
    let digits: String = bare.chars().filter(|c| !c.is_whitespace() && *c != '-').collect();
    (TAG_DIGITS.contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())).then_some(digits)
}

/// Whether two numbers from [`tag_digits`] identify the same transponder. They do when they differ only in leading
/// zeros, or when one has an agency's prefix (3 or 4 digits before at least 8 more) that the other lacks.
#[must_use]
pub(crate) fn same_tag(a: &str, b: &str) -> bool {
    let without_prefix = |long: &str, short: &str| {
        let mut rests = [3, 4].into_iter().filter_map(|prefix| long.get(prefix..));
        rests.any(|rest| rest.len() >= SERIAL_DIGITS && bare(rest) == bare(short))
    };
    bare(a) == bare(b) || without_prefix(a, b) || without_prefix(b, a)
}

/// The key of a number in the index of transponders: its last 8 digits without leading zeros.
///
/// Equal transponders ([`same_tag`]) have the same serial. Different ones can share a serial.
#[must_use]
pub(crate) fn tag_serial(digits: &str) -> &str {
    bare(digits.get(digits.len().saturating_sub(SERIAL_DIGITS)..).unwrap_or(digits))
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
    fn a_tag_is_7_to_20_digits() {
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
        }
    }
}
