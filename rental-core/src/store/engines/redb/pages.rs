//! Reads a damaged file without redb, which refuses it, panics on some of its pages, or reads in circles.
//!
//! It follows redb's file format 3 (redb's `docs/design.md`) from the last commit to the rows. A page that makes no sense is
//! passed over with what lies below it. A page whose checksum is wrong is read all the same, because rows have their own;
//! but only when the page that names it is intact. Else it can be another page, such as an older version of this one.

use super::{
    file::{self, Versions},
    row, version,
};
use crate::store::{Key, Record, SCHEMA_VERSION, StoreError, marks};
use std::{
    fs::{File, TryLockError},
    io,
    os::unix::fs::FileExt,
    path::Path,
};
use twox_hash::XxHash3_128;

/// Bytes of a page of the smallest order.
const PAGE: u32 = 4096;
/// The largest order of a page: 4 GiB.
const MOST_ORDER: u32 = 20;
/// Most levels of a tree.
const MOST_LEVELS: u32 = 32;
const LEAF: u8 = 1;
const BRANCH: u8 = 2;
const MAGIC: &[u8; 9] = b"redb\x1A\x0A\xA9\x0D\x0A";
/// Most bits by which a checksum can differ from that of the page and still be the one of this page: bits of itself flipped.
const MOST_FLIPPED: u32 = 16;
/// In the flags of the header: the second slot has the last commit.
const SECOND_SLOT: u8 = 1;
/// In the flags of the header: the last commit was made in two phases, as all of this engine are. So it is durable.
const TWO_PHASE_COMMIT: u8 = 4;

/// Bytes of a slot of the header, which describes a commit. The last 16 are its checksum.
const SLOT: usize = 128;

/// A slot of the header as it was written, and whether that is sure: its checksum is right, if need be after one flipped bit.
fn settled(slot: &[u8; SLOT]) -> ([u8; SLOT], bool) {
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

/// Why a file cannot be read page by page.
pub(super) enum Refused {
    /// What leads to its rows is damaged.
    Everything,
    /// Its rows can be read, but not the page with its schema version.
    NoVersion,
    /// It is open in another process, has another version, or cannot be opened.
    Other(StoreError),
}

impl Refused {
    /// The message. `damage` says why the engine does not open the file.
    pub(super) fn of(self, path: &Path, damage: &str) -> StoreError {
        match self {
            Self::Everything => file::beyond_reading(damage),
            Self::NoVersion => StoreError::DamagedStore(format!(
                "{}: the page with its schema version is damaged; restore it from a backup, or `rental-cli store repair --schema-version {SCHEMA_VERSION}` keeps the rows if you know that a program of this schema version served it last",
                path.display()
            )),
            Self::Other(error) => error,
        }
    }
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        Self::Other(error)
    }
}

/// A file that no program writes while this exists.
pub(super) struct Pages {
    file: File,
    len: u64,
    /// Bytes of a region: its header and its pages.
    region: u64,
    /// Bytes of the header of a region.
    region_header: u64,
    rows: Root,
}

/// A page as another one names it.
#[derive(Clone, Copy)]
struct Named {
    number: u64,
    checksum: u128,
    /// Whether what names it is intact.
    surely: bool,
}

/// The root of a tree.
#[derive(Clone, Copy)]
struct Root {
    page: Named,
    /// Its own number of pairs.
    count: u64,
}

/// A gap in the rows: the last key before it, and the reason.
pub(super) type Gap = (Option<Key>, String);

/// One step of a walk: a key and its stored value, or a gap.
pub(super) type Step<'s> = Result<(&'s [u8], &'s [u8]), Gap>;

/// Keys and values of a leaf.
type Pairs<'p> = Vec<(&'p [u8], &'p [u8])>;

