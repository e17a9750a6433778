//! A PostgreSQL of the tests' own, gone when they are: no port, no password, nothing left behind.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
};

/// A running PostgreSQL. It ends when its standard input closes: with this value, or with the test's process.
pub(crate) struct Cluster {
    /// Has the socket and `data`.
    pub(crate) directory: PathBuf,
    programs: PathBuf,
    shell: Child,
}

/// Makes a cluster, starts it, says where it is; the rest of its life is waiting for the end.
const SCRIPT: &str = r#"
set -e
directory=$(mktemp -d /tmp/rental-postgres.XXXXXX)
trap '"$1/pg_ctl" -D "$directory/data" -m immediate stop >/dev/null 2>&1 || true; rm -rf "$directory"' EXIT
"$1/initdb" -D "$directory/data" -A trust -U postgres -E UTF8 --locale=C --no-sync >"$directory/initdb.log" 2>&1
printf 'local all locked scram-sha-256\nlocal all all trust\nlocal replication all trust\n' >"$directory/data/pg_hba.conf"
printf "listen_addresses = ''\nunix_socket_directories = '%s'\nmax_connections = 600\nshared_buffers = 64MB\n" "$directory" \
  >>"$directory/data/postgresql.conf"
"$1/pg_ctl" -D "$directory/data" -l "$directory/server.log" -w start >/dev/null
echo "$directory"
read -r _ || true
"#;

/// Makes a standby of the cluster in `$2`, starts it, says where it is, and waits for the end.
const STANDBY: &str = r#"
set -e
directory=$(mktemp -d /tmp/rental-postgres.XXXXXX)
trap '"$1/pg_ctl" -D "$directory/data" -m immediate stop >/dev/null 2>&1 || true; rm -rf "$directory"' EXIT
"$1/pg_basebackup" -h "$2" -U postgres -D "$directory/data" -R -X stream -c fast
printf "unix_socket_directories = '%s'\n" "$directory" >>"$directory/data/postgresql.conf"
"$1/pg_ctl" -D "$directory/data" -l "$directory/server.log" -w start >/dev/null
echo "$directory"
read -r _ || true
"#;

impl Cluster {
    /// One for all tests of a process that do not disturb it; `None` says that it was skipped.
    pub(crate) fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Option<Cluster>> = OnceLock::new();
        SHARED.get_or_init(Self::start).as_ref()
    }

    /// One of one's own; `None` when PostgreSQL is not installed, which is said in one line.
    pub(crate) fn start() -> Option<Self> {
        let Some(programs) = programs() else {
            assert!(std::env::var_os("RENTAL_REQUIRE_ALL").is_none(), "PostgreSQL is not installed");
            eprintln!("skipped: PostgreSQL is not installed (Debian: apt-get install postgresql)");
            return None;
        };
        Some(Self::run(programs, SCRIPT, Path::new("")))
    }

    /// A synchronous standby of this cluster: from now on no commit here is answered before the standby has it too.
    #[allow(dead_code, reason = "not every test program that uses this file has a standby")]
    pub(crate) fn standby(&self) -> Self {
        let standby = Self::run(self.programs.clone(), STANDBY, &self.directory);
        self.sql("postgres", "ALTER SYSTEM SET synchronous_standby_names = '*'");
        self.sql("postgres", "SELECT pg_reload_conf()");
        while self.sql("postgres", "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") != "1" {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        standby
    }

    fn run(programs: PathBuf, script: &str, source: &Path) -> Self {
        let mut shell = as_its_user("sh")
            .args(["-c", script, "sh"])
            .args([&programs, source])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell starts");
        let mut line = String::new();
        BufReader::new(shell.stdout.take().expect("stdout is piped")).read_line(&mut line).expect("it says where");
        assert!(!line.is_empty(), "PostgreSQL did not start");
        Self { directory: PathBuf::from(line.trim_end()), programs, shell }
    }

    /// Kills the server process at once. Its children end when they notice.
    #[allow(dead_code, reason = "not every test program that uses this file kills one")]
    pub(crate) fn kill(&self) {
        let pid = fs::read_to_string(self.directory.join("data/postmaster.pid")).expect("it runs");
        let pid = pid.lines().next().expect("a process").to_owned();
        assert!(Command::new("kill").args(["-9", &pid]).status().expect("kill runs").success());
    }

    /// Makes a standby the primary.
    #[allow(dead_code, reason = "not every test program that uses this file has a standby")]
    pub(crate) fn promote(&self) {
        let mut promote = as_its_user(&self.programs.join("pg_ctl").to_string_lossy());
        promote.arg("-D").arg(self.directory.join("data")).args(["-w", "promote"]).stdout(Stdio::null());
        assert!(promote.status().expect("pg_ctl runs").success(), "the standby was not promoted");
    }

    /// The URL of a new, empty database.
    pub(crate) fn database(&self) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("test{}", NEXT.fetch_add(1, Ordering::Relaxed));
        self.sql("postgres", &format!("CREATE DATABASE {name}"));
        self.url(&name)
    }

    /// The URL of a database.
    pub(crate) fn url(&self, name: &str) -> String {
        format!("postgres://postgres@/{name}?host={}", self.directory.display())
    }

    /// A program of PostgreSQL.
    #[allow(dead_code, reason = "not every test program that uses this file runs one")]
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.programs.join(name)
    }

    /// What a statement answers, tab-separated, without a heading.
    pub(crate) fn sql(&self, database: &str, statement: &str) -> String {
        let mut psql = Command::new(self.programs.join("psql"));
        psql.args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-F", "\t", "-U", "postgres", "-d", database, "-c", statement]);
        let done = psql.arg("-h").arg(&self.directory).output().expect("psql runs");
        assert!(done.status.success(), "{statement}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).expect("text").trim_end().to_owned()
    }

    /// Stops it as a power cut would, and starts it again.
    #[allow(dead_code, reason = "not every test program that uses this file restarts one")]
    pub(crate) fn restart(&self) {
        let log = self.directory.join("server.log");
        let mut restart = as_its_user(&self.programs.join("pg_ctl").to_string_lossy());
        restart.arg("-D").arg(self.directory.join("data")).arg("-l").arg(log);
        let done = restart.args(["-m", "immediate", "-w", "restart"]).stdout(Stdio::null()).status();
        assert!(done.expect("pg_ctl runs").success(), "PostgreSQL did not restart");
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}

/// PostgreSQL does not run as root; its own user does then.
fn as_its_user(program: &str) -> Command {
    let root = fs::read_to_string("/proc/self/status").is_ok_and(|status| status.contains("\nUid:\t0\t"));
    let mut command = if root {
        let mut command = Command::new("runuser");
        command.args(["-u", "postgres", "--", program]);
        command
    } else {
        Command::new(program)
    };
    command.current_dir("/");
    command
}

/// Where `initdb` is: Debian keeps it away from the path, one folder for each version.
fn programs() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut debian: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    debian.sort();
    let mut places = std::env::split_paths(&path).chain(debian.into_iter().rev());
    places.find(|place| ["initdb", "pg_ctl", "psql"].iter().all(|name| Path::new(&place.join(name)).exists()))
}
