//! Days and times as people type them become those of the API, in the zone of the organization.

use crate::{
    client::{access::Access, request::Request},
    commands::session::Session,
    config::when::{Days, When},
    edge,
    failure::Failure,
    output::record::Record,
};
use clap::ArgMatches;
use rental_core::{
    resources::organization,
    schema::Kind,
    value::{Timestamp, Zone},
};

/// Whose days are meant.
pub(crate) struct Whose {
    access: Access,
    /// The organization that the command line names.
    pub(crate) organization: Option<String>,
}

impl Whose {
    /// Those of the command with these flags.
    pub(crate) fn of(access: Access, matches: &ArgMatches) -> Self {
        let named = matches.try_get_one::<String>("organization").ok().flatten();
        Self { access, organization: named.cloned() }
    }
}

/// A text of a field or filter of this kind, as the API takes it.
pub(crate) fn resolved(kind: Kind, text: &str, whose: &Whose, session: &Session) -> Result<String, Failure> {
    match (kind, When::of(text)) {
        (Kind::Date, When::FromToday(days)) => {
            let day = days_of(whose, session)?.after_today(days, edge::now()).ok_or_else(|| out_of_range(text))?;
            Ok(day.to_string())
        }
        (Kind::Time, when) => time(&when, whose, session),
        _ => Ok(text.to_owned()),
    }
}

/// The time of a flag: of a day its beginning.
pub(crate) fn time(when: &When, whose: &Whose, session: &Session) -> Result<String, Failure> {
    let begin = |days: Days, day| days.midnight(day).map(|at: Timestamp| at.to_string());
    let found = match when {
        When::Text(text) => return Ok(text.clone()),
        When::Ago(ago) => return Ok(edge::time_ago(*ago).to_string()),
        When::Day(day) => begin(days_of(whose, session)?, *day),
        When::FromToday(count) => {
            let days = days_of(whose, session)?;
            days.after_today(*count, edge::now()).and_then(|day| begin(days, day))
        }
    };
    found.ok_or_else(|| out_of_range("the day"))
}

/// The time of a flag whose value [`when::since`](crate::config::when::since) has parsed. Computed once, so that all pages of a
/// command use the same time.
pub(crate) fn since(matches: &ArgMatches, name: &str, session: &Session) -> Result<Option<String>, Failure> {
    let whose = Whose::of(Access::Operator, matches);
    matches.get_one::<When>(name).map(|when| time(when, &whose, session)).transpose()
}

fn out_of_range(what: &str) -> Failure {
    Failure::Usage(format!("{what} is before 1970 or after year 9999"))
}

/// Where days begin and end: in the zone of the organization that the command or the profile of an operator names, else of the API key.
/// Asks once, and tells a person.
fn days_of(whose: &Whose, session: &Session) -> Result<Days, Failure> {
    if let Some(days) = session.days.get() {
        return Ok(*days);
    }
    let set = || session.settings.organization.as_ref().map(|set| set.value.as_str());
    let request = match (whose.access, whose.organization.as_deref().or_else(set)) {
        (Access::Organization, _) => Some(Request::get(Access::Organization, &["me"])),
        (Access::Operator, Some(text)) => {
            Some(Request::get(whose.access, &[organization::SPEC.plural, session.organization_id(text)?]))
        }
        (Access::Operator, None) if session.settings.api_key.is_none() => None,
        (Access::Operator, None) => Some(Request::get(Access::Organization, &["me"])),
    };
    let name = match request {
        Some(request) => Record::read(&session.send(&request)?)?.text("time_zone").unwrap_or_default(),
        None => String::new(),
    };
    let days = Zone::parse(&name).map_or(Days::Here, Days::Of);
    session.out.note_to_person(&match days {
        Days::Of(_) => format!("days are those of {name}, the time zone of the organization"),
        Days::Here => "days are those of the time zone of this computer: no organization is named".into(),
    });
    Ok(*session.days.get_or_init(|| days))
}
