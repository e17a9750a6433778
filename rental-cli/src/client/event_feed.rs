//! The events of an organization as they happen: each one once, none missed, over restarts of the server.
//!
//! An event's id is made when its request comes in, and is seen when its change commits, so a later id can be seen
//! first. Each look therefore goes back [`OVERLAP`] and knows what it has shown. Times are the server's: its ids are
//! made by its clock, whatever this machine's clock says.

use crate::{
    client::{access::Access, api::Api, request::Request},
    config::values::Since,
    failure::Failure,
    output::record::{self, Page, Record},
    text::printable,
};
use rental_core::value::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};
use uuid::Uuid;

/// How far a look goes back: longer than a request lasts from its first byte to its commit.
const OVERLAP: Duration = Duration::from_secs(60);
/// Events that are kept in memory at once; a span of time with more of them is halved.
const MOST: usize = 2000;
/// Looks until the next one that goes through the whole overlap; those between stop where they know a page already.
const WHOLE_EVERY: u32 = 10;

/// What a running server says about itself, and when it said so.
pub(crate) struct Server {
    /// Prefix of the headers of webhooks.
    pub(crate) brand: String,
    time: Timestamp,
    asked: Instant,
}

impl Server {
    /// Asks for the status.
    pub(crate) fn ask(api: &Api) -> Result<Self, Failure> {
        let status = record::json(api.send(&Request::get(Access::Operator, &["status"]))?)?;
        let status = Record::read(&status)?;
        let time = status.text("time").and_then(|text| Timestamp::parse(&text));
        match (time, status.text("webhook_brand")) {
            (Some(time), Some(brand)) => Ok(Self { brand, time, asked: Instant::now() }),
            _ => Err(Failure::Unreadable("the response is not the status of a server".into())),
        }
    }

    /// What its clock shows now.
    pub(crate) fn now(&self) -> Timestamp {
        self.time.plus_millis(millis(self.asked.elapsed()))
    }
}

/// An event, ready to be shown or sent.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) id: Uuid,
    pub(crate) kind: String,
    /// Of the object that it is about.
    pub(crate) object_id: String,
    /// When its request came in.
    pub(crate) at: Timestamp,
    /// The bytes that every delivery has.
    pub(crate) body: String,
}

impl Event {
    /// Reads an event of a list.
    pub(crate) fn read(raw: &RawValue) -> Result<Self, Failure> {
        #[derive(Deserialize)]
        struct Members {
            id: Uuid,
            r#type: String,
            created: i64,
            data: Object,
        }
        #[derive(Deserialize)]
        struct Object {
            #[serde(default)]
            id: String,
        }
        let members: Members = serde_json::from_str(raw.get())
            .map_err(|error| Failure::Unreadable(format!("the response is not an event: {error}")))?;
        // The id has the milliseconds that `created` lacks.
        let at = match members.id.get_timestamp() {
            Some(time) => {
                let (seconds, nanos) = time.to_unix();
                i64::try_from(seconds)
                    .unwrap_or(i64::MAX)
                    .saturating_mul(1000)
                    .saturating_add(i64::from(nanos / 1_000_000))
            }
            None => members.created.saturating_mul(1000),
        };
        Ok(Self {
            id: members.id,
            kind: printable(&members.r#type),
            object_id: printable(&members.data.id),
            at: Timestamp::from_millis(at),
            body: raw.get().to_owned(),
        })
    }
}

/// Where the looks have come to.
pub(crate) struct Feed {
    organization: String,
    /// The types that are wanted; all when there is none.
    kinds: Vec<String>,
    /// Every event before this time has been given.
    done: Timestamp,
    /// The events since then that have been given.
    given: BTreeSet<Uuid>,
    looks: u32,
}

impl Feed {
    /// Starts at `since`, else now: then what happened before is passed over.
    pub(crate) fn start(
        api: &Api,
        server: &Server,
        organization: String,
        kinds: Vec<String>,
        since: Option<&Since>,
    ) -> Result<Self, Failure> {
        let now = server.now();
        let done = match since {
            Some(Since::At(text)) => Timestamp::parse_bound(text).unwrap_or(now),
            Some(Since::Ago(ago)) => now.plus_millis(-millis(*ago)),
            None => now.plus_millis(-millis(OVERLAP)),
        };
        let mut feed = Self { organization, kinds, done, given: BTreeSet::new(), looks: 0 };
        match since {
            Some(_) => {}
            None => feed.look(api, now, |_| Ok(()))?,
        }
        Ok(feed)
    }

    /// The server was away, perhaps with its clock: what may have happened meanwhile is looked at again.
    pub(crate) fn resume(&mut self, now: Timestamp) {
        self.done = self.done.min(now.plus_millis(-millis(OVERLAP)));
        self.looks = 0;
    }

