//! Audit entries: what operators changed or took in bulk, who it was, and from where. The entry of a change is written in
//! its transaction. Entries are never changed, and removed only when their retention ends.

use crate::{
    resources::{Object, Resource, operator::ROOT},
    schema::{CREATED_AT, IndexPrefix, IndexSpec, IndexValue, Kind, ResourceSpec, field, filter, id, index, object},
    value::{AuditEntryId, Name, OperatorId, OrganizationId, Timestamp, kinds},
};
use serde::{Deserialize, Serialize, de::IgnoredAny};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use uuid::Uuid;

/// Most bytes of a request's body that an entry contains. For a longer body it contains only the length.
pub(crate) const MOST_DETAILS: usize = 4096;

/// The index of entries by organization and action.
const OF_ACTION: IndexSpec = index(3, &["organization_id", "action"]);
/// The index of entries by organization.
const OF_ORGANIZATION: IndexSpec = index(1, &["organization_id"]);

/// The description of an audit entry.
pub static SPEC: ResourceSpec = ResourceSpec {
    object: "audit_entry",
    plural: "audit_entries",
    tag: 13,
    doc: "An action of an operator that changed something or took data in bulk. Entries are added and never changed.",
    fields: &[
        id("\"0190d0f2-7c3a-7cc0-8000-00000000000d\""),
        object("\"audit_entry\""),
        field("action", Kind::Text(255), "The operation, as this document names it.", "\"revokeApiKey\""),
        field(
            "actor",
            Kind::Text(255),
            "Name of the operator who did it; `root` for the admin token, `null` in entries of before there were operators and in those that the server adds by itself.",
            "\"Ada Lovelace\"",
        )
        .or_null(),
        field(
            "actor_id",
            Kind::Id,
            "Id of the operator; `null` for the admin token.",
            "\"0190d0f2-7c3a-7cc0-8000-000000000014\"",
        )
        .or_null(),
        field(
            "address",
            Kind::Text(255),
            "IP address from which the request came; `null` in entries of before it was recorded.",
            "\"203.0.113.7\"",
        )
        .or_null(),
        field(
            "organization_id",
            Kind::Id,
            "Whose objects it was about, if one organization's.",
            "\"0190d0f2-7c3a-7cc0-8000-000000000000\"",
        )
        .or_null(),
        field("resource_id", Kind::Id, "The object that it changed.", "\"0190d0f2-7c3a-7cc0-8000-000000000008\"")
            .or_null(),
        field(
            "path",
            Kind::Text(1000),
            "The path of the request.",
            "\"/admin/v1/api_keys/0190d0f2-7c3a-7cc0-8000-000000000008/revoke\"",
        ),
        field("details", Kind::Json(MOST_DETAILS), "The body of the request, or what came of it. Of objects of an organization only the names of the fields.", "{}"),
        field("request_id", Kind::Text(255), "The `Request-Id` of the answer.", "\"req_01HX3V9K\""),
        CREATED_AT,
    ],
    filters: &[filter("organization", "organization_id"), filter("action", "action"), filter("actor", "actor")],
    ranges: &[],
    indexes: &[
        OF_ORGANIZATION,
        index(2, &["action"]),
        OF_ACTION,
        index(4, &["actor"]),
    ],
    look_ups: &[],
    usual_changes: &[],
};

/// The prefix of the index entries of an action about an organization, under
/// [`SYSTEM`](super::organization::SYSTEM).
#[must_use]
pub fn of_action(organization: OrganizationId, action: &str) -> IndexPrefix {
    IndexPrefix::new(OF_ACTION.number).with(organization.as_bytes()).with(action.as_bytes())
}

/// The prefix of the index entries of the audit entries about an organization.
#[must_use]
pub fn of_organization(organization: OrganizationId) -> IndexPrefix {
    IndexPrefix::new(OF_ORGANIZATION.number).with(organization.as_bytes())
}

/// Who calls as an operator.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Actor {
    /// The holder of the server's admin token.
    Root,
    /// A named operator.
    Operator {
        /// The id of its record.
        id: OperatorId,
        /// Its name.
        name: Name,
    },
}

