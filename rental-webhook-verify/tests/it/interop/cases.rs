//! Generated deliveries, good and bad, the same at each run.

use crate::support::signature;

/// How far the Stripe SDKs follow the rule of a case.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Stripe {
    /// The same verdict.
    Same,
    /// Refused here on purpose; an SDK may accept.
    Laxer,
    /// The SDKs print `t` anew, take text only, or refuse an empty body: nothing to compare.
    Unlike,
}

#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) rule: &'static str,
    pub(crate) secret: Vec<u8>,
    pub(crate) header: String,
    pub(crate) body: Vec<u8>,
    pub(crate) now: u64,
    pub(crate) stripe: Stripe,
}

const ROUNDS: u64 = 40;

pub(crate) fn all() -> Vec<Case> {
    (0..ROUNDS).flat_map(round).collect()
}

/// Every rule once, around a good delivery that differs from round to round.
fn round(seed: u64) -> Vec<Case> {
    let mut random = Random(seed);
    let now = 1_700_000_000 + random.below(100_000_000);
    let secret = format!("whsec_{:016x}", random.next());
    let body =
        format!("{{\"id\":\"evt_{}\",\"text\":\"{}\"}}", random.next(), "Zoë ".repeat(random.below(40) as usize));
    let sign = |t: &str| signature(secret.as_bytes(), t, body.as_bytes());
    let good = sign(&now.to_string());
    let wrong = flipped(&good, random.below(64) as usize);
    let at = |t: u64| format!("t={t},v1={}", sign(&t.to_string()));
    let odd = |t: &str| format!("t={t},v1={}", sign(t));
    let within = random.below(301);
    let beyond = 301 + random.below(1_000_000);
    let short = random.below(64) as usize;

    let mut cases = Vec::new();
    let mut case = |rule, header: String, stripe| {
        let (secret, body) = (secret.clone().into_bytes(), body.clone().into_bytes());
        cases.push(Case { rule, secret, header, body, now, stripe });
    };
    case("good", at(now), Stripe::Same);
    case("v1 before t", format!("v1={good},t={now}"), Stripe::Same);
    case("one wrong digit", format!("t={now},v1={wrong}"), Stripe::Same);
    case("good after wrong", format!("t={now},v1={wrong},v1={good}"), Stripe::Same);
    case("good before wrong", format!("t={now},v1={good},v1={wrong}"), Stripe::Same);
    case("all wrong", format!("t={now},v1={wrong},v1={wrong}"), Stripe::Same);
    case("t of another second", format!("t={},v1={good}", now - 1), Stripe::Same);
    case("old enough", at(now - within), Stripe::Same);
    case("exactly 300 s old", at(now - 300), Stripe::Same);
    case("301 s old", at(now - 301), Stripe::Same);
    case("too old", at(now - beyond), Stripe::Same);
    case("early enough", at(now + within), Stripe::Same);
    case("exactly 300 s early", at(now + 300), Stripe::Same);
    case("301 s early", at(now + 301), Stripe::Laxer);
    case("too early", at(now + beyond), Stripe::Laxer);
    case("no header", String::new(), Stripe::Same);
    case("no t", format!("v1={good}"), Stripe::Same);
    case("no v1", format!("t={now}"), Stripe::Same);
    case("v0 only", format!("t={now},v0={good}"), Stripe::Same);
    case("unknown schemes", format!("v0={wrong},t={now},foo=bar,v1={good},x"), Stripe::Same);
    case("trailing comma", format!("t={now},v1={good},"), Stripe::Same);
    case("upper case", format!("t={now},v1={}", upper(&good)), Stripe::Same);
    case("too few digits", format!("t={now},v1={}", &good[..short]), Stripe::Same);
    case("too many digits", format!("t={now},v1={good}0"), Stripe::Same);
    case("space after the comma", format!("t={now}, v1={good}"), Stripe::Same);
    case("not hex", format!("t={now},v1={}é", &good[..62]), Stripe::Same);
    case("t twice", format!("t={now},t={now},v1={good}"), Stripe::Laxer);
    case("malformed beside good", format!("t={now},v1={good},v1=x"), Stripe::Laxer);
    case("extra =", format!("t={now},v1={good}="), Stripe::Laxer);
    case("t with extra =", format!("t={now}=,v1={good}"), Stripe::Laxer);
    case("17 signatures", format!("t={now},{}v1={good}", format!("v1={wrong},").repeat(16)), Stripe::Laxer);
    case("16 signatures", format!("t={now},{}v1={good}", format!("v1={wrong},").repeat(15)), Stripe::Same);
    case("2,049 bytes", long(&at(now), 2049), Stripe::Laxer);
    case("2,048 bytes", long(&at(now), 2048), Stripe::Same);
    case("t with a sign", odd(&format!("+{now}")), Stripe::Laxer);
    case("negative t", odd(&format!("-{now}")), Stripe::Laxer);
    case("t with a fraction", odd(&format!("{now}.0")), Stripe::Laxer);
    case("t with a space", odd(&format!(" {now}")), Stripe::Laxer);
    case("empty t", odd(""), Stripe::Laxer);
    case("leading zeros as signed", odd(&format!("00{now}")), Stripe::Unlike);
    case("leading zeros not signed", format!("t=00{now},v1={good}"), Stripe::Unlike);

    let bytes = [&[0xff, 0x00, 0xfe], body.as_bytes()].concat();
    for (rule, signed, body) in
        [("bytes", bytes.clone(), bytes.clone()), ("other bytes", body.into(), bytes), ("empty", vec![], vec![])]
    {
        let header = format!("t={now},v1={}", signature(secret.as_bytes(), &now.to_string(), &signed));
        cases.push(Case { rule, secret: secret.clone().into_bytes(), header, body, now, stripe: Stripe::Unlike });
    }
    cases
}

fn flipped(hex_text: &str, at: usize) -> String {
    let digit = if hex_text.as_bytes()[at] == b'0' { "1" } else { "0" };
    format!("{}{digit}{}", &hex_text[..at], &hex_text[at + 1..])
}

/// Has at least one letter: 64 digits without one do not happen in these rounds.
fn upper(hex_text: &str) -> String {
    let upper = hex_text.to_uppercase();
    assert_ne!(upper, hex_text);
    upper
}

fn long(header: &str, len: usize) -> String {
    format!("{header},x={}", "y".repeat(len - header.len() - 3))
}

/// splitmix64: the same numbers everywhere, without a dependency.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}
