//! What every engine promises, and what this one adds.

use super::super::{Cluster, key, on_postgres, open, runtime};
use rental_core::store::{Batch, Check, Commit, Key, Prior, Store, StoreError, Write, conformance, postgres::Postgres};
use std::{sync::Arc, time::Duration};

/// Empties one database for each case; making a new one takes too long.
fn emptied<'a>(cluster: &'a Cluster, runtime: &'a tokio::runtime::Runtime) -> impl Fn() -> Postgres + 'a {
    let url = cluster.database();
    let name = url.split(['/', '?']).nth(3).expect("a name").to_owned();
    move || {
        let store = runtime.block_on(open(&url));
        cluster.sql(&name, "TRUNCATE rental.rows");
        store
    }
}

#[test]
fn postgres_behaves_like_the_model() {
    let Some(cluster) = Cluster::shared() else { return };
    let runtime = runtime();
    conformance::behaves_like_the_model(&runtime, 60, emptied(cluster, &runtime));
}

#[test]
fn racing_commits_on_postgres_have_one_winner() {
    let Some(cluster) = Cluster::shared() else { return };
    let runtime = runtime();
    conformance::racing_commits_have_one_winner(&runtime, emptied(cluster, &runtime));
}

#[test]
fn postgres_counts_what_commits_change() {
    let Some(cluster) = Cluster::shared() else { return };
    let runtime = runtime();
    conformance::counts_what_commits_change(&runtime, 60, emptied(cluster, &runtime));
}

#[test]
fn concurrent_batches_share_commits() {
    on_postgres(|cluster| async {
        let store = Arc::new(open(&cluster.database()).await);
        let tasks: Vec<_> = (0..200)
            .map(|n| {
                let store = Arc::clone(&store);
                let mut batch = Batch::default();
                batch.insert(key(&n.to_string()), "v".into());
                tokio::spawn(async move { store.commit(batch).await })
            })
            .collect();
        for task in tasks {
            assert_eq!(task.await.unwrap(), Ok(Commit::Applied));
        }
        let stats = store.stats();
        assert_eq!(stats.batches, 200);
        assert!(stats.commits < 100, "{stats:?}");
    });
}

#[test]
fn concurrent_reads_each_get_their_own() {
    on_postgres(|cluster| async {
        let store = Arc::new(open(&cluster.database()).await);
        let mut batch = Batch::default();
        (0..100).for_each(|n: u32| batch.insert(key(&n.to_string()), n.to_string().into()));
        assert_eq!(store.commit(batch).await, Ok(Commit::Applied));
        let wanted = |n: u32| vec![n % 100, 200 + n, n % 7, n % 100];
        let read = |n: u32| {
            let (store, keys) = (Arc::clone(&store), wanted(n).iter().map(|n| key(&n.to_string())).collect::<Vec<_>>());
            tokio::spawn(async move { store.get(&keys).await })
        };
        let tasks: Vec<_> = (0..1000).map(read).collect();
        // Callers that go away disturb nobody.
        tasks.iter().step_by(3).for_each(tokio::task::JoinHandle::abort);
        for (n, task) in (0..).zip(tasks) {
            let Ok(found) = task.await else { continue };
            let expected = wanted(n).into_iter().map(|n| (n < 100).then(|| n.to_string()));
            let found =
                found.unwrap().into_iter().map(|row| row.map(|row| String::from_utf8(row.value.to_vec()).unwrap()));
            assert!(found.eq(expected), "{n}");
        }
    });
}

#[test]
fn rows_that_were_taken_for_new_may_be_there() {
    on_postgres(|cluster| async {
        let store = open(&cluster.database()).await;
        let named = |kind: &str, id: u8| Key::from_bytes(&[kind.as_bytes(), &[id; 16]].concat());
        let put = |key: Key, value: &'static str| Write::Put(key, 0, value.into(), Prior::New);
        let mut old = Batch::default();
        old.writes.extend([put(named("i", 1), "old"), put(named("i", 2), "old")]);
        assert_eq!(store.commit(old).await, Ok(Commit::Applied));
        // An entry that is named after a new record, and one of a record that turns out to be there.
        let mut new = Batch::default();
        new.insert(named("r", 1), "new".into());
        new.writes.push(put(named("i", 1), "new"));
        assert_eq!(store.commit(new.clone()).await, Ok(Commit::Applied));
        let mut late = Batch::default();
        late.insert(named("r", 3), "new".into());
        let (again, other) = futures_util::future::join(store.commit(new), store.commit(late)).await;
        assert_eq!((again, other), (Ok(Commit::Stale(named("r", 1))), Ok(Commit::Applied)));
        let keys = [named("r", 1), named("i", 1), named("i", 2), named("r", 3)];
        let found = store.get(&keys).await.unwrap();
        let found: Vec<_> = found.into_iter().map(|row| row.unwrap().value).collect();
        assert_eq!(found, ["new", "new", "old", "new"]);
    });
}

