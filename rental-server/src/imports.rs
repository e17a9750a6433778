//! Files of toll agencies and cities, sent by the operator: the whole file lies in a temporary file and is read once to
//! its end before anything is recorded, so a file that is not what it claims changes nothing.

use crate::{
    app::App,
    audit, edge,
    http::{
        call::{BodyStream, Call, copy_body},
        reply::{Problem, Reply},
    },
};
use rental_core::{
    error::{Error, FieldCode, FieldError},
    import::{self, Failed, Mapping, Row, Settings},
    intake::{CHUNK, Counts, Fate, Intake},
    page,
    resources::organization::Organization,
    store::Store,
    value::Zone,
};
use serde::Serialize;
use std::{
    fs::File,
    io::{BufReader, Seek},
    sync::Arc,
};
use tokio::runtime::Handle;

/// Largest file: 2 GiB, which are some fifteen million tolls.
const MOST_BYTES: u64 = 2 << 30;
/// Whose summons numbers they are, unless the request says otherwise.
const ISSUER: &str = "NYC";

/// What a file holds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    Tolls,
    Violations,
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

/// POST /admin/v1/organizations/{organization}/tolls/import and /violations/import.
pub(crate) async fn run<B: BodyStream>(
    app: &App,
    call: &Call,
    organization: Organization,
    kind: Kind,
    body: B,
) -> Result<Reply, Problem> {
    let asked = Asked::parse(call.query(), kind)?;
    // Before anything is kept: so many files lie on the disk at once.
    let permit = Arc::clone(&app.imports).acquire_owned().await.map_err(|_| Error::Unavailable("stopping".into()))?;
    let spool = spool(app, call, body).await?;
    let (store, runtime, whose) = (Arc::clone(&app.store), Handle::current(), organization.id);
    let format = asked.format.clone();
    // On a thread of its own: parsing never waits, and must not keep other requests waiting.
    let work = tokio::task::spawn_blocking(move || {
        let outcome = record(store.as_ref(), &runtime, &organization, kind, &asked, spool);
        drop(permit);
        (outcome, asked.trial)
    });
    let (outcome, dry_run) = work.await.map_err(|error| Error::Internal(format!("an import ended early: {error}")))?;
    let answer = Answer { object: "import", format: format.unwrap_or_default(), dry_run, counts: outcome? };
    let details = serde_json::json!({
        "received": answer.counts.received, "created": answer.counts.created, "updated": answer.counts.updated,
        "duplicates": answer.counts.duplicates, "skipped": answer.counts.skipped, "invalid": answer.counts.invalid,
    });
    if !dry_run && answer.counts.created + answer.counts.updated > 0 {
        audit::note(app, call, Some(whose), &details).await?;
    }
    let bytes = serde_json::to_vec(&answer).map_err(|error| Error::Internal(error.to_string()))?;
    Ok(Reply::json(bytes.into()))
}

impl Asked {
    fn parse(query: &str, kind: Kind) -> Result<Self, Error> {
        let known: &[&str] = match kind {
            Kind::Tolls => &["format", "mapping", "time_zone", "dry_run"],
            Kind::Violations => &["format", "time_zone", "issuer", "dry_run"],
        };
        let (mut asked, mut errors) = (Self::default(), Vec::new());
        let formats = match kind {
            Kind::Tolls => import::TOLL_FORMATS,
            Kind::Violations => import::VIOLATION_FORMATS,
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
        if errors.is_empty() { Ok(asked) } else { Err(Error::Invalid(errors)) }
    }
}

/// The whole body in a temporary file that nobody else can see.
async fn spool<B: BodyStream>(app: &App, call: &Call, body: B) -> Result<File, Problem> {
    let failed = |error: std::io::Error| Error::Unavailable(format!("cannot keep an uploaded file: {error}"));
    let mut file = tempfile::tempfile().map_err(failed)?;
    copy_body(call, body, MOST_BYTES, app.limits.request_timeout, &mut file).await?;
    file.rewind().map_err(failed)?;
    Ok(file)
}

/// Reads the file to its end, then reads it again and records it.
fn record(
    store: &dyn Store,
    runtime: &Handle,
    organization: &Organization,
    kind: Kind,
    asked: &Asked,
    mut file: File,
) -> Result<Counts, Problem> {
    let settings = Settings { digits: organization.default_currency.digits(), zone: asked.zone };
    let format = asked.format.as_deref();
    let unreadable = |error: std::io::Error| Problem::from(Error::Unavailable(format!("a temporary file: {error}")));
    let again = |file: &mut File| file.rewind().map_err(unreadable).and_then(|()| file.try_clone().map_err(unreadable));
    let edge = edge::Clock;
    let mut intake = Intake::new(store, &edge, organization, asked.trial);
    let issuer = asked.issuer.as_deref().unwrap_or(ISSUER);
    match kind {
        Kind::Tolls => {
            let open = |file| import::tolls(BufReader::new(file), format, asked.mapping.as_ref(), &settings);
            check(open(again(&mut file)?).map_err(refused)?)?;
            let rows = open(again(&mut file)?).map_err(refused)?;
            in_chunks(rows, &mut intake, |intake, chunk| runtime.block_on(intake.tolls(chunk)))?;
            runtime.block_on(intake.finish_tolls())?;
        }
        Kind::Violations => {
            let open = |file| import::violations(BufReader::new(file), format, &settings);
            check(open(again(&mut file)?).map_err(refused)?)?;
            let rows = open(again(&mut file)?).map_err(refused)?;
            in_chunks(rows, &mut intake, |intake, chunk| runtime.block_on(intake.violations(issuer, chunk)))?;
        }
    }
    Ok(intake.counts)
}

fn check<T>(rows: impl Iterator<Item = Result<(u64, Row<T>), Failed>>) -> Result<(), Problem> {
    for row in rows {
        row.map_err(refused)?;
    }
    Ok(())
}

fn in_chunks<'i, T>(
    rows: impl Iterator<Item = Result<(u64, Row<T>), Failed>>,
    intake: &mut Intake<'i>,
    mut record: impl FnMut(&mut Intake<'i>, Vec<(u64, T)>) -> Result<(), Error>,
) -> Result<(), Problem> {
    let mut chunk = Vec::with_capacity(CHUNK);
    for row in rows {
        match row.map_err(refused)? {
            (line, Row::Record(read)) => chunk.push((line, read)),
            (line, Row::Skipped(_)) => intake.counts.add(line, Fate::Skipped),
            (line, Row::Invalid(why)) => intake.counts.add(line, Fate::Invalid(why)),
        }
        if chunk.len() == CHUNK {
            record(intake, std::mem::replace(&mut chunk, Vec::with_capacity(CHUNK)))?;
        }
    }
    record(intake, chunk)?;
    Ok(())
}

fn refused(failed: Failed) -> Problem {
    match failed {
        Failed::Refused(refused) => Problem::FileRefused(refused.to_string()),
        Failed::Read(error) => Error::Unavailable(format!("a temporary file: {error}")).into(),
    }
}
