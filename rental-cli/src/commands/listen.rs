//! `listen`: shows events live, and forwards them to a developer's URL.

mod forward;

use crate::{
    client::{
        access::Access,
        api::Api,
        event_feed::{Event, Feed, Server},
    },
    commands::{
        collection,
        days::{self, Whose},
        group::{Group, with_examples},
        session::Session,
    },
    config::{
        values,
        when::{self, When},
    },
    failure::Failure,
    output::{self, Output, columns::NOTHING, style},
    text::tsv_cell,
};
use clap::{Arg, ArgAction, ArgMatches, Command, builder::PossibleValuesParser};
use forward::{AttemptResult, Forward};
use rental_core::resources::event::EVENT_NAMES;
use reqwest::Url;
use serde_json::json;
use signal_hook::{
    consts::{SIGINT, SIGTERM},
    flag,
};
use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{RecvTimeoutError, channel},
    },
    thread,
    time::Duration,
};
use unicode_width::UnicodeWidthStr as _;

pub(crate) const COMMAND: Group = Group { name: "listen", command, run };

/// Interval between two polls of the server.
const POLL_INTERVAL: Duration = Duration::from_millis(300);
/// Pause before the next request to a server that does not respond.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// Interval between two checks for Ctrl-C.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(50);

const MORE: &str = "\
Prints for each event its time, its type, what it is about, its id and the id of the object: on a terminal in local time, \
elsewhere as one line of time (UTC), type, event id and object id, separated by tabs. In the line of an attempt, its result stands where \
the type of an event does. With --json, each line is one JSON object as webhooks send it \
(JSON Lines).

With --forward-to, each event is also posted to the URL with the same body and headers as a webhook delivery, signed \
with a secret that stays the same between runs. Events are posted one after the other, with one attempt of at most 10 s \
each; redirects are not followed. A failed attempt is shown but not retried; use `rental-cli events resend` for that. \
The URL may be on this machine. Ctrl-C stops the command.";

fn command() -> Command {
    let examples = [
        "rental-cli listen --organization ID",
        "rental-cli listen --organization ID --forward-to http://127.0.0.1:3000/hooks",
        "rental-cli listen --organization ID --event rental.created --event invoice.paid --since 1h",
        "rental-cli listen --print-secret",
    ];
    let command = Command::new(COMMAND.name)
        .about("Show events live, and forward them to a URL (operator)")
        .arg(collection::organization("Organization of the events"))
        .arg(
            Arg::new("event")
                .long("event")
                .value_name("TYPE")
                .action(ArgAction::Append)
                .value_parser(PossibleValuesParser::new(EVENT_NAMES))
                .hide_possible_values(true)
                .help("Only events of this type; repeatable [default: all]"),
        )
        .arg(
            Arg::new("forward_to")
                .long("forward-to")
                .value_name("URL")
                .value_parser(values::target_url)
                .help("Also post each event to this URL"),
        )
        .arg(
            Arg::new("since")
                .long("since")
                .value_name("TIME")
                .value_parser(when::since)
                .help("Start with events since this time (RFC 3339), this day, such as today, or how long ago, such as 2h [default: now]"),
        )
        .arg(
            Arg::new("print_secret")
                .long("print-secret")
                .action(ArgAction::SetTrue)
                .help("Print the secret that signs forwarded events, and exit"),
        )
        .after_help(MORE);
    with_examples(command, &examples)
}

/// Counts for the summary.
#[derive(Default)]
struct Counts {
    shown: AtomicU64,
    forwarded: AtomicU64,
    failed: AtomicU64,
}

/// State of the listening thread.
struct Listener {
    api: Api,
    out: Output,
    organization: String,
    kinds: Vec<String>,
    since: Option<When>,
    target: Option<(Url, String)>,
    counts: Arc<Counts>,
}

fn run(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    if matches.get_flag("print_secret") {
        let secret = forward::signing_secret()?;
        let json = || json!({"object": "webhook_secret", "secret": secret}).to_string();
        return output::print(&format!("{}\n", if session.out.json { json() } else { secret.clone() }));
    }
    let target = match matches.get_one::<Url>("forward_to") {
        Some(url) => Some((url.clone(), forward::signing_secret()?)),
        None => None,
    };
    // A duration counts from the present time of the server.
    let since = match matches.get_one::<When>("since") {
        Some(day @ (When::Day(_) | When::FromToday(_))) => {
            Some(When::Text(days::time(day, &Whose::of(Access::Operator, matches), session)?))
        }
        other => other.cloned(),
    };
    let counts = Arc::new(Counts::default());
    let listener = Listener {
        api: session.api.clone(),
        out: session.out.clone(),
        organization: session.organization(matches)?.to_owned(),
        kinds: matches.get_many::<String>("event").into_iter().flatten().cloned().collect(),
        since,
        target,
        counts: Arc::clone(&counts),
    };
    let stop = stop_flag().map_err(|error| Failure::Io { doing: "listen for Ctrl-C".into(), error })?;
    let (ended, ending) = channel();
    // In a thread, so that Ctrl-C need not wait for a response. It ends with the process.
    thread::spawn(move || ended.send(listener.listen()));
    loop {
        match ending.recv_timeout(SIGNAL_INTERVAL) {
            Ok(failure) => return failure,
            Err(RecvTimeoutError::Disconnected) => {
                let error = io::Error::other("the listening thread ended");
                return Err(Failure::Io { doing: "continue".into(), error });
            }
            Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
    session.out.note(&counts.summary(matches.contains_id("forward_to")));
    Ok(())
}

/// Returns a flag that Ctrl-C or SIGTERM sets. A second signal ends the process at once.
fn stop_flag() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop))?;
        flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

