//! The descriptions of resources, as plain data.
//!
//! The checks of bodies and queries, the indexes, the OpenAPI document, and the flags and columns of the command line all
//! use the [`ResourceSpec`] of a resource. Its struct is written by hand; a test fails when the two differ.

mod api_version;
mod attribution;
mod description;
mod effects;
mod field_spec;
mod filter_spec;
mod hold;
mod index;
mod index_choice;
mod kind;
mod notice;
mod resource_spec;
mod sent;
mod shared_fields;

pub use crate::value::IndexValue;
pub use api_version::API_VERSION;
pub use attribution::Attribution;
pub(crate) use attribution::{ATTRIBUTION, ATTRIBUTION_REASON, RENTAL_ID, REVIEW_REASON, STATEMENT_ZONE};
pub use description::describe;
pub use effects::{Charge, Effects, Facts, Grounds, Names};
pub(crate) use field_spec::field;
pub use field_spec::{FieldSpec, Personal, Presence};
pub use filter_spec::FilterSpec;
pub(crate) use filter_spec::{BY_UPDATE, filter, filter_by};
pub use hold::Hold;
pub use index::{IndexPrefix, IndexSpec, LookUpSpec};
pub(crate) use index::{index, look_up, ordered_index, sparse_index};
pub use kind::Kind;
pub use notice::{Ask, NOTICE_HEADER, NOTICES, Notice, NoticeSpec};
pub(crate) use notice::{
    NIGHTS_HELD, NOT_AVAILABLE, SAME_BOOKING_ID, SAME_EMAIL, SAME_PLATE, SAME_TRANSPONDER, SECOND_ACTIVE,
};
pub use resource_spec::ResourceSpec;
pub use sent::Fields;
pub(crate) use shared_fields::{
    AMOUNT_BILLED, CREATED_AT, CURRENCY, INVOICE_IDS, MOST_INVOICES, UPDATED_AT, id, object,
};
