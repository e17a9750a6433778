//! `organizations delete`: asks, demands an export, waits for the end.

use super::Cli;
use crate::support::Server;

#[test]
fn an_organization_is_deleted_after_an_export_and_only_with_yes_where_nobody_can_answer() {
    let Some(cli) = Cli::find() else { return };
    let server = Server::start(&[]);
    let organization = server.organization();
    organization.one_of_each();
    let delete = |flags: &str| cli.run(&server, &format!("organizations delete {} {flags}", organization.id));
    let unsure = delete("");
    assert_eq!((unsure.code, unsure.stdout.as_str()), (Some(2), ""), "{unsure:?}");
    assert!(unsure.stderr.contains("Nothing was done: add --yes"), "{unsure:?}");
    let refused = delete("--yes");
    assert_eq!(refused.code, Some(6), "{refused:?}");
    assert!(refused.stderr.contains("never exported") && refused.stderr.contains("--without-export"), "{refused:?}");
    let exported = cli.run(&server, &format!("export --organization {} --to all.ndjson --pace full", organization.id));
    assert_eq!(exported.code, Some(0), "{exported:?}");
    let done = delete("--yes --json");
    assert_eq!(done.code, Some(0), "{done:?}");
    let deletion = done.json();
    assert_eq!(deletion["status"], "finished", "{deletion}");
    assert!(deletion["rows"].as_u64() > Some(10), "{deletion}");
    let again = delete("--yes --json");
    assert_eq!((again.code, again.json()), (Some(0), deletion), "a repeated command tells the end again: {again:?}");
    let unknown = cli.run(&server, "organizations delete 0190d0f2-7c3a-7cc0-8000-0000000000ff --yes");
    assert_eq!(unknown.code, Some(3), "{unknown:?}");
}

#[test]
fn an_export_that_is_not_wanted_is_left_out_on_purpose() {
    let Some(cli) = Cli::find() else { return };
    let server = Server::start(&[]);
    let organization = server.organization();
    let done = cli.run(&server, &format!("organizations delete {} --without-export --no-wait --yes", organization.id));
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.stdout.contains(&organization.id), "{done:?}");
}
