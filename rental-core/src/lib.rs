//! The rental platform without its edges.
//!
//! In reading order: [`value`] (values that exist are valid), [`spec`] (what a resource is, as data), [`resources`]
//! (the structs and their rules), [`body`] and [`page`] (what requests say), [`store`] (ordered keys and batches),
//! [`operation`] (the use cases, with [`edge`] for time and ids), [`effects`] (what an object means beside itself),
//! [`holds`] (no vehicle is booked twice), [`idempotency`], [`event`], [`access`],
//! [`attribution`] (who had the car), [`webhook`] (what deliveries look like and what follows an attempt), [`imports`] (files of
//! other systems as objects, and the export of an organization).
//!
//! Absent on purpose: HTTP, clocks, randomness, the environment, any runtime. `redb` appears in `store/redb.rs` and `store/redb/` only.
#![warn(missing_docs)]

pub mod access;
pub mod attribution;
pub mod body;
pub mod edge;
pub mod effects;
pub mod error;
pub mod event;
pub mod holds;
pub mod idempotency;
pub mod imports;
pub mod integrity;
pub mod operation;
pub mod page;
pub mod resources;
pub mod spec;
pub mod store;
pub mod value;
pub mod views;
pub mod webhook;
