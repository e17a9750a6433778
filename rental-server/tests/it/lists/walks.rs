//! A walk shows every object that existed when it began exactly once, whatever happens meanwhile (decisions, Lists).

use crate::support::{Organization, Server, rules};
use proptest::{prelude::*, sample::Index, test_runner::Config};
use serde_json::json;

/// What others do between two pages.
#[derive(Clone, Debug)]
enum Meanwhile {
    Create,
    Update(Index),
}

fn meanwhile() -> impl Strategy<Value = Vec<Meanwhile>> {
    let one = prop_oneof![Just(Meanwhile::Create), any::<Index>().prop_map(Meanwhile::Update)];
    proptest::collection::vec(one, 0..4)
}

/// Does it: a change that a walk could trip over, because an index entry moves.
#[track_caller]
fn perform(
    organization: &Organization<'_>,
    plural: &str,
    made: &mut Vec<String>,
    fields: &serde_json::Value,
    what: &Meanwhile,
) {
    match what {
        Meanwhile::Update(index) if !made.is_empty() => {
            let path = format!("/v1/{plural}/{}", made[index.index(made.len())]);
            let change = match plural {
                "vehicles" => json!({"status": "rented", "name": "Changed"}),
                _ => json!({"customer_id": organization.customer(json!({}))}),
            };
            organization.patch(&path, &change).ok();
        }
        _ => made.push(organization.one_more(plural, fields.clone())),
    }
}

fn walk(plural: &str, count: usize, limit: usize, events: &[Vec<Meanwhile>]) -> Result<(), TestCaseError> {
    let organization = Server::shared().organization();
    let (query, fields) = match plural {
        "vehicles" => (String::new(), json!({})),
        _ => {
            let vehicle = organization.vehicle(json!({}));
            (format!("&vehicle={vehicle}"), json!({"vehicle_id": vehicle}))
        }
    };
    let mut made: Vec<String> = (0..count).map(|_| organization.one_more(plural, fields.clone())).collect();
    let existed = made.clone();
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    for turn in 0.. {
        let page = rules::page(&organization, &format!("/v1/{plural}?limit={limit}{query}{cursor}"));
        seen.extend(rules::ids(page["data"].as_array().unwrap()));
        let Some(next) = page["next_cursor"].as_str() else { break };
        prop_assert!(!cursor.ends_with(next), "the walk stands still at {next}");
        cursor = format!("&starting_after={next}");
        for what in events.get(turn).into_iter().flatten() {
            perform(&organization, plural, &mut made, &fields, what);
        }
    }
    prop_assert!(seen.is_sorted_by(|newer, older| newer > older), "newest first, none twice: {seen:?}");
    for id in existed {
        prop_assert!(seen.contains(&id), "{id} was not shown");
    }
    Ok(())
}

proptest! {
    #![proptest_config(Config { cases: 24, failure_persistence: None, ..Config::default() })]

    #[test]
    fn a_walk_shows_what_existed_when_it_began_exactly_once(
        count in 0usize..24, limit in 1usize..9, events in proptest::collection::vec(meanwhile(), 0..24),
    ) {
        walk("vehicles", count, limit, &events)?;
    }

    #[test]
    fn a_walk_along_a_filter_shows_what_existed_when_it_began_exactly_once(
        count in 0usize..24, limit in 1usize..9, events in proptest::collection::vec(meanwhile(), 0..24),
    ) {
        walk("tolls", count, limit, &events)?;
    }
}

#[test]
fn a_walk_is_complete_while_others_write_at_the_same_time() {
    let organization = Server::shared().organization();
    let existed: Vec<String> = (0..40).map(|_| organization.vehicle(json!({}))).collect();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| (0..60).for_each(|_| drop(organization.vehicle(json!({})))));
        while !writer.is_finished() {
            let seen = rules::ids(&rules::walk(&organization, "vehicles", "", 7));
            assert!(seen.is_sorted_by(|newer, older| newer > older));
            assert!(existed.iter().all(|id| seen.contains(id)));
        }
    });
}
