//! Vehicles (spec, Vehicle).

use crate::{
    error::Error,
    resources::{Create, Portable, Resource, RuleContext, Update, event::EventType, fields},
    schema::{
        Ask, BY_UPDATE, CREATED_AT, CURRENCY, Effects, Facts, Fields, Grounds, IndexPrefix, Kind, LookUpSpec, Names,
        ResourceSpec, UPDATED_AT, field, filter, filter_by, id, index, look_up, object, ordered_index,
    },
    store::Record,
    value::{Currency, Money, Name, OrganizationId, Plate, Text, Timestamp, VehicleId, tag_number, tag_serial, words},
};
use serde::{Deserialize, Serialize};

words! {
    /// The states of a vehicle (spec, Vehicle status).
    pub enum VehicleStatus {
        /// The vehicle can be rented.
        Available = "available",
        /// A customer has the vehicle.
        Rented = "rented",
        /// The vehicle is in the workshop.
        Maintenance = "maintenance",
        /// The vehicle is out of service for another reason.
        Unavailable = "unavailable",
    }
}

impl VehicleStatus {
    /// Whether the vehicle is a part of the fleet: one that is out of service can have its plate still.
    pub(crate) fn is_in_service(self) -> bool {
        self != Self::Unavailable
    }
}

/// The look-up of vehicles by the serial of their transponder.
const TAG: LookUpSpec = look_up(128, "transponder");
/// The look-up of vehicles by the number of their plate, in all states.
const PLATE: LookUpSpec = look_up(129, "plate");

/// The description of a vehicle.
pub static SPEC: ResourceSpec = ResourceSpec {
    object: "vehicle",
    plural: "vehicles",
    tag: 1,
    doc: "A car, van or motorcycle of the fleet.",
    fields: &[
        id("\"0190d0f2-7c3a-7cc0-8000-000000000001\""),
        object("\"vehicle\""),
        field("name", Kind::Name(255), "Display name.", "\"White Tesla\"").required(),
        field("make", Kind::Text(255), "Manufacturer.", "\"Tesla\"").optional(),
        field("model", Kind::Text(255), "Model.", "\"Model 3\"").optional(),
        field("year", Kind::Integer(1900, 2100), "Model year.", "2023").optional(),
        field("color", Kind::Text(255), "Exterior color.", "\"White\"").optional(),
        field("plate", Kind::Text(255), "License plate.", "\"ABC1234\"").optional(),
        field("plate_state", Kind::Text(255), "State that issued the plate.", "\"NY\"").optional(),
        field("transponder_number", Kind::Text(255), "Toll transponder tag number.", "\"00412345678\"").optional(),
        field(
            "turo_listing_id",
            Kind::Text(255),
            "Listing id on an external marketplace, for channel sync.",
            "\"1234567\"",
        )
        .optional(),
        field("daily_rate", Kind::Money, "Daily rental rate, in `currency`.", "89.5").optional(),
        field("deposit_amount", Kind::Money, "Security deposit, in `currency`.", "250").optional(),
        CURRENCY,
        field("status", Kind::Word(VehicleStatus::WORDS), "Whether it can be rented out.", "\"available\"")
            .starts_as("\"available\""),
        field("organization_id", Kind::Id, "Owning organization.", "\"0190d0f2-7c3a-7cc0-8000-000000000000\""),
        CREATED_AT,
        UPDATED_AT,
    ],
    filters: &[filter("status", "status"), filter_by("plate", plates_like)],
    ranges: BY_UPDATE,
    indexes: &[ordered_index(16, "updated_at"), index(20, &["status"])],
    look_ups: &[TAG, PLATE],
    usual_changes: &["daily_rate", "status"],
};

fields! {
    /// A vehicle of a fleet (spec, Vehicle).
    #[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
    #[expect(missing_docs, reason = "each field is documented in SPEC, once")]
    pub struct Vehicle {
        pub id: VehicleId,
        pub object: String,
        pub name: Name,
        pub make: Option<Text>,
        pub model: Option<Text>,
        pub year: Option<i64>,
        pub color: Option<Text>,
        pub plate: Option<Text>,
        pub plate_state: Option<Text>,
        pub transponder_number: Option<Text>,
        pub turo_listing_id: Option<Text>,
        pub daily_rate: Option<Money>,
        pub deposit_amount: Option<Money>,
        pub currency: Currency,
        pub status: VehicleStatus,
        pub organization_id: OrganizationId,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
    }
}

