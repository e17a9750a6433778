//! Polls the events of an organization: each event once, none missed, across restarts of the server.
//!
//! The server assigns an event's id when the request arrives, but the event becomes visible when its change commits. So a
//! later id can become visible first. Each poll therefore goes back by [`OVERLAP`] and skips the events that it has seen.
//! All times are of the server's clock, because its ids are.

use crate::{
    client::{access::Access, api::Api, request::Request},
    config::when::When,
    failure::Failure,
    output::{
        record::{self, Page, Record, next_page},
        references::recognized,
    },
    text::printable,
};
use rental_core::value::{EventId, Timestamp};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

/// How far a poll goes back: longer than any request takes from its first byte to its commit.
const OVERLAP: Duration = Duration::from_secs(60);
/// Maximum number of events in memory. A time span with more events is halved.
const MAX_HELD: usize = 2000;
/// Every n-th poll reads the whole overlap; the others stop at the first page without new events.
const FULL_POLL_EVERY: u32 = 10;

/// Status of a running server, and when it was read.
pub(crate) struct Server {
    /// Prefix of webhook headers.
    pub(crate) brand: String,
    time: Timestamp,
    asked: Instant,
}

impl Server {
    /// Requests the status.
    pub(crate) fn ask(api: &Api) -> Result<Self, Failure> {
        let status = record::json(api.send(&Request::get(Access::Operator, &["status"]))?)?;
        let status = Record::read(&status)?;
        let time = status.text("time").and_then(|text| Timestamp::parse(&text));
        match (time, status.text("webhook_brand")) {
            (Some(time), Some(brand)) => Ok(Self { brand, time, asked: Instant::now() }),
            _ => Err(Failure::Unreadable("the response is not the status of a server".into())),
        }
    }

    /// Current time of the server's clock.
    pub(crate) fn now(&self) -> Timestamp {
        self.time.plus_millis(millis(self.asked.elapsed()))
    }
}

/// A parsed event.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) id: EventId,
    pub(crate) kind: String,
    /// Id of the object in `data`.
    pub(crate) object_id: String,
    /// What a person calls that object.
    pub(crate) about: Option<String>,
    /// When its request arrived, from the event's id.
    pub(crate) at: Timestamp,
    /// The event's JSON, byte for byte as webhooks deliver it.
    pub(crate) body: String,
}

impl Event {
    /// Parses an event of a list.
    pub(crate) fn read(raw: &RawValue) -> Result<Self, Failure> {
        #[derive(Deserialize)]
        struct Members {
            id: EventId,
            r#type: String,
            created: i64,
            data: Record,
        }
        let members: Members = serde_json::from_str(raw.get())
            .map_err(|error| Failure::Unreadable(format!("the response is not an event: {error}")))?;
        // The id has milliseconds, `created` only seconds.
        let at = match members.id.uuid().get_timestamp() {
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
            object_id: members.data.text("id").unwrap_or_default(),
            about: recognized(&members.data),
            at: Timestamp::from_millis(at),
            body: raw.get().to_owned(),
        })
    }
}

/// State of the polling.
pub(crate) struct Feed {
    organization: String,
    /// Wanted types; empty means all.
    kinds: Vec<String>,
    /// All events before this time have been handled.
    settled_until: Timestamp,
    /// Ids of handled events since then.
    seen: BTreeSet<EventId>,
    polls: u32,
}

impl Feed {
    /// Starts at `since`. Without it, starts now and skips all earlier events.
    pub(crate) fn start(
        api: &Api,
        server: &Server,
        organization: String,
        kinds: Vec<String>,
        since: Option<&When>,
    ) -> Result<Self, Failure> {
        let now = server.now();
        let done = match since {
            Some(When::Text(text)) => Timestamp::parse_bound(text).unwrap_or(now),
            Some(When::Ago(ago)) => now.plus_millis(-millis(*ago)),
            // The command makes a time of a day, because only it knows whose day is meant.
            Some(When::Day(_) | When::FromToday(_)) => now,
            None => now.plus_millis(-millis(OVERLAP)),
        };
        let mut feed = Self { organization, kinds, settled_until: done, seen: BTreeSet::new(), polls: 0 };
        match since {
            Some(_) => {}
            None => feed.poll(api, now, |_| Ok(()))?,
        }
        Ok(feed)
    }

    /// Continues after an outage. Goes back by the overlap, because the server's clock may have changed.
    pub(crate) fn resume(&mut self, now: Timestamp) {
        self.settled_until = self.settled_until.min(now.plus_millis(-millis(OVERLAP)));
        self.polls = 0;
    }

    /// Calls `handle` with each new event, oldest first. After a failure the next poll continues where this one stopped.
    pub(crate) fn poll(
        &mut self,
        api: &Api,
        now: Timestamp,
        mut handle: impl FnMut(&Event) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let settled = self.settled_until.max(now.plus_millis(-millis(OVERLAP)));
        // Twice the overlap, in case the server's clock is set back a little during an outage.
        let remembered = settled.plus_millis(-millis(OVERLAP));
        let whole = self.polls.is_multiple_of(FULL_POLL_EVERY);
        let (mut from, mut until) = (self.settled_until, None);
        loop {
            let Some(mut events) = self.between(api, from, until, whole)? else {
                until = Some(middle(from, until.unwrap_or(now)));
                continue;
            };
            events.sort_by_key(|event| event.id);
            for event in events {
                if self.kinds.is_empty() || self.kinds.contains(&event.kind) {
                    handle(&event)?;
                }
                if event.at >= remembered {
                    self.seen.insert(event.id);
                }
            }
            let Some(end) = until else { break };
            self.settled_until = self.settled_until.max(end.min(settled));
            // Double the span that fitted; adapts quickly if events are unevenly distributed.
            let ahead = end.plus_millis(i64::try_from((end.millis() - from.millis()) * 2).unwrap_or(i64::MAX));
            (from, until) = (end, (ahead < now).then_some(ahead));
        }
        self.settled_until = settled;
        self.seen = self.seen.split_off(&first_id(remembered));
        self.polls = self.polls.wrapping_add(1);
        Ok(())
    }

    /// Fetches the new events of a time span, in any order. `None` if there are more than [`MAX_HELD`].
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
                if !self.seen.contains(&event.id) {
                    news += 1;
                    events.push(event);
                }
            }
            if events.len() > MAX_HELD && divisible {
                return Ok(None);
            }
            let known = news == 0 && !whole;
            if known {
                return Ok(Some(events));
            }
            cursor = next_page(page.has_more, page.next_cursor, cursor.as_deref())?;
            if cursor.is_none() {
                return Ok(Some(events));
            }
        }
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// The middle of two times, later than the first.
fn middle(from: Timestamp, until: Timestamp) -> Timestamp {
    let span = until.millis().saturating_sub(from.millis());
    from.plus_millis(i64::try_from(span / 2).unwrap_or(i64::MAX).max(1))
}

/// The smallest id of `time`.
fn first_id(time: Timestamp) -> EventId {
    EventId::from_u128(u128::from(time.millis()) << 80)
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
