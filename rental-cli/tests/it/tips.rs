//! What an unknown command and a finished one lead to.

use crate::fake_server::{FakeServer, Ran, cli, ok};

#[test]
fn a_word_of_another_program_leads_to_the_command() {
    for (line, meant) in [
        (&["bookings"][..], "rentals"),
        (&["cars", "list"], "vehicles"),
        (&["customer", "list"], "customers"),
        (&["tickets"], "violations"),
        (&["webhooks"], "webhook-endpoints"),
        (&["orgs", "list"], "organizations"),
        (&["vehicles", "ls"], "list"),
        (&["vehicles", "show", "LZA7293"], "get"),
        (&["--json", "rentals", "add"], "create"),
        (&["calendar-feeds", "rm", "1"], "delete"),
        (&["invoices", "cancel", "1"], "void"),
        (&["vehicels", "list"], "vehicles"),
        (&["status"], "me"),
        (&["store", "status"], "check"),
        (&["master-key", "status"], "get"),
    ] {
        let ran = Ran::of(&mut cli(line));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{line:?}");
        assert!(ran.stderr.contains(&format!("similar subcommand exists: '{meant}'")), "{line:?}: {}", ran.stderr);
    }
}

#[test]
fn what_does_not_exist_leads_to_what_to_do_instead() {
    for (line, tip) in [
        (&["vehicles", "rm", "1"][..], "rental-cli vehicles update PLATE --status unavailable"),
        (&["rentals", "delete", "B1"], "rental-cli rentals update BOOKING --status CANCELLED"),
        (&["rentals", "update", "B1", "--cancel"], "rental-cli rentals update BOOKING --status CANCELLED"),
        (&["--json", "customers", "Delete", "ada@example.com"], "rental-cli customers erase EMAIL"),
        (&["api-keys", "delete", "1"], "'revoke'"),
    ] {
        let ran = Ran::of(&mut cli(line));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{line:?}");
        assert!(ran.stderr.contains(tip), "{line:?}: {}", ran.stderr);
    }
    let ran = Ran::of(&mut cli(&["rentals", "update", "B1", "--notes", "x"]));
    assert!(ran.code == Some(2) && !ran.stderr.contains("'-- --notes'"), "{}", ran.stderr);
    let ran = Ran::of(&mut cli(&["vehciles", "list"]));
    assert!(ran.stderr.contains("similar subcommand exists: 'vehicles'\n"), "{}", ran.stderr);
}

#[test]
fn a_verb_in_front_leads_to_its_place() {
    for (line, example) in [
        (&["list", "vehicles"][..], "rental-cli vehicles list"),
        (&["Create", "rental"], "rental-cli vehicles create"),
        (&["--json", "attach", "tolls"], "rental-cli tolls attach"),
    ] {
        let ran = Ran::of(&mut cli(line));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{line:?}");
        let tip = format!("the verb comes after what it is about: `{example}`");
        assert!(ran.stderr.contains(&tip) && !ran.stderr.contains("listen"), "{line:?}: {}", ran.stderr);
    }
}

#[test]
fn a_word_that_means_nothing_leads_to_the_commands_of_the_group() {
    for (line, tip) in [
        (&["master-key", "xyzzy"][..], "the commands of `rental-cli master-key` are get, rotate"),
        (
            &["store", "xyzzy"],
            "the commands of `rental-cli store` are backup, restore, copy, upgrade, check, repair, compact",
        ),
        (&["--json", "rentals", "xyzzy"], "the commands of `rental-cli rentals` are list, get, create, update"),
        (&["config", "xyzzy"], "the commands of `rental-cli config` are "),
    ] {
        let ran = Ran::of(&mut cli(line));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{line:?}");
        assert!(ran.stderr.contains(tip), "{line:?}: {}", ran.stderr);
    }
}

#[test]
fn a_flag_of_another_name_leads_to_the_one_of_the_command() {
    for (line, tip) in [
        (&["vehicles", "create", "--name", "X", "--rate", "5"][..], Some("'--daily-rate'")),
        (&["customers", "create", "--name", "Ada"], Some("'--full-name'")),
        (&["rentals", "create", "--from", "2026-06-01"], Some("'--start-date'")),
        (&["rentals", "create", "--date", "2026-06-01"], Some("'--start-date', '--end-date'")),
        (&["vehicles", "list", "--server", "x"], Some("'--base-url'")),
        (&["vehicles", "update", "X", "--colour", "red"], Some("'--color'")),
        (&["tolls", "import", "--org", "X", "f.csv"], Some("'--organization'")),
        (&["invoices", "pay", "1", "--amount", "5"], None),
        (&["vehicles", "list", "--zzz"], None),
    ] {
        let ran = Ran::of(&mut cli(line));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{line:?}");
        let found = ran
            .stderr
            .lines()
            .find(|text| text.contains("tip:"))
            .and_then(|text| text.split_once(": ")?.1.split_once(": "));
        assert_eq!(found.map(|(_, tip)| tip), tip, "{line:?}: {}", ran.stderr);
        let usage = format!("Usage: rental-cli {} {} ", line[0], line[1]);
        assert!(ran.stderr.contains(&usage) && !ran.stderr.contains("--plate <TEXT>"), "{line:?}: {}", ran.stderr);
    }
}

#[test]
fn what_settles_an_invoice_says_the_next_step() {
    let organization = "0190d0f2-7c3a-7cc0-8000-000000000000";
    let page = |object: &str| format!(r#"{{"object":"list","has_more":false,"next_cursor":null,"data":[{object}]}}"#);
    let invoice = r#"{"object":"invoice","id":"0190d0f2-7c3a-7cc0-8000-000000000001","invoice_number":"INV-000042"}"#;
    let note =
        r#"{"object":"credit_note","id":"0190d0f2-7c3a-7cc0-8000-000000000002","credit_note_number":"CN-000007"}"#;
    let server = FakeServer::new(vec![ok(&page(invoice)), ok(invoice)]);
    let pay = ["invoices", "pay", "INV-42", "--organization", organization];
    let of = format!("--organization {organization}");
    assert_eq!(
        server.run(&pay).stderr,
        format!(
            "the receipt: rental-cli invoices pdf INV-000042 {of} --to INV-000042-paid.pdf; to give money back: rental-cli invoices credit INV-000042 {of}\n"
        )
    );
    let server = FakeServer::new(vec![ok(note)]);
    let credit = ["invoices", "credit", "0190d0f2-7c3a-7cc0-8000-000000000001", "--line", "0"];
    assert_eq!(
        server.run(&credit).stderr,
        "next: rental-cli credit-notes pdf CN-000007 --to CN-000007.pdf; once the money of a paid invoice was given back: rental-cli credit-notes refund CN-000007\n"
    );
    assert_eq!(server.run(&[&credit[..], &["--json"]].concat()).stderr, "");
}
