//! Reads a damaged file without redb, which refuses it, panics on some of its pages, or reads in circles.
//!
//! It follows redb's file format 3 from the last commit to the rows. One flipped bit of a page is corrected; see `flipped.rs`. A
//! page that makes no sense is passed over with what lies below it. A page whose checksum is wrong is read all the same, because
//! rows have their own; but only when the page that names it is intact and a row of it is damaged. Else it can be another page, such as
//! an older version of this one. For the same reason no page is looked for that no other one names.

use super::{
    file::{self, Versions},
    flipped::{SLOT, corrected, settled},
    format::{BRANCH, Branch, LEAF, MAGIC, PAGE, Pairs, Table, Widths, branch, pairs, u32_at, u64_at, u128_at, used},
    row, version,
};
use crate::store::{DamagedPage, Key, Record, SCHEMA_VERSION, StoreError, marks};
use std::{
    borrow::Cow,
    cell::{Cell, OnceCell, RefCell},
    collections::BTreeMap,
    fs::{File, TryLockError},
    io,
    os::unix::fs::FileExt,
    path::Path,
};
use twox_hash::XxHash3_128;

/// The largest order of a page: 4 GiB.
const MOST_ORDER: u32 = 20;
/// Most levels of a tree.
pub(super) const MOST_LEVELS: u32 = 32;
/// Most bits by which a checksum can differ from that of the page and still be the one of this page: bits of itself flipped.
const MOST_FLIPPED: u32 = 16;
/// Most bytes that are hashed to correct pages of one file: the pages with more than one flipped bit use it up.
const MOST_HASHED: u64 = 64 << 30;
/// Bytes that are read at once when pages are read in the order of the file.
const READ_AT_ONCE: u64 = 1 << 20;
/// In the flags of the header: the second slot has the last commit.
const SECOND_SLOT: u8 = 1;
/// In the flags of the header: the last commit was made in two phases, as all of this engine are. So it is durable.
const TWO_PHASE_COMMIT: u8 = 4;

/// Why a row is passed over.
const OUT_OF_ORDER: &str = "the keys are out of order";

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
            // No upgrade opens it either.
            Self::Other(StoreError::NeedsUpgrade(_)) => file::beyond_reading(damage),
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
    /// The schema version.
    version: u64,
    /// Bytes of a region: its header and its pages.
    region: u64,
    /// Bytes of the header of a region.
    region_header: u64,
    rows: Root,
    /// The list of the tables of this program.
    list: Root,
    /// The list of the tables of redb itself, such as that of the free pages.
    system: Option<Root>,
    damaged: RefCell<DamagedPages>,
    /// Bytes that may still be hashed to correct pages.
    may_hash: Cell<u64>,
    /// Why the first read failed.
    unreadable: OnceCell<io::Error>,
}

/// The pages with a wrong checksum by place and checksum: as they were written, if that is known.
type DamagedPages = BTreeMap<(u64, u128), Option<Vec<u8>>>;

/// A page as another one names it.
#[derive(Clone, Copy)]
pub(super) struct Named {
    pub(super) number: u64,
    pub(super) checksum: u128,
    /// Whether what names it is intact.
    pub(super) surely: bool,
}

/// The root of a tree.
#[derive(Clone, Copy)]
pub(super) struct Root {
    pub(super) page: Named,
    /// Its own number of pairs.
    count: u64,
    pub(super) widths: Widths,
}

impl Root {
    /// The root of a table; `None` when it is empty or makes no sense.
    pub(super) fn of_table(definition: &[u8], surely: bool) -> Option<Self> {
        let Table { root, count, widths } = Table::read(definition)?;
        let (number, checksum) = root?;
        Some(Self { page: Named { number, checksum, surely }, count, widths })
    }
}

/// A gap in the rows: the last key before it, and the reason.
pub(super) type Gap = (Option<Key>, String);

/// One step of a walk: a key and its stored value, or a gap.
pub(super) type Step<'s> = Result<(&'s [u8], &'s [u8]), Gap>;

