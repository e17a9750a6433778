//! A vehicle rental platform as a library: open a store, create organizations, and work with typed objects.
//!
//! ```
//! use rental_core::{Platform, resources::{customer::Customer, rental::Rental, vehicle::Vehicle}};
//! use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), rental_core::error::Error> {
//! let fleet = Platform::in_memory().create_organization(json!({"name": "Sunrise Rentals"})).await?;
//! let tesla = fleet.create::<Vehicle>(json!({"name": "White Tesla", "daily_rate": 89.5})).await?;
//! let ada = fleet.create::<Customer>(json!({"full_name": "Ada Lovelace"})).await?;
//! let dates = json!({"vehicle_id": tesla.id, "customer_id": ada.id, "start_date": "2027-06-01", "end_date": "2027-06-05"});
//! let rental = fleet.create::<Rental>(dates).idempotency_key("booking-1042").await?;
//! assert_eq!(rental.final_price.map(|price| price.to_string()), Some("358".to_owned()));
//!
//! fleet.update::<Rental>(rental.id, json!({"status": "ACTIVE"})).await?;
//! let active = fleet.list::<Rental>().filter("status", "ACTIVE").await?;
//! assert_eq!(active.objects[0].customer_id, ada.id);
//! # Ok(())
//! # }
//! ```
//!
//! # For programs that link this crate
//!
//! 1. [`Platform`]: open a store, create an organization.
//! 2. [`platform::Fleet`]: one organization; create, get, list, update and export its objects. [`platform`] also has the
//!    options of writes and lists, events and API keys.
//! 3. [`resources`]: the structs of the objects, each with a `SPEC` that documents its fields and filters.
//! 4. [`value`]: ids, money, dates, times and other checked values. The type of an id says what it
//!    names: the id of a rental does not compile in the place of a vehicle's ([`value::Id`]).
//! 5. [`error`]: why a call can fail.
//!
//! # For readers of the code
//!
//! In reading order, each module uses only those before it: [`value`], [`store`] (ordered keys and batches), [`error`],
//! [`schema`] (descriptions of resources), [`rows`] (the kinds of rows in a store), [`resources`] (the structs and their
//! rules), [`fleet`] (which customer had a vehicle), [`calendars`] (iCalendar), [`request`] (parses bodies and list queries), [`operations`] (list, get,
//! create, update), [`webhooks`] (signatures, retries, owners of endpoints), [`erasing`] (a person), [`tasks`] (long operations that continue after
//! a restart), [`attachments`] (keeps automatic attachments true), [`imports`] (imports of files, and the export of an organization), [`upgrade`] (stores of older versions),
//! [`check`] (consistency of a store), and [`platform`].
//!
//! Absent on purpose: HTTP, the environment, any runtime; clocks and randomness, except in `platform/system.rs` behind
//! the feature `system`. `redb` appears in `store/engines/redb.rs` and `store/engines/redb/` only.
#![warn(missing_docs)]

pub mod attachments;
pub mod calendars;
pub mod check;
pub mod erasing;
pub mod error;
pub mod fleet;
pub mod imports;
pub mod operations;
pub mod platform;
pub mod request;
pub mod resources;
pub mod rows;
pub mod schema;
pub mod store;
pub mod tasks;
pub mod upgrade;
pub mod value;
pub mod webhooks;

pub use platform::Platform;
pub use schema::API_VERSION;

/// Runs the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
