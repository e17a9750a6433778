//! Parses and checks request bodies and list queries. An error lists all bad fields or parameters.

pub mod body;
pub mod nights;
pub mod page;
