//! What stands in the way of a start is one clear line, without a password in it.

use super::super::{Cluster, on_postgres, open, runtime, settings};
use rental_core::store::{
    Absent, Access, Batch, Commit, Environment, Opening, SCHEMA_VERSION, Store,
    postgres::{Address, Postgres, Settings},
};
use std::time::Duration;

#[track_caller]
fn assert_says(said: &str, parts: &[&str]) {
    for part in parts {
        assert!(said.contains(part), "{part} is not in: {said}");
    }
    assert!(said.lines().count() == 1 && !said.contains("s3cret"), "{said}");
}

async fn refused(url: &str) -> String {
    let settings = settings(Duration::from_secs(2));
    match Postgres::open(&Address::parse(url).expect("a URL"), None, settings).await {
        Ok(_) => panic!("{url} was opened"),
        Err(error) => error.to_string(),
    }
}

fn name(url: &str) -> &str {
    url.split(['/', '?']).nth(3).expect("a name")
}

#[test]
fn whatever_is_in_the_way_is_said_in_one_line() {
    on_postgres(|cluster| async {
        let url = cluster.database();
        cluster.sql("postgres", "CREATE ROLE locked LOGIN PASSWORD 's3cret-right'");
        let locked = url.replace("postgres@", "locked:s3cret-wrong@");
        assert_says(&refused(&locked).await, &["refused the login", "check user and password"]);
        assert_says(&refused(&url.replace("postgres@", "locked@")).await, &["PGPASSWORD", "PGPASSFILE"]);
        let right = url.replace("postgres@", "locked:s3cret-right@");
        assert_says(&refused(&right).await, &["let it CREATE in the database", "42501"]);
        let mut address = Address::parse(&url.replace("postgres@", "locked@")).unwrap();
        address.set_password("s3cret-right");
        cluster.sql(name(&url), "CREATE SCHEMA rental AUTHORIZATION locked");
        let settings = settings(Duration::from_secs(2));
        Postgres::open(&address, None, settings).await.expect("its own schema is enough");
        assert_says(&refused(&cluster.url("missing")).await, &["missing", "make the database first"]);
        assert_says(
            &refused("postgres://u:s3cret@127.0.0.1:1/d").await,
            &["postgres://127.0.0.1:1/d", "cannot be reached"],
        );
        assert_says(&refused("postgres://u@/d?host=/nowhere").await, &["/nowhere", "cannot be reached"]);
    });
}

#[test]
fn half_of_a_store_is_refused_whoever_opens_it() {
    on_postgres(|cluster| async {
        let url = cluster.database();
        open(&url).await.close().await;
        cluster.sql(name(&url), "INSERT INTO rental.rows VALUES (convert_to('!', 'UTF8'), 0, '')");
        let parts = [name(&url), "holds half of a store", "Drop its schema `rental` and copy again"];
        assert_says(&refused(&url).await, &parts);
        let settings = settings(Duration::from_secs(2));
        let opened = Postgres::open_any_version(&Address::parse(&url).unwrap(), None, settings).await;
        assert_says(&opened.err().expect("it is refused").to_string(), &parts);
    });
}

#[test]
fn a_store_of_another_version_is_refused_and_left_alone() {
    on_postgres(|cluster| async {
        let url = cluster.database();
        let running = open(&url).await;
        cluster.sql(name(&url), "UPDATE rental.store SET schema_version = schema_version + 1");
        let newer = (SCHEMA_VERSION + 1).to_string();
        assert_says(&refused(&url).await, &["schema version", &newer, "run the program that wrote it"]);
        let mut batch = Batch::default();
        batch.insert(super::super::key("a"), "v".into());
        let said = running.commit(batch).await.expect_err("a server of the old version writes no more").to_string();
        assert_says(&said, &["schema version", &newer]);
        assert_eq!(cluster.sql(name(&url), "SELECT count(*) FROM rental.rows"), "0");
    });
}

#[test]
fn a_schema_version_that_no_program_writes_is_refused_as_damage() {
    on_postgres(|cluster| async {
        let url = cluster.database();
        let running = open(&url).await;
        cluster.sql(name(&url), "UPDATE rental.store SET schema_version = -1");
        let words = ["schema version -1,", "restore it from a backup"];
        assert_says(&refused(&url).await, &words);
        let mut batch = Batch::default();
        batch.insert(super::super::key("a"), "v".into());
        assert_says(&running.commit(batch).await.expect_err("it is refused").to_string(), &words);
    });
}

