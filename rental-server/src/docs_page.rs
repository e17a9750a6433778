//! The docs page (soon).
use crate::routes::Routes;
pub(crate) const POLICY: &str = "default-src 'none'";
pub(crate) fn page(_: &Routes) -> Vec<u8> {
    Vec::new()
}