/// A walk through one tree.
struct Walk<'e> {
    widths: Widths,
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
            return self.gap(OUT_OF_ORDER);
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
        let head = read(&file, 0, 320).map_err(|_| Refused::Everything)?;
        let nothing =
            Root { page: Named { number: 0, checksum: 0, surely: false }, count: 0, widths: Widths::default() };
        let mut pages = Self {
            file,
            len,
            version: 0,
            region: 0,
            region_header: 0,
            rows: nothing,
            list: nothing,
            system: None,
            damaged: RefCell::default(),
            may_hash: Cell::new(MOST_HASHED),
            unreadable: OnceCell::new(),
        };
        let (found, rows) = pages.tables(&head).ok_or(Refused::Everything)?;
        let found = found.or(stated).ok_or(Refused::NoVersion)?;
        (pages.rows, pages.version) = (rows, found);
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
        let list = |at| {
            let page = Named { number: u64_at(&slot, at)?, checksum: u128_at(&slot, at + 8)?, surely: settled };
            Some(Root { page, count: 0, widths: Widths::default() })
        };
        self.system = if slot[2] == 0 { None } else { list(40) };
        let list = list(8)?;
        self.list = list;
        let (_, surely) = self.page(list.page, list.widths)?;
        let (mut rows, mut meta) = (None, None);
        self.walk_tree(list, &mut |found| {
            match found {
                Ok((b"rows", definition)) => rows = Root::of_table(definition, surely),
                Ok((b"meta", definition)) => meta = Root::of_table(definition, surely),
                Ok(_) | Err(_) => {}
            }
            true
        });
        Some((self.version(meta?), rows?))
    }

    /// The schema version; `None` when its page is damaged. Flipped bits would make another version of it.
    fn version(&self, meta: Root) -> Option<u64> {
        let (page, intact) = self.page(meta.page, meta.widths)?;
        let named = pairs(&page, meta.widths).filter(|_| intact)?;
        let (_, value) = named.into_iter().find(|(name, _)| *name == version::NAME.as_bytes())?;
        u64_at(value, 0)
    }

    /// The lists of the tables of this program, and of redb itself.
    pub(super) fn lists(&self) -> (Root, Option<Root>) {
        (self.list, self.system)
    }

    /// The pages with a wrong checksum that were read so far.
    pub(super) fn damaged(&self) -> Vec<DamagedPage> {
        let damaged = self.damaged.borrow();
        damaged.iter().map(|((at, _), written)| DamagedPage { at: *at, corrected: written.is_some() }).collect()
    }

    /// The schema version of the rows.
    pub(super) fn schema_version(&self) -> u64 {
        self.version
    }

    /// Number of rows according to the file's own counter.
    pub(super) fn count(&self) -> u64 {
        self.rows.count
    }

    /// Reads all rows by ascending key as they are stored. Calls `each` for every row and for every gap, until it returns
    /// false.
    pub(super) fn walk(&self, each: &mut dyn FnMut(Step<'_>) -> bool) {
        self.walk_tree(self.rows, each);
    }

    fn walk_tree(&self, root: Root, each: &mut dyn FnMut(Step<'_>) -> bool) {
        let pages_left = self.len / u64::from(PAGE);
        let mut walk = Walk { widths: root.widths, last: None, told: false, pages_left, each };
        self.visit(root.page, None, 0, &mut walk);
    }

    /// Walks through a page and those below it, which have no key above `highest`. Returns whether to go on.
    fn visit(&self, page: Named, highest: Option<&[u8]>, level: u32, walk: &mut Walk<'_>) -> bool {
        let found = self.page(page, walk.widths).filter(|_| walk.pages_left > 0 && level < MOST_LEVELS);
        let Some((page, intact)) = found else {
            return walk.gap("a page is not there or cannot be read");
        };
        // Only those that are there: a file that was cut has fewer pages than its branches name.
        walk.pages_left -= 1;
        match page.first() {
            Some(&LEAF) => match of_leaf(&page, walk.widths, intact) {
                Some(pairs) => {
                    let wrong = out_of_order(&pairs);
                    pairs.into_iter().enumerate().all(|(at, (key, value))| match wrong.contains(&at) {
                        true => walk.gap(OUT_OF_ORDER),
                        false => walk.pair(key, value, highest),
                    })
                }
                None => walk.gap("a page with rows is damaged"),
            },
            Some(&BRANCH) => match branch(&page, walk.widths) {
                Some(Branch { children, separators }) => {
                    children.into_iter().enumerate().all(|(n, (number, checksum))| {
                        let own =
                            separators.as_ref().filter(|_| intact).and_then(|separators| separators.get(n).copied());
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
        let Root { page: mut at, widths, .. } = self.rows;
        for _ in 0..MOST_LEVELS {
            let (page, intact) = self.page(at, widths).ok_or_else(damaged)?;
            match page.first() {
                Some(&LEAF) => {
                    let pairs = of_leaf(&page, widths, intact).ok_or_else(damaged)?;
                    let found = pairs.into_iter().find(|(found, _)| *found == key.as_bytes());
                    return Ok(found.map(|(_, stored)| row::decode(key.clone(), stored)).transpose()?);
                }
                Some(&BRANCH) => {
                    let Branch { children, separators } = branch(&page, widths).ok_or_else(damaged)?;
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

    /// The bytes of a page as it was written, and whether they are sure to be these; `None` when it is not in the file, or may be
    /// another one.
    pub(super) fn page(&self, named: Named, widths: Widths) -> Option<(Vec<u8>, bool)> {
        let (start, page) = self.bytes(named.number)?;
        if is_right(&page, named.checksum, widths) {
            return Some((page, true));
        }
        if !named.surely {
            return None;
        }
        let mut damaged = self.damaged.borrow_mut();
        let written = damaged.entry((start, named.checksum)).or_insert_with(|| {
            let mut may_hash = self.may_hash.get();
            let written = corrected(&page, named.checksum, widths, &mut may_hash);
            self.may_hash.set(may_hash);
            written
        });
        Some(written.clone().map_or((page, false), |written| (written, true)))
    }

    /// The bytes of a page, if its checksum is right.
    pub(super) fn as_written(&self, named: Named, widths: Widths) -> Option<Vec<u8>> {
        let (_, page) = self.bytes(named.number)?;
        is_right(&page, named.checksum, widths).then_some(page)
    }

    /// Whether all these pages have the right checksums. Reads them in the order of the file, several at once.
    pub(super) fn are_as_written(&self, named: Vec<Named>, widths: Widths) -> bool {
        let Some(mut places) =
            named.into_iter().map(|page| Some((self.place(page.number)?, page.checksum))).collect::<Option<Vec<_>>>()
        else {
            return false;
        };
        places.sort_unstable();
        let mut rest = places.as_slice();
        while let Some(((start, _), _)) = rest.first() {
            let near = rest.partition_point(|((at, size), _)| at + size <= start + READ_AT_ONCE).max(1);
            let (together, behind) = rest.split_at(near);
            let end = together.last().map_or(*start, |((at, size), _)| at + size);
            // A sector that cannot be read may be between them, in a page that is not in use.
            let bytes = usize::try_from(end - start).ok().and_then(|len| read(&self.file, *start, len).ok());
            let is_as_written = |((at, size), checksum): &((u64, u64), u128)| {
                let page = match &bytes {
                    Some(bytes) => {
                        bytes.get((at - start) as usize..).and_then(|rest| rest.get(..*size as usize)).map(Cow::from)
                    }
                    None => self.read(*at, *size).map(Cow::from),
                };
                page.is_some_and(|page| is_right(&page, *checksum, widths))
            };
            if !together.iter().all(is_as_written) {
                return false;
            }
            rest = behind;
        }
        true
    }

    /// Why the first read failed that did.
    pub(super) fn met_unreadable(&self) -> Option<&io::Error> {
        self.unreadable.get()
    }

    /// Where a page is, and its bytes.
    fn bytes(&self, number: u64) -> Option<(u64, Vec<u8>)> {
        let (start, size) = self.place(number)?;
        Some((start, self.read(start, size)?))
    }

    /// Where a page is, and how many bytes it has; `None` when it is not in the file.
    fn place(&self, number: u64) -> Option<(u64, u64)> {
        let order = u32::try_from(number >> 59).ok().filter(|order| *order <= MOST_ORDER)?;
        let (index, region) = (number & (0xF_FFFF >> order), (number >> 20) & 0xF_FFFF);
        let size = u64::from(PAGE) << order;
        let start = u64::from(PAGE) + region.checked_mul(self.region)? + self.region_header + index * size;
        (start.checked_add(size)? <= self.len).then_some((start, size))
    }

    fn read(&self, start: u64, size: u64) -> Option<Vec<u8>> {
        read(&self.file, start, usize::try_from(size).ok()?).map_err(|error| self.unreadable.set(error)).ok()
    }
}

/// The pairs of a leaf; `None` when it makes no sense, or when its checksum is wrong and all its rows are right: then it is another
/// page, such as an older version of this one.
fn of_leaf(page: &[u8], widths: Widths, intact: bool) -> Option<Pairs<'_>> {
    pairs(page, widths).filter(|pairs| intact || pairs.iter().any(is_damaged) || !out_of_order(pairs).is_empty())
}

fn is_damaged((key, stored): &(&[u8], &[u8])) -> bool {
    row::split(&Key::from_bytes(key), stored).is_err()
}

/// The places of the pairs of a leaf whose keys are not between those of their neighbours. Of two neighbours the wrong one is that whose
/// checksum, which covers the key, does not match; or else the one without which the others rise.
fn out_of_order(pairs: &[(&[u8], &[u8])]) -> Vec<usize> {
    let falls = (1..pairs.len()).filter(|at| pairs[at - 1].0 >= pairs[*at].0);
    let wrong = falls.map(|at| {
        let before_rises = pairs.get(at + 1).is_none_or(|next| pairs[at - 1].0 < next.0);
        match (is_damaged(&pairs[at - 1]), is_damaged(&pairs[at])) {
            (true, false) => at - 1,
            (false, true) => at,
            _ if before_rises => at,
            _ => at - 1,
        }
    });
    wrong.collect()
}

/// Whether the checksum of a page is right, but for a few bits of the checksum itself.
fn is_right(page: &[u8], checksum: u128, widths: Widths) -> bool {
    let found = used(page, widths).map(|end| XxHash3_128::oneshot(&page[..end]));
    found.is_some_and(|found| (found ^ checksum).count_ones() <= MOST_FLIPPED)
}

fn read(file: &File, at: u64, len: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; len];
    file.read_exact_at(&mut bytes, at)?;
    Ok(bytes)
}
