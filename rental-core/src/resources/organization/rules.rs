//! The rules of organizations.

use super::Organization;
use crate::{
    error::Error,
    resources::{Create, RuleContext, Update, event::EventType},
    schema::Fields,
};

impl Create for Organization {
    fn create(&mut self, _: &RuleContext<'_>) -> Result<Vec<EventType>, Error> {
        Ok(Vec::new())
    }
}

impl Update for Organization {
    fn events(&self, _: &Self, _: bool, _: &Fields) -> Vec<EventType> {
        Vec::new()
    }
}
