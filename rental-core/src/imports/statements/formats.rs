//! The known formats of statements, as data. `docs/imports.md` has the source of each.

use super::{
    field::Field,
    mapping::{Charges, Mapping, Source, Take},
    time::Dates,
};
use crate::{
    resources::{toll, violation},
    schema::ResourceSpec,
    value::{Name, Zone},
};

/// A kind of file: statements with tolls, or lists of violations. It contains the differences between the two, except how
/// their rows are parsed.
#[derive(Debug)]
pub struct Kind {
    /// The resource of the rows' objects.
    pub resource: &'static ResourceSpec,
    /// The name of such a file in messages.
    pub file: &'static str,
    /// Names and descriptions of the formats. The first is the default.
    pub formats: &'static [(&'static str, &'static str)],
    /// Whether a file may be JSON instead of CSV.
    pub json: bool,
    /// Whether one authority numbered all rows of a file: the issuer of violations.
    pub has_issuer: bool,
    /// A CSV file in the default format, with one row.
    pub example: &'static str,
    pub(super) layouts: &'static [Format],
    pub(super) other_files: &'static [OtherFile],
    /// The advice in the error for a file of no known format.
    pub(super) advice: &'static str,
}

/// The issuer of violations when an import does not name one.
pub const DEFAULT_ISSUER: &str = "NYC";

/// A format: its columns, time zone, order of dates, and the meaning of an amount's sign.
#[derive(Debug)]
pub(super) struct Format {
    pub(super) name: &'static str,
    about: &'static str,
    /// The agency of every row, when no column contains it.
    agency: Option<&'static str>,
    zone: Option<Zone>,
    /// For each field the names of its columns. A file needs at least one of them.
    pub(super) columns: &'static [(Field, &'static [&'static str])],
    /// Fields that need a column; `None` means all of them.
    pub(super) required: Option<&'static [Field]>,
    /// Other fields of which at least one needs a column.
    pub(super) one_of: &'static [Field],
    /// Whether the names of a field are spellings of one column. Otherwise they are several columns, tried in this order.
    pub(super) spellings: bool,
    /// A column that only this format has.
    pub(super) mark: Option<&'static str>,
    dates: Option<Dates>,
    charges: Charges,
    /// A column that makes charges positive.
    positive_with: Option<&'static str>,
    /// Whether this is the product's own format. Then an unknown column is an error of the file, a first row with another
    /// number of fields is an error of this row only, and a row needs an agency but no time.
    pub(super) strict: bool,
    /// The mapping file that describes the format, in place of all that is above but the name.
    json: Option<&'static str>,
}

/// A file that users often confuse with one of this kind. It is recognized by a column and by missing columns.
#[derive(Debug)]
pub(super) struct OtherFile {
    pub(super) column: &'static str,
    pub(super) lacks: &'static [&'static str],
    pub(super) hint: &'static str,
}

/// Statements of toll agencies.
pub const TOLLS: Kind = Kind {
    resource: &toll::SPEC,
    file: "a statement of a toll agency",
    formats: &names(&TOLL_FORMATS),
    json: false,
    has_issuer: false,
    example: "transaction_id,occurred_at,agency,plaza,plate,plate_state,transponder_number,amount\n61231234567,2026-06-02T10:03:00-04:00,MTAB&T,RKB,ABC1234,NY,,6.94\n",
    layouts: &TOLL_FORMATS,
    other_files: &[
        OtherFile { column: "summons_number", lacks: &[], hint: A_LIST_OF_VIOLATIONS },
        OtherFile { column: "SUMMONS", lacks: &[], hint: A_LIST_OF_VIOLATIONS },
    ],
    advice: ADVICE,
};

const ADVICE: &str = "choose another --format, or describe the file in a mapping file and give --mapping";
const A_LIST_OF_VIOLATIONS: &str = "this looks like a list of violations (nyc-open-data); import it as violations";

/// Lists of violations.
pub const VIOLATIONS: Kind = Kind {
    resource: &violation::SPEC,
    file: "a list of violations",
    formats: &names(&VIOLATION_FORMATS),
    json: true,
    has_issuer: true,
    example: "plate,state,summons_number,issue_date,violation_time,violation,amount_due\nABC1234,NY,4631234567,06/02/2026,02:03P,PHTO SCHOOL ZN SPEED VIOLATION,50\n",
    layouts: &VIOLATION_FORMATS,
    other_files: &[OtherFile {
        column: "registration_state",
        // Without an amount a violation would get 0, which means paid and would replace the known amount.
        lacks: &["amount_due", "fine_amount"],
        hint: "this looks like a list of a fiscal year, which has no amounts; download Open Parking and Camera \
               Violations for the same plates",
    }],
    advice: ADVICE,
};

