//! Tasks that panic in the middle of their work: nothing is lost, and no event becomes two deliveries.

use super::{Hooks, Settings, hooks::Bell, lane, lanes, relay};
use crate::{
    disk::Space,
    edge::{Clock, FixedClock},
    master_key::Keys,
    secrets::KeyFile,
    supervisor::tests::{hasty, restarts},
};
use rental_core::{
    operations::Edge,
    resources::{
        Resource,
        delivery::{self, Delivery, DeliveryStatus},
        effects, event,
        organization::SYSTEM,
        parse,
        webhook_endpoint::WebhookEndpoint,
    },
    rows::{key, outbox},
    store::{Batch, Commit, Prior, Span, Store, redb::Redb},
    value::{EndpointId, EventId, OrganizationId},
    webhooks::secret::{MasterKey, MasterKeys, Sealed},
};
use serde_json::json;
use std::{
    collections::BTreeMap,
    future::Future,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// How often each event id has arrived.
type Arrived = Arc<Mutex<BTreeMap<String, usize>>>;

/// Accepts each delivery after a clock, so that attempts are in flight when a task panics.
async fn receive(listener: TcpListener, arrived: Arrived) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        tokio::spawn(answer(stream, Arc::clone(&arrived)));
    }
}

async fn answer(mut stream: TcpStream, arrived: Arrived) {
    let (mut read, mut part) = (Vec::new(), [0; 4096]);
    let event = loop {
        match stream.read(&mut part).await {
            Ok(size) if size > 0 => read.extend_from_slice(&part[..size]),
            _ => return,
        }
        let text = String::from_utf8_lossy(&read).to_lowercase();
        let head = text.split_once("\r\n\r\n").map(|(head, _)| head.to_owned());
        let id = head
            .and_then(|head| head.lines().find_map(|line| line.strip_prefix("service-event-id: ")).map(str::to_owned));
        if let Some(id) = id.filter(|_| text.ends_with('}')) {
            break id;
        }
    };
    tokio::time::sleep(Duration::from_millis(3)).await;
    *arrived.lock().unwrap().entry(event).or_default() += 1;
    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").await;
}

/// Hooks over a new store with one endpoint of an organization, which is returned.
async fn hooks(directory: &tempfile::TempDir, url: &str) -> (Arc<Hooks>, OrganizationId) {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let store = Redb::open(&directory.path().join("store.redb"), 1 << 20).unwrap();
    let settings = Settings {
        allow_private: true,
        send: true,
        https_only: false,
        schedule: rental_core::webhooks::attempt::Schedule::default(),
        timeout: Duration::from_secs(10),
        retention: super::Retention { events: None, deliveries: None, leads: None, audit_entries: None },
        brand: "Service".into(),
        telemetry: Default::default(),
    };
    let organization = OrganizationId::from_uuid(Clock.new_id());
    assert_eq!(store.commit(endpoint(organization, url)).await.unwrap(), Commit::Applied);
    let hooks = Hooks::new(Arc::new(store), settings, keys(), hasty(), Space::default()).unwrap();
    (hooks, organization)
}

/// Makes an endpoint of an organization.
fn endpoint(organization: OrganizationId, url: &str) -> Batch {
    let endpoint = EndpointId::from_uuid(Clock.new_id());
    let object = json!({
        "id": endpoint, "object": "webhook_endpoint", "organization_id": organization, "url": url, "events": null,
        "status": "enabled", "disabled_reason": null, "disabled_at": null, "failures_in_a_row": 0,
        "api_version": "2026-05-05", "created_at": Clock.now(), "updated_at": Clock.now(),
    });
    let place = WebhookEndpoint::key(SYSTEM, endpoint);
    let parsed: WebhookEndpoint = parse(&place, object.to_string().as_bytes()).unwrap();
    let mut batch = Batch::default();
    batch.insert(place, serde_json::to_vec(&parsed).unwrap().into());
    let secret = MasterKey::new(&[7; 32]).seal(endpoint, [1; 24], "whsec_dGVzdA").unwrap();
    batch.insert(key::secrets(endpoint), serde_json::to_vec(&Sealed(vec![secret])).unwrap().into());
    effects::index_keys(SYSTEM, &parsed).into_iter().for_each(|entry| batch.mark(entry, Prior::New));
    batch
}

/// The master keys of this server. Nothing reads their file.
fn keys() -> Keys {
    let ring = MasterKeys::new(vec![MasterKey::new(&[7; 32])]).unwrap();
    Keys::new(KeyFile::at("none"), ring)
}

/// Commits one event as a change does, and tells the relay.
async fn add_event(hooks: &Hooks, organization: OrganizationId) {
    commit_event(hooks, organization).await;
    hooks.committed();
}

async fn commit_event(hooks: &Hooks, organization: OrganizationId) {
    let (clock, kind) = (FixedClock::new(), event::EVENT_TYPES[0]);
    let id = EventId::from_uuid(clock.new_id());
    let mut batch = Batch::default();
    batch.insert(event::key(organization, id), event::body(id, kind.event_type, clock.now(), b"{}"));
    batch.put(key::outbox(organization, id), outbox::value(organization, kind.name), Prior::New);
    assert_eq!(hooks.store().commit(batch).await.unwrap(), Commit::Applied);
}

/// Runs `work`, but panics after a clock in the first `deaths` lives.
async fn dying(lives: &AtomicUsize, deaths: usize, work: impl Future<Output = ()>) {
    if lives.fetch_add(1, Ordering::Relaxed) >= deaths {
        return work.await;
    }
    let _ = tokio::time::timeout(Duration::from_millis(15), work).await;
    panic!("injected");
}

