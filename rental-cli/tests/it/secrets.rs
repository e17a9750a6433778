//! Where secrets come from, and that they appear nowhere.

use crate::fake_server::{FakeServer, Ran, Reply, cli, error, ok};
use std::fs;

#[test]
fn organizations_own_resources_are_opened_with_the_api_key() {
    let server = FakeServer::new(vec![ok(r#"{"id":"1"}"#)]);
    assert_eq!(server.run(&["vehicles", "get", "0190d0f2-7c3a-7cc0-8000-000000000001"]).code, Some(0));
    assert_eq!(server.asked()[0].header("authorization"), Some("Bearer rk_live_test"));
}

#[test]
fn operators_commands_are_opened_with_the_admin_token() {
    let server = FakeServer::new(vec![ok(r#"{"id":"1"}"#)]);
    server.run(&["organizations", "get", "0190d0f2-7c3a-7cc0-8000-000000000000"]);
    server.run(&["invoices", "pay", "0190d0f2-7c3a-7cc0-8000-000000000001"]);
    for asked in server.asked() {
        assert_eq!(asked.header("authorization"), Some("Bearer admin-token-of-the-test"), "{}", asked.line);
    }
}

#[test]
fn a_secret_can_lie_in_a_file() {
    let server = FakeServer::new(vec![ok(r#"{"id":"1"}"#)]);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("token");
    // The second one is as an editor on Windows writes it.
    for text in ["token-of-the-file\n", "\u{feff}token-of-the-file\r\n"] {
        fs::write(&file, text).unwrap();
        let mut command = server.command(&["organizations", "get", "0190d0f2-7c3a-7cc0-8000-000000000000"]);
        let ran = Ran::of(command.env_remove("RENTAL_ADMIN_TOKEN").env("RENTAL_ADMIN_TOKEN_FILE", &file));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    }
    assert!(server.asked().iter().all(|asked| asked.header("authorization") == Some("Bearer token-of-the-file")));
}

#[test]
fn without_a_secret_it_exits_with_4_and_says_where_to_put_one() {
    for (args, variable) in
        [(["vehicles", "list"], "RENTAL_API_KEY"), (["organizations", "list"], "RENTAL_ADMIN_TOKEN")]
    {
        let hint = if variable == "RENTAL_API_KEY" {
            "store a key of the organization with `rental-cli login`, or set RENTAL_API_KEY to it"
        } else {
            "store your token with `rental-cli login --operator`, or set RENTAL_ADMIN_TOKEN to it"
        };
        for value in [None, Some("")] {
            let mut command = cli(&args);
            command.envs(value.map(|value| (variable, value)));
            let ran = Ran::of(&mut command);
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(4), ""));
            assert!(
                ran.stderr.starts_with(&format!("error[credential_missing]: {variable} is not set\nhint: {hint}")),
                "{}",
                ran.stderr
            );
        }
    }
}

#[test]
fn a_secret_file_that_cannot_be_read_exits_with_4() {
    let ran = Ran::of(cli(&["organizations", "list"]).env("RENTAL_ADMIN_TOKEN_FILE", "/no/such/file"));
    assert_eq!(ran.code, Some(4));
    assert!(ran.stderr.contains("/no/such/file"), "{}", ran.stderr);
}

#[test]
fn a_missing_secret_of_listen_says_what_to_write_into_the_file() {
    let ran = Ran::of(cli(&["listen", "--print-secret"]).env("RENTAL_WEBHOOK_SECRET_FILE", "/no/such/file"));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    assert!(ran.stderr.starts_with("error[io]: cannot read /no/such/file (from RENTAL_WEBHOOK_SECRET_FILE)"));
    assert!(ran.stderr.contains("hint: write the endpoint's secret (whsec_...) into this file"), "{}", ran.stderr);
}

#[test]
fn a_file_that_holds_no_webhook_secret_is_refused_without_its_content() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("secret");
    for content in ["7f0c9e2b-an-admin-token", "whsec_", "whsec_a b", "whsec_a\nwhsec_b"] {
        fs::write(&file, content).unwrap();
        let ran = Ran::of(cli(&["listen", "--print-secret"]).env("RENTAL_WEBHOOK_SECRET_FILE", &file));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{content}");
        assert!(ran.stderr.contains("must be one line that begins with whsec_"), "{ran:?}");
        assert!(!ran.stderr.contains("admin-token") && !ran.stderr.contains("whsec_a"), "{ran:?}");
    }
}

#[test]
fn a_missing_file_says_what_to_check() {
    for args in [
        &["tolls", "import", "--organization", "0190d0f2-7c3a-7cc0-8000-000000000000", "/no/such/file"][..],
        &[
            "tolls",
            "import",
            "--organization",
            "0190d0f2-7c3a-7cc0-8000-000000000000",
            "--mapping",
            "/no/such/file",
            "x",
        ],
        &["import", "--organization", "0190d0f2-7c3a-7cc0-8000-000000000000", "/no/such/file"],
        &["export", "--organization", "0190d0f2-7c3a-7cc0-8000-000000000000", "--to", "/no/such/file"],
        &["store", "restore", "/no/such/file", "--to", "redb:x"],
        &["store", "check", "redb:/no/such/file"],
        &["store", "backup", "--to", "/no/such/file"],
    ] {
        let server = FakeServer::new(vec![ok("{}")]);
        let ran = server.run(args);
        assert_eq!(ran.code, Some(1), "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("/no/such/file") && ran.stderr.contains("\nhint: "), "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn a_garbled_secret_is_not_repeated() {
    let ran = Ran::of(cli(&["vehicles", "list"]).env("RENTAL_API_KEY", "rk_live_a\nb"));
    assert_eq!(ran.code, Some(4));
    assert!(!ran.stderr.contains("rk_live"), "{}", ran.stderr);
}

#[test]
fn no_output_shows_the_secret_that_was_sent() {
    let replies = || {
        [ok(r#"{"id":"1"}"#), ok("<html>"), error(401, "", "authentication_error", "api_key_invalid"), Reply::HangUp]
    };
    for reply in replies() {
        let ran = FakeServer::new(vec![reply]).run(&["vehicles", "get", "0190d0f2-7c3a-7cc0-8000-000000000001"]);
        assert!(!(ran.stdout + &ran.stderr).contains("rk_live_test"));
    }
    let mut help = cli(&["vehicles", "list", "--help"]);
    assert!(!Ran::of(help.env("RENTAL_API_KEY", "rk_live_test")).stdout.contains("rk_live_test"));
}

#[test]
fn a_new_key_is_on_stdout_alone_and_the_note_on_stderr() {
    let server = FakeServer::new(vec![ok(r#"{"id":"1","object":"api_key","key":"rk_live_new"}"#)]);
    for args in [
        &["api-keys", "create", "--organization", "0190d0f2-7c3a-7cc0-8000-000000000000", "--scope", "read"][..],
        &["api-keys", "rotate", "0190d0f2-7c3a-7cc0-8000-000000000001"][..],
    ] {
        let ran = server.run(args);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "id\t1\nkey\trk_live_new\n"));
        assert!(ran.stderr.contains("shown only once") && !ran.stderr.contains("rk_live_new"), "{}", ran.stderr);
        let mut quiet = server.command(args);
        assert_eq!(Ran::of(quiet.arg("--quiet")).stderr, "");
    }
}

#[test]
fn a_replay_that_shows_no_key_does_not_say_to_keep_it() {
    let server = FakeServer::new(vec![ok(r#"{"id":"1","object":"api_key"}"#)]);
    for args in [
        &["api-keys", "create", "--organization", "0190d0f2-7c3a-7cc0-8000-000000000000", "--scope", "read"][..],
        &["api-keys", "rotate", "0190d0f2-7c3a-7cc0-8000-000000000001"][..],
    ] {
        let ran = server.run(args);
        assert_eq!(ran.code, Some(0));
        assert!(ran.stderr.contains("its key is not shown again") && !ran.stderr.contains("store it now"), "{ran:?}");
    }
}
