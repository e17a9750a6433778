//! Request bodies and list queries as checked values, with every wrong field named at once.

pub mod body;
pub mod page;
