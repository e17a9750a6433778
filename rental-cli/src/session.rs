//! What every command has: a server to ask and a place for the answer.

use crate::{
    api::{Api, Request},
    failure::Failure,
    output::Output,
    record::{self, Page},
};
use rental_core::spec::ResourceSpec;

/// One run of the program.
pub(crate) struct Session {
    /// The server.
    pub(crate) api: Api,
    /// The answer's form.
    pub(crate) out: Output,
}

impl Session {
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
                return Err(Failure::Unreadable("the list does not say where it goes on".into()));
            }
            cursor = answer.next_cursor;
        }
    }
}
