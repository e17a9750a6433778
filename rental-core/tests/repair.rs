//! The repair of a closed store: it removes what cannot be read, derives what follows from the rest, and leaves every other row as it is.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests do")]

#[path = "postgres/cluster.rs"]
mod cluster;
#[path = "repair/damage.rs"]
mod damage;
#[path = "repair/interrupted.rs"]
mod interrupted;
#[path = "repair/leaving.rs"]
mod leaving;
#[path = "repair/references.rs"]
mod references;
#[path = "repair/sound.rs"]
mod sound;
#[expect(dead_code, reason = "tests of upgrades use the rest")]
#[path = "upgrade/stores.rs"]
mod stores;
