//! Connections that are cut, a database that restarts or hangs: what was acknowledged is there, once.

use super::super::{Cluster, key, on_postgres, open_with, runtime};
use rental_core::store::{Batch, Commit, Prior, Store, StoreError, Write, postgres::Postgres};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, UnixStream},
    sync::watch,
    time::{sleep, timeout},
};

/// How the inserts of one task ended, by number.
#[derive(Default)]
struct Ended {
    applied: Vec<u32>,
    refused: Vec<u32>,
    unknown: Vec<u32>,
}

/// Inserts records, each together with one more on the task's own counter, until told to stop.
async fn insert(store: Arc<Postgres>, task: usize, stop: Arc<AtomicBool>) -> Ended {
    let (mut ended, mut number) = (Ended::default(), 0);
    let counter = key(&format!("count-{task}"));
    while !stop.load(Ordering::Relaxed) {
        let Ok(mut seen) = store.get(std::slice::from_ref(&counter)).await else {
            sleep(Duration::from_millis(10)).await;
            continue;
        };
        number += 1;
        let mut batch = Batch::default();
        match seen.remove(0) {
            Some(record) => batch.replace(counter.clone(), record.revision, "n".into()),
            None => batch.insert(counter.clone(), "n".into()),
        }
        // No check: applied twice it would show in the counter alone.
        batch.writes.push(Write::Put(key(&format!("row-{task}-{number}")), 1, "v".into(), Prior::Any));
        match store.commit(batch).await {
            Ok(Commit::Applied) => ended.applied.push(number),
            Ok(Commit::Stale(_)) => panic!("nobody else writes this counter: a batch was applied twice"),
            Err(StoreError::Unknown(_)) => ended.unknown.push(number),
            Err(StoreError::Unavailable(_) | StoreError::Busy) => ended.refused.push(number),
            Err(error) => panic!("{error}"),
        }
    }
    ended
}

/// Eight tasks on two servers insert while `disturb` does its work; then what they were told is compared with what is there.
async fn insert_while(url: &str, disturb: impl Future<Output = ()>) -> (usize, usize) {
    let patience = Duration::from_secs(5);
    let servers = [Arc::new(open_with(url, patience).await), Arc::new(open_with(url, patience).await)];
    insert_on(servers, disturb).await
}

async fn insert_on(servers: [Arc<Postgres>; 2], disturb: impl Future<Output = ()>) -> (usize, usize) {
    let stop = Arc::new(AtomicBool::new(false));
    let tasks: Vec<_> =
        (0..8).map(|task| tokio::spawn(insert(Arc::clone(&servers[task % 2]), task, Arc::clone(&stop)))).collect();
    disturb.await;
    // It goes on by itself.
    sleep(Duration::from_millis(500)).await;
    let before = servers.each_ref().map(|server| server.stats().batches);
    sleep(Duration::from_millis(500)).await;
    let after = servers.each_ref().map(|server| server.stats().batches);
    assert!(after[0] > before[0] && after[1] > before[1], "both servers write again: {before:?}, {after:?}");
    stop.store(true, Ordering::Relaxed);
    let (mut applied, mut unknown) = (0, 0);
    for (task, ended) in tasks.into_iter().enumerate() {
        let ended = ended.await.unwrap();
        let there = |number: u32| {
            let keys = [key(&format!("row-{task}-{number}"))];
            let store = Arc::clone(&servers[0]);
            async move { store.get(&keys).await.unwrap()[0].is_some() }
        };
        let mut present = 0;
        for number in &ended.applied {
            assert!(there(*number).await, "task {task}: {number} was acknowledged and is lost");
            present += 1;
        }
        for number in &ended.refused {
            assert!(!there(*number).await, "task {task}: {number} was said not to be written, and is there");
        }
        for number in &ended.unknown {
            present += u64::from(there(*number).await);
        }
        let count = servers[0].get(&[key(&format!("count-{task}"))]).await.unwrap().remove(0);
        assert_eq!(count.map_or(0, |record| record.revision), present, "task {task}: each was applied once");
        applied += ended.applied.len();
        unknown += ended.unknown.len();
    }
    (applied, unknown)
}

