//! Authentication of API keys, revalidation of what is cached about them, and the rate limit.

pub(crate) mod authentication;
pub(crate) mod limiter;
mod revalidation;

pub(crate) use revalidation::Revalidating;
