//! `/v1/calendar_feeds`: calendars of others that become blocks. The generic handlers list and retrieve them.

use crate::{
    edge,
    endpoint::{Action, BodySchema, Endpoint, FeedAction, delete, post},
    http::{
        call::Call,
        reply::{Handled, Reply},
    },
    objects::write::write_to,
    reference::parts,
    state::App,
    webhooks::Hooks,
};
use rental_core::{
    error::Error,
    operations::{
        Create, Edge, Intent, Preparing,
        calendar_feeds::{ChangeCalendarFeed, room_for_feed},
    },
    request::body,
    resources::{
        Collection,
        calendar_feed::{self, CalendarFeed},
        of,
        organization::Organization,
        to_json,
    },
    rows::{calendar_feed::ImportedFeed, key},
    store::Store,
    value::{CalendarFeedId, Members},
    webhooks::{master_key, secret::bound_to},
};
use serde::Deserialize;
use serde_json::json;
use std::borrow::Cow;

/// An action of API keys names a collection.
static FEEDS: Collection = of::<CalendarFeed>().done();

pub(super) fn endpoints() -> Vec<Endpoint> {
    let read = post("/v1/calendar_feeds/{id}/poll")
        .about(&calendar_feed::SPEC, "pollCalendarFeed", "Read a calendar feed now")
        .says("Reads the calendar within seconds instead of at the end of its interval; after failures in a row within two minutes.")
        .takes(BodySchema::Own(parts::action_body(json!({}), &[], json!({}))))
        .without_revision()
        .key(Action::Feed(FeedAction::Poll), &FEEDS);
    let remove = delete("/v1/calendar_feeds/{id}")
        .about(&calendar_feed::SPEC, "deleteCalendarFeed", "Delete calendar feed")
        .says("Its blocks that have not ended are cancelled within seconds. Earlier ones stay. The feed itself is not found any more.")
        .without_revision()
        .key(Action::Feed(FeedAction::Remove), &FEEDS);
    vec![read, remove]
}

/// POST /v1/calendar_feeds.
pub(super) async fn create(
    (app, store): (&App, &dyn Store),
    (organization, collection): (&Organization, &'static Collection),
    call: &Call,
    sent: &[u8],
) -> Handled {
    let mut nonce = [0; 24];
    nonce.copy_from_slice(&edge::secret_bytes()[..24]);
    let body = with_https(sent);
    let create = Create { collection, organization, body: (&*body).into(), given: &[] };
    let make = Make { hooks: &app.hooks, create, sent: &body, nonce };
    let reply = write_to(store, app, organization, call, sent, &make).await?;
    note(app, organization, &reply);
    Ok(reply)
}

/// The body with `https://` in place of `webcal://`, with which calendar programs offer an address to subscribe to.
fn with_https(sent: &[u8]) -> Cow<'_, [u8]> {
    // A body with a duplicate key stays as it was sent, and is refused.
    let Ok(mut body) = Members::parse(sent) else { return sent.into() };
    let Some(url) = body.get("url").and_then(|url| serde_json::from_str::<String>(url).ok()) else {
        return sent.into();
    };
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    if !["webcal", "webcals"].iter().any(|calendar| scheme.eq_ignore_ascii_case(calendar)) {
        return sent.into();
    }
    let changed = body.set("url", json!(format!("https://{rest}")).to_string());
    changed.map_or_else(|_| sent.into(), |()| body.json().into_bytes().into())
}

/// Creates a feed and keeps its address, sealed with the master key. The object has the host of the address only.
struct Make<'a> {
    hooks: &'a Hooks,
    create: Create<'a>,
    sent: &'a [u8],
    nonce: [u8; 24],
}

impl Intent for Make<'_> {
    fn prepare<'a>(&'a self, store: &'a dyn Store, edge: &'a dyn Edge) -> Preparing<'a> {
        #[derive(Deserialize)]
        struct Sent {
            url: String,
        }
        Box::pin(async move {
            let mut prepared = self.create.prepare(store, edge).await?;
            let Sent { url } =
                serde_json::from_slice(self.sent).map_err(|error| Error::Malformed(error.to_string()))?;
            self.hooks.check_calendar(&url)?;
            let feed: &CalendarFeed = prepared.object()?;
            let (organization, id, vehicle) = (self.create.organization.id, feed.id, feed.vehicle_id);
            room_for_feed(store, organization, vehicle, &mut prepared.batch).await?;
            let ring = self.hooks.keys.ring();
            let key = master_key::sealing(store, &ring, &mut prepared.batch).await?;
            let sealed = key.seal(bound_to(id), self.nonce, &url).map_err(Error::Internal)?;
            let row = ImportedFeed::new(Some(sealed), edge.now());
            prepared.batch.insert(key::calendar_feed(organization, id), to_json(&row)?);
            Ok(prepared)
        })
    }
}

/// POST /v1/calendar_feeds/{id}/poll, and DELETE.
pub(super) async fn change(
    (app, store): (&App, &dyn Store),
    organization: &Organization,
    (id, deletes): (&str, bool),
    call: &Call,
    sent: &[u8],
) -> Handled {
    body::nothing(sent)?;
    let intent = ChangeCalendarFeed { organization, id, deletes };
    let reply = write_to(store, app, organization, call, sent, &intent).await?.without_revision();
    note(app, organization, &reply);
    Ok(reply)
}

/// Tells the reader of calendar feeds of this server that the feed of a response was made or changed.
fn note(app: &App, organization: &Organization, reply: &Reply) {
    #[derive(Deserialize)]
    struct Changed {
        id: CalendarFeedId,
    }
    if app.hooks.settings.send
        && let Ok(Changed { id }) = rental_core::value::read_json(&reply.body)
    {
        app.changed_feeds.note((organization.id, id));
    }
}
