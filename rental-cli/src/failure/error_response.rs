//! An error response of the server: parsed, mapped to an exit code, and explained with the next step.

use crate::{flags, text::printable};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::value::RawValue;
use std::{fmt, time::Duration};

/// Maximum number of characters shown of a response without an error object.
const EXCERPT_CHARS: usize = 200;

/// An error response: status, headers of interest, and the API's error object.
#[derive(Debug, Default)]
pub(crate) struct ErrorResponse {
    /// HTTP status.
    pub(crate) status: u16,
    /// Pause requested by `Retry-After`.
    pub(crate) retry_after: Option<Duration>,
    /// Hint for 401: how to get a valid secret.
    credential: String,
    request_id: Option<String>,
    error: Body,
    /// The response body, if it is an error object of the API.
    json: Option<String>,
    odd_id: Option<String>,
    /// Whether the base URL ends with the prefix of the API, which every path has too.
    prefix_twice: bool,
}

#[derive(Debug, Default, Deserialize)]
struct Envelope {
    error: Body,
}

/// Members of `error`. The specification defines `type` and `message` only; the others are additions of this server.
#[derive(Debug, Default, Deserialize)]
struct Body {
    r#type: String,
    message: String,
    code: Option<String>,
    param: Option<String>,
    #[serde(default)]
    errors: Vec<FieldError>,
    request_id: Option<String>,
}

#[derive(Debug, Deserialize)]
struct FieldError {
    param: Option<String>,
    message: Option<String>,
}

impl ErrorResponse {
    /// Parses the body of an error response. A body without an error object is quoted in the message. `credential` is the
    /// hint for 401.
    pub(crate) fn read(status: u16, body: &[u8], credential: String) -> Self {
        match serde_json::from_slice::<Envelope>(body) {
            // JSON allows line breaks between tokens only, so replacing them changes no value.
            Ok(Envelope { error }) => {
                let json = Some(String::from_utf8_lossy(body).trim().replace(['\n', '\r'], " "));
                Self { status, credential, error, json, ..Self::default() }
            }
            Err(_) => {
                let (kind, code) = ("http_error".to_owned(), Some(format!("http_{status}")));
                let error = Body { r#type: kind, code, message: unexplained(status, body), ..Body::default() };
                Self { status, credential, error, ..Self::default() }
            }
        }
    }

    /// Adds the values of headers.
    pub(crate) fn with_headers(mut self, request_id: Option<String>, retry_after: Option<Duration>) -> Self {
        self.request_id = self.error.request_id.take().or(request_id);
        self.retry_after = retry_after;
        self
    }

    /// Replaces the hint for 401.
    pub(crate) fn with_credential(mut self, hint: &str) -> Self {
        hint.clone_into(&mut self.credential);
        self
    }

    /// Adds the id of the request's path, if it is not a valid id.
    pub(crate) fn with_id(mut self, odd_id: Option<&str>) -> Self {
        self.odd_id = odd_id.map(|id| id.chars().take(EXCERPT_CHARS).collect());
        self
    }

    /// Notes the path of the base URL.
    pub(crate) fn with_base_path(mut self, path: &str) -> Self {
        self.prefix_twice = path.trim_end_matches('/').ends_with("/v1");
        self
    }

    /// Error type, such as `permission_error`.
    pub(crate) fn kind(&self) -> &str {
        &self.error.r#type
    }

    /// Error code, such as `plan_required`; the type if the server sent no code.
    pub(crate) fn code(&self) -> &str {
        self.error.code.as_deref().unwrap_or(&self.error.r#type)
    }

    /// Message for people.
    pub(crate) fn message(&self) -> &str {
        &self.error.message
    }

    /// Request id, for questions to the operator of the server.
    pub(crate) fn request_id(&self) -> Option<&str> {
        self.request_id.as_deref()
    }

    /// The response body in one line with the hint as a member of `error`, if it is an error object of the API.
    pub(crate) fn json(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct Raw<'a> {
            #[serde(borrow)]
            error: &'a RawValue,
        }
        #[derive(Deserialize)]
        struct Own {
            hint: Option<IgnoredAny>,
        }
        let json = self.json.as_deref()?;
        let Some(hint) = self.hint() else { return Some(json.to_owned()) };
        let Raw { error } = serde_json::from_str(json).ok()?;
        if serde_json::from_str::<Own>(error.get()).ok()?.hint.is_some() {
            return Some(json.to_owned());
        }
        // Added to the text, so that every other byte stays as the server sent it.
        let members = error.get().strip_suffix('}')?;
        let hint = serde_json::to_string(&hint).ok()?;
        Some(json.replacen(error.get(), &format!("{members},\"hint\":{hint}}}"), 1))
    }

    /// The texts of the server for people.
    pub(crate) fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let of_fields = self.error.errors.iter_mut().filter_map(|field| field.message.as_mut());
        std::iter::once(&mut self.error.message).chain(of_fields)
    }