#[test]
fn a_read_only_database_is_refused_and_one_that_becomes_so_is_not_ready() {
    on_postgres(|cluster| async {
        let url = cluster.database();
        let store = open(&url).await;
        cluster.sql("postgres", &format!("ALTER DATABASE {} SET default_transaction_read_only = on", name(&url)));
        assert_says(&refused(&url).await, &["is read-only", "primary"]);
        // Sessions that exist keep their setting, as they do not after a fail-over.
        let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
        cluster.sql(name(&url), cut);
        assert!(store.ready().await.is_err());
        cluster.sql("postgres", &format!("ALTER DATABASE {} RESET default_transaction_read_only", name(&url)));
        assert_eq!(store.ready().await, Ok(()));
    });
}

#[test]
fn a_database_that_forgets_on_a_crash_is_refused() {
    let Some(cluster) = Cluster::start() else { return };
    runtime().block_on(async {
        let url = cluster.database();
        cluster.sql("postgres", "ALTER SYSTEM SET fsync = off");
        cluster.sql("postgres", "SELECT pg_reload_conf()");
        assert_says(&refused(&url).await, &["fsync = off", "set fsync = on"]);
    });
}

#[test]
fn commits_wait_for_the_disk_whatever_the_database_does_by_default() {
    let Some(cluster) = Cluster::start() else { return };
    runtime().block_on(async {
        let url = cluster.database();
        cluster.sql("postgres", &format!("ALTER DATABASE {} SET log_statement = 'all'", name(&url)));
        for (default, expected) in [("off", "on"), ("local", "on"), ("remote_apply", "remote_apply")] {
            cluster.sql("postgres", &format!("ALTER DATABASE {} SET synchronous_commit = {default}", name(&url)));
            let (store, mut batch) = (open(&url).await, Batch::default());
            batch.insert(super::super::key(default), "v".into());
            assert_eq!(store.commit(batch).await, Ok(Commit::Applied));
            store.close().await;
            let log = std::fs::read_to_string(cluster.directory.join("server.log")).expect("a log");
            let last = log.rsplit("BEGIN ISOLATION").next().expect("a transaction");
            let set = format!("READ COMMITTED READ WRITE; SET LOCAL synchronous_commit = {expected}");
            assert!(last.contains(&set), "{default}: {last}");
        }
    });
}

#[test]
fn servers_that_start_at_once_make_the_tables_once() {
    on_postgres(|cluster| async {
        for _ in 0..5 {
            let url = cluster.database();
            let starts: Vec<_> = (0..8)
                .map(|_| {
                    let url = url.clone();
                    tokio::spawn(async move { open(&url).await })
                })
                .collect();
            for start in starts {
                assert_eq!(start.await.expect("it opens").ready().await, Ok(()));
            }
            assert_eq!(cluster.sql(name(&url), "SELECT count(*) FROM rental.store"), "1");
        }
    });
}

