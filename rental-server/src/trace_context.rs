//! The trace that a request belongs to: the header `traceparent` of W3C Trace Context.

use std::fmt;

/// The number of a trace; shown as 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct TraceId(pub(crate) u128);

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// What a `traceparent` says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct TraceParent {
    pub(crate) trace: TraceId,
    /// The span that the request, or the response to it, belongs to.
    pub(crate) span: u64,
    /// Whether the caller records the trace.
    pub(crate) sampled: bool,
}

impl TraceParent {
    /// Parses the header. `None` when it is not valid: then the request begins a trace of its own, as the standard says.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(5, '-');
        let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        // Later versions may add parts.
        if hex(version, 2)? == 0xff || (version == "00" && parts.next().is_some()) {
            return None;
        }
        let (trace, span, flags) = (hex(trace, 32)?, hex(span, 16)?, hex(flags, 2)?);
        let (trace, span) = (TraceId(trace), u64::try_from(span).ok()?);
        (trace.0 != 0 && span != 0).then_some(Self { trace, span, sampled: flags & 1 == 1 })
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{:016x}-{:02x}", self.trace, self.span, u8::from(self.sampled))
    }
}

/// A number of exactly so many lower-case hexadecimal digits.
fn hex(text: &str, digits: usize) -> Option<u128> {
    let valid = text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if valid { u128::from_str_radix(text, 16).ok() } else { None }
}

/// Longest id that a client can give a request.
const LONGEST_REQUEST_ID: usize = 128;

/// Whether an id of a client can stand in a log and a header: 1 to 128 letters, digits and `._~:/+=@-`.
pub(crate) fn is_request_id(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._~:/+=@-".contains(&byte);
    (1..=LONGEST_REQUEST_ID).contains(&text.len()) && text.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn the_example_of_the_standard_is_read_and_written() {
        let parent = TraceParent::parse(EXAMPLE).expect("it is valid");
        let trace = TraceId(0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736);
        assert_eq!(parent, TraceParent { trace, span: 0x00f0_67aa_0ba9_02b7, sampled: true });
        assert_eq!(parent.to_string(), EXAMPLE);
    }

    #[test]
    fn a_later_version_may_have_more_parts_and_unknown_flags() {
        let later = EXAMPLE.replacen("00", "cc", 1).replace("-01", "-fe-what-follows");
        assert_eq!(TraceParent::parse(&later).map(|parent| parent.sampled), Some(false));
    }

    #[test]
    fn what_is_not_valid_is_ignored() {
        let zero_trace = format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32));
        let zero_span = format!("00-4bf92f3577b34da6a3ce929d0e0e4736-{}-01", "0".repeat(16));
        for bad in [
            "",
            "00",
            &EXAMPLE.to_uppercase(),
            &EXAMPLE.replacen("00", "ff", 1),
            &format!("{EXAMPLE}-more"),
            &format!(" {EXAMPLE}"),
            &EXAMPLE[..54],
            &EXAMPLE.replace('4', "+"),
            &zero_trace,
            &zero_span,
        ] {
            assert_eq!(TraceParent::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn an_id_of_a_client_is_short_and_has_no_special_characters() {
        for good in ["1", "01J0-abc_1.2~3", "Root=1-67891233-abcdef012345678912345678", &"x".repeat(128)] {
            assert!(is_request_id(good), "{good}");
        }
        for bad in ["", "a b", "a\"b", "a;b", "ä", "{}", &"x".repeat(129)] {
            assert!(!is_request_id(bad), "{bad}");
        }
    }
}
