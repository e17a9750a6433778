//! Many connections of one client, and what they leave to others.

use crate::support::{Connection, Server};
use std::{
    io::{ErrorKind, Read},
    net::{IpAddr, UdpSocket},
    time::Duration,
};

/// An address of this machine other than loopback, which has no limit.
pub(crate) fn own_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    // Sends nothing: it only picks the interface of the route.
    socket.connect("192.0.2.1:9").ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback() && !address.is_unspecified()).then_some(address)
}

fn is_closed(connection: &mut Connection) -> bool {
    connection.stream.get_ref().set_read_timeout(Some(Duration::from_secs(10))).expect("a time-out");
    match connection.stream.read(&mut [0]) {
        Ok(0) => true,
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
        Ok(_) => false,
    }
}

#[test]
fn one_address_has_so_many_connections_and_loopback_and_proxies_have_more() {
    let Some(own) = own_address() else {
        eprintln!("skipped one_address_has_so_many_connections: this machine has no address but loopback");
        return;
    };
    let limited = ["--listen", "0.0.0.0:0", "--connections-per-address", "3"];
    let proxy = own.to_string();
    for (flags, limit) in [(vec![], Some(3)), (vec!["--trusted-proxy", &proxy], None)] {
        let server = Server::start(&[&limited[..], &flags].concat());
        let port = server.address.rsplit_once(':').expect("a port").1.to_owned();
        let [far, near] = [format!("{own}:{port}"), format!("127.0.0.1:{port}")];
        let mut open: Vec<Connection> = Vec::new();
        for _ in 0..10 {
            open.push(Connection::open(&near));
            assert_eq!(open.last_mut().expect("one").send("GET", "/healthz", &[], b"").status, 200, "loopback");
        }
        let mut far_open: Vec<Connection> = (0..limit.unwrap_or(10)).map(|_| Connection::open(&far)).collect();
        for connection in &mut far_open {
            assert_eq!(connection.send("GET", "/healthz", &[], b"").status, 200);
        }
        let mut one_more = Connection::open(&far);
        if limit.is_none() {
            assert_eq!(one_more.send("GET", "/healthz", &[], b"").status, 200, "a trusted proxy");
            continue;
        }
        assert!(is_closed(&mut one_more), "the fourth of an address");
        let page = open[0].send("GET", "/metrics", &[], b"").text();
        assert!(page.contains("rental_http_connections_refused_total 1\n"), "{page}");
        far_open.pop();
        // The server notices the end of a connection a moment later.
        let again = (0..100).any(|_| {
            std::thread::sleep(Duration::from_millis(20));
            Connection::open(&far).try_send("GET", "/healthz", &[], b"").is_ok()
        });
        assert!(again, "a connection that ended makes room");
    }
}

#[test]
fn the_log_names_the_client_that_a_trusted_proxy_names_and_no_other() {
    let forwarded = [("X-Forwarded-For", "198.51.100.66, 203.0.113.9, 127.0.0.2")];
    for (flags, client) in
        [(vec!["--trusted-proxy", "127.0.0.0/8"], "client=203.0.113.9"), (vec![], "client=127.0.0.1")]
    {
        let server = Server::start(&[&["--log-level", "debug"][..], &flags].concat());
        let reply = Connection::open(&server.address).send("GET", "/v1/vehicles", &forwarded, b"");
        let (id, log) = (reply.header("request-id").expect("an id").to_owned(), server.log());
        let lines: Vec<&str> = log.lines().filter(|line| line.contains(&id)).collect();
        assert!(lines.len() >= 2 && lines.iter().all(|line| line.contains(client)), "{client}: {lines:?}");
    }
}
