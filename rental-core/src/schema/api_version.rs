//! The version of the API.

/// The version of the API that this program speaks (spec, Versioning): the `Service-Version` of responses, and the
/// `api_version` of events and webhook endpoints made by it.
pub const API_VERSION: &str = "2026-05-05";
