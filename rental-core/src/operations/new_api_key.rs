//! Issues API keys: the text of a new key, and the write of its record and of the row that finds the record.

use super::{
    api_keys::{self, key_text},
    create::Create,
    edge::Edge,
    intent::{Intent, Preparing},
};
use crate::{
    resources::{Collection, api_key::ApiKey, of, organization::Organization},
    rows::key,
    store::{Batch, Store},
    value::{ApiKeyId, FieldValue, Text},
};
use sha2::{Digest, Sha256};

const API_KEYS: Collection = of::<ApiKey>().create().done();

/// A new key. Only the response to the request that makes it contains its text.
pub struct NewApiKey {
    /// The text of the key: a secret that is not stored.
    pub text: String,
    /// The beginning and the end of the key, to tell keys apart.
    pub hint: Text,
    hash: [u8; 32],
    given: [(&'static str, FieldValue); 1],
}

impl NewApiKey {
    /// A key of 32 random bytes.
    #[must_use]
    pub fn new(random: &[u8; 32]) -> Self {
        let text = key_text(random);
        let hint = api_keys::hint(&text);
        let given = [("hint", FieldValue::Text(hint.clone()))];
        Self { hash: Sha256::digest(text.as_bytes()).into(), text, hint, given }
    }

    /// Adds the row that finds the key's record by the key.
    pub fn add_entry(&self, batch: &mut Batch, id: ApiKeyId) {
        batch.insert(key::access(&self.hash), api_keys::entry(&self.hash, id));
    }
}

/// Creates the record of a new key, and the row that finds it.
pub struct IssueApiKey<'a> {
    key: &'a NewApiKey,
    create: Create<'a>,
}

impl<'a> IssueApiKey<'a> {
    /// Issues `key` with the fields of `body`. `system` is the owner of all keys' records.
    #[must_use]
    pub fn new(key: &'a NewApiKey, system: &'a Organization, body: &'a [u8]) -> Self {
        let create = Create { collection: &API_KEYS, organization: system, body: body.into(), given: &key.given };
        Self { key, create }
    }
}

impl Intent for IssueApiKey<'_> {
    fn prepare<'a>(&'a self, store: &'a dyn Store, edge: &'a dyn Edge) -> Preparing<'a> {
        Box::pin(async move {
            let mut prepared = self.create.prepare(store, edge).await?;
            let id = prepared.object::<ApiKey>()?.id;
            self.key.add_entry(&mut prepared.batch, id);
            Ok(prepared)
        })
    }
}
