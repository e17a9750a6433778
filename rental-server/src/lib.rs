//! The server: flags in, HTTP out. Everything that decides anything is in `rental-core`.

mod access;
mod attachments;
mod audit;
mod backups;
mod calendar_feeds;
mod changed_feeds;
mod chores;
mod config;
mod congestion;
mod damaged_rows;
mod demo;
mod disk;
mod documents;
mod edge;
mod endpoint;
mod endpoints;
mod engine;
mod fleet_api;
mod guard;
mod healthcheck;
mod histogram;
mod http;
mod limits;
mod master_key;
mod metrics;
mod objects;
mod observability;
mod open_files;
mod operator;
mod outgoing;
mod panics;
mod reference;
mod secrets;
mod service_manager;
mod state;
mod supervisor;
mod tasks;
mod telemetry;
mod threads;
mod trace_context;
mod upgrade;
mod usage;
mod webhooks;

use crate::{
    access::{
        failures::Failures,
        limiter::Limit,
        quotas::{Defaults, Tenants},
    },
    backups::Backups,
    config::{Config, LogFormat, LogLevel, store_url},
    disk::Space,
    endpoints::Offered,
    engine::OPENING,
    http::{
        places::ConnectionLimits,
        tls::{Tls, TlsFiles},
    },
    metrics::Metrics,
    state::{App, Limits},
    supervisor::Supervisor,
    telemetry::{Collector, Telemetry},
    upgrade::Ended,
    webhooks::Hooks,
};
use clap::CommandFactory;
use futures_util::future::{join, join_all, try_join_all};
use rental_core::store::{Engine, Place};
use std::{
    io::{self, ErrorKind, Write},
    net::{SocketAddr, TcpListener as StdListener},
    path::Path,
    process::ExitCode,
    sync::{Arc, atomic::Ordering},
};
use tokio::{
    net::TcpListener,
    runtime::Handle,
    signal::unix::{SignalKind, signal},
    sync::watch,
    task::JoinHandle,
};
use tracing_subscriber::{
    Layer,
    filter::{LevelFilter, Targets},
    fmt,
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

/// Most open connections of `--operator-listen`.
const OPERATOR_CONNECTIONS: usize = 256;

/// Runs the program with its arguments and environment until it is stopped.
#[must_use]
pub fn main() -> ExitCode {
    let config = match config::parse() {
        Ok(config) => config,
        Err(error) => return usage(&error),
    };
    if let Some(kind) = config.generate {
        let printed = config::generate(kind, Config::command()).and_then(|text| io::stdout().write_all(&text));
        return printed.map_or_else(|error| fail(&format!("cannot print: {error}")), |()| ExitCode::SUCCESS);
    }
    // One TLS provider for the process; the first call wins and there is only this one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    if config.healthcheck {
        return check_health(&config);
    }
    start_logging(&config);
    open_files::raise_limit(most_clients(&config));
    // One line instead of a backtrace: the message says where, and a request that panics is answered with a 500.
    std::panic::set_hook(Box::new(|panic| {
        // While a store is opened, a panic only says that it is damaged, and `open` says so. Later, the log line of a damaged row does.
        if !OPENING.load(Ordering::Relaxed) && !rental_core::store::panic_is_damage() {
            tracing::error!("panic: {panic}");
        }
    }));
    let passed = match service_manager::sockets() {
        Ok(passed) => passed,
        Err(message) => return fail(&message),
    };
    let outcome = threads::run(|background| run(&config, passed, background));
    outcome.map_or_else(|message| fail(&message), |()| ExitCode::SUCCESS)
}

/// Help and version as they are; a bad flag in one line that names it.
fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        // A closed stdout is no reason to fail.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    let text = error.to_string();
    let meant = config::meant(error);
    let said = |line: &&str| {
        let is_tip = meant.is_some() && line.trim_start().starts_with("tip: ");
        !line.trim().is_empty() && !line.starts_with("Usage:") && !line.starts_with("For more") && !is_tip
    };
    let lines: Vec<&str> = text.lines().filter(said).map(str::trim).collect();
    // A list of flags follows its colon on lines of its own.
    let text = lines.join("; ").replace(":; ", ": ");
    let meant = meant.map(|meant| format!("; use {meant}")).unwrap_or_default();
    say(&format!("{}{meant}; see --help", text.trim_start_matches("error: ")));
    ExitCode::from(2)
}

fn check_health(config: &Config) -> ExitCode {
    let outcome = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(healthcheck::run(config)),
        Err(error) => Err(format!("cannot start: {error}")),
    };
    outcome.map_or_else(|message| fail(&message), |()| ExitCode::SUCCESS)
}

fn fail(message: &str) -> ExitCode {
    say(message);
    ExitCode::FAILURE
}

