//! The step from version 12 to version 13.
//!
//! What is compared as text (plates, transponders, names, email addresses) is compared in NFC, and so are the derived rows by which it
//! is found. Every upgrade writes the derived rows of all records, and removes those of before.
//!
//! Customers tell whether their language was chosen. In version 12 a default cannot be told from a choice, so `en` counts as the default.

use crate::upgrade::{
    members::Members,
    version::{Lift, Version},
};

/// This step.
pub(super) const VERSION: Version =
    Version { number: 13, lifts: &[Lift { object: "customer", tag: 2, lift: customer }] };

fn customer(members: &mut Members, _: &Members) -> Result<(), String> {
    let chosen = members.get("preferred_language") != Some("\"en\"");
    members.add_after("preferred_language", "language_chosen", chosen.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_other_than_the_default_was_chosen() {
        for (language, chosen) in [("en", "false"), ("en-GB", "true"), ("de", "true")] {
            let mut members = Members::parse(format!(r#"{{"preferred_language":"{language}"}}"#).as_bytes()).unwrap();
            customer(&mut members, &Members::parse(b"{}").unwrap()).unwrap();
            assert_eq!(members.get("language_chosen"), Some(chosen), "{language}");
        }
    }
}
