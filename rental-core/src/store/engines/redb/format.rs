//! The pages of redb's file format 3 (redb's `docs/design.md`), as bytes: leaves with pairs, and branches that name other pages.

/// Bytes of a page of the smallest order.
pub(super) const PAGE: u32 = 4096;
pub(super) const MAGIC: &[u8; 9] = b"redb\x1A\x0A\xA9\x0D\x0A";
/// Bytes of the header that say how long a file is.
pub(super) const HEAD: usize = 32;
pub(super) const LEAF: u8 = 1;
pub(super) const BRANCH: u8 = 2;

/// Bytes of each key and of each value of a tree; `None` when they differ.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(super) struct Widths {
    pub(super) key: Option<usize>,
    pub(super) value: Option<usize>,
}

/// The length of a file according to its header; `None` when it has none.
pub(super) fn stated_len(head: &[u8]) -> Option<u64> {
    let number = |at| u32_at(head, at).map(u64::from);
    let (header, data, full, rest) = (number(16)?, number(20)?, number(24)?, number(28)?);
    let last = if rest == 0 { 0 } else { header + rest };
    let pages = full.checked_mul(header + data)?.checked_add(1 + last)?;
    pages.checked_mul(u64::from(PAGE)).filter(|_| head.starts_with(MAGIC))
}

/// Keys and values of a leaf.
pub(super) type Pairs<'p> = Vec<(&'p [u8], &'p [u8])>;

pub(super) struct Branch<'p> {
    /// Number and checksum.
    pub(super) children: Vec<(u64, u128)>,
    /// The highest key that each child but the last one may have; `None` when they make no sense.
    pub(super) separators: Option<Vec<&'p [u8]>>,
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<usize> {
    number(bytes, at).map(|found| usize::from(u16::from_le_bytes(found)))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    number(bytes, at).map(u32::from_le_bytes)
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    number(bytes, at).map(u64::from_le_bytes)
}

pub(super) fn u128_at(bytes: &[u8], at: usize) -> Option<u128> {
    number(bytes, at).map(u128::from_le_bytes)
}

fn end_at(page: &[u8], at: usize) -> Option<usize> {
    u32_at(page, at).map(|end| end as usize)
}

/// Where things are in a leaf with so many pairs.
struct Leaf {
    /// The list of the ends of the values.
    value_ends: usize,
    keys: usize,
}

impl Leaf {
    fn of(count: usize, widths: Widths) -> Self {
        let list = |width: Option<usize>| if width.is_none() { 4 * count } else { 0 };
        Self { value_ends: 4 + list(widths.key), keys: 4 + list(widths.key) + list(widths.value) }
    }

    fn key_end(&self, page: &[u8], n: usize, widths: Widths) -> Option<usize> {
        match widths.key {
            Some(width) => Some(self.keys + width * (n + 1)),
            None => end_at(page, 4 + 4 * n),
        }
    }

    fn value_end(&self, page: &[u8], n: usize, keys_end: usize, widths: Widths) -> Option<usize> {
        match widths.value {
            Some(width) => Some(keys_end + width * (n + 1)),
            None => end_at(page, self.value_ends + 4 * n),
        }
    }
}

/// The number of bytes of a page that its checksum covers; `None` when the page makes no sense.
pub(super) fn used(page: &[u8], widths: Widths) -> Option<usize> {
    let count = u16_at(page, 2).filter(|count| *count > 0)?;
    let end = match *page.first()? {
        LEAF => {
            let leaf = Leaf::of(count, widths);
            leaf.value_end(page, count - 1, leaf.key_end(page, count - 1, widths)?, widths)?
        }
        BRANCH => {
            let ends = 8 + 24 * (count + 1);
            match widths.key {
                Some(width) => ends + width * count,
                None => end_at(page, ends + 4 * (count - 1))?,
            }
        }
        _ => return None,
    };
    (end <= page.len()).then_some(end)
}

/// The parts of a page that begin at `start` and end at the offsets that are listed at `ends`.
fn parts(page: &[u8], start: usize, ends: impl Iterator<Item = Option<usize>>) -> Option<Vec<&[u8]>> {
    let mut start = start;
    ends.map(|end| {
        let end = end?;
        let part = page.get(start..end)?;
        start = end;
        Some(part)
    })
    .collect()
}

/// The keys and values of a leaf; `None` when it makes no sense.
pub(super) fn pairs(page: &[u8], widths: Widths) -> Option<Pairs<'_>> {
    let count = u16_at(page, 2).filter(|count| *count > 0)?;
    let leaf = Leaf::of(count, widths);
    let keys = parts(page, leaf.keys, (0..count).map(|n| leaf.key_end(page, n, widths)))?;
    let start = leaf.key_end(page, count - 1, widths)?;
    let values = parts(page, start, (0..count).map(|n| leaf.value_end(page, n, start, widths)))?;
    Some(keys.into_iter().zip(values).collect())
}

/// The parts of a branch; `None` when it makes no sense.
pub(super) fn branch(page: &[u8], widths: Widths) -> Option<Branch<'_>> {
    let keys = u16_at(page, 2).filter(|keys| *keys > 0)?;
    let numbers = 8 + 16 * (keys + 1);
    let ends = numbers + 8 * (keys + 1);
    let child = |n| Some((u64_at(page, numbers + 8 * n)?, u128_at(page, 8 + 16 * n)?));
    let children = (0..=keys).map(child).collect::<Option<Vec<_>>>()?;
    let separators = match widths.key {
        Some(width) => parts(page, ends, (0..keys).map(|n| Some(ends + width * (n + 1)))),
        None => parts(page, ends + 4 * keys, (0..keys).map(|n| end_at(page, ends + 4 * n))),
    };
    // Keys of one width are numbers of redb's own tables, which have another order.
    let rise = |keys: &Vec<&[u8]>| widths.key.is_some() || keys.is_sorted_by(|a, b| a < b);
    Some(Branch { children, separators: separators.filter(rise) })
}

/// A table as the list of tables describes it.
pub(super) struct Table {
    /// Number and checksum of its first page; `None` when it is empty.
    pub(super) root: Option<(u64, u128)>,
    /// Its own number of pairs.
    pub(super) count: u64,
    pub(super) widths: Widths,
}

impl Table {
    pub(super) fn read(definition: &[u8]) -> Option<Self> {
        let width = |at: usize| -> Option<Option<usize>> {
            let width = end_at(definition, at + 1)?;
            Some((*definition.get(at)? != 0).then_some(width))
        };
        let root = (u64_at(definition, 10)?, u128_at(definition, 18)?);
        Some(Self {
            root: (*definition.get(9)? != 0).then_some(root),
            count: u64_at(definition, 1)?,
            widths: Widths { key: width(42)?, value: width(47)? },
        })
    }
}
