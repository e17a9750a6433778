//! `/docs` shows how to upload a file, and the commands work.

use super::{
    openapi,
    shell::{Kind, Program, runs},
};
use crate::support::Connection;
use serde_json::Value;
use std::{fs, path::Path, process::Command};

/// The text of an HTML element as a browser shows it.
fn unescape(html: &str) -> String {
    html.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}

/// The uploads that `/docs` shows, as (command, name of the file, file).
fn uploads(page: &str) -> Vec<(String, String, String)> {
    let mut found = Vec::new();
    for part in page.split("<pre>").skip(1) {
        let command = unescape(part.split("</pre>").next().expect("an end"));
        let Some((_, name)) = command.split_once("--data-binary @") else { continue };
        if name.trim().ends_with(".png") {
            continue;
        }
        let file = part.split_once("<pre class=\"file\">").expect("the file is shown").1;
        let file = unescape(file.split("</pre>").next().expect("an end"));
        found.push((command.clone(), name.trim().to_owned(), file));
    }
    found
}

#[test]
fn every_upload_of_the_reference_page_works_when_pasted() {
    let demo = Program::start(Kind::Demo);
    let page = Connection::open(demo.address()).send("GET", "/docs", &[], b"").text();
    let uploads = uploads(&page);
    // Each media type of each operation whose body is a file is shown.
    let document = openapi();
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
