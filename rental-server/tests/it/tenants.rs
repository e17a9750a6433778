//! Walls between organizations, as a matrix made from the resource descriptions: every operation of `/v1`, every place
//! in which a request can name an object, every kind of stranger. A stranger is answered like an id that never was,
//! byte for byte (`docs/decisions.md`, "Identity and values"). A new field or filter is covered as soon as it is described.

use crate::support::{Organization, Reply, Server, percent_encode};
use rental_core::{
    resources::{api, spec_of},
    schema::{FieldSpec, Kind, Presence, ResourceSpec},
};
use serde_json::{Value, json};
use std::collections::HashMap;

/// A well-formed id that no object has.
const UNKNOWN: &str = "01900000-0000-7000-8000-00000000dead";
/// Text that is no id of this API, and the one id that no object may have.
const MALFORMED: [&str; 5] = ["cus_123", "0", "00000000-0000-0000-0000-000000000000", "%2e%2e", "01900000000070008000"];

/// Two organizations with an object of each kind.
struct Walls<'s> {
    own: Organization<'s>,
    foreign: Organization<'s>,
    own_ids: HashMap<&'static str, String>,
    foreign_ids: HashMap<&'static str, String>,
}

impl Walls<'static> {
    fn new() -> Self {
        let (own, foreign) = (Server::shared().organization(), Server::shared().organization());
        let ids = |organization: &Organization| organization.one_of_each().into_iter().collect::<HashMap<_, _>>();
        let (own_ids, foreign_ids) = (ids(&own), ids(&foreign));
        // The nights of the descriptions' examples: a clash would betray that the foreign vehicle exists.
        let nights = json!({"start_date": "2026-06-01", "end_date": "2026-06-05", "status": "APPROVED"});
        foreign.rental(&foreign_ids["vehicles"], nights);
        Self { own, foreign, own_ids, foreign_ids }
    }
}

impl Walls<'_> {
    /// Ids of a `plural` that the caller must not be able to tell from `UNKNOWN`.
    fn strangers(&self, plural: &str) -> Vec<String> {
        let own = &self.own_ids[plural];
        let of_another_kind = self.own_ids.iter().filter(|(kind, _)| **kind != plural).map(|(_, id)| id.clone());
        let misspelled = [own.to_uppercase(), own.replace('-', "")].into_iter().filter(|text| text != own);
        let malformed = MALFORMED.into_iter().map(str::to_owned);
        let foreign = [self.foreign_ids[plural].clone(), self.foreign.id.clone()];
        foreign.into_iter().chain(of_another_kind).chain(misspelled).chain(malformed).collect()
    }

    /// A body of every field that `verb` takes, from the examples, about objects of the caller's own.
    fn body(&self, spec: &ResourceSpec, presence: fn(&FieldSpec) -> Presence, least: Presence) -> Value {
        let mut body = json!({});
        for field in spec.fields {
            let taken = presence(field) == Presence::Required || presence(field) == least;
            if taken && presence(field) != Presence::Never {
                body[field.name] = match field.kind {
                    Kind::Reference(object) => json!(self.own_ids[plural_of(object)]),
                    _ => serde_json::from_str(field.example).expect("an example is JSON"),
                };
            }
        }
        body
    }
}

fn plural_of(object: &str) -> &'static str {
    spec_of(object).expect("references name resources").plural
}

fn references(
    spec: &'static ResourceSpec,
    presence: fn(&FieldSpec) -> Presence,
) -> impl Iterator<Item = (&'static str, &'static str)> {
    spec.fields.iter().filter(move |field| presence(field) != Presence::Never).filter_map(|field| match field.kind {
        Kind::Reference(object) => Some((field.name, plural_of(object))),
        _ => None,
    })
}

/// Everything that a caller can see of an answer but the request's own id and the time.
fn seen(reply: &Reply) -> (u16, Vec<(String, String)>, String) {
    let id = reply.header("request-id").expect("every answer has one");
    let told = |name: &str| !["request-id", "date"].contains(&name);
    let lower = reply.headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone()));
    (reply.status, lower.filter(|(name, _)| told(name)).collect(), reply.text().replace(id, "REQUEST"))
}

