//! A request of a history: what a client or an operator asks for, under an idempotency key of its own.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests do")]

use rental_core::{
    attachments::Release,
    error::Error,
    operations::{
        self, Create, Edge, Intent, IssueApiKey, NewApiKey, RefundCredit, Settle, Update, Written,
        idempotency::{IdempotencyKey, KEPT_MILLIS},
    },
    resources::{
        Collection, credit_note::Refund, invoice::Settlement, of, organization::Organization, toll::Toll,
        violation::Violation,
    },
    store::Store,
    tasks::erasing::Erase,
    value::Timestamp,
};
use serde_json::json;
use std::sync::atomic::{AtomicU64, Ordering};
use uuid::Uuid;

static ORGANIZATIONS: Collection = of::<Organization>().create().done();

/// Times and ids of a history: both rise with every call.
#[derive(Debug, Default)]
pub(crate) struct Ticks(pub(crate) AtomicU64);

impl Ticks {
    fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

impl Edge for Ticks {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_777_973_400_000 + i64::try_from(self.next()).unwrap())
    }

    fn new_id(&self) -> Uuid {
        let tick = self.next();
        Uuid::from_u128((u128::from(1_777_973_400_000 + tick) << 80) | (0x7 << 76) | (0x2 << 62) | u128::from(tick))
    }
}

/// The same ids, and times of two days ago: the answers that are stored then have expired.
struct DaysAgo<'e>(&'e dyn Edge);

impl Edge for DaysAgo<'_> {
    fn now(&self) -> Timestamp {
        self.0.now().plus_millis(-2 * KEPT_MILLIS)
    }

    fn new_id(&self) -> Uuid {
        self.0.new_id()
    }
}

pub(crate) enum Act {
    Create,
    /// The same, on a clock that is two days slow. The request must be one that is refused.
    CreateDaysAgo,
    /// A change of the object with this id.
    Change(String),
    /// The server derives anew who pays for the toll or violation with this id.
    Release(String),
    /// The invoice with this id becomes paid or void.
    Settle(String, Settlement),
    /// The money of the credit note with this id is given back.
    Refund(String),
    /// An API key of these random bytes.
    Issue([u8; 32]),
    /// The customer with this id is erased.
    Erase(String),
}

/// One request with its idempotency key.
pub(crate) struct Request {
    pub(crate) organization: Organization,
    pub(crate) collection: &'static Collection,
    pub(crate) act: Act,
    pub(crate) body: String,
    pub(crate) key: IdempotencyKey,
}

impl Request {
    pub(crate) fn new(
        number: usize,
        organization: &Organization,
        collection: &'static Collection,
        act: Act,
        body: &serde_json::Value,
    ) -> Self {
        let (organization, body) = (organization.clone(), body.to_string());
        let key = IdempotencyKey::new(format!("request-{number}").as_bytes(), "POST", "/", body.as_bytes()).unwrap();
        Self { organization, collection, act, body, key }
    }

    /// The creation of an organization, by the operator.
    pub(crate) fn organization(number: usize, name: &str) -> Self {
        Self::new(number, &Organization::system(), &ORGANIZATIONS, Act::Create, &json!({"name": name}))
    }

    pub(crate) async fn perform(&self, store: &dyn Store, edge: &dyn Edge) -> Result<Written, Error> {
        let (collection, organization, body) = (self.collection, &self.organization, self.body.as_bytes());
        let (new_key, days_ago) = (self.new_key(), DaysAgo(edge));
        let create = || Create { collection, organization, body: body.into(), given: &[] };
        let mut clock = edge;
        let intent: Box<dyn Intent + '_> = match &self.act {
            Act::Create => Box::new(create()),
            Act::CreateDaysAgo => {
                clock = &days_ago;
                Box::new(create())
            }
            Act::Change(id) => {
                Box::new(Update { collection, organization, id, body: body.into(), expected: &|_| true })
            }
            Act::Release(id) if collection.spec.object == "toll" => Box::new(Release::<Toll>::new(organization, id)),
            Act::Release(id) => Box::new(Release::<Violation>::new(organization, id)),
            Act::Settle(id, how) => Box::new(Settle { organization, id, how: *how }),
            Act::Refund(id) => Box::new(RefundCredit { organization, id, refund: Refund::default() }),
            Act::Issue(_) => Box::new(IssueApiKey::new(&new_key, organization, body)),
            Act::Erase(id) => Box::new(Erase { organization, id }),
        };
        let render = |error: &Error| (409, json!({"error": format!("{error:?}")}).to_string().into());
        operations::write(store, clock, organization.id, Some(&self.key), &*intent, (200, &render)).await
    }

    /// The API key that this request issues; another one when it issues none.
    pub(crate) fn new_key(&self) -> NewApiKey {
        NewApiKey::new(if let Act::Issue(random) = &self.act { random } else { &[0; 32] })
    }

    /// The status that a change of a rental sends.
    pub(crate) fn sent_status(&self) -> Option<String> {
        let body: serde_json::Value = serde_json::from_str(&self.body).unwrap();
        let status = body["status"].as_str().map(str::to_owned);
        status.filter(|_| matches!(self.act, Act::Change(_)) && self.collection.spec.object == "rental")
    }
}