struct Branch<'p> {
    /// Number and checksum.
    children: Vec<(u64, u128)>,
    /// The highest key that each child but the last one may have; `None` when they make no sense.
    separators: Option<Vec<&'p [u8]>>,
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<usize> {
    number(bytes, at).map(|found| usize::from(u16::from_le_bytes(found)))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    number(bytes, at).map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    number(bytes, at).map(u64::from_le_bytes)
}

fn u128_at(bytes: &[u8], at: usize) -> Option<u128> {
    number(bytes, at).map(u128::from_le_bytes)
}

/// The bytes of a page that its checksum covers.
fn used(page: &[u8], value_size: Option<usize>) -> Option<&[u8]> {
    let count = u16_at(page, 2).filter(|count| *count > 0)?;
    let end = match (*page.first()?, value_size) {
        (LEAF, None) => u32_at(page, 4 * (2 * count))?,
        (LEAF, Some(size)) => u32_at(page, 4 * count)?.checked_add(u32::try_from(size * count).ok()?)?,
        (BRANCH, _) => u32_at(page, 8 + 24 * (count + 1) + 4 * (count - 1))?,
        _ => return None,
    };
    page.get(..end as usize)
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
fn pairs(page: &[u8], value_size: Option<usize>) -> Option<Pairs<'_>> {
    let count = u16_at(page, 2).filter(|count| *count > 0)?;
    let listed = |at: usize| move |n: usize| u32_at(page, at + 4 * n).map(|end| end as usize);
    let (keys_end, values_end) = (listed(4), listed(4 + 4 * count));
    let start = 4 + 4 * count * if value_size.is_none() { 2 } else { 1 };
    let keys = parts(page, start, (0..count).map(keys_end))?;
    let values_start = keys_end(count - 1)?;
    let values = parts(
        page,
        values_start,
        (0..count).map(|n| match value_size {
            Some(size) => Some(values_start + size * (n + 1)),
            None => values_end(n),
        }),
    )?;
    Some(keys.into_iter().zip(values).collect())
}

/// The parts of a branch; `None` when it makes no sense.
fn branch(page: &[u8]) -> Option<Branch<'_>> {
    let keys = u16_at(page, 2).filter(|keys| *keys > 0)?;
    let numbers = 8 + 16 * (keys + 1);
    let ends = numbers + 8 * (keys + 1);
    let child = |n| Some((u64_at(page, numbers + 8 * n)?, u128_at(page, 8 + 16 * n)?));
    let children = (0..=keys).map(child).collect::<Option<Vec<_>>>()?;
    let separators =
        parts(page, ends + 4 * keys, (0..keys).map(|n| u32_at(page, ends + 4 * n).map(|end| end as usize)));
    Some(Branch { children, separators: separators.filter(|keys| keys.is_sorted_by(|a, b| a < b)) })
}

/// A walk through one tree.
struct Walk<'e> {
    value_size: Option<usize>,
    last: Option<Vec<u8>>,
    /// The present gap was told.
    told: bool,
    /// More pages than the file has mean a circle.
    pages_left: u64,
    each: &'e mut dyn FnMut(Step<'_>) -> bool,
}

impl Walk<'_> {
    /// Whether to go on.
    fn gap(&mut self, why: &str) -> bool {
        let told = std::mem::replace(&mut self.told, true);
        told || (self.each)(Err((self.last.as_deref().map(Key::from_bytes), why.to_owned())))
    }

    fn pair(&mut self, key: &[u8], value: &[u8], highest: Option<&[u8]>) -> bool {
        let rises = self.last.as_deref().is_none_or(|last| last < key);
        if !rises || highest.is_some_and(|highest| highest < key) {
            return self.gap("the keys are out of order");
        }
        (self.last, self.told) = (Some(key.to_vec()), false);
        (self.each)(Ok((key, value)))
    }
}