/// The answers to `ask` about each stranger are the answer about an unknown id, which is `status`.
#[track_caller]
fn like_unknown(place: &str, status: u16, strangers: &[String], ask: impl Fn(&str) -> Reply) -> usize {
    let unknown = ask(UNKNOWN);
    assert_eq!(unknown.status, status, "{place}: {}", unknown.text());
    for stranger in strangers {
        let answer = ask(stranger);
        assert_eq!(seen(&answer), seen(&unknown), "{place} with {stranger}");
    }
    strangers.len()
}

#[test]
fn a_strangers_id_in_a_path_is_an_unknown_id() {
    let walls = Walls::new();
    let mut probes = 0;
    for row in api() {
        let plural = row.spec.plural;
        let path = |id: &str| format!("/v1/{plural}/{id}");
        if row.get {
            let strangers = walls.strangers(plural);
            for header in [("If-None-Match", "\"1\""), ("If-None-Match", "*"), ("X-Nothing", "1")] {
                let place = format!("GET /v1/{plural}/ with {header:?}");
                probes += like_unknown(&place, 404, &strangers, |id| {
                    walls.own.call_with("GET", &path(id), &[header], &Value::Null)
                });
            }
        }
        if row.update.is_some() {
            let whole = walls.body(row.spec, |field| field.update, Presence::Optional);
            for body in [json!({}), whole] {
                for if_match in ["*", "\"1\"", "\"2\"", ""] {
                    let headers: &[_] = if if_match.is_empty() { &[] } else { &[("If-Match", if_match)] };
                    let place = format!("PATCH /v1/{plural}/ with If-Match {if_match} and {body}");
                    probes += like_unknown(&place, 404, &walls.strangers(plural), |id| {
                        walls.own.call_with("PATCH", &path(id), headers, &body)
                    });
                }
            }
        }
    }
    assert!(probes > 400, "{probes} probes");
}

#[test]
fn a_stranger_in_a_body_is_an_unknown_id() {
    let walls = Walls::new();
    let mut probes = 0;
    for row in api() {
        let path = format!("/v1/{}", row.spec.plural);
        if row.create.is_some() {
            for least in [Presence::Required, Presence::Optional] {
                for (field, plural) in references(row.spec, |field| field.create) {
                    let mut body = walls.body(row.spec, |field| field.create, least);
                    if body["status"] != Value::Null && row.spec.object == "rental" {
                        body["status"] = json!("APPROVED");
                    }
                    probes += like_unknown(&format!("POST {path} {field}"), 400, &walls.strangers(plural), |id| {
                        let mut body = body.clone();
                        body[field] = json!(id);
                        walls.own.post(&path, &body)
                    });
                }
            }
        }
        if row.update.is_some() {
            let path = format!("{path}/{}", walls.own_ids[row.spec.plural]);
            for (field, plural) in references(row.spec, |field| field.update) {
                probes += like_unknown(&format!("PATCH {path} {field}"), 400, &walls.strangers(plural), |id| {
                    walls.own.patch(&path, &json!({field: id}))
                });
            }
        }
    }
    assert!(probes > 100, "{probes} probes");
}

#[test]
fn a_stranger_in_a_filter_matches_nothing() {
    let walls = Walls::new();
    let mut probes = 0;
    for row in api().filter(|row| row.list) {
        for filter in row.spec.filters {
            let Some(Kind::Reference(object)) = row.spec.field(filter.field).map(|field| field.kind) else { continue };
            let strangers = walls.strangers(plural_of(object));
            for rest in ["", "&limit=1", "&created[gte]=2020-01-01T00:00:00Z"] {
                let place = format!("GET /v1/{}?{}={rest}", row.spec.plural, filter.param);
                let ask = |id: &str| {
                    walls.own.get(&format!("/v1/{}?{}={}{rest}", row.spec.plural, filter.param, percent_encode(id)))
                };
                assert_eq!(ask(UNKNOWN).ok()["data"], json!([]), "{place}");
                probes += like_unknown(&place, 200, &strangers, ask);
            }
        }
    }
    assert!(probes > 100, "{probes} probes");
}