impl Actor {
    /// The name in audit entries and in the log.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Root => ROOT,
            Self::Operator { name, .. } => name,
        }
    }

    /// The id of the operator; `None` for the holder of the admin token.
    #[must_use]
    pub fn id(&self) -> Option<OperatorId> {
        match self {
            Self::Root => None,
            Self::Operator { id, .. } => Some(*id),
        }
    }
}

/// One action of an operator: who did what, when, and from where.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[expect(missing_docs, reason = "each field is documented in SPEC, once")]
pub struct AuditEntry {
    pub id: AuditEntryId,
    pub object: String,
    pub action: String,
    pub actor: Option<String>,
    pub actor_id: Option<OperatorId>,
    pub address: Option<String>,
    pub organization_id: Option<OrganizationId>,
    pub resource_id: Option<Uuid>,
    pub path: String,
    pub details: Box<RawValue>,
    pub request_id: String,
    pub created_at: Timestamp,
}

impl Resource for AuditEntry {
    const SPEC: &'static ResourceSpec = &SPEC;
}

impl Object for AuditEntry {
    type Kind = kinds::AuditEntry;

    fn id(&self) -> AuditEntryId {
        self.id
    }

    fn index_value(&self, field: &str) -> Option<IndexValue<'_>> {
        match field {
            "organization_id" => self.organization_id.map(|id| IndexValue::Id(id.uuid())),
            "action" => Some(IndexValue::Text(&self.action)),
            "actor" => self.actor.as_deref().map(IndexValue::Text),
            _ => None,
        }
    }

    fn touch(&mut self, _: Timestamp) {}
}

impl AuditEntry {
    /// The details of an entry about an object of an organization: the names of the fields in the body. Their values may be
    /// personal data, which would stay here after the object is erased.
    #[must_use]
    pub fn field_names(body: &[u8]) -> Box<RawValue> {
        let fields: Option<BTreeMap<String, IgnoredAny>> = serde_json::from_slice(body).ok();
        let Some(fields) = fields else { return Self::details(body) };
        let names: Vec<&String> = fields.keys().collect();
        Self::details(serde_json::json!({"fields": names}).to_string().as_bytes())
    }

    /// The details of an entry for a request with this body: the body, if it is a JSON object of at most 4,096 bytes.
    #[must_use]
    pub fn details(body: &[u8]) -> Box<RawValue> {
        let text = std::str::from_utf8(body).unwrap_or_default().trim();
        let plain = text.starts_with('{') && text.len() <= MOST_DETAILS;
        let kept = if plain { RawValue::from_string(text.to_owned()).ok() } else { None };
        let length = || RawValue::from_string(format!("{{\"body_bytes\":{}}}", body.len())).unwrap_or_default();
        match kept {
            Some(kept) => kept,
            None if body.is_empty() => RawValue::from_string("{}".to_owned()).unwrap_or_default(),
            None => length(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_objects_of_an_organization_only_the_names_of_fields_are_kept() {
        let found = AuditEntry::field_names(br#"{"plate":"ABC123","lines":[{"description":"Ada Lovelace"}]}"#);
        assert_eq!(found.get(), r#"{"fields":["lines","plate"]}"#);
        assert_eq!(AuditEntry::field_names(b"").get(), "{}");
        assert_eq!(AuditEntry::field_names(b"{broken").get(), "{\"body_bytes\":7}");
    }

    #[test]
    fn details_are_an_object_whatever_the_body_is() {
        for (body, expected) in [
            (&b""[..], "{}"),
            (b" {\"plan\":\"free\"} ", "{\"plan\":\"free\"}"),
            (b"[1]", "{\"body_bytes\":3}"),
            (b"{broken", "{\"body_bytes\":7}"),
            (b"{\"a\":1}x", "{\"body_bytes\":8}"),
            (b"\xff", "{\"body_bytes\":1}"),
        ] {
            assert_eq!(AuditEntry::details(body).get(), expected);
        }
        let long = format!("{{\"name\":\"{}\"}}", "x".repeat(MOST_DETAILS));
        assert_eq!(AuditEntry::details(long.as_bytes()).get(), format!("{{\"body_bytes\":{}}}", long.len()));
    }
}
