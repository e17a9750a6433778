//! `/v1/blocks`

mod list;
mod write;
