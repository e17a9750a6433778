//! TLS of the server itself: the protocols, the certificate that changes while it serves, and the bounds of HTTP/2.

pub(crate) mod authority;
pub(crate) mod client;
mod http2;

use crate::support::Server;
use authority::Trusted;
use client::{Pair, ask, ask_in, presented};
use serde_json::{Value, json};
use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

/// A server with a certificate of its own in `directory`.
fn start(directory: &Path, flags: &[&str]) -> (Server, Pair) {
    let pair = Pair::make(directory, "server");
    let [certificate, key] = [&pair.certificate, &pair.key].map(|path| path.to_str().unwrap().to_owned());
    let flags = [&["--tls-cert", &certificate, "--tls-key", &key], flags].concat();
    (Server::start(&flags), pair)
}

#[test]
fn a_client_chooses_http1_or_http2_and_is_told_to_insist_on_tls() {
    let directory = tempfile::tempdir().unwrap();
    let (server, pair) = start(directory.path(), &[]);
    let organization_list = format!(
        "GET /admin/v1/organizations HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\r\n",
        server.admin_token
    );
    let reply = ask(&server.address, &pair, &organization_list);
    assert!(reply.starts_with("HTTP/1.1 200 "), "{reply}");
    assert!(reply.contains("strict-transport-security: max-age=31536000\r\n"), "{reply}");
    http2::run(&server.address, &pair, async |mut client, _| {
        let (response, _) = client.send_request(http2::request("GET", "/healthz", ""), true).unwrap();
        let response = response.await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["strict-transport-security"], "max-age=31536000");
    });
}

#[test]
fn a_connection_without_tls_gets_no_response() {
    let directory = tempfile::tempdir().unwrap();
    let (server, pair) = start(directory.path(), &[]);
    let plain = crate::support::Connection::open(&server.address).try_send("GET", "/healthz", &[], b"");
    assert!(plain.is_err(), "{plain:?}");
    assert!(
        ask(&server.address, &pair, "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").contains("200 OK")
    );
}

#[test]
fn a_healthcheck_asks_over_tls_whatever_name_the_certificate_has() {
    let directory = tempfile::tempdir().unwrap();
    let (server, pair) = start(directory.path(), &[]);
    let checked = |tls: bool| {
        let mut check = Command::new(env!("CARGO_BIN_EXE_rental-server"));
        check.current_dir(directory.path()).args(["--healthcheck", "--listen", &server.address]);
        if tls {
            check.arg("--tls-cert").arg(&pair.certificate).arg("--tls-key").arg(&pair.key);
        }
        check.output().unwrap()
    };
    let alive = checked(true);
    assert!(alive.status.success() && alive.stderr.is_empty(), "{alive:?}");
    assert!(!checked(false).status.success());
}

/// The versions of before TLS 1.2 are refused, in the words of the protocol.
#[test]
fn a_client_that_knows_no_version_after_tls_1_1_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (server, _) = start(directory.path(), &[]);
    // A ClientHello of TLS 1.2 without extensions asks for no more than its version: it differs in that alone.
    for (version, alert) in [([3, 1], 70), ([3, 2], 70), ([3, 0], 70)] {
        let mut hello = vec![version[0], version[1]];
        hello.extend([7; 32]);
        // No session; the cipher suites of rustls for TLS 1.2, and one of TLS 1.0; no compression.
        hello.extend([0, 0, 6, 0xc0, 0x2b, 0xc0, 0x2f, 0xc0, 0x09, 1, 0]);
        // Groups and signature algorithms that any server knows.
        let extensions = [0, 10, 0, 4, 0, 2, 0, 23, 0, 13, 0, 4, 0, 2, 4, 3, 0, 11, 0, 2, 1, 0];
        hello.extend([0, u8::try_from(extensions.len()).unwrap()]);
        hello.extend(extensions);
        let length = u8::try_from(hello.len()).unwrap();
        let mut bytes = vec![22, 3, 1, 0, length + 4, 1, 0, 0, length];
        bytes.extend(&hello);
        let mut stream = TcpStream::connect(&server.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(&bytes).unwrap();
        let mut reply = Vec::new();
        let _ = stream.read_to_end(&mut reply);
        // Alert, fatal, protocol_version.
        assert_eq!((reply.first(), &reply[5..]), (Some(&21), &[2, alert][..]), "{version:?}: {reply:?}");
    }
}

