//! What a service manager such as systemd passes to the server (`LISTEN_FDS`), and what it is told (`NOTIFY_SOCKET`).

use super::{Program, calm, directory, refused};
use crate::{support::Connection, upgrade::older};
use std::{
    net::{SocketAddr, TcpListener},
    os::{fd::OwnedFd, unix::net::UnixDatagram},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

/// The service manager of one service: its sockets stay open, whether the server runs or not.
struct Manager {
    sockets: Vec<TcpListener>,
    notifications: UnixDatagram,
    directory: tempfile::TempDir,
}

impl Manager {
    fn new(directory: tempfile::TempDir, sockets: usize) -> Self {
        let notifications = UnixDatagram::bind(directory.path().join("notify")).expect("a socket");
        notifications.set_read_timeout(Some(Duration::from_secs(60))).expect("a time-out");
        let sockets = (0..sockets).map(|_| TcpListener::bind("127.0.0.1:0").expect("a port")).collect();
        Self { sockets, notifications, directory }
    }

    /// The address of a socket.
    fn address(&self, at: usize) -> SocketAddr {
        self.sockets[at].local_addr().expect("an address")
    }

    /// Starts the server with the sockets as files 3 and 4, as systemd does.
    fn start(&self, flags: &[&str]) -> Program {
        let script = match self.sockets.len() {
            1 => r#"exec 3<&0 </dev/null; LISTEN_PID=$$ exec "$@""#,
            _ => r#"exec 3<&0 4<&1 </dev/null >&2; LISTEN_PID=$$ exec "$@""#,
        };
        let descriptor = |at: usize| {
            let socket = self.sockets.get(at).map(|socket| socket.try_clone().expect("a file"));
            socket.map_or_else(Stdio::piped, |socket| Stdio::from(OwnedFd::from(socket)))
        };
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_rental-server")]);
        command.stdin(descriptor(0)).stdout(descriptor(1)).env("LISTEN_FDS", self.sockets.len().to_string());
        command.env("NOTIFY_SOCKET", self.directory.path().join("notify"));
        Program::spawn(command, self.path(), flags)
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The next notification.
    fn told(&self) -> String {
        let mut bytes = [0; 1024];
        let length = self.notifications.recv(&mut bytes).expect("a notification");
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }
}

fn status(address: SocketAddr, path: &str) -> u16 {
    Connection::open(&address.to_string()).send("GET", path, &[], b"").status
}

#[test]
fn a_socket_of_the_service_manager_outlives_the_server() {
    let manager = Manager::new(directory(), 1);
    for _ in 0..3 {
        // The address of --listen is taken: the socket replaces it.
        let program = manager.start(&["--listen", &manager.address(0).to_string()]);
        // The kernel accepts before the server does.
        assert_eq!(status(manager.address(0), "/readyz"), 200);
        assert!(manager.told().starts_with("READY=1\n"));
        program.signal("TERM");
        assert!(manager.told().starts_with("STOPPING=1\n"));
        let ended = program.end();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.stdout.contains(&format!("listening on http://{}", manager.address(0))), "{ended:?}");
        calm(&ended.stderr);
    }
}

#[test]
fn the_second_socket_is_that_of_operators() {
    let manager = Manager::new(directory(), 2);
    let _program = manager.start(&["--operator-listen", "127.0.0.1:0"]);
    assert!(manager.told().starts_with("READY=1\n"));
    assert_eq!([0, 1].map(|at| status(manager.address(at), "/metrics")), [404, 200]);
}

#[test]
fn a_socket_too_many_or_of_another_kind_is_refused() {
    let manager = Manager::new(directory(), 1);
    let ended = manager.start(&["--operator-listen", "127.0.0.1:0"]).end();
    refused(&ended, &["passes 1 sockets, and two are needed", "ListenStream="]);
    assert!(!manager.path().join("rental.redb").exists(), "refused before anything is made");
    let mut command = Command::new("sh");
    command.args(["-c", r#"LISTEN_PID=$$ exec "$@" 3</dev/null"#, "sh", env!("CARGO_BIN_EXE_rental-server")]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).env("LISTEN_FDS", "1");
    let ended = Program::spawn(command, manager.path(), &[]).end();
    refused(&ended, &["socket 0 of the service manager cannot be used", "not a socket", "ListenStream="]);
}

#[test]
fn the_service_manager_waits_longer_while_a_store_is_upgraded() {
    let manager = Manager::new(older(), 1);
    let store = format!("redb:{}", manager.path().join("store.redb").display());
    let _program = manager.start(&["--store", &store]);
    let first = manager.told();
    let lines: Vec<&str> = first.lines().collect();
    assert_eq!(lines[0], "EXTEND_TIMEOUT_USEC=120000000");
    assert!(lines[1].starts_with("STATUS=upgrading the store from schema version 12 to "), "{first}");
    assert!(manager.told().starts_with("READY=1\n"));
}
