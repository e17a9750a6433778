//! `/v1/vehicles`

mod create;