    /// A text of the server with flags in place of paths into lists: `the amount of --line number 1` for `` `lines[0].amount` ``.
    fn said(&self, text: &str) -> String {
        let of_fields = self.error.errors.iter().filter_map(|field| field.param.as_deref());
        let paths = of_fields.chain(self.error.param.as_deref());
        paths.fold(text.to_owned(), |text, path| match flags::in_list(path) {
            Some(words) => text.replace(&format!("`{path}`"), &words),
            None => text,
        })
    }

    /// Exit code for the status.
    pub(crate) fn exit_code(&self) -> u8 {
        match self.status {
            404 => 3,
            401 => 4,
            403 => 5,
            400 | 409 | 412 | 413 | 415 | 422 => 6,
            408 => 7,
            429 => 8,
            500..=599 => 9,
            _ => 1,
        }
    }

    /// What may help.
    pub(crate) fn hint(&self) -> Option<String> {
        let hint = match (self.status, self.code()) {
            (401, _) => &self.credential,
            (403, "plan_required") => "ask the operator to run `rental-cli organizations update ID --plan pro`",
            (403, "quota_exceeded") => {
                let flag = if self.error.message.contains("max_bytes") { "max-bytes" } else { "max-objects" };
                return Some(format!(
                    "ask the operator to raise it with `rental-cli organizations update ID --{flag} NUMBER`, or to go back to the default of the server with `--clear {flag}`"
                ));
            }
            (403, "insufficient_scope") => {
                "ask the operator for a key that can write: `rental-cli api-keys create --organization ID --scope read_write`"
            }
            (403, "insufficient_role") => {
                "ask an owner to do it, or for an operator with that role: `rental-cli operators create`"
            }
            (404, "route_unknown" | "http_404") if self.prefix_twice => {
                "remove /v1 from the end of the base URL: every command adds it"
            }
            (404, "route_unknown") if self.error.message.contains("did you mean") => return None,
            (404, "http_404") => {
                "no rental server answers like this: check --base-url and RENTAL_BASE_URL, or run `rental-cli doctor`"
            }
            (404, "route_unknown") => "check --base-url, and that server and rental-cli have the same version",
            (404, _) if self.odd_id.is_some() => {
                let id = self.odd_id.as_deref().unwrap_or_default();
                return Some(format!(
                    "`{}` is not a valid id; ids look like 0190d0f2-7c3a-7cc0-8000-000000000000, and `list` shows them",
                    printable(id)
                ));
            }
            (404, _) => "`list` shows the existing ids; ids of other organizations are not found",
            (409, "export_required") => {
                "run `rental-cli export --organization ID --to FILE` first, or give --without-export"
            }
            (409, "idempotency_key_in_use") => "wait a moment, then repeat the command with the same --idempotency-key",
            (422, "idempotency_key_reused") => "omit --idempotency-key, or choose a new key",
            (429 | 503, _) => {
                let when =
                    self.retry_after.map_or_else(|| "later".to_owned(), |pause| format!("in {} s", pause.as_secs()));
                return Some(format!("try again {when}"));
            }
            (300..=399, _) => "redirects are not followed; set --base-url to the final URL",
            (500, "data_damaged") => {
                "a retry does not help: send the request id to the operator of the server (docs/runbook.md, \"A file with damaged pages\")"
            }
            (500..=599, _) => "try again; if it fails again, send the request id to the operator of the server",
            _ => return None,
        };
        Some(hint.to_owned())
    }
}

impl fmt::Display for ErrorResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = &self.error;
        writeln!(f, "error[{}]: {}", printable(self.code()), printable(&self.said(&error.message)))?;
        for field in &error.errors {
            let message = field.message.as_deref().unwrap_or("");
            let said = (message != error.message).then(|| self.said(message));
            param(f, field.param.as_deref().unwrap_or("?"), said.as_deref())?;
        }
        // A 404 names the id of the path, which is no flag.
        if let Some(name) = error.param.as_ref().filter(|_| error.errors.is_empty() && self.status != 404) {
            param(f, name, None)?;
        }
        if let Some(hint) = self.hint() {
            writeln!(f, "hint: {hint}")?;
        }
        match &self.request_id {
            Some(id) => writeln!(f, "request id {}", printable(id)),
            None => Ok(()),
        }
    }
}

