//! `api`: sends any request to the API with the secret of its half and prints the response as it came.

use crate::{
    client::{access::Access, request::Request},
    commands::{
        candidates, collection, confirm,
        group::{Group, with_examples},
        session::Session,
    },
    failure::Failure,
    output,
};
use clap::{Arg, ArgMatches, Command};
use reqwest::Method;
use std::{
    fs::File,
    io::{self, Read as _},
};

pub(crate) const COMMAND: Group = Group { name: "api", command, run };

/// Maximum bytes of a body, which is in memory. Imports have commands of their own.
const MAX_BODY_BYTES: u64 = 16 * 1024 * 1024;

fn command() -> Command {
    let positional = |name: &'static str, value: &'static str| Arg::new(name).value_name(value).required(true);
    let method = positional("method", "METHOD").value_parser(method).help("GET, POST, PUT, PATCH or DELETE");
    let method = candidates::words(method, vec!["GET", "POST", "PUT", "PATCH", "DELETE"]);
    let path = positional("path", "PATH")
        .help("Path with its query: /v1/... takes the API key, /admin/v1/... the admin token");
    let path = candidates::paths(path);
    let data = Arg::new("data")
        .long("data")
        .value_name("JSON|@FILE")
        .help("Body of the request; @FILE reads a file, @- reads stdin");
    let media = Arg::new("content_type")
        .long("content-type")
        .value_name("TYPE")
        .value_parser(["application/json", "text/csv", "application/x-ndjson", "image/png"])
        .default_value("application/json")
        .help("Media type of the body");
    let command = Command::new(COMMAND.name)
        .about("Send a request to any path of the API and print the response, which is JSON; --jq filters it")
        .args([method, path, data, media])
        .arg(columns());
    with_examples(
        collection::writing(command).arg(
            confirm::yes_on_terminal().help("Do not ask before a DELETE on a terminal; elsewhere nothing is asked"),
        ),
        &[
            "rental-cli api GET '/v1/rentals?status=ACTIVE&limit=5' --jq '.data[].id'",
            r#"rental-cli api PATCH /v1/vehicles/ID --data '{"daily_rate":95}'"#,
            "rental-cli api GET /admin/v1/organizations",
            "rental-cli api DELETE /admin/v1/webhook_endpoints/ID",
        ],
    )
}

/// Refuses `--columns`, which the commands have that print tables.
fn columns() -> Arg {
    let refuse = |_: &str| {
        Err::<String, _>("`api` prints JSON: choose members with --jq, such as --jq '.data[] | [.id, .name]'")
    };
    Arg::new("columns").long("columns").value_name("NAMES").hide(true).value_parser(refuse)
}

fn method(text: &str) -> Result<Method, String> {
    let known = [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
    let method = known.into_iter().find(|method| method.as_str().eq_ignore_ascii_case(text));
    method.ok_or_else(|| "must be GET, POST, PUT, PATCH or DELETE, as in `rental-cli api GET /v1/vehicles`".into())
}

fn run(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let method = matches.get_one::<Method>("method").cloned().unwrap_or(Method::GET);
    let path = collection::text(matches, "path");
    let access = if path.starts_with("/v1/") {
        Access::Organization
    } else if path.starts_with("/admin/v1/") {
        Access::Operator
    } else {
        let meant = ["v1/", "admin/v1/"].iter().any(|half| path.starts_with(half));
        let meant = if meant { format!("; write /{path}") } else { String::new() };
        return Err(Failure::Usage(format!(
            "{path} is not a path of the API: it starts with /v1/ or /admin/v1/{meant}"
        )));
    };
    // The URL parser resolves these, so that the request would leave the half whose secret it carries.
    let location = path.split(['?', '#']).next().unwrap_or(path).to_ascii_lowercase().replace("%2e", ".");
    if path.contains(['#', '\\']) || location.split('/').any(|segment| matches!(segment, "." | "..")) {
        return Err(Failure::Usage("the path must not have `#`, `\\`, `.` or `..` in it".into()));
    }
    let body = matches.get_one::<String>("data").map(|data| body(data)).transpose()?;
    if body.is_some() && method == Method::GET {
        return Err(Failure::Usage("a GET has no body: omit --data, or use POST, PUT or PATCH".into()));
    }
    if method == Method::DELETE {
        confirm::confirm_on_terminal(matches, &format!("Send DELETE {path}, which nothing takes back"))?;
    }
    let media = collection::text(matches, "content_type");
    let request = Request::raw(method, access, path, body, media);
    let response = session.api.send(&request.with_idempotency_key(collection::chosen_key(matches)))?;
    match std::str::from_utf8(&response) {
        Ok("") => Ok(()),
        Ok(text) if session.out.json || text.starts_with(['{', '[']) => session.out.json(text),
        _ => output::print_bytes(&response),
    }
}

fn body(data: &str) -> Result<Vec<u8>, Failure> {
    let Some(file) = data.strip_prefix('@') else { return Ok(data.as_bytes().to_vec()) };
    let failed = |error| Failure::Io { doing: format!("read {}", if file == "-" { "stdin" } else { file }), error };
    let mut body = Vec::new();
    let read = if file == "-" {
        io::stdin().lock().take(MAX_BODY_BYTES + 1).read_to_end(&mut body)
    } else {
        File::open(file).and_then(|file| file.take(MAX_BODY_BYTES + 1).read_to_end(&mut body))
    };
    read.map_err(failed)?;
    if body.len() as u64 > MAX_BODY_BYTES {
        return Err(Failure::Usage(format!(
            "the body is longer than {} MiB; `rental-cli import` and the imports of tolls and violations send long files",
            MAX_BODY_BYTES / (1024 * 1024)
        )));
    }
    Ok(body)
}
