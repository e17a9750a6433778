//! The master key: which one the store uses, whose secrets it opens, and its change. Keys themselves are never in a request
//! or a response.

use crate::{
    endpoint::{Endpoint, Request, get, post},
    guard::Owner,
    http::reply::{Handled, Reply},
    objects::write::write,
    operator::bodies,
    reference::{
        parts,
        shapes::{self, described, object, text},
    },
    state::App,
    webhooks::servers_without_key,
};
use rental_core::{
    error::Error,
    operations::{Edge, Intent, Prepared, Preparing},
    request::page,
    resources::{organization::Organization, webhook_endpoint},
    store::{Batch, Store},
    tasks::Task,
    webhooks::{
        master_key::{InUse, Stored, survey},
        secret::{Fingerprint, MasterKeys},
    },
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// The endpoints of this file.
pub(super) fn endpoints() -> Vec<Endpoint> {
    let rotate = post("/admin/v1/master_key/rotate")
        .about(&webhook_endpoint::SPEC, "rotateMasterKey", "Rotate the master key")
        .says(
            "Seals the secrets of all webhook endpoints with the newest key of the server's file, while requests are served. \
             On a data file the server adds a new key to its file by itself. Servers that share a database need the new key \
             in the file of each of them first. `former_fingerprint` is null again when it is done.",
        )
        .replies("MasterKey");
    vec![
        get("/admin/v1/master_key").documented(document()).defines("MasterKey", schema()).owner(|request| {
            Box::pin(async move {
                page::no_parameters(request.call.query())?;
                let app = request.app;
                let (stored, keys) = (Stored::read(app.store()).await?, app.hooks.keys.ring());
                Ok(Reply::json(body(app.store(), &keys, stored.in_use.as_ref()).await?.to_string().into()))
            })
        }),
        rotate.owner(|request| Box::pin(rotate_key(request))),
    ]
}

/// The response: the members that the schema describes.
async fn body(store: &dyn Store, keys: &MasterKeys, in_use: Option<&InUse>) -> Result<Value, Error> {
    let found = survey(store, keys).await?;
    Ok(json!({
        "object": "master_key",
        "fingerprint": in_use.map(|in_use| &in_use.current),
        "former_fingerprint": in_use.and_then(|in_use| in_use.former.as_ref()),
        "newest_fingerprint": keys.newest().fingerprint(),
        "webhook_endpoints": found.endpoints,
        "unreadable": found.unreadable,
        "unreadable_ids": found.unreadable_ids,
        "calendar_feeds": found.calendar_feeds,
        "unreadable_calendar_feeds": found.unreadable_calendar_feeds,
    }))
}

async fn rotate_key(request: Request<'_, Owner>) -> Handled {
    let (Request { app, call, .. }, body) = request.read().await?;
    #[derive(Default, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Nothing {}
    let Nothing {} = bodies::optional(&body, "no fields")?;
    let reply = write(app, &Organization::system(), call, &body, &Rotate { app }).await?;
    app.tasks_begun.notify_one();
    Ok(reply)
}

struct Rotate<'a> {
    app: &'a App,
}

impl Intent for Rotate<'_> {
    fn prepare<'a>(&'a self, store: &'a dyn Store, edge: &'a dyn Edge) -> Preparing<'a> {
        Box::pin(async move {
            let stored = Stored::read(store).await?;
            if let Some(row) = stored.damage {
                return Err(Error::Damaged(row));
            }
            let Some(in_use) = &stored.in_use else {
                return Err(Error::Internal("a store that is served has no master key".into()));
            };
            let (mut batch, mut next) = (Batch::default(), in_use.clone());
            let keys = match in_use.former {
                // A rotation that runs goes on.
                Some(_) => self.app.hooks.keys.ring(),
                None => {
                    let keys = self.newer_than(&in_use.current).await?;
                    next = InUse { current: keys.newest().fingerprint().clone(), former: Some(in_use.current.clone()) };
                    stored.change(&mut batch, &next)?;
                    Task::sealing_anew(edge.now()).begin_again(store, &mut batch).await?;
                    keys
                }
            };
            let body = body(store, &keys, Some(&next)).await?;
            Ok(Prepared { batch, body: body.to_string().into(), revision: 1, object: None, asks: Vec::new() })
        })
    }
}

