//! Every operation of the served OpenAPI documents is held to what all operations promise, so none can be added without.

use crate::operator::operators;
use crate::support::{Connection, Organization, Reply, Server, percent_encode, rules};
use serde_json::{Value, json};

/// One operation of a document.
struct Operation {
    method: String,
    path: String,
    /// The answers that it declares.
    responses: Vec<String>,
}

impl Operation {
    fn is_write(&self) -> bool {
        self.method != "GET"
    }

    /// The path with this id in the place of each parameter, and with the query that it requires.
    fn at(&self, id: &str) -> String {
        let mut path = rules::with_required_query(&self.path);
        while let Some((before, rest)) = path.split_once('{') {
            let (_, after) = rest.split_once('}').unwrap();
            path = format!("{before}{id}{after}");
        }
        path
    }

    fn send(&self, server: &Server, path: &str, token: Option<&str>, body: &[u8]) -> Reply {
        let bearer = format!("Bearer {}", token.unwrap_or_default());
        let mut headers = vec![("Content-Type", "application/json")];
        headers.extend(token.map(|_| ("Authorization", bearer.as_str())));
        Connection::open(&server.address).send(&self.method, path, &headers, if self.is_write() { body } else { b"" })
    }
}

/// The operations of a document whose paths begin so; there must be some.
#[track_caller]
fn operations(document: &str, prefix: &str) -> Vec<Operation> {
    let document = Connection::open(&Server::shared().address).send("GET", document, &[], b"").ok();
    let mut all = Vec::new();
    for (path, item) in document["paths"].as_object().expect("the document has paths") {
        for (method, operation) in item.as_object().unwrap() {
            if path.starts_with(prefix) && ["get", "post", "put", "patch", "delete"].contains(&method.as_str()) {
                let responses = operation["responses"].as_object().expect("an operation has responses");
                let responses = responses.keys().cloned().collect();
                all.push(Operation { method: method.to_uppercase(), path: path.clone(), responses });
            }
        }
    }
    assert!(!all.is_empty(), "no operation begins with {prefix}");
    all
}

fn of_organizations() -> Vec<Operation> {
    operations("/openapi.json", "/v1/")
}

fn of_operators() -> Vec<Operation> {
    operations("/openapi-admin.json", "/admin/v1/")
}

#[test]
fn the_document_has_the_operations_of_the_specification_and_of_the_decisions_and_no_others() {
    let mut found: Vec<(String, String)> = of_organizations().into_iter().map(|one| (one.method, one.path)).collect();
    let mut expected = rules::OPERATIONS.map(|(method, path)| (method.to_owned(), path.to_owned()));
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
}

#[test]
fn every_operation_without_a_key_is_401() {
    for one in of_organizations().iter().chain(&of_operators()) {
        for (token, code) in [(None, "api_key_missing"), (Some("nonsense"), "api_key_invalid")] {
            let reply = one.send(Server::shared(), &one.at(rules::UNKNOWN_ID), token, b"{}");
            reply.error(401, "authentication_error", code);
        }
    }
}

#[test]
fn every_operation_of_an_organization_on_the_free_plan_is_403() {
    let free = Server::shared().organization_with(&json!({"name": "Free", "plan": "free"}));
    for one in of_organizations() {
        let reply = one.send(free.server, &one.at(rules::UNKNOWN_ID), Some(&free.write), b"{}");
        reply.error(403, "permission_error", "plan_required");
    }
}

#[test]
fn every_write_with_a_read_key_is_403_and_every_get_is_not() {
    let organization = Server::shared().organization();
    for one in of_organizations() {
        let reply = one.send(organization.server, &one.at(rules::UNKNOWN_ID), Some(&organization.read), b"{}");
        if one.is_write() {
            reply.error(403, "permission_error", "insufficient_scope");
        } else {
            assert!([200, 404].contains(&reply.status), "{}: {}", one.path, reply.text());
        }
    }
}

#[test]
fn every_operation_on_an_unknown_or_foreign_id_is_the_same_404() {
    let [own, other] = [Server::shared().organization(), Server::shared().organization()];
    let foreign = other.one_of_each();
    for one in of_organizations().iter().filter(|one| one.path.contains('{')) {
        let (_, id) = foreign.iter().find(|(plural, _)| one.path.contains(&format!("/{plural}/"))).expect("an object");
        let send = |id: &str| one.send(own.server, &one.at(id), Some(&own.write), b"{}");
        let unknown = send(rules::UNKNOWN_ID);
        unknown.error(404, "invalid_request_error", "resource_missing");
        for id in [id, "x", &percent_encode("../x")] {
            let reply = send(id);
            assert_eq!(rules::without_request_id(&reply), rules::without_request_id(&unknown), "{} {id}", one.path);
            assert_eq!(reply.status, 404);
        }
    }
}

