//! Corrects one flipped bit: tries each bit of a page, or of a slot of the header, until the checksum is right.
//!
//! The checksum has 128 bits, so bytes that it fits are those that were written, and never an older version of the page.

use super::format::{Widths, u128_at, used};
use twox_hash::XxHash3_128;

/// Bytes of a slot of the header, which describes a commit. The last 16 are its checksum.
pub(super) const SLOT: usize = 128;
/// Bytes that are hashed at most to correct one page. A page of 4,096 bytes has 32,768 bits, and takes 128 MiB; of pages of more than
/// 22 KiB only the first part is tried, which has the lengths and keys.
pub(super) const OF_ONE_PAGE: u64 = 4 << 30;

/// A slot of the header as it was written, and whether that is sure: its checksum is right, if need be after one flipped bit.
pub(super) fn settled(slot: &[u8; SLOT]) -> ([u8; SLOT], bool) {
    let is_right = |slot: &[u8; SLOT]| {
        let (described, checksum) = slot.split_at(SLOT - 16);
        u128_at(checksum, 0) == Some(XxHash3_128::oneshot(described))
    };
    let mut tried = *slot;
    if is_right(&tried) {
        return (tried, true);
    }
    for bit in 0..8 * SLOT {
        tried[bit / 8] ^= 1 << (bit % 8);
        if is_right(&tried) {
            return (tried, true);
        }
        tried[bit / 8] ^= 1 << (bit % 8);
    }
    (tried, false)
}

/// The page as it was written, if one bit of it is flipped. Takes the bytes that it hashes from `left`, and tries no more when
/// they are used up.
pub(super) fn corrected(page: &[u8], checksum: u128, widths: Widths, left: &mut u64) -> Option<Vec<u8>> {
    let (mut tried, mut of_this) = (page.to_vec(), OF_ONE_PAGE.min(*left));
    let begun = of_this;
    let mut found = false;
    for bit in 0..8 * page.len() {
        tried[bit / 8] ^= 1 << (bit % 8);
        // A bit behind the end changes nothing.
        if let Some(end) = used(&tried, widths).filter(|end| bit / 8 < *end) {
            if of_this < end as u64 {
                break;
            }
            of_this -= end as u64;
            if XxHash3_128::oneshot(&tried[..end]) == checksum {
                found = true;
                break;
            }
        }
        tried[bit / 8] ^= 1 << (bit % 8);
    }
    *left -= begun - of_this;
    found.then_some(tried)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A leaf with one pair.
    fn leaf(len: usize, value: usize) -> Vec<u8> {
        let mut page = vec![0; len];
        page[..4].copy_from_slice(&[1, 0, 1, 0]);
        page[4..8].copy_from_slice(&15u32.to_le_bytes());
        page[8..12].copy_from_slice(&(15 + value as u32).to_le_bytes());
        page[12..15].copy_from_slice(b"key");
        page[15..15 + value].fill(0x5A);
        page
    }

    fn tries(page: &[u8], checksum: u128) -> Option<Vec<u8>> {
        let mut left = OF_ONE_PAGE;
        corrected(page, checksum, Widths::default(), &mut left)
    }

    #[test]
    fn one_flipped_bit_of_a_page_is_corrected_and_two_are_not() {
        let sound = leaf(512, 300);
        let checksum = XxHash3_128::oneshot(&sound[..315]);
        for bit in (0..315 * 8).step_by(5) {
            let mut page = sound.clone();
            page[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(tries(&page, checksum), Some(sound.clone()), "bit {bit}");
            page[(bit / 8 + 7) % 315] ^= 0x81;
            assert_eq!(tries(&page, checksum), None, "bit {bit}");
        }
    }

    #[test]
    fn what_is_hashed_is_bounded() {
        let sound = leaf(64 << 10, 60_000);
        let checksum = XxHash3_128::oneshot(&sound[..60_015]);
        let mut page = sound.clone();
        page[30_000] ^= 1;
        let mut left = 10 << 20;
        assert_eq!(corrected(&page, checksum, Widths::default(), &mut left), None);
        assert!(left < 60_015, "{left}");
        page[30_000] ^= 1;
        page[13] ^= 2;
        assert_eq!(tries(&page, checksum), Some(sound));
    }
}