impl Rotate<'_> {
    /// The keys of the file, the newest of which is another one than the key in use, and is known to all servers.
    async fn newer_than(&self, current: &Fingerprint) -> Result<Arc<MasterKeys>, Error> {
        let (hooks, conflict) = (&self.app.hooks, |why: String| Error::Conflict(why));
        let mut keys = hooks.keys.reload().await.map_err(|why| self.by_hand(&why))?;
        if keys.newest().fingerprint() == current && !self.app.store.is_shared() {
            keys = hooks.keys.add().await.map_err(|why| self.by_hand(&why))?;
        }
        if keys.newest().fingerprint() == current {
            return Err(conflict(
                "The last line of the server's file of master keys is the key in use. Append a new key to the file of each \
                 server with `openssl rand -hex 32`, and repeat the request."
                    .into(),
            ));
        }
        match servers_without_key(hooks, keys.newest().fingerprint()).await? {
            0 => Ok(keys),
            lacking => Err(conflict(format!(
                "{lacking} of the other servers lack key {} in their file of master keys. Append it there too, wait 5 \
                 seconds, and repeat the request.",
                keys.newest().fingerprint()
            ))),
        }
    }

    /// The server cannot write or read its file. Its path is for the log only.
    fn by_hand(&self, why: &str) -> Error {
        tracing::warn!(why, "the master key was not rotated");
        Error::Conflict(
            "The server cannot change its file of master keys; its log says why. Append a new key as the last line of the \
             file with `openssl rand -hex 32`, and repeat the request."
                .into(),
        )
    }
}

fn schema() -> Value {
    let fingerprint = |description: &str| json!({"type": ["string", "null"], "description": description});
    let ids = json!({"type": "array", "items": {"type": "string", "format": "uuid"}});
    let properties = json!({
        "object": text("Always `master_key`."),
        "fingerprint": fingerprint("Names the key that seals webhook secrets. It does not tell the key."),
        "former_fingerprint": fingerprint("The key before, while a rotation runs."),
        "newest_fingerprint": text("The last key in the file of this server."),
        "webhook_endpoints": described(shapes::at_least(0), "Endpoints with a secret."),
        "unreadable": described(shapes::at_least(0), "Endpoints whose secret no key of this server opens. Nothing is sent to them until their secret is rotated."),
        "unreadable_ids": described(ids, "The first 100 of them."),
        "calendar_feeds": described(shapes::at_least(0), "Calendar feeds with an address."),
        "unreadable_calendar_feeds": described(shapes::at_least(0), "Calendar feeds whose address no key of this server opens. They are not read until they are made again."),
    });
    object("", properties)
}

fn document() -> Value {
    let example = json!({
        "object": "master_key", "fingerprint": "5f1c0a9d3e7b2468", "former_fingerprint": null,
        "newest_fingerprint": "5f1c0a9d3e7b2468", "webhook_endpoints": 12, "unreadable": 0, "unreadable_ids": [],
        "calendar_feeds": 3, "unreadable_calendar_feeds": 0,
    });
    json!({
        "operationId": "getMasterKey",
        "tags": ["Service"],
        "summary": "Master key of the store",
        "description": "Which key seals webhook secrets, and whose secrets it opens. Never a key itself. Needs the token of an operator with the role `owner`, or the admin token.",
        "security": [{"adminToken": []}],
        "responses": parts::responses_of(&parts::success("MasterKey", example), &["400", "401", "403", "500", "503"]),
    })
}
