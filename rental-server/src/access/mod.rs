//! Who may call: from the text of an API key to a principal, whether that still holds, and how often.

mod confirm;
pub(crate) mod gate;
pub(crate) mod limiter;

pub(crate) use confirm::Confirming;
