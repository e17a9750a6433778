//! `/v1`: the resources, for API keys. Each request is authenticated, authorized and rate limited, then handled.

mod availability;
mod calendar_feeds;
mod heavy;
mod me;
mod request_rate;
mod review;
mod vehicle_feed;

use crate::{
    access::{
        Revalidating,
        authentication::Pass,
        limiter::{Limit, RateLimitStatus},
    },
    endpoint::{self, Action, Endpoint, FeedAction, read},
    guard::presented,
    http::{
        call::{Body, Call},
        problem::BadToken,
        reply::{Handled, Problem, Reply},
    },
    limits::{Holder, Part},
    objects::{create, get, list_ordered, update},
    state::App,
};
use bytes::Bytes;
use rental_core::{
    error::{Error, KeyProblem},
    operations::api_keys::{Access, operator_hash},
    resources::{self, Collection, calendar_feed},
    store::Store,
};
use request_rate::with_limits;
use std::pin::pin;

/// Bodies up to this size are bounded by the number of connections alone.
const SMALL_BODY: usize = 16 << 10;

/// Log lines per second about requests that were turned away; twice as many at once.
const LINES_PER_SECOND: u32 = 1;

/// The collection of a public resource.
pub(crate) fn collection(object: &str) -> Option<&'static Collection> {
    resources::api().find(|row| row.spec.object == object)
}

/// Every operation of the public API.
pub(crate) fn endpoints() -> Vec<Endpoint> {
    [me::endpoint()]
        .into_iter()
        .chain(availability::endpoints())
        .chain(review::endpoints())
        .chain(vehicle_feed::endpoints())
        .chain(resources::api().flat_map(of))
        .chain(calendar_feeds::endpoints())
        .collect()
}

fn of(row: &'static Collection) -> impl Iterator<Item = Endpoint> {
    let (all, one) = (format!("/v1/{}", row.spec.plural), format!("/v1/{}/{{id}}", row.spec.plural));
    let list = row.list.then(|| {
        let list = endpoint::list(&all, row.spec);
        let list = match row.rising {
            true => list.says("Oldest first. Pass `next_cursor` as `starting_after` to get the next page."),
            false => list,
        };
        list.key(Action::List, row)
    });
    let create = row.create.is_some().then(|| {
        let create = endpoint::create(&all, row.spec);
        let create = match row.spec.object {
            "rental" => create.says("A rental in `APPROVED` or `ACTIVE` with both dates holds its vehicle for the nights from pickup to return: a second one, or one over a block, is refused with 409."),
            "calendar_feed" => create.says("The server reads the calendar now and then at each interval, and keeps a block of the vehicle for each event. A block that clashes with a rental or another block has the status `conflict` and holds nothing. At most 10 for a vehicle."),
            "block" => create.says("An active block holds its vehicle like a rental: one over a rental or another block is refused with 409. It emits no event."),
            _ => create,
        };
        create.key(Action::Create, row)
    });
    let get = row.get.then(|| endpoint::retrieve(&one, row.spec).key(Action::Get, row));
    let update = row.update.is_some().then(|| {
        let update = endpoint::update(&one, row.spec);
        let update = match row.spec.object {
            "rental" => update.says(
                "Setting `status` to `COMPLETED` or `CANCELLED` sends the matching webhook and frees the vehicle.",
            ),
            "block" => update.says("Setting `status` to `cancelled` frees the vehicle."),
            "toll" | "violation" => update.says("Attaches it to the customer who pays. Nothing else can be changed."),
            _ => update,
        };
        update.key(Action::Update, row)
    });
    [list, create, get, update].into_iter().flatten()
}

/// Serves a request that needs an API key.
pub(crate) async fn with_key(
    app: &App,
    call: &Call,
    (action, collection, id): (Action, &'static Collection, &str),
    body: Body<'_>,
) -> Handled {
    let mut request = Keyed {
        call,
        action,
        collection,
        id,
        body: Some(body),
        read: Ok(Bytes::new()),
        taken: false,
        rate_limit: None,
    };
    let presented = presented(call)?;
    loop {
        let opened = app.authenticator.authenticate(app.store(), presented, call.clock.trusted(), &app.requests).await;
        let (pass, cached) = opened.map_err(|error| match error {
            Error::Unauthenticated(KeyProblem::Invalid) if app.is_admin(presented) => {
                Problem::BadToken(BadToken::AdminAsApiKey)
            }
            Error::Unauthenticated(KeyProblem::Invalid) if operator_hash(presented).is_some() => {
                Problem::BadToken(BadToken::OperatorAsApiKey)
            }
            other => other.into(),
        })?;
        if app.hooks.settings.telemetry.is_on() {
            // Set once: a request that is handled again has the same key.
            let _ = call.organization.set(pass.principal.organization.id);
        }
        if !cached {
            return app.congestion.charged(&pass.held.account, pin!(request.handle(app, app.store(), &pass))).await;
        }
        let store = Revalidating::new(app.store(), &pass);
        let handled = app.congestion.charged(&pass.held.account, pin!(request.handle(app, &store, &pass))).await;
        if store.is_current().await.map_err(Error::from)? {
            return handled;
        }
        // Another server has changed the key or the organization. Nothing was committed or sent: handle the request
        // again.
        app.authenticator.forget(presented, &pass);
    }
}

/// A request with an API key. It may be handled more than once.
struct Keyed<'r> {
    call: &'r Call,
    action: Action,
    collection: &'static Collection,
    id: &'r str,
    /// The body, until it is read.
    body: Option<Body<'r>>,
    /// The bytes of the body, or why they could not be read.
    read: Result<Bytes, Problem>,
    /// Whether the limit of the organization has taken the request.
    taken: bool,
    /// The decision of the rate limit, once it was asked.
    rate_limit: Option<(Limit, RateLimitStatus)>,
}

