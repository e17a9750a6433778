//! Deliveries to a receiver in this process that counts them, and answers at once or after a time.

use crate::{Outcome, Server, post};
use serde_json::json;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::mpsc;
use warp::Filter;

/// Deliveries in each round.
const DELIVERIES: u64 = 30_000;
/// Single events for the time from response to receipt.
const SINGLES: usize = 300;

/// What the receiver saw.
struct Sink {
    count: Arc<AtomicU64>,
    arrivals: mpsc::UnboundedReceiver<Instant>,
    address: String,
}

fn start_sink(delay: Duration) -> Outcome<Sink> {
    let (count, (told, arrivals)) = (Arc::new(AtomicU64::new(0)), mpsc::unbounded_channel());
    let counted = Arc::clone(&count);
    let receive = warp::post().and(warp::body::bytes()).then(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        let _ = told.send(Instant::now());
        async move {
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            String::new()
        }
    });
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?.to_string();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        if let Ok(runtime) = runtime {
            runtime.block_on(async move {
                if let Ok(listener) = tokio::net::TcpListener::from_std(listener) {
                    warp::serve(receive).incoming(listener).run().await;
                }
            });
        }
    });
    Ok(Sink { count, arrivals, address })
}

/// Deliveries per second with 1, 10 and 100 endpoints while events are being made, and the time to receipt when idle.
pub(crate) fn measure(server: &mut Server) -> Outcome<()> {
    let mut sink = start_sink(Duration::ZERO)?;
    println!("{:>10} {:>14} {:>30} {:>14}", "endpoints", "deliveries/s", "CPU s per 1,000 (with POSTs)", "resident MB");
    for endpoints in [1, 10, 100_u64] {
        // An organization has at most 50 endpoints, so a hundred are those of two.
        let organizations = endpoints.div_ceil(50);
        let keys = (0..organizations)
            .map(|_| subscribe(server, &sink.address, endpoints / organizations))
            .collect::<Outcome<Vec<_>>>()?;
        let events = DELIVERIES / (endpoints / organizations);
        let (cpu, before, began) = (server.cpu_seconds()?, sink.count.load(Ordering::Relaxed), Instant::now());
        make_events(&server.address, &keys, events)?;
        let expected = before + events * (endpoints / organizations);
        while sink.count.load(Ordering::Relaxed) < expected {
            if began.elapsed() > Duration::from_secs(120) {
                return Err(format!("{} of {expected} arrived", sink.count.load(Ordering::Relaxed)).into());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let made = (expected - before) as f64;
        let cpu = (server.cpu_seconds()? - cpu) / made * 1000.0;
        println!(
            "{endpoints:10} {:14.0} {cpu:30.3} {:14}",
            made / began.elapsed().as_secs_f64(),
            server.resident_mb()?
        );
    }
    measure_receipt(server, &mut sink, "when idle")?;
    measure_slow(server)?;
    measure_flood(server, &mut sink)
}

/// Deliveries per second to one endpoint whose receiver responds after 100 ms, in each second.
fn measure_slow(server: &Server) -> Outcome<()> {
    const EVENTS: u64 = 6_000;
    let slow = start_sink(Duration::from_millis(100))?;
    let keys = [subscribe(server, &slow.address, 1)?];
    let address = server.address.clone();
    let making = std::thread::spawn(move || make_events(&address, &keys, EVENTS).is_ok());
    let (began, mut seconds, mut before) = (Instant::now(), Vec::new(), 0);
    while before < EVENTS {
        if began.elapsed() > Duration::from_secs(120) {
            return Err(format!("{before} of {EVENTS} arrived").into());
        }
        std::thread::sleep(Duration::from_secs(1));
        let count = slow.count.load(Ordering::Relaxed);
        seconds.push((count - before).to_string());
        before = count;
    }
    if !making.join().unwrap_or_default() {
        return Err("some events could not be made".into());
    }
    println!("a receiver that responds after 100 ms: deliveries in each second: {}", seconds.join(" "));
    Ok(())
}

/// The time to receipt of one organization while three flood receivers that take 9 s.
fn measure_flood(server: &mut Server, sink: &mut Sink) -> Outcome<()> {
    let slow = start_sink(Duration::from_secs(9))?;
    for _ in 0..3 {
        let keys = [subscribe(server, &slow.address, 40)?];
        make_events(&server.address, &keys, 100)?;
    }
    while slow.count.load(Ordering::Relaxed) < 700 {
        std::thread::sleep(Duration::from_millis(10));
    }
    measure_receipt(server, sink, "while three organizations flood receivers that take 9 s")
}

/// Memory with a million deliveries that wait for disabled endpoints, and while they go out at last.
pub(crate) fn measure_backlog(server: &mut Server) -> Outcome<()> {
    const ENDPOINTS: u64 = 50;
    const WAITING: u64 = 1_000_000;
    let sink = start_sink(Duration::ZERO)?;
    let organization = server.admin("/admin/v1/organizations", &json!({"name": "Hooks"}))?;
    let mut endpoints = Vec::new();
    for number in 0..ENDPOINTS {
        let fields = json!({"organization_id": organization["id"], "url": format!("http://{}/{number}", sink.address)});
        let made = server.admin("/admin/v1/webhook_endpoints", &fields)?;
        endpoints.push(format!("/admin/v1/webhook_endpoints/{}", made["id"].as_str().unwrap_or_default()));
    }
    let switch = |word: &str| {
        endpoints.iter().try_for_each(|path| server.admin(&format!("{path}/{word}"), &json!({})).map(drop))
    };
    switch("disable")?;
    let key =
        server.admin("/admin/v1/api_keys", &json!({"organization_id": organization["id"], "scope": "read_write"}))?;
    let key = key["key"].as_str().unwrap_or_default().to_owned();
    println!("empty: resident {} MB", server.resident_mb()?);
    make_events(&server.address, &[key], WAITING / ENDPOINTS)?;
    while server.metric("rental_webhook_deliveries_kept")? < WAITING as f64 {
        std::thread::sleep(Duration::from_millis(200));
    }
    println!("{WAITING} deliveries kept for {ENDPOINTS} disabled endpoints: resident {} MB", server.resident_mb()?);
    let (began, mut most) = (Instant::now(), 0);
    switch("enable")?;
    while sink.count.load(Ordering::Relaxed) < WAITING {
        if began.elapsed() > Duration::from_secs(600) {
            return Err(format!("{} arrived", sink.count.load(Ordering::Relaxed)).into());
        }
        most = most.max(server.resident_mb()?);
        std::thread::sleep(Duration::from_millis(100));
    }
    let rate = WAITING as f64 / began.elapsed().as_secs_f64();
    println!("all sent: {rate:.0} deliveries/s, at most {most} MB resident meanwhile");
    Ok(())
}

/// A new organization with a key and so many endpoints.
fn subscribe(server: &Server, sink: &str, endpoints: u64) -> Outcome<String> {
    let organization = server.admin("/admin/v1/organizations", &json!({"name": "Hooks"}))?;
    for number in 0..endpoints {
        let url = format!("http://{sink}/{number}");
        server.admin("/admin/v1/webhook_endpoints", &json!({"organization_id": organization["id"], "url": url}))?;
    }
    let key =
        server.admin("/admin/v1/api_keys", &json!({"organization_id": organization["id"], "scope": "read_write"}))?;
    Ok(key["key"].as_str().unwrap_or_default().to_owned())
}

/// So many vehicles, over a few connections at once.
fn make_events(address: &str, keys: &[String], events: u64) -> Outcome<()> {
    let threads = 16;
    std::thread::scope(|scope| {
        let mut running = Vec::new();
        for thread in 0..threads {
            let share = events / threads + u64::from(thread < events % threads);
            running.push(scope.spawn(move || keep_posting(address, keys, share)));
        }
        running.into_iter().all(|thread| thread.join().is_ok_and(|made| made.is_ok()))
    })
    .then_some(())
    .ok_or_else(|| "some events could not be made".into())
}

fn keep_posting(address: &str, keys: &[String], share: u64) -> std::io::Result<()> {
    use std::io::{BufRead, BufReader, Read, Write};
    let mut stream = BufReader::new(std::net::TcpStream::connect(address)?);
    stream.get_ref().set_nodelay(true)?;
    let body =
        r#"{"name":"White Tesla","make":"Tesla","model":"Model 3","year":2023,"plate":"ABC1234","daily_rate":89.5}"#;
    for number in 0..share {
        let key = &keys[number as usize % keys.len()];
        let head = format!(
            "POST /v1/vehicles HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.get_mut().write_all(head.as_bytes())?;
        let mut length = 0;
        loop {
            let mut line = String::new();
            stream.read_line(&mut line)?;
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.trim().parse().unwrap_or(0);
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut answer = vec![0; length];
        stream.read_exact(&mut answer)?;
    }
    Ok(())
}

/// One event at a time, under these circumstances: from the response to the POST until the receiver has the delivery.
fn measure_receipt(server: &mut Server, sink: &mut Sink, circumstances: &str) -> Outcome<()> {
    server.key = subscribe(server, &sink.address, 1)?;
    while sink.arrivals.try_recv().is_ok() {}
    let mut waits = Vec::new();
    for _ in 0..SINGLES {
        post(&server.address, "/v1/vehicles", &server.key, &json!({"name": "One"}))?;
        let answered = Instant::now();
        let arrived = sink.arrivals.blocking_recv().ok_or("the receiver stopped")?;
        waits.push(arrived.saturating_duration_since(answered).as_secs_f64() * 1000.0);
        std::thread::sleep(Duration::from_millis(5));
    }
    waits.sort_by(f64::total_cmp);
    let at = |share: f64| waits[((waits.len() - 1) as f64 * share) as usize];
    println!(
        "from response to receipt {circumstances}: p50 {:.2} ms, p99 {:.2} ms, most {:.2} ms",
        at(0.5),
        at(0.99),
        at(1.0)
    );
    Ok(())
}
