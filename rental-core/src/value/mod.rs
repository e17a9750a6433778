//! Value types: money, dates, times, texts, plates. Constructors check each value, so every value that exists is valid.
//!
//! Source of every rule: `docs/decisions.md`, "Identity and values". Nothing here knows a resource.

mod compared;
mod date;
mod decimal;
mod earlier_vehicle;
mod field;
mod fields;
mod holder;
mod id;
mod json;
pub mod kinds;
pub(crate) mod members;
mod money;
mod percent;
mod plate;
mod sealed;
mod state;
mod text;
mod timestamp;
pub mod url;
mod when;
mod words;
mod written;
mod zone;

pub(crate) use compared::loose;
pub use compared::{folded, nfc};
pub use date::Date;
pub use decimal::{Decimal, DecimalError};
pub use earlier_vehicle::EarlierVehicle;
pub(crate) use earlier_vehicle::Period;
pub use field::{FieldValue, FromField, IndexValue};
pub use fields::{FromFields, Next};
pub(crate) use fields::{objects, read};
pub use holder::Holder;
pub use id::{Id, IdType, id};
pub use json::read_json;
pub use kinds::{
    ApiKeyId, AssignmentsId, AuditEntryId, BlockId, CalendarFeedId, CreditNoteId, CustomerId, DeliveryId, EndpointId,
    EventId, InvoiceId, LeadId, OperatorId, OrganizationId, RentalId, ServerId, TaskId, TollId, VehicleId, ViolationId,
};
pub use members::Members;
pub use money::{Currency, Money, SignedMoney};
pub use percent::Percent;
pub use plate::Plate;
pub(crate) use plate::{same_tag, tag_and_no_plate, tag_digits, tag_number, tag_serial};
pub use sealed::{Fingerprint, SealedSecret};
pub use text::{Email, Language, MOST_LINES, Name, Phone, Text};
pub use timestamp::Timestamp;
pub use when::When;
pub(crate) use words::words;
pub(crate) use zone::seconds_ahead;
pub use zone::{Instants, LocalTime, Zone};
