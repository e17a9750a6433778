//! Imports of files of toll agencies, cities and other servers. The upload is copied to a spool and read to its end before
//! anything is recorded, so a file that does not match its format changes nothing.

mod documents;

use crate::{
    audit::Note,
    disk::no_spool,
    edge,
    endpoint::{Endpoint, Request},
    guard::{Operator, Owner},
    http::{
        progress::{self, Progress},
        reply::{Handled, Problem, Reply},
        upload::Upload,
    },
    operator::{collections, erasures},
    webhooks::Hooks,
};
use bytes::Bytes;
use rental_core::{
    error::{Error, FieldCode, FieldError, FieldErrors},
    imports::{
        Counts, Overlay, RowOutcome,
        organization::{HEAD_LINES, Importer, Lines, inspect},
        recording::{CHUNK, Importable, Options, Recorder},
        statements::{Failed, Kind, Mapping, Reader, Row, Settings, StatementRow},
    },
    request::page,
    resources::{organization::Organization, to_json},
    store::{Batch, DamagedRow, Store, redb::Redb},
    tasks::erasing::begin_left_over_erasures,
    value::{CustomerId, Name, Zone},
};
use serde::Serialize;
use serde_json::{Value, json};
use std::{
    fs::File,
    io::{BufReader, Seek},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};
use tokio::runtime::Handle;

/// Largest statement: 2 GiB, about fifteen million tolls.
const MOST_BYTES: u64 = 2 << 30;
/// Largest export.
const MOST_BYTES_OF_LINES: u64 = 16 << 30;
/// Page cache of the temporary store of a dry run, in bytes.
const TRIAL_CACHE: usize = 32 << 20;

/// The parameters of an import.
#[derive(Debug, Default)]
struct Asked {
    format: Option<String>,
    /// The mapping that was sent.
    mapping: Option<Mapping>,
    /// The mapping that was sent, or that of the format.
    described: Option<Mapping>,
    zone: Option<Zone>,
    issuer: Option<Name>,
    dry_run: bool,
}

#[derive(Serialize)]
struct Answer<'a> {
    object: &'static str,
    format: &'a str,
    dry_run: bool,
    #[serde(flatten)]
    counts: Counts,
}

/// Imports of exports.
pub(super) fn exports() -> Vec<Endpoint> {
    vec![documents::export().operator(|request| Box::pin(export(request)))]
}

/// Imports of statements of tolls or violations.
pub(super) fn statements<T: Importable>() -> Vec<Endpoint> {
    vec![documents::statement(T::Row::KIND).operator(|request| Box::pin(statement::<T>(request)))]
}

async fn statement<T: Importable>(request: Request<'_, Operator>) -> Handled {
    let kind = T::Row::KIND;
    let organization = collections::organization_named(request.app.store(), request.id).await?;
    let asked = Asked::parse(request.call.query(), Some(kind))?;
    let format = match (&asked.format, &asked.mapping) {
        (Some(name), _) => name.clone(),
        (None, Some(_)) => "mapping".to_owned(),
        (None, None) => kind.formats.first().map_or("", |(name, _)| *name).to_owned(),
    };
    let record: Record = |import, file, progress| import.rows::<T>(file, progress);
    run(request, (organization, asked, format, record), MOST_BYTES).await
}

async fn export(request: Request<'_, Operator>) -> Handled {
    let organization = collections::organization_named(request.app.store(), request.id).await?;
    let asked = Asked::parse(request.call.query(), None)?;
    let record: Record = |import, file, progress| import.objects(file, progress);
    run(request, (organization, asked, "export".to_owned(), record), MOST_BYTES_OF_LINES).await
}

