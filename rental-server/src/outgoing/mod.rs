//! HTTP to hosts of others: receivers of webhooks and calendars.

pub(crate) mod client;
mod failure;
mod resolver;

pub(crate) use failure::failure;
pub(crate) use resolver::Resolver;
