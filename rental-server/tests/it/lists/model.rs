//! Filters against a model: the same objects in a vector, searched from one end to the other.

use crate::support::{Organization, Server, rules};
use serde_json::{Value, json};

/// Numbers that look random and are the same in every run (xorshift64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }

    fn pick<'a>(&mut self, values: &'a [Value]) -> &'a Value {
        &values[self.below(values.len())]
    }
}

/// A list with its filters: parameter, field, and the values that objects have in it.
struct Case {
    plural: &'static str,
    filters: Vec<(&'static str, &'static str, Vec<Value>)>,
    /// Fields that a PATCH may change.
    patched: &'static [&'static str],
}

/// Makes objects, changes some, and asks for every combination of filters and random ranges and positions.
#[track_caller]
fn check(organization: &Organization<'_>, case: &Case, seed: u64) {
    let mut dice = Dice(seed);
    let mut model: Vec<Value> = Vec::new();
    for _ in 0..60 {
        let mut fields = json!({});
        for (_, field, values) in &case.filters {
            fields[field] = dice.pick(values).clone();
        }
        let id = organization.one_more(case.plural, fields);
        model.insert(0, organization.get(&format!("/v1/{}/{id}", case.plural)).ok());
    }
    for _ in 0..40 {
        let at = dice.below(model.len());
        let (_, field, values) = &case.filters[dice.below(case.filters.len())];
        if case.patched.contains(field) {
            let path = format!("/v1/{}/{}", case.plural, model[at]["id"].as_str().unwrap());
            model[at] = organization.patch(&path, &json!({*field: dice.pick(values)})).ok();
        }
    }
    for round in 0..150 {
        let (query, kept) = question(&mut dice, case, &model);
        let found = rules::walk(organization, case.plural, &query, 1 + dice.below(30));
        assert_eq!(rules::ids(&found), rules::ids(&kept), "{}?{query} in round {round}", case.plural);
        assert_eq!(found, kept);
    }
}

/// A random query and its answer.
fn question(dice: &mut Dice, case: &Case, model: &[Value]) -> (String, Vec<Value>) {
    let mut query = String::new();
    let mut kept = model.to_vec();
    for (param, field, values) in &case.filters {
        if dice.below(2) == 0
            && let Some(wanted) = dice.pick(values).as_str()
        {
            query.push_str(&format!("&{param}={wanted}"));
            kept.retain(|object| object[*field] == wanted);
        }
    }
    for (param, wanted_before) in [("created[gte]", false), ("created[lt]", true)] {
        if dice.below(3) == 0 {
            let bound = dice.pick(model)["created_at"].as_str().unwrap();
            query.push_str(&format!("&{param}={bound}"));
            kept.retain(|object| (object["created_at"].as_str().unwrap() < bound) == wanted_before);
        }
    }
    (query, kept)
}

fn customers(organization: &Organization<'_>) -> Vec<Value> {
    (0..3).map(|_| json!(organization.customer(json!({})))).collect()
}

#[test]
fn combined_filters_of_rentals_select_what_a_full_search_selects() {
    let organization = Server::shared().organization();
    let statuses = ["NEW", "APPROVED", "ACTIVE", "COMPLETED", "CANCELLED"].map(|status| json!(status)).to_vec();
    let vehicles = (0..3).map(|_| json!(organization.vehicle(json!({})))).collect();
    let filters = vec![
        ("status", "status", statuses),
        ("customer", "customer_id", customers(&organization)),
        ("vehicle", "vehicle_id", vehicles),
    ];
    check(&organization, &Case { plural: "rentals", filters, patched: &["status", "customer_id", "vehicle_id"] }, 1);
}

#[test]
fn combined_filters_of_tolls_and_violations_select_what_a_full_search_selects() {
    let organization = Server::shared().organization();
    let or_none = |mut values: Vec<Value>| {
        values.push(Value::Null);
        values
    };
    for (plural, seed) in [("tolls", 2), ("violations", 3)] {
        let vehicles = or_none((0..3).map(|_| json!(organization.vehicle(json!({})))).collect());
        let filters =
            vec![("vehicle", "vehicle_id", vehicles), ("customer", "customer_id", or_none(customers(&organization)))];
        check(&organization, &Case { plural, filters, patched: &["customer_id"] }, seed);
    }
}

#[test]
fn the_filters_of_invoices_select_what_a_full_search_selects() {
    let organization = Server::shared().organization();
    let owners = customers(&organization);
    let mut dice = Dice(4);
    let mut model = Vec::new();
    for _ in 0..40 {
        let id = organization.one_more("invoices", json!({"customer_id": dice.pick(&owners)}));
        if let Some(action) = ["pay", "void"].get(dice.below(4)) {
            organization.server.admin("POST", &format!("/admin/v1/invoices/{id}/{action}"), &Value::Null).ok();
        }
        model.insert(0, organization.get(&format!("/v1/invoices/{id}")).ok());
    }
    let statuses = ["open", "paid", "void"].map(|status| json!(status)).to_vec();
    let filters = vec![("status", "status", statuses), ("customer", "customer_id", owners)];
    let case = Case { plural: "invoices", filters, patched: &[] };
    for _ in 0..100 {
        let (query, kept) = question(&mut dice, &case, &model);
        assert_eq!(rules::walk(&organization, "invoices", &query, 1 + dice.below(20)), kept, "{query}");
    }
}
