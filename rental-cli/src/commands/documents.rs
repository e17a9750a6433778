//! `pdf` and `print` of invoices and credit notes.

use crate::{
    client::{access::Access, request::Request},
    commands::{
        by_number,
        collection::{self, text},
        session::Session,
    },
    failure::Failure,
    output::{
        print_bytes,
        whole_file::{Partial, already_exists, cannot_write},
    },
};
use clap::{Arg, ArgAction, ArgMatches, Command};
use rental_core::{
    resources::organization::{InvoiceLanguage, PaperSize},
    schema::ResourceSpec,
};
use std::{
    io::{Read as _, Write as _},
    path::PathBuf,
};

/// Builds `print ID` and `pdf ID`.
pub(super) fn command(spec: &'static ResourceSpec, verb: &'static str, about: &'static str) -> Command {
    let word = |name: &'static str, words, help| {
        let parser = clap::builder::PossibleValuesParser::new(words);
        Arg::new(name).long(name).value_name("WORD").value_parser(parser).help(help)
    };
    let command = Command::new(verb).about(about).arg(collection::id(spec));
    by_number::operator_id(spec, command)
        .arg(
            Arg::new("to")
                .long("to")
                .alias("out")
                .value_name("FILE")
                .value_parser(clap::value_parser!(PathBuf))
                .help("File to write to [default: stdout]"),
        )
        .arg(Arg::new("force").long("force").action(ArgAction::SetTrue).help("Replace an existing file"))
        .arg(word(
            "language",
            InvoiceLanguage::WORDS.to_vec(),
            "Language [default: the customer's or the organization's]",
        ))
        .arg(word("paper", PaperSize::WORDS.to_vec(), "Size of the pages [default: the organization's]"))
}

/// Runs `print` and `pdf`.
pub(super) fn save(
    spec: &'static ResourceSpec,
    verb: &str,
    matches: &ArgMatches,
    session: &Session,
) -> Result<(), Failure> {
    let to = matches.get_one::<PathBuf>("to");
    if session.out.json && to.is_none() {
        return Err(Failure::Usage("the document is not JSON; with --json, use --to FILE".into()));
    }
    if verb == "pdf" && to.is_none() && session.out.is_terminal() {
        return Err(Failure::Usage("a PDF file is not text; use --to FILE".into()));
    }
    let replace = matches.get_flag("force");
    if let Some(to) = to.filter(|to| to.exists() && !replace) {
        return Err(already_exists(to));
    }
    let id = &by_number::resolve(spec, text(matches, "id"), (Access::Operator, matches), session)?;
    let preferences = ["language", "paper"].into_iter();
    let query = preferences.filter_map(|name| Some((name.to_owned(), matches.get_one::<String>(name)?.clone())));
    let request = Request::get(Access::Operator, &[spec.plural, id, verb]).with_query(query.collect());
    let document = received(&request, session)?;
    let Some(to) = to else { return print_bytes(&document) };
    let partial = Partial::create_for(to)?;
    partial.file().write_all(&document).map_err(|error| cannot_write(&partial.at, error))?;
    partial.publish(to, replace)?;
    let object = if verb == "print" { "page" } else { verb };
    let object = serde_json::json!({"object": object, "id": id, "file": to, "bytes": document.len()});
    session.show(&object.to_string())
}

/// The document. Tells on stderr which characters of it are boxes.
fn received(request: &Request, session: &Session) -> Result<Vec<u8>, Failure> {
    let mut response = session.api.stream(request)?;
    let not_shown = response.headers().get("rental-characters-not-shown").and_then(|codes| codes.to_str().ok());
    if let Some(codes) = not_shown {
        let shown = codes.split(' ').filter_map(|code| {
            let character = char::from_u32(u32::from_str_radix(code.strip_prefix("U+")?, 16).ok()?)?;
            Some(format!("{character} ({code})"))
        });
        let shown = shown.collect::<Vec<_>>().join(", ");
        session.out.warn(&format!(
            "Note: the PDF has boxes in the place of characters that no font of the server has: {shown}. Write the name in other \
             letters, or use `print`: browsers have more fonts."
        ));
    }
    let mut document = Vec::new();
    response.read_to_end(&mut document).map_err(|error| Failure::Unreachable {
        problem: format!("the document is incomplete ({error}); nothing was kept"),
        hint: "try again; if it fails again, see the server's log",
    })?;
    Ok(document)
}
