//! Tolls by their passage, because some agencies give no number: the plate or transponder and the local time, as
//! `tolls review` prints them, such as `KNN7123@2026-06-02T13:00`. A plaza can follow: `KNN7123@2026-06-02T13:00@GWB`.

use crate::{
    client::{access::Access, api::Api, request::Request},
    commands::pages,
    failure::Failure,
    output::{
        progress::Progress,
        record::{self, Record},
    },
};
use rental_core::{
    resources::{toll, vehicle},
    value::{Date, Timestamp, Zone, folded, nfc},
};

/// Pages that are read at most to find a passage: of the review, and then of all tolls.
const MAX_PAGES: usize = 200;
/// Tolls that are read before a terminal shows progress: those of two pages.
const SHOWN_FROM: u64 = 200;
/// Characters of a day, and of a day with a time to the minute.
const DAY: usize = "2026-06-02".len();
const MINUTE: usize = "2026-06-02 13:00".len();

/// A passage as typed.
struct Passage<'a> {
    whose: String,
    /// The day and time as `when` of a review has them: `2026-06-02 13:00`.
    when: String,
    plaza: Option<&'a str>,
}

impl<'a> Passage<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let (whose, rest) = text.split_once('@')?;
        let (when, plaza) = rest.split_once('@').map_or((rest, None), |(when, plaza)| (when, Some(plaza.trim())));
        let when = when.trim().replacen(['T', 't'], " ", 1);
        Date::parse(when.get(..DAY)?)?;
        let (whose, has_form) =
            (plain(whose), when.len() == DAY || when.as_bytes().get(DAY) == Some(&b' ') && when.len() >= MINUTE);
        (has_form && !whose.is_empty()).then_some(Self { whose, when, plaza })
    }

    /// Whether this is the passage of a toll.
    fn is(&self, toll: &Toll) -> bool {
        let is_when = |when: &str| when == self.when || when.get(..MINUTE) == Some(&self.when);
        toll.whose.contains(&self.whose)
            && toll.when.as_deref().is_some_and(is_when)
            && self.plaza.is_none_or(|plaza| toll.plaza.as_deref().is_some_and(|known| folded(known) == folded(plaza)))
    }
}

/// What identifies the passage of a toll.
struct Toll {
    /// Plate and transponder as reported; without both, the plate of the vehicle.
    whose: Vec<String>,
    when: Option<String>,
    plaza: Option<String>,
}

impl Toll {
    fn of_row(row: &Record) -> Self {
        let mut whose = reported(row);
        if whose.is_empty() {
            whose.extend(row.text("vehicle_plate").map(|plate| plain(&plate)));
        }
        Self { whose, when: row.text("when"), plaza: row.text("place") }
    }

    /// A toll of the list, whose time is shown in the zone of its statement, or else in that of the organization.
    fn of_list(toll: &Record, zone: Option<Zone>) -> Self {
        let whose = reported(toll);
        let zone = toll.text("time_zone").and_then(|name| Zone::parse(&name)).or(zone);
        let at = toll.text("occurred_at").and_then(|text| Timestamp::parse(&text));
        let when = at.zip(zone).map(|(at, zone)| zone.shown(at)).or_else(|| toll.text("occurred_on"));
        Self { whose, when, plaza: toll.text("plaza") }
    }

    /// The name that a command takes: with the plaza, if that is asked for and known.
    fn name(&self, with_plaza: bool) -> Option<String> {
        let when = self.when.as_deref()?;
        let when = when.get(..MINUTE).unwrap_or(when).replacen(' ', "T", 1);
        let plaza = self.plaza.as_ref().filter(|plaza| with_plaza && !plaza.is_empty());
        let plaza = plaza.map(|plaza| format!("@{plaza}")).unwrap_or_default();
        Some(format!("{}@{when}{plaza}", self.whose.first()?))
    }
}

/// The plate and the transponder as reported, as far as they are known.
fn reported(toll: &Record) -> Vec<String> {
    let texts = ["plate", "transponder_number"].into_iter().filter_map(|member| toll.text(member));
    texts.map(|text| plain(&text)).filter(|text| !text.is_empty()).collect()
}

/// Letters and digits of a plate or transponder, without regard to case.
fn plain(text: &str) -> String {
    nfc(text).chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_uppercase).collect()
}

