//! `config`: profiles, and which of flag, environment, profile and default wins.

use crate::{
    fake_server::{FakeServer, Ran, cli, ok},
    terminal,
};
use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command};
use tempfile::TempDir;

const ORGANIZATION: &str = "0190d0f2-7c3a-7cc0-8000-000000000000";

/// A command line in an environment that has a home only.
fn at(home: &TempDir, args: &[&str]) -> Command {
    let mut command = cli(args);
    command.env("HOME", home.path()).current_dir(home.path());
    command
}

fn run(home: &TempDir, words: &str) -> Ran {
    Ran::of(&mut at(home, &words.split('|').collect::<Vec<_>>()))
}

fn file(home: &TempDir) -> std::path::PathBuf {
    home.path().join(".config/rental/config.toml")
}

/// A home with a profile `a` for this server.
fn with_profile(server: &FakeServer) -> TempDir {
    let home = tempfile::tempdir().unwrap();
    for name in ["token", "key"] {
        fs::write(home.path().join(name), format!("{name}-of-the-profile\n")).unwrap();
        fs::set_permissions(home.path().join(name), fs::Permissions::from_mode(0o600)).unwrap();
    }
    let words = format!(
        "config|set|a|--base-url|{}|--organization|{ORGANIZATION}|--admin-token-file|token|--api-key-file|key",
        server.base_url
    );
    let ran = run(&home, &words);
    assert_eq!(
        (ran.code, ran.stderr.as_str()),
        (Some(0), "profile a is saved; next: rental-cli config use a, or --profile a\n")
    );
    home
}

