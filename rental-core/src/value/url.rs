//! URLs of webhook endpoints.

use url::Url;

/// Most bytes of a URL of a webhook endpoint.
pub(crate) const MAX_URL: usize = 2048;

/// Parses the URL of an endpoint: `http` or `https`, at most 2,048 bytes, a host, no user name, password or fragment.
///
/// The URL is stored with its host and path encoded, and parsed again from that: the bound holds for both forms.
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
    if url.as_str().len() > MAX_URL {
        return Err(format!("must be at most {MAX_URL} bytes when its letters are encoded as in `xn--` and `%C3%A9`"));
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is accepted is parsed again from its encoded form, before each attempt.
    #[test]
    fn the_bound_holds_for_the_encoded_form_too() {
        let with = |letters: usize| format!("https://example.com/{}", "\u{e9}".repeat(letters));
        let most = (MAX_URL - "https://example.com/".len()) / "%C3%A9".len();
        let url = parse(&with(most)).unwrap();
        assert_eq!(parse(url.as_str()), Ok(url));
        let why = parse(&with(most + 1)).unwrap_err();
        assert!(why.starts_with("must be at most 2048 bytes when"), "{why}");
    }
}
