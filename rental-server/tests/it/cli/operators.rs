//! `operators` and `audit`, and a store with operators that is checked, backed up and restored.

use super::{Cli, ran, url};
use crate::support::Server;

#[test]
fn an_operator_is_created_used_rotated_and_revoked() {
    let Some(cli) = Cli::find() else { return };
    let server = Server::start(&[]);
    let made = cli.run(&server, "operators create --name Ada --role operator --expires-in 90d --json").json();
    let (id, token) = (made["id"].as_str().unwrap(), made["token"].as_str().unwrap());
    assert!(made["expires_at"].is_string(), "{made}");
    let as_ada = |token: &str, words: &str| ran(cli.command(&url(&server), words).env("RENTAL_ADMIN_TOKEN", token));
    let organization = as_ada(token, "organizations create --name Sunrise --json").json();
    let refused = as_ada(token, "operators list");
    assert_eq!(refused.code, Some(5), "{refused:?}");
    assert!(refused.stderr.contains("role `owner`") && refused.stderr.contains("ask an owner"), "{refused:?}");
    let audit = cli.run(&server, "audit list --actor Ada --json").json();
    let found = ["action", "actor", "address", "resource_id"].map(|name| audit["data"][0][name].clone());
    assert_eq!(
        serde_json::json!(found),
        serde_json::json!(["createOrganization", "Ada", "127.0.0.1", organization["id"]])
    );
    let table = cli.run(&server, "audit list --actor Ada").stdout;
    assert!(table.contains("\tAda\t") && table.contains("\t127.0.0.1\t"), "{table}");
    let rotated = cli.run(&server, &format!("operators rotate {id} --overlap 0s --json")).json();
    assert_eq!(as_ada(token, "organizations list").code, Some(4));
    let token = rotated["token"].as_str().unwrap();
    assert_eq!(as_ada(token, "organizations list").code, Some(0));
    let unsure = cli.run(&server, &format!("operators revoke {id}"));
    assert_eq!((unsure.code, unsure.stdout.as_str()), (Some(2), ""), "{unsure:?}");
    assert!(unsure.stderr.contains("Nothing was done: add --yes"), "{unsure:?}");
    assert_eq!(as_ada(token, "organizations list").code, Some(0));
    assert_eq!(cli.run(&server, &format!("operators revoke {id} --yes")).code, Some(0));
    let refused = as_ada(token, "organizations list");
    assert!(refused.code == Some(4) && refused.stderr.contains("This operator was revoked"), "{refused:?}");
    let list = cli.run(&server, "operators list --json").json();
    assert_eq!((list["data"][0]["name"].as_str(), list["data"][0]["rotations"].as_u64()), (Some("Ada"), Some(1)));
    assert!(!list.to_string().contains(&token[8..53]));
}

#[test]
fn a_restored_store_has_the_operators_and_passes_the_check() {
    let Some(cli) = Cli::find() else { return };
    let server = Server::start(&[]);
    let made = cli.run(&server, "operators create --name Ada --role owner --json").json();
    let id = made["id"].as_str().unwrap();
    let token = cli.run(&server, &format!("operators rotate {id} --json")).json()["token"].as_str().unwrap().to_owned();
    let words = "store backup --to all.backup";
    let backup = ran(cli.command(&url(&server), words).env("RENTAL_ADMIN_TOKEN", &token));
    assert_eq!(backup.code, Some(0), "{backup:?}");
    assert_eq!(cli.run(&server, "store restore all.backup --to redb:store.redb").code, Some(0));
    let checked = cli.run(&server, "store check redb:store.redb --json");
    assert_eq!((checked.code, checked.json()["problems"].as_u64()), (Some(0), Some(0)), "{checked:?}");
    let restored = Server::start_on_file(cli.home.path(), &[]);
    for token in [&token, made["token"].as_str().unwrap()] {
        let ran = ran(cli.command(&url(&restored), "operators list --json").env("RENTAL_ADMIN_TOKEN", token));
        assert_eq!(ran.json()["data"][0]["id"], id, "the old token is in its overlap: {ran:?}");
    }
}