#[test]
fn a_cut_connection_loses_no_acknowledged_batch_and_repeats_none() {
    on_postgres(|cluster| async move {
        let url = cluster.database();
        let name = url.split(['/', '?']).nth(3).unwrap().to_owned();
        let cut = Arc::new(Mutex::new(0));
        let disturb = async {
            for round in 0..100_u64 {
                let (name, cut) = (name.clone(), Arc::clone(&cut));
                // At a different moment of the writers' work each time.
                sleep(Duration::from_micros(1000 + round * 377 % 5000)).await;
                let killed = tokio::task::spawn_blocking(move || {
                    cluster.sql(&name, "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
                });
                *cut.lock().unwrap() += killed.await.unwrap().parse::<u32>().unwrap();
            }
        };
        let (applied, unknown) = insert_while(&url, disturb).await;
        let cut = *cut.lock().unwrap();
        println!("{applied} applied, {unknown} unknown, {cut} connections cut");
        assert!(applied > 100 && cut > 100, "{applied} applied, {cut} cut");
        assert_eq!(unknown, 0, "the database was there all the time, so each outcome could be found out");
    });
}

#[test]
fn a_database_that_crashes_and_comes_back_loses_nothing() {
    let Some(cluster) = Cluster::start().map(Arc::new) else { return };
    runtime().block_on(async {
        let url = cluster.database();
        let again = Arc::clone(&cluster);
        let disturb = async move {
            for _ in 0..4 {
                sleep(Duration::from_millis(400)).await;
                let cluster = Arc::clone(&again);
                tokio::task::spawn_blocking(move || cluster.restart()).await.unwrap();
            }
            sleep(Duration::from_millis(300)).await;
        };
        let (applied, unknown) = insert_while(&url, disturb).await;
        println!("{applied} applied, {unknown} unknown");
        assert!(applied > 100, "{applied} applied");
    });
}

#[test]
fn how_a_commit_ended_whose_answer_was_lost_is_found_out() {
    on_postgres(|cluster| async move {
        let url = cluster.database();
        let (port, commits) = cutting_proxy(cluster).await;
        let name = url.split(['/', '?']).nth(3).unwrap();
        let through = format!("postgres://postgres@127.0.0.1:{port}/{name}?sslmode=disable");
        let (applied, unknown) = insert_while(&through, sleep(Duration::from_secs(3))).await;
        let commits = commits.load(Ordering::Relaxed);
        println!("{applied} applied, {unknown} unknown, {} of {commits} commits cut", commits / 3);
        assert!(commits > 60, "{commits}");
        assert_eq!(unknown, 0);
    });
}

/// Where a connection is cut.
#[derive(Clone, Copy)]
enum Cut {
    BeforeCommit,
    AfterCommit,
}

/// Passes bytes on. Every third commit is cut: it never arrives, or its answer does not.
async fn cutting_proxy(cluster: &Cluster) -> (u16, Arc<AtomicU32>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let commits = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&commits);
    let socket = cluster.directory.join(".s.PGSQL.5432");
    tokio::spawn(async move {
        loop {
            let (near, _) = listener.accept().await.unwrap();
            near.set_nodelay(true).unwrap();
            let (far, commits) = (UnixStream::connect(&socket).await.unwrap(), Arc::clone(&counted));
            tokio::spawn(async move {
                let ((mut from, mut back), (mut answers, mut to)) = (near.into_split(), far.into_split());
                let silenced = Arc::new(AtomicBool::new(false));
                let cut_off = Arc::clone(&silenced);
                let asking = async move {
                    let mut bytes = vec![0; 1 << 20];
                    loop {
                        let Ok(count @ 1..) = from.read(&mut bytes).await else { return };
                        let said = &bytes[..count];
                        let at = said.windows(7).position(|window| window == b"COMMIT\0");
                        let cut = at.and_then(|at| match commits.fetch_add(1, Ordering::Relaxed) % 6 {
                            1 => Some((Cut::BeforeCommit, at)),
                            4 => Some((Cut::AfterCommit, at)),
                            _ => None,
                        });
                        let passed = match cut {
                            // The message begins with its type and length.
                            Some((Cut::BeforeCommit, at)) => &said[..at - 5],
                            _ => said,
                        };
                        silenced.store(cut.is_some(), Ordering::Relaxed);
                        if to.write_all(passed).await.is_err() {
                            return;
                        }
                        if cut.is_some() {
                            break;
                        }
                    }
                    // The database gets to do what it was told; nobody hears of it.
                    sleep(Duration::from_millis(20)).await;
                };
                let answering = async move {
                    let mut bytes = vec![0; 1 << 16];
                    while let Ok(count @ 1..) = answers.read(&mut bytes).await {
                        if cut_off.load(Ordering::Relaxed) || back.write_all(&bytes[..count]).await.is_err() {
                            break;
                        }
                    }
                };
                tokio::join!(asking, answering);
            });
        }
    });
    (port, commits)
}

