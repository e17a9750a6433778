//! One and three servers on a PostgreSQL of their own, beside what `pgbench` reaches on it with inserts of single rows.

use crate::{Outcome, Server, asking, cluster::Cluster, posting, wrk};
use rental_core::store::{
    Batch, Check, Commit, Key, Prior, Store,
    postgres::{Address, Postgres, Settings},
};
use serde_json::json;
use std::{
    path::PathBuf,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// Rounds of every measurement, in turn; the first warms up.
const ROUNDS: usize = 4;
/// The table of pgbench.
const PLAIN: &str = "CREATE TABLE plain (id bigserial PRIMARY KEY, value text NOT NULL)";
/// Vehicles that are read in turn.
const VEHICLES: usize = 1000;

pub(crate) fn measure() -> Outcome<()> {
    let cluster = Cluster::shared().ok_or("PostgreSQL is not installed")?;
    let url = cluster.database();
    let servers = (0..3).map(|_| Server::on(&url)).collect::<Outcome<Vec<_>>>()?;
    let organization = servers[0].admin("/admin/v1/organizations", &json!({"name": "Bench"}))?;
    let key = servers[0]
        .admin("/admin/v1/api_keys", &json!({"organization_id": organization["id"], "scope": "read_write"}))?;
    let key = key["key"].as_str().unwrap_or_default();
    let vehicle = json!({"name": "White Tesla", "make": "Tesla", "model": "Model 3", "year": 2023, "plate": "ABC1234", "daily_rate": 89.5});
    let mut paths = Vec::new();
    for _ in 0..VEHICLES {
        let made = crate::post(&servers[0].address, "/v1/vehicles", key, &vehicle)?;
        paths.push(format!("/v1/vehicles/{}", made["id"].as_str().unwrap_or_default()));
    }
    let (post, read) = (posting(&vehicle)?, asking(&paths));
    let name = name_of(&url)?;
    cluster.sql(name, PLAIN);
    println!("{:28} {:>10} {:>10} {:>10} {:>26}", "", "pgbench", "1 server", "3 servers", "of pgbench (1 | 3)");
    for (what, script) in [("durable POST", Some(&post)), ("GET one of 1,000", Some(&read)), ("list of 20", None)] {
        for connections in [32, 128] {
            let mut rounds = Vec::new();
            for round in 0..ROUNDS {
                let plain = pgbench(cluster, name, connections)?;
                let load = (key, script.map(String::as_str), connections);
                let single = together(&servers[..1], load)?;
                let all = together(&servers, load)?;
                if round > 0 {
                    rounds.push([plain, single, all]);
                }
            }
            println!(
                "{:28} {:10.0} {:10.0} {:10.0} {:19.2} | {:.2}",
                format!("{what}, c={connections}"),
                middle(&rounds, |round| round[0]),
                middle(&rounds, |round| round[1]),
                middle(&rounds, |round| round[2]),
                middle(&rounds, |round| round[1] / round[0]),
                middle(&rounds, |round| round[2] / round[0]),
            );
        }
    }
    Ok(())
}

/// What the store commits without HTTP before it.
pub(crate) fn measure_store() -> Outcome<()> {
    let cluster = Cluster::shared().ok_or("PostgreSQL is not installed")?;
    let url = cluster.database();
    let name = name_of(&url)?;
    cluster.sql(name, PLAIN);
    println!("{:28} {:>10} {:>10} {:>12}", "", "pgbench", "batches", "of pgbench");
    for tasks in [32, 128] {
        let mut rounds = Vec::new();
        for round in 0..ROUNDS {
            let measured = [pgbench(cluster, name, tasks)?, batches(&cluster.database(), tasks)?];
            if round > 0 {
                rounds.push(measured);
            }
        }
        println!(
            "{:28} {:10.0} {:10.0} {:12.2}",
            format!("{tasks} tasks"),
            middle(&rounds, |round| round[0]),
            middle(&rounds, |round| round[1]),
            middle(&rounds, |round| round[1] / round[0]),
        );
    }
    Ok(())
}

/// The median of a figure of each round.
fn middle<const N: usize>(rounds: &[[f64; N]], of: fn(&[f64; N]) -> f64) -> f64 {
    let mut values: Vec<f64> = rounds.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn name_of(url: &str) -> Outcome<&str> {
    Ok(url.split('?').next().and_then(|url| url.rsplit('/').next()).ok_or("no database")?)
}

/// Batches a second that the store alone commits: each four rows and three checks, as those of a new vehicle.
fn batches(url: &str, tasks: u32) -> Outcome<f64> {
    const TIME: Duration = Duration::from_secs(4);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let address = Address::parse(url)?;
    let settings = Settings { writer: uuid::Uuid::from_u128(1), patience: Duration::from_secs(5) };
    let store = runtime.block_on(Postgres::open(&address, None, settings)).map_err(|error| error.to_string())?;
    let (store, next, began) = (Arc::new(store), Arc::new(AtomicU64::new(1)), Instant::now());
    let tasks: Vec<_> = (0..tasks)
        .map(|_| {
            let (store, next) = (Arc::clone(&store), Arc::clone(&next));
            runtime.spawn(async move {
                let mut committed = 0_u32;
                while began.elapsed() < TIME {
                    let batch = vehicle(next.fetch_add(1, Ordering::Relaxed));
                    committed += u32::from(store.commit(batch).await == Ok(Commit::Applied));
                }
                committed
            })
        })
        .collect();
    let committed = runtime.block_on(futures_util::future::try_join_all(tasks))?.into_iter().sum::<u32>();
    Ok(f64::from(committed) / began.elapsed().as_secs_f64())
}

/// A record, its event, and an index entry of each.
fn vehicle(number: u64) -> Batch {
    let key = |kind: &str, number: u64| {
        let id = (u128::from(number) << 64).to_be_bytes();
        Key::from_bytes(&[kind.as_bytes(), &[7; 16], &id].concat())
    };
    let mut batch = Batch::default();
    batch.checks.push(Check::Absent(Key::from_bytes(b"q")));
    for (record, entry, number) in [("rv", "iv available", number * 2), ("re", "ie vehicle.created", number * 2 + 1)] {
        batch.insert(key(record, number), vec![b'x'; 500].into());
        batch.mark(key(entry, number), Prior::New);
    }
    batch
}

/// Requests per second of all these servers at once.
fn together(servers: &[Server], (key, script, connections): (&str, Option<&str>, u32)) -> Outcome<f64> {
    let share = connections / u32::try_from(servers.len())?;
    let rates: Vec<Result<f64, String>> = thread::scope(|scope| {
        let one = |server: &Server| {
            let found = wrk(&server.address, "/v1/vehicles", Some(key), script, share);
            found.map(|found| found.0).map_err(|error| error.to_string())
        };
        let running: Vec<_> = servers.iter().map(|server| scope.spawn(move || one(server))).collect();
        let ended = |thread: thread::ScopedJoinHandle<'_, _>| thread.join().unwrap_or_else(|_| Err("a panic".into()));
        running.into_iter().map(ended).collect()
    });
    Ok(rates.into_iter().sum::<Result<f64, String>>()?)
}

/// Transactions per second of single-row inserts.
fn pgbench(cluster: &Cluster, database: &str, connections: u32) -> Outcome<f64> {
    let script = std::env::temp_dir().join(format!("rental-pgbench-{}.sql", std::process::id()));
    std::fs::write(&script, "INSERT INTO plain (value) VALUES (repeat('x', 500));\n")?;
    let mut command = Command::new(program()?);
    command.args(["-n", "-T", "4", "-j", "2", "-M", "prepared", "-U", "postgres"]);
    command
        .args(["-c", &connections.to_string()])
        .arg("-f")
        .arg(&script)
        .arg("-h")
        .arg(&cluster.directory)
        .arg(database);
    let output = command.output()?;
    std::fs::remove_file(&script)?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let rate = text.lines().find_map(|line| line.strip_prefix("tps = ")?.split_whitespace().next()?.parse().ok());
    rate.ok_or_else(|| format!("pgbench: {text}{}", String::from_utf8_lossy(&output.stderr)).into())
}

/// Debian keeps it away from the path.
fn program() -> Outcome<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql")?.flatten();
    let found = versions.map(|version| version.path().join("bin/pgbench")).filter(|path| path.exists()).max();
    Ok(found.unwrap_or_else(|| PathBuf::from("pgbench")))
}
