//! Keys in files and profiles: `login`, `--to` and `--save-profile`.

use crate::{
    fake_server::{FakeServer, Ran, error, ok},
    terminal,
};
use rustix::process::Signal;
use std::{fs, io::Write as _, os::unix::fs::PermissionsExt as _, path::Path, process::Stdio};

const ME: &str =
    r#"{"object":"me","organization_id":"0190d0f2-7c3a-7cc0-8000-000000000000","organization_name":"Sunrise"}"#;
const KEY: &str = r#"{"object":"api_key","id":"1","organization_id":"0190d0f2-7c3a-7cc0-8000-000000000000","scope":"read","key":"rk_live_new"}"#;

fn with_stdin(server: &FakeServer, home: &Path, args: &[&str], stdin: &str) -> Ran {
    let mut command = server.command(args);
    command.env_remove("RENTAL_API_KEY").env("HOME", home);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

#[track_caller]
fn check_private(file: &Path, content: &str) {
    assert_eq!(fs::read_to_string(file).unwrap(), content);
    assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn login_checks_a_key_and_stores_it_for_its_owner() {
    let home = tempfile::tempdir().unwrap();
    let server = FakeServer::new(vec![ok(ME)]);
    let ran = with_stdin(&server, home.path(), &["login"], "rk_live_typed\n");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(server.asked()[0].line, "GET /v1/me");
    assert_eq!(server.asked()[0].header("authorization"), Some("Bearer rk_live_typed"));
    check_private(&home.path().join(".config/rental/keys/default.api-key"), "rk_live_typed\n");
    let mut next = server.command(&["me"]);
    next.env_remove("RENTAL_API_KEY").env_remove("RENTAL_BASE_URL").env("HOME", home.path());
    let ran = Ran::of(&mut next);
    assert_eq!(ran.code, Some(0), "the profile is the default and has the server: {}", ran.stderr);
    assert_eq!(server.asked()[1].header("authorization"), Some("Bearer rk_live_typed"));
}

#[test]
fn login_without_a_name_stores_in_the_profile_in_use() {
    let home = tempfile::tempdir().unwrap();
    let server = FakeServer::new(vec![ok(ME), ok(ME), ok(ME)]);
    let keys = home.path().join(".config/rental/keys");
    for (args, file, note) in [
        (&["login", "staging"][..], "staging.api-key", "profile staging is saved; it is the default"),
        // The first profile is the default.
        (&["login"], "staging.api-key", "profile staging is saved; it is the default"),
        (&["login", "--profile", "other"], "other.api-key", "profile other is saved; use it with --profile other"),
    ] {
        let _ = fs::remove_dir_all(&keys);
        let ran = with_stdin(&server, home.path(), args, "rk_live_typed\n");
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stderr.contains(note), "{}", ran.stderr);
        check_private(&keys.join(file), "rk_live_typed\n");
        assert_eq!(fs::read_dir(&keys).unwrap().count(), 1, "{args:?}");
    }
}

#[test]
fn a_key_that_does_not_work_is_not_stored() {
    let home = tempfile::tempdir().unwrap();
    let server = FakeServer::new(vec![error(401, "", "authentication_error", "api_key_invalid")]);
    let ran = with_stdin(&server, home.path(), &["login", "x"], "rk_live_wrong\n");
    assert_eq!(ran.code, Some(4), "{}", ran.stderr);
    assert!(
        !home.path().join(".config/rental/keys/x.api-key").exists()
            && !home.path().join(".config/rental/config.toml").exists()
    );
    let ran = with_stdin(&server, home.path(), &["login"], " \n");
    assert_eq!((ran.code, server.asked().len()), (Some(2), 1), "{}", ran.stderr);
}

#[test]
fn a_secret_that_is_too_long_is_refused_and_not_cut() {
    let home = tempfile::tempdir().unwrap();
    let server = FakeServer::new(vec![ok(ME)]);
    let ran = with_stdin(&server, home.path(), &["login"], &format!("rk_live_{}\n", "a".repeat(4096)));
    assert_eq!((ran.code, server.asked().len()), (Some(2), 0), "{}", ran.stderr);
    assert!(ran.stderr.contains("is longer than 4 KiB; nothing was stored"), "{}", ran.stderr);
    assert!(!home.path().join(".config/rental/keys/default.api-key").exists());
}

#[test]
fn a_secret_of_the_other_kind_is_told_how_it_is_stored() {
    let home = tempfile::tempdir().unwrap();
    for (args, next) in [
        (&["login"][..], "An admin token, or the token of an operator, needs `rental-cli login --operator`"),
        (&["login", "--operator"], "An API key needs `rental-cli login` without --operator"),
    ] {
        let server = FakeServer::new(vec![error(401, "", "authentication_error", "api_key_invalid")]);
        let ran = with_stdin(&server, home.path(), args, "rat_typed\n");
        assert_eq!(ran.code, Some(4), "{}", ran.stderr);
        assert!(ran.stderr.contains("hint: nothing was stored; ") && ran.stderr.contains(next), "{}", ran.stderr);
        assert!(!home.path().join(".config/rental/config.toml").exists());
    }
}

#[test]
fn a_token_is_stored_under_its_own_name() {
    let home = tempfile::tempdir().unwrap();
    let server = FakeServer::new(vec![ok(r#"{"object":"list","has_more":false,"next_cursor":null,"data":[]}"#)]);
    let ran = with_stdin(&server, home.path(), &["login", "boss", "--operator", "--json"], "rat_typed");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(server.asked()[0].header("authorization"), Some("Bearer rat_typed"));
    check_private(&home.path().join(".config/rental/keys/boss.token"), "rat_typed\n");
    let config = fs::read_to_string(home.path().join(".config/rental/config.toml")).unwrap();
    assert!(config.contains("admin_token_file") && !config.contains("rat_typed"), "{config}");
}

#[test]
fn a_typed_key_is_not_shown() {
    let home = tempfile::tempdir().unwrap();
    let server = FakeServer::new(vec![ok(ME)]);
    let mut command = server.command(&["login"]);
    command.env_remove("RENTAL_API_KEY").env("HOME", home.path());
    let (code, shown) = terminal::typing_after(&mut command, 80, ": ", "rk_live_typed\n");
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("API key for http://") && !shown.contains("rk_live_typed"), "{shown}");
    check_private(&home.path().join(".config/rental/keys/default.api-key"), "rk_live_typed\n");
}

#[test]
fn a_login_that_is_ended_at_its_prompt_leaves_a_terminal_that_shows_what_is_typed() {
    let home = tempfile::tempdir().unwrap();
    let server = FakeServer::new(vec![]);
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT] {
        let mut command = server.command(&["login"]);
        command.env_remove("RENTAL_API_KEY").env("HOME", home.path());
        let (died_of, echoes) = terminal::interrupted(&mut command, ": ", signal);
        assert_eq!((died_of, echoes), (Some(signal.as_raw()), [false, true]), "{signal:?}");
    }
    assert!(server.asked().is_empty());
}

#[test]
fn a_new_key_goes_to_a_file_instead_of_the_screen() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("website.key");
    let server = FakeServer::new(vec![ok(KEY)]);
    let path = file.to_str().unwrap();
    let create = [
        "api-keys",
        "create",
        "--organization",
        "0190d0f2-7c3a-7cc0-8000-000000000000",
        "--scope",
        "read",
        "--to",
        path,
    ];
    for args in [&create[..], &["api-keys", "rotate", "0190d0f2-7c3a-7cc0-8000-000000000001", "--to", path, "--json"]] {
        let ran = server.run(args);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(!ran.stdout.contains("rk_live_new") && !ran.stderr.contains("rk_live_new"), "{ran:?}");
        check_private(&file, "rk_live_new\n");
    }
    let asked = server.asked().len();
    assert_eq!(server.run(&create).code, Some(6), "the file exists");
    let nowhere = "/proc/nowhere/key";
    assert_eq!(
        server.run(&["api-keys", "rotate", "0190d0f2-7c3a-7cc0-8000-000000000001", "--to", nowhere]).code,
        Some(1)
    );
    assert_eq!(server.asked().len(), asked, "no key was made that nobody would have");
}

#[test]
fn a_new_organization_and_its_key_are_saved_in_a_profile() {
    let home = tempfile::tempdir().unwrap();
    let organization = r#"{"object":"organization","id":"0190d0f2-7c3a-7cc0-8000-000000000000","name":"Sunrise"}"#;
    let server = FakeServer::new(vec![ok(organization), ok(KEY), ok(ME)]);
    for args in [
        &["organizations", "create", "--name", "Sunrise", "--save-profile", "sunrise"][..],
        &["api-keys", "create", "--profile", "sunrise", "--scope", "read", "--save-profile", "sunrise"],
    ] {
        let ran = Ran::of(server.command(args).env("HOME", home.path()));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(!ran.stdout.contains("rk_live_new"), "{}", ran.stdout);
    }
    assert_eq!(server.asked()[1].body, r#"{"organization_id":"0190d0f2-7c3a-7cc0-8000-000000000000","scope":"read"}"#);
    let mut me = server.command(&["me"]);
    let ran = Ran::of(me.env_remove("RENTAL_API_KEY").env_remove("RENTAL_BASE_URL").env("HOME", home.path()));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(server.asked()[2].header("authorization"), Some("Bearer rk_live_new"));
}

/// Another user who can write to the directory of keys could read or replace what is stored there.
#[test]
fn login_stores_no_key_through_a_link_or_where_others_can_replace_it() {
    let home = tempfile::tempdir().unwrap();
    let server = FakeServer::new(vec![ok(ME)]);
    let keys = home.path().join(".config/rental/keys");
    fs::create_dir_all(&keys).unwrap();
    let set = |mode| fs::set_permissions(&keys, fs::Permissions::from_mode(mode)).unwrap();
    let (link, target) = (keys.join("default.api-key"), home.path().join("target"));
    for (mode, leads_to) in
        [(0o777, None), (0o770, None), (0o700, Some(&target)), (0o700, Some(&home.path().join("none")))]
    {
        set(mode);
        let _ = fs::remove_file(&link);
        fs::write(&target, "before").unwrap();
        if let Some(target) = leads_to {
            std::os::unix::fs::symlink(target, &link).unwrap();
        }
        let ran = with_stdin(&server, home.path(), &["login"], "rk_live_typed\n");
        assert_ne!(ran.code, Some(0), "{mode:o} {leads_to:?}");
        let next = leads_to.map_or_else(|| format!("chmod go-w {}", keys.display()), |_| "Remove the link".to_owned());
        assert!(ran.stderr.contains(&next), "{}", ran.stderr);
        assert_eq!(fs::read_to_string(&target).unwrap(), "before");
        assert!(
            !home.path().join("none").exists()
                && fs::read_to_string(&link).is_ok_and(|text| text == "before") == (leads_to == Some(&target))
        );
    }
    assert!(server.asked().is_empty(), "a key that cannot be stored is not sent");
    fs::remove_file(&link).unwrap();
    // In a directory such as /tmp, others cannot replace the files of a user.
    for mode in [0o700, 0o755, 0o1777] {
        set(mode);
        // Each server is another one, and a profile keeps its server.
        let _ = fs::remove_file(home.path().join(".config/rental/config.toml"));
        let server = FakeServer::new(vec![ok(ME)]);
        let ran = with_stdin(&server, home.path(), &["login"], "rk_live_typed\n");
        assert_eq!(ran.code, Some(0), "{mode:o}: {}", ran.stderr);
        check_private(&link, "rk_live_typed\n");
    }
}
