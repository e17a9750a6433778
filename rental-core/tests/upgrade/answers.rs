//! What the old program answered about its store, the present one answers about the upgraded one.

use crate::stores::{STORES, fixture, memory, rows_of, upgrade, wait};
use rental_core::{
    operations::{self, api_keys},
    request::page::ListQuery,
    resources::{self, delivery, organization::SYSTEM},
    rows::key,
    schema::ResourceSpec,
    store::{Span, Store, memory::Memory},
    value::{EndpointId, OrganizationId},
    webhooks::secret::{MasterKey, Sealed},
};
use serde_json::Value;
use std::collections::BTreeSet;

fn answers(directory: &str) -> Value {
    serde_json::from_slice(&fixture(directory, "answers.json")).unwrap()
}

fn upgraded(directory: &str) -> Memory {
    let store = memory(directory, &rows_of(directory));
    wait(upgrade(&store));
    store
}

/// Whose objects a path lists, of which resource, and its query.
fn asked(path: &str, organization: OrganizationId) -> (OrganizationId, &'static ResourceSpec, String) {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let plural = path.rsplit('/').next().unwrap();
    let spec = resources::specs().find(|spec| spec.plural == plural).unwrap();
    let owner = match path.strip_prefix("/admin/v1/organizations/").and_then(|rest| rest.split('/').next()) {
        Some(id) if plural != "organizations" => OrganizationId::parse(id).unwrap(),
        _ => organization,
    };
    (owner, spec, query.to_owned())
}

/// All ids of a list, page after page.
fn ids(store: &dyn Store, organization: OrganizationId, spec: &'static ResourceSpec, query: &str) -> Vec<String> {
    let (mut found, mut after) = (Vec::new(), String::new());
    loop {
        let query = format!("{query}{}limit=100{after}", if query.is_empty() { "" } else { "&" });
        let query = ListQuery::parse(&query, spec).unwrap();
        let page: Value =
            serde_json::from_slice(&wait(operations::list(store, organization, spec, &query)).unwrap().body).unwrap();
        found.extend(page["data"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()));
        match page["next_cursor"].as_str().filter(|_| page["has_more"] == true) {
            Some(cursor) => after = format!("&starting_after={cursor}"),
            None => return found,
        }
    }
}

#[track_caller]
fn check_lists(store: &dyn Store, lists: &Value, organization: OrganizationId) -> usize {
    let lists = lists.as_object().unwrap();
    for (path, expected) in lists {
        let (owner, spec, query) = asked(path, organization);
        let expected: Vec<&str> = expected.as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
        assert_eq!(ids(store, owner, spec, &query), expected, "{path}");
    }
    lists.len()
}

#[test]
fn every_list_answers_as_before_through_every_filter() {
    for directory in STORES {
        let (store, answers) = (upgraded(directory), answers(directory));
        let mut lists = check_lists(&store, &answers["lists"], SYSTEM);
        for organization in answers["organizations"].as_array().unwrap() {
            let id = OrganizationId::parse(organization["id"].as_str().unwrap()).unwrap();
            lists += check_lists(&store, &organization["lists"], id);
        }
        assert!(lists > 100, "{directory}: {lists}");
    }
}

#[test]
fn failed_deliveries_of_older_stores_are_listed() {
    for directory in STORES {
        let (store, answers) = (upgraded(directory), answers(directory));
        let mut count = 0;
        for organization in answers["organizations"].as_array().unwrap() {
            let id = OrganizationId::parse(organization["id"].as_str().unwrap()).unwrap();
            let rows = wait(store.scan(&Span::newest_first(&key::records(id, &delivery::SPEC)), usize::MAX)).unwrap();
            let records = rows.into_iter().map(|row| row.unwrap());
            let objects = records.map(|record| serde_json::from_slice::<Value>(&record.value).unwrap());
            let failed: Vec<Value> = objects.filter(|one| one["status"] == "failed").collect();
            let name = |one: &Value| one["id"].as_str().unwrap().to_owned();
            let expected: Vec<String> = failed.iter().map(name).collect();
            assert_eq!(ids(&store, id, &delivery::SPEC, "status=failed"), expected, "{directory}");
            for one in &failed {
                let query = format!("status=failed&endpoint={}", one["endpoint_id"].as_str().unwrap());
                assert!(ids(&store, id, &delivery::SPEC, &query).contains(&name(one)), "{directory}");
            }
            count += failed.len();
        }
        assert!(count > 0, "{directory} has no failed delivery");
    }
}

