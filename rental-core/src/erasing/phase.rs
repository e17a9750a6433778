//! The phases of the task that erases a customer.

use crate::{
    resources::{RESOURCES, audit_entry, delivery, event, organization::SYSTEM},
    rows::key,
    schema::{IndexPrefix, Personal, ResourceSpec},
    store::{Key, Span},
    value::{CustomerId, OrganizationId},
};

/// What a phase of the task rewrites.
#[derive(Clone, Copy, Debug)]
pub(super) enum Phase {
    /// Nothing yet: finds former names of the person in events.
    Names,
    /// The records of a resource.
    Records(&'static ResourceSpec),
    /// Events, and the logs of their deliveries.
    Events,
    /// The logs of deliveries whose event is gone.
    Deliveries,
    /// Stored responses of idempotency keys.
    Responses,
    /// Audit entries of the organization.
    Audit,
}

/// The phases, in order. Names are looked for before anything is rewritten. Records come before events: no event of before
/// can follow the rewriting of its object. Deliveries come after events: an event that retention removes before its turn leaves deliveries without it.
pub(super) fn phases() -> Vec<Phase> {
    let others =
        RESOURCES.iter().map(|entry| entry.spec).filter(|spec| spec.person().is_some_and(|field| field != "id"));
    let records = others.map(Phase::Records);
    [Phase::Names]
        .into_iter()
        .chain(records)
        .chain([Phase::Events, Phase::Deliveries, Phase::Responses, Phase::Audit])
        .collect()
}

impl Phase {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Names => "former_names",
            Self::Records(spec) => spec.plural,
            Self::Events => event::SPEC.plural,
            Self::Deliveries => delivery::SPEC.plural,
            Self::Responses => "stored_responses",
            Self::Audit => audit_entry::SPEC.plural,
        }
    }

    /// The rows to read, and, if they are index entries, the prefix of their records.
    pub(super) fn source(self, organization: OrganizationId, customer: CustomerId) -> (Span, Option<Key>) {
        let records = |spec| (Span::under(key::records(organization, spec)), None);
        match self {
            Self::Records(spec) => match spec.person().and_then(|field| spec.index_over(&[field], None)) {
                None => records(spec),
                Some(index) => {
                    let entries = IndexPrefix::new(index.number).with(customer.as_bytes());
                    (Span::under(entries.prefix(organization, spec)), Some(key::records(organization, spec)))
                }
            },
            Self::Names | Self::Events => records(&event::SPEC),
            Self::Deliveries => records(&delivery::SPEC),
            Self::Responses => (Span::under(key::idempotency_record(organization, "")), None),
            Self::Audit => (
                Span::under(audit_entry::of_organization(organization).prefix(SYSTEM, &audit_entry::SPEC)),
                Some(key::records(SYSTEM, &audit_entry::SPEC)),
            ),
        }
    }
}

/// Whether the law requires that records of the resource keep their personal fields.
pub(super) fn keeps(spec: &ResourceSpec) -> bool {
    spec.fields.iter().any(|field| matches!(field.personal, Personal::Kept(_)))
}
