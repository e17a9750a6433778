//! Reads the lines of a file, and checks that the file is complete.

use super::{BEGIN, END};
use crate::{
    error::Error,
    imports::statements::{Failed, Refused},
    request::body::Verb,
    resources::{
        organization::{self, Organization},
        vehicle,
    },
    schema::Fields,
    store::{OLDEST_VERSION, SCHEMA_VERSION},
    upgrade::{self, Billed, Members},
    value::{Currency, FromField, OrganizationId},
};
use serde::Deserialize;
use std::{borrow::Cow, collections::HashSet, io::BufRead, sync::Arc};
use uuid::Uuid;

/// Most bytes of a line. The longest object that the API accepts has a quarter of it.
const MOST_LINE: u64 = 1 << 20;
/// Lines before the objects: the schema version, and the organization.
pub const HEAD_LINES: usize = 2;
/// Most bytes of the last line.
const MOST_END: usize = 256;

/// An iterator over the lines of a file that are not blank, with their numbers from 1.
pub struct Lines<R> {
    from: R,
    row: u64,
}

impl<R: BufRead> Lines<R> {
    /// The lines of `from`, which must be at the beginning of the file.
    pub fn new(from: R) -> Self {
        Self { from, row: 0 }
    }
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = Result<(u64, Vec<u8>), Failed>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let mut line = Vec::new();
            self.row += 1;
            let mut bounded = std::io::Read::take(&mut self.from, MOST_LINE + 1);
            match bounded.read_until(b'\n', &mut line) {
                Err(error) => return Some(Err(Failed::Read(error))),
                Ok(0) => return None,
                Ok(_) if line.len() as u64 > MOST_LINE => {
                    let why = format!("line {} is longer than {MOST_LINE} bytes, which no object is", self.row);
                    return Some(Err(Refused(why).into()));
                }
                Ok(_) => {}
            }
            while line.pop_if(|last| last.is_ascii_whitespace()).is_some() {}
            if !line.is_empty() {
                return Some(Ok((self.row, line)));
            }
        }
    }
}

