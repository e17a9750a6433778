//! Upgrades of a store in PostgreSQL, which servers of the older version still use.

use crate::{
    cluster::Cluster,
    stores::{STORES, everything, fixture, memory, rows_of, same, strip, upgrade, version_of, wait},
};
use rental_core::{
    store::{
        Batch, Commit, Key, Prior, SCHEMA_VERSION, Span, Store, StoreError, Versioned,
        postgres::{Address, Postgres, Settings},
    },
    upgrade::{State, Step, Upgrade, state},
};
use std::{
    io::Write as _,
    process::{Command, Stdio},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};
use uuid::Uuid;

fn settings() -> Settings {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let writer = Uuid::from_u128(NEXT.fetch_add(1, Ordering::Relaxed).into());
    Settings { writer, patience: Duration::from_secs(10) }
}

async fn open(url: &str) -> Postgres {
    Postgres::open_any_version(&Address::parse(url).unwrap(), None, settings()).await.expect("it opens")
}

/// The dump of a fixture in a new database; its URL.
fn restored(cluster: &Cluster, directory: &str) -> String {
    let url = cluster.database();
    let name = url.split(['/', '?']).rfind(|part| part.starts_with("test")).unwrap().to_owned();
    let host = cluster.directory.to_string_lossy().into_owned();
    let mut psql = Command::new(cluster.program("psql"))
        .args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-U", "postgres", "-h", &host, "-d", &name])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("psql runs");
    psql.stdin.take().unwrap().write_all(&fixture(directory, "database.sql")).unwrap();
    assert!(psql.wait().unwrap().success(), "the dump was not loaded");
    url
}

#[test]
fn postgres_equals_the_model() {
    let Some(cluster) = Cluster::shared() else { return };
    wait(async {
        for directory in STORES {
            let store = open(&restored(cluster, directory)).await;
            assert!(matches!(state(&store).await, Ok(State::Older(version)) if version == version_of(directory)));
            let before = everything(&store).await;
            assert!(before.keys().any(|key| key.as_bytes()[0] == b'j'), "the fixture has bells");
            let model = rental_core::store::memory::Memory::of_version(version_of(directory));
            crate::stores::fill(&model, &before).await;
            upgrade(&model).await;
            upgrade(&store).await;
            same(&everything(&store).await, &everything(&model).await, "postgres");
            assert!(matches!(state(&store).await, Ok(State::Current)));
            store.close().await;
        }
    });
}

/// From the first transaction of the upgrade on, a server of the version before neither writes nor reads.
#[test]
fn an_old_server_stops_with_a_clear_line() {
    let Some(cluster) = Cluster::shared() else { return };
    wait(async {
        let url = restored(cluster, "v12");
        let (old, new) = (open(&url).await, open(&url).await);
        let key = Key::from_bytes(b"zold");
        let write = |value: &'static [u8]| {
            let mut batch = Batch::default();
            batch.put(key.clone(), value.into(), Prior::Any);
            batch
        };
        assert_eq!(old.commit(write(b"before")).await, Ok(Commit::Applied));
        let mut upgrade = Upgrade::begin(&new).await.unwrap().unwrap();
        let rows = everything(&new).await;
        let told = |error: StoreError| {
            let StoreError::Unavailable(text) = error else { panic!("{error:?}") };
            assert!(text.contains("this server works with 12") && text.contains("start its new version"), "{text}");
        };
        told(old.commit(write(b"after")).await.unwrap_err());
        told(old.get(std::slice::from_ref(&key)).await.unwrap_err());
        told(old.get(&[Key::from_bytes(b"nothing is here")]).await.unwrap_err());
        told(old.scan(&Span::everything(), 1).await.unwrap_err());
        let empty = Span { from: Key::from_bytes(b"zz"), to: Key::from_bytes(b"zzz"), ..Span::everything() };
        told(old.scan(&empty, 1).await.unwrap_err());
        let follow = Span::newest_first(&Key::from_bytes(b"i")).following(Key::from_bytes(b"r"));
        told(old.scan(&follow, 1).await.unwrap_err());
        told(old.ready().await.unwrap_err());
        told(old.snapshot().await.err().expect("it is refused"));
        same(&everything(&new).await, &rows, "nothing of the old server came after the fence");
        while upgrade.step().await.unwrap() != Step::Done {}
        drop(upgrade);
        assert_eq!(new.version().await, Ok(SCHEMA_VERSION));
        assert_eq!(new.get(std::slice::from_ref(&key)).await.unwrap()[0].as_ref().unwrap().value, "before");
        new.ready().await.expect("the new server serves");
        old.close().await;
        new.close().await;
    });
}

/// The other server claims the store between two questions of this one.
#[test]
fn a_server_that_starts_while_another_one_upgrades_goes_on_with_the_new_version() {
    let Some(cluster) = Cluster::shared() else { return };
    wait(async {
        for ask_for_marker in [false, true] {
            let url = restored(cluster, "v12");
            let (late, first) = (open(&url).await, open(&url).await);
            let upgrade = Upgrade::begin(&first).await.unwrap();
            if ask_for_marker {
                assert!(matches!(state(&late).await, Ok(State::Unfinished(_))));
            } else {
                assert_eq!(late.is_half_loaded().await, Ok(false));
            }
            drop(upgrade);
            late.close().await;
            first.close().await;
        }
    });
}

