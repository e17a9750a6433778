//! GET /v1/customers

use crate::support::{Server, percent_encode, rules};
use serde_json::json;

#[test]
fn the_list_holds_whole_customers_as_a_get_gives_them_newest_first() {
    let organization = Server::shared().organization();
    let mut made: Vec<String> = (0..5).map(|n| organization.customer(json!({"notes": n.to_string()}))).collect();
    made.reverse();
    let page = rules::page(&organization, "/v1/customers");
    let data = page["data"].as_array().unwrap();
    assert_eq!(rules::ids(data), made);
    for customer in data {
        rules::whole(customer, "customer");
        assert_eq!(&organization.get(&format!("/v1/customers/{}", customer["id"].as_str().unwrap())).ok(), customer);
    }
}

#[test]
fn the_email_filter_compares_exactly() {
    let organization = Server::shared().organization();
    let emails = ["ada@example.com", "Ada@example.com", "ada@example.co", "ada+x@example.com", "o'neil@example.com"];
    let made = emails.map(|email| organization.customer(json!({"email": email})));
    organization.customer(json!({}));
    for (email, id) in emails.iter().zip(&made) {
        let found = rules::walk(&organization, "customers", &format!("&email={}", percent_encode(email)), 10);
        assert_eq!(rules::ids(&found), std::slice::from_ref(id), "{email}");
    }
    for nobody in
        ["ADA@EXAMPLE.COM", "ada@example.com ", " ada@example.com", "example.com", "%", "null", "ada@example.comm"]
    {
        let found = rules::walk(&organization, "customers", &format!("&email={}", percent_encode(nobody)), 10);
        assert_eq!(found.len(), 0, "{nobody}");
    }
}

/// The other spelling is that of a Mac's keyboard: a letter and its accent.
#[test]
fn the_email_filter_finds_an_address_composed_and_decomposed() {
    let organization = Server::shared().organization();
    let spellings = ["zoë@exämple.com", "zoe\u{308}@exa\u{308}mple.com", "zoe\u{308}@exämple.com"];
    let mut made = spellings.map(|email| organization.customer(json!({"email": email}))).to_vec();
    organization.customer(json!({"email": "zoe@example.com"}));
    made.reverse();
    for email in spellings {
        let found = rules::walk(&organization, "customers", &format!("&email={}", percent_encode(email)), 2);
        assert_eq!(rules::ids(&found), made, "{email}");
        assert!(found.iter().zip(spellings.iter().rev()).all(|(customer, sent)| customer["email"] == *sent));
    }
    let changed = format!("/v1/customers/{}", made[0]);
    organization.patch(&changed, &json!({"email": "zoe@example.com"})).ok();
    let found = rules::walk(&organization, "customers", &format!("&email={}", percent_encode(spellings[0])), 2);
    assert_eq!(rules::ids(&found), made[1..]);
}

#[test]
fn one_address_of_many_customers_is_walked_page_by_page() {
    let organization = Server::shared().organization();
    let mut made: Vec<String> = (0..7)
        .map(|n| organization.customer(json!({"email": if n % 3 == 0 { "b@example.com" } else { "a@example.com" }})))
        .collect();
    made.reverse();
    let of =
        |email: &str, limit| rules::ids(&rules::walk(&organization, "customers", &format!("&email={email}"), limit));
    assert_eq!(of("b@example.com", 2), [&made[0], &made[3], &made[6]].map(Clone::clone));
    assert_eq!(of("a@example.com", 1).len(), 4);
}

#[test]
fn the_address_of_another_organizations_customer_finds_nobody() {
    let [mine, other] = [Server::shared().organization(), Server::shared().organization()];
    other.customer(json!({"email": "ada@example.com"}));
    assert_eq!(rules::walk(&mine, "customers", "&email=ada@example.com", 10).len(), 0);
}
