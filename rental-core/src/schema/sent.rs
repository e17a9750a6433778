//! The fields that a request sent, as resources see them. [`crate::request::body`] makes them.

use super::resource_spec::ResourceSpec;
use crate::value::FieldValue;

/// The checked fields of one body: a typed value for each field that was sent.
#[derive(Debug)]
pub struct Fields {
    pub(crate) spec: &'static ResourceSpec,
    pub(crate) values: Vec<Option<FieldValue>>,
}

impl Fields {
    /// The value of a field that was sent.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&FieldValue> {
        let at = self.spec.fields.iter().position(|field| field.name == name)?;
        self.values[at].as_ref()
    }

    /// The text of a field that was sent and is plain text, such as an id.
    #[must_use]
    pub fn plain(&self, name: &str) -> Option<&str> {
        self.get(name)?.plain()
    }

    /// Whether a field was sent.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }
}