impl Counts {
    fn summary(&self, forwards: bool) -> String {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let shown = count(&self.shown);
        let events = if shown == 1 { "event" } else { "events" };
        if !forwards {
            return format!("{shown} {events}");
        }
        format!("{shown} {events}, {} forwarded, {} failed", count(&self.forwarded), count(&self.failed))
    }
}

impl Listener {
    /// Listens until a permanent failure.
    fn listen(&self) -> Result<(), Failure> {
        let mut server = Server::ask(&self.api)?;
        let forward = match &self.target {
            Some((url, secret)) => Some(Forward::new(url.clone(), &server.brand, secret.clone())?),
            None => None,
        };
        let since = self.since.as_ref();
        let mut feed = Feed::start(&self.api, &server, self.organization.clone(), self.kinds.clone(), since)?;
        self.announce();
        loop {
            match feed.poll(&self.api, server.now(), |event| self.show_and_forward(event, forward.as_ref())) {
                Ok(()) => thread::sleep(POLL_INTERVAL),
                Err(failure) if failure.is_temporary() => {
                    server = self.wait_for_server(&failure)?;
                    feed.resume(server.now());
                    self.out.note("reconnected; no event was lost");
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Retries until the server responds or fails permanently.
    fn wait_for_server(&self, failure: &Failure) -> Result<Server, Failure> {
        let problem = failure.problem_and_hint().0;
        self.out.note(&format!("{}; retrying until the server responds", problem.trim_end_matches('.')));
        loop {
            thread::sleep(RETRY_PAUSE);
            match Server::ask(&self.api) {
                Err(failure) if failure.is_temporary() => {}
                settled => return settled,
            }
        }
    }

    fn announce(&self) {
        self.out.note(&match &self.target {
            // Not the secret: notes end in logs.
            Some((url, _)) => {
                format!(
                    "ready: forwarding to {url}, signed with the secret that `rental-cli listen --print-secret` prints"
                )
            }
            None => "ready: listening; Ctrl-C stops".into(),
        });
    }

    /// Prints an event and forwards it.
    fn show_and_forward(&self, event: &Event, forward: Option<&Forward>) -> Result<(), Failure> {
        output::print(&self.line(event, forward.is_some()))?;
        self.counts.shown.fetch_add(1, Ordering::Relaxed);
        let (Some(forward), Some((url, _))) = (forward, &self.target) else { return Ok(()) };
        let outcome = forward.send(event);
        let counter = if outcome.is_good() { &self.counts.forwarded } else { &self.counts.failed };
        counter.fetch_add(1, Ordering::Relaxed);
        output::print(&self.result(event, url, &outcome))
    }

    fn line(&self, event: &Event, forwards: bool) -> String {
        let Event { id, kind, object_id, about, at, body } = event;
        if self.out.json {
            // JSON allows line breaks between tokens only, so replacing them changes no value.
            return body.replace(['\n', '\r'], " ") + "\n";
        }
        let at = self.out.moment(*at);
        let shown = self.out.paint.with(style::HINT, kind);
        let Some(width) = self.out.width() else { return format!("{at}\t{kind}\t{id}\t{object_id}\n") };
        let arrow = if forwards { "--> " } else { "" };
        // Pad to the longest type, so that the columns are aligned.
        let longest = EVENT_NAMES.iter().map(|name| name.len()).max().unwrap_or(0);
        let padding = " ".repeat(longest.saturating_sub(kind.len()));
        let about = about.as_deref().unwrap_or(NOTHING);
        let ids = format!("{id}  {object_id}");
        let used = at.len() + 2 + arrow.len() + longest + 2 + about.width() + 2;
        // As in lists, the ids have a line of their own where there is no room beside the rest.
        let before_ids = if used + ids.len() <= width { "  " } else { "\n  " };
        let ids = self.out.paint.with(style::DIM, &ids);
        format!("{at}  {arrow}{shown}{padding}  {about}{before_ids}{ids}\n")
    }

    fn result(&self, event: &Event, url: &Url, outcome: &AttemptResult) -> String {
        let (id, object_id, took) = (event.id, &event.object_id, outcome.took.as_millis());
        if self.out.json {
            let result = json!({"object": "forward", "event_id": id, "url": url.as_str(), "status": outcome.status,
                "error": outcome.problem, "response": outcome.excerpt, "duration_ms": u64::try_from(took).ok()});
            return format!("{result}\n");
        }
        let style = if outcome.is_good() { style::SUCCESS } else { style::ERROR };
        let ending = outcome.status.map_or_else(|| "no response".to_owned(), |status| status.to_string());
        let ending = self.out.paint.with(style, &format!("[{ending}]"));
        let why = match &outcome.problem {
            Some(problem) => format!(": {problem}"),
            None if outcome.is_good() || outcome.excerpt.is_empty() => String::new(),
            None => format!(": {}", outcome.excerpt),
        };
        let at = self.out.moment(crate::edge::now());
        if self.out.is_terminal() {
            return format!("{at}  <-- {ending} POST {url} {took} ms{why}\n");
        }
        // The columns of an event.
        format!("{at}\t{}\t{id}\t{object_id}\n", tsv_cell(&format!("{ending} POST {url} {took} ms{why}")))
    }
}
