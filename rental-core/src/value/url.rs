//! URLs of webhook endpoints.

use url::Url;

/// Most bytes of a URL of a webhook endpoint.
pub(crate) const MAX_URL: usize = 2048;

/// Parses the URL of an endpoint: `http` or `https`, at most 2,048 bytes, a host, no user name, password or fragment.
///
/// # Errors
/// A sentence for the caller that says which rule the URL breaks.
pub fn parse(text: &str) -> Result<Url, String> {
    if text.len() > MAX_URL {
        return Err(format!("must be at most {MAX_URL} bytes"));
    }
    if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err("must not contain white space or control characters".into());
    }
    let url =
        Url::parse(text).map_err(|error| format!("must be a URL, such as https://example.com/hooks ({error})"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("must begin with https:// or http://".into());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not contain a user name or password".into());
    }
    if url.fragment().is_some() {
        return Err("must not have a fragment".into());
    }
    if url.host().is_none() || url.port() == Some(0) {
        return Err("must name a host".into());
    }
    Ok(url)
}
