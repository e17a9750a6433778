//! The fields that a request sent, as resources see them. [`crate::body`] makes them.

use super::ResourceSpec;

/// The checked fields of one body: canonical JSON text for each field that was sent.
#[derive(Debug)]
pub struct Fields {
    pub(crate) spec: &'static ResourceSpec,
    pub(crate) values: Vec<Option<String>>,
}

impl Fields {
    /// The canonical JSON text of a field that was sent.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        let at = self.spec.fields.iter().position(|field| field.name == name)?;
        self.values[at].as_deref()
    }

    /// Whether a field was sent.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Whether nothing was sent.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.iter().all(Option::is_none)
    }
}
