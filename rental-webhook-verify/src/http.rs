//! Feature `http`: the header out of a [`HeaderMap`] of http 1.

use ::http::{HeaderMap, HeaderValue};

use crate::receiver::{Receiver, Rejection, only};

impl Receiver {
    /// As [`verify`](Self::verify), with the header looked up in `headers`.
    ///
    /// # Errors
    ///
    /// [`Rejection::MissingHeader`], [`RepeatedHeader`](Rejection::RepeatedHeader),
    /// [`HeaderNotText`](Rejection::HeaderNotText) or [`Refused`](Rejection::Refused).
    #[cfg_attr(docsrs, doc(cfg(feature = "http")))]
    pub fn verify_headers(&self, headers: &HeaderMap, raw_body: &[u8]) -> Result<(), Rejection> {
        Ok(self.verify(self.signature(headers)?, raw_body)?)
    }

    /// Looked up before a body is read, so that a request without a signature costs no memory.
    pub(crate) fn signature<'h>(&self, headers: &'h HeaderMap) -> Result<&'h str, Rejection> {
        only(headers.get_all(self.header_name()).iter().map(HeaderValue::as_bytes))
    }
}
