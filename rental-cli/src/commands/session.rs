//! What every command gets: client, output and settings.

use crate::{
    client::{
        access::Access,
        api::{Api, Secrets},
        request::Request,
        trace::Trace,
    },
    commands::{
        by_field, by_name,
        mentions::Mentions,
        names::LookUp,
        pages::{MAX_LIMIT, each_object},
    },
    config::{settings::Settings, when::Days},
    failure::Failure,
    output::{
        Output, columns,
        record::{self, Page, Record, next_page},
        references::{self, Names},
    },
};
use clap::ArgMatches;
use rental_core::{resources::spec_of, schema::ResourceSpec};
use serde_json::value::RawValue;
use std::{cell::OnceCell, collections::BTreeSet, io::IsTerminal, time::Duration};

/// Maximum number of pages that [`any_object`] reads.
const MAX_PAGES: usize = 10;

/// One run of a command.
pub(crate) struct Session {
    /// Client of the server.
    pub(crate) api: Api,
    /// Output format.
    pub(crate) out: Output,
    /// Effective settings.
    pub(crate) settings: Settings,
    /// The id of the organization that the command line names; a command takes one organization at most.
    organization: OnceCell<String>,
    /// Where the days that the command line names begin and end, once that is known.
    pub(crate) days: OnceCell<Days>,
}

impl Session {
    /// A session that has sent nothing.
    pub(crate) fn new(api: Api, out: Output, settings: Settings) -> Self {
        Self { api, out, settings, organization: OnceCell::new(), days: OnceCell::new() }
    }

    /// Id of the organization from `--organization`, the environment or the profile, in this order.
    pub(crate) fn organization<'a>(&'a self, matches: &'a ArgMatches) -> Result<&'a str, Failure> {
        match matches.get_one::<String>("organization") {
            Some(text) => self.organization_id(text),
            None => self.organization_id(self.settings.organization()?),
        }
    }

    /// Id of the organization with this id or name. Asks the server about a name, once.
    pub(crate) fn organization_id<'a>(&'a self, text: &'a str) -> Result<&'a str, Failure> {
        if by_name::is_id(text) {
            return Ok(text);
        }
        match self.organization.get() {
            Some(id) => Ok(id),
            None => {
                let id = by_name::resolve(&self.api, text)?;
                Ok(self.organization.get_or_init(|| id))
            }
        }
    }

    /// Id of the object that a text names: by its id, or by what people call it. Asks the server unless it is an id.
    pub(crate) fn object_id(&self, spec: &'static ResourceSpec, text: &str) -> Result<String, Failure> {
        if !by_field::is_named_within_an_organization(spec, text) {
            return by_field::resolve(&self.api, spec, text, None);
        }
        let organization = self.settings.organization().map_err(|_| {
            let what = "is a name within an organization: set RENTAL_ORGANIZATION, or use the id";
            Failure::Usage(format!("{text:?} {what}"))
        })?;
        by_field::resolve(&self.api, spec, text, Some(self.organization_id(organization)?))
    }

    /// Sends a request and returns the JSON of the response.
    pub(crate) fn send(&self, request: &Request) -> Result<String, Failure> {
        record::json(self.api.send(request)?)
    }

    /// Sends a request, prints the object of the response, and returns its JSON.
    pub(crate) fn object(&self, request: &Request) -> Result<String, Failure> {
        let json = self.send(request)?;
        self.show(&json)?;
        Ok(json)
    }

