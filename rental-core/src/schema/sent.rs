//! The fields of a request, as resources read them. [`crate::request::body`] parses them.

use super::resource_spec::ResourceSpec;
use crate::value::FieldValue;

/// The checked fields of one body: a typed value for each field that was sent.
#[derive(Debug)]
pub struct Fields {
    pub(crate) spec: &'static ResourceSpec,
    pub(crate) values: Vec<Option<FieldValue>>,
}

impl Fields {
    /// The value of the field `name`; `None` when it was not sent.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&FieldValue> {
        let at = self.spec.fields.iter().position(|field| field.name == name)?;
        self.values[at].as_ref()
    }

    /// The text of the field `name` if it is a [`FieldValue::Plain`], such as an id; `None` when it was not sent.
    #[must_use]
    pub fn plain(&self, name: &str) -> Option<&str> {
        self.get(name)?.plain()
    }

    /// The names of the fields that the request contains.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        let sent = self.spec.fields.iter().zip(&self.values).filter(|(_, value)| value.is_some());
        sent.map(|(field, _)| field.name)
    }

    /// Whether the request contains the field `name`.
    #[must_use]
    pub(crate) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }
}