impl Pages {
    /// Opens the file at `path` read-only. `stated` is its schema version if the file has lost that.
    ///
    /// # Errors
    /// It is open in another process, has a version that is not accepted, or its first pages are damaged.
    pub(super) fn open(path: &Path, versions: Versions, stated: Option<u64>) -> Result<Self, Refused> {
        file::refuse_other_kinds(path)?;
        let unreadable = |error: io::Error| StoreError::Unavailable(format!("cannot read {}: {error}", path.display()));
        let file = File::open(path).map_err(unreadable)?;
        match file.try_lock_shared() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(file::in_use(path).into()),
            Err(TryLockError::Error(error)) => return Err(unreadable(error).into()),
        }
        let len = file.metadata().map_err(unreadable)?.len();
        let head = read(&file, 0, 320).ok_or(Refused::Everything)?;
        let nothing = Root { page: Named { number: 0, checksum: 0, surely: false }, count: 0 };
        let mut pages = Self { file, len, region: 0, region_header: 0, rows: nothing };
        let (found, rows) = pages.tables(&head).ok_or(Refused::Everything)?;
        let found = found.or(stated).ok_or(Refused::NoVersion)?;
        pages.rows = rows;
        // Only an upgrade that was interrupted has this row. Where the page cannot be read that has its place, it is as good as absent:
        // all other rows would be lost for it.
        file::accept(found, versions, || Ok(pages.get(&marks::upgrade()).is_ok_and(|found| found.is_some())))?;
        Ok(pages)
    }

    /// Reads the header and the list of tables: the schema version, unless its page is damaged, and the root of the rows.
    fn tables(&mut self, head: &[u8]) -> Option<(Option<u64>, Root)> {
        let flags = *head.get(9)?;
        let slot = if flags & SECOND_SLOT == 0 { 64 } else { 64 + SLOT };
        let known = head.starts_with(MAGIC) && u32_at(head, 12)? == PAGE && *head.get(slot)? == 3;
        if !known || flags & TWO_PHASE_COMMIT == 0 || *head.get(slot + 1)? == 0 {
            return None;
        }
        let (slot, settled) = settled(head.get(slot..slot + SLOT)?.first_chunk()?);
        let (header, data) = (u64::from(u32_at(head, 16)?), u64::from(u32_at(head, 20)?));
        (self.region_header, self.region) = (header * u64::from(PAGE), (header + data) * u64::from(PAGE));
        let named = |bytes: &[u8], at, surely| {
            Some(Named { number: u64_at(bytes, at)?, checksum: u128_at(bytes, at + 8)?, surely })
        };
        let list = Root { page: named(&slot, 8, settled)?, count: 0 };
        let (_, surely) = self.page(list.page, None)?;
        let root = |definition: &[u8]| {
            let there = *definition.get(9)? != 0;
            there.then_some(Root { page: named(definition, 10, surely)?, count: u64_at(definition, 1)? })
        };
        let (mut rows, mut meta) = (None, None);
        self.walk_tree(list, None, &mut |found| {
            match found {
                Ok((b"rows", definition)) => rows = root(definition),
                Ok((b"meta", definition)) => meta = root(definition),
                Ok(_) | Err(_) => {}
            }
            true
        });
        Some((self.version(meta?), rows?))
    }

    /// The schema version; `None` when its page is damaged. A flipped bit would make another version of it.
    fn version(&self, meta: Root) -> Option<u64> {
        let (page, intact) = self.page(meta.page, Some(8))?;
        let named = pairs(&page, Some(8)).filter(|_| intact)?;
        let (_, value) = named.into_iter().find(|(name, _)| *name == version::NAME.as_bytes())?;
        u64_at(value, 0)
    }

    /// Number of rows according to the file's own counter.
    pub(super) fn count(&self) -> u64 {
        self.rows.count
    }

    /// Reads all rows by ascending key as they are stored. Calls `each` for every row and for every gap, until it returns
    /// false.
    pub(super) fn walk(&self, each: &mut dyn FnMut(Step<'_>) -> bool) {
        self.walk_tree(self.rows, None, each);
    }

    fn walk_tree(&self, root: Root, value_size: Option<usize>, each: &mut dyn FnMut(Step<'_>) -> bool) {
        let pages_left = self.len / u64::from(PAGE);
        let mut walk = Walk { value_size, last: None, told: false, pages_left, each };
        self.visit(root.page, None, 0, &mut walk);
    }

    /// Walks through a page and those below it, which have no key above `highest`. Returns whether to go on.
    fn visit(&self, page: Named, highest: Option<&[u8]>, level: u32, walk: &mut Walk<'_>) -> bool {
        let found = self.page(page, walk.value_size).filter(|_| walk.pages_left > 0 && level < MOST_LEVELS);
        let Some((page, intact)) = found else {
            return walk.gap("a page is not there or cannot be read");
        };
        // Only those that are there: a file that was cut has fewer pages than its branches name.
        walk.pages_left -= 1;
        match page.first() {
            Some(&LEAF) => match pairs(&page, walk.value_size) {
                Some(pairs) => pairs.into_iter().all(|(key, value)| walk.pair(key, value, highest)),
                None => walk.gap("a page with rows is damaged"),
            },
            Some(&BRANCH) => match branch(&page) {
                Some(Branch { children, separators }) => {
                    children.into_iter().enumerate().all(|(n, (number, checksum))| {
                        let own = separators.as_ref().and_then(|separators| separators.get(n).copied());
                        let child = Named { number, checksum, surely: intact };
                        self.visit(child, own.or(highest), level + 1, walk)
                    })
                }
                None => walk.gap("a page on the way to rows is damaged"),
            },
            _ => walk.gap("a page is damaged"),
        }
    }

    /// Reads the record at `key`.
    ///
    /// # Errors
    /// The row is damaged, or the pages that lead to it are.
    pub(super) fn get(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        let damaged = || StoreError::DamagedStore("pages on the way to it are damaged".into());
        let mut at = self.rows.page;
        for _ in 0..MOST_LEVELS {
            let (page, intact) = self.page(at, None).ok_or_else(damaged)?;
            match page.first() {
                Some(&LEAF) => {
                    let pairs = pairs(&page, None).ok_or_else(damaged)?;
                    let found = pairs.into_iter().find(|(found, _)| *found == key.as_bytes());
                    return Ok(found.map(|(_, stored)| row::decode(key.clone(), stored)).transpose()?);
                }
                Some(&BRANCH) => {
                    let Branch { children, separators } = branch(&page).ok_or_else(damaged)?;
                    let separators = separators.ok_or_else(damaged)?;
                    let child = separators.partition_point(|separator| *separator < key.as_bytes());
                    let (number, checksum) = children.get(child).copied().ok_or_else(damaged)?;
                    at = Named { number, checksum, surely: intact };
                }
                _ => return Err(damaged()),
            }
        }
        Err(damaged())
    }

    /// The bytes of a page, and whether they are intact; `None` when it is not in the file, or may be another one.
    fn page(&self, named: Named, value_size: Option<usize>) -> Option<(Vec<u8>, bool)> {
        let Named { number, checksum, surely } = named;
        let order = u32::try_from(number >> 59).ok().filter(|order| *order <= MOST_ORDER)?;
        let (index, region) = (number & (0xF_FFFF >> order), (number >> 20) & 0xF_FFFF);
        let size = u64::from(PAGE) << order;
        let start = u64::from(PAGE) + region.checked_mul(self.region)? + self.region_header + index * size;
        if start.checked_add(size)? > self.len {
            return None;
        }
        let page = read(&self.file, start, usize::try_from(size).ok()?)?;
        let found = used(&page, value_size).map(XxHash3_128::oneshot);
        let intact = found.is_some_and(|found| (found ^ checksum).count_ones() <= MOST_FLIPPED);
        (intact || surely).then_some((page, intact))
    }
}

/// Reads bytes of a file; `None` when they cannot be read.
fn read(file: &File, at: u64, len: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; len];
    file.read_exact_at(&mut bytes, at).ok()?;
    Some(bytes)
}
