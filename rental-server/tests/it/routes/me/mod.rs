//! `/v1/me`

mod get;
