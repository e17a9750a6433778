//! The same behind the proxies of Debian: a reset while they still send becomes a 502 or a broken connection.

use super::{NO_KEY, all_answered};
use crate::support::Server;
use std::{
    fs,
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};
use tempfile::TempDir;

/// A proxy in front of a server; ends with this process.
struct Proxy {
    address: String,
    shell: Child,
    _directory: TempDir,
}

impl Proxy {
    /// Starts `program` with what `configure` makes of (its address, the server's address, its directory); `None`, and a
    /// line that says so, where it is not installed.
    fn start(program: &str, server: &Server, configure: impl Fn(&str, &str, &Path) -> String) -> Option<Self> {
        let found = ["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"];
        let Some(path) = found.iter().map(|folder| Path::new(folder).join(program)).find(|path| path.exists()) else {
            assert!(std::env::var_os("RENTAL_REQUIRE_ALL").is_none(), "{program} is not installed");
            eprintln!("skipped: {program} is not installed (Debian: apt-get install {program})");
            return None;
        };
        let directory = tempfile::tempdir().expect("a temporary directory");
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port");
        let (address, file) = (free.to_string(), directory.path().join("proxy.conf"));
        fs::write(&file, configure(&address, &server.address, directory.path())).expect("a file");
        let flags: &[&str] = if program == "nginx" { &["-c"] } else { &["-db", "-f"] };
        // The shell ends the proxy when this process ends and its stdin closes.
        let script = r#""$@" & proxy=$!; read -r _; kill -9 $proxy 2>/dev/null; wait $proxy"#;
        let shell = Command::new("sh")
            .args(["-c", script, "sh"])
            .arg(path)
            .args(flags)
            .arg(&file)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(fs::File::create(directory.path().join("log")).expect("a file"))
            .spawn()
            .expect("a shell starts");
        let proxy = Self { address, shell, _directory: directory };
        let up = (0..1000).any(|_| {
            std::thread::sleep(Duration::from_millis(20));
            TcpStream::connect(&proxy.address).is_ok()
        });
        let log = fs::read_to_string(proxy._directory.path().join("log")).unwrap_or_default();
        assert!(up, "{program} did not start: {log}");
        Some(proxy)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}

#[track_caller]
fn no_response_is_lost_behind(proxy: &Proxy) {
    all_answered(&proxy.address, 200, ("POST /v1/vehicles", NO_KEY, 60_000), 401);
    all_answered(&proxy.address, 40, ("POST /v1/vehicles", NO_KEY, 2 << 20), 401);
}

fn nginx(server: &Server, upstream: &str, location: &str) -> Option<Proxy> {
    Proxy::start("nginx", server, |address, target, directory| {
        let folder = directory.display();
        let spools: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|name| format!("{name}_temp_path {folder}/{name};\n"))
            .concat();
        format!(
            "daemon off;\nmaster_process off;\npid {folder}/pid;\nerror_log stderr;\nevents {{}}\nhttp {{\naccess_log off;\n\
             {spools}client_max_body_size 0;\nupstream api {{ server {target}; {upstream} }}\n\
             server {{ listen {address}; location / {{ proxy_pass http://api; {location} }} }}\n}}\n"
        )
    })
}

#[test]
fn nginx_gets_every_response() {
    let server = Server::start(&[]);
    let Some(proxy) = nginx(&server, "", "") else { return };
    no_response_is_lost_behind(&proxy);
}

#[test]
fn nginx_with_kept_connections_gets_every_response() {
    let server = Server::start(&[]);
    let keeps = "proxy_http_version 1.1; proxy_set_header Connection \"\";";
    let Some(proxy) = nginx(&server, "keepalive 16;", keeps) else { return };
    no_response_is_lost_behind(&proxy);
}

#[test]
fn nginx_that_forwards_bodies_as_they_come_gets_every_response() {
    let server = Server::start(&[]);
    let streams = "proxy_http_version 1.1; proxy_request_buffering off;";
    let Some(proxy) = nginx(&server, "", streams) else { return };
    no_response_is_lost_behind(&proxy);
}

#[test]
fn haproxy_gets_every_response() {
    let server = Server::start(&[]);
    let configure = |address: &str, target: &str, _: &Path| {
        format!(
            "global\n maxconn 200\ndefaults\n mode http\n timeout connect 5s\n timeout client 30s\n timeout server 30s\n\
             frontend front\n bind {address}\n default_backend api\nbackend api\n server one {target}\n"
        )
    };
    let Some(proxy) = Proxy::start("haproxy", &server, configure) else { return };
    no_response_is_lost_behind(&proxy);
}