    /// Gives what is new, oldest first. After a failure the next look goes on where this one was.
    pub(crate) fn look(
        &mut self,
        api: &Api,
        now: Timestamp,
        mut give: impl FnMut(&Event) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let settled = self.done.max(now.plus_millis(-millis(OVERLAP)));
        // Longer than needed, for a clock that is set back a little while the server is away.
        let remembered = settled.plus_millis(-millis(OVERLAP));
        let whole = self.looks.is_multiple_of(WHOLE_EVERY);
        let (mut from, mut until) = (self.done, None);
        loop {
            let Some(mut events) = self.between(api, from, until, whole)? else {
                until = Some(middle(from, until.unwrap_or(now)));
                continue;
            };
            events.sort_by_key(|event| event.id);
            for event in events {
                if self.kinds.is_empty() || self.kinds.contains(&event.kind) {
                    give(&event)?;
                }
                if event.at >= remembered {
                    self.given.insert(event.id);
                }
            }
            let Some(end) = until else { break };
            self.done = self.done.max(end.min(settled));
            // Twice the span that was held: nearly right where events come evenly, and soon right where they do not.
            let ahead = end.plus_millis(i64::try_from((end.millis() - from.millis()) * 2).unwrap_or(i64::MAX));
            (from, until) = (end, (ahead < now).then_some(ahead));
        }
        self.done = settled;
        self.given = self.given.split_off(&first_id(remembered));
        self.looks = self.looks.wrapping_add(1);
        Ok(())
    }

    /// The events of a span that were not given, in any order; `None` when there are too many to hold.
    fn between(
        &self,
        api: &Api,
        from: Timestamp,
        until: Option<Timestamp>,
        whole: bool,
    ) -> Result<Option<Vec<Event>>, Failure> {
        let divisible = until.is_none_or(|until| until.millis() - from.millis() > 1);
        let mut query = vec![("limit".to_owned(), "100".to_owned()), ("created[gte]".to_owned(), from.to_string())];
        query.extend(until.map(|until| ("created[lt]".to_owned(), until.to_string())));
        if let [kind] = self.kinds.as_slice() {
            query.push(("type".to_owned(), kind.clone()));
        }
        let (mut events, mut cursor): (Vec<Event>, Option<String>) = (Vec::new(), None);
        loop {
            let mut query = query.clone();
            query.extend(cursor.iter().map(|cursor| ("starting_after".to_owned(), cursor.clone())));
            let path = ["organizations", &self.organization, "events"];
            let page = record::json(api.send(&Request::get(Access::Operator, &path).with_query(query))?)?;
            let page = Page::read(&page)?;
            let mut news = 0;
            for raw in &page.data {
                let event = Event::read(raw)?;
                if !self.given.contains(&event.id) {
                    news += 1;
                    events.push(event);
                }
            }
            if events.len() > MOST && divisible {
                return Ok(None);
            }
            let known = news == 0 && !whole;
            if !page.has_more || known {
                return Ok(Some(events));
            }
            if page.next_cursor.is_none() || page.next_cursor == cursor {
                return Err(Failure::Unreadable("the list has more pages but no next cursor".into()));
            }
            cursor = page.next_cursor;
        }
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// A time between the two, later than the first.
fn middle(from: Timestamp, until: Timestamp) -> Timestamp {
    let span = until.millis().saturating_sub(from.millis());
    from.plus_millis(i64::try_from(span / 2).unwrap_or(i64::MAX).max(1))
}

/// No id that was made at `time` or later is before this one.
fn first_id(time: Timestamp) -> Uuid {
    Uuid::from_u128(u128::from(time.millis()) << 80)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_divided_until_nothing_is_left_to_divide() {
        let at = Timestamp::from_millis;
        assert_eq!(middle(at(10), at(20)), at(15));
        assert_eq!(middle(at(10), at(11)), at(11));
        assert_eq!(middle(at(10), at(5)), at(11));
    }

    #[test]
    fn the_time_of_an_event_is_that_of_its_id() {
        let raw = |id: &str| {
            let text = format!(
                r#"{{"id":"{id}","object":"event","type":"rental.created","created":7,"data":{{"id":"x\ty"}}}}"#
            );
            Event::read(&RawValue::from_string(text).unwrap()).unwrap()
        };
        let event = raw("0190d0f2-7c3a-7cc0-8000-0000000000e1");
        assert_eq!(event.at.millis(), 0x0190_d0f2_7c3a);
        assert!(event.id >= first_id(event.at) && event.id < first_id(event.at.plus_millis(1)));
        assert_eq!(event.object_id, "x\\ty");
        assert_eq!(raw("00000000-0000-4000-8000-000000000000").at.millis(), 7000);
    }
}
