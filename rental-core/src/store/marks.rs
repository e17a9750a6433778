//! The keys of rows about a store as a whole, which engines read themselves.

use super::Key;

/// The first byte of these keys: [`crate::rows::Tag::Marker`].
pub(crate) const TAG: u8 = b'!';
/// What follows it in the key of [`upgrade`].
pub(crate) const UPGRADE: &[u8] = b"upgrade";

/// The mark of a store into which another one is being copied.
#[must_use]
pub fn loading() -> Key {
    Key::from(vec![TAG])
}

/// The row with the progress of the store's upgrade.
#[must_use]
pub fn upgrade() -> Key {
    Key::from([&[TAG], UPGRADE].concat())
}