/// The receiver is a server that answers 404, once it has taken the connection.
#[test]
fn webhooks_go_to_receivers_with_a_trusted_certificate_of_their_name_only() {
    let directory = tempfile::tempdir().unwrap();
    let receiver = Trusted::start(directory.path());
    let by_address = receiver.url.replace("localhost", "127.0.0.1");
    for (program, url, outcome) in [
        (vec!["env", &receiver.trust], &receiver.url, json!([404, null])),
        (vec!["env", &receiver.trust], &by_address, json!([null, "certificate_not_trusted"])),
        (vec![], &receiver.url, json!([null, "certificate_not_trusted"])),
    ] {
        let sender = Server::start_by(&program, &["--webhook-allow-private"]);
        let organization = sender.organization();
        let body = json!({"organization_id": organization.id, "url": format!("{url}/hooks")});
        let made = sender.admin("POST", "/admin/v1/webhook_endpoints", &body).id();
        let path = format!("/admin/v1/webhook_endpoints/{made}/test");
        let tested = sender.admin("POST", &path, &Value::Null).ok();
        assert_eq!(json!([tested["status"], tested["error"]]), outcome, "{program:?} {url}: {tested}");
    }
}

#[track_caller]
fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let since = Instant::now();
    while !holds() {
        assert!(since.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_renewed_certificate_is_taken_while_serving_and_a_bad_one_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let (server, first) = start(directory.path(), &[]);
    assert_eq!(presented(&server.address), first.der());
    let second = Pair::make(directory.path(), "next");
    for (from, to) in [(&second.certificate, &first.certificate), (&second.key, &first.key)] {
        fs::rename(from, to).unwrap();
    }
    let renewed = first.der();
    wait_for("the new certificate", || presented(&server.address) == renewed);
    let third = Pair::make(directory.path(), "third");
    let bad: [(&str, &dyn Fn()); 5] = [
        ("no pair", &|| {
            fs::copy(&third.certificate, &first.certificate).unwrap();
        }),
        ("no certificate", &|| fs::write(&first.certificate, "nothing").unwrap()),
        ("cannot read", &|| fs::remove_file(&first.certificate).unwrap()),
        // Nobody writes into it: a read would wait for ever.
        ("no regular file", &|| pipe(&first.certificate)),
        ("others can read", &|| fs::set_permissions(&first.key, fs::Permissions::from_mode(0o644)).unwrap()),
    ];
    for (why, change) in bad {
        if why == "others can read" {
            fs::remove_file(&first.certificate).unwrap();
            fs::copy(&third.certificate, &first.certificate).unwrap();
        }
        change();
        wait_for(why, || server.log().lines().any(|line| line.contains("was not taken") && line.contains(why)));
        assert_eq!(presented(&server.address), renewed, "{why}");
    }
    fs::set_permissions(&first.key, fs::Permissions::from_mode(0o600)).unwrap();
    fs::copy(&third.key, &first.key).unwrap();
    wait_for("the third certificate", || presented(&server.address) == third.der());
}

fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").args(["-m", "600"]).arg(path).status().unwrap().success());
}

#[test]
fn files_that_are_no_pair_or_open_to_others_keep_the_server_from_starting() {
    let directory = tempfile::tempdir().unwrap();
    let [one, other] = ["one", "other"].map(|name| Pair::make(directory.path(), name));
    let run = |certificate: &Path, key: &Path| {
        let output = Command::new(env!("CARGO_BIN_EXE_rental-server"))
            .args(["--listen", "127.0.0.1:0", "--tls-certificate"])
            .args([certificate.as_os_str(), "--tls-key".as_ref(), key.as_os_str()])
            .current_dir(directory.path())
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let open = directory.path().join("open.key");
    fs::copy(&one.key, &open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o604)).unwrap();
    let fifo = directory.path().join("pipe.key");
    pipe(&fifo);
    for (certificate, key, said) in [
        (&one.certificate, &fifo, "it is no regular file"),
        (&one.certificate, &other.key, "are no pair"),
        (&one.certificate, &one.certificate, "holds no private key"),
        (&one.key, &one.key, "holds no certificate"),
        (&one.certificate, &directory.path().join("missing"), "cannot read"),
        (&one.certificate, &open, "others can read it: `chmod 600` it"),
    ] {
        let (code, stderr) = run(certificate, key);
        assert_eq!((code, stderr.lines().count()), (Some(1), 1), "{stderr}");
        assert!(stderr.contains(said) && !stderr.contains("BEGIN PRIVATE"), "{said}: {stderr}");
    }
    let alone = Command::new(env!("CARGO_BIN_EXE_rental-server")).args(["--tls-cert", "x"]).output().unwrap();
    assert_eq!(alone.status.code(), Some(2), "a certificate without its key");
    assert!(!directory.path().join("rental.redb").exists(), "nothing was made");
}

/// Bytes of a body that the server refuses before it has read it do not destroy the response, with TLS as without.
#[test]
fn an_early_response_over_tls_is_complete() {
    let directory = tempfile::tempdir().unwrap();
    let (server, pair) = start(directory.path(), &[]);
    let body = " ".repeat(4 << 20);
    for _ in 0..5 {
        let request = format!(
            "POST /v1/vehicles HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer x\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let reply = ask_in(&server.address, &pair, &request, 64 << 10);
        assert!(reply.starts_with("HTTP/1.1 401 ") && reply.ends_with("}}"), "{reply}");
    }
}
