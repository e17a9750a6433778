//! Looking after a store: damage is found and never served, a backup gives back the same rows, a restore is whole or
//! nothing. `RENTAL_BIT_ROT=1000` flips a thousand bits instead of a hundred.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests do")]

#[path = "care/archive.rs"]
mod archive;
#[path = "care/crashed.rs"]
mod crashed;
#[path = "care/damage.rs"]
mod damage;
#[path = "care/damaged_pages.rs"]
mod damaged_pages;
#[path = "care/fleet.rs"]
mod fleet;
#[path = "care/left_over.rs"]
mod left_over;
#[path = "care/references.rs"]
mod references;
#[path = "care/restore.rs"]
mod restore;
