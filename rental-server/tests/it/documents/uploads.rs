//! `/docs` shows how to upload a file, and the commands work.

use super::{
    pages::{Pages, code},
    shell::{Kind, Program, runs},
    whole,
};
use serde_json::Value;
use std::{fs, path::Path, process::Command};

/// The uploads that the pages show, as (command, name of the file, file).
fn uploads(pages: &Pages) -> Vec<(String, String, String)> {
    let mut found = Vec::new();
    for (page, example) in pages.examples("curl") {
        for command in example.split("\n\n").filter(|command| command.contains("--data-binary @")) {
            let (_, name) = command.split_once("--data-binary @").expect("a file");
            if name.ends_with(".png") {
                continue;
            }
            let shown = format!("data-file=\"{name}\"");
            let operation =
                pages.0[page].split("<article ").find(|part| part.contains(&shown)).expect("the file is shown");
            let file = code(operation.split_once(&shown).expect("it is there").1);
            found.push((command.to_owned(), name.to_owned(), file));
        }
    }
    found
}

#[test]
fn every_upload_of_the_reference_page_works_when_pasted() {
    let demo = Program::start(Kind::Demo);
    let uploads = uploads(&Pages::of(demo.address()));
    // Each media type of each operation whose body is a file is shown.
    let document = whole();
    let paths = document["paths"].as_object().expect("paths").values();
    let bodies = paths.flat_map(|item| item.as_object().expect("operations").values());
    let content = bodies.filter_map(|operation| operation["requestBody"]["content"].as_object());
    // A file of text is shown; an image has no text.
    let shown = |media: &String| media != "application/json" && !media.starts_with("image/");
    let files = content.filter(|content| content.keys().any(shown));
    let media: Vec<&String> = files.flat_map(|content| content.keys()).collect();
    assert_eq!(uploads.len(), media.len(), "{media:?}");
    assert_eq!(media.len(), 5, "{media:?}");
    for (command, ..) in &uploads {
        assert!(media.iter().any(|media| command.contains(&format!("'Content-Type: {media}'"))), "{command}");
    }
    if !runs(Path::new("bash")) || !runs(Path::new("curl")) {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    for (command, name, file) in uploads {
        fs::write(directory.path().join(&name), &file).expect("a file");
        let script = format!("curl() {{ command curl -sS -w '\\n%{{http_code}}' \"$@\"; }}\n{command}");
        let mut shell = Command::new("bash");
        shell.args(["-euo", "pipefail", "-c", &script]).current_dir(directory.path()).envs(&demo.variables);
        let ended = shell.output().expect("bash runs");
        let printed = String::from_utf8(ended.stdout).expect("text");
        let (body, status) = printed.rsplit_once('\n').expect("a status");
        assert_eq!(status, "200", "{command}\n{body}");
        let outcome: Value = serde_json::from_str(body).expect("JSON");
        assert!(outcome["received"].as_u64() > Some(0), "{command}\n{body}");
        // The customer of the export's example is in the demo already, with other content.
        assert_eq!(outcome["invalid"], u64::from(outcome["format"] == "export"), "{command}\n{body}");
    }
}
