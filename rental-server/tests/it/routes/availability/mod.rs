//! `/v1/availability` and `/v1/vehicles/{id}/calendar`

mod calendar;
mod list;