#[test]
fn servers_that_upgrade_at_once_equal_one() {
    let Some(cluster) = Cluster::shared() else { return };
    wait(async {
        let url = restored(cluster, "v12");
        let (first, second) = (open(&url).await, open(&url).await);
        strip(&first).await;
        let before = everything(&first).await;
        let model = rental_core::store::memory::Memory::of_version(12);
        crate::stores::fill(&model, &before).await;
        upgrade(&model).await;
        let mut one = Upgrade::begin(&first).await.unwrap().unwrap().in_batches_of(30);
        let mut other = Upgrade::begin(&second).await.unwrap().unwrap().in_batches_of(30);
        // After the second step, the window of the first one is committed: what the other server submits comes too late.
        assert_eq!([one.step().await, one.step().await], [Ok(Step::Continue), Ok(Step::Continue)]);
        let mut steps = 0;
        while other.step().await.unwrap() != Step::Overtaken {
            steps += 1;
            assert!(steps < 10, "they never met");
        }
        let to_the_end = async |mut upgrade: Upgrade<'_>| while upgrade.step().await.unwrap() != Step::Done {};
        tokio::join!(to_the_end(one), to_the_end(other));
        same(&everything(&first).await, &everything(&model).await, "both");
        first.close().await;
        second.close().await;
    });
}

/// A store that is read into a database as version 12 is upgraded before anybody may open it.
#[test]
fn a_database_of_an_older_version_is_refused_until_it_is_upgraded() {
    let Some(cluster) = Cluster::shared() else { return };
    wait(async {
        let url = restored(cluster, "v12");
        let address = Address::parse(&url).unwrap();
        let refused = Postgres::open(&address, None, settings()).await.err().expect("it is refused").to_string();
        assert!(refused.contains("schema version 12") && refused.contains("rental-cli store upgrade"), "{refused}");
        let store = open(&url).await;
        strip(&store).await;
        let mut begun = Upgrade::begin(&store).await.unwrap().unwrap().in_batches_of(30);
        assert_eq!(begun.step().await, Ok(Step::Continue));
        drop(begun);
        let refused = Postgres::open(&address, None, settings()).await.err().expect("it is refused").to_string();
        assert!(refused.contains("did not come to its end"), "{refused}");
        upgrade(&store).await;
        store.close().await;
        Postgres::open(&address, None, settings()).await.expect("it is of the present version").close().await;
        let next = SCHEMA_VERSION + 1;
        cluster.sql(&name(&url), &format!("UPDATE rental.store SET schema_version = {next}"));
        let newer =
            Postgres::open_any_version(&address, None, settings()).await.err().expect("it is refused").to_string();
        assert!(newer.contains(&format!("has schema version {next}")) && newer.contains("no way back"), "{newer}");
    });
}

fn name(url: &str) -> String {
    url.split(['/', '?']).rfind(|part| part.starts_with("test")).unwrap().to_owned()
}

/// The same rows, whichever engine had them.
#[test]
fn a_file_and_a_database_become_the_same() {
    let Some(cluster) = Cluster::shared() else { return };
    let rows = rows_of("v12");
    let model = memory("v12", &rows);
    wait(async {
        upgrade(&model).await;
        let url = cluster.database();
        let store = open(&url).await;
        assert_eq!(store.change_version(SCHEMA_VERSION, 12, Batch::default()).await, Ok(true));
        crate::stores::fill(&store, &rows).await;
        upgrade(&store).await;
        same(&everything(&store).await, &everything(&model).await, "v12");
        store.close().await;
    });
}

/// The present version would be a guess: rows of version 12 would never be upgraded.
#[test]
fn rows_without_a_version_are_refused_and_get_none() {
    let Some(cluster) = Cluster::shared() else { return };
    wait(async {
        for damage in ["DELETE FROM rental.store", "DROP TABLE rental.store"] {
            let url = restored(cluster, "v12");
            let address = Address::parse(&url).unwrap();
            cluster.sql(&name(&url), damage);
            for _ in 0..2 {
                let refused = Postgres::open_any_version(&address, None, settings()).await;
                let Some(StoreError::DamagedStore(text)) = refused.err() else { panic!("it is damaged") };
                for words in ["rental.store", "--single-transaction", "VALUES (1, VERSION, 0)", "nothing was changed"] {
                    assert!(text.contains(words), "{text}");
                }
                assert!(text.lines().count() == 1, "{text}");
            }
            let tables = cluster.sql(&name(&url), "SELECT count(*) FROM pg_tables WHERE schemaname = 'rental'");
            assert_eq!(tables, if damage.starts_with("DROP") { "2" } else { "3" });
        }
        // As the message says.
        let url = restored(cluster, "v12");
        cluster.sql(&name(&url), "DELETE FROM rental.store");
        cluster.sql(&name(&url), "INSERT INTO rental.store (id, schema_version, commits) VALUES (1, 12, 0)");
        let store = open(&url).await;
        assert!(matches!(state(&store).await, Ok(State::Older(12))));
        store.close().await;
    });
}

/// The tables are created in one transaction by PostgreSQL, but by databases like it possibly not.
#[test]
fn empty_tables_without_a_version_become_a_store() {
    let Some(cluster) = Cluster::shared() else { return };
    wait(async {
        let url = cluster.database();
        open(&url).await.close().await;
        cluster.sql(&name(&url), "DELETE FROM rental.store");
        let store = open(&url).await;
        assert_eq!(store.version().await, Ok(SCHEMA_VERSION));
        store.close().await;
    });
}
