//! Values that exist are valid: each type has a private field and one way in.
//!
//! Source of every rule: `docs/decisions.md`, "Identity and values". Nothing here knows a resource.

mod date;
mod decimal;
mod money;
mod text;
mod timestamp;

pub use date::Date;
pub use decimal::{Decimal, DecimalError};
pub use money::{Currency, Money};
pub use text::{email, language, phone, text};
pub use timestamp::Timestamp;