#[test]
fn every_admin_operation_on_an_unknown_id_is_404() {
    let server = Server::shared();
    for one in of_operators().iter().filter(|one| one.path.contains('{') && one.method == "GET") {
        let reply = one.send(server, &one.at(rules::UNKNOWN_ID), Some(&server.admin_token), b"");
        reply.error(404, "invalid_request_error", "resource_missing");
    }
}

#[test]
fn every_admin_operation_refuses_the_keys_of_organizations() {
    let organization = Server::shared().organization();
    for one in of_operators() {
        let reply = one.send(organization.server, &one.at(&organization.id), Some(&organization.write), b"{}");
        reply.error(401, "authentication_error", "api_key_invalid");
    }
}

/// `read_only` has GET, `operator` everything but operators, the master key, the clock, deletion and erasing (decisions, Second round).
#[test]
fn every_admin_operation_is_403_for_the_roles_that_may_not_and_for_no_other() {
    let server = Server::shared();
    let tokens = ["read_only", "operator", "owner"]
        .map(|role| (role, operators::operator(server, &json!({"name": role, "role": role})).1));
    for one in of_operators() {
        let for_owners = ["/operators", "/master_key", "/clock", "/erase"].iter().any(|word| one.path.contains(word))
            || (one.method == "DELETE" && one.path == "/admin/v1/organizations/{id}");
        for (role, token) in &tokens {
            let allowed = match *role {
                "read_only" => !for_owners && !one.is_write(),
                "operator" => !for_owners,
                _ => true,
            };
            // Writes without any effect: the id is of nothing and the body has a field that does not exist. 409: another
            // test takes a backup or an export.
            let reply = one.send(server, &one.at(rules::UNKNOWN_ID), Some(token), b"{\"nonsense\":1}");
            if allowed {
                assert!(
                    [200, 400, 404, 409].contains(&reply.status),
                    "{role} {} {}: {}",
                    one.method,
                    one.path,
                    reply.text()
                );
            } else {
                reply.error(403, "permission_error", "insufficient_role");
                assert!(one.responses.iter().any(|known| known == "403"), "{} {}", one.method, one.path);
            }
        }
    }
}

#[test]
fn every_write_refuses_what_is_not_one_json_object_and_what_it_does_not_know() {
    let organization = Server::shared().organization();
    let objects = organization.one_of_each();
    for one in of_organizations().iter().filter(|one| one.is_write()) {
        let id = objects.iter().find(|(plural, _)| one.path.contains(&format!("/{plural}/"))).map_or("", |(_, id)| id);
        let send = |body: &[u8]| one.send(organization.server, &one.at(id), Some(&organization.write), body);
        for bad in [&b"{"[..], b"[]", b"null", b"\"a\"", b"{}{}", b"\xff"] {
            send(bad).error(400, "invalid_request_error", "body_invalid_json");
        }
        let named = send(b"{\"nonsense\":1}").bad_fields();
        assert!(named.contains(&("nonsense".to_owned(), "parameter_unknown".to_owned())), "{}: {named:?}", one.path);
    }
}

/// The fields that the JSON body of an operation takes.
fn fields_of(document: &Value, one: &Operation) -> Vec<String> {
    let operation = &document["paths"][&one.path][one.method.to_lowercase()];
    let mut schema = &operation["requestBody"]["content"]["application/json"]["schema"];
    while let Some(place) = schema["$ref"].as_str() {
        schema = document.pointer(place.trim_start_matches('#')).expect("the schema");
    }
    schema["properties"].as_object().map(|all| all.keys().cloned().collect()).unwrap_or_default()
}

/// Words of this program or of its parsers that say nothing to a client.
fn internal_word(message: &str) -> Option<&str> {
    let words = message.split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != ':');
    let is_type = |word: &str| {
        let (bits, rest) = (word.trim_start_matches(['u', 'i', 'f']), word.len());
        ["8", "16", "32", "64", "size"].contains(&bits) && rest == bits.len() + 1
    };
    // `TwoWords`, as types are named.
    let is_camel = |word: &str| {
        let second = word.get(1..).unwrap_or_default();
        word.starts_with(|c: char| c.is_ascii_uppercase())
            && second.contains(|c: char| c.is_ascii_lowercase())
            && second.contains(|c: char| c.is_ascii_uppercase())
    };
    let known = ["struct", "enum", "tuple", "variant", "newtype", "elements", "unit", "serde"];
    words.into_iter().find(|word| known.contains(word) || word.contains("::") || is_type(word) || is_camel(word))
}

