//! HTTP to hosts of others: receivers of webhooks, calendars, the collector of spans.

pub(crate) mod client;
mod failure;
mod resolver;

pub(crate) use failure::failure;
pub(crate) use resolver::Resolver;