#[test]
fn a_profile_gives_server_organization_and_secrets() {
    let server = FakeServer::new(vec![ok(r#"{"object":"list","has_more":false,"next_cursor":null,"data":[]}"#)]);
    let home = with_profile(&server);
    for chosen in ["flag", "variable", "use"] {
        let events = match chosen {
            "flag" => Ran::of(&mut at(&home, &["events", "list", "--profile", "a"])),
            "variable" => Ran::of(at(&home, &["events", "list"]).env("RENTAL_PROFILE", "a")),
            _ => {
                assert_eq!(run(&home, "config|use|a").code, Some(0));
                run(&home, "events|list")
            }
        };
        assert_eq!(events.code, Some(0), "{chosen}: {}", events.stderr);
        let asked = server.asked().pop().unwrap();
        assert_eq!(asked.line, format!("GET /admin/v1/organizations/{ORGANIZATION}/events"), "{chosen}");
        assert_eq!(asked.header("authorization"), Some("Bearer token-of-the-profile"));
    }
    run(&home, "vehicles|list");
    assert_eq!(server.asked().pop().unwrap().header("authorization"), Some("Bearer key-of-the-profile"));
    run(&home, "api-keys|create|--scope|read");
    let body = server.asked().pop().unwrap().body;
    assert_eq!(body, format!(r#"{{"organization_id":"{ORGANIZATION}","scope":"read"}}"#));
}

#[test]
fn the_flag_wins_over_the_environment_and_that_over_the_profile() {
    const OF_THE_FLAG: &str = "0190d0f2-0000-7000-8000-00000000000f";
    const OF_THE_ENVIRONMENT: &str = "0190d0f2-0000-7000-8000-00000000000e";
    let server = FakeServer::new(vec![ok(r#"{"object":"list","has_more":false,"next_cursor":null,"data":[]}"#)]);
    let home = with_profile(&server);
    let mut command = at(&home, &["events", "list", "--profile", "a"]);
    command.env("RENTAL_ORGANIZATION", OF_THE_ENVIRONMENT).env("RENTAL_ADMIN_TOKEN", "token-of-the-environment");
    let ran = Ran::of(&mut command);
    let asked = server.asked().pop().unwrap();
    assert_eq!(asked.line, format!("GET /admin/v1/organizations/{OF_THE_ENVIRONMENT}/events"));
    assert_eq!(asked.header("authorization"), Some("Bearer token-of-the-environment"));
    assert_eq!(ran.stderr, "", "a note for a person is no line in the log of a script");
    Ran::of(command.args(["--organization", OF_THE_FLAG]));
    assert_eq!(server.asked().pop().unwrap().line, format!("GET /admin/v1/organizations/{OF_THE_FLAG}/events"));
    let other = FakeServer::new(vec![ok("{}")]);
    let mut command = at(&home, &["events", "get", "1", "--profile", "a", "--base-url", &other.base_url]);
    Ran::of(command.env("RENTAL_ADMIN_TOKEN", "token-of-the-environment"));
    assert_eq!(other.asked()[0].header("authorization"), Some("Bearer token-of-the-environment"));
}

/// The variables that `rental-server --demo` prints, in a terminal in which a profile is the default.
#[test]
fn variables_that_override_the_default_profile_are_named_to_a_person() {
    let (server, demo) = (FakeServer::new(vec![ok("{}")]), FakeServer::new(vec![ok(r#"{"id":"1"}"#)]));
    let home = with_profile(&server);
    let with_demo = |args: &[&str]| {
        let mut command = at(&home, args);
        command.env("RENTAL_BASE_URL", &demo.base_url).env("RENTAL_ADMIN_TOKEN", "demo");
        Ran::of(command.env("RENTAL_API_KEY", "demo").env("RENTAL_ORGANIZATION", ORGANIZATION))
    };
    let names = "RENTAL_BASE_URL, RENTAL_API_KEY, RENTAL_ADMIN_TOKEN override profile a; to use the profile, run: unset RENTAL_BASE_URL RENTAL_API_KEY RENTAL_ADMIN_TOKEN";
    for args in [&["config", "use", "a"][..], &["config", "set", "a", "--base-url", &server.base_url]] {
        let ran = with_demo(args);
        assert!(ran.stderr.ends_with(&format!("note: {names}\n")), "{args:?}: {}", ran.stderr);
    }
    for args in [&["organizations", "get", ORGANIZATION][..], &["events", "get", "1", "--profile", "a"]] {
        assert_eq!(with_demo(args).stderr, "", "{args:?}");
        let mut command = at(&home, args);
        command.env("RENTAL_BASE_URL", &demo.base_url).env("RENTAL_API_KEY", "demo").env("RENTAL_ADMIN_TOKEN", "demo");
        let (_, shown) = terminal::run(command.env("NO_COLOR", "1"), 140);
        let note = "note: RENTAL_BASE_URL, RENTAL_API_KEY, RENTAL_ADMIN_TOKEN override profile a\n";
        assert_eq!(shown.matches("note: ").count(), 1, "{shown}");
        assert!(shown.contains(note), "{shown}");
    }
    let doctor = with_demo(&["doctor"]).stdout;
    let line = doctor.lines().find(|line| line.contains("configuration")).unwrap();
    assert!(line.starts_with("warning\t") && line.ends_with(names), "{doctor}");
    assert_eq!(run(&home, "config|use|a").stderr, "profile a is now the default\n");
    // A key for a profile without one overrides nothing.
    run(&home, "config|set|a|--api-key-file|");
    let mut command = at(&home, &["vehicles", "get", ORGANIZATION]);
    assert_eq!(Ran::of(command.env("RENTAL_API_KEY", "k")).stderr, "");
}

#[test]
fn a_saved_profile_keeps_its_server() {
    let (server, demo) = (FakeServer::new(vec![ok("{}")]), FakeServer::new(vec![ok("{}")]));
    let home = with_profile(&server);
    let before = fs::read_to_string(file(&home)).unwrap();
    for (args, from) in [
        (&["organizations", "create", "--name", "X", "--save-profile", "a"][..], "RENTAL_BASE_URL"),
        (&["api-keys", "create", "--scope", "read", "--save-profile", "a"], "RENTAL_BASE_URL"),
        (&["api-keys", "rotate", "Website", "--save-profile", "a", "--base-url", &demo.base_url], "--base-url"),
        (&["login", "a"], "RENTAL_BASE_URL"),
    ] {
        let mut command = at(&home, args);
        command.env("RENTAL_BASE_URL", &demo.base_url).env("RENTAL_ADMIN_TOKEN", "demo");
        let ran = Ran::of(command.env("RENTAL_ORGANIZATION", ORGANIZATION));
        let problem = format!(
            "error[exists]: profile a is for {}, and this command uses {} (from {from}); nothing was done\nhint: to use the server of the profile",
            server.base_url, demo.base_url
        );
        assert_eq!(ran.code, Some(6), "{args:?}: {}", ran.stderr);
        assert!(
            ran.stderr.contains(&problem) && ran.stderr.contains("choose another name"),
            "{args:?}: {}",
            ran.stderr
        );
    }
    assert!(demo.asked().is_empty(), "nothing is created that cannot be saved");
    assert_eq!(fs::read_to_string(file(&home)).unwrap(), before);
}

#[test]
fn a_secret_of_a_profile_is_sent_to_the_server_of_the_profile_only() {
    let (server, other) = (FakeServer::new(vec![ok("{}")]), FakeServer::new(vec![ok(r#"{"id":"1"}"#)]));
    let home = with_profile(&server);
    run(&home, "config|use|a");
    let to_other = |args: &[&str]| Ran::of(&mut at(&home, &[args, &["--base-url", &other.base_url]].concat()));
    for (args, secret, variable) in [
        (&["organizations", "list"][..], "admin token", "RENTAL_ADMIN_TOKEN"),
        (&["vehicles", "list"], "API key", "RENTAL_API_KEY"),
    ] {
        let by_variable = Ran::of(at(&home, args).env("RENTAL_BASE_URL", &other.base_url));
        for ran in [to_other(args), by_variable] {
            assert_eq!(ran.code, Some(4), "{args:?}: {}", ran.stderr);
            let problem = format!(
                "error[credential_missing]: the {secret} of profile a is for {}, so it was not sent to {}\nhint: to use the server of the profile, omit --base-url and unset RENTAL_BASE_URL; for the other server, set {variable}",
                server.base_url, other.base_url
            );
            assert!(ran.stderr.contains(&problem), "{args:?}: {}", ran.stderr);
        }
    }
    let rows = to_other(&["config", "get"]).stdout;
    assert!(rows.contains(&format!("admin_token\t(not used: it is for {})\tprofile a\n", server.base_url)), "{rows}");
    to_other(&["doctor"]);
    assert!(other.asked().iter().all(|asked| asked.header("authorization").is_none()), "{:?}", other.asked());
    // Another path of the same server is the same server.
    let path = format!("{}/rental", server.base_url);
    assert_ne!(Ran::of(&mut at(&home, &["vehicles", "list", "--base-url", &path])).code, Some(4));
    assert_eq!(server.asked()[0].header("authorization"), Some("Bearer key-of-the-profile"));
}

#[test]
fn a_refused_secret_is_named_by_where_it_is_from() {
    let refused = || crate::fake_server::error(401, "", "authentication_error", "api_key_invalid");
    let server = FakeServer::new(vec![refused()]);
    let home = with_profile(&server);
    let key = home.path().canonicalize().unwrap().join("key");
    let ran = run(&home, "vehicles|list|--profile|a");
    let hint = format!(
        "hint: the refused API key is from profile a ({}); store a key of the organization with `rental-cli login`",
        key.display()
    );
    assert!(ran.stderr.contains(&hint), "{}", ran.stderr);
    let mut command = at(&home, &["organizations", "list", "--profile", "a"]);
    let ran = Ran::of(command.env("RENTAL_ADMIN_TOKEN", "old"));
    assert!(ran.stderr.contains("hint: the refused admin token is from RENTAL_ADMIN_TOKEN; set "), "{}", ran.stderr);
}

#[test]
fn without_any_organization_the_error_names_all_three_ways() {
    let server = FakeServer::new(vec![ok("{}")]);
    for words in [
        &["events", "list"][..],
        &["deliveries", "list"],
        &["api-keys", "create", "--scope", "read"],
        &["invoices", "create", "--customer", "c", "--line", "a=1"],
        &["listen"],
        &["trigger", "lead.received"],
    ] {
        let ran = server.run(words);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{words:?}");
        for way in ["--organization ID", "RENTAL_ORGANIZATION", "rental-cli config set"] {
            assert!(ran.stderr.contains(way), "{words:?}: {}", ran.stderr);
        }
    }
    assert_eq!(server.asked().len(), 0);
}

#[test]
fn get_tells_where_each_value_comes_from_and_no_secret() {
    let server = FakeServer::new(vec![ok("{}")]);
    let home = with_profile(&server);
    let mut command = at(&home, &["config", "get", "a"]);
    let ran = Ran::of(command.env("RENTAL_API_KEY", "rk_live_secret"));
    let token = home.path().canonicalize().unwrap().join("token");
    let expected = format!(
        "setting\tvalue\tfrom\nprofile\ta\t--profile\nbase_url\t{}\tprofile a\norganization\t{ORGANIZATION}\tprofile a\n\
         admin_token\t{}\tprofile a\napi_key\t(set)\tRENTAL_API_KEY\n",
        server.base_url,
        token.display()
    );
    assert_eq!((ran.code, ran.stdout, ran.stderr), (Some(0), expected, String::new()));
    let json: serde_json::Value = serde_json::from_str(&run(&home, "config|get|--json").stdout).unwrap();
    assert_eq!(json["base_url"]["origin"], "default", "nothing chose the profile");
    assert!(json["profile"].is_null() && json["admin_token"].is_null(), "{json}");
    assert_eq!(server.asked().len(), 0);
}

#[test]
fn the_file_is_private_and_holds_no_secret() {
    let home = with_profile(&FakeServer::new(vec![ok("{}")]));
    assert_eq!(fs::metadata(file(&home)).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!fs::read_to_string(file(&home)).unwrap().contains("of-the-profile"));
    assert_eq!(fs::read_dir(file(&home).parent().unwrap()).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn a_file_that_others_can_read_is_warned_of() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("token"), "x").unwrap();
    fs::set_permissions(home.path().join("token"), fs::Permissions::from_mode(0o644)).unwrap();
    let ran = run(&home, "config|set|a|--admin-token-file|token");
    assert_eq!(ran.code, Some(0));
    assert!(
        ran.stderr.starts_with("warning: other users can read ") && ran.stderr.contains("; run: chmod 600 "),
        "{}",
        ran.stderr
    );
    let ran = run(&home, "config|set|a|--admin-token-file|gone");
    assert!(ran.stderr.starts_with("warning: cannot read "), "{}", ran.stderr);
}

#[test]
fn a_setting_is_forgotten_and_a_profile_removed() {
    let home = with_profile(&FakeServer::new(vec![ok("{}")]));
    run(&home, "config|use|a");
    assert_eq!(run(&home, "config|set|a|--api-key-file|").code, Some(0));
    let list = run(&home, "config|list").stdout;
    let row: Vec<&str> = list.lines().nth(1).unwrap().split('\t').collect();
    assert_eq!((row[0], row[1], row[3], row[5]), ("a", "yes", ORGANIZATION, ""));
    assert_eq!(run(&home, "config|remove|a").code, Some(0));
    assert_eq!(run(&home, "config|list").stdout.lines().count(), 1);
    assert_eq!(run(&home, "config|get").code, Some(0), "what is gone is not in use any more");
    let json: serde_json::Value = serde_json::from_str(&run(&home, "config|list|--json").stdout).unwrap();
    assert_eq!(json["data"], serde_json::json!([]));
}

#[test]
fn what_is_wrong_is_said_before_anything_is_written() {
    let home = with_profile(&FakeServer::new(vec![ok("{}")]));
    let before = fs::read_to_string(file(&home)).unwrap();
    for words in [
        "config|set|a",
        "config|set|a b|--organization|x",
        "config|set|a|--base-url|ftp://h",
        "config|set|a|--organization|..",
        "config|use|b",
        "config|remove|b",
        "config|get|b",
        "vehicles|list|--profile|b",
    ] {
        let ran = run(&home, words);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{words}: {}", ran.stderr);
    }
    assert_eq!(fs::read_to_string(file(&home)).unwrap(), before);
}

#[test]
fn a_broken_file_is_named_with_its_line_and_does_not_stop_what_needs_none() {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir_all(file(&home).parent().unwrap()).unwrap();
    fs::write(file(&home), "[profiles.a]\nbase_ulr = \"http://h\"\n").unwrap();
    for words in ["vehicles|list", "config|list", "config|set|a|--organization|0190d0f2-7c3a-7cc0-8000-000000000000"] {
        let ran = run(&home, words);
        let first = format!("error[config]: {}, line 2: unknown key base_ulr", file(&home).display());
        assert_eq!(ran.code, Some(2));
        assert!(ran.stderr.starts_with(&first), "{words}: {}", ran.stderr);
    }
    assert_eq!(run(&home, "config|path").stdout, format!("{}\n", file(&home).display()));
    assert_eq!(run(&home, "completions|bash").code, Some(0));
}

#[test]
fn the_file_is_where_the_environment_says() {
    let home = tempfile::tempdir().unwrap();
    let path = |variables: &[(&str, &Path)]| {
        let mut command = at(&home, &["config", "path"]);
        Ran::of(command.envs(variables.iter().copied())).stdout.trim_end().to_owned()
    };
    let xdg = home.path().join("xdg");
    assert_eq!(path(&[("XDG_CONFIG_HOME", &xdg)]), xdg.join("rental/config.toml").to_str().unwrap());
    assert_eq!(path(&[("XDG_CONFIG_HOME", Path::new("relative"))]), file(&home).to_str().unwrap());
    assert_eq!(path(&[("RENTAL_CONFIG_FILE", Path::new("/x/y"))]), "/x/y");
    let ran = Ran::of(&mut cli(&["config", "set", "a", "--organization", "0190d0f2-7c3a-7cc0-8000-000000000000"]));
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("RENTAL_CONFIG_FILE"), "{}", ran.stderr);
}
