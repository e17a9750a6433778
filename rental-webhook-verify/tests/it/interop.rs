//! Other implementations on the same cases: the README's recipes must give the same verdict on every one, the Stripe
//! SDKs wherever they claim the same rule, and whatever an SDK signs must verify here.
//!
//! `RENTAL_PYTHON` and `RENTAL_NODE` name the interpreters. What is not installed is skipped, in one line on stderr;
//! `RENTAL_REQUIRE_ALL=1` turns that into a failure.

mod cases;

use std::env;
use std::fs;
use std::io::{Write as _, stderr};
use std::path::{Path, PathBuf};
use std::process::Command;

use rental_webhook_verify::verify;
use serde_json::{Value, json};

use cases::{Case, Stripe};

const README: &str = include_str!("../../README.md");

/// How the scripts say that the SDK is not installed.
const NOT_INSTALLED: i32 = 77;

#[test]
fn the_python_recipe_of_the_readme_gives_the_same_verdicts() {
    check_recipe("python-recipe", &PYTHON, &recipe("python", "py"));
}

#[test]
fn the_node_recipe_of_the_readme_gives_the_same_verdicts() {
    check_recipe("node-recipe", &NODE, &recipe("js", "mjs"));
}

#[test]
fn the_stripe_sdk_for_python_agrees() {
    check_stripe("python-stripe", &PYTHON);
}

#[test]
fn the_stripe_sdk_for_node_agrees() {
    check_stripe("node-stripe", &NODE);
}

#[test]
fn the_cases_hold_both_verdicts_of_each_kind() {
    for kind in [Stripe::Same, Stripe::Laxer, Stripe::Unlike] {
        let of_kind = cases::all().into_iter().filter(|case| case.stripe == kind);
        let (accepted, refused): (Vec<_>, Vec<_>) = of_kind.partition(ours);
        assert!(refused.len() > 20, "{kind:?}: {} refused", refused.len());
        assert_eq!(accepted.is_empty(), kind == Stripe::Laxer, "{kind:?}: {} accepted", accepted.len());
    }
}

struct Runner {
    variable: &'static str,
    program: &'static str,
    script: &'static str,
}

const PYTHON: Runner = Runner { variable: "RENTAL_PYTHON", program: "python3", script: "differential.py" };
const NODE: Runner = Runner { variable: "RENTAL_NODE", program: "node", script: "differential.mjs" };

fn ours(case: &Case) -> bool {
    verify(&case.secret, &case.header, &case.body, case.now).is_ok()
}

#[track_caller]
fn check_recipe(name: &str, runner: &Runner, recipe: &Path) {
    let cases = cases::all();
    let Some(answers) = run(name, runner, &recipe.display().to_string(), &cases) else { return };
    for (case, answer) in cases.iter().zip(answers) {
        assert_eq!(answer["accepted"], ours(case), "{name}, {}: {case:?}", case.rule);
    }
}

#[track_caller]
fn check_stripe(name: &str, runner: &Runner) {
    let cases = cases::all();
    let Some(answers) = run(name, runner, "stripe", &cases) else { return };
    for (case, answer) in cases.iter().zip(answers) {
        match case.stripe {
            Stripe::Same => assert_eq!(answer["accepted"], ours(case), "{name}, {}: {case:?}", case.rule),
            Stripe::Laxer => assert!(!ours(case), "{}: {case:?}", case.rule),
            Stripe::Unlike => continue,
        }
        let signed = answer["signed"].as_str().expect("the SDK signs as well");
        assert_eq!(verify(&case.secret, signed, &case.body, case.now), Ok(()), "{name} signed {signed}: {case:?}");
    }
}

/// One answer for each case, or `None` when the program or the SDK is not installed.
#[track_caller]
fn run(name: &str, runner: &Runner, which: &str, cases: &[Case]) -> Option<Vec<Value>> {
    let lines: String = cases.iter().enumerate().map(|(id, case)| format!("{}\n", line(id, case))).collect();
    let path = scratch(&format!("{name}.jsonl"));
    fs::write(&path, lines).expect("the scratch directory is writable");

    let program = env::var(runner.variable).unwrap_or_else(|_| runner.program.to_owned());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop").join(runner.script);
    let Ok(output) = Command::new(&program).arg(script).arg(which).arg(&path).output() else {
        return skip(name, &format!("cannot run {program}"));
    };
    if output.status.code() == Some(NOT_INSTALLED) {
        return skip(name, &format!("{program} has no package `stripe`"));
    }
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("JSON is UTF-8");
    let answers: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("one JSON a line")).collect();
    assert_eq!(answers.len(), cases.len(), "{name} answers every case");
    Some(answers)
}

fn line(id: usize, case: &Case) -> Value {
    json!({
        "id": id,
        "secret": hex::encode(&case.secret),
        "header": hex::encode(&case.header),
        "body": hex::encode(&case.body),
        "now": case.now,
    })
}

/// Written past the test runner's capture, which hides the output of tests that pass.
#[track_caller]
fn skip<T>(name: &str, reason: &str) -> Option<T> {
    assert!(env::var_os("RENTAL_REQUIRE_ALL").is_none_or(|value| value != "1"), "{name}: {reason}");
    writeln!(stderr(), "skipped {name}: {reason}").expect("stderr is open");
    None
}

fn scratch(file: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(file)
}

/// The README's only block in this language, as a file.
fn recipe(language: &str, extension: &str) -> PathBuf {
    let (_, rest) = README.split_once(&format!("```{language}\n")).expect("the README has a recipe");
    let (code, _) = rest.split_once("```").expect("the block ends");
    let path = scratch(&format!("recipe.{extension}"));
    fs::write(&path, code).expect("the scratch directory is writable");
    path
}