/// Passes bytes on until told to hold them.
async fn proxy(cluster: &Cluster) -> (u16, watch::Sender<bool>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (hold, held) = watch::channel(false);
    let socket = cluster.directory.join(".s.PGSQL.5432");
    tokio::spawn(async move {
        loop {
            let (mut near, _) = listener.accept().await.unwrap();
            near.set_nodelay(true).unwrap();
            let (socket, mut held) = (socket.clone(), held.clone());
            tokio::spawn(async move {
                until(&mut held, false).await;
                let Ok(mut far) = UnixStream::connect(&socket).await else { return };
                let silent = tokio::select! {
                    _ = copy_bidirectional(&mut near, &mut far) => false,
                    () = until(&mut held, true) => true,
                };
                if silent {
                    // Both ends stay open and hear nothing; later they are closed.
                    until(&mut held, false).await;
                }
            });
        }
    });
    (port, hold)
}

async fn until(held: &mut watch::Receiver<bool>, state: bool) {
    let _ = held.wait_for(|held| *held == state).await;
}

#[test]
fn a_server_that_goes_silent_in_the_middle_of_a_commit_does_not_stop_the_others() {
    let Some(cluster) = Cluster::start() else { return };
    runtime().block_on(async {
        let url = cluster.database();
        let (port, hold) = proxy(&cluster).await;
        let name = url.split(['/', '?']).nth(3).unwrap();
        let through = format!("postgres://postgres@127.0.0.1:{port}/{name}?sslmode=disable");
        let patience = Duration::from_secs(1);
        let silent = Arc::new(open_with(&through, patience).await);
        let other = Arc::new(open_with(&url, patience).await);
        let (watched, hold) = (Arc::clone(&other), &hold);
        let disturb = async move {
            for _ in 0..4 {
                sleep(Duration::from_millis(300)).await;
                hold.send(true).unwrap();
                // Until the database gives up on the silent one, which may hold the lock.
                sleep(patience * 2).await;
                let before = watched.stats().batches;
                sleep(Duration::from_millis(500)).await;
                assert!(watched.stats().batches > before, "the other one is stopped");
                hold.send(false).unwrap();
                sleep(Duration::from_millis(500)).await;
            }
        };
        let (applied, unknown) = insert_on([silent, other], disturb).await;
        println!("{applied} applied, {unknown} unknown");
    });
}

#[test]
fn a_silent_database_is_an_error_in_bounded_time_and_service_resumes() {
    let Some(cluster) = Cluster::start() else { return };
    runtime().block_on(async {
        let url = cluster.database();
        let (port, hold) = proxy(&cluster).await;
        let name = url.split(['/', '?']).nth(3).unwrap();
        let through = format!("postgres://postgres@127.0.0.1:{port}/{name}?sslmode=disable");
        let patience = Duration::from_secs(1);
        let store = Arc::new(open_with(&through, patience).await);
        let batch = |n: u32| {
            let mut batch = Batch::default();
            batch.insert(key(&n.to_string()), vec![b'x'; 100_000].into());
            batch
        };
        for round in 0..3 {
            assert_eq!(store.commit(batch(round * 10_000)).await, Ok(Commit::Applied), "{round}");
            assert_eq!(store.ready().await, Ok(()));
            hold.send(true).unwrap();
            let began = Instant::now();
            let mut tasks = Vec::new();
            // Far more than there are connections, and more bytes than the queue takes.
            for n in 1..1000 {
                let store = Arc::clone(&store);
                let batch = batch(round * 10_000 + n);
                tasks.push(tokio::spawn(async move {
                    if n % 2 == 0 {
                        store.commit(batch).await.map(drop)
                    } else {
                        store.get(&[key("0")]).await.map(drop)
                    }
                }));
            }
            for task in tasks {
                let ended = task.await.unwrap();
                assert!(
                    matches!(ended, Err(StoreError::Unavailable(_) | StoreError::Busy | StoreError::Unknown(_))),
                    "{ended:?}"
                );
            }
            assert!(store.ready().await.is_err());
            assert!(began.elapsed() < patience * 6, "{:?}", began.elapsed());
            hold.send(false).unwrap();
            let back = async {
                while store.ready().await.is_err() || store.get(&[key("0")]).await.is_err() {
                    sleep(Duration::from_millis(20)).await;
                }
            };
            timeout(Duration::from_secs(5), back).await.expect("it serves again");
        }
    });
}