/// One line on stderr. That nobody reads it (a closed pipe, a full disk) changes nothing else.
fn say(message: &str) {
    let _ = writeln!(io::stderr(), "rental-server: {message}");
}

/// The most connections of clients and operators and attempts of webhooks at the same time.
fn most_clients(config: &Config) -> u64 {
    let fixed = OPERATOR_CONNECTIONS + outgoing::client::MOST_KEPT + webhooks::MOST_IN_FLIGHT;
    u64::try_from(fixed).unwrap_or(u64::MAX).saturating_add(u64::from(config.max_connections))
}

fn start_logging(config: &Config) {
    let level = match config.log_level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
    };
    // Other crates speak up from warnings on; this one from the level asked for. What h2 warns of, clients can cause at will.
    let own = [("rental_server", level), ("rental_core", level)];
    let filter = Targets::new().with_default(LevelFilter::WARN).with_target("h2", LevelFilter::ERROR).with_targets(own);
    // A line that cannot be written is lost. To report that on stderr, too, would panic.
    let lines = fmt::layer().with_writer(io::stderr).log_internal_errors(false);
    let lines = match config.log_format {
        LogFormat::Text => lines.with_ansi(io::IsTerminal::is_terminal(&io::stderr())).boxed(),
        LogFormat::Json => lines.json().boxed(),
    };
    tracing_subscriber::registry().with(filter).with(lines).init();
}

async fn run(config: &Config, passed: Vec<StdListener>, background: Handle) -> Result<(), String> {
    let demo = if config.demo { Some(demo::Place::new()?) } else { None };
    let Ok(store_url) = demo.as_ref().map_or_else(|| Ok(config.store.clone()), |demo| store_url(&demo.store_url()));
    let place = store_url.place()?;
    // Checked and bound first: a wrong secret and an address in use are noticed before anything is made on disk.
    secrets::check(config, place.file())?;
    collector(config)?;
    if std::env::var_os("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT").is_some() {
        tracing::warn!(
            "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT is ignored: metrics are not pushed. Let the collector scrape GET /metrics"
        );
    }
    let tls = tls(config)?;
    let listeners = listen(config, passed).await?;
    let base_urls = base_urls(&listeners, tls.is_some())?;
    let backups = Backups::of(config, place.file().is_none())?;
    let store = engine::open(place.as_ref(), config).await?;
    let mut stop = Box::pin(stop_signal()?);
    let before = upgrade::before_serving((&listeners, tls.as_ref()), store, (&place, config), stop.as_mut()).await?;
    let Ended::Ready(store) = before else { return Ok(()) };
    engine::make_views(store.as_ref()).await;
    chores::begin_clock(store.as_ref()).await?;
    let token = secrets::admin_token(config, place.file())?;
    // A connection to a database is driven by the thread that opened it, for background tasks and requests.
    let threads = if store.is_shared() { Handle::current() } else { background };
    let supervisor = Supervisor::new(threads);
    let (app, hooks) = assemble(config, place.as_ref(), (&store, &supervisor), (&token.text, backups)).await?;
    match (&demo, base_urls.last()) {
        // The last one serves everything.
        (Some(_), Some(base_url)) => demo::fill(&app, base_url, &token.text).await?,
        _ => announce(&base_urls, token.path.as_deref()),
    }
    let background = Background::start(&app, &hooks, &supervisor, tls.as_ref()).await?;
    service_manager::ready();
    let failed = Arc::clone(&store);
    let outcome = tokio::select! {
        () = serve(listeners, &app, connection_limits(config), tls.as_ref(), stop) => Ok(()),
        failure = async move { failed.failed().await } => Err(format!("the store failed and nothing more can be saved: {failure}")),
    };
    background.stop(&app, &hooks).await;
    drop((app, hooks));
    close(store).await;
    outcome
}

/// Makes what requests and background tasks share. Nothing runs yet.
async fn assemble(
    config: &Config,
    place: &dyn Place,
    (store, supervisor): (&Arc<dyn Engine>, &Arc<Supervisor>),
    (token, backups): (&str, Backups),
) -> Result<(Arc<App>, Arc<Hooks>), String> {
    let keys = master_key::open(store.as_ref(), config, place.file()).await?;
    let space = Space::of(place.file(), config.min_free_space);
    let hooks = Hooks::new(Arc::clone(store), webhook_settings(config)?, keys, Arc::clone(supervisor), space)?;
    let names = endpoints::names().map(|(method, path)| (method.as_str(), path));
    let failures = Failures::default();
    let (limits, tenants) = limits(config);
    let seen = (&*hooks.damaged, &hooks.space, &backups);
    let metrics =
        Metrics::new(names, (&hooks.metrics, &hooks.settings.telemetry), seen, supervisor, (&failures, &tenants));
    store.observe(metrics.commits.clone());
    let public_url = config.public_url.as_ref().map(|url| url.0.as_str());
    let documents = reference::documents(&endpoints::ENDPOINTS, config.operator_listen.is_some(), public_url);
    let mut app = App::new(
        Arc::clone(store),
        place.file().map(Path::to_owned),
        (Arc::clone(supervisor), Arc::clone(&hooks)),
        token,
        (limits, tenants),
        (metrics, documents, failures),
    );
    app.backups = Arc::new(backups);
    app.public_url = public_url.map(str::to_owned);
    Ok((Arc::new(app), hooks))
}