#[test]
fn a_batch_that_the_database_cannot_hold_fails_alone() {
    on_postgres(|cluster| async {
        let store = Arc::new(open(&cluster.database()).await);
        // An index of PostgreSQL holds keys up to a third of a page, and repeated bytes would be packed.
        let mut seed = 7_u32;
        let long: String = (0..20_000)
            .map(|_| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                char::from(b'!' + u8::try_from(seed >> 26).unwrap())
            })
            .collect();
        let tasks: Vec<_> = (0..20)
            .map(|n| {
                let store = Arc::clone(&store);
                let mut batch = Batch::default();
                batch.insert(if n == 7 { key(&long) } else { key(&n.to_string()) }, "v".into());
                tokio::spawn(async move { store.commit(batch).await })
            })
            .collect();
        for (n, task) in tasks.into_iter().enumerate() {
            let outcome = task.await.unwrap();
            assert_eq!(outcome == Ok(Commit::Applied), n != 7, "{n}: {outcome:?}");
            assert!(n != 7 || matches!(outcome, Err(StoreError::Unavailable(_))));
        }
        assert_eq!(store.ready().await, Ok(()));
    });
}

#[test]
fn more_than_the_queue_holds_is_refused_at_once() {
    on_postgres(|cluster| async {
        let store = open(&cluster.database()).await;
        let waiting: Vec<_> = (0..80)
            .map(|n| {
                let mut batch = Batch::default();
                batch.insert(key(&n.to_string()), vec![b'x'; 1 << 20].into());
                store.commit(batch)
            })
            .collect();
        let mut busy = 0;
        for outcome in waiting {
            match outcome.await {
                Ok(Commit::Applied) => {}
                Err(StoreError::Busy) => busy += 1,
                other => panic!("{other:?}"),
            }
        }
        // The writer may have made some room meanwhile.
        assert!((1..=17).contains(&busy), "64 MB fit, {busy} of 80 were refused");
    });
}

/// Adds one to a row, beside checks of every kind.
async fn add_one(store: &Postgres) {
    let [row, there, absent] = ["row", "there", "absent"].map(key);
    let found = store.get(&[row.clone(), there.clone()]).await.unwrap();
    let mut batch = Batch::default();
    batch.checks.extend([Check::Present(there.clone()), Check::At(there, 1), Check::Absent(absent)]);
    batch.replace(row, found[0].as_ref().map_or(0, |row| row.revision), "one more".into());
    assert_eq!(store.commit(batch).await, Ok(Commit::Applied));
}

/// Plans of statements are kept, and autovacuum does not come at once.
#[test]
fn rows_are_looked_up_in_a_table_that_has_grown_since_it_was_analyzed() {
    on_postgres(|cluster| async {
        let url = cluster.database();
        let name = url.split(['/', '?']).nth(3).expect("a name");
        let store = open(&url).await;
        let mut first = Batch::default();
        ["row", "there"].into_iter().for_each(|name| first.insert(key(name), "first".into()));
        assert_eq!(store.commit(first).await, Ok(Commit::Applied));
        let grow = |from: u32, to: u32| {
            let rows = format!("SELECT decode(md5(n::text), 'hex'), 1, '' FROM generate_series({from}, {to}) n");
            cluster.sql(name, &format!("INSERT INTO rental.rows {rows}"));
        };
        grow(1, 20);
        cluster.sql(name, "VACUUM ANALYZE rental.rows");
        add_one(&store).await;
        grow(21, 50_000);
        for _ in 0..20 {
            add_one(&store).await;
        }
        // A session counts what it did after a second at the earliest, when it is used again.
        tokio::time::sleep(Duration::from_millis(1200)).await;
        add_one(&store).await;
        let read = "SELECT idx_tup_read FROM pg_stat_user_indexes WHERE indexrelname = 'rows_pkey'";
        let read: u64 = cluster.sql(name, read).parse().expect("a number");
        assert!((20..20_000).contains(&read), "{read} entries of the index were read");
    });
}

#[test]
fn a_snapshot_shows_one_moment() {
    on_postgres(|cluster| async {
        let store = open(&cluster.database()).await;
        conformance::a_snapshot_shows_one_moment(&store).await;
    });
}

#[test]
fn a_batch_of_checks_alone_tells_whether_they_hold() {
    on_postgres(|cluster| async {
        let store = open(&cluster.database()).await;
        let check = |check| Batch { checks: vec![check], writes: Vec::new() };
        assert_eq!(store.commit(check(Check::Absent(key("a")))).await, Ok(Commit::Applied));
        assert_eq!(store.commit(check(Check::Present(key("a")))).await, Ok(Commit::Stale(key("a"))));
        assert_eq!(store.stats().commits, 2 - 1);
    });
}
