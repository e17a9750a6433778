//! The nights of a query, `from` and `to`, and the parameters beside them.

use super::page;
use crate::{
    error::{Error, FieldCode, FieldError, FieldErrors},
    value::{Date, VehicleId},
};
use uuid::Uuid;

/// Longest range of a query, in nights.
pub const MOST_NIGHTS: i64 = 366;

/// The nights `[from, to)`; the day `from` when both are the same, as for a rental.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Nights {
    /// The first day.
    pub from: Date,
    /// The day after the last night.
    pub to: Date,
}

impl Nights {
    /// The numbers of the first day and of the day after the last night.
    pub(crate) fn days(self) -> (u32, u32) {
        let first = self.from.day_number();
        (first, self.to.day_number().max(first + 1))
    }
}

/// The query of available vehicles.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct AvailabilityQuery {
    /// The nights on which the vehicles are wanted.
    pub nights: Nights,
    /// The only vehicle that is asked about; `None` for all.
    pub vehicle: Option<Asked>,
    /// Most vehicles on the page, 1 to 100.
    pub limit: usize,
    /// The id of the last vehicle that the page before examined; `None` for the first page.
    pub starting_after: Option<Uuid>,
}

/// A vehicle that a query names.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Asked {
    /// An id.
    Id(VehicleId),
    /// Text that is no id, so it matches nothing.
    Nothing,
}

impl AvailabilityQuery {
    /// Parses the query of a URL, percent-encoded and without its `?`.
    ///
    /// # Errors
    /// [`Error::Invalid`] with every bad parameter.
    pub fn parse(raw: &str) -> Result<Self, Error> {
        let (nights, others) = with_nights(raw, &["vehicle", "limit", "starting_after"])?;
        let mut errors = FieldErrors::default();
        let mut query = Self { nights, vehicle: None, limit: page::DEFAULT_LIMIT, starting_after: None };
        for (name, value) in others {
            match name.as_str() {
                "vehicle" if value.is_empty() || value.chars().nth(255).is_some() => {
                    errors.push(FieldError::new("vehicle", FieldCode::Invalid, "must be 1 to 255 characters"));
                }
                "vehicle" => query.vehicle = Some(VehicleId::parse(&value).map_or(Asked::Nothing, Asked::Id)),
                "limit" => match page::parse_limit(&value) {
                    Ok(limit) => query.limit = limit,
                    Err(error) => errors.push(error),
                },
                _ => match page::id(&value) {
                    Some(id) => query.starting_after = Some(id),
                    None => {
                        let rule = "must be the `next_cursor` of an earlier page";
                        errors.push(FieldError::new("starting_after", FieldCode::Invalid, rule));
                    }
                },
            }
        }
        errors.or(query)
    }
}

impl Nights {
    /// Parses a query that has nights and nothing else.
    ///
    /// # Errors
    /// [`Error::Invalid`] with every bad parameter.
    pub fn parse(raw: &str) -> Result<Self, Error> {
        with_nights(raw, &[]).map(|(nights, _)| nights)
    }
}

/// Splits a query into its nights and its other parameters, which must be of `known`.
fn with_nights(raw: &str, known: &[&str]) -> Result<(Nights, Vec<(String, String)>), Error> {
    let all: Vec<&str> = ["from", "to"].iter().chain(known).copied().collect();
    let (days, others): (Vec<_>, Vec<_>) =
        page::parameters(raw, &all)?.into_iter().partition(|(name, _)| name == "from" || name == "to");
    let mut errors = FieldErrors::default();
    let mut day = |name: &str| {
        let Some((_, text)) = days.iter().find(|(known, _)| known == name) else {
            errors.push(FieldError::new(name, FieldCode::Missing, "is required: a date, such as 2026-06-01"));
            return None;
        };
        let day = Date::parse(text);
        if day.is_none() {
            errors.push(FieldError::new(name, FieldCode::Invalid, "must be a date, such as 2026-06-01"));
        }
        day
    };
    let (from, to) = (day("from"), day("to"));
    let Some((from, to)) = from.zip(to) else { return Err(Error::Invalid(errors)) };
    let rule = match from.nights_until(to) {
        ..0 => "must be on or after `from`".to_owned(),
        0..=MOST_NIGHTS => return Ok((Nights { from, to }, others)),
        _ => format!("must be at most {MOST_NIGHTS} days after `from`"),
    };
    Err(Error::field("to", FieldCode::Invalid, &rule))
}
