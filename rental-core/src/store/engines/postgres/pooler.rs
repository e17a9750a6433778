//! Notices a pooler that gives each transaction another session of the database.

use super::session::Client;
use tokio_postgres::SimpleQueryMessage;

/// How often each connection says which session it has.
const ROUNDS: usize = 3;

/// Refuses a pooler in transaction mode, which keeps neither prepared statements nor settings. Without one, each of two open
/// connections has one session for all its transactions, and not that of the other.
pub(super) async fn check(one: &Client, other: &Client) -> Result<(), String> {
    let (mut first, mut second) = (None, None);
    for _ in 0..ROUNDS {
        for (client, seen) in [(one, &mut first), (other, &mut second)] {
            // Another engine may not have the function.
            let Some(session) = session(client).await else { return Ok(()) };
            if *seen.get_or_insert_with(|| session.clone()) != session {
                return Err(refusal());
            }
        }
    }
    if first == second { Err(refusal()) } else { Ok(()) }
}

/// The number of the database's process for the session. Not as a prepared statement, which such a pooler can lose.
async fn session(client: &Client) -> Option<String> {
    let answer = client.simple_query("SELECT pg_backend_pid()").await.ok()?;
    answer.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    })
}

fn refusal() -> String {
    "is behind a pooler in transaction mode, which loses prepared statements: use session pooling, such as `pool_mode = session` of pgbouncer".into()
}
