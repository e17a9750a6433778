//! Arguments that several commands of `store` take.

use clap::{Arg, ArgAction, ArgMatches};
use std::path::{Path, PathBuf};

/// A file that is named in any way that the system allows.
pub(super) fn path(id: &'static str, name: &'static str, help: &'static str) -> Arg {
    Arg::new(id).value_name(name).required(true).value_parser(clap::value_parser!(PathBuf)).help(help)
}

/// `--force`.
pub(super) fn force(help: &'static str) -> Arg {
    Arg::new("force").long("force").action(ArgAction::SetTrue).help(help)
}

/// The path of such an argument.
pub(super) fn of<'m>(matches: &'m ArgMatches, id: &str) -> &'m Path {
    matches.get_one::<PathBuf>(id).map_or_else(|| Path::new(""), PathBuf::as_path)
}