impl Keyed<'_> {
    async fn handle(&mut self, app: &App, store: &dyn Store, pass: &Pass) -> Handled {
        let call = self.call;
        let access = if self.action.writes() { Access::Write } else { Access::Read };
        pass.principal.authorize(access, call.clock.trusted())?;
        // The key first: requests that its limit refuses take none from the other keys of the organization.
        if let (Some(limit), None) = (app.limits.rate, &self.rate_limit) {
            self.rate_limit = Some((limit, limit.take(&pass.usage.bucket, app.nanos_since_start())));
        }
        if let Some((_, RateLimitStatus { allowed: false, wait_secs, .. })) = self.rate_limit {
            let refused = Problem::TooManyRequests { whose: "with this key", retry_after: wait_secs };
            return Ok(with_limits(Reply::problem(&refused, call.request_id.as_str()), "default", self.rate_limit));
        }
        if !self.taken
            && let Some(refused) = request_rate::refusal(app, call, pass)
        {
            return Ok(refused);
        }
        self.taken = true;
        let (organization, spec) = (&pass.principal.organization, self.collection.spec);
        let holder = Holder::from(organization.id);
        if !app.responses.has_room(holder) {
            // Boxed: it is rare, and would make the future of a read larger.
            Box::pin(app.room_for_response(organization.id)).await?;
        }
        let target = (store, &**organization, self.collection);
        let handled = match self.action {
            // A file answers a read at once, so reads of it are never in progress together.
            Action::List | Action::Get if app.store.is_shared() => {
                Box::pin(async {
                    let _part = admit(app, pass).await?;
                    match self.action {
                        Action::List => {
                            let order = (spec, self.collection.rising);
                            list_ordered((app, store), organization.id, order, call).await
                        }
                        _ => get(store, organization.id, spec, self.id, call).await,
                    }
                })
                .await
            }
            Action::List => list_ordered((app, store), organization.id, (spec, self.collection.rising), call).await,
            Action::Get => get(store, organization.id, spec, self.id, call).await,
            Action::Me => me::reply(app, call, pass),
            // Boxed as writes are.
            Action::Availability | Action::Calendar | Action::Review => {
                Box::pin(async {
                    let _one = pass.held.heavy.lock().await;
                    let _part = if app.store.is_shared() { Some(admit(app, pass).await?) } else { None };
                    let store = &heavy::Yielding(store);
                    match self.action {
                        Action::Availability => availability::available((app, store), organization, call).await,
                        Action::Calendar => availability::calendar(store, organization, self.id, call).await,
                        _ => review::shown((app, store), organization, spec, call).await,
                    }
                })
                .await
            }
            Action::Feed(FeedAction::Show) => Box::pin(vehicle_feed::show(store, organization, self.id, call)).await,
            // Writes are boxed, so that the future of a read stays small.
            Action::Create | Action::Update | Action::Feed(_) => {
                Box::pin(async {
                    let (body, _bytes) = self.body(app, pass).await?;
                    let _part = admit(app, pass).await?;
                    match self.action {
                        Action::Create if spec.object == calendar_feed::SPEC.object => {
                            let target = (&**organization, self.collection);
                            calendar_feeds::create((app, store), target, call, &body).await
                        }
                        Action::Create => create(app, target, call, &body).await,
                        Action::Feed(change @ (FeedAction::Poll | FeedAction::Remove)) => {
                            let change = (self.id, change == FeedAction::Remove);
                            calendar_feeds::change((app, store), organization, change, call, &body).await
                        }
                        Action::Feed(change) => {
                            let change = (self.id, change == FeedAction::Make);
                            vehicle_feed::change((app, store), organization, change, call, &body).await
                        }
                        _ => update(app, target, self.id, call, &body).await,
                    }
                })
                .await
            }
        };
        let handled = handled.map(|reply| reply.counted(&app.responses, holder));
        match self.rate_limit {
            None => handled,
            Some(_) => {
                let reply = handled.unwrap_or_else(|problem| Reply::problem(&problem, call.request_id.as_str()));
                Ok(with_limits(reply, "default", self.rate_limit))
            }
        }
    }

    /// The whole body, which is read once, and its part of the memory for bodies.
    async fn body(&mut self, app: &App, pass: &Pass) -> Result<(Bytes, Option<Part>), Problem> {
        let mut bytes = None;
        if let Some(mut body) = self.body.take() {
            let announced = self.call.announced_length().unwrap_or(app.limits.max_body).min(app.limits.max_body);
            if announced > SMALL_BODY {
                bytes =
                    Some(admitted(app, pass, app.bodies.take(pass.principal.organization.id.into(), announced).await)?);
            }
            self.read = read(app, self.call, &mut body).await;
        }
        Ok((self.read.clone()?, bytes))
    }
}

/// Takes a part of the store's time for an organization; waits a moment when it has its share already.
async fn admit(app: &App, pass: &Pass) -> Result<Part, Problem> {
    admitted(app, pass, app.requests.take(pass.principal.organization.id.into(), 1).await)
}

/// A part that was taken. Counts and logs a request that got none.
fn admitted(app: &App, pass: &Pass, part: Option<Part>) -> Result<Part, Problem> {
    part.ok_or_else(|| {
        app.metrics.crowded.inc();
        let organization = pass.principal.organization.id;
        if Limit::new(LINES_PER_SECOND).take(&app.crowded_lines, app.nanos_since_start()).allowed {
            tracing::warn!(%organization, "requests were turned away: the organization has its share of those in progress");
        }
        Problem::Crowded
    })
}
