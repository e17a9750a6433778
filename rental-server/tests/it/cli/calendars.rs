//! What is free, and what holds a vehicle. `vehicles calendar-feed`: the URL is printed once, works, and is replaced or revoked only when that is meant.

use super::{Cli, Ran, ran, url};
use crate::support::{Connection, Organization, Server};
use serde_json::json;

fn run(cli: &Cli, organization: &Organization<'_>, words: &str) -> Ran {
    let mut command = cli.command(&url(organization.server), words);
    ran(command.env_remove("RENTAL_ADMIN_TOKEN").env("RENTAL_API_KEY", &organization.write))
}

#[test]
fn a_calendar_feed_is_made_shown_replaced_and_revoked() {
    let Some(cli) = Cli::find() else { return };
    let organization = Server::shared().organization();
    let vehicle = organization.vehicle(json!({}));
    let feed = |flags: &str| run(&cli, &organization, &format!("vehicles calendar-feed {vehicle} {flags}"));
    let status = |made: &Ran| {
        let address = made.json()["url"].as_str().unwrap_or_else(|| panic!("a URL: {made:?}")).to_owned();
        let path = address.strip_prefix(&url(organization.server)).expect("the server's address").to_owned();
        Connection::open(&organization.server.address).send("GET", &path, &[], b"").status
    };
    let first = feed("--json");
    assert_eq!((first.code, status(&first)), (Some(0), 200), "{first:?}");
    let again = feed("--json");
    assert_eq!((again.code, again.json().get("url")), (Some(0), None), "{again:?}");
    let table = feed("");
    assert!(table.code == Some(0) && table.stderr.contains("--rotate"), "{table:?}");
    assert_eq!(status(&first), 200, "it was not replaced");
    let unsure = feed("--rotate");
    assert_eq!((unsure.code, status(&first)), (Some(2), 200), "{unsure:?}");
    let second = feed("--rotate --yes --json");
    assert_eq!((second.code, status(&first), status(&second)), (Some(0), 404, 200), "{second:?}");
    let revoked = feed("--revoke --yes --json");
    assert_eq!((revoked.code, status(&second)), (Some(0), 404), "{revoked:?}");
    assert_eq!(revoked.json()["status"], "revoked");
    assert_eq!(feed("--revoke --yes").code, Some(3));
    let unknown = run(&cli, &organization, "vehicles calendar-feed 0190d0f2-7c3a-7cc0-8000-0000000000ff");
    assert_eq!(unknown.code, Some(3), "{unknown:?}");
}

#[test]
fn a_calendar_of_others_is_added_by_a_pipe_polled_and_deleted() {
    let Some(cli) = Cli::find() else { return };
    let organization = Server::shared().organization();
    let vehicle = organization.vehicle(json!({}));
    let mut command =
        cli.command(&url(organization.server), &format!("calendar-feeds create --vehicle {vehicle} --url - --json"));
    command.env_remove("RENTAL_ADMIN_TOKEN").env("RENTAL_API_KEY", &organization.write);
    let address = std::env::temp_dir().join(format!("{vehicle}.address"));
    std::fs::write(&address, "https://calendar.invalid/secret-path.ics\n").unwrap();
    let made = ran(command.stdin(std::fs::File::open(&address).unwrap()));
    std::fs::remove_file(&address).unwrap();
    assert_eq!(made.code, Some(0), "{made:?}");
    let made = made.json();
    assert_eq!(made["url"], "https://calendar.invalid/...");
    let id = made["id"].as_str().unwrap();
    let words = |words: &str| run(&cli, &organization, words);
    assert_eq!(words(&format!("calendar-feeds poll {id} --json")).code, Some(0));
    let list = words(&format!("calendar-feeds list --vehicle {vehicle}"));
    assert!(list.code == Some(0) && list.stdout.contains("calendar.invalid"), "{list:?}");
    assert!(!list.stdout.contains("secret-path"));
    assert_eq!(words(&format!("calendar-feeds delete {id}")).code, Some(2), "it asks first");
    assert_eq!(words(&format!("calendar-feeds delete {id} --yes")).code, Some(0));
    assert_eq!(words(&format!("calendar-feeds get {id}")).code, Some(3));
}

#[test]
fn what_is_free_and_what_a_vehicle_has_is_shown_by_plate() {
    let Some(cli) = Cli::find() else { return };
    let organization = Server::shared().organization();
    let [free, taken] = ["FREE1", "TAKEN1"].map(|plate| organization.vehicle(json!({"plate": plate})));
    let days = json!({"start_date": "2031-07-02", "end_date": "2031-07-04", "status": "APPROVED"});
    let rental = organization.rental(&taken, days);
    let words = |words: &str| run(&cli, &organization, words);
    let ids = |ran: &Ran| -> Vec<String> {
        let list = ran.json();
        list["data"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect()
    };
    let available = words("vehicles available --from 2031-07-01 --to 2031-07-05 --json");
    assert_eq!((available.code, ids(&available)), (Some(0), vec![free.clone()]), "{available:?}");
    assert_eq!(ids(&words("vehicles available --from 2031-07-04 --to 2031-07-05 --json")), [taken, free]);
    let table = words("vehicles available --from 2031-07-01 --to 2031-07-05 --columns plate");
    assert_eq!(table.stdout, "plate\nFREE1\n", "{table:?}");
    let one = words("vehicles available --from 2031-08-01 --to 2031-08-05 --limit 1 --columns plate");
    assert_eq!(one.stdout, "plate\nTAKEN1\n", "{one:?}");
    let page = words("vehicles available --from 2031-08-01 --to 2031-08-05 --limit 1 --json").json();
    let after = page["next_cursor"].as_str().expect("more");
    let next = words(&format!(
        "vehicles available --from 2031-08-01 --to 2031-08-05 --starting-after {after} --columns plate"
    ));
    assert_eq!(next.stdout, "plate\nFREE1\n", "{next:?}");
    let calendar = words("vehicles calendar TAKEN1 --from 2031-07-01 --to 2031-08-01 --json");
    assert_eq!((calendar.code, ids(&calendar)), (Some(0), vec![rental.clone()]), "{calendar:?}");
    let table = words("vehicles calendar TAKEN1 --from 2031-07-01 --to 2031-08-01");
    let row = format!("rental\tAPPROVED\t2031-07-02\t2031-07-04\t\t\t{rental}\n");
    assert!(table.stdout.ends_with(&row), "{table:?}");
    assert_eq!(words("vehicles available --from 2031-07-05 --to 2031-07-01").code, Some(6));
    assert_eq!(words("vehicles available --from 2031-07-05").code, Some(2));
}
