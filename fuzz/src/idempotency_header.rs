//! The `Idempotency-Key` header against a second reading of its rule: 1 to 255 visible characters, bare or quoted.

use rental_core::operations::idempotency::Ticket;

/// The input is the header's value.
pub fn check(data: &[u8]) {
    let ticket = |header: &[u8], body: &[u8]| Ticket::new(header, "POST", "/v1/leads", body);
    let quoted = data.len() >= 2 && data[0] == b'"' && data[data.len() - 1] == b'"';
    let bare = if quoted { &data[1..data.len() - 1] } else { data };
    let fine = (1..=255).contains(&bare.len()) && bare.iter().all(|byte| (0x21..=0x7e).contains(byte));
    let found = ticket(data, b"{}");
    assert_eq!(found.is_ok(), fine);
    let Ok(found) = found else { return };
    assert_eq!(found.name.as_bytes(), bare);
    assert_eq!(ticket(&[b"\"", bare, b"\""].concat(), b"{}"), Ok(found.clone()), "quoted and bare are one key");
    assert_ne!(ticket(data, b"{ }"), Ok(found.clone()), "other bytes are another request");
    assert_ne!(Ticket::new(data, "PATCH", "/v1/leads", b"{}"), Ok(found.clone()));
    assert_ne!(Ticket::new(data, "POST", "/v1/lead", b"s{}"), Ok(found));
}
