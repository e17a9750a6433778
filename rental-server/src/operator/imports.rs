//! Files of toll agencies, cities and other servers, sent by the operator: the whole file lies in a temporary file and is
//! read once to its end before anything is recorded, so a file that is not what it claims changes nothing.

mod documents;

use crate::{
    access::gate,
    audit::Note,
    edge,
    endpoint::{Endpoint, Operator, Request},
    http::{
        call::{Body, Call, copy_body},
        progress::{self, Progress},
        reply::{Handled, Problem, Reply},
    },
    state::App,
};
use bytes::Bytes;
use rental_core::{
    error::{Error, FieldCode, FieldError, FieldErrors},
    import::{self, Failed, Mapping, Row, Settings},
    intake::{CHUNK, Counts, Fate, Intake},
    page,
    resources::organization::Organization,
    store::{Store, redb::Redb},
    transfer::{self, Arrivals},
    value::Zone,
};
use serde::Serialize;
use std::{
    fs::File,
    io::{BufReader, Seek},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};
use tokio::runtime::Handle;

/// Largest file: 2 GiB, which are some fifteen million tolls.
const MOST_BYTES: u64 = 2 << 30;
/// Largest export: a file of many years.
const MOST_BYTES_OF_LINES: u64 = 16 << 30;
/// Memory for pages of the store that a trial run fills.
const TRIAL_CACHE: usize = 32 << 20;
/// Whose summons numbers they are, unless the request says otherwise.
const ISSUER: &str = "NYC";

/// What a file holds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    Tolls,
    Violations,
    /// Lines of an export.
    Objects,
}

/// How a file is to be read, from the query.
#[derive(Debug, Default)]
struct Asked {
    format: Option<String>,
    mapping: Option<Mapping>,
    zone: Option<Zone>,
    issuer: Option<String>,
    trial: bool,
}

#[derive(Serialize)]
struct Answer {
    object: &'static str,
    format: String,
    dry_run: bool,
    #[serde(flatten)]
    counts: Counts,
}

/// Imports of statements of tolls.
pub(super) fn tolls() -> Vec<Endpoint> {
    vec![documents::tolls().operator(|request| Box::pin(run(request, Kind::Tolls)))]
}

/// Imports of lists of violations.
pub(super) fn violations() -> Vec<Endpoint> {
    vec![documents::violations().operator(|request| Box::pin(run(request, Kind::Violations)))]
}

/// Imports of exports.
pub(super) fn objects() -> Vec<Endpoint> {
    vec![documents::objects().operator(|request| Box::pin(run(request, Kind::Objects)))]
}

async fn run(mut request: Request<'_, Operator>, kind: Kind) -> Handled {
    let organization = gate::organization(request.app.store(), request.id).await?;
    let (app, call) = (request.app, request.call);
    let asked = Asked::parse(call.query(), kind)?;
    let limit = if kind == Kind::Objects { MOST_BYTES_OF_LINES } else { MOST_BYTES };
    // Before anything is kept: so many files lie on the disk at once.
    let permit = Arc::clone(&app.imports).acquire_owned().await.map_err(|_| Error::Unavailable("stopping".into()))?;
    let spool = spool(app, call, &mut request.body, limit).await?;
    let note = Note::of(call, Some(organization.id));
    let (mut progress, listening) = progress::of(call);
    let import = Import { store: Arc::clone(&app.store) as _, runtime: Handle::current(), organization, kind, asked };
    let hooks = Arc::clone(&app.hooks);
    // On a thread of its own: parsing never waits, and must not keep other requests waiting.
    let work = tokio::task::spawn_blocking(move || {
        let answered = catch_unwind(AssertUnwindSafe(|| import.answer(spool, note, &mut progress)));
        let outcome = answered.unwrap_or_else(|_| Err(Error::Internal("an import panicked".into()).into()));
        // Also after a failure: what was recorded before it stays, and so do its events.
        hooks.committed();
        drop(permit);
        progress.finish(&outcome);
        outcome
    });
    if let Some(listening) = listening
        && let Some(reply) = listening.begun().await
    {
        return Ok(reply);
    }
    let outcome = work.await.map_err(|error| Error::Internal(format!("an import ended early: {error}")))?;
    Ok(Reply::json(outcome?))
}

