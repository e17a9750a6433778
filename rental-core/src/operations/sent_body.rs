//! The body of a request, which is parsed once even when its write is prepared several times.

use super::reference::valid_fields;
use crate::{
    error::Error,
    request::body::Verb,
    resources::organization::Organization,
    schema::{Fields, ResourceSpec},
    store::Store,
};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The body of a POST or PATCH: JSON, and its fields once they are checked.
pub struct SentBody<'a> {
    json: &'a [u8],
    fields: Mutex<Option<Fields>>,
}

impl<'a, B: AsRef<[u8]> + ?Sized> From<&'a B> for SentBody<'a> {
    fn from(json: &'a B) -> Self {
        Self { json: json.as_ref(), fields: Mutex::default() }
    }
}

impl SentBody<'_> {
    /// Takes the checked fields. Parses the body if [`SentBody::keep`] was not called.
    pub(super) async fn take(
        &self,
        store: &dyn Store,
        organization: &Organization,
        spec: &'static ResourceSpec,
        verb: Verb,
    ) -> Result<Fields, Error> {
        let kept = self.fields().take();
        match kept {
            Some(fields) => Ok(fields),
            None => valid_fields(store, organization, self.json, spec, verb).await,
        }
    }

    /// Keeps the fields for the case that the write is prepared again.
    pub(super) fn keep(&self, fields: Fields) {
        *self.fields() = Some(fields);
    }

    fn fields(&self) -> MutexGuard<'_, Option<Fields>> {
        self.fields.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        error::Error,
        operations::{Create, Edge, Intent, Update},
        request::body::READINGS,
        resources::{Collection, customer::Customer, of, rental::Rental},
        store::{Commit, memory::Memory},
        value::Timestamp,
    };
    use serde_json::{Value, json};
    use std::task::{Context, Poll, Waker};
    use uuid::Uuid;

    struct Fixed;

    impl Edge for Fixed {
        fn now(&self) -> Timestamp {
            Timestamp::from_millis(1_767_225_600_000)
        }

        fn new_id(&self) -> Uuid {
            Uuid::from_u128(1_767_225_600_000 << 80)
        }
    }

    /// The memory store answers at once.
    fn now<T>(future: impl Future<Output = T>) -> T {
        match std::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => value,
            Poll::Pending => panic!("the memory store never waits"),
        }
    }

    const CUSTOMERS: Collection = of::<Customer>().create().update().done();

    #[test]
    fn a_write_that_is_prepared_again_does_not_parse_its_body_again() {
        let (store, organization) = (&Memory::default(), &Organization::system());
        let body = br#"{"full_name":"Ada"}"#;
        let create = Create { collection: &CUSTOMERS, organization, body: body.into(), given: &[] };
        let stale = now(create.prepare(store, &Fixed)).expect("valid");
        let made = now(create.prepare(store, &Fixed)).expect("valid");
        assert_eq!((READINGS.take(), &made.body), (1, &stale.body));
        assert_eq!(now(store.commit(made.batch)), Ok(Commit::Applied));

        let (id, body) = (Fixed.new_id().to_string(), br#"{"full_name":"Bea"}"#.into());
        let update = Update { collection: &CUSTOMERS, organization, id: &id, body, expected: &|_| true };
        let stale = now(update.prepare(store, &Fixed)).expect("valid");
        let changed = now(update.prepare(store, &Fixed)).expect("valid");
        assert_eq!((READINGS.take(), &changed.body), (1, &stale.body));
        let object: Value = serde_json::from_slice(&changed.body).expect("JSON");
        assert_eq!(object["full_name"], "Bea");
    }

    #[test]
    fn a_body_that_names_missing_objects_fails_in_the_same_way_when_it_is_prepared_again() {
        let (store, organization) = (&Memory::default(), &Organization::system());
        let nobody = Uuid::from_u128(1);
        let body =
            json!({"customer_id": nobody, "vehicle_id": nobody, "start_date": "2027-01-02", "end_date": "2027-01-01"});
        let body = body.to_string();
        let rentals = of::<Rental>().create().done();
        let create = Create { collection: &rentals, organization, body: (&body).into(), given: &[] };
        let fields = || match now(create.prepare(store, &Fixed)) {
            Err(Error::Invalid(errors)) => errors.listed().iter().map(|error| error.param.clone()).collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        };
        let first = fields();
        assert!(first.contains(&"vehicle_id".to_owned()), "{first:?}");
        assert_eq!(fields(), first);
    }
}
