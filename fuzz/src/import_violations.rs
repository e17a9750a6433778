//! Lists of violations, CSV and JSON: any bytes, read in any format, at once and in pieces.

use crate::import_tolls::{Pieces, all};
use rental_core::{
    imports::statements::{Reader, Row, Settings, VIOLATIONS, ViolationRow},
    value::Zone,
};

/// The first byte chooses the format and how much is read at once; the rest is the file.
pub fn check(data: &[u8]) {
    let Some((first, file)) = data.split_first() else { return };
    let (format, _) = VIOLATIONS.formats[usize::from(*first) % VIOLATIONS.formats.len()];
    let settings = Settings { currency: crate::import_tolls::currency(*first), zone: None, home: Zone::NEW_YORK };
    let whole = all(Reader::<_, ViolationRow>::open(file, Some(format), None, &settings));
    let pieces = all(Reader::<_, ViolationRow>::open(Pieces(file, usize::from(*first)), Some(format), None, &settings));
    assert_eq!(whole, pieces, "read at once and in pieces");
    let Ok(rows) = whole else { return };
    let mut before = 0;
    for (number, row) in rows {
        assert!(number > before, "row {number} after {before}");
        before = number;
        match row {
            Row::Record(violation) => bounded(&violation),
            Row::Skipped(why, _) => assert!(!why.is_empty()),
            Row::Section(why) => assert!(!why.is_empty() && why.len() < 2_000, "{why}"),
            Row::Invalid(why, _) => assert!(!why.is_empty() && why.len() < 1_000, "{why}"),
        }
    }
}

fn bounded(violation: &ViolationRow) {
    assert!(!violation.summons_number.trim().is_empty());
    assert!(violation.issued_at.is_none() || violation.issued_on.is_some(), "an instant lies on a day");
    let texts = [&violation.plate, &violation.state, &violation.issue_date, &violation.violation_time];
    let more = [&violation.violation, &violation.issuing_agency];
    for text in texts.into_iter().chain(more).flatten().map(|text| &**text).chain([&*violation.summons_number]) {
        assert!(text.chars().count() <= 255 && !text.chars().any(char::is_control), "{text:?}");
    }
}