/// Writes one line for an invalid field: its name, its flag, and the message unless it repeats the first line.
fn param(f: &mut fmt::Formatter<'_>, name: &str, message: Option<&str>) -> fmt::Result {
    let flag = flags::flag_of(name).map(|flag| format!("--{flag}")).or_else(|| flags::in_list(name));
    let flag = flag.map(|flag| format!(" ({flag})")).unwrap_or_default();
    let message = message.map(|message| format!(": {}", printable(message))).unwrap_or_default();
    writeln!(f, "  param {}{flag}{message}", printable(name))
}

fn unexplained(status: u16, body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let text = text.trim();
    let excerpt: String = text.chars().take(EXCERPT_CHARS).collect();
    match (excerpt.is_empty(), excerpt.len() < text.len()) {
        (true, _) => format!("the server responded with {status} and an empty body"),
        (false, false) => format!("the server responded with {status}: {excerpt}"),
        (false, true) => format!("the server responded with {status}: {excerpt}…"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(status: u16, body: &str, expected: &str) {
        let refusal =
            ErrorResponse::read(status, body.as_bytes(), String::new()).with_headers(Some("req_1".into()), None);
        assert_eq!(refusal.to_string(), expected);
    }

    #[test]
    fn every_bad_field_has_a_line_with_its_flag() {
        check(
            400,
            r#"{"error":{"type":"invalid_request_error","code":"parameter_invalid","message":"2 fields are wrong","errors":[
                {"param":"daily_rate","code":"parameter_invalid","message":"`daily_rate` must be 0 or more."},
                {"param":"customer_id","code":"resource_missing","message":"There is no such customer."}]}}"#,
            "error[parameter_invalid]: 2 fields are wrong\n  \
             param daily_rate (--daily-rate): `daily_rate` must be 0 or more.\n  \
             param customer_id (--customer): There is no such customer.\nrequest id req_1\n",
        );
    }

    #[test]
    fn a_line_is_the_flag_with_its_number() {
        check(
            400,
            r#"{"error":{"type":"t","message":"`lines[1].amount` must be at most 6.94.","param":"lines[1].amount","errors":[
                {"param":"lines[1].amount","message":"`lines[1].amount` must be at most 6.94."},
                {"param":"lines[0]","message":"`lines[0]` is twice."}]}}"#,
            "error[t]: the amount of --line number 2 must be at most 6.94.\n  \
             param lines[1].amount (the amount of --line number 2)\n  \
             param lines[0] (--line number 1): --line number 1 is twice.\nrequest id req_1\n",
        );
    }

    #[test]
    fn what_only_an_action_takes_has_its_flag() {
        for (param, flag) in [("overlap_seconds", "overlap"), ("paid_at", "paid-at"), ("format", "format")] {
            check(
                400,
                &format!(r#"{{"error":{{"type":"t","message":"m","param":"{param}"}}}}"#),
                &format!("error[t]: m\n  param {param} (--{flag})\nrequest id req_1\n"),
            );
        }
    }

    #[test]
    fn a_message_is_not_said_twice() {
        check(
            400,
            r#"{"error":{"type":"t","message":"`name` is required.","param":"name","errors":[{"param":"name","message":"`name` is required."}]}}"#,
            "error[t]: `name` is required.\n  param name (--name)\nrequest id req_1\n",
        );
    }

    #[test]
    fn an_answer_without_an_error_object_is_quoted() {
        check(
            404,
            "<h1>nginx</h1>\n",
            "error[http_404]: the server responded with 404: <h1>nginx</h1>\nhint: no rental server answers like this: check --base-url and RENTAL_BASE_URL, or run `rental-cli doctor`\nrequest id req_1\n",
        );
        check(418, "", "error[http_418]: the server responded with 418 and an empty body\nrequest id req_1\n");
    }

    #[test]
    fn control_characters_of_the_server_do_not_reach_the_terminal() {
        check(
            418,
            r#"{"error":{"type":"t","message":"\u001b[2Jgone"}}"#,
            "error[t]: \\u{1b}[2Jgone\nrequest id req_1\n",
        );
    }

    #[test]
    fn the_request_id_of_the_body_wins() {
        let body = br#"{"error":{"type":"t","message":"m","request_id":"req_body"}}"#;
        let refusal = ErrorResponse::read(400, body, String::new()).with_headers(Some("req_header".into()), None);
        assert_eq!(refusal.request_id.as_deref(), Some("req_body"));
    }

    #[test]
    fn statuses_have_exit_codes_by_class() {
        let table = [
            (404, 3),
            (401, 4),
            (403, 5),
            (400, 6),
            (409, 6),
            (412, 6),
            (413, 6),
            (415, 6),
            (422, 6),
            (408, 7),
            (429, 8),
            (500, 9),
            (503, 9),
            (405, 1),
            (302, 1),
        ];
        for (status, code) in table {
            assert_eq!(ErrorResponse::read(status, b"", String::new()).exit_code(), code, "{status}");
        }
    }
}