/// A cursor is a position, never looked up: one made of a foreign id is as good as one beside it that nobody has.
#[test]
fn a_strangers_cursor_is_only_a_position() {
    let walls = Walls::new();
    for row in api().filter(|row| row.list) {
        let path = format!("/v1/{}?starting_after=", row.spec.plural);
        for foreign in walls.foreign_ids.values().chain([&walls.foreign.id]) {
            let (head, last) = foreign.split_at(foreign.len() - 1);
            let neighbour = format!("{head}{}", if last == "0" { "1" } else { "0" });
            let answers = [foreign, &neighbour].map(|id| seen(&walls.own.get(&format!("{path}{id}"))));
            assert_eq!(answers[0], answers[1], "{path}{foreign}");
            assert_eq!(answers[0].0, 200);
        }
        for malformed in MALFORMED.into_iter().filter(|text| text.len() != 36) {
            let found = walls.own.get(&format!("{path}{}", percent_encode(malformed))).bad_fields();
            assert_eq!(found, [("starting_after".to_owned(), "parameter_invalid".to_owned())], "{malformed}");
        }
    }
}

#[test]
fn no_list_shows_anything_of_another_organization() {
    let walls = Walls::new();
    let foreign: Vec<&String> = walls.foreign_ids.values().chain([&walls.foreign.id]).collect();
    for row in api().filter(|row| row.list) {
        let all = format!("/v1/{}?limit=100", row.spec.plural);
        let mut paths = vec![all.clone(), format!("{all}&starting_after=ffffffff-ffff-7fff-bfff-ffffffffffff")];
        for filter in row.spec.filters {
            let values: Vec<&str> = match row.spec.field(filter.field).map_or(Kind::Boolean, |field| field.kind) {
                Kind::Boolean => vec!["true", "false"],
                Kind::Word(words) => words.to_vec(),
                Kind::Reference(object) => vec![&walls.own_ids[plural_of(object)]],
                _ => vec!["one@example.com"],
            };
            paths.extend(values.iter().map(|value| format!("{all}&{}={}", filter.param, percent_encode(value))));
        }
        for path in paths {
            let page = walls.own.get(&path);
            assert_eq!(page.status, 200, "{path}: {}", page.text());
            assert!(foreign.iter().all(|id| !page.text().contains(id.as_str())), "{path}: {}", page.text());
        }
        let own = walls.own.get(&all).text();
        assert!(own.contains(&walls.own_ids[row.spec.plural]), "the list shows what is the caller's: {own}");
    }
}

#[test]
fn an_idempotency_key_of_another_organization_is_a_fresh_one() {
    let walls = Walls::new();
    for row in api().filter(|row| row.create.is_some()) {
        let path = format!("/v1/{}", row.spec.plural);
        let key = format!("shared-{}", row.spec.plural);
        let headers = [("Idempotency-Key", key.as_str())];
        let body = walls.body(row.spec, |field| field.create, Presence::Required);
        let theirs = walls.foreign.call_with("POST", &path, &headers, &foreign_body(&walls, &body));
        let ours = walls.own.call_with("POST", &path, &headers, &body);
        assert_ne!(theirs.id(), ours.id(), "{path}");
        assert_eq!(ours.header("idempotent-replayed"), None, "{path}");
        assert_eq!(walls.own.call_with("POST", &path, &headers, &body).body, ours.body);
        let mut other = body.clone();
        other["surplus"] = json!(1);
        let refused = |organization: &Organization, word: &str, body: &Value| {
            let key = format!("{word}-{}", row.spec.plural);
            organization.call_with("POST", &path, &[("Idempotency-Key", &key)], body)
        };
        refused(&walls.foreign, "theirs-alone", &json!({}));
        let fresh = seen(&refused(&walls.own, "nobodys", &other));
        assert_eq!(seen(&refused(&walls.own, "theirs-alone", &other)), fresh, "{path}");
    }
}

/// The same body about the other organization's objects.
fn foreign_body(walls: &Walls, body: &Value) -> Value {
    let mut text = body.to_string();
    for (plural, id) in &walls.own_ids {
        text = text.replace(id, &walls.foreign_ids[plural]);
    }
    serde_json::from_str(&text).expect("still JSON")
}

#[test]
fn a_key_reads_and_writes_its_own_organization_only() {
    let walls = Walls::new();
    for (plural, id) in &walls.foreign_ids {
        let path = format!("/v1/{plural}/{id}");
        walls.own.get(&path).error(404, "invalid_request_error", "resource_missing");
        let before = walls.foreign.get(&path);
        walls.own.patch(&path, &json!({"customer_id": walls.own_ids["customers"]}));
        let after = walls.foreign.get(&path);
        assert_eq!((after.ok(), after.header("etag")), (before.ok(), before.header("etag")), "{path}");
    }
}
