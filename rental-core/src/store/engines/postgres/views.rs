//! Creates views for people who query the database. The caller provides their statements.

use super::session::{self, describe};
use deadpool_postgres::Pool;
use std::time::Duration;
use tokio::time::timeout;
use tokio_postgres::error::SqlState;

/// How often a view is tried while other servers create the same view.
const ATTEMPTS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// Creates each view. A view with other columns is dropped first, and then loses the grants of its readers.
pub(super) async fn make(pool: &Pool, patience: Duration, views: &[(&str, &str)]) -> Result<(), String> {
    let client = session::take(pool).await.map_err(|_| "the database does not answer".to_owned())?;
    for (name, create) in views {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let made = timeout(patience, client.batch_execute(create)).await;
            let error = match made {
                Ok(Ok(())) => break,
                Ok(Err(error)) => error,
                Err(_) => return Err("the database does not answer".into()),
            };
            match error.code() {
                // Another version of this program created the view with other columns.
                Some(code) if *code == SqlState::INVALID_TABLE_DEFINITION && attempts < ATTEMPTS => {
                    let anew = format!("BEGIN; DROP VIEW IF EXISTS rental.{name}; {create}; COMMIT");
                    if client.batch_execute(&anew).await.is_ok() {
                        break;
                    }
                    let _ = client.batch_execute("ROLLBACK").await;
                }
                // Another server creates it at the same time: PostgreSQL reports a duplicate or a changed tuple.
                Some(code) if is_race(code) && attempts < ATTEMPTS => {}
                _ => return Err(format!("view {name}: {}", describe(&error))),
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
    Ok(())
}

fn is_race(code: &SqlState) -> bool {
    let races = [
        SqlState::UNIQUE_VIOLATION,
        SqlState::DUPLICATE_TABLE,
        SqlState::INTERNAL_ERROR,
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
    ];
    races.contains(code)
}
