//! What every command has: a server to ask and a place for the answer.

use crate::{
    client::{
        access::Access,
        api::{Api, Secrets},
        request::Request,
    },
    config::settings::Settings,
    failure::Failure,
    output::{
        Output,
        record::{self, Page},
    },
};
use clap::ArgMatches;
use rental_core::spec::ResourceSpec;
use serde_json::value::RawValue;
use std::time::Duration;

/// Pages of a list that are looked through in search of something.
const MOST_PAGES: usize = 10;

/// One run of the program.
pub(crate) struct Session {
    /// The server.
    pub(crate) api: Api,
    /// The answer's form.
    pub(crate) out: Output,
    /// What else the run was told.
    pub(crate) settings: Settings,
}

impl Session {
    /// The organization that `--organization` names, else the environment, else the profile.
    pub(crate) fn organization<'a>(&'a self, matches: &'a ArgMatches) -> Result<&'a str, Failure> {
        match matches.get_one::<String>("organization") {
            Some(id) => Ok(id),
            None => self.settings.organization(),
        }
    }

    /// Sends a request and gives the JSON that comes back.
    pub(crate) fn ask(&self, request: &Request) -> Result<String, Failure> {
        record::json(self.api.send(request)?)
    }

    /// Sends a request, prints the object that comes back, and gives its JSON.
    pub(crate) fn object(&self, request: &Request) -> Result<String, Failure> {
        let json = self.ask(request)?;
        self.out.object(&json)?;
        Ok(json)
    }

    /// Prints one page of a list, or all of them. `page` makes the request for what follows a cursor.
    pub(crate) fn list(
        &self,
        spec: &'static ResourceSpec,
        all: bool,
        page: impl Fn(Option<&str>) -> Request,
    ) -> Result<(), Failure> {
        let mut list = self.out.list(spec);
        let mut cursor: Option<String> = None;
        loop {
            let json = self.ask(&page(cursor.as_deref()))?;
            if self.out.json && !all {
                return self.out.object(&json);
            }
            let answer = Page::read(&json)?;
            list.page(&answer)?;
            if !all || !answer.has_more {
                return list.end(answer.next_cursor.as_deref().filter(|_| answer.has_more));
            }
            if answer.next_cursor.is_none() || answer.next_cursor == cursor {
                return Err(Failure::Unreadable("the list has more pages but no next cursor".into()));
            }
            cursor = answer.next_cursor;
        }
    }
}

/// A client of the server that the settings name.
pub(crate) fn api(settings: &Settings, matches: &ArgMatches) -> Api {
    let timeout = matches.get_one::<Duration>("timeout").copied().unwrap_or(Duration::from_secs(30));
    let secrets = Secrets { api_key: settings.api_key.clone(), admin_token: settings.admin_token.clone() };
    Api::new(settings.base_url.value.clone(), timeout, secrets)
}

/// Whether `is` says so of any object of an operator's list. It looks through the first pages only, newest first.
pub(crate) fn any(
    api: &Api,
    path: &[&str],
    query: Vec<(String, String)>,
    mut is: impl FnMut(&RawValue) -> Result<bool, Failure>,
) -> Result<bool, Failure> {
    let mut cursor: Option<String> = None;
    for _ in 0..MOST_PAGES {
        let mut query = query.clone();
        query.push(("limit".into(), "100".into()));
        query.extend(cursor.take().map(|cursor| ("starting_after".to_owned(), cursor)));
        let request = Request::get(Access::Operator, path).with_query(query);
        let page = Page::read(&record::json(api.send(&request)?)?)?;
        for raw in &page.data {
            if is(raw)? {
                return Ok(true);
            }
        }
        match page.next_cursor.filter(|_| page.has_more) {
            Some(next) => cursor = Some(next),
            None => break,
        }
    }
    Ok(false)
}
