//! A request as plain data: method, path, query, body, idempotency key.

use crate::client::access::Access;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};
use reqwest::{Method, header::HeaderValue};
use uuid::Uuid;

/// A request without its secret.
pub(crate) struct Request {
    pub(super) method: Method,
    pub(super) access: Access,
    pub(super) path: String,
    pub(super) query: Vec<(String, String)>,
    pub(super) body: Option<Vec<u8>>,
    /// Media type of the body.
    pub(super) media: String,
    pub(super) idempotency_key: Option<HeaderValue>,
    /// The id in the path, if it is not a UUID and so cannot exist.
    pub(super) odd_id: Option<String>,
}

impl Request {
    /// A GET of `segments` below the prefix of `access`. Segments are percent-encoded.
    pub(crate) fn get(access: Access, segments: &[&str]) -> Self {
        let path = segments
            .iter()
            .fold(access.prefix().to_owned(), |path, segment| format!("{path}/{}", percent_encode(segment)));
        // The second segment is the id: `vehicles/ID`, `organizations/ID/events`.
        let odd_id = segments.get(1).filter(|id| Uuid::try_parse(id).is_err()).map(|id| (*id).to_owned());
        let (query, media) = (Vec::new(), "application/json".to_owned());
        Self { method: Method::GET, access, path, query, body: None, media, idempotency_key: None, odd_id }
    }

    /// A POST, with a JSON body or an empty one.
    pub(crate) fn post(access: Access, segments: &[&str], body: Option<String>) -> Self {
        Self { method: Method::POST, body: body.map(String::into_bytes), ..Self::get(access, segments) }
    }

    /// A PATCH with a JSON body.
    pub(crate) fn patch(access: Access, segments: &[&str], body: String) -> Self {
        Self { method: Method::PATCH, body: Some(body.into_bytes()), ..Self::get(access, segments) }
    }

    /// A PUT of a file.
    pub(crate) fn put(access: Access, segments: &[&str], media: &str, body: Vec<u8>) -> Self {
        Self { method: Method::PUT, body: Some(body), media: media.to_owned(), ..Self::get(access, segments) }
    }

    /// A DELETE.
    pub(crate) fn delete(access: Access, segments: &[&str]) -> Self {
        Self { method: Method::DELETE, ..Self::get(access, segments) }
    }

    /// Any request. `path` starts with the prefix of `access`, is percent-encoded, and may have a query.
    pub(crate) fn raw(method: Method, access: Access, path: &str, body: Option<Vec<u8>>, media: &str) -> Self {
        Self { method, path: path.to_owned(), body, media: media.to_owned(), odd_id: None, ..Self::get(access, &[]) }
    }

    /// The half of the API that the request is for.
    pub(crate) fn access(&self) -> Access {
        self.access
    }

    /// Adds query parameters.
    pub(crate) fn with_query(mut self, query: Vec<(String, String)>) -> Self {
        self.query = query;
        self
    }

    /// Sets the idempotency key. Without one, a write gets a random key.
    pub(crate) fn with_idempotency_key(mut self, key: Option<&HeaderValue>) -> Self {
        self.idempotency_key = key.cloned();
        self
    }
}

/// All characters except the unreserved ones (RFC 3986), so that `+` stays a plus sign and an id stays in its segment.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

pub(super) fn percent_encode(text: &str) -> PercentEncode<'_> {
    utf8_percent_encode(text, RESERVED)
}
