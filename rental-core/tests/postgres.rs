//! The engine on PostgreSQL: it behaves like the model, several servers share one truth, and nothing is lost or done
//! twice when connections and the database fail.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests do")]

mod postgres {
    pub(crate) mod cluster;
    mod engine;
    mod faults;
    mod library;
    mod opening;
    mod pooler;
    mod servers;
}

use postgres::cluster::Cluster;
use rental_core::store::{
    Key,
    postgres::{Address, Postgres, Settings},
};
use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};
use tokio::runtime::{Builder, Runtime};
use uuid::Uuid;

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(4).enable_all().build().expect("a runtime starts")
}

/// Each server has a name of its own.
fn settings(patience: Duration) -> Settings {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    Settings { writer: Uuid::from_u128(NEXT.fetch_add(1, Ordering::Relaxed).into()), patience }
}

/// A server's store.
async fn open_with(url: &str, patience: Duration) -> Postgres {
    Postgres::open(&Address::parse(url).expect("a URL"), None, settings(patience)).await.expect("it opens")
}

async fn open(url: &str) -> Postgres {
    open_with(url, Duration::from_secs(5)).await
}

fn key(text: &str) -> Key {
    Key::from_bytes(format!("z{text}").as_bytes())
}

/// Runs `test` on the cluster that all share, if there is PostgreSQL.
fn on_postgres<T: Future<Output = ()>>(test: impl FnOnce(&'static Cluster) -> T) {
    if let Some(cluster) = Cluster::shared() {
        runtime().block_on(test(cluster));
    }
}
