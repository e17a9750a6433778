//! The exact value of a JSON number, parsed from its text without floating-point numbers.

/// The number `coefficient` / 10^`scale`, with the smallest scale possible.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Decimal {
    /// All digits as one signed whole number.
    pub coefficient: i128,
    /// Number of digits after the decimal point, 0 to 30.
    pub scale: u32,
}

/// Why a number's text is not a [`Decimal`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DecimalError {
    /// The text is not a JSON number.
    NotANumber,
    /// The number has more than 30 significant digits, or more than 30 decimals.
    OutOfRange,
}

/// Most digits: more than any field needs, and few enough that products with powers of ten fit into an `i128`.
const MOST_DIGITS: usize = 30;

impl Decimal {
    /// Parses the text of a JSON number (RFC 8259, 6), exponents included: `1.50`, `-0`, `2e3`.
    ///
    /// # Errors
    /// [`DecimalError::NotANumber`] for other text, [`DecimalError::OutOfRange`] for too many digits.
    pub fn parse(text: &str) -> Result<Self, DecimalError> {
        let (negative, rest) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (mantissa, exponent) = rest.split_once(['e', 'E']).map_or((rest, "0"), |(m, e)| (m, e));
        let (whole, fraction) = mantissa.split_once('.').map_or((mantissa, None), |(w, f)| (w, Some(f)));
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let leading_zero = whole.len() > 1 && whole.starts_with('0');
        if !digits(whole) || leading_zero || !fraction.is_none_or(digits) {
            return Err(DecimalError::NotANumber);
        }
        let bare = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        if !digits(bare) {
            return Err(DecimalError::NotANumber);
        }
        let fraction = fraction.unwrap_or("");
        let all = || whole.bytes().chain(fraction.bytes());
        // Zeros after the last other digit.
        let dropped = all().rev().take_while(|digit| *digit == b'0').count();
        let kept = whole.len() + fraction.len() - dropped;
        if kept == 0 {
            return Ok(Self { coefficient: 0, scale: 0 });
        }
        // An exponent of more than 6 digits can only be out of range: the significant part is not zero.
        let bare = bare.trim_start_matches('0');
        let exponent: i64 =
            if bare.len() > 6 { return Err(DecimalError::OutOfRange) } else { exponent.parse().unwrap_or(0) };
        let scale = fraction.len() as i64 - dropped as i64 - exponent;
        let padding = usize::try_from(-scale).unwrap_or(0);
        let significant = || all().take(kept).skip_while(|digit| *digit == b'0');
        if significant().count() + padding > MOST_DIGITS || scale > MOST_DIGITS as i64 {
            return Err(DecimalError::OutOfRange);
        }
        let magnitude = significant().fold(0, |sum, digit| sum * 10 + i128::from(digit - b'0'));
        let magnitude = magnitude * 10_i128.pow(padding as u32);
        let coefficient = if negative { -magnitude } else { magnitude };
        Ok(Self { coefficient, scale: u32::try_from(scale).unwrap_or(0) })
    }

    /// This number as an integer; `None` when it has a fraction or does not fit.
    #[must_use]
    pub fn to_integer(self) -> Option<i64> {
        if self.scale == 0 { i64::try_from(self.coefficient).ok() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &str, coefficient: i128, scale: u32) {
        assert_eq!(Decimal::parse(text), Ok(Decimal { coefficient, scale }), "{text}");
    }

    #[test]
    fn the_text_decides_the_value() {
        check("89.50", 895, 1);
        check("1e2", 100, 0);
        check("1.5E+1", 15, 0);
        check("100", 100, 0);
        check("-0", 0, 0);
        check("0.000e400", 0, 0);
        check("0e99999999999999999999", 0, 0);
        check("1e-7", 1, 7);
        check("120e-1", 12, 0);
        check("1e0000001", 10, 0);
        check("1e00000000000000000000", 1, 0);
        check("-12.340", -1234, 2);
    }

    #[test]
    fn other_text_is_no_number() {
        for text in ["", "-", "01", "1.", ".5", "+1", "NaN", "1e", "1e+", "0x10", "1_000", "１", "1 ", "--1", "1.-2"] {
            assert_eq!(Decimal::parse(text), Err(DecimalError::NotANumber), "{text}");
        }
    }

    #[test]
    fn numbers_beyond_every_field_are_out_of_range() {
        for text in ["1e400", "1e-400", "1e9999999999", "1234567890123456789012345678901"] {
            assert_eq!(Decimal::parse(text), Err(DecimalError::OutOfRange), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_json_number_is_read_or_refused_without_a_panic(text in "-?[0-9]{1,40}(\\.[0-9]{1,40})?([eE][+-]?[0-9]{1,9})?") {
            let _ = Decimal::parse(&text);
        }

        #[test]
        fn moving_the_point_keeps_the_value(coefficient in 1i64..=i64::MAX, zeros in 0usize..8) {
            let plain = Decimal::parse(&coefficient.to_string()).unwrap();
            let shifted = format!("{coefficient}{}e-{zeros}", "0".repeat(zeros));
            prop_assert_eq!(Decimal::parse(&shifted).unwrap(), plain);
        }
    }
}
