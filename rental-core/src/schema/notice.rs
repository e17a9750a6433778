//! Notices: what a response to a POST or PATCH tells of other objects, although the write was accepted.

use super::{effects::Names, hold::Hold, index::IndexPrefix};
use crate::value::VehicleId;
use std::fmt;
use uuid::Uuid;

/// The header with the notices of a response, in lower case.
pub const NOTICE_HEADER: &str = "rental-notice";

/// A kind of notice. The OpenAPI document, the pages and the command line have its texts from here.
#[derive(Debug, Eq, PartialEq)]
pub struct NoticeSpec {
    /// The token of the notice: `same-plate`.
    pub name: &'static str,
    /// The resource whose POST and PATCH can have it.
    pub on: &'static str,
    /// The resources of which it can name an object. The name of the resource is the parameter with the id.
    pub names: &'static [&'static str],
    /// What it means.
    pub says: &'static str,
    /// What to do.
    pub next: &'static str,
}

/// Another vehicle has the plate.
pub(crate) const SAME_PLATE: NoticeSpec = NoticeSpec {
    name: "same-plate",
    on: "vehicle",
    names: &["vehicle"],
    says: "Another vehicle in service has this plate.",
    next: "If both are one car, move the rentals of one record to the other one, then clear the plate of the record without rentals.",
};
/// Another vehicle has the transponder.
pub(crate) const SAME_TRANSPONDER: NoticeSpec = NoticeSpec {
    name: "same-transponder",
    says: "Another vehicle in service has this transponder.",
    next: "If both are one car, move the rentals of one record to the other one, then clear the transponder of the record without rentals.",
    ..SAME_PLATE
};
/// Another customer has the email.
pub(crate) const SAME_EMAIL: NoticeSpec = NoticeSpec {
    name: "same-email",
    on: "customer",
    names: &["customer"],
    says: "Another customer has this email.",
    next: "If both are one person, use one of the two records in all rentals, and clear the email of the other one.",
};
/// Another rental has the booking id.
pub(crate) const SAME_BOOKING_ID: NoticeSpec = NoticeSpec {
    name: "same-booking-id",
    on: "rental",
    names: &["rental"],
    says: "Another rental has this booking id.",
    next: "If both are one booking, cancel one of the two and clear its booking id.",
};
/// Another rental has the vehicle.
pub(crate) const SECOND_ACTIVE: NoticeSpec = NoticeSpec {
    name: "second-active",
    says: "Another ACTIVE rental has this vehicle.",
    next: "If the vehicle came back, complete the other rental with the time of the return.",
    ..SAME_BOOKING_ID
};
/// The vehicle cannot be handed over by its status.
pub(crate) const NOT_AVAILABLE: NoticeSpec = NoticeSpec {
    name: "vehicle-not-available",
    on: "rental",
    names: &["vehicle"],
    says: "The vehicle of this rental has another status than `available`.",
    next: "Choose another vehicle for the rental, or set the status of the vehicle to `available`.",
};
/// Somebody else has the nights of a request.
pub(crate) const NIGHTS_HELD: NoticeSpec = NoticeSpec {
    name: "nights-held",
    names: &["rental", "block"],
    says: "The vehicle of this NEW rental is held on some of its nights.",
    next: "Choose other dates or another vehicle: as it is, the rental cannot be approved.",
    ..SAME_BOOKING_ID
};

/// All kinds of notices.
pub const NOTICES: &[NoticeSpec] =
    &[SAME_PLATE, SAME_TRANSPONDER, SAME_EMAIL, SAME_BOOKING_ID, SECOND_ACTIVE, NOT_AVAILABLE, NIGHTS_HELD];

/// A notice: an item of the header. `Display` writes it as a member of a structured field list (RFC 8941):
/// `same-plate; vehicle="0190d0f2-7c3a-7cc0-8000-000000000001"`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Notice {
    /// Its kind.
    pub spec: &'static NoticeSpec,
    /// The resource of the object that it names.
    pub object: &'static str,
    /// The id of that object.
    pub id: Uuid,
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}=\"{}\"", self.spec.name, self.object, self.id)
    }
}

impl Notice {
    /// Reads the value of the header. Members that this version does not know are left out.
    #[must_use]
    pub fn list(header: &str) -> Vec<Self> {
        let one = |member: &str| {
            let (name, parameters) = member.trim().split_once(';')?;
            let spec = NOTICES.iter().find(|spec| spec.name == name.trim())?;
            let named = parameters.split(';').find_map(|parameter| {
                let (name, id) = parameter.trim().split_once('=')?;
                let object = spec.names.iter().find(|object| **object == name)?;
                Some((*object, Uuid::parse_str(id.trim_matches('"')).ok()?))
            });
            named.map(|(object, id)| Self { spec, object, id })
        };
        header.split(',').filter_map(one).collect()
    }
}

/// What a write asks the store beside its commit, for the notices of its response.
#[derive(Clone, Debug)]
pub enum Ask {
    /// Other vehicles in service with this transponder or this plate.
    Vehicles(Names),
    /// Another object of the resource with this index entry.
    Another(&'static NoticeSpec, IndexPrefix),
    /// The status of the vehicle of a rental.
    Status(VehicleId),
    /// What else holds a vehicle on these nights.
    Holder(Hold),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_are_read_as_they_are_written_and_unknown_ones_are_left_out() {
        let id = Uuid::from_u128(7);
        let all = NOTICES.iter().flat_map(|spec| spec.names.iter().map(move |object| Notice { spec, object, id }));
        let all: Vec<Notice> = all.collect();
        let header = all.iter().map(Notice::to_string).collect::<Vec<_>>().join(", ");
        assert_eq!(Notice::list(&header), all);
        let other = format!(
            "later;vehicle=\"{id}\", same-plate;count=2;vehicle=\"{id}\", same-plate; vehicle=\"x\", same-plate"
        );
        assert_eq!(Notice::list(&other), [Notice { spec: &NOTICES[0], object: "vehicle", id }]);
    }
}
