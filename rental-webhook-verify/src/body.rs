//! A body, whole and bounded, for the adapters over `http_body`.

use std::boxed::Box;
use std::error::Error;

use bytes::Bytes;
use http_body::Body;
use http_body_util::{BodyExt, LengthLimitError, Limited};

use crate::Rejection;

pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

/// Stops reading at `limit` bytes.
pub(crate) async fn read<B>(body: B, limit: usize) -> Result<Bytes, Rejection>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    match Limited::new(body, limit).collect().await {
        Ok(whole) => Ok(whole.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Rejection::BodyTooLarge),
        Err(_) => Err(Rejection::BodyUnreadable),
    }
}
