//! Tells the program the commit that it is built from: `RENTAL_COMMIT`, or for a release what git says.
//!
//! Other builds do not ask git: each commit would build the server again.

use std::{env, process::Command};

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn main() {
    println!("cargo::rerun-if-env-changed=RENTAL_COMMIT");
    println!("cargo::rerun-if-changed=build.rs");
    let mut commit = env::var("RENTAL_COMMIT").ok().filter(|commit| !commit.is_empty());
    if commit.is_none() && env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        // Has a new line after each commit, and each change of the branch.
        if let Some(log) = git(&["rev-parse", "--path-format=absolute", "--git-path", "logs/HEAD"]) {
            println!("cargo::rerun-if-changed={log}");
        }
        commit = git(&["rev-parse", "--short=12", "HEAD"]);
    }
    println!("cargo::rustc-env=RENTAL_COMMIT={}", commit.unwrap_or_else(|| "unknown".to_owned()));
}