async fn run(
    mut request: Request<'_, Operator>,
    (organization, asked, format, record): (Organization, Asked, String, Record),
    limit: u64,
) -> Handled {
    let (app, call) = (request.app, request.call);
    if app.hooks.space.refuses_clients() {
        return Err(Error::StorageFull.into());
    }
    if !call.clock.is_trusted() {
        return Err(Error::ClockJumped.into());
    }
    let upload = Upload::of(call, &mut request.body, limit, app.limits.request_timeout)?;
    let spool = app.hooks.space.spools.begin().await?;
    let file = upload.into_spool(spool).await?.into_file().map_err(unreadable)?;
    // After the upload, so that a slow client keeps no other import waiting.
    let permit = Arc::clone(&app.imports).acquire_owned().await.map_err(|_| Error::Unavailable("stopping".into()))?;
    let note = Note::of(call, Some(organization.id));
    // The list of an export erases people, which only owners may.
    let erasing = Owner::also(call).map(|_| note.clone());
    let (mut progress, listening) = progress::of(call);
    let hooks = Arc::clone(&app.hooks);
    let (store, runtime) = (Arc::clone(&app.store) as _, Handle::current());
    let import = Import { store, hooks: Arc::clone(&hooks), runtime, organization, erasing, asked, format };
    // On another thread: parsing would block the threads that serve requests.
    let work = tokio::task::spawn_blocking(move || {
        let outcome = import.answer(record, file, note, &mut progress);
        // Also after a failure: rows that were recorded before it have events.
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
    /// Reads the parameters of a kind of statement; without a kind, those of an export.
    fn parse(query: &str, kind: Option<&Kind>) -> Result<Self, Error> {
        let known: &[&str] = match kind.map(|kind| kind.has_issuer) {
            Some(false) => &["format", "mapping", "time_zone", "dry_run"],
            Some(true) => &["format", "mapping", "time_zone", "issuer", "dry_run"],
            None => &["dry_run"],
        };
        let (mut asked, mut errors) = (Self::default(), FieldErrors::default());
        let formats = kind.map_or(&[][..], |kind| kind.formats);
        for (name, value) in page::parameters(query, known)? {
            let mut refuse = |rule: &str| errors.push(FieldError::new(&name, FieldCode::Invalid, rule));
            match name.as_str() {
                "format" if !formats.iter().any(|(known, _)| *known == value) => {
                    let names = formats.iter().map(|(name, _)| *name);
                    let near = page::nearest(&value, names.clone());
                    refuse(&format!("must be one of {}{near}", names.collect::<Vec<_>>().join(", ")));
                }
                "format" => asked.format = Some(value),
                "mapping" => match kind.map(|kind| Mapping::parse(&value, kind.has_issuer)).transpose() {
                    Ok(mapping) => asked.mapping = mapping,
                    Err(rule) => refuse(&format!("is no mapping of columns: {rule}")),
                },
                "time_zone" => match Zone::parse(&value) {
                    Some(zone) => asked.zone = Some(zone),
                    None => refuse("must be a name of the IANA time zone database, such as America/New_York"),
                },
                "issuer" if value.trim().is_empty() || value.chars().count() > 255 => {
                    refuse("must be 1 to 255 characters, not blank");
                }
                "issuer" => match Name::parse(value, 255) {
                    Ok(issuer) => asked.issuer = Some(issuer),
                    Err(rule) => refuse(&rule),
                },
                _ if value != "true" && value != "false" => refuse("must be true or false"),
                _ => asked.dry_run = value == "true",
            }
        }
        if asked.format.is_some() && asked.mapping.is_some() {
            errors.push(FieldError::new("mapping", FieldCode::Invalid, "cannot be given together with `format`"));
        }
        let of_format = |name: &String| kind.and_then(|kind| kind.described(name));
        asked.described = asked.mapping.clone().or_else(|| asked.format.as_ref().and_then(of_format));
        let has_issuer = kind.is_some_and(|kind| kind.has_issuer);
        let issuer = || asked.described.as_ref().and_then(Mapping::issuer).filter(|_| has_issuer).cloned();
        asked.issuer = asked.issuer.or_else(issuer);
        if asked.mapping.is_some() && asked.issuer.is_none() && has_issuer {
            let rule = "is missing: who numbered the summonses; name it here or as `issuer` in the mapping";
            errors.push(FieldError::new("issuer", FieldCode::Missing, rule));
        }
        errors.or(asked)
    }
}

/// One import of a file.
struct Import {
    store: Arc<dyn Store>,
    hooks: Arc<Hooks>,
    runtime: Handle,
    organization: Organization,
    /// What an entry about an erased person begins with; `None` when the caller may erase nobody.
    erasing: Option<Note>,
    asked: Asked,
    /// The name of the format.
    format: String,
}

/// Records a file. The counts are those of the rows before a failure, too.
type Record = fn(&Import, File, &mut Progress) -> (Counts, Result<(), Problem>);

impl Import {
    /// Records the file. Adds an entry to the audit log when anything has changed, also when the import failed after that.
    fn answer(&self, record: Record, file: File, note: Note, progress: &mut Progress) -> Result<Bytes, Problem> {
        let ended = catch_unwind(AssertUnwindSafe(|| record(self, file, progress))).ok();
        let counts = ended.as_ref().map(|(counts, _)| counts.clone());
        let recorded =
            ended.map_or_else(|| Err(Error::Internal("an import panicked".into()).into()), |(_, ended)| ended);
        let details = to_audit(counts.as_ref(), recorded.is_err()).filter(|_| !self.asked.dry_run);
        let noted = details.map(|details| self.runtime.block_on(note.write_or_log(self.store.as_ref(), &details)));
        recorded?;
        noted.transpose()?;
        let counts = counts.unwrap_or_default();
        let answer = Answer { object: "import", format: &self.format, dry_run: self.asked.dry_run, counts };
        Ok(to_json(&answer)?)
    }

    /// Counts and logs damaged rows.
    fn note(&self, damaged: &mut Vec<DamagedRow>) {
        damaged.drain(..).for_each(|row| self.hooks.damaged.note(&row));
    }

    /// The store that gets what a dry run would record: a row can be about an object of an earlier row.
    fn trial(&self) -> Result<Option<Arc<dyn Store>>, Problem> {
        if !self.asked.dry_run {
            return Ok(None);
        }
        let store = Redb::nameless(self.hooks.space.spools.folder(), TRIAL_CACHE).map_err(Error::from)?;
        Ok(Some(Arc::new(store)))
    }

    /// Ends an import that the disk has no more room for.
    fn check_room(&self) -> Result<(), Problem> {
        if self.hooks.space.refuses_clients() {
            return Err(Error::StorageFull.into());
        }
        if self.asked.dry_run { self.hooks.space.spools.check_room().map_err(unreadable) } else { Ok(()) }
    }

    /// Reads a statement to its end, then reads it again and records its rows.
    fn rows<T: Importable>(&self, file: File, progress: &mut Progress) -> (Counts, Result<(), Problem>) {
        let trial = match self.trial() {
            Ok(trial) => trial,
            Err(problem) => return (Counts::default(), Err(problem)),
        };
        let store = match &trial {
            Some(trial) => Arc::new(Overlay::new(Arc::clone(&self.store), Arc::clone(trial))),
            None => Arc::clone(&self.store),
        };
        let described = self.asked.described.as_ref();
        let options = Options {
            dry_run: self.asked.dry_run,
            issuer: self.asked.issuer.as_ref(),
            keeps_amounts: described.is_some_and(|mapping| !mapping.replaces()),
            joins_number: described.is_some_and(Mapping::joins_number),
        };
        let mut recorder = Recorder::<T>::new(store.as_ref(), &edge::Clock, &self.organization, options);
        let recorded = self.record_rows(&mut recorder, file, progress);
        self.note(&mut recorder.damaged);
        (recorder.counts, recorded)
    }

    fn record_rows<T: Importable>(
        &self,
        recorder: &mut Recorder<'_, T>,
        mut file: File,
        progress: &mut Progress,
    ) -> Result<(), Problem> {
        let Organization { default_currency: currency, time_zone: home, .. } = self.organization;
        let settings = Settings { currency, zone: self.asked.zone, home };
        let (format, mapping) = (self.asked.format.as_deref(), self.asked.mapping.as_ref());
        let open = |file| Reader::<_, T::Row>::open(BufReader::new(file), format, mapping, &settings).map_err(refused);
        let mut of = 0;
        for row in open(again(&mut file)?)? {
            row.map_err(refused)?;
            of += 1;
        }
        progress.begin(of);
        let mut chunk = Vec::with_capacity(CHUNK);
        for (done, row) in open(again(&mut file)?)?.enumerate() {
            match row.map_err(refused)? {
                (number, Row::Record(row)) => chunk.push((number, row)),
                (number, Row::Skipped(_, sum)) => recorder.counts.add(number, RowOutcome::Skipped, sum),
                (number, Row::Section(why)) => recorder.counts.add_review(number, why),
                (number, Row::Invalid(why, sum)) => recorder.counts.add(number, RowOutcome::Invalid(why), sum),
            }
            if chunk.len() == CHUNK {
                self.check_room()?;
                let full = std::mem::replace(&mut chunk, Vec::with_capacity(CHUNK));
                self.runtime.block_on(recorder.record(full))?;
                self.note(&mut recorder.damaged);
                progress.at(done as u64 + 1);
            }
        }
        self.runtime.block_on(recorder.record(chunk))?;
        self.runtime.block_on(recorder.finish())?;
        Ok(())
    }

    /// Reads the lines of an export to their end, then reads them again and records them. A dry run records them in a
    /// temporary store.
    fn objects(&self, mut file: File, progress: &mut Progress) -> (Counts, Result<(), Problem>) {
        let mut counts = Counts::of_an_export();
        let recorded = self.record_objects(&mut file, progress, &mut counts);
        (counts, recorded)
    }

    fn record_objects(&self, file: &mut File, progress: &mut Progress, counts: &mut Counts) -> Result<(), Problem> {
        let inspection = inspect(BufReader::new(again(file)?), &self.organization).map_err(refused)?;
        let trial = self.trial()?;
        progress.begin(inspection.objects);
        let (edge, store) = (edge::Clock, Arc::clone(&self.store));
        let importer = Importer::new(store, trial, &edge, &self.organization, inspection.source);
        let audit = |person: CustomerId, batch: &mut Batch| match &self.erasing {
            Some(note) => note.add_about(erasures::ERASE, person.uuid(), &edge, batch),
            None => Ok(()),
        };
        let mut importer = self.runtime.block_on(importer)?.of_version(&inspection);
        if self.erasing.is_some() {
            importer = importer.erasing(&audit);
        }
        // The first lines describe the export and its organization, which exists already.
        let lines = Lines::new(BufReader::new(again(file)?)).skip(HEAD_LINES);
        let objects = usize::try_from(inspection.objects).unwrap_or(usize::MAX);
        let all = || {
            for (done, line) in lines.take(objects).enumerate() {
                let (row, line) = line.map_err(refused)?;
                if done % CHUNK == 0 {
                    self.check_room()?;
                }
                self.runtime.block_on(importer.line(row, &line))?;
                progress.at(done as u64 + 1);
            }
            Ok(self.runtime.block_on(importer.finish())?)
        };
        let recorded: Result<(), Problem> = all();
        let looking = self.runtime.block_on(importer.look_for_returning());
        self.note(&mut importer.damaged);
        *counts = importer.counts;
        recorded?;
        looking?;
        if !self.asked.dry_run {
            // The file may have brought people who were erased elsewhere.
            let mut damaged = Vec::new();
            let begun = begin_left_over_erasures(self.store.as_ref(), &edge, &mut damaged);
            self.runtime.block_on(begun)?;
            self.note(&mut damaged);
        }
        Ok(())
    }
}

/// The details of the entry of an import in the audit log; none when it changed nothing. The counts of one that panicked are
/// not known.
fn to_audit(counts: Option<&Counts>, failed: bool) -> Option<Value> {
    let Some(counts) = counts else { return Some(json!({"failed": true})) };
    let mut details = json!({
        "received": counts.received, "created": counts.created, "updated": counts.updated,
        "duplicates": counts.duplicates, "skipped": counts.skipped, "invalid": counts.invalid,
    });
    if failed {
        details["failed"] = json!(true);
    }
    (counts.created + counts.updated > 0).then_some(details)
}

/// The file, from its beginning.
fn again(file: &mut File) -> Result<File, Problem> {
    file.rewind().map_err(unreadable).and_then(|()| file.try_clone().map_err(unreadable))
}

fn unreadable(error: std::io::Error) -> Problem {
    no_spool(&error).into()
}

fn refused(failed: Failed) -> Problem {
    match failed {
        Failed::Refused(refused) => Problem::FileRefused(refused.to_string()),
        Failed::Read(error) => unreadable(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_import_that_fails_after_its_first_rows_is_audited_too() {
        let counts = |created| Counts { received: 3, created, ..Counts::default() };
        let failed = to_audit(Some(&counts(2)), true).expect("two objects were created");
        assert_eq!((&failed["created"], &failed["failed"]), (&json!(2), &json!(true)));
        assert_eq!(to_audit(Some(&counts(2)), false).expect("the same").get("failed"), None);
        assert_eq!(to_audit(Some(&counts(0)), true), None, "nothing was changed");
        assert_eq!(to_audit(None, true), Some(json!({"failed": true})), "nobody knows");
    }
}
