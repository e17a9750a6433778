//! Operators: the people and programs that run the service, each with a role and a token of its own. The token itself is
//! never stored.

use crate::{
    error::{Error, FieldCode},
    resources::{Create, Object, Resource, RuleContext, event::EventType, fields},
    schema::{CREATED_AT, Kind, ResourceSpec, UPDATED_AT, field, id, object},
    value::{Name, OperatorId, Text, Timestamp, words},
};
use serde::{Deserialize, Serialize};

/// How the audit log names the holder of the server's admin token. No operator can have this name.
pub const ROOT: &str = "root";

/// The description of an operator.
pub static SPEC: ResourceSpec = ResourceSpec {
    object: "operator",
    plural: "operators",
    tag: 20,
    doc: "A person or program that runs the service, with a role and a token. The token is shown once, when the operator is created or its token is rotated.",
    fields: &[
        id("\"0190d0f2-7c3a-7cc0-8000-000000000014\""),
        object("\"operator\""),
        field("name", Kind::Name(255), "Who it is. The audit log names it.", "\"Ada Lovelace\"").required().fixed(),
        field(
            "role",
            Kind::Word(Role::WORDS),
            "`owner` may do everything; `operator` everything except operators, the master key, deletion and erasing; `read_only` GET requests, but none on operators.",
            "\"operator\"",
        )
        .required()
        .fixed(),
        field("hint", Kind::Text(255), "The beginning and end of its token, to tell tokens apart.", "\"op_live_…Ab3d\""),
        field("rotations", Kind::Integer(0, u32::MAX as i64), "How often its token was rotated.", "1"),
        field(
            "previous_token_expires_at",
            Kind::Time,
            "When the token before the last rotation stops working.",
            "\"2026-05-06T09:30:00.000Z\"",
        )
        .or_null(),
        field("expires_at", Kind::Time, "When its token stops working.", "\"2099-05-05T09:30:00.000Z\"")
            .optional()
            .fixed(),
        field("revoked_at", Kind::Time, "When it was revoked.", "null").or_null(),
        field("last_used_at", Kind::Time, "When its token was last used, to the minute.", "\"2026-05-05T09:30:00.000Z\"")
            .or_null(),
        CREATED_AT,
        UPDATED_AT,
    ],
    filters: &[],
    ranges: &[],
    indexes: &[],
    look_ups: &[],
    usual_changes: &[],
};

words! {
    /// The role of an operator (decisions, "Second round"). A later role may do everything that an earlier one may.
    pub enum Role {
        /// Allows GET requests only.
        ReadOnly = "read_only",
        /// Allows everything except operators, the master key, deletion and erasing.
        Operator = "operator",
        /// Allows everything.
        Owner = "owner",
    }
}

impl Role {
    /// Whether this role may do what needs the role `needed`.
    #[must_use]
    pub fn includes(self, needed: Self) -> bool {
        self as u8 >= needed as u8
    }
}

fields! {
    /// The record of an operator, without its token.
    #[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
    #[expect(missing_docs, reason = "each field is documented in SPEC, once")]
    pub struct Operator {
        pub id: OperatorId,
        pub object: String,
        pub name: Name,
        pub role: Role,
        pub hint: Text,
        pub rotations: u32,
        pub previous_token_expires_at: Option<Timestamp>,
        pub expires_at: Option<Timestamp>,
        pub revoked_at: Option<Timestamp>,
        pub last_used_at: Option<Timestamp>,
        pub created_at: Timestamp,
        pub updated_at: Timestamp,
    }
}

impl Resource for Operator {
    const SPEC: &'static ResourceSpec = &SPEC;
}

impl Create for Operator {
    fn create(&mut self, context: &RuleContext<'_>) -> Result<Vec<EventType>, Error> {
        if self.name.trim().eq_ignore_ascii_case(ROOT) {
            let rule = "must not be `root`, which is the holder of the admin token";
            return Err(Error::field("name", FieldCode::Invalid, rule));
        }
        if self.expires_at.is_some_and(|expiry| expiry <= context.now) {
            return Err(Error::field("expires_at", FieldCode::Invalid, "must be in the future"));
        }
        Ok(Vec::new())
    }
}

impl Operator {
    /// Whether its token can no longer be used or rotated at `now`.
    #[must_use]
    pub fn has_ended(&self, now: Timestamp) -> bool {
        self.revoked_at.is_some() || self.expires_at.is_some_and(|expiry| expiry <= now)
    }

    /// Replaces the token. The present one works until `overlap_ends`, an earlier one not any more.
    pub fn rotate(&mut self, hint: Text, overlap_ends: Timestamp, now: Timestamp) {
        self.hint = hint;
        self.rotations += 1;
        self.previous_token_expires_at = Some(overlap_ends);
        self.touch(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_includes_itself_and_the_roles_before_it() {
        let roles = [Role::ReadOnly, Role::Operator, Role::Owner];
        for (at, role) in roles.into_iter().enumerate() {
            let included: Vec<Role> = roles.into_iter().filter(|needed| role.includes(*needed)).collect();
            assert_eq!(included, roles[..=at]);
        }
    }
}
