//! Authentication of API keys and operators, revalidation of what is cached about keys, the rate limit, the quotas of
//! organizations, and the limit of failed authentications.

pub(crate) mod authentication;
pub(crate) mod failures;
pub(crate) mod limiter;
pub(crate) mod operators;
pub(crate) mod quotas;
mod revalidation;
mod uses;

pub(crate) use revalidation::Revalidating;