/// Every kind of file.
pub const KINDS: [&Kind; 2] = [&TOLLS, &VIOLATIONS];

impl Kind {
    /// The mapping file that describes the format with this name, if one does.
    #[must_use]
    pub fn described(&self, name: &str) -> Option<Mapping> {
        let json = self.layouts.iter().find(|format| format.name == name)?.json?;
        Mapping::parse(json, self.has_issuer).ok()
    }

    /// The kind of file whose rows become objects of a resource, if there is one.
    #[must_use]
    pub fn of(resource: &ResourceSpec) -> Option<&'static Self> {
        KINDS.into_iter().find(|kind| kind.resource.tag == resource.tag)
    }
}

const fn names<const N: usize>(formats: &[Format; N]) -> [(&'static str, &'static str); N] {
    let (mut names, mut at) = ([("", ""); N], 0);
    while at < N {
        names[at] = (formats[at].name, formats[at].about);
        at += 1;
    }
    names
}

const TOLL_FORMATS: [Format; 9] =
    [GENERIC, EZPASS_NY, EZPASS_NY_FLEET, EZPASS_NJ, EZPASS_PA, SUNPASS, HCTRA, TOLL_COLLECT, CITYLINK];

const HCTRA: Format = Format {
    name: "hctra",
    about: "Houston's toll roads (Trans ID, Transaction Date, Plate or Tag, Amount), also below lines about the account",
    json: Some(include_str!("formats/hctra.json")),
    ..MAPPED
};

const TOLL_COLLECT: Format = Format {
    name: "toll-collect",
    about: "Toll Collect, Germany (Kfz, Datum, Start, Buchungsnummer, Strecke, EUR); each part of a trip is a toll",
    json: Some(include_str!("formats/toll-collect.json")),
    ..MAPPED
};

const CITYLINK: Format = Format {
    name: "citylink",
    about: "CityLink and EastLink, Melbourne (LPN, Start Date, Start Time, Toll Road, Amount), in sections",
    json: Some(include_str!("formats/citylink.json")),
    ..MAPPED
};

/// A format that a mapping file describes.
const MAPPED: Format = Format { strict: false, columns: &[], required: None, one_of: &[], ..GENERIC };

const GENERIC: Format = Format {
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
    required: Some(&[Field::Agency, Field::Amount]),
    one_of: &[Field::Transponder, Field::Plate],
    spellings: false,
    mark: None,
    dates: None,
    charges: Charges::Positive,
    positive_with: None,
    strict: true,
    json: None,
};

/// The format that the E-ZPass agencies of the north-east share.
const EZPASS: Format = Format {
    zone: Some(Zone::NEW_YORK),
    columns: &[],
    required: None,
    one_of: &[],
    dates: Some(Dates::MDY),
    charges: Charges::Negative,
    strict: false,
    ..GENERIC
};

