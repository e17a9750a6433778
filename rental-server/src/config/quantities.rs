//! Numbers with a unit.

use std::time::Duration;

/// Units of time, in milliseconds.
pub(super) const TIMES: [(&str, u64); 5] = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// `500ms`, `30s`, `2m`, `2h`, `1d`: more than 0, at most 30 days.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let millis = quantity(text, &TIMES, "write it with ms, s, m, h or d, such as 30s")?;
    let in_range = (1..=30 * 86_400_000).contains(&millis);
    if in_range { Ok(Duration::from_millis(millis)) } else { Err("must be more than 0 and at most 30d".into()) }
}

/// A whole number and one of these units. `usage` ends the message about any other text.
pub(super) fn quantity(text: &str, units: &[(&str, u64)], usage: &str) -> Result<u64, String> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let number: u64 = number.parse().map_err(|_| format!("is no whole number with a unit: {usage}"))?;
    match units.iter().find(|(name, _)| *name == unit) {
        Some((_, factor)) => Ok(number.saturating_mul(*factor)),
        None if unit.is_empty() => Err(format!("has no unit: {usage}")),
        None => Err(format!("unknown unit `{unit}`: {usage}")),
    }
}