/// The look-up prefix of vehicles whose transponder has the same serial as this number.
#[must_use]
pub(crate) fn tag_look_up(number: &str) -> IndexPrefix {
    TAG.of(&[tag_serial(number).as_bytes()])
}

/// The look-up prefix of vehicles with a plate of the same number as this text, in all states. `None` without letter or digit.
fn plates_like(text: &str) -> Option<IndexPrefix> {
    Plate::parse(text, None).map(|plate| plate_look_up(&plate))
}

/// The look-up prefix of vehicles with a plate of this number, in all states.
#[must_use]
pub(crate) fn plate_look_up(plate: &Plate) -> IndexPrefix {
    PLATE.of(&[plate.number.as_bytes()])
}

/// The prefixes of a transponder and of a plate with its state in these look-ups. Numbers that no statement can name have none.
pub(crate) fn name_look_ups([tag, plate, state]: [Option<&str>; 3]) -> impl Iterator<Item = IndexPrefix> {
    let tag = tag.and_then(tag_number).map(|number| tag_look_up(&number));
    let plate = plate.and_then(|plate| Plate::parse(plate, state)).map(|plate| plate_look_up(&plate));
    tag.into_iter().chain(plate)
}

/// What tells which transponder and plate a vehicle has, and its status. Reading it alone takes a part of the time of the whole vehicle.
#[derive(Deserialize)]
pub(crate) struct NamedVehicle {
    pub(crate) id: VehicleId,
    plate: Option<Text>,
    plate_state: Option<Text>,
    transponder_number: Option<Text>,
    pub(crate) status: VehicleStatus,
}

impl NamedVehicle {
    /// Reads the record of a vehicle.
    ///
    /// # Errors
    /// [`Error::Damaged`]: the record does not parse.
    pub(crate) fn read(record: &Record) -> Result<Self, Error> {
        crate::value::read_json(&record.value).map_err(|error| Error::damaged(&record.key, &error))
    }

    /// The transponder, the plate and the state of the plate.
    pub(crate) fn names(&self) -> Names {
        [&self.transponder_number, &self.plate, &self.plate_state].map(|name| name.as_deref().map(str::to_owned))
    }
}

impl Vehicle {
    /// The transponder, the plate and the state of the plate.
    pub(crate) fn names(&self) -> Names {
        [&self.transponder_number, &self.plate, &self.plate_state].map(|name| name.as_deref().map(str::to_owned))
    }
}

impl Resource for Vehicle {
    const SPEC: &'static ResourceSpec = &SPEC;

    /// The look-ups by transponder and by plate, both in canonical form.
    fn effects(&self) -> Effects {
        let names = self.names();
        let entries = name_look_ups(names.each_ref().map(Option::as_deref)).collect();
        let is_named = names.iter().any(Option::is_some);
        let grounds = is_named.then_some(Grounds { vehicle: self.id, from: 0, facts: Facts::Names(names) });
        Effects { entries, grounds, ..Effects::default() }
    }

    /// Who else has a number that it gets, or that it has when it comes into service.
    fn asks(&self, before: Option<&Self>) -> Vec<Ask> {
        let before = before.filter(|before| before.status.is_in_service()).map(Self::names).unwrap_or_default();
        let mut names = self.names();
        if before[0] == names[0] {
            names[0] = None;
        }
        if before[1..] == names[1..] {
            names[1] = None;
        }
        let is_asked = self.status.is_in_service() && names[..2].iter().any(Option::is_some);
        is_asked.then_some(Ask::Vehicles(names)).into_iter().collect()
    }
}

impl Portable for Vehicle {
    fn adopt(&mut self, organization: OrganizationId) {
        self.organization_id = organization;
    }
}

impl Create for Vehicle {
    fn create(&mut self, context: &RuleContext<'_>) -> Result<Vec<EventType>, Error> {
        self.organization_id = context.organization.id;
        Ok(vec![EventType::VehicleCreated])
    }
}

impl Update for Vehicle {
    fn events(&self, _: &Self, changed: bool, _: &Fields) -> Vec<EventType> {
        if changed { vec![EventType::VehicleUpdated] } else { Vec::new() }
    }
}
