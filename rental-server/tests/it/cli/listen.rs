//! `listen`: every event once, in a stream that survives its server, and forwarded as the server would deliver it.

use super::{Cli, ran, url};
use crate::support::{
    Organization, Server,
    receiver::{Act, PATIENCE, Receiver},
};
use rental_core::webhooks::signature;
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    fs,
    io::{self, BufRead, BufReader, Read},
    net::{Shutdown, TcpListener, TcpStream},
    os::unix::fs::PermissionsExt as _,
    process::{Child, ChildStdout, Command, Stdio},
    sync::{
        Arc, Mutex,
        mpsc::{Receiver as Lines, RecvTimeoutError, channel},
    },
    thread,
    time::{Duration, Instant},
};

/// A running `listen`; killed when it goes out of scope.
struct Listening {
    child: Child,
    stdout: Option<Lines<String>>,
    stderr: Lines<String>,
    /// The line that said that it is ready.
    ready: String,
}

fn lines(stream: impl Read + Send + 'static) -> Lines<String> {
    let (sender, lines) = channel();
    thread::spawn(move || {
        for line in BufReader::new(stream).lines() {
            let Ok(line) = line else { return };
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

impl Listening {
    /// Starts it and waits until it is ready.
    #[track_caller]
    fn start(command: &mut Command) -> Self {
        let (mut listening, stdout) = Self::start_with_pipe(command);
        listening.stdout = Some(lines(stdout));
        listening
    }

    #[track_caller]
    fn start_with_pipe(command: &mut Command) -> (Self, ChildStdout) {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
        let (stdout, stderr) = (child.stdout.take().expect("piped"), lines(child.stderr.take().expect("piped")));
        let mut listening = Self { child, stdout: None, stderr, ready: String::new() };
        listening.ready = listening.wait_for_note("ready: ");
        (listening, stdout)
    }

    /// Waits for a line of stderr that begins so, and gives it.
    #[track_caller]
    fn wait_for_note(&self, beginning: &str) -> String {
        loop {
            let line = self.stderr.recv_timeout(PATIENCE).unwrap_or_else(|error| panic!("no {beginning}: {error}"));
            if line.starts_with(beginning) {
                return line;
            }
        }
    }

    /// The next lines of stdout.
    #[track_caller]
    fn next(&self, count: usize) -> Vec<String> {
        let stdout = self.stdout.as_ref().expect("stdout is read");
        (0..count)
            .map(|at| stdout.recv_timeout(PATIENCE).unwrap_or_else(|error| panic!("{at} of {count} lines: {error}")))
            .collect()
    }

    /// Nothing more is printed for a while.
    #[track_caller]
    fn is_quiet(&self) {
        let stdout = self.stdout.as_ref().expect("stdout is read");
        let more = stdout.recv_timeout(Duration::from_millis(1500));
        assert_eq!(more, Err(RecvTimeoutError::Timeout), "nothing is shown twice");
    }

    fn interrupt(&self) {
        let sent = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
        assert!(sent.expect("kill runs").success());
    }

    fn exit_code(&mut self) -> Option<i32> {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if let Some(status) = self.child.try_wait().expect("it can be asked") {
                return status.code();
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("it does not end");
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn listen(cli: &Cli, organization: &Organization<'_>, more: &str) -> Command {
    cli.command(&url(organization.server), &format!("listen --organization {} {more}", organization.id))
}

fn columns(line: &str) -> Vec<&str> {
    line.split('\t').collect()
}

#[test]
fn an_event_is_a_line_with_time_type_and_ids_and_ctrl_c_ends_in_order() {
    let Some(cli) = Cli::find() else { return };
    let organization = Server::shared().organization();
    organization.vehicle(json!({}));
    let mut listening = Listening::start(&mut listen(&cli, &organization, ""));
    let customer = organization.customer(json!({}));
    let line = listening.next(1).remove(0);
    let [time, kind, event, object] = columns(&line)[..] else { panic!("{line}") };
    assert_eq!((kind, object), ("customer.created", customer.as_str()), "what happened before is not shown");
    let told = organization.server.admin("GET", &format!("/admin/v1/events/{event}"), &Value::Null).ok();
    assert_eq!(told["data"]["id"], json!(customer));
    assert!(time.ends_with('Z') && time.len() == 24, "{time}");
    listening.is_quiet();
    listening.interrupt();
    assert_eq!(listening.exit_code(), Some(0));
    assert_eq!(listening.wait_for_note("1 event"), "1 event");
}

#[test]
fn only_the_types_that_are_asked_for_are_shown() {
    let Some(cli) = Cli::find() else { return };
    let organization = Server::shared().organization();
    for (flags, expected) in [
        ("--event vehicle.created", vec!["vehicle.created"]),
        ("--event customer.created --event vehicle.updated", vec!["customer.created", "vehicle.updated"]),
    ] {
        let listening = Listening::start(&mut listen(&cli, &organization, flags));
        organization.customer(json!({}));
        let vehicle = organization.vehicle(json!({}));
        organization.patch(&format!("/v1/vehicles/{vehicle}"), &json!({"color": "Red"})).ok();
        let shown = listening.next(expected.len());
        assert_eq!(shown.iter().map(|line| columns(line)[1]).collect::<Vec<_>>(), expected);
        listening.is_quiet();
    }
    let ran = ran(&mut listen(&cli, &organization, "--event vehicle.creatd"));
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("'vehicle.created'"), "{}", ran.stderr);
}

#[test]
fn with_json_a_line_is_the_event_as_it_is_delivered() {
    let Some(cli) = Cli::find() else { return };
    let organization = Server::shared().organization();
    // The sender's own line break between tokens must not break the line.
    let lead = "{\"raw_data\": {\"a\":\n1.50}}";
    let id = organization.raw("POST", "/v1/leads", &[], lead.as_bytes()).id();
    // With --json there is no note that says it is ready, so what happened is asked for by time.
    let mut command = listen(&cli, &organization, "--since 1m --json");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    let stdout = lines(child.stdout.take().expect("piped"));
    let line = stdout.recv_timeout(PATIENCE).expect("a line");
    let _ = child.kill();
    let _ = child.wait();
    let path = format!("/admin/v1/organizations/{}/events", organization.id);
    let list = organization.server.admin("GET", &path, &Value::Null).text();
    assert!(list.replace('\n', " ").contains(&line), "{line}");
    let event: Value = serde_json::from_str(&line).expect("one JSON value");
    assert_eq!((&event["object"], &event["data"]["id"]), (&json!("event"), &json!(id)));
    assert!(line.contains("\"a\": 1.50"), "{line}");
}

/// Many writers at once: ids are made before their commits, so later ones can be seen first.
#[test]
fn each_of_many_concurrent_events_is_shown_once_live_and_again_in_order_with_since() {
    let Some(cli) = Cli::find() else { return };
    const WRITERS: usize = 8;
    const EACH: usize = 270;
    let organization = Server::shared().organization();
    let listening = Listening::start(&mut listen(&cli, &organization, ""));
    thread::scope(|scope| {
        for _ in 0..WRITERS {
            scope.spawn(|| (0..EACH).for_each(|_| drop(organization.vehicle(json!({})))));
        }
    });
    // More than one look holds in memory, so the second run has to divide the time.
    let ids = |lines: Vec<String>| lines.iter().map(|line| columns(line)[2].to_owned()).collect::<Vec<_>>();
    let live = ids(listening.next(WRITERS * EACH));
    listening.is_quiet();
    let again = Listening::start(&mut listen(&cli, &organization, "--since 1h"));
    let sorted = ids(again.next(WRITERS * EACH));
    again.is_quiet();
    assert!(sorted.is_sorted(), "oldest first");
    let distinct: BTreeSet<&String> = live.iter().collect();
    assert_eq!(distinct.len(), live.len(), "once each");
    assert!(distinct.into_iter().eq(sorted.iter()), "the same events");
}

/// A way to a server that can be cut, and lead elsewhere later.
struct Way {
    address: String,
    target: Arc<Mutex<Option<String>>>,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Way {
    fn to(server: &Server) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("an address");
        let address = listener.local_addr().expect("an address").to_string();
        let target = Arc::new(Mutex::new(Some(server.address.clone())));
        let open = Arc::new(Mutex::new(Vec::new()));
        let (leads, kept) = (Arc::clone(&target), Arc::clone(&open));
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let far = leads.lock().unwrap().clone().and_then(|address| TcpStream::connect(address).ok());
                // Without a server the connection closes at once.
                let Some(far) = far else { continue };
                for (mut from, mut to) in [(near.try_clone(), far.try_clone()), (far.try_clone(), near.try_clone())]
                    .map(|(a, b)| (a.unwrap(), b.unwrap()))
                {
                    thread::spawn(move || {
                        let _ = io::copy(&mut from, &mut to);
                        let _ = to.shutdown(Shutdown::Both);
                    });
                }
                kept.lock().unwrap().extend([near, far]);
            }
        });
        Self { address, target, open }
    }

    fn cut(&self) {
        *self.target.lock().unwrap() = None;
        for stream in self.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    fn lead_to(&self, server: &Server) {
        *self.target.lock().unwrap() = Some(server.address.clone());
    }
}

#[test]
fn a_restart_of_the_server_loses_nothing_and_shows_nothing_twice() {
    let Some(cli) = Cli::find() else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start_in(directory.path(), &[]);
    let organization = server.organization();
    let (id, write) = (organization.id.clone(), organization.write.clone());
    let way = Way::to(&server);
    let words = format!("listen --organization {id} --timeout 2s");
    let mut listening = Listening::start(&mut cli.command(&format!("http://{}", way.address), &words));
    let before = organization.customer(json!({}));
    assert_eq!(columns(&listening.next(1)[0])[3], before);
    way.cut();
    listening.wait_for_note("cannot reach ");
    let meanwhile = organization.customer(json!({}));
    drop(organization);
    drop(server);
    let server = Server::start_in(directory.path(), &[]);
    way.lead_to(&server);
    listening.wait_for_note("reconnected");
    let organization = Organization { server: &server, id, read: String::new(), write };
    let after = organization.customer(json!({}));
    let shown: Vec<String> = listening.next(2).iter().map(|line| columns(line)[3].to_owned()).collect();
    assert_eq!(shown, [meanwhile, after]);
    listening.is_quiet();
    listening.interrupt();
    assert_eq!(listening.exit_code(), Some(0));
}

#[test]
fn a_forwarded_event_is_what_the_server_itself_delivers() {
    let Some(cli) = Cli::find() else { return };
    let server = Server::start(&["--webhook-allow-private", "--brand", "Acme"]);
    let organization = server.organization();
    let [theirs, ours] = [Receiver::start(), Receiver::start()];
    let body = json!({"organization_id": organization.id, "url": theirs.url()});
    server.admin("POST", "/admin/v1/webhook_endpoints", &body).ok();
    let mut listening = Listening::start(&mut listen(&cli, &organization, &format!("--forward-to {}", ours.url())));
    let id = organization.raw("POST", "/v1/leads", &[], b"{\"raw_data\":{\"a\": \n1.50}}").id();
    let [theirs, ours_seen] = [&theirs, &ours].map(|receiver| receiver.wait_for(1).remove(0));
    assert_eq!((&ours_seen.line, &ours_seen.body), (&theirs.line, &theirs.body));
    let trace = |seen: &crate::support::receiver::Seen| seen.header("traceparent").split('-').nth(1).map(str::to_owned);
    assert_eq!(trace(&ours_seen), trace(&theirs));
    let differs = ["acme-signature", "host", "traceparent"];
    let headers = |seen: &crate::support::receiver::Seen| {
        let mut headers = seen.headers.clone();
        for (name, value) in &mut headers {
            if differs.contains(&name.to_lowercase().as_str()) {
                value.clear();
            }
        }
        headers.sort();
        headers
    };
    assert_eq!(headers(&ours_seen), headers(&theirs), "the same names, spelled alike, and values");
    let secret = ran(&mut cli.command(&url(&server), "listen --print-secret")).stdout.trim().to_owned();
    assert!(secret.starts_with("whsec_") && !listening.ready.contains("whsec_"), "{}", listening.ready);
    let sent = ours_seen.header("acme-signature");
    let t: u64 = sent.trim_start_matches("t=").split(',').next().unwrap().parse().unwrap();
    assert_eq!(sent, signature::header([secret.as_bytes()], t, &ours_seen.body));
    assert!(t.abs_diff(ours_seen.unix_seconds) <= 60, "signed when it is sent");
    let shown = listening.next(2);
    let event = ours_seen.json()["id"].as_str().unwrap().to_owned();
    assert!(shown[0].ends_with(&format!("Z\tlead.received\t{event}\t{id}")), "{shown:?}");
    let [time, result, ..] = columns(&shown[1])[..] else { panic!("{shown:?}") };
    assert!(time.ends_with('Z') && shown[1].ends_with(&format!(" ms\t{event}\t{id}")), "{shown:?}");
    assert!(result.starts_with(&format!("[200] POST {} ", ours.url())), "{shown:?}");
    listening.interrupt();
    assert_eq!(listening.exit_code(), Some(0));
    assert_eq!(listening.wait_for_note("1 event"), "1 event, 1 forwarded, 0 failed");
}

#[test]
fn a_failed_forward_is_shown_with_its_reason_and_not_tried_again() {
    let Some(cli) = Cli::find() else { return };
    let organization = Server::shared().organization();
    let elsewhere = Receiver::start();
    let receiver = Receiver::with({
        let away = format!("Location: {}", elsewhere.url());
        move |number, _| if number == 0 { Act::body(500, b"out of\x1b[2J order") } else { Act::header(302, &away) }
    });
    let mut listening = Listening::start(&mut listen(&cli, &organization, &format!("--forward-to {}", receiver.url())));
    organization.customer(json!({}));
    organization.customer(json!({}));
    let shown = listening.next(4);
    assert!(shown[1].contains("\t[500] POST ") && shown[1].contains(": out of\\u{1b}[2J order\t"), "{shown:?}");
    assert!(shown[3].contains("\t[302] POST "), "{shown:?}");
    listening.is_quiet();
    assert_eq!((receiver.count(), elsewhere.count()), (2, 0), "no retry, no redirect");
    drop(receiver);
    organization.customer(json!({}));
    assert!(listening.next(2)[1].contains("\t[no response] POST "), "the stream goes on");
    listening.interrupt();
    assert_eq!(listening.exit_code(), Some(0));
    assert_eq!(listening.wait_for_note("3 events"), "3 events, 0 forwarded, 3 failed");
}

#[test]
fn the_secret_stays_the_same_and_is_private_unless_a_file_is_named() {
    let Some(cli) = Cli::find() else { return };
    let print = || ran(&mut cli.command("http://127.0.0.1:1", "listen --print-secret"));
    let first = print();
    assert_eq!((first.code, first.stderr.as_str()), (Some(0), ""));
    assert!(first.stdout.starts_with("whsec_") && first.stdout.trim().len() >= 6 + 64, "{}", first.stdout);
    assert_eq!(print().stdout, first.stdout);
    let file = cli.home.path().join(".local/state/rental/webhook-secret");
    assert_eq!(fs::metadata(&file).expect("it is kept").permissions().mode() & 0o777, 0o600);
    fs::write(cli.home.path().join("own"), "whsec_own\n").expect("a file");
    let mut command = cli.command("http://127.0.0.1:1", "listen --print-secret");
    assert_eq!(ran(command.env("RENTAL_WEBHOOK_SECRET_FILE", "own")).stdout, "whsec_own\n");
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    let Some(cli) = Cli::find() else { return };
    let organization = Server::shared().organization();
    let (mut listening, stdout) = Listening::start_with_pipe(&mut listen(&cli, &organization, ""));
    drop(stdout);
    organization.customer(json!({}));
    assert_eq!(listening.exit_code(), Some(0));
    assert_eq!(listening.stderr.recv_timeout(PATIENCE), Err(RecvTimeoutError::Disconnected), "nothing is said");
}

#[test]
fn what_will_not_pass_by_itself_ends_it() {
    let Some(cli) = Cli::find() else { return };
    let ran1 = cli.run(Server::shared(), "listen --organization 0190d0f2-0000-7000-8000-000000000000");
    assert_eq!(ran1.code, Some(3), "{}", ran1.stderr);
    let organization = Server::shared().organization();
    let ran2 = ran(listen(&cli, &organization, "").env("RENTAL_ADMIN_TOKEN", "x".repeat(40)));
    assert_eq!(ran2.code, Some(4), "{}", ran2.stderr);
}
