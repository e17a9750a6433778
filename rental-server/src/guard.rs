//! Guards: they admit a request and make the proof that its handler needs.
//!
//! Only this module makes proofs. A handler for owners takes an [`Owner`], so it cannot be given to an endpoint for other
//! roles, and no endpoint of operators exists without a role.

use crate::{
    http::{
        call::{Admitted, Call},
        header,
        problem::BadToken,
        reply::Problem,
    },
    state::App,
};
use rental_core::{
    error::{Error, KeyProblem},
    operations::api_keys::{self, bearer},
    resources::{
        audit_entry::Actor,
        operator::{self, Role},
    },
};
use std::marker::PhantomData;

/// The proof that anyone may call.
pub(crate) struct Open(());

impl Open {
    pub(crate) fn admit() -> Self {
        Self(())
    }
}

/// A role that an endpoint needs, as a type.
pub(crate) trait Needed {
    const ROLE: Role;
}

/// The types of the roles.
pub(crate) mod role {
    use super::{Needed, Role};

    pub(crate) enum ReadOnly {}
    pub(crate) enum Operator {}
    pub(crate) enum Owner {}

    impl Needed for ReadOnly {
        const ROLE: Role = Role::ReadOnly;
    }

    impl Needed for Operator {
        const ROLE: Role = Role::Operator;
    }

    impl Needed for Owner {
        const ROLE: Role = Role::Owner;
    }
}

/// The proof that an operator calls whose role includes `R`, or the holder of the admin token.
pub(crate) struct By<R>(PhantomData<R>);

/// The proof that the caller may read everything.
pub(crate) type Reader = By<role::ReadOnly>;
/// The proof that the caller may change what operators change.
pub(crate) type Operator = By<role::Operator>;
/// The proof that the caller may do everything.
pub(crate) type Owner = By<role::Owner>;

impl<R: Needed> By<R> {
    /// Admits a request with the admin token, or with the token of an operator whose role includes `R`. Notes for the
    /// audit log who calls which operation.
    pub(crate) async fn admit(app: &App, call: &Call, operation: &'static str) -> Result<Self, Problem> {
        let presented = presented(call)?;
        let (actor, role) = if app.is_admin(presented) {
            (Actor::Root, Role::Owner)
        } else {
            let operator = named(app, call, presented).await?;
            (Actor::Operator { id: operator.id, name: operator.name }, operator.role)
        };
        if !role.includes(R::ROLE) {
            let (request_id, address) = (call.request_id.as_str(), call.client_address());
            tracing::warn!(request_id, %address, actor = actor.name(), operation, "the role of an operator was too small");
            return Err(Problem::RoleRequired { given: role, needed: R::ROLE });
        }
        // Set once: each request has one guard.
        let _ = call.admitted.set(Admitted { operation, actor, role });
        Ok(Self(PhantomData))
    }
}

impl Owner {
    /// The proof that the caller may do everything, for what a request that others may send does only for owners.
    pub(crate) fn also(call: &Call) -> Option<Self> {
        let role = call.admitted.get()?.role;
        role.includes(Role::Owner).then_some(Self(PhantomData))
    }
}

/// The operator whose token was presented.
async fn named(app: &App, call: &Call, presented: &str) -> Result<operator::Operator, Problem> {
    let Some(hash) = api_keys::operator_hash(presented) else {
        let is_api_key = api_keys::key_hash(presented).is_some();
        return Err(Problem::BadToken(if is_api_key { BadToken::IsApiKey } else { BadToken::Unknown }));
    };
    app.operators.authenticate(app.store(), &hash, call.clock.trusted()).await.map_err(|error| match error {
        Error::Unauthenticated(KeyProblem::Revoked) => Problem::BadToken(BadToken::Revoked),
        Error::Unauthenticated(KeyProblem::Expired) => Problem::BadToken(BadToken::Expired),
        Error::Unauthenticated(_) => Problem::BadToken(BadToken::Unknown),
        other => other.into(),
    })
}

/// The token that a request presents.
pub(crate) fn presented(call: &Call) -> Result<&str, Error> {
    match call.single(&header::AUTHORIZATION) {
        Ok(None) => Err(Error::Unauthenticated(KeyProblem::Missing)),
        Ok(Some(header)) => bearer(header).ok_or(Error::Unauthenticated(KeyProblem::Malformed)),
        Err(_) => Err(Error::Unauthenticated(KeyProblem::Malformed)),
    }
}
