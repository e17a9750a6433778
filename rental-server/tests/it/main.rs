//! Black-box tests: the real program, over real HTTP, on real stores. Files mirror the URL space and the promises.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests do")]

mod support;

mod auth;
mod backup;
mod calendars;
mod cli;
mod conditional;
mod connections;
mod coverage;
mod crash;
mod damaged_file;
mod damaged_pages;
mod documents;
mod early_responses;
mod errors;
mod events_in_store;
mod failed_sync;
mod faults;
mod full_disk;
mod headers;
mod histories;
mod holds;
mod idempotency;
mod lists;
mod metrics;
mod notices;
mod observability;
mod operator;
mod overload;
mod own_backups;
mod postgres;
mod process;
mod quotas;
mod routes;
mod status;
mod telemetry;
mod tenants;
mod tls;
mod upgrade;
mod versions;
mod webhooks;
