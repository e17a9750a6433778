//! Arguments shared by commands of `store`.

use clap::{Arg, ArgAction, ArgMatches};
use std::path::{Path, PathBuf};

/// Builds a required path. Paths need not be UTF-8.
pub(super) fn path(id: &'static str, name: &'static str, help: &'static str) -> Arg {
    Arg::new(id).value_name(name).required(true).value_parser(clap::value_parser!(PathBuf)).help(help)
}

/// Builds `--force`.
pub(super) fn force(help: &'static str) -> Arg {
    Arg::new("force").long("force").action(ArgAction::SetTrue).help(help)
}

/// Returns the value of a [`path`].
pub(super) fn path_of<'m>(matches: &'m ArgMatches, id: &str) -> &'m Path {
    matches.get_one::<PathBuf>(id).map_or_else(|| Path::new(""), PathBuf::as_path)
}