/// The limits of requests, and what the organizations may use.
fn limits(config: &Config) -> (Limits, Arc<Tenants>) {
    let limits = Limits {
        max_body: config.max_body,
        request_timeout: config.request_timeout,
        rate: config.rate_limit.map(Limit::new),
    };
    let defaults = Defaults {
        objects: config.organization_objects.0,
        bytes: config.organization_bytes.0,
        requests: config.organization_requests.0.and_then(|most| u32::try_from(most).ok()),
    };
    (limits, Arc::new(Tenants::new(defaults)))
}

/// The collector of traces, with the headers that it asks for.
fn collector(config: &Config) -> Result<Option<Collector>, String> {
    let Some(url) = config.otlp_endpoint.clone() else {
        return match config.otlp_headers_file {
            Some(_) => Err("--otlp-headers-file (or RENTAL_OTLP_HEADERS_FILE) has headers for a collector, but none is set: add --otlp-endpoint URL (or OTEL_EXPORTER_OTLP_ENDPOINT), or remove the file".into()),
            None => Ok(None),
        };
    };
    let headers = telemetry::headers(config.otlp_headers_file.as_deref())?;
    Ok(Some(Collector { url, interval: config.otlp_interval, headers }))
}

fn webhook_settings(config: &Config) -> Result<webhooks::Settings, String> {
    Ok(webhooks::Settings {
        allow_private: config.webhook_allow_private,
        send: !config.no_webhooks,
        https_only: config.webhook_https_only,
        schedule: config.webhook_retry_schedule.clone(),
        timeout: config.webhook_timeout,
        retention: webhooks::Retention {
            events: config.event_retention.0,
            deliveries: config.delivery_retention.0,
            leads: config.lead_retention.0,
            audit_entries: config.audit_retention.0,
        },
        brand: config.brand.clone(),
        telemetry: Telemetry::to(collector(config)?.as_ref())?,
    })
}

/// The background tasks that run while the server serves.
struct Background {
    /// They end by themselves, after the attempts in flight; a backup ends where it is.
    deliver: Vec<JoinHandle<()>>,
    /// They can be ended at any time.
    chores: Vec<JoinHandle<()>>,
}

impl Background {
    async fn start(
        app: &Arc<App>,
        hooks: &Arc<Hooks>,
        supervisor: &Arc<Supervisor>,
        tls: Option<&Tls>,
    ) -> Result<Self, String> {
        let mut deliver =
            webhooks::start(hooks).await.map_err(|error| format!("cannot start the webhooks: {error:?}"))?;
        let mut chores = chores::start(supervisor, app);
        app.backups.warn_if_none();
        if app.backups.every().is_some() {
            let own = Arc::clone(app);
            deliver.push(supervisor.start("backup", move || make_backups(Arc::clone(&own))));
        }
        chores.push(tasks::start(supervisor, app));
        if hooks.settings.telemetry.is_on() {
            let own = Arc::clone(app);
            chores.push(supervisor.start("otlp", move || export(Arc::clone(&own))));
        }
        chores.push(attachments::start(supervisor, app));
        chores.extend(calendar_feeds::start(supervisor, app));
        if let Some(tls) = tls {
            let watcher = tls.watcher();
            chores.push(supervisor.start("tls_certificate", move || watcher.clone().run()));
        }
        Ok(Self { deliver, chores })
    }

    /// Stops the tasks, then saves what they had in memory.
    async fn stop(self, app: &App, hooks: &Hooks) {
        hooks.stop().await;
        for task in self.deliver {
            let _ = task.await;
        }
        for task in self.chores {
            task.abort();
            let _ = task.await;
        }
        hooks.settings.telemetry.flush().await;
        app.usage.stop(&app.hooks.damaged).await;
        // Losing these would only make `last_used_at` a minute older.
        let _ = app.save_uses().await;
    }
}

async fn make_backups(app: Arc<App>) {
    app.backups.run(&app.store, &app.hooks.space.spools, &app.supervisor).await;
}

/// Sends spans to the collector.
async fn export(app: Arc<App>) {
    app.hooks.settings.telemetry.run().await;
}

