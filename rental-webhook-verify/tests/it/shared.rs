//! Vectors that the clients for TypeScript and Python verify too, so that all three give the same verdicts.

use rental_webhook_verify::{Verifier, VerifyError};
use serde_json::Value;

const VECTORS: &str = include_str!("../vectors.json");

fn verdict(vector: &Value) -> Result<(), VerifyError> {
    let text = |name: &str| vector[name].as_str().expect("text").to_owned();
    let number = |name: &str| vector[name].as_u64().expect("a number");
    let secrets: Vec<&str> = vector["secrets"].as_array().expect("secrets").iter().filter_map(Value::as_str).collect();
    let verifier = Verifier::new(&secrets).tolerance_secs(number("tolerance"));
    verifier.verify(&text("header"), text("body").as_bytes(), number("now"))
}

#[test]
fn every_shared_vector_has_its_verdict() {
    let vectors: Vec<Value> = serde_json::from_str(VECTORS).expect("JSON");
    assert!(vectors.len() > 30, "{}", vectors.len());
    for vector in &vectors {
        let found = match verdict(vector) {
            Ok(()) => "Ok".to_owned(),
            Err(error) => format!("{error:?}"),
        };
        assert_eq!(found, vector["result"], "{}", vector["name"]);
    }
}
