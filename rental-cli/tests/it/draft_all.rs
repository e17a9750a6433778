//! `invoices draft-all`: what it asks, bills and says, on a terminal and in a pipe.

use crate::{
    fake_server::{FakeServer, error, ok},
    terminal::{answering, plain},
};

/// A page of drafts over these totals.
fn drafts(totals: &[&str]) -> String {
    let draft = |total: &&str| {
        format!(
            r#"{{"object":"invoice_draft","rental_id":"r","customer_name":"Ada","total":{total},"currency":"USD","tolls":1,"violations":0,"problem":null}}"#
        )
    };
    let data = totals.iter().map(draft).collect::<Vec<_>>().join(",");
    format!(r#"{{"object":"list","has_more":false,"next_cursor":null,"data":[{data}]}}"#)
}

/// A page of suggestions with these verdicts.
pub(crate) fn verdicts(verdicts: &[&str], has_more: bool) -> String {
    let data = verdicts.iter().map(|verdict| format!(r#"{{"verdict":"{verdict}"}}"#)).collect::<Vec<_>>().join(",");
    format!(r#"{{"object":"list","has_more":{has_more},"next_cursor":"1","data":[{data}]}}"#)
}

#[test]
fn a_run_of_invoices_has_amounts_with_all_decimals_and_counts_in_words() {
    let args = ["invoices", "draft-all", "--organization", "0190d0f2-7c3a-7cc0-8000-000000000000", "--dry-run"];
    for (totals, row, note) in [
        (&["0.7"][..], "  0.70 USD", "1 invoice would be created over 0.70 USD, 0 rentals skipped\n"),
        (&["0.7", "12"], "  12.00 USD", "2 invoices would be created over 12.70 USD, 0 rentals skipped\n"),
    ] {
        let none = verdicts(&[], false);
        let shown = plain(&FakeServer::new(vec![ok(&drafts(totals)), ok(&none), ok(&none)]), &args, 140);
        assert!(shown.contains(row) && shown.ends_with(note), "{shown}");
    }
}

#[test]
fn a_run_of_invoices_on_a_terminal_asks_with_count_and_sum() {
    let (none, invoice) = (verdicts(&[], false), r#"{"id":"i","number":1,"total":0.7}"#);
    let clear = verdicts(&["clear"], false);
    let two = drafts(&["0.7", "12"]);
    let args = ["invoices", "draft-all", "--organization", "0190d0f2-7c3a-7cc0-8000-000000000000"];
    let posts = |server: &FakeServer| server.asked().iter().filter(|asked| asked.line.starts_with("POST ")).count();
    let answered = |typed: &str| {
        let script = [&two, &clear, &none, &two, invoice, invoice, &none].map(ok);
        let server = FakeServer::new(script.into());
        let mut command = server.command(&args);
        let (code, shown) = answering(command.env("NO_COLOR", "1"), 140, typed);
        let question = shown.find("Create 2 invoices over 12.70 USD? [y/N] ").unwrap_or_else(|| panic!("{shown}"));
        let hint = shown.find("1 toll fits a rental and is not attached").unwrap_or_else(|| panic!("{shown}"));
        assert!(hint < question && shown.matches("not attached").count() == 1, "{shown}");
        (code, posts(&server))
    };
    assert_eq!(answered("n\n"), (Some(1), 0));
    assert_eq!(answered("y\n"), (Some(0), 2));
    let script = || FakeServer::new([&two, invoice, invoice, &none, &none, &none].map(ok).into());
    let server = script();
    let shown = plain(&server, &[&args[..], &["--yes"]].concat(), 140);
    assert_eq!((shown.contains("[y/N]"), posts(&server)), (false, 2), "{shown}");
    let server = script();
    assert_eq!((server.run(&args).code, posts(&server)), (Some(0), 2), "without a terminal it acts");
    let nothing = FakeServer::new(vec![ok(&drafts(&[]))]);
    assert!(!plain(&nothing, &args, 140).contains("[y/N]"), "nothing to create is no question");
}

#[test]
fn a_run_of_invoices_says_what_is_not_attached_yet() {
    let run = |tolls: &str, violations: &str, more: &[&str]| {
        let server = FakeServer::new(vec![ok(&drafts(&[])), ok(tolls), ok(violations)]);
        let args =
            [&["invoices", "draft-all", "--organization", "0190d0f2-7c3a-7cc0-8000-000000000000", "--yes"], more]
                .concat();
        (plain(&server, &args, 140), server.asked().len())
    };
    let none = verdicts(&["unclear", "nobody"], true);
    let (shown, _) = run(&verdicts(&["clear", "nobody", "clear"], false), &none, &[]);
    let tolls = "2 tolls fit a rental and are not attached; attach them with `rental-cli tolls suggest --attach`\n";
    assert!(shown.ends_with(tolls), "{shown}");
    let (shown, _) = run(&none, &verdicts(&["clear"], true), &[]);
    let violation = "at least 1 violation fits a rental and is not attached; attach it with `rental-cli violations suggest --attach`\n";
    assert!(shown.ends_with(violation), "{shown}");
    let (shown, _) = run(&none, &none, &[]);
    assert!(!shown.contains("attach"), "{shown}");
    let (shown, asked) = run(&none, &none, &["--json"]);
    assert_eq!((shown.contains("attach"), asked), (false, 1), "a program asks itself: {shown}");
}

/// Also a dry run, and also for programs: a draft without a rental is listed once, and no request bills it.
#[test]
fn a_run_of_invoices_says_what_belongs_to_no_rental() {
    let draft = r#"{"object":"invoice_draft","rental_id":null,"customer_id":"c","customer_name":"Ada","lines":[],"tolls":2,"violations":0,"total":3.5,"currency":"USD","more":false,"problem":"The customer had no rental then."}"#;
    let drafts = format!(r#"{{"object":"list","has_more":false,"next_cursor":null,"data":[{draft}]}}"#);
    let none = verdicts(&[], false);
    let args = ["invoices", "draft-all", "--organization", "0190d0f2-7c3a-7cc0-8000-000000000000"];
    for more in [&["--yes"][..], &["--dry-run"]] {
        let server = FakeServer::new([&drafts, &none, &none].into_iter().map(|body| ok(body)).collect());
        let shown = plain(&server, &[&args, more].concat(), 140);
        assert!(shown.contains("1 customer has unbilled tolls or violations of a time without a rental"), "{shown}");
        assert!(shown.contains("Ada") && shown.contains("The customer had no rental then."), "{shown}");
        assert!(server.asked().iter().all(|asked| asked.line.starts_with("GET")), "{shown}");
    }
    let summary = FakeServer::new(vec![ok(&drafts)]).run(&[&args[..], &["--dry-run", "--json"]].concat()).stdout;
    assert!(summary.contains(r#""customers_without_rental":1"#) && summary.contains("no rental then"), "{summary}");
}

#[test]
fn a_run_of_invoices_succeeds_although_nobody_knows_what_is_not_attached() {
    let refused = || error(403, "", "permission_error", "insufficient_scope");
    let server = FakeServer::new(vec![ok(&drafts(&["0.7"])), ok(r#"{"id":"i","number":1,"total":0.7}"#), refused()]);
    let ran = server.run(&["invoices", "draft-all", "--organization", "0190d0f2-7c3a-7cc0-8000-000000000000"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("0.7") && ran.stderr.contains("1 invoice created over 0.70 USD"), "{}", ran.stderr);
    for what in ["tolls", "violations"] {
        let note = format!("it is not known which {what} fit a rental and are not attached: No, because.");
        assert!(ran.stderr.contains(&note), "{}", ran.stderr);
    }
}

#[test]
fn a_run_of_invoices_goes_on_until_nothing_is_left_and_its_dry_run_says_what_it_did_not_read() {
    let cut = drafts(&["0.7"]).replace(r#""problem":null"#, r#""more":true,"problem":null"#);
    let invoice = r#"{"id":"i","total":0.7}"#;
    let none = verdicts(&[], false);
    let script = [&cut, invoice, &drafts(&["0.7"]), invoice, &none, &none];
    let server = FakeServer::new(script.into_iter().map(ok).collect());
    let args = ["invoices", "draft-all", "--organization", "0190d0f2-7c3a-7cc0-8000-000000000000"];
    let shown = plain(&server, &[&args[..], &["--yes"]].concat(), 140);
    assert!(shown.contains("2 invoices created over 1.40 USD, 0 rentals skipped"), "{shown}");
    let server = FakeServer::new([&cut, &none, &none].into_iter().map(|body| ok(body)).collect());
    let shown = plain(&server, &[&args[..], &["--dry-run"]].concat(), 140);
    assert!(shown.contains("more unbilled tolls or violations than a dry run reads"), "{shown}");
    let both = drafts(&["0.7", "0.7"]).replacen(r#""problem":null"#, r#""more":true,"problem":null"#, 1);
    let server = FakeServer::new([&both, &none, &none].into_iter().map(|body| ok(body)).collect());
    let shown = plain(&server, &[&args[..], &["--dry-run"]].concat(), 140);
    assert!(
        shown.contains("2 invoices would be created over 1.40 USD") && !shown.contains("than a dry run"),
        "{shown}"
    );
}

#[test]
fn an_invoice_without_room_for_another_toll_says_how_to_go_on() {
    let create = [
        "invoices",
        "create",
        "--organization",
        "0190d0f2-7c3a-7cc0-8000-000000000000",
        "--rental",
        "0190d0f2-7c3a-7cc0-8000-000000000003",
        "--with-tolls",
    ];
    for (lines, is_full) in [(198, true), (197, false)] {
        let lines = vec!["{}"; lines].join(",");
        let shown = plain(&FakeServer::new(vec![ok(&format!(r#"{{"id":"i","lines":[{lines}]}}"#))]), &create, 140);
        assert_eq!(shown.contains("run the command again until it says that nothing is left"), is_full, "{shown}");
    }
}

#[test]
fn a_run_of_invoices_that_fails_on_the_way_says_what_it_created() {
    let more =
        drafts(&["0.7"]).replace(r#""has_more":false,"next_cursor":null"#, r#""has_more":true,"next_cursor":"1""#);
    let refused = error(403, "", "permission_error", "insufficient_scope");
    let server = FakeServer::new(vec![ok(&more), ok(r#"{"id":"i","number":1,"total":0.7}"#), refused]);
    let ran = server.run(&["invoices", "draft-all", "--organization", "0190d0f2-7c3a-7cc0-8000-000000000000"]);
    assert!(ran.code != Some(0) && ran.stderr.contains("1 invoice created before this error"), "{}", ran.stderr);
}
