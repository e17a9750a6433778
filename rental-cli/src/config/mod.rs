//! Settings from flags, environment and profiles.

pub(crate) mod environment;
pub(crate) mod private_file;
pub(crate) mod profiles;
pub(crate) mod settings;
pub(crate) mod values;
pub(crate) mod when;
