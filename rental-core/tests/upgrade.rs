//! Upgrades of stores that older programs wrote (`fixtures/stores/README.md`).

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests do")]

#[path = "upgrade/damaged.rs"]
mod damaged;
#[path = "upgrade/fresh.rs"]
mod fresh;
#[path = "upgrade/interrupted.rs"]
mod interrupted;
#[path = "upgrade/stores.rs"]
mod stores;
