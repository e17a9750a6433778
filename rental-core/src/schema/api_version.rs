//! The version of the API.

/// The version of the API that this program implements (spec, Versioning): the `Service-Version` of responses, and the
/// `api_version` of new events and webhook endpoints.
pub const API_VERSION: &str = "2026-05-05";