/// Members are only added, and the revision tells that.
#[test]
fn every_object_answers_as_before() {
    for directory in STORES {
        let (store, answers) = (upgraded(directory), answers(directory));
        let mut objects = Vec::new();
        let mut take = |all: &Value, organization: OrganizationId| {
            for (path, answer) in all.as_object().unwrap() {
                let (list, id) = path.rsplit_once('/').unwrap();
                let (_, spec, _) = asked(list, organization);
                objects.push((organization, spec, id.to_owned(), answer.clone()));
            }
        };
        take(&answers["objects"], SYSTEM);
        for organization in answers["organizations"].as_array().unwrap() {
            take(&organization["objects"], OrganizationId::parse(organization["id"].as_str().unwrap()).unwrap());
        }
        assert!(objects.len() > 200, "{directory}: {}", objects.len());
        for (organization, spec, id, answer) in objects {
            let owner = if matches!(spec.object, "event" | "delivery") {
                wait(operations::owner_of(&store, spec, &id)).unwrap().id
            } else {
                organization
            };
            let record = wait(operations::get(&store, owner, spec, &id)).unwrap();
            // What an organization uses is counted for the answer; the record does not contain it.
            let (body, usage) = answer["body"].as_str().unwrap().split_once(",\"usage\":").map_or_else(
                || (answer["body"].as_str().unwrap().to_owned(), false),
                |(stored, _)| (format!("{stored}}}"), true),
            );
            assert!(!usage || spec.object == "organization", "{} {id}", spec.object);
            let before: Value = serde_json::from_str(&body).unwrap();
            let now: Value = serde_json::from_slice(&record.value).unwrap();
            let revision: u64 = answer["etag"].as_str().unwrap().trim_matches('"').parse().unwrap();
            let changed = u64::from(record.value != body);
            assert_eq!(record.revision, revision + changed, "{} {id}", spec.object);
            for (name, member) in before.as_object().unwrap().iter().filter(|(name, _)| *name != "lines") {
                assert_eq!(&now[name], member, "{} {id}: {name}", spec.object);
            }
            let names: BTreeSet<&str> = now.as_object().unwrap().keys().map(String::as_str).collect();
            let known: BTreeSet<&str> = spec.fields.iter().map(|field| field.name).collect();
            let is_event = spec.object == "event";
            assert!(if is_event { names.is_subset(&known) } else { names == known }, "{} {id}", spec.object);
        }
    }
}

#[test]
fn the_new_filter_finds_every_rental_of_before() {
    for directory in STORES {
        let (store, answers) = (upgraded(directory), answers(directory));
        for organization in answers["organizations"].as_array().unwrap() {
            let id = OrganizationId::parse(organization["id"].as_str().unwrap()).unwrap();
            let spec = &resources::rental::SPEC;
            let all = ids(&store, id, spec, "");
            let vehicles = ids(&store, id, &resources::vehicle::SPEC, "");
            let of = |vehicle: &String| ids(&store, id, spec, &format!("vehicle={vehicle}"));
            let mut found: Vec<String> = vehicles.iter().flat_map(of).collect();
            found.sort();
            found.reverse();
            assert!(!all.is_empty());
            assert_eq!(found, all);
            // In the order of the last change, rising: a sync list.
            let mut synced = ids(&store, id, spec, "updated[gte]=2000-01-01T00:00:00Z");
            synced.sort();
            synced.reverse();
            assert_eq!(synced, all);
        }
    }
}

#[test]
fn keys_and_secrets_open_as_before() {
    for directory in STORES {
        let (store, answers) = (upgraded(directory), answers(directory));
        for organization in answers["organizations"].as_array().unwrap() {
            let hash = api_keys::key_hash(organization["key"].as_str().unwrap()).unwrap();
            let found = wait(store.get(&[key::access(&hash)])).unwrap().pop().flatten().unwrap();
            assert!(api_keys::open_entry(&found.value, &hash).is_some());
        }
        let text = String::from_utf8(fixture(directory, "master-key")).unwrap();
        let mut bytes = [0; 32];
        hex::decode_to_slice(text.trim(), &mut bytes).unwrap();
        let master = MasterKey::new(&bytes);
        let endpoints = ids(&store, SYSTEM, &resources::webhook_endpoint::SPEC, "");
        assert!(endpoints.len() >= 5);
        for endpoint in endpoints {
            let endpoint = EndpointId::parse(&endpoint).unwrap();
            let found = wait(store.get(&[key::secrets(endpoint)])).unwrap().pop().flatten().unwrap();
            let Sealed(sealed) = serde_json::from_slice(&found.value).unwrap();
            assert!(!sealed.is_empty() && sealed.iter().all(|one| master.open(endpoint, &one.sealed).is_ok()));
        }
    }
}
