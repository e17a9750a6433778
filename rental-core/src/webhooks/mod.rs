//! Webhooks without sockets: signatures, the retry schedule, the decision after an attempt, and the allowed targets.
//!
//! A *delivery* is one event for one endpoint. It makes up to 6 *attempts*: 1 and the retries of the schedule. An attempt
//! succeeds on any 2xx response in time. Delivery is at-least-once: receivers deduplicate by event id.
//! Absent on purpose: clocks, sockets, randomness. Every function takes `now`.

pub mod attempt;
pub mod cluster;
pub mod concurrency;
pub mod deletion;
pub mod fan_out;
pub mod master_key;
pub mod secret;
pub mod signature;
pub mod target;