#[test]
fn no_operation_names_what_is_internal_when_a_body_is_wrong() {
    assert_eq!(internal_word("invalid length 0, expected struct Asked with 4 elements"), Some("struct"));
    assert_eq!(internal_word("expected u32 at"), Some("u32"));
    assert_eq!(internal_word("an MissedBody"), Some("MissedBody"));
    let server = Server::start(&[]);
    let organization = server.organization();
    let mut objects = organization.one_of_each();
    let body = json!({"organization_id": organization.id, "url": "https://receiver.invalid/"});
    objects.push(("webhook_endpoints", server.admin("POST", "/admin/v1/webhook_endpoints", &body).id()));
    let body = json!({"organization_id": organization.id, "scope": "read"});
    objects.push(("api_keys", server.admin("POST", "/admin/v1/api_keys", &body).id()));
    objects.push(("operators", operators::operator(&server, &json!({"name": "One", "role": "operator"})).0));
    objects.push(("organizations", organization.id.clone()));
    let mut found = Vec::new();
    for (document, prefix, key) in
        [("/openapi.json", "/v1/", &organization.write), ("/openapi-admin.json", "/admin/v1/", &server.admin_token)]
    {
        let mut all = operations(document, prefix);
        let document = Connection::open(&server.address).send("GET", document, &[], b"").ok();
        // The objects are needed until the end.
        all.sort_by_key(|one| one.method == "DELETE");
        for one in all.iter().filter(|one| one.is_write()) {
            let id = objects.iter().find(|(plural, _)| one.path.contains(&format!("/{plural}/")));
            let path = one.at(id.map_or(rules::UNKNOWN_ID, |(_, id)| id));
            let wrong = ["[]", "[null]", "\"x\"", "1", "null", "{", "{\"nonsense\":1}"].map(str::to_owned);
            let fields = fields_of(&document, one).into_iter();
            let typed =
                fields.flat_map(|field| ["[]", "{}", "1.5", "true"].map(|value| format!("{{\"{field}\":{value}}}")));
            for body in wrong.into_iter().chain(typed) {
                let reply = one.send(&server, &path, Some(key), body.as_bytes());
                assert!(reply.status < 500, "{} {path} {body}: {}", one.method, reply.text());
                let Ok(answer) = serde_json::from_str::<Value>(&reply.text()) else { continue };
                let errors = answer["error"]["errors"].as_array().cloned().unwrap_or_default();
                for error in errors.iter().chain([&answer["error"]]) {
                    let message = error["message"].as_str().unwrap_or_default();
                    if let Some(word) = internal_word(message) {
                        found.push(format!("{} {} {body}: {word} in {message}", one.method, one.path));
                    }
                }
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn every_operation_refuses_an_unknown_parameter() {
    let organization = Server::shared().organization();
    let objects = organization.one_of_each();
    for one in of_organizations() {
        let id = objects.iter().find(|(plural, _)| one.path.contains(&format!("/{plural}/"))).map_or("", |(_, id)| id);
        let path = one.at(id);
        let path = format!("{path}{}nonsense=1", if path.contains('?') { '&' } else { '?' });
        let reply = one.send(organization.server, &path, Some(&organization.write), b"{}");
        assert_eq!(reply.bad_fields(), [("nonsense".to_owned(), "parameter_unknown".to_owned())], "{}", one.path);
    }
}

#[test]
fn every_operation_declares_the_answers_that_it_can_give() {
    for one in of_organizations() {
        let mut expected = vec!["200", "400", "401", "403"];
        if one.path.contains('{') {
            expected.push("404");
        }
        if one.is_write() {
            expected.extend(["413", "415"]);
        }
        for status in expected {
            assert!(one.responses.iter().any(|known| known == status), "{} {} lacks {status}", one.method, one.path);
        }
    }
}

/// The answer of a GET, POST or PATCH that works has every field that the document requires of it, and no other.
#[test]
fn every_object_has_the_fields_of_its_schema() {
    let document = Connection::open(&Server::shared().address).send("GET", "/openapi.json", &[], b"").ok();
    let organization = Server::shared().organization();
    for (plural, id) in organization.one_of_each() {
        let path = format!("/v1/{plural}/{{id}}");
        let schema = &document["paths"][&path]["get"]["responses"]["200"]["content"]["application/json"]["schema"];
        let schema = resolved(&document, schema);
        let object = object(&organization, plural, &id);
        let mut found: Vec<&String> = object.as_object().unwrap().keys().collect();
        let mut declared: Vec<&String> =
            schema["properties"].as_object().expect("a schema has properties").keys().collect();
        found.sort();
        declared.sort();
        assert_eq!(found, declared, "{plural}");
    }
}

#[track_caller]
fn object(organization: &Organization<'_>, plural: &str, id: &str) -> Value {
    organization.get(&format!("/v1/{plural}/{id}")).ok()
}

/// What a `$ref` leads to.
#[track_caller]
fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    match schema["$ref"].as_str() {
        Some(place) => {
            document.pointer(place.trim_start_matches('#')).unwrap_or_else(|| panic!("{place} leads nowhere"))
        }
        None => schema,
    }
}
