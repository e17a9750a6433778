//! The store in which every history begins, and the relay of its organization with webhook endpoints.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests do")]

use crate::{
    broken::{Broken, Engine},
    disk::Disk,
    history::dump,
    judge::{Response, judge},
    requests::{Request, Ticks},
    wait,
};
use rental_core::{
    error::Error,
    operations::{Create, Edge, Intent},
    resources::{
        Collection, of,
        organization::{Organization, SYSTEM},
        parse,
        webhook_endpoint::{self, WebhookEndpoint},
    },
    rows::{key, outbox},
    store::{Commit, Prior, Record, Span, Store, all_sound},
    value::OrganizationId,
    webhooks::fan_out,
};
use serde_json::json;
use std::sync::{Arc, atomic::Ordering};

static ENDPOINTS: Collection = of::<WebhookEndpoint>().create().done();

/// A closed store with two organizations, of which the first one has two webhook endpoints.
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
                (0..2).for_each(|_| subscribe(&engine, &edge, organization.id));
            }
            organizations.push(organization);
            let body = String::from_utf8(written.body.to_vec()).unwrap();
            responses.push(Response { group: 0, request: number, status: written.status, body });
            requests.push(Arc::new(request));
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

/// One step of the relay: makes deliveries of what is in the outbox.
pub(crate) async fn relay(store: &dyn Store, edge: &dyn Edge) -> Result<(), Error> {
    let rows = all_sound(store.scan(&key::outbox_rows(), 16).await?)?;
    let waiting = rows.iter().map(outbox::read).collect::<Result<Vec<_>, _>>()?;
    if waiting.is_empty() {
        return Ok(());
    }
    let organization = waiting[0].organization;
    let prefix = webhook_endpoint::of_organization(organization).prefix(SYSTEM, &webhook_endpoint::SPEC);
    let span = Span::newest_first(&prefix).following(key::records(SYSTEM, &webhook_endpoint::SPEC));
    let endpoints = all_sound(store.scan(&span, 50).await?)?;
    let endpoints = endpoints.iter().map(|row| parse(&row.key, &row.value)).collect::<Result<_, _>>()?;
    let (batch, _) = fan_out::plan(&waiting, &[(organization, endpoints)].into(), edge)?;
    store.commit(batch).await?;
    Ok(())
}
