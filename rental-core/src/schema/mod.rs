//! What a resource is, as plain data: one description that everything else reads.
//!
//! A [`ResourceSpec`] feeds the checks of bodies and queries, the indexes behind filters, the OpenAPI document and the
//! flags and columns of the command line. The struct of a resource stays hand-written; a test fails when the two drift.

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
mod resource_spec;
mod sent;
mod shared_fields;

pub use api_version::API_VERSION;
pub use attribution::{ATTRIBUTION, Attribution, RENTAL_ID};
pub use description::describe;
pub use effects::{Charge, Effects};
pub use field_spec::{FieldSpec, Presence, field};
pub use filter_spec::{BY_UPDATE, FilterSpec, filter};
pub use hold::Hold;
pub use index::{IndexPrefix, IndexSpec, IndexValue, LookUpSpec, index, look_up, ordered_index};
pub use kind::Kind;
pub use resource_spec::ResourceSpec;
pub use sent::Fields;
pub use shared_fields::{CREATED_AT, CURRENCY, UPDATED_AT, id, object};
