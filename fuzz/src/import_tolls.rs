//! Statements of toll agencies: any bytes, read in any format, at once and in pieces.

use rental_core::{
    imports::statements::{Failed, Mapping, Reader, Row, Settings, TOLLS, TollRow},
    value::{Currency, Zone},
};
use std::io::Read;

/// A mapping that uses every member.
const MAPPING: &str = r#"{"agency": {"column": "agency"}, "time_zone": "America/Chicago", "date_order": "dmy",
    "encoding": "windows-1252", "charges": "positive", "skip": {"column": "type", "values": ["payment"]}, "columns": {"date": "date", "time": "time",
    "tag_or_plate": "tag", "plate_state": "state", "plaza": {"join": ["exit", "entry"]},
    "amount": {"sum": ["amount", "tax"]}}}"#;

/// The first byte chooses the format (or the mapping) and how much is read at once; the rest is the file.
pub fn check(data: &[u8]) {
    let Some((first, file)) = data.split_first() else { return };
    let mapping = Mapping::parse(MAPPING, TOLLS.has_issuer).expect("it is a mapping");
    let which = usize::from(*first) % (TOLLS.formats.len() + 1);
    let format = TOLLS.formats.get(which).map(|(name, _)| *name);
    let mapping = format.is_none().then_some(&mapping);
    let settings = Settings { currency: crate::import_tolls::currency(*first), zone: None, home: Zone::NEW_YORK };
    let whole = all(Reader::<_, TollRow>::open(file, format, mapping, &settings));
    let pieces = all(Reader::<_, TollRow>::open(Pieces(file, usize::from(*first)), format, mapping, &settings));
    assert_eq!(whole, pieces, "read at once and in pieces");
    let Ok(rows) = whole else { return };
    let mut before = 1;
    for (line, row) in rows {
        assert!(line > before, "row {line} after {before}");
        before = line;
        match row {
            Row::Record(toll) => bounded(&toll),
            Row::Skipped(why, _) => assert!(!why.is_empty()),
            Row::Section(why) => assert!(!why.is_empty() && why.len() < 2_000, "{why}"),
            Row::Invalid(why, _) => assert!(!why.is_empty() && why.len() < 1_000, "{why}"),
        }
    }
}

/// A currency with 0, 2, 3 or 4 decimals.
pub(crate) fn currency(first: u8) -> Currency {
    let code = ["JPY", "USD", "KWD", "CLF", "EUR"][usize::from(first) % 5];
    Currency::parse(code).expect("it is a currency")
}

/// Every row, or the sentence of the failure.
pub(crate) fn all<T>(
    rows: Result<impl Iterator<Item = Result<(u64, Row<T>), Failed>>, Failed>,
) -> Result<Vec<(u64, Row<T>)>, String> {
    rows.and_then(Iterator::collect).map_err(|failed: Failed| failed.to_string())
}

fn bounded(toll: &TollRow) {
    assert!(!toll.amount.is_zero() && !toll.agency.trim().is_empty());
    assert!(toll.occurred_at.is_none() || toll.occurred_on.is_some(), "an instant lies on a day");
    let texts = [&toll.transaction_id, &toll.plaza, &toll.plate, &toll.plate_state, &toll.transponder_number];
    for text in texts.into_iter().flatten().map(|text| &**text).chain([&*toll.agency]) {
        assert!(text.chars().count() <= 255 && !text.chars().any(char::is_control), "{text:?}");
    }
}

/// Gives a few bytes at a time.
pub(crate) struct Pieces<'a>(pub(crate) &'a [u8], pub(crate) usize);

impl Read for Pieces<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let most = (self.1 % 13 + 1).min(into.len());
        self.0.read(&mut into[..most])
    }
}
