//! Checks every page of a file before redb opens it.
//!
//! redb checks pages only after a crash, and not always. After a clean close a flipped bit in a branch or in a key would hide rows:
//! a list would end early, or what guards a night or a number would not be found. One in redb's list of free pages would let it write
//! over rows. Here the pages of the rows are read in the order of the file, so that a start costs one reading of the file.

use super::{
    file::{self, Versions},
    format::{BRANCH, LEAF, branch, pairs},
    pages::{MOST_LEVELS, Named, Pages, Refused, Root},
};
use crate::store::StoreError;
use std::path::Path;

/// A page is not as it was written.
pub(super) struct Damage;

/// Reads a page; `None` when it is not as it was written.
type Read<'r> = &'r dyn Fn(Named, Root) -> Option<Vec<u8>>;

/// Most pages whose checksums are kept in memory, in two lists of 32 bytes for each.
const MOST_AHEAD: usize = 1 << 18;

/// Checks every page of all tables. Does not change the file.
///
/// # Errors
/// [`StoreError::DamagedStore`] when one is damaged, [`StoreError::Unreadable`] when the file was cut or the disk cannot read one. What
/// else is wrong with the file is not reported here: the opening that follows reports it.
pub(super) fn check(path: &Path, versions: Versions) -> Result<(), StoreError> {
    let pages = match file::wait_for(
        || Pages::open(path, versions, None),
        |refused| matches!(refused, Refused::Other(StoreError::InUse(_))),
    ) {
        Ok(pages) => pages,
        Err(refused @ Refused::NoVersion) => return Err(refused.of(path, "")),
        // Else the opening that follows could get the file unchecked, once the other process has closed it.
        Err(Refused::Other(in_use @ StoreError::InUse(_))) => return Err(in_use),
        Err(Refused::Everything | Refused::Other(_)) => return Ok(()),
    };
    let read = |page: Named, root: Root| pages.as_written(page, root.widths);
    let (list, system) = pages.lists();
    let lists = [Some(list), system];
    let checked = lists.into_iter().flatten().try_for_each(|list| {
        tables(list, &read, &mut |root| {
            let mut leaves = Leaves { pages: &pages, root, ahead: Vec::new() };
            leaves.below(root.page, MOST_LEVELS)?;
            leaves.check()
        })
    });
    match (checked, pages.met_unreadable()) {
        (Ok(()), _) => Ok(()),
        (Err(Damage), Some(error)) => Err(StoreError::Unreadable(file::unreadable(path, error))),
        (Err(Damage), None) if file::was_cut(path) => {
            Err(StoreError::Unreadable(file::unreadable(path, "one of its pages")))
        }
        (Err(Damage), None) => Err(StoreError::DamagedStore(format!(
            "{} is damaged (a page is not as it was written); restore it from a backup",
            path.display()
        ))),
    }
}

/// The leaves of a tree that are to be checked.
struct Leaves<'p> {
    pages: &'p Pages,
    root: Root,
    ahead: Vec<Named>,
}

impl Leaves<'_> {
    /// Checks a page and all branches below it, and collects the leaves below it. All leaves of a tree are on one level.
    fn below(&mut self, page: Named, levels: u32) -> Result<(), Damage> {
        let levels = levels.checked_sub(1).ok_or(Damage)?;
        let bytes = self.pages.as_written(page, self.root.widths).ok_or(Damage)?;
        if bytes.first() != Some(&BRANCH) {
            return Ok(());
        }
        let children = children(&bytes, self.root)?;
        let first = children.first().ok_or(Damage)?;
        let first = self.pages.as_written(*first, self.root.widths).ok_or(Damage)?;
        if first.first() == Some(&BRANCH) {
            return children.into_iter().try_for_each(|child| self.below(child, levels));
        }
        self.ahead.extend(children);
        if self.ahead.len() >= MOST_AHEAD { self.check() } else { Ok(()) }
    }

    fn check(&mut self) -> Result<(), Damage> {
        let are_right = self.pages.are_as_written(std::mem::take(&mut self.ahead), self.root.widths);
        are_right.then_some(()).ok_or(Damage)
    }
}

/// Reads every page of redb's own tables, corrected where that is possible, so that the damaged ones are known.
pub(super) fn read_own_tables(pages: &Pages) {
    let read =
        |page: Named, root: Root| pages.page(page, root.widths).filter(|(_, intact)| *intact).map(|(page, _)| page);
    if let (_, Some(list)) = pages.lists() {
        // A damaged page is noted when it is read.
        let _ = tables(list, &read, &mut |root| visit(root.page, root, MOST_LEVELS, &read, &mut |_| Ok(())));
    }
}

fn children(page: &[u8], root: Root) -> Result<Vec<Named>, Damage> {
    let children = branch(page, root.widths).ok_or(Damage)?.children.into_iter();
    Ok(children.map(|(number, checksum)| Named { number, checksum, surely: true }).collect())
}

/// Reads the pages of a list of tables, and calls `each` for the root of every table.
fn tables(list: Root, read: Read<'_>, each: &mut dyn FnMut(Root) -> Result<(), Damage>) -> Result<(), Damage> {
    visit(list.page, list, MOST_LEVELS, read, &mut |leaf| {
        let found = pairs(leaf, list.widths).ok_or(Damage)?.into_iter();
        found.filter_map(|(_, definition)| Root::of_table(definition, true)).try_for_each(&mut *each)
    })
}

/// Reads a page and those below it, down to so many levels. Calls `each` for every leaf.
fn visit(
    page: Named,
    root: Root,
    levels: u32,
    read: Read<'_>,
    each: &mut dyn FnMut(&[u8]) -> Result<(), Damage>,
) -> Result<(), Damage> {
    let levels = levels.checked_sub(1).ok_or(Damage)?;
    let page = read(page, root).ok_or(Damage)?;
    match page.first() {
        Some(&LEAF) => each(&page),
        _ => children(&page, root)?.into_iter().try_for_each(|child| visit(child, root, levels, read, each)),
    }
}