/// Whether a text has the form of a passage.
pub(super) fn fits(text: &str) -> bool {
    Passage::parse(text).is_some()
}

/// The name of the toll of a row of a review; with its plaza if it is to be `exact`.
pub(super) fn name_of_row(row: &Record, exact: bool) -> Option<String> {
    Toll::of_row(row).name(exact)
}

/// Tolls of a passage: their ids, and their names with the plaza.
type Found = Vec<(String, Option<String>)>;

/// The tolls without a number of this passage. The review is read first: there a person sees such tolls. What is attached is in the
/// list of tolls only.
pub(super) fn found(api: &Api, text: &str) -> Result<Found, Failure> {
    let Some(passage) = Passage::parse(text) else { return Ok(Found::new()) };
    let mut found = in_review(api, &passage)?;
    if found.is_empty() {
        found = in_list(api, &passage)?;
    }
    if found.is_empty() {
        let problem = format!("no toll without a number has the plate or transponder and the local time {text:?}");
        let hint = "`rental-cli tolls review` shows the names of tolls; those that are attached: `rental-cli tolls list --all`";
        return Err(Failure::Unsuccessful { kind: "not_found", problem, hint });
    }
    Ok(found)
}

fn in_review(api: &Api, passage: &Passage<'_>) -> Result<Found, Failure> {
    let mut found = Found::new();
    let path = [toll::SPEC.plural, "review"];
    walk(api, &path, &[], |row| {
        let toll = Toll::of_row(row);
        if passage.is(&toll) && is_without_number(row, "number") {
            found.extend(row.text("id").map(|id| (id, toll.name(true))));
        }
    })?;
    Ok(found)
}

fn in_list(api: &Api, passage: &Passage<'_>) -> Result<Found, Failure> {
    let me = Record::read(&record::json(api.send(&Request::get(Access::Organization, &["me"]))?)?)?;
    let zone = me.text("time_zone").and_then(|name| Zone::parse(&name));
    let vehicles = pages::of_filter(api, vehicle::SPEC.plural, ("plate", &passage.whose))?;
    let query = match vehicles.as_slice() {
        [one] => one.text("id").map(|id| ("vehicle".to_owned(), id)),
        _ => None,
    };
    let mut found = Found::new();
    walk(api, &[toll::SPEC.plural], query.as_slice(), |row| {
        let toll = Toll::of_list(row, zone);
        if passage.is(&toll) && is_without_number(row, "transaction_id") {
            found.extend(row.text("id").map(|id| (id, toll.name(true))));
        }
    })?;
    Ok(found)
}

/// A toll with a number is named by that, so that a passage never means another toll than the one that was shown.
fn is_without_number(row: &Record, member: &str) -> bool {
    row.text(member).is_none_or(|number| number.is_empty())
}

/// Visits all objects of a list, up to a bound.
fn walk(api: &Api, path: &[&str], query: &[(String, String)], mut visit: impl FnMut(&Record)) -> Result<(), Failure> {
    let (mut read, mut progress) = (0_u64, None);
    let is_complete = pages::each_object((api, Access::Organization), path, query, MAX_PAGES, |raw| {
        read += 1;
        if read >= SHOWN_FROM {
            progress.get_or_insert_with(|| Progress::count(None, "tolls looked at")).at(read);
        }
        visit(&Record::read(raw.get())?);
        Ok(true)
    })?;
    if is_complete {
        return Ok(());
    }
    let problem = format!("there are more than {read} tolls, so the passage was not looked up in all of them");
    Err(Failure::Unsuccessful { kind: "ambiguous_name", problem, hint: "use the id" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_passage_is_a_plate_or_transponder_a_local_time_and_perhaps_a_plaza() {
        for text in [
            "KNN7123@2026-06-02T13:00",
            "knn 7123@2026-06-02 13:00",
            "KNN7123@2026-06-02",
            "KNN7123@2026-06-02 13:00 -04:00",
            "00412345678@2026-06-02T13:00@GWB",
        ] {
            assert!(fits(text), "{text}");
        }
        for text in [
            "61231234567",
            "MTAB&T:77",
            "@2026-06-02",
            "KNN7123@",
            "KNN7123@13:00",
            "ada@example.com",
            "A@2026-06-02T1",
        ] {
            assert!(!fits(text), "{text}");
        }
    }
}