impl Asked {
    fn parse(query: &str, kind: Kind) -> Result<Self, Error> {
        let known: &[&str] = match kind {
            Kind::Tolls => &["format", "mapping", "time_zone", "dry_run"],
            Kind::Violations => &["format", "time_zone", "issuer", "dry_run"],
            Kind::Objects => &["dry_run"],
        };
        let (mut asked, mut errors) = (Self::default(), FieldErrors::default());
        let formats = match kind {
            Kind::Tolls => import::TOLL_FORMATS,
            Kind::Violations => import::VIOLATION_FORMATS,
            Kind::Objects => &[],
        };
        for (name, value) in page::parameters(query, known)? {
            let mut refuse = |rule: &str| errors.push(FieldError::new(&name, FieldCode::Invalid, rule));
            match name.as_str() {
                "format" if !formats.iter().any(|(known, _)| *known == value) => {
                    let names = formats.iter().map(|(name, _)| *name);
                    let near = page::nearest(&value, names.clone());
                    refuse(&format!("must be one of {}{near}", names.collect::<Vec<_>>().join(", ")));
                }
                "format" => asked.format = Some(value),
                "mapping" => match Mapping::parse(&value) {
                    Ok(mapping) => asked.mapping = Some(mapping),
                    Err(rule) => refuse(&format!("is no mapping of columns: {rule}")),
                },
                "time_zone" => match Zone::parse(&value) {
                    Some(zone) => asked.zone = Some(zone),
                    None => refuse("must be a name of the IANA time zone database, such as America/New_York"),
                },
                "issuer" if value.trim().is_empty() || value.chars().count() > 255 => {
                    refuse("must be 1 to 255 characters, not blank");
                }
                "issuer" => asked.issuer = Some(value),
                _ if value != "true" && value != "false" => refuse("must be true or false"),
                _ => asked.trial = value == "true",
            }
        }
        if asked.format.is_some() && asked.mapping.is_some() {
            errors.push(FieldError::new("mapping", FieldCode::Invalid, "cannot be given together with `format`"));
        }
        errors.or(asked)
    }
}

/// The whole body in a temporary file that nobody else can see.
async fn spool(app: &App, call: &Call, body: &mut Body<'_>, limit: u64) -> Result<File, Problem> {
    let failed = |error: std::io::Error| Error::Unavailable(format!("cannot keep an uploaded file: {error}"));
    let mut file = tempfile::tempfile().map_err(failed)?;
    copy_body(call, body, limit, app.limits.request_timeout, &mut file).await?;
    file.rewind().map_err(failed)?;
    Ok(file)
}

/// One import of a file.
struct Import {
    store: Arc<dyn Store>,
    runtime: Handle,
    organization: Organization,
    kind: Kind,
    asked: Asked,
}

impl Import {
    /// How the file is read, by name.
    fn format(&self) -> &str {
        let first = |formats: &'static [(&'static str, &'static str)]| formats.first().map_or("", |format| format.0);
        match (&self.asked.format, &self.asked.mapping, self.kind) {
            (Some(name), ..) => name,
            (None, Some(_), _) => "mapping",
            (None, None, Kind::Tolls) => first(import::TOLL_FORMATS),
            (None, None, Kind::Violations) => first(import::VIOLATION_FORMATS),
            (None, None, Kind::Objects) => "export",
        }
    }

    /// Records the file, and notes that in the audit log when anything has changed.
    fn answer(&self, file: File, note: Note, progress: &mut Progress) -> Result<Bytes, Problem> {
        let counts = match self.kind {
            Kind::Objects => self.objects(file, progress)?,
            Kind::Tolls | Kind::Violations => self.rows(file, progress)?,
        };
        let details = serde_json::json!({
            "received": counts.received, "created": counts.created, "updated": counts.updated,
            "duplicates": counts.duplicates, "skipped": counts.skipped, "invalid": counts.invalid,
        });
        if !self.asked.trial && counts.created + counts.updated > 0 {
            self.runtime.block_on(note.write(self.store.as_ref(), &details))?;
        }
        let format = self.format().to_owned();
        let answer = Answer { object: "import", format, dry_run: self.asked.trial, counts };
        Ok(serde_json::to_vec(&answer).map_err(|error| Error::Internal(error.to_string()))?.into())
    }

