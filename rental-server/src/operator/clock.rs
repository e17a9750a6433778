//! `POST /admin/v1/clock/confirm`: an owner says that the clock is right although it has jumped.

use super::{bodies, status};
use crate::{
    audit::Note,
    edge,
    endpoint::{Endpoint, Request, post},
    guard::Owner,
    http::reply::{Handled, Reply},
    reference::parts,
};
use rental_core::error::{Error, FieldCode};
use serde::Deserialize;
use serde_json::{Value, json};

/// The endpoint of this file.
pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![post("/admin/v1/clock/confirm").documented(document()).owner(|request| Box::pin(confirm(request)))]
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sent {
    seconds: Option<Value>,
}

/// The entry of the audit log is dated by the confirmed clock. So the next start sees that the newest object is not ahead of it.
async fn confirm(request: Request<'_, Owner>) -> Handled {
    let (Request { app, call, .. }, body) = request.read().await?;
    let Sent { seconds } = bodies::object(&body, "`seconds`")?;
    let seconds = seconds.ok_or_else(|| Error::field("seconds", FieldCode::Missing, "is required"))?;
    let seconds = seconds.as_i64();
    let seconds = seconds.ok_or_else(|| Error::field("seconds", FieldCode::Invalid, "must be a whole number"))?;
    let status = async || Ok(Reply::json(status::body(app).await.to_string().into()));
    let confirmed = match edge::confirm(seconds) {
        Ok(confirmed) => confirmed,
        // A request that is repeated, too.
        Err(None) => return status().await,
        Err(Some(jump)) => {
            let present = jump.seconds();
            let why = "Nothing was confirmed; look at the status again";
            return Err(Error::Conflict(format!(
                "The clock has jumped by {present} seconds, not by {seconds}. {why}."
            ))
            .into());
        }
    };
    if let Err(error) = Note::of(call, None).write(app.store(), &json!({"seconds": seconds})).await {
        edge::unconfirm(confirmed);
        return Err(error.into());
    }
    tracing::warn!(seconds, actor = call.actor(), "an operator confirmed that the clock is right");
    status().await
}

fn document() -> Value {
    let seconds = json!({"type": "integer", "format": "int64", "description": "`clock_jump.seconds` of the status."});
    json!({
        "operationId": "confirmClock",
        "tags": ["Service"],
        "summary": "Confirm the clock",
        "description": "Says that the server's clock is right although it has jumped, for this jump only: writes go on, dated by the clock. Each server is confirmed by itself. Without a jump nothing is done. Returns the status. Needs the token of an operator with the role `owner`, or the admin token.",
        "security": [{"adminToken": []}],
        "requestBody": parts::action_body(json!({"seconds": seconds}), &["seconds"], json!({"seconds": 86_400})),
        "responses": parts::responses_of(&parts::success("Status", Value::Null), &["400", "401", "403", "409", "413", "415", "500", "503"]),
    })
}
