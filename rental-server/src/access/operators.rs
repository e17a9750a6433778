//! Authentication of named operators. Nothing is cached: they make few requests, and a revoked token must stop at once on
//! every server.

use super::uses::{MINUTE, Uses};
use rental_core::{
    error::{Error, KeyProblem},
    operations::api_keys,
    resources::{Resource, operator::Operator, organization::SYSTEM, parse},
    rows::key,
    store::Store,
    value::Timestamp,
};

/// Authenticates the tokens of operators, and notes when they were used.
#[derive(Default)]
pub(crate) struct Operators {
    pub(crate) uses: Uses<Operator>,
}

impl Operators {
    /// The operator whose token has this hash.
    ///
    /// # Errors
    /// [`Error::Unauthenticated`] for a token that does not exist or no longer works.
    pub(crate) async fn authenticate(
        &self,
        store: &dyn Store,
        hash: &[u8; 32],
        now: Timestamp,
    ) -> Result<Operator, Error> {
        let unknown = Error::Unauthenticated(KeyProblem::Invalid);
        let entry = store.get(&[key::access(hash)]).await?.pop().flatten();
        let entry = entry.and_then(|entry| api_keys::open_operator_entry(&entry.value, hash));
        let (id, rotation) = entry.ok_or_else(|| unknown.clone())?;
        let record = store.get(&[Operator::key(SYSTEM, id)]).await?.pop().flatten().ok_or(unknown)?;
        let operator: Operator = parse(&record.key, &record.value)?;
        api_keys::admit(&operator, rotation, now).map_err(Error::Unauthenticated)?;
        let minute = now.millis() / MINUTE;
        if operator.last_used_at.is_none_or(|used| used.millis() / MINUTE < minute) {
            self.uses.note(id, minute);
        }
        Ok(operator)
    }
}