    /// Prints an object, with the names of the objects that `--columns` asks for; without it a terminal shows the names of
    /// all objects that it refers to beside their ids.
    pub(crate) fn show(&self, json: &str) -> Result<(), Failure> {
        let chosen = self.out.chosen();
        if self.out.json || (chosen.is_empty() && !self.out.is_terminal()) {
            return self.out.object(json);
        }
        let record = Record::read(json)?;
        let spec = record.text("object").and_then(|object| spec_of(&object));
        let asked = |spec: &'static ResourceSpec| match chosen {
            [] => columns::named_beside(spec, &record),
            chosen => {
                let fields = chosen.iter().filter_map(|name| columns::reference(spec, name));
                fields.filter_map(|field| record.text(field.name).zip(references::plural(field, &record))).collect()
            }
        };
        let wanted = spec.map(asked).unwrap_or_default().into_iter().filter(|(_, plural)| by_field::is_named(plural));
        // Only operators read organizations and what they manage, and only keys of organizations all other objects.
        let (of_operators, own): (BTreeSet<_>, BTreeSet<_>) =
            wanted.partition(|(_, plural)| by_field::access(plural) == Access::Operator);
        let mut names = Names::default();
        for (access, wanted) in [(Access::Operator, of_operators), (Access::Organization, own)] {
            let mut found = LookUp::called(&self.api, access, |_, record| references::recognized(record));
            found.find(wanted);
            names.extend(found.names);
        }
        self.out.object_with(json, &names)
    }

    /// A failure with names in place of the ids that the server's message mentions, for a person. Programs get it as it is.
    pub(crate) fn with_names(&self, mut failure: Failure) -> Failure {
        if let Failure::ErrorResponse(response) = &mut failure
            && !self.out.json
            && std::io::stderr().is_terminal()
            && matches!(response.status, 400 | 409 | 412)
        {
            let mut mentions = Mentions::new(&self.api);
            mentions.learn(response.texts_mut().map(|text| text.as_str()).collect::<Vec<_>>());
            response.texts_mut().for_each(|text| *text = mentions.named(text));
        }
        failure
    }

    /// Warns of objects that the responses left out.
    pub(crate) fn warn_of_damage(&self) {
        let (count, were) = match self.api.left_out() {
            0 => return,
            1 => ("1 object".to_owned(), "was"),
            many => (format!("{many} objects"), "were"),
        };
        self.out.warn(&format!(
            "{count} {were} left out because of damaged rows; the operator finds those with `rental-cli store check`"
        ));
    }

    /// Prints a list. `page` builds the request for the page after a cursor, of a size.
    pub(crate) fn list(
        &self,
        spec: &'static ResourceSpec,
        wanted: &Wanted,
        page: impl Fn(Option<&str>, Option<u32>) -> Request,
    ) -> Result<(), Failure> {
        let mut list = self.out.list(spec, &wanted.columns);
        let (mut cursor, mut left): (Option<String>, Option<u32>) = (None, wanted.limit.filter(|_| !wanted.all));
        let mut names: Option<LookUp<'_>> = None;
        loop {
            let size =
                if wanted.all { Some(wanted.limit.unwrap_or(MAX_LIMIT)) } else { left.map(|left| left.min(MAX_LIMIT)) };
            let request = page(cursor.as_deref(), size);
            let json = self.send(&request)?;
            if self.out.json && wanted.is_one_page() {
                return self.out.json_list(&json);
            }
            let fetched = Page::read(&json)?;
            let columns: Vec<_> = list.named().copied().collect();
            let names = names.get_or_insert_with(|| LookUp::new(&self.api, request.access()));
            names.extend(&fetched, &columns)?;
            list.add_page(&fetched, &names.names)?;
            left = left.map(|left| left.saturating_sub(u32::try_from(fetched.data.len()).unwrap_or(u32::MAX)));
            let enough = !wanted.all && left.unwrap_or(0) == 0;
            if enough || !fetched.has_more {
                return list.finish(fetched.next_cursor.as_deref().filter(|_| fetched.has_more));
            }
            cursor = next_page(fetched.has_more, fetched.next_cursor, cursor.as_deref())?;
        }
    }
}

/// Which objects of a list a command prints, and which of their fields.
pub(crate) struct Wanted {
    /// All pages.
    pub(crate) all: bool,
    /// How many objects; with `all`, how many on each page.
    pub(crate) limit: Option<u32>,
    /// Names of columns; empty for the usual ones.
    pub(crate) columns: Vec<String>,
}

impl Wanted {
    fn is_one_page(&self) -> bool {
        !self.all && self.limit.is_none_or(|limit| limit <= MAX_LIMIT)
    }
}

/// Creates a client from the settings.
pub(crate) fn api(settings: &Settings, matches: &ArgMatches) -> Api {
    let timeout = matches.get_one::<Duration>("timeout").copied().unwrap_or(Duration::from_secs(30));
    let secrets = Secrets { api_key: settings.api_key.clone(), admin_token: settings.admin_token.clone() };
    let trace = if matches.get_flag("debug") { Trace::On } else { Trace::Off };
    Api::new(settings.base_url.value.clone(), timeout, secrets)
        .chosen_by(settings.base_url.origin.clone())
        .traced(trace)
}

/// Whether `is` returns true for any object of an operator's list. Reads up to [`MAX_PAGES`] pages, newest first.
pub(crate) fn any_object(
    api: &Api,
    path: &[&str],
    query: &[(String, String)],
    mut is: impl FnMut(&RawValue) -> Result<bool, Failure>,
) -> Result<bool, Failure> {
    let mut found = false;
    each_object((api, Access::Operator), path, query, MAX_PAGES, |raw| {
        found = is(raw)?;
        Ok(!found)
    })?;
    Ok(found)
}
