//! The `Idempotency-Key` header against a second reading of its rule: 1 to 255 visible characters, bare or quoted.

use rental_core::operations::idempotency::IdempotencyKey;

/// The input is the header's value.
pub fn check(data: &[u8]) {
    let idempotency_key = |header: &[u8], body: &[u8]| IdempotencyKey::new(header, "POST", "/v1/leads", body);
    let quoted = data.len() >= 2 && data[0] == b'"' && data[data.len() - 1] == b'"';
    let bare = if quoted { &data[1..data.len() - 1] } else { data };
    let fine = (1..=255).contains(&bare.len()) && bare.iter().all(|byte| (0x21..=0x7e).contains(byte));
    let found = idempotency_key(data, b"{}");
    assert_eq!(found.is_ok(), fine);
    let Ok(found) = found else { return };
    assert_eq!(found.name.as_bytes(), bare);
    assert_eq!(
        idempotency_key(&[b"\"", bare, b"\""].concat(), b"{}"),
        Ok(found.clone()),
        "quoted and bare are one key"
    );
    assert_ne!(idempotency_key(data, b"{ }"), Ok(found.clone()), "other bytes are another request");
    assert_ne!(IdempotencyKey::new(data, "PATCH", "/v1/leads", b"{}"), Ok(found.clone()));
    assert_ne!(IdempotencyKey::new(data, "POST", "/v1/lead", b"s{}"), Ok(found));
}
