//! What a key means, in words: for the operator who reads that something is wrong with it.

use crate::store::Key;
use uuid::Uuid;

/// Most bytes of a key that are shown.
const SHOWN: usize = 256;

/// The resource of a tag in keys. The descriptions lie above the store, so a test compares this list with them.
fn object(tag: u8) -> &'static str {
    match tag {
        1 => "vehicle",
        2 => "customer",
        3 => "rental",
        4 => "invoice",
        5 => "toll",
        6 => "violation",
        7 => "lead",
        8 => "organization",
        9 => "api_key",
        10 => "event",
        11 => "webhook_endpoint",
        12 => "delivery",
        13 => "audit_entry",
        _ => "object of an unknown resource",
    }
}

impl Key {
    /// Resource, id and organization as far as the key tells, and the key itself in hex.
    #[must_use]
    pub fn in_words(&self) -> String {
        let bytes = self.as_bytes();
        let cut = if bytes.len() > SHOWN { "…" } else { "" };
        let shown = hex::encode(&bytes[..bytes.len().min(SHOWN)]);
        format!("{} (key {shown}{cut})", meaning(bytes).unwrap_or_else(|| "a row of no known kind".into()))
    }
}

/// `None` for a key that this program does not make.
fn meaning(key: &[u8]) -> Option<String> {
    let id = |at: usize| Uuid::from_slice(key.get(at..at + 16)?).ok();
    let last = || id(key.len().checked_sub(16)?);
    let whole = |length: usize| (key.len() == length).then_some(());
    Some(match key.first()? {
        b'r' => {
            whole(34)?;
            format!("{} {} of organization {}", object(key[17]), id(18)?, id(1)?)
        }
        b'i' if key.len() >= 35 => {
            format!("an index entry of {} {} of organization {}", object(key[17]), last()?, id(1)?)
        }
        b'a' => {
            whole(17)?;
            "where an API key leads to its record".into()
        }
        b'c' => {
            whole(33)?;
            format!("the calendar of vehicle {} of organization {}", id(17)?, id(1)?)
        }
        b'h' => {
            whole(54)?;
            format!("a hold of vehicle {} by rental {} of organization {}", id(17)?, id(38)?, id(1)?)
        }
        b'm' => format!("an idempotency record of organization {}", id(1)?),
        b'x' => format!("when an idempotency record of organization {} expires", id(9)?),
        b'o' => {
            whole(17)?;
            format!("the outbox row of event {}", id(1)?)
        }
        b'q' => {
            whole(17)?;
            format!("the mark that organization {} has webhook endpoints", id(1)?)
        }
        b'd' => {
            whole(42)?;
            format!("when delivery {} to webhook_endpoint {} is due", id(26)?, id(1)?)
        }
        b's' => {
            whole(17)?;
            format!("the secrets of webhook_endpoint {}", id(1)?)
        }
        b'!' if key == super::key::upgrade().as_bytes() => "the marker of an upgrade".into(),
        b'!' => {
            whole(1)?;
            "the mark of a copy that has not come to its end".into()
        }
        b'l' => {
            whole(17)?;
            format!("the beat of server {}", id(1)?)
        }
        b'w' => {
            whole(17)?;
            format!("who sends for webhook_endpoint {}", id(1)?)
        }
        b'j' => {
            whole(33)?;
            format!("a bell for webhook_endpoint {} at server {}", id(17)?, id(1)?)
        }
        b'u' => {
            whole(34)?;
            format!("the identity of one {} of organization {}", object(key[17]), id(1)?)
        }
        b'b' => {
            whole(33)?;
            format!("the mark that {} of organization {} is billed", id(17)?, id(1)?)
        }
        b'n' => {
            let name: String = String::from_utf8_lossy(key.get(17..)?).chars().take(64).collect();
            format!("the counter {name} of organization {}", id(1)?)
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{resources, store::key};
    use proptest::prelude::*;

    #[test]
    fn every_resource_has_its_name() {
        for tag in 0..=u8::MAX {
            let known = resources::specs().find(|spec| spec.tag == tag).map(|spec| spec.object);
            assert_eq!(object(tag), known.unwrap_or("object of an unknown resource"), "tag {tag}");
        }
    }

    #[test]
    fn a_record_is_named_by_resource_id_and_organization() {
        let (organization, id) = (Uuid::from_u128(7), Uuid::from_u128(42));
        let words = key::record(organization, &resources::rental::SPEC, id).in_words();
        assert!(words.starts_with(&format!("rental {id} of organization {organization} (key 72")), "{words}");
    }

    proptest! {
        #[test]
        fn any_bytes_have_words(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            prop_assert!(Key::from_bytes(&bytes).in_words().len() < 900);
        }
    }
}
