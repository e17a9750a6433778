//! The formats that are known by name, as data. Sources of each: `docs/imports.md`.

use super::{
    layout::Field,
    mapping::{Charges, Mapping},
    time::Order,
};
use crate::value::Zone;

/// A toll agency's format: which columns have what, in which zone and order, and what the sign means.
pub(super) struct Profile {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    /// Where no column tells the agency.
    pub(super) agency: Option<&'static str>,
    pub(super) zone: Option<Zone>,
    /// For each field the columns to look in: the first that is filled. One of them must be in the header.
    pub(super) columns: &'static [(Field, &'static [&'static str])],
    /// Fields whose columns may all be absent.
    pub(super) optional: &'static [Field],
    /// A column that only this format has.
    pub(super) mark: Option<&'static str>,
    pub(super) order: Option<Order>,
    pub(super) charges: Charges,
    /// Our own format: other columns are mistakes, one odd row is only that, and a row without agency is a mistake too.
    pub(super) own: bool,
}

/// Names and descriptions of the toll formats; the first is the default.
pub const TOLL_FORMATS: &[(&str, &str)] = &[
    (GENERIC.name, GENERIC.about),
    (EZPASS_NY.name, EZPASS_NY.about),
    (EZPASS_NY_FLEET.name, EZPASS_NY_FLEET.about),
    (EZPASS_NJ.name, EZPASS_NJ.about),
    (EZPASS_PA.name, EZPASS_PA.about),
    (SUNPASS.name, SUNPASS.about),
];

/// Of two with one name the first whose columns are there is taken.
pub(super) const TOLL_PROFILES: &[&Profile] =
    &[&GENERIC, &EZPASS_NY, &EZPASS_NY_FLEET, &EZPASS_NJ_PLAZA_ID, &EZPASS_NJ, &EZPASS_PA, &SUNPASS];

pub(super) const GENERIC: Profile = Profile {
    name: "generic",
    about: "CSV with the columns transaction_id, occurred_at (RFC 3339), agency, plaza, plate, plate_state, \
            transponder_number, amount, in any order",
    agency: None,
    zone: None,
    columns: &[
        (Field::TransactionId, &["transaction_id"]),
        (Field::OccurredAt, &["occurred_at"]),
        (Field::Agency, &["agency"]),
        (Field::Plaza, &["plaza"]),
        (Field::Plate, &["plate"]),
        (Field::PlateState, &["plate_state"]),
        (Field::Transponder, &["transponder_number"]),
        (Field::Amount, &["amount"]),
    ],
    optional: &[
        Field::TransactionId,
        Field::OccurredAt,
        Field::Plaza,
        Field::Plate,
        Field::PlateState,
        Field::Transponder,
    ],
    mark: None,
    order: None,
    charges: Charges::Positive,
    own: true,
};

/// What the agencies of the north-east have in common.
const EZPASS: Profile = Profile {
    name: "",
    about: "",
    agency: None,
    zone: Some(Zone::NEW_YORK),
    columns: &[],
    optional: &[],
    mark: None,
    order: Some(Order::MonthDayYear),
    charges: Charges::Negative,
    own: false,
};

const EZPASS_NY: Profile = Profile {
    name: "ezpass-ny",
    about: "E-ZPass New York, the transactions of an account (Lane Txn ID, Tag/Plate #, ..., Exit Time, Amount)",
    columns: &[
        (Field::TransactionId, &["Lane Txn ID"]),
        (Field::TagOrPlate, &["Tag/Plate #"]),
        (Field::Agency, &["Agency"]),
        (Field::Plaza, &["Exit Plaza", "Entry Plaza"]),
        (Field::Date, &["Date"]),
        (Field::Time, &["Exit Time"]),
        (Field::Amount, &["Amount"]),
        (Field::Kind, &["Agency", "Entry Plaza", "Exit Plaza", "Tag/Plate #"]),
    ],
    ..EZPASS
};

const EZPASS_NY_FLEET: Profile = Profile {
    name: "ezpass-ny-fleet",
    about: "E-ZPass New York, a fleet's account (with Posted Date and Post Txn Balance)",
    columns: &[
        (Field::TransactionId, &["Lane Txn ID"]),
        (Field::TagOrPlate, &["Tag/Plate #"]),
        (Field::Agency, &["Agency"]),
        (Field::Plaza, &["Exit Plaza", "Entry Plaza"]),
        (Field::Date, &["Date"]),
        (Field::Time, &["Time"]),
        (Field::Amount, &["Amount"]),
        (Field::Kind, &["Agency", "Entry Plaza", "Exit Plaza", "Tag/Plate #"]),
    ],
    mark: Some("Posted Date"),
    ..EZPASS
};

const EZPASS_NJ: Profile = Profile {
    name: "ezpass-nj",
    about: "E-ZPass New Jersey, and New York's older statements; with a PLAZA ID column charges are positive, \
            else negative",
    columns: &[
        (Field::TagOrPlate, &["TAG/PLATE NUMBER"]),
        (Field::Agency, &["AGENCY"]),
        (Field::Kind, &["ACTIVITY", "DESCRIPTION"]),
        (Field::Plaza, &["EXIT PLAZA", "ENTRY PLAZA"]),
        (Field::Date, &["TRANSACTION DATE"]),
        (Field::Time, &["EXIT TIME", "ENTRY TIME"]),
        (Field::Amount, &["AMOUNT"]),
    ],
    ..EZPASS
};

const EZPASS_NJ_PLAZA_ID: Profile = Profile { mark: Some("PLAZA ID"), charges: Charges::Positive, ..EZPASS_NJ };

const EZPASS_PA: Profile = Profile {
    name: "ezpass-pa",
    about: "Pennsylvania Turnpike (Transaction, Transponder, License State, ..., Exit Interchange, Amount)",
    agency: Some("PA Turnpike"),
    columns: &[
        (Field::TagOrPlate, &["Transponder"]),
        (Field::PlateState, &["License State"]),
        (Field::Kind, &["Transaction"]),
        (Field::OccurredAt, &["Exit Date", "Entry Date"]),
        (Field::Plaza, &["Exit Interchange", "Entry Interchange"]),
        (Field::Amount, &["Amount"]),
    ],
    charges: Charges::Positive,
    ..EZPASS
};

const SUNPASS: Profile = Profile {
    name: "sunpass",
    about: "SunPass, Florida (TRANSACTION NUMBER, TRANSPONDER/LICENSE PLATE, ..., DEBIT(-), CREDIT(+))",
    columns: &[
        (Field::TransactionId, &["TRANSACTION NUMBER"]),
        (Field::TagOrPlate, &["TRANSPONDER/LICENSE PLATE"]),
        (Field::Agency, &["AGENCY NAME"]),
        (Field::Plaza, &["DESCRIPTION / PLAZA NAME"]),
        (Field::Kind, &["DESCRIPTION / PLAZA NAME"]),
        (Field::Date, &["TRANSACTION DATE"]),
        (Field::Time, &["TRANSACTION TIME"]),
        (Field::Debit, &["DEBIT(-)"]),
        (Field::Credit, &["CREDIT(+)"]),
    ],
    ..EZPASS
};

/// Words that make a row something else than a toll, in the columns of [`Field::Kind`].
pub(super) const NOT_TOLLS: &[&str] = &[
    "payment",
    "replenish",
    "service fee",
    "monthly fee",
    "statement fee",
    "account fee",
    "tag fee",
    "lease tag",
    "tag lease",
    "tag deposit",
    "transponder purchase",
];

impl Profile {
    /// The same as a mapping, which is what files are read by.
    pub(super) fn mapping(&self) -> Mapping {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Mapping {
            agency: self.agency.map(str::to_owned),
            zone: self.zone,
            columns: self.columns.iter().map(|(field, names)| (*field, owned(names))).collect(),
            order: self.order,
            charges: self.charges,
            skip: None,
        }
    }
}

/// A list of violations: the columns of each field of [`super::violation`], under every name that they have.
pub(super) struct ViolationProfile {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) columns: &'static [&'static [&'static str]; super::violation::FIELDS],
}

/// Names and descriptions of the formats of violations; the first is the default.
pub const VIOLATION_FORMATS: &[(&str, &str)] = &[(NYC_OPEN.name, NYC_OPEN.about), (NYC_FLEET.name, NYC_FLEET.about)];

pub(super) const VIOLATION_PROFILES: &[&ViolationProfile] = &[&NYC_OPEN, &NYC_FLEET];

pub(super) const NYC_OPEN: ViolationProfile = ViolationProfile {
    name: "nyc-open-data",
    about: "New York's Open Parking and Camera Violations, as CSV or JSON; also with the names of the \
            fiscal-year lists",
    columns: &[
        &["summons_number"],
        &["amount_due"],
        &["plate", "plate_id"],
        &["state", "registration_state"],
        &["issue_date"],
        &["violation_time"],
        &["violation", "violation_description", "violation_code"],
        &["fine_amount"],
        &["penalty_amount"],
        &["interest_amount"],
        &["reduction_amount"],
        &["payment_amount"],
        &["issuing_agency"],
    ],
};

const NYC_FLEET: ViolationProfile = ViolationProfile {
    name: "nyc-fleet",
    about: "the file of New York's fleet and rental programs (PLATE, STATE, TYPE, TERMINATED, SUMMONS, ...)",
    columns: &[
        &["SUMMONS"],
        &["AMOUNT DUE"],
        &["PLATE"],
        &["STATE"],
        &["ISSUE DATE"],
        &["ISSUE TIME"],
        &["VC"],
        &["FINE"],
        &["PENALTY"],
        &["INTEREST"],
        &["REDUCTION"],
        &["PAYMENT"],
        &[],
    ],
};
