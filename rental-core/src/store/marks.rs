//! Keys of the marker rows that engines read themselves. A marker is about the store as a whole.

use super::Key;

/// The first byte of these keys: [`crate::rows::Tag::Marker`].
pub(crate) const TAG: u8 = b'!';
/// The rest of the key of [`upgrade`].
pub(crate) const UPGRADE: &[u8] = b"upgrade";

/// The key of the marker of an incomplete copy: an archive is being loaded into this store.
#[must_use]
pub fn loading() -> Key {
    Key::from(vec![TAG])
}

/// The revision of the mark of an upgrade whose walk has not begun. Each step of it writes the next one.
pub const UPGRADE_BEGUN: super::Revision = 1;

/// The key of the row that contains the progress of an upgrade.
#[must_use]
pub fn upgrade() -> Key {
    Key::from([&[TAG], UPGRADE].concat())
}