/// The result of [`inspect`].
#[derive(Clone, Debug)]
pub struct Inspection {
    /// The schema version of the objects.
    pub schema_version: u64,
    /// The id of the exported organization.
    pub source: OrganizationId,
    /// The members of the exported organization, lifted to the present version.
    pub organization: Members,
    /// Number of objects, without the organization.
    pub objects: u64,
    /// What the invoices of the file bill.
    pub billed: Arc<Billed>,
    /// The ids of its vehicles.
    pub vehicles: Arc<HashSet<Uuid>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Begin {
    object: String,
    schema_version: u64,
}

/// The schema version in the first line.
fn begin(line: &[u8]) -> Result<u64, Refused> {
    let begin: Option<Begin> = serde_json::from_slice(line).ok().filter(|begin: &Begin| begin.object == BEGIN);
    match begin.map(|begin| begin.schema_version) {
        None => Err(Refused("its first line does not say its schema version; take a file as `rental-cli export` or GET .../export gives it".into())),
        Some(version @ OLDEST_VERSION..=SCHEMA_VERSION) => Ok(version),
        Some(version) => Err(Refused(format!(
            "it was written with schema version {version}, and this server knows {OLDEST_VERSION} to {SCHEMA_VERSION}; import \
             it into a server of the version that wrote it, or a newer one"
        ))),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct End {
    object: String,
    objects: u64,
}

/// The number in the last line; `None` when the line is an object.
pub(super) fn end(line: &[u8]) -> Option<u64> {
    let end: End = serde_json::from_slice(line.get(..line.len().min(MOST_END + 1))?).ok()?;
    (end.object == END).then_some(end.objects)
}

/// Reads a file to its end, and checks that it is complete and can be imported into `target`.
///
/// # Errors
/// [`Failed::Refused`] with a sentence that says what is wrong with the file, or [`Failed::Read`].
pub fn inspect(from: impl BufRead, target: &Organization) -> Result<Inspection, Failed> {
    let refuse = |why: String| Err(Refused(why).into());
    let (mut source, mut lines, mut ended) = (None, 0, false);
    let mut version = None;
    let (mut billed, mut vehicles) = (Billed::default(), HashSet::new());
    for line in Lines::new(from) {
        let (row, line) = line?;
        if ended {
            return refuse(format!(
                "it goes on in line {row} after its last line, `{END}`; import one export at a time"
            ));
        }
        if version.is_none() {
            version = Some(begin(&line)?);
        } else if let (None, Some(version)) = (&source, version) {
            source = Some(head(&line, version, target)?);
        } else if let Some(told) = end(&line) {
            if told != lines {
                return refuse(format!("it has {lines} lines before its last one, which says {told}; export it again"));
            }
            ended = true;
        } else {
            billed.add(&line);
            vehicles.extend(vehicle_of(&line));
        }
        lines += u64::from(!ended);
    }
    match version.zip(source) {
        None => refuse("it is empty; a file begins with the line of its organization".into()),
        Some(_) if !ended => refuse(format!("it was broken off: its last line, `{END}`, is missing; export it again")),
        Some((schema_version, (source, organization))) => {
            billed.sort();
            let (billed, vehicles) = (Arc::new(billed), Arc::new(vehicles));
            let objects = lines - HEAD_LINES as u64;
            Ok(Inspection { schema_version, source, organization, objects, billed, vehicles })
        }
    }
}

/// The id of the vehicle in a line. Only lines that contain the word are parsed.
fn vehicle_of(line: &[u8]) -> Option<Uuid> {
    let text = std::str::from_utf8(line).ok().filter(|text| text.contains("\"vehicle\""))?;
    let named: Named<'_> = serde_json::from_str(text).ok()?;
    (named.object == vehicle::SPEC.object).then_some(named.id)
}

/// What every object has.
#[derive(Deserialize)]
struct Named<'a> {
    id: Uuid,
    #[serde(borrow)]
    object: Cow<'a, str>,
}

/// Lifts a line of an older version to the present one. `None` for a line of the present version and for one that is no
/// object of its resource. The caller then uses the line unchanged.
pub(super) fn lifted(line: &[u8], version: u64, organization: &Members) -> Option<(String, Members)> {
    let mut members = Members::parse(line).ok().filter(|_| version < SCHEMA_VERSION)?;
    let object: String = serde_json::from_str(members.get("object")?).ok()?;
    upgrade::lift(version, &object, &mut members, organization).ok()?;
    Some((members.json(), members))
}

/// Sets what the invoices of the file bill of the object in a line, so that both always agree. `None` when the line needs no
/// change.
pub(super) fn with_billed(line: &[u8], billed: &Billed) -> Option<String> {
    let named: Named<'_> = serde_json::from_slice(line).ok()?;
    let mut members = Members::parse(line).ok()?;
    billed.fill(&named.object, named.id, &mut members).ok()?;
    members.is_changed().then(|| members.json())
}

/// Parses the line of the organization, which must have the currency of `target`.
fn head(line: &[u8], version: u64, target: &Organization) -> Result<(OrganizationId, Members), Refused> {
    let lifted = lifted(line, version, &Members::default()).map(|(line, _)| line);
    let line = lifted.as_deref().map_or(line, str::as_bytes);
    let told = |why: &str| {
        Refused(format!(
            "its first line is no organization ({why}); take a file as `rental-cli export` or GET .../export gives it"
        ))
    };
    let fields = Fields::parse(line, &organization::SPEC, Verb::Whole, 4).map_err(|error| match error {
        Error::Invalid(errors) => {
            told(&errors.listed().iter().map(|error| error.message.as_str()).collect::<Vec<_>>().join(" "))
        }
        Error::Malformed(_) => told("it is no JSON object"),
        _ => told("it cannot be read"),
    })?;
    if fields.plain("object") != Some(organization::SPEC.object) {
        return Err(told("its `object` is not `organization`"));
    }
    let theirs = fields.get("default_currency").and_then(Currency::from_field);
    let theirs = theirs.ok_or_else(|| told("it has no currency"))?;
    let ours = target.default_currency;
    if theirs != ours {
        return Err(Refused(format!(
            "its amounts are in {theirs}, but those of this organization are in {ours}; import it into an organization \
             whose `default_currency` is {theirs}"
        )));
    }
    let id = fields.plain("id").and_then(OrganizationId::parse).ok_or_else(|| told("its id is none"))?;
    Ok((id, Members::parse(line).map_err(|why| told(&why))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = r#"{"id":"0190d0f2-7c3a-7cc0-8000-000000000000","object":"organization","name":"Sunrise Rentals","plan":"pro","default_currency":"USD","booking_policy":"exclusive","time_zone":"America/New_York","max_objects":null,"max_bytes":null,"max_requests_per_second":null,"legal_name":null,"address":null,"tax_id":null,"contact_email":null,"contact_phone":null,"payment_instructions":null,"invoice_language":"en","paper_size":null,"toll_fee":1.555,"violation_fee":null,"tax_name":null,"tax_rate":null,"tax_included":false,"payment_terms_days":null,"created_at":"2026-05-05T09:30:00.000Z","updated_at":"2026-05-05T09:30:00.000Z"}"#;

    #[track_caller]
    fn check(file: &str, expected: Result<u64, &str>) {
        let file = super::super::first_line() + file;
        let found = inspect(file.as_bytes(), &Organization::system());
        match (found, expected) {
            (Ok(found), Ok(objects)) => assert_eq!(found.objects, objects, "{file}"),
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
            (found, _) => panic!("{found:?} of {file}"),
        }
    }

    #[test]
    fn a_file_is_whole_when_its_last_line_counts_the_others() {
        check(&format!("{HEAD}\n{}", end_line(2)), Ok(0));
        check(&format!("{HEAD}\r\n\n{{}}\n[\n  {}", end_line(4)), Ok(2));
        check(&format!("{HEAD}\n{}", end_line(3)), Err("has 2 lines before its last one, which says 3"));
        check(&format!("{HEAD}\n{{}}"), Err("broken off"));
        check(&format!("{HEAD}\n{}{{}}", end_line(2)), Err("goes on in line 4"));
        check("", Err("is empty"));
        check(&format!("{}{HEAD}\n{}", super::super::first_line(), end_line(3)), Err("first line is no organization"));
        check(&end_line(1), Err("no organization"));
    }

    #[test]
    fn a_file_begins_with_an_organization_of_the_same_currency() {
        for first in ["{}", "plate,state", "\u{feff}{}", "[]", "{\"object\":\"organization\"}"] {
            check(&format!("{first}\n{}", end_line(2)), Err("first line is no organization"));
        }
        check(&format!("{}\n{}", HEAD.replace("\"organization\"", "\"vehicle\""), end_line(2)), Err("is not `organ"));
        check(&format!("{}\n{}", HEAD.replace("USD", "EUR"), end_line(2)), Err("amounts are in EUR"));
        check(&format!("{}\n{}", HEAD.replace("\"pro\"", "\"gold\""), end_line(2)), Err("`plan` must be one of"));
    }

    #[test]
    fn the_first_line_tells_the_version() {
        let of = |first: &str| {
            let file = format!("{first}\n{HEAD}\n{}", end_line(2));
            inspect(file.as_bytes(), &Organization::system())
                .map(|found| found.schema_version)
                .map_err(|why| why.to_string())
        };
        let begin = |version: u64| format!("{{\"object\":\"export\",\"schema_version\":{version}}}");
        assert_eq!(of(&begin(SCHEMA_VERSION)), Ok(SCHEMA_VERSION));
        for (first, told) in [
            (begin(OLDEST_VERSION - 1), "written with schema version 11"),
            (begin(SCHEMA_VERSION + 1), "or a newer one"),
            (HEAD.to_owned(), "does not say its schema version"),
        ] {
            assert!(of(&first).is_err_and(|why| why.contains(told)), "{first}");
        }
    }

    #[test]
    fn a_line_has_a_bound() {
        check(&format!("{HEAD}\n{}", "x".repeat(2 << 20)), Err("line 3 is longer"));
        let just = "x".repeat((MOST_LINE - 1) as usize);
        check(&format!("{HEAD}\n{just}\n{}", end_line(3)), Ok(1));
    }

    fn end_line(lines: u64) -> String {
        super::super::end_line(lines)
    }
}