/// All deliveries of the organization.
async fn deliveries(hooks: &Hooks, organization: OrganizationId) -> Vec<Delivery> {
    let span = Span::under(key::records(organization, &delivery::SPEC));
    let rows = hooks.store().scan(&span, 10_000).await.unwrap();
    rows.into_iter().map(|row| row.unwrap()).map(|row| parse(&row.key, &row.value).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn relay_and_lanes_that_panic_deliver_every_event_and_make_no_delivery_twice() {
    const EVENTS: usize = 200;
    const DEATHS: usize = 4;
    let (directory, arrived) = (tempfile::tempdir().unwrap(), Arrived::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(receive(listener, Arc::clone(&arrived)));
    let (hooks, organization) = hooks(&directory, &url).await;
    lanes::start_missing(&hooks).await.unwrap();
    let supervisor = Arc::clone(&hooks.supervisor);
    let lives = [const { AtomicUsize::new(0) }; 3].map(Arc::new);
    let [of_relay, of_lanes, of_lane] = lives.clone();
    let (own, theirs) = (Arc::clone(&hooks), Arc::clone(&hooks));
    let relay = supervisor.start("relay", move || {
        let (lives, hooks) = (Arc::clone(&of_relay), Arc::clone(&own));
        async move { dying(&lives, DEATHS, relay::run(hooks)).await }
    });
    let one = move |hooks: Arc<Hooks>, id: EndpointId, bell: Arc<Bell>| {
        let lives = Arc::clone(&of_lane);
        async move { dying(&lives, DEATHS, lane::run(hooks, id, bell)).await }
    };
    let all = supervisor.start("lanes", move || {
        let (lives, hooks, one) = (Arc::clone(&of_lanes), Arc::clone(&theirs), one.clone());
        async move { dying(&lives, DEATHS, lanes::run(hooks, one)).await }
    });
    for _ in 0..EVENTS {
        add_event(&hooks, organization).await;
    }
    let done = async {
        while deliveries(&hooks, organization)
            .await
            .iter()
            .filter(|one| one.status == DeliveryStatus::Delivered)
            .count()
            < EVENTS
            || lives.iter().any(|lives| lives.load(Ordering::Relaxed) <= DEATHS)
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), done).await.expect("all events are delivered");
    hooks.stop().await;
    relay.await.unwrap();
    all.await.unwrap();
    assert_eq!(["relay", "lanes"].map(|task| restarts(&supervisor, task)), [4, 4]);
    assert_eq!(deliveries(&hooks, organization).await.len(), EVENTS, "one delivery for each event");
    assert_eq!(arrived.lock().unwrap().len(), EVENTS);
    for span in [key::outbox_rows(), key::due_rows_of_all()] {
        assert_eq!(hooks.store().scan(&span, 1).await.unwrap(), []);
    }
}

/// A signal can be lost: its sender can be dropped between the commit and the signal. The longest sleep is 5 s.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_nobody_signals_is_found_by_loops_that_wake_by_themselves() {
    let (directory, arrived) = (tempfile::tempdir().unwrap(), Arrived::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(receive(listener, Arc::clone(&arrived)));
    let (hooks, organization) = hooks(&directory, &url).await;
    lanes::start_missing(&hooks).await.unwrap();
    let (own, theirs) = (Arc::clone(&hooks), Arc::clone(&hooks));
    let relay = hooks.supervisor.start("relay", move || relay::run(Arc::clone(&own)));
    let all = hooks.supervisor.start("lanes", move || lanes::run(Arc::clone(&theirs), lane::run));
    add_event(&hooks, organization).await;
    let delivered = async |expected: usize| {
        let all = async {
            while deliveries(&hooks, organization)
                .await
                .iter()
                .filter(|one| one.status == DeliveryStatus::Delivered)
                .count()
                < expected
            {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), all).await.expect("they are delivered");
    };
    delivered(1).await;
    // All of them sleep now.
    tokio::time::sleep(Duration::from_millis(200)).await;
    commit_event(&hooks, organization).await;
    delivered(2).await;
    let other = endpoint(organization, &url);
    assert_eq!(hooks.store().commit(other).await.unwrap(), Commit::Applied);
    commit_event(&hooks, organization).await;
    delivered(4).await;
    hooks.stop().await;
    relay.await.unwrap();
    all.await.unwrap();
    assert_eq!(arrived.lock().unwrap().values().copied().collect::<Vec<_>>(), [1, 1, 2]);
}

/// hyper reads interim responses as long as they come. Without a bound they would end with the time-out.
#[tokio::test]
async fn interim_responses_without_end_are_read_up_to_a_bound() {
    let directory = tempfile::tempdir().unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/calendar.ics", listener.local_addr().unwrap());
    let pouring = std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let _ = std::io::Read::read(&mut client, &mut [0; 1024]).unwrap();
        let interim = "HTTP/1.1 102 Processing\r\n\r\n".repeat(4096);
        while std::io::Write::write_all(&mut client, interim.as_bytes()).is_ok() {}
    });
    let (hooks, _) = hooks(&directory, &url).await;
    let ended = hooks.sender.download(&url, None).await.map(drop).expect_err("the response has no end");
    assert!(ended.contains("bad_answer"), "{ended}");
    pouring.join().expect("the connection is closed");
}