const EZPASS_NY: Format = Format {
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

const EZPASS_NY_FLEET: Format = Format {
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

const EZPASS_NJ: Format = Format {
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
    positive_with: Some("PLAZA ID"),
    ..EZPASS
};

const EZPASS_PA: Format = Format {
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

const SUNPASS: Format = Format {
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

/// Words in the columns of [`Field::Kind`] that mark payments and fees, which are no tolls.
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

const VIOLATION_FORMATS: [Format; 5] = [NYC_OPEN_DATA, NYC_FLEET, CHICAGO, SAN_FRANCISCO, ANTAI];

const CHICAGO: Format = Format {
    name: "chicago",
    about: "parking tickets of Chicago (ticket_number, issue_date, license_plate_number, ..., current_amount_due)",
    json: Some(include_str!("formats/chicago.json")),
    ..MAPPED
};

const SAN_FRANCISCO: Format = Format {
    name: "san-francisco",
    about: "San Francisco's parking citations (Citation Number, Citation Issued DateTime, Vehicle Plate, Fine Amount), as CSV or JSON",
    json: Some(include_str!("formats/san-francisco.json")),
    ..MAPPED
};

const ANTAI: Format = Format {
    name: "antai",
    about: "a French list of fines (summons_number, issue_date, plate, fine_amount, or their French names), day first",
    json: Some(include_str!("formats/antai.json")),
    ..MAPPED
};

const NYC_OPEN_DATA: Format = Format {
    name: "nyc-open-data",
    about: "New York's Open Parking and Camera Violations, as CSV or JSON; also with the names of the \
            fiscal-year lists",
    columns: &[
        (Field::SummonsNumber, &["summons_number"]),
        (Field::Plate, &["plate", "plate_id"]),
        (Field::AmountDue, &["amount_due"]),
        (Field::PlateState, &["state", "registration_state"]),
        (Field::Date, &["issue_date"]),
        (Field::Time, &["violation_time"]),
        (Field::Violation, &["violation", "violation_description", "violation_code"]),
        (Field::Fine, &["fine_amount"]),
        (Field::Penalty, &["penalty_amount"]),
        (Field::Interest, &["interest_amount"]),
        (Field::Reduction, &["reduction_amount"]),
        (Field::Payment, &["payment_amount"]),
        (Field::Agency, &["issuing_agency"]),
        (Field::Status, &["violation_status", "status"]),
        (Field::PlateType, &["license_type", "plate_type"]),
        (Field::RespondBy, &["respond_by", "response_due_date", "due_date"]),
    ],
    required: Some(&[Field::SummonsNumber, Field::Plate]),
    one_of: &[Field::AmountDue, Field::Fine],
    spellings: true,
    charges: Charges::Positive,
    ..EZPASS
};

const NYC_FLEET: Format = Format {
    name: "nyc-fleet",
    about: "the file of New York's fleet and rental programs (PLATE, STATE, TYPE, TERMINATED, SUMMONS, ...)",
    columns: &[
        (Field::SummonsNumber, &["SUMMONS"]),
        (Field::Plate, &["PLATE"]),
        (Field::AmountDue, &["AMOUNT DUE"]),
        (Field::PlateState, &["STATE"]),
        (Field::Date, &["ISSUE DATE"]),
        (Field::Time, &["ISSUE TIME"]),
        (Field::Violation, &["VC"]),
        (Field::Fine, &["FINE"]),
        (Field::Penalty, &["PENALTY"]),
        (Field::Interest, &["INTEREST"]),
        (Field::Reduction, &["REDUCTION"]),
        (Field::Payment, &["PAYMENT"]),
        (Field::PlateType, &["TYPE"]),
        (Field::Status, &["STATUS"]),
        (Field::RespondBy, &["RESPOND BY", "DUE DATE"]),
    ],
    ..NYC_OPEN_DATA
};

impl Format {
    /// The names of a field's columns.
    pub(super) fn names(&self, field: Field) -> &'static [&'static str] {
        self.columns.iter().find(|(known, _)| *known == field).map_or(&[], |(_, names)| *names)
    }

    /// Whether a mapping file describes the format.
    pub(super) fn is_mapped(&self) -> bool {
        self.json.is_some()
    }

    /// Whether the format is of New York.
    pub(super) fn is_new_york(&self) -> bool {
        self.zone == Some(Zone::NEW_YORK)
    }

    /// The format as a mapping. `has` returns whether the file has a column.
    ///
    /// # Errors
    /// The mapping file of the format is wrong, which a test excludes.
    pub(super) fn mapping(&self, kind: &Kind, has: impl Fn(&str) -> bool) -> Result<Mapping, String> {
        if let Some(json) = self.json {
            return Mapping::parse(json, kind.has_issuer);
        }
        let source = |field: &Field, names: &[&str]| Source {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            take: Take::First,
            is_optional: self.required.is_some_and(|required| !required.contains(field)),
        };
        let positive_with = self.positive_with.map(|column| (column, has(column)));
        Ok(Mapping {
            agency: self.agency.map(Name::constant),
            zone: self.zone,
            columns: self.columns.iter().map(|(field, names)| (*field, source(field, names))).collect(),
            dates: self.dates,
            charges: if positive_with.is_some_and(|(_, has)| has) { Charges::Positive } else { self.charges },
            positive_with,
            skip: None,
            encoding: None,
            skip_lines: 0,
            replaces: true,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mapping_files_of_the_formats_are_right_and_short() {
        for kind in KINDS {
            for format in kind.layouts.iter().filter(|format| format.json.is_some()) {
                let json = format.json.unwrap_or_default();
                assert!(json.lines().count() <= 10, "{}", format.name);
                assert_eq!(Mapping::parse(json, kind.has_issuer).map(|_| ()), Ok(()), "{}", format.name);
            }
        }
    }
}
