//! The list of erased people in an import: who may erase with it, what the audit log says, and what exports have.

use super::{counts, operators};
use crate::{
    events_in_store::stop,
    support::{Connection, Organization, Reply, Server},
    webhooks::{
        damage::{on_file, put},
        erasing::complete,
        wait_for,
    },
};
use rental_core::{
    erasing::{CustomerErasure, task_id},
    rows::key,
    tasks::{Task, Work, organization_hold},
    value::{CustomerId, OrganizationId, Timestamp},
};
use serde_json::{Value, json};

const SECRET: &str = "grace@navy.example";

/// An operator of a new name with this role: its token.
fn of_role(server: &Server, role: &str) -> String {
    operators::operator(server, &json!({"name": format!("Importing {role}"), "role": role})).1
}

fn import(organization: &Organization, token: &str, query: &str, file: &str) -> Reply {
    let token = format!("Bearer {token}");
    let headers = [("Authorization", token.as_str()), ("Content-Type", "application/x-ndjson")];
    let path = format!("/admin/v1/organizations/{}/import{query}", organization.id);
    Connection::open(&organization.server.address).send("POST", &path, &headers, file.as_bytes())
}

/// The lines of an export; another test may be making one on the same server.
fn export(organization: &Organization, token: &str) -> Vec<String> {
    let path = format!("/admin/v1/organizations/{}/export?pace=full", organization.id);
    loop {
        let reply = operators::call(organization.server, token, "GET", &path, &Value::Null);
        if reply.status != 409 {
            assert_eq!(reply.status, 200);
            return reply.text().lines().map(str::to_owned).collect();
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// A file with these lines and its last one.
fn file(lines: &[String]) -> String {
    let end = json!({"object": "export_end", "objects": lines.len()});
    format!("{}\n{end}\n", lines.join("\n"))
}

/// A file that has nothing but these people on its list.
fn list_of(organization: &Organization, exported: &[String], people: &[&str]) -> String {
    let erasure = |customer: &&str| {
        json!({
            "object": "erasure", "organization_id": organization.id, "customer_id": customer, "status": "complete",
            "rewritten": {}, "kept": {}, "damaged": 0, "erased_at": "2026-01-01T00:00:00.000Z",
            "completed_at": "2026-01-01T00:00:00.000Z",
        })
        .to_string()
    };
    file(&exported[..2].iter().cloned().chain(people.iter().map(erasure)).collect::<Vec<_>>())
}

fn person(organization: &Organization) -> String {
    let customer = organization.customer(json!({"full_name": "Grace Hopper", "email": SECRET}));
    organization.post("/v1/leads", &json!({"raw_data": {"text": format!("mail to {SECRET}")}})).ok();
    customer
}

/// The audit entries of this action, newest first.
fn audited(organization: &Organization, action: &str) -> Vec<Value> {
    let path = format!("/admin/v1/audit_entries?organization={}&action={action}", organization.id);
    organization.server.admin("GET", &path, &Value::Null).ok()["data"].as_array().unwrap().clone()
}

fn leads(organization: &Organization) -> String {
    let path = format!("/admin/v1/organizations/{}/leads", organization.id);
    organization.server.admin("GET", &path, &Value::Null).text()
}

#[test]
fn the_list_of_an_import_erases_nobody_for_an_operator_and_audits_each_person_for_an_owner() {
    let server = Server::shared();
    let organization = server.organization();
    let (customer, other) = (person(&organization), organization.customer(json!({})));
    let (operator, owner) = (of_role(server, "operator"), of_role(server, "owner"));
    let path = format!("/v1/customers/{customer}");
    let before = organization.get(&path).ok();
    let exported = export(&organization, &operator);
    let nobody = "0190d0f2-7c3a-7cc0-8000-000000000000";
    let list = list_of(&organization, &exported, &[&customer, nobody, &other]);
    for query in ["?dry_run=true", "", ""] {
        let answer = import(&organization, &operator, query, &list).ok();
        let [.., invalid] = counts(&answer);
        assert_eq!(invalid, 2, "{answer}");
        let message = answer["errors"][0]["message"].as_str().unwrap();
        assert!(message.contains("role `owner` or the admin token"), "{message}");
    }
    assert_eq!(organization.get(&path).ok(), before);
    assert_eq!(audited(&organization, "eraseCustomer"), Vec::<Value>::new());
    server.admin("GET", &format!("/admin/v1/customers/{customer}/erasure"), &Value::Null).error(
        404,
        "invalid_request_error",
        "resource_missing",
    );

    assert_eq!(counts(&import(&organization, &owner, "?dry_run=true", &list).ok()), [2, 0, 1, 0, 0]);
    assert_eq!(organization.get(&path).ok(), before, "a dry run erases nobody");
    assert_eq!(counts(&import(&organization, &owner, "", &list).ok()), [2, 0, 1, 0, 0]);
    let report = complete(server, &customer);
    assert_eq!((&report["erased_at"], &report["rewritten"]["leads"]), (&json!("2026-01-01T00:00:00.000Z"), &json!(1)));
    assert_eq!(organization.get(&path).ok()["full_name"], "erased");
    assert!(!leads(&organization).contains(SECRET));
    let entries = audited(&organization, "eraseCustomer");
    let named: Vec<&Value> = entries.iter().map(|entry| &entry["resource_id"]).collect();
    assert_eq!(named, [&json!(other), &json!(customer)], "{entries:?}");
    assert!(
        entries.iter().all(|entry| entry["actor"] == "Importing owner"
            && entry["path"] == json!(format!("/admin/v1/organizations/{}/import", organization.id))),
        "{entries:?}"
    );
    complete(server, &other);
    // Whoever is erased already is no reason to refuse the organization's own export.
    let own = file(&export(&organization, &operator).into_iter().rev().skip(1).rev().collect::<Vec<_>>());
    let [created, _, duplicates, _, invalid] = counts(&import(&organization, &operator, "", &own).ok());
    assert_eq!((created, invalid), (0, 0));
    assert!(duplicates >= 3);
    assert_eq!(audited(&organization, "eraseCustomer").len(), 2);
}

#[test]
fn a_lead_with_the_address_of_an_erased_person_does_not_come_back_with_an_older_export() {
    let (source, target) = (Server::start(&[]), Server::start(&[]));
    let (from, to) = (source.organization(), target.organization());
    let operator = of_role(&target, "operator");
    let customer = person(&from);
    let older = export(&from, &source.admin_token);
    source.admin("POST", &format!("/admin/v1/customers/{customer}/erase"), &Value::Null).ok();
    complete(&source, &customer);
    let newer = export(&from, &source.admin_token);
    assert!(newer[2].contains("\"erasure\""), "{newer:?}");
    // Only the list of the newer export.
    let [created, .., invalid] = counts(&import(&to, &operator, "", &file(&newer[..3])).ok());
    assert_eq!((created, invalid), (1, 0));
    let older = format!("{}\n", older.join("\n"));
    let [created, .., invalid] = counts(&import(&to, &operator, "", &older).ok());
    assert_eq!((created, invalid), (2, 0));
    complete(&target, &customer);
    assert!(!leads(&to).contains(SECRET), "{}", leads(&to));
    assert_eq!(audited(&to, "eraseCustomer"), Vec::<Value>::new(), "nobody was there");
}

/// A hold of the organization keeps the task from its end for half a minute.
#[test]
fn an_organization_is_not_exported_while_a_customer_of_it_is_being_erased() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start_on_file(directory.path(), &[]);
    let (organization, other) = (server.organization(), server.organization());
    let customer = person(&organization);
    let owner = OrganizationId::parse(&organization.id).unwrap();
    let (id, read, write) = (organization.id.clone(), organization.read.clone(), organization.write.clone());
    let others = other.id.clone();
    let erased = server.admin("POST", &format!("/admin/v1/customers/{customer}/erase"), &Value::Null).ok();
    let now = Timestamp::parse(erased["erased_at"].as_str().unwrap()).unwrap();
    complete(&server, &customer);
    drop((organization, other));
    stop(server);
    let person = CustomerId::parse(&customer).unwrap();
    let work = Work::CustomerErasure(CustomerErasure::new(owner, person, vec![SECRET.into()]));
    let task = Task { id: task_id(person), work, created_at: now };
    put(directory.path(), vec![(key::task(task.id), &serde_json::to_vec(&task).unwrap())]);
    assert_eq!(on_file(directory.path(), async |store| organization_hold::hold(store, owner, now).await), Ok(()));

    let server = Server::start_on_file(directory.path(), &[]);
    let organization = Organization { server: &server, id, read, write };
    let path = |id: &str| format!("/admin/v1/organizations/{id}/export?pace=full");
    let refused = server.admin("GET", &path(&organization.id), &Value::Null);
    let error = refused.error(409, "invalid_request_error", "state_conflict");
    assert!(error["message"].as_str().unwrap().contains("is `complete`"), "{error}");
    assert_eq!(audited(&organization, "exportOrganization"), Vec::<Value>::new(), "nothing was read");
    assert_eq!(server.admin("GET", &path(&others), &Value::Null).status, 200, "another organization");
    let look = || server.admin("GET", &path(&organization.id), &Value::Null);
    wait_for("an export after the erasing", || Some(look()).filter(|reply| reply.status == 200), || look().text());
}