/// Runs commands of openssl in the cluster's directory, and gives the server what they made.
fn certify(cluster: &Cluster, commands: &str) {
    let script = format!(
        "set -e; cd \"$1\"; rm -f server.key\n{commands}\nchmod 600 server.key; chown --reference data server.key server.pem"
    );
    let made = std::process::Command::new("sh").args(["-c", &script, "sh"]).arg(&cluster.directory).output();
    let made = made.expect("a shell starts");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

/// A certificate for `localhost` by an authority of its own.
const BY_AN_AUTHORITY: &str = r"
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=authority -keyout ca.key -out ca.pem
openssl req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout server.key -out server.csr
printf 'subjectAltName=DNS:localhost\nbasicConstraints=CA:FALSE\n' > extensions
openssl x509 -req -days 2 -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -extfile extensions -out server.pem";

/// The one that most pages of the web tell to make, which psql takes.
const SELF_SIGNED: &str =
    "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout server.key -out server.pem";

#[test]
fn tls_checks_the_certificate_and_the_name() {
    if std::process::Command::new("openssl").arg("version").output().is_err() {
        assert!(std::env::var_os("RENTAL_REQUIRE_ALL").is_none(), "openssl is not installed");
        eprintln!("skipped: openssl is not installed");
        return;
    }
    let Some(cluster) = Cluster::start() else { return };
    certify(&cluster, BY_AN_AUTHORITY);
    let read = |name: &str| std::fs::read(cluster.directory.join(name)).expect("a certificate");
    let authority = read("ca.pem");
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let place = cluster.directory.display();
    for setting in [
        "ssl = on".to_owned(),
        format!("ssl_cert_file = '{place}/server.pem'"),
        format!("ssl_key_file = '{place}/server.key'"),
        "listen_addresses = '127.0.0.1'".to_owned(),
        format!("port = {port}"),
    ] {
        cluster.sql("postgres", &format!("ALTER SYSTEM SET {setting}"));
    }
    cluster.sql("postgres", "CREATE DATABASE tls");
    let hba = cluster.directory.join("data/pg_hba.conf");
    let rules = std::fs::read_to_string(&hba).expect("rules") + "hostssl all all 127.0.0.1/32 trust\n";
    std::fs::write(&hba, rules).expect("rules");
    cluster.restart();
    runtime().block_on(async {
        let open = async |host: &str, mode: &str, roots: Option<&[u8]>| {
            let address = Address::parse(&format!("postgres://postgres@{host}:{port}/tls?{mode}")).unwrap();
            let settings = settings(Duration::from_secs(3));
            Postgres::open(&address, roots, settings).await.map(drop).map_err(|error| error.to_string())
        };
        for mode in ["sslmode=require", "sslmode=verify-full", "sslmode=prefer", ""] {
            assert_eq!(open("localhost", mode, Some(&authority)).await, Ok(()), "{mode}");
            let stranger = open("localhost", mode, None).await.expect_err("nobody vouches for it");
            assert_says(&stranger, &["is not trusted", "sslrootcert=FILE"]);
            let other = open("127.0.0.1", mode, Some(&authority)).await.expect_err("it is for another name");
            assert_says(&other, &["for another host", "localhost"]);
        }
        let plain = open("localhost", "sslmode=disable", None).await.expect_err("the database asks for TLS");
        assert_says(&plain, &["refused the login"]);
        let said = open("localhost", "", Some(b"no certificate")).await.expect_err("a file without a certificate");
        assert_says(&said, &["sslrootcert holds no certificate"]);
        certify(&cluster, SELF_SIGNED);
        cluster.restart();
        let said = open("localhost", "", Some(&read("server.pem"))).await.expect_err("it is an authority's");
        assert_says(&said, &["self-signed, CA:TRUE", "sslrootcert=FILE"]);
        // What the message says to do.
        let told = said.split('`').nth(1).expect("a command").replace("HOST", "localhost").replace(".crt", ".pem");
        certify(&cluster, &told);
        cluster.restart();
        assert_eq!(open("localhost", "", Some(&read("server.pem"))).await, Ok(()));
    });
}

/// A server that speaks the protocol only as far as to refuse TLS.
#[test]
fn a_database_without_tls_is_refused_with_what_to_write() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut asked = [0; 8];
            if std::io::Read::read_exact(&mut stream, &mut asked).is_ok() {
                let _ = std::io::Write::write_all(&mut stream, b"N");
            }
        }
    });
    let address = Address::parse(&format!("postgres://u:s3cret@127.0.0.1:{port}/d?sslmode=verify-full")).unwrap();
    let opened = runtime().block_on(Postgres::open(&address, None, settings(Duration::from_secs(3))));
    let said = opened.map(drop).expect_err("it offers no TLS").to_string();
    assert_says(&said, &["offers no TLS", "sslmode=disable", "ssl = on"]);
    assert!(!said.contains("s3cret"), "{said}");
}

struct Nothing;

impl Environment for Nothing {
    fn variable(&self, _: &str) -> Option<std::ffi::OsString> {
        None
    }

    fn file(&self, _: &std::path::Path) -> Result<Vec<u8>, String> {
        Err("there are no files".into())
    }
}

#[test]
fn a_program_that_creates_no_store_leaves_an_empty_database_empty() {
    on_postgres(|cluster| async {
        let url = cluster.database();
        let place = rental_core::store::place(&url).expect("a URL");
        let Settings { writer, patience } = settings(Duration::from_secs(5));
        let with = |absent| Opening { cache_bytes: 1 << 20, absent, writer, patience, environment: &Nothing };
        for access in [Access::Present, Access::Upgradable, Access::Unchanged] {
            let refused = place.open(access, &with(Absent::Fail)).await.err().expect("there is no store");
            assert_says(&refused.to_string(), &[name(&url), "holds no store"]);
        }
        assert_eq!(cluster.sql(name(&url), "SELECT count(*) FROM pg_namespace WHERE nspname = 'rental'"), "0");
        place.open(Access::Present, &with(Absent::Create)).await.expect("it is created").close().await.unwrap();
        place.open(Access::Unchanged, &with(Absent::Fail)).await.expect("it exists").close().await.unwrap();
    });
}
