//! Build script of `rental-server` and `rental-cli`: gives them `RENTAL_COMMIT`, the commit that `--version` prints.
//!
//! The variable of this name wins (releases, builds from an archive), then the repository, then `unknown`. Only the two
//! programs have this script, so a new commit does not rebuild the libraries.

use std::{env, path::Path, process::Command};

/// Name of the variable, at build time and for the programs.
const VARIABLE: &str = "RENTAL_COMMIT";

fn main() {
    println!("cargo::rerun-if-env-changed={VARIABLE}");
    println!("cargo::rerun-if-changed=../deploy/release/commit.rs");
    let given = env::var(VARIABLE).ok().filter(|given| !given.is_empty());
    if given.as_ref().is_some_and(|given| given.len() > 64 || !given.bytes().all(|byte| byte.is_ascii_alphanumeric())) {
        println!(
            "cargo::error={VARIABLE} must be 1 to 64 letters and digits, such as the output of `git rev-parse HEAD`"
        );
        return;
    }
    let commit = given.or_else(checked_out).unwrap_or_else(|| "unknown".to_owned());
    println!("cargo::rustc-env={VARIABLE}={commit}");
}

/// The commit of the repository that this package is a part of: not of one that an unpacked archive happens to be in.
fn checked_out() -> Option<String> {
    git(&["ls-files", "--error-unmatch", "Cargo.toml"])?;
    // Both change when another commit is checked out or made. Cargo rebuilds each time for a path that does not exist.
    for name in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--git-path", name])?;
        if Path::new(&path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    git(&["rev-parse", "--short=12", "HEAD"])
}

/// What git prints in the folder of the package.
fn git(arguments: &[&str]) -> Option<String> {
    let ended = Command::new("git").args(arguments).output().ok()?;
    let printed = String::from_utf8(ended.stdout).ok()?.trim().to_owned();
    (ended.status.success() && !printed.is_empty()).then_some(printed)
}
