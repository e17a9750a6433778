//! Looking after a store: damage is found and never served, a backup gives back the same rows, a restore is whole or
//! nothing. `RENTAL_BIT_ROT=1000` flips a thousand bits instead of a hundred.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests do")]

#[path = "care/archive.rs"]
mod archive;
#[path = "care/branches.rs"]
mod branches;
#[path = "care/damage.rs"]
mod damage;
#[path = "care/damaged_pages.rs"]
mod damaged_pages;
#[path = "care/fleet.rs"]
mod fleet;
#[path = "care/left_over.rs"]
mod left_over;
#[path = "care/out_of_order.rs"]
mod out_of_order;
#[path = "care/references.rs"]
mod references;
#[path = "care/restore.rs"]
mod restore;
#[path = "care/salvage.rs"]
mod salvage;
#[path = "care/unreadable.rs"]
mod unreadable;
