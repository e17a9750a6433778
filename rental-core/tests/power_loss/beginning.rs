//! The store in which every history begins.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests do")]

use crate::{
    broken::{Broken, Engine},
    disk::{Dice, Disk},
    history::dump,
    judge::{Response, judge},
    load::{Known, first, next},
    requests::{Request, Ticks},
    wait,
};
use rental_core::{
    operations::{Create, Intent},
    resources::{Collection, of, organization::Organization, webhook_endpoint::WebhookEndpoint},
    rows::key,
    store::{Commit, Prior, Record, Store},
    value::OrganizationId,
};
use serde_json::json;
use std::sync::{Arc, atomic::Ordering};

/// Requests of clients and operators.
const REQUESTS: usize = 40;

static ENDPOINTS: Collection = of::<WebhookEndpoint>().create().done();

/// A closed store with two organizations, of which the first one has three webhook endpoints, and objects of both.
pub(crate) struct Beginning {
    pub(crate) requests: Vec<Arc<Request>>,
    pub(crate) responses: Vec<Response>,
    pub(crate) rows: Arc<[Record]>,
    pub(crate) organizations: Vec<Organization>,
    /// Times and ids that were used.
    pub(crate) ticks: u64,
    pub(crate) image: Vec<u8>,
}

impl Beginning {
    pub(crate) fn new() -> Self {
        let disk = Disk::default();
        let engine = Engine::open(&disk, Broken::Nothing).unwrap();
        let (mut requests, mut responses, mut organizations) = (Vec::new(), Vec::new(), Vec::new());
        let edge = Ticks::default();
        for (number, name) in ["Sunrise", "Moonlight"].into_iter().enumerate() {
            let request = Request::organization(number, name);
            let written = wait(request.perform(&engine, &edge)).unwrap();
            let organization: Organization = serde_json::from_slice(&written.body).unwrap();
            if number == 0 {
                (0..3).for_each(|_| subscribe(&engine, &edge, organization.id));
            }
            organizations.push(organization);
            let body = String::from_utf8(written.body.to_vec()).unwrap();
            responses.push(Response { group: 0, request: number, status: written.status, body });
            requests.push(Arc::new(request));
        }
        // So that a history begins among objects of every kind.
        let (mut known, mut begun) = (vec![Known::default(); organizations.len()], vec![0; organizations.len()]);
        let mut dice = Dice(1);
        for number in requests.len()..requests.len() + REQUESTS {
            let at = dice.roll(organizations.len());
            let place = begun[at];
            begun[at] += 1;
            let request = first(number, &organizations[at], &known[at], place)
                .unwrap_or_else(|| next(number, &organizations[at], &known[at], &mut dice));
            let written = wait(request.perform(&engine, &edge)).unwrap();
            let body = String::from_utf8(written.body.to_vec()).unwrap();
            known[at].learn(&serde_json::from_str(&body).unwrap());
            responses.push(Response { group: 0, request: number, status: written.status, body });
            requests.push(request);
        }
        let rows = dump(&engine);
        engine.redb.close().unwrap();
        judge(&rows, &requests, responses.iter()).expect("the beginning is whole");
        let (ticks, image) = (edge.0.load(Ordering::Relaxed), disk.with(|state| state.live.clone()));
        Self { requests, responses, rows: rows.into(), organizations, ticks, image }
    }
}

/// Creates a webhook endpoint as the server does.
fn subscribe(engine: &Engine, edge: &Ticks, organization: OrganizationId) {
    let body = json!({"organization_id": organization, "url": "https://example.com/hooks"}).to_string();
    let system = Organization::system();
    let create = Create { collection: &ENDPOINTS, organization: &system, body: body.as_bytes().into(), given: &[] };
    let mut prepared = wait(create.prepare(engine, edge)).unwrap();
    let endpoint = prepared.object::<WebhookEndpoint>().unwrap().id;
    prepared.batch.insert(key::secrets(endpoint), "[]".into());
    prepared.batch.put(key::subscribed(organization), "".into(), Prior::Any);
    assert_eq!(wait(engine.commit(prepared.batch)), Ok(Commit::Applied));
}
