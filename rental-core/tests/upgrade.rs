//! Upgrades of stores that older programs wrote (`fixtures/stores/README.md`).

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests do")]

#[path = "upgrade/answers.rs"]
mod answers;
#[path = "postgres/cluster.rs"]
mod cluster;
#[path = "upgrade/damaged.rs"]
mod damaged;
#[path = "upgrade/database.rs"]
mod database;
#[path = "upgrade/fresh.rs"]
mod fresh;
#[path = "upgrade/interrupted.rs"]
mod interrupted;
#[path = "upgrade/moved.rs"]
mod moved;
#[path = "upgrade/room.rs"]
mod room;
#[path = "upgrade/schema.rs"]
mod schema;
#[path = "upgrade/stores.rs"]
mod stores;
