//! Tells which time of a handover or return the server recorded for a change of a rental's status.

use crate::{
    commands::{fields::Body, session::Session},
    failure::Failure,
    flags::flag,
    output::record::Record,
};
use rental_core::value::{Timestamp, Zone};

/// A status of rentals whose change records a time.
pub(crate) struct Noted {
    status: &'static str,
    /// The field with the time.
    at: &'static str,
    /// The planned day, which counts without a time.
    planned: &'static str,
    what: &'static str,
}

const NOTED: [Noted; 2] = [
    Noted { status: "ACTIVE", at: "activated_at", planned: "start_date", what: "handover" },
    Noted { status: "COMPLETED", at: "completed_at", planned: "end_date", what: "return" },
];

/// What the server records for this change of a rental; `None` for nothing, and when the change has the time itself.
pub(crate) fn noted_for(body: &mut Body) -> Option<&'static Noted> {
    let status = body.field_mut("status")?.text()?;
    NOTED.iter().find(|noted| noted.status == status && body.field_mut(noted.at).is_none())
}

/// Says the time that the changed rental has, and how to correct it.
pub(crate) fn tell(noted: &Noted, name: &str, rental: &str, session: &Session) -> Result<(), Failure> {
    let rental = Record::read(rental)?;
    let Noted { what, at, planned, .. } = noted;
    let zone = rental.text("time_zone").and_then(|name| Zone::parse(&name));
    let shown = |time: String| Some(zone?.shown(Timestamp::parse(&time)?));
    let time = rental.text(at).map(|time| shown(time.clone()).unwrap_or(time));
    let correct = format!("`rental-cli rentals update {name} --{} TIME`", flag(at));
    session.out.note(&match (time, rental.text(planned)) {
        (Some(time), _) => format!("the {what} is recorded at {time}; if it was at another time: {correct}"),
        (None, Some(day)) => format!(
            "no time of the {what} is recorded, because its day, {day}, was long ago: that day counts; if you know the time: {correct}"
        ),
        (None, None) => return Ok(()),
    });
    Ok(())
}
