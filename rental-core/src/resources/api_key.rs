//! API keys. The operator issues, rotates and revokes them. The key itself is never stored.

use crate::{
    error::{Error, FieldCode},
    resources::{Create, Resource, RuleContext, event::EventType, fields},
    schema::{CREATED_AT, IndexPrefix, IndexSpec, Kind, ResourceSpec, UPDATED_AT, field, filter, id, index, object},
    value::{ApiKeyId, OrganizationId, Text, Timestamp, words},
};
use serde::{Deserialize, Serialize};

/// The index of keys by organization.
const OF_ORGANIZATION: IndexSpec = index(1, &["organization_id"]);

/// The description of an API key.
pub static SPEC: ResourceSpec = ResourceSpec {
    object: "api_key",
    plural: "api_keys",
    tag: 9,
    doc: "A key of an organization. The key itself is shown once, when it is created or rotated.",
    fields: &[
        id("\"0190d0f2-7c3a-7cc0-8000-000000000008\""),
        object("\"api_key\""),
        field(
            "organization_id",
            Kind::Reference("organization"),
            "The organization that it opens.",
            "\"0190d0f2-7c3a-7cc0-8000-000000000000\"",
        )
        .required()
        .fixed(),
        field("name", Kind::Text(255), "What it is for.", "\"Website\"").optional().fixed(),
        field(
            "scope",
            Kind::Word(Scope::WORDS),
            "`read` allows GET; `read_write` allows GET, POST and PATCH.",
            "\"read_write\"",
        )
        .required()
        .fixed(),
        field("hint", Kind::Text(255), "The beginning and end of the key, to tell keys apart.", "\"rk_live_…Ab3d\""),
        field("expires_at", Kind::Time, "When it stops working.", "\"2099-05-05T09:30:00.000Z\"").optional().fixed(),
        field("revoked_at", Kind::Time, "When it was revoked.", "null").or_null(),
        field("last_used_at", Kind::Time, "When it was last used, to the minute.", "\"2026-05-05T09:30:00.000Z\"")
            .or_null(),
        CREATED_AT,
        UPDATED_AT,
    ],
    filters: &[filter("organization", "organization_id")],
    ranges: &[],
    indexes: &[OF_ORGANIZATION],
    look_ups: &[],
    usual_changes: &[],
};

words! {
    /// The scope of a key: the requests that it allows (spec, Authentication 2).
    pub enum Scope {
        /// Allows GET requests only.
        Read = "read",
        /// Allows GET, POST and PATCH requests.
        ReadWrite = "read_write",
    }
}

fields! {
    /// The record of an API key, without the key itself.
    #[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
    #[expect(missing_docs, reason = "each field is documented in SPEC, once")]
    pub struct ApiKey {
        pub id: ApiKeyId,
        pub object: String,
        pub organization_id: OrganizationId,
        pub name: Option<Text>,
        pub scope: Scope,
        pub hint: Option<Text>,
        pub expires_at: Option<Timestamp>,
        pub revoked_at: Option<Timestamp>,
        pub last_used_at: Option<Timestamp>,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
    }
}

/// The prefix of the index entries of an organization's keys, under [`SYSTEM`](super::organization::SYSTEM).
#[must_use]
pub fn of_organization(organization: OrganizationId) -> IndexPrefix {
    IndexPrefix::new(OF_ORGANIZATION.number).with(organization.as_bytes())
}

impl Resource for ApiKey {
    const SPEC: &'static ResourceSpec = &SPEC;
}

impl Create for ApiKey {
    fn create(&mut self, context: &RuleContext<'_>) -> Result<Vec<EventType>, Error> {
        if self.expires_at.is_some_and(|expiry| expiry <= context.now) {
            return Err(Error::field("expires_at", FieldCode::Invalid, "must be in the future"));
        }
        Ok(Vec::new())
    }
}
