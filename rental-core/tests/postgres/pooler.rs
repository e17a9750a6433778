//! pgbouncer before the database: named when it is in a mode that cannot work, and of use in the one that can.

use super::super::{Cluster, key, open, runtime, settings};
use rental_core::store::{
    Batch, Commit, Store,
    postgres::{Address, Postgres},
};
use std::{
    fs,
    net::{TcpListener, TcpStream},
    os::unix::fs::MetadataExt,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// A pgbouncer before the cluster. It ends with this value.
struct Pooler(Child);

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Pooler {
    /// `None` when it is not installed.
    fn start(cluster: &Cluster, mode: &str, port: u16) -> Option<Self> {
        let program = Path::new("/usr/sbin/pgbouncer");
        if !program.exists() {
            assert!(std::env::var_os("RENTAL_REQUIRE_ALL").is_none(), "pgbouncer is not installed");
            eprintln!("skipped: pgbouncer is not installed");
            return None;
        }
        let place = cluster.directory.display();
        let settings = format!(
            "[databases]\n* = user=postgres host={place}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\npool_mode = {mode}\n"
        );
        let file = cluster.directory.join(format!("{mode}.ini"));
        fs::write(&file, settings).expect("a file");
        let mut command = Command::new(program);
        // It does not run as root.
        if fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0) {
            command.args(["-u", "postgres"]);
        }
        let child = command.arg("-q").arg(file).stderr(Stdio::null()).spawn().expect("it starts");
        let deadline = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < deadline, "pgbouncer does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(Self(child))
    }
}

#[test]
fn a_pooler_in_transaction_mode_is_refused_by_name_and_one_in_session_mode_serves() {
    let Some(cluster) = Cluster::start() else { return };
    for mode in ["transaction", "statement", "session"] {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let Some(_pooler) = Pooler::start(&cluster, mode, port) else { return };
        runtime().block_on(async {
            let url = format!(
                "postgres://postgres@127.0.0.1:{port}/{}?sslmode=disable",
                cluster.database().split(['/', '?']).nth(3).unwrap()
            );
            if mode == "session" {
                let (store, mut batch) = (open(&url).await, Batch::default());
                batch.insert(key("a"), "v".into());
                assert_eq!(store.commit(batch).await, Ok(Commit::Applied));
                return store.close().await;
            }
            for _ in 0..3 {
                let opened =
                    Postgres::open(&Address::parse(&url).unwrap(), None, settings(Duration::from_secs(5))).await;
                let said = opened.map(drop).expect_err("it is refused").to_string();
                assert!(said.contains("pooler in transaction mode") && said.contains("use session pooling"), "{said}");
                assert_eq!(said.lines().count(), 1, "{said}");
            }
        });
    }
}