    /// Reads a file of tolls or violations to its end, then reads it again and records it.
    fn rows(&self, mut file: File, progress: &mut Progress) -> Result<Counts, Problem> {
        let settings = Settings { digits: self.organization.default_currency.digits(), zone: self.asked.zone };
        let (format, edge) = (self.asked.format.as_deref(), edge::Clock);
        let mut intake = Intake::new(self.store.as_ref(), &edge, &self.organization, self.asked.trial);
        let run = &self.runtime;
        if self.kind == Kind::Tolls {
            let open = |file| import::tolls(BufReader::new(file), format, self.asked.mapping.as_ref(), &settings);
            progress.begin(check(open(again(&mut file)?).map_err(refused)?)?);
            let rows = open(again(&mut file)?).map_err(refused)?;
            in_chunks(rows, &mut intake, progress, |intake, chunk| run.block_on(intake.tolls(chunk)))?;
            run.block_on(intake.finish_tolls())?;
        } else {
            let open = |file| import::violations(BufReader::new(file), format, &settings);
            let issuer = self.asked.issuer.as_deref().unwrap_or(ISSUER);
            progress.begin(check(open(again(&mut file)?).map_err(refused)?)?);
            let rows = open(again(&mut file)?).map_err(refused)?;
            in_chunks(rows, &mut intake, progress, |intake, chunk| run.block_on(intake.violations(issuer, chunk)))?;
        }
        Ok(intake.counts)
    }

    /// Reads the lines of an export to their end, then reads them again and records them. A trial run records them in a
    /// store of its own, which goes away: a line may name what came before it.
    fn objects(&self, mut file: File, progress: &mut Progress) -> Result<Counts, Problem> {
        let inspection = transfer::inspect(BufReader::new(again(&mut file)?), &self.organization).map_err(refused)?;
        let scratch = if self.asked.trial { Some(tempfile::tempdir().map_err(unreadable)?) } else { None };
        let trial = match &scratch {
            Some(folder) => {
                let store = Redb::open(&folder.path().join("trial.redb"), TRIAL_CACHE).map_err(Error::from)?;
                Some(Arc::new(store) as Arc<dyn Store>)
            }
            None => None,
        };
        progress.begin(inspection.objects);
        let (edge, store) = (edge::Clock, Arc::clone(&self.store));
        let arrivals = Arrivals::new(store, trial, &edge, &self.organization, inspection.source);
        let mut arrivals = self.runtime.block_on(arrivals)?;
        // The organization itself is there already.
        let lines = transfer::Lines::new(BufReader::new(again(&mut file)?)).skip(1);
        let objects = usize::try_from(inspection.objects).unwrap_or(usize::MAX);
        for (done, line) in lines.take(objects).enumerate() {
            let (row, line) = line.map_err(refused)?;
            self.runtime.block_on(arrivals.line(row, &line))?;
            progress.at(done as u64 + 1);
        }
        self.runtime.block_on(arrivals.finish())?;
        Ok(arrivals.counts)
    }
}

/// The file from its beginning.
fn again(file: &mut File) -> Result<File, Problem> {
    file.rewind().map_err(unreadable).and_then(|()| file.try_clone().map_err(unreadable))
}

fn unreadable(error: std::io::Error) -> Problem {
    Error::Unavailable(format!("a temporary file: {error}")).into()
}

/// How many rows there are; nothing else is wrong with any of them than what makes it invalid.
fn check<T>(rows: impl Iterator<Item = Result<(u64, Row<T>), Failed>>) -> Result<u64, Problem> {
    let mut count = 0;
    for row in rows {
        row.map_err(refused)?;
        count += 1;
    }
    Ok(count)
}

fn in_chunks<'i, T>(
    rows: impl Iterator<Item = Result<(u64, Row<T>), Failed>>,
    intake: &mut Intake<'i>,
    progress: &mut Progress,
    mut record: impl FnMut(&mut Intake<'i>, Vec<(u64, T)>) -> Result<(), Error>,
) -> Result<(), Problem> {
    let mut chunk = Vec::with_capacity(CHUNK);
    for (done, row) in rows.enumerate() {
        match row.map_err(refused)? {
            (line, Row::Record(read)) => chunk.push((line, read)),
            (line, Row::Skipped(_)) => intake.counts.add(line, Fate::Skipped),
            (line, Row::Invalid(why)) => intake.counts.add(line, Fate::Invalid(why)),
        }
        if chunk.len() == CHUNK {
            record(intake, std::mem::replace(&mut chunk, Vec::with_capacity(CHUNK)))?;
            progress.at(done as u64 + 1);
        }
    }
    record(intake, chunk)?;
    Ok(())
}

fn refused(failed: Failed) -> Problem {
    match failed {
        Failed::Refused(refused) => Problem::FileRefused(refused.to_string()),
        Failed::Read(error) => unreadable(error),
    }
}
