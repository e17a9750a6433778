//! `/v1/leads`

mod create;
