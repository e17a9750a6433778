//! Reads a calendar of others with the guarded client: the same addresses are forbidden, no redirect is followed, and body and time
//! are bounded.

use super::send::{CALENDAR_TIMEOUT, Sender};
use crate::outgoing::failure;
use http_body_util::{BodyExt, Full};
use hyper::{
    Request,
    header::{ACCEPT, ETAG, HeaderValue, IF_NONE_MATCH, USER_AGENT},
};
use rental_core::{calendars::MOST_BYTES, value, webhooks::attempt::Failure};

/// Longest ETag that is kept.
const LONGEST_ETAG: usize = 200;

/// What was read.
pub(crate) enum Downloaded {
    /// It is as before.
    Unchanged,
    /// The body, and its ETag.
    Body(Vec<u8>, Option<String>),
}

impl Sender {
    /// Reads a calendar. `etag` is that of the last reading.
    ///
    /// # Errors
    /// A sentence for people. It does not contain the address.
    pub(crate) async fn download(&self, url: &str, etag: Option<&str>) -> Result<Downloaded, String> {
        let limit = CALENDAR_TIMEOUT.as_secs();
        let late = |_| Err(format!("The calendar was not received within {limit} s. It is read again later."));
        tokio::time::timeout(CALENDAR_TIMEOUT, self.exchange_calendar(url, etag)).await.unwrap_or_else(late)
    }

    async fn exchange_calendar(&self, url: &str, etag: Option<&str>) -> Result<Downloaded, String> {
        let url = value::url::parse(url).map_err(|_| "The address of the calendar is not valid.".to_owned())?;
        let host = self.allowed(&url).map_err(words)?;
        let mut request = Request::get(host)
            .header(ACCEPT, HeaderValue::from_static("text/calendar, */*;q=0.1"))
            .header(USER_AGENT, &self.user_agent);
        if let Some(etag) = etag.and_then(|etag| HeaderValue::try_from(etag).ok()) {
            request = request.header(IF_NONE_MATCH, etag);
        }
        let request = request.body(Full::default()).map_err(|_| words(Failure::BadAnswer))?;
        let response = self.calendars.request(request).await;
        let response = response.map_err(|error| words(failure(&error, error.is_connect())))?;
        match response.status().as_u16() {
            200 => {}
            304 if etag.is_some() => return Ok(Downloaded::Unchanged),
            status @ 300..=399 => {
                return Err(format!(
                    "The calendar has moved (HTTP {status}), and redirects are not followed. Make the feed with its new address."
                ));
            }
            status @ (401 | 403) => {
                return Err(format!(
                    "The server of the calendar refuses access (HTTP {status}). Get an address that works without a login, and make the feed with it."
                ));
            }
            status @ (404 | 410) => {
                return Err(format!(
                    "The calendar is not there any more (HTTP {status}). Get its present address, and make the feed with it."
                ));
            }
            status => {
                return Err(format!("The server of the calendar answered HTTP {status}. It is read again later."));
            }
        }
        let tag = response.headers().get(ETAG).and_then(|tag| tag.to_str().ok()).map(str::to_owned);
        let (mut incoming, mut body) = (response.into_body(), Vec::new());
        while let Some(frame) = incoming.frame().await {
            let cut_off = |_| "The calendar was cut off while it was received. It is read again later.";
            let Ok(part) = frame.map_err(cut_off)?.into_data() else { continue };
            if body.len() + part.len() > MOST_BYTES {
                return Err(format!("The calendar is larger than {MOST_BYTES} bytes. Nothing was changed."));
            }
            body.extend_from_slice(&part);
        }
        Ok(Downloaded::Body(body, tag.filter(|tag| tag.len() <= LONGEST_ETAG)))
    }
}

fn words(failure: Failure) -> String {
    match failure {
        Failure::TimedOut => "The server of the calendar did not answer in time. It is read again later.".into(),
        Failure::NameUnknown => "The host of the calendar does not exist. Check the address.".into(),
        Failure::AddressForbidden => {
            "The address of the calendar is private, loopback or reserved, so it is not read.".into()
        }
        Failure::HttpsRequired => "The address of the calendar must begin with https://.".into(),
        Failure::CannotConnect => "The server of the calendar cannot be reached. It is read again later.".into(),
        other => format!("The calendar could not be received ({}). It is read again later.", other.as_str()),
    }
}