/// The sockets: the one of `--listen`, and after it that of `--operator-listen`, if it is given. Those that a service manager
/// has `passed` take their places.
async fn listen(config: &Config, passed: Vec<StdListener>) -> Result<Vec<TcpListener>, String> {
    if !passed.is_empty() {
        service_manager::check_number(passed.len(), config.operator_listen.is_some())?;
        let adopt = |listener: StdListener| {
            listener.set_nonblocking(true)?;
            TcpListener::from_std(listener)
        };
        let adopted = passed.into_iter().map(adopt).collect::<Result<_, _>>();
        return adopted.map_err(|error| format!("a socket of the service manager cannot be used: {error}"));
    }
    let addresses = [config.listen].into_iter().chain(config.operator_listen);
    let bind = async |address: SocketAddr| {
        TcpListener::bind(address).await.map_err(|error| {
            let next = match error.kind() {
                ErrorKind::AddrInUse => {
                    "; stop the program that has the port (`ss -ltnp` shows it), or choose another port with --listen"
                }
                ErrorKind::PermissionDenied => "; choose a port above 1023 with --listen, or use the socket unit",
                _ => "",
            };
            format!("cannot listen on {address}: {error}{next}")
        })
    };
    try_join_all(addresses.map(bind)).await
}

/// The URLs of the sockets.
fn base_urls(listeners: &[TcpListener], secure: bool) -> Result<Vec<String>, String> {
    let scheme = if secure { "https" } else { "http" };
    let url = |listener: &TcpListener| listener.local_addr().map(|address| format!("{scheme}://{address}"));
    listeners.iter().map(url).collect::<Result<_, _>>().map_err(|error| format!("cannot tell the address: {error}"))
}

/// Serves on all sockets until `stop` resolves. The last one serves everything, the one before it no operators.
async fn serve(
    listeners: Vec<TcpListener>,
    app: &Arc<App>,
    limits: ConnectionLimits,
    tls: Option<&Tls>,
    stop: impl Future<Output = ()>,
) {
    let (stopped, stop_told) = watch::channel(());
    let last = listeners.len() - 1;
    let each = listeners.into_iter().enumerate().map(|(at, listener)| {
        let offered = if at == last { Offered::All } else { Offered::Public };
        let server = Arc::new(endpoints::Server::new(Arc::clone(app), offered));
        let all = if at == 0 { limits.all } else { limits.all.min(OPERATOR_CONNECTIONS) };
        let limits = ConnectionLimits { all, ..limits.clone() };
        let mut told = stop_told.clone();
        // An error means that the sender was dropped, which is the signal.
        http::server::serve(listener, server, limits, tls, async move { drop(told.changed().await) })
    });
    let wait = async {
        stop.await;
        drop(stopped);
    };
    join(wait, join_all(each)).await;
}

/// Closes the store cleanly when nobody else holds it any more; what was acknowledged is durable either way.
async fn close(store: Arc<dyn Engine>) {
    if let Err(error) = store.close().await {
        tracing::warn!(%error, "the store did not close cleanly");
    }
}

/// TLS, when the flags name its files.
fn tls(config: &Config) -> Result<Option<Tls>, String> {
    let (Some(certificate), Some(key)) = (config.tls_cert.clone(), config.tls_key.clone()) else { return Ok(None) };
    Tls::load(TlsFiles { certificate, key }).map(Some)
}

fn connection_limits(config: &Config) -> ConnectionLimits {
    ConnectionLimits {
        all: config.max_connections as usize,
        per_address: config.connections_per_address as usize,
        proxies: config.trusted_proxies.as_slice().into(),
    }
}

fn announce(base_urls: &[String], token: Option<&Path>) {
    let mut out = io::stdout().lock();
    let base_url = base_urls.first().map_or("", String::as_str);
    // A closed stdout is no reason not to serve.
    let _ = writeln!(out, "rental-server {} listening on {base_url}", env!("CARGO_PKG_VERSION"));
    let _ = writeln!(out, "docs         {base_url}/docs");
    if let Some(base_url) = base_urls.get(1) {
        let _ = writeln!(out, "operators    {base_url}");
    }
    let _ = match token {
        Some(path) => writeln!(out, "admin token  {}", path.display()),
        None => writeln!(out, "admin token  from RENTAL_ADMIN_TOKEN"),
    };
    let _ = out.flush();
}

/// Resolves on SIGTERM or Ctrl-C; a second one ends the process at once.
fn stop_signal() -> Result<impl Future<Output = ()>, String> {
    let listen = |kind| signal(kind).map_err(|error| format!("cannot listen for signals: {error}"));
    let (mut terminate, mut interrupt) = (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} }
        service_manager::stopping();
        tracing::info!("stopping: no new connections, running requests are finished");
        tokio::spawn(async move {
            tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} }
            std::process::exit(130);
        });
    })
}
