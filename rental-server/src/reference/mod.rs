//! The OpenAPI document and the documentation page.

pub(crate) mod docs_page;
pub(crate) mod document;
mod files;
mod numbers;
mod parts;
mod schema;
mod webhooks;
