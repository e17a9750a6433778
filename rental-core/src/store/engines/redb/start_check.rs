//! Checks the pages that lead to others, without which redb loses, repeats or overwrites rows.
//!
//! redb checks pages only after a crash, and then all of them. After a clean close a flipped bit in a branch would hide rows, and
//! one in redb's list of free pages would let it write over rows. All branches together are about a hundredth of a file, so each
//! opening can read them. Leaves with rows are not read here: a row has a checksum of its own.

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

/// Checks the branches of the rows, and every page of the other tables. Does not change the file.
///
/// # Errors
/// [`StoreError::DamagedStore`] when one is damaged, [`StoreError::Unreadable`] when the file was cut or the disk cannot read one. What
/// else is wrong with the file is not reported here: the opening that follows reports it.
pub(super) fn check(path: &Path, versions: Versions) -> Result<(), StoreError> {
    let pages = match Pages::open(path, versions, None) {
        Ok(pages) => pages,
        Err(refused @ Refused::NoVersion) => return Err(refused.of(path, "")),
        Err(Refused::Everything | Refused::Other(_)) => return Ok(()),
    };
    let read = |page: Named, root: Root| pages.as_written(page, root.widths);
    let (list, system) = pages.lists();
    let checked =
        tables(&pages, list, &read).and_then(|()| system.map_or(Ok(()), |system| tables(&pages, system, &read)));
    match checked {
        Ok(()) => Ok(()),
        Err(Damage) if pages.met_unreadable() || file::was_cut(path) => {
            Err(StoreError::Unreadable(file::unreadable(path, "a page that leads to others")))
        }
        Err(Damage) => Err(StoreError::DamagedStore(format!(
            "{} is damaged (a page that leads to others is not as it was written); restore it from a backup",
            path.display()
        ))),
    }
}

/// Reads every page of redb's own tables, corrected where that is possible, so that the damaged ones are known.
pub(super) fn read_own_tables(pages: &Pages) {
    let read =
        |page: Named, root: Root| pages.page(page, root.widths).filter(|(_, intact)| *intact).map(|(page, _)| page);
    if let (_, Some(list)) = pages.lists() {
        // A damaged page is noted when it is read.
        let _ = tables(pages, list, &read);
    }
}

fn children(page: &[u8], root: Root) -> Result<Vec<Named>, Damage> {
    let children = branch(page, root.widths).ok_or(Damage)?.children.into_iter();
    Ok(children.map(|(number, checksum)| Named { number, checksum, surely: true }).collect())
}

/// Checks all branches of a tree. All its leaves are on one level.
fn branches(pages: &Pages, root: Root, read: Read<'_>) -> Result<(), Damage> {
    let (mut level, mut levels) = (vec![root.page], 0);
    loop {
        // A leaf may be damaged, and its neighbours tell what it is; else its first byte does. The root has no neighbours.
        let sound = level.iter().find_map(|page| read(*page, root));
        if levels == 0 && sound.is_none() {
            return Err(Damage);
        }
        let first = || pages.page(*level.first()?, root.widths).map(|(page, _)| page);
        let page = sound.or_else(first).ok_or(Damage)?;
        if page.first() != Some(&BRANCH) {
            break;
        }
        levels += 1;
        level = children(&page, root)?;
        if levels == MOST_LEVELS {
            return Err(Damage);
        }
    }
    visit(root.page, root, levels, read, &mut |_| Ok(()))
}

/// Checks every page of the tables of a list, but the leaves of the rows.
fn tables(pages: &Pages, list: Root, read: Read<'_>) -> Result<(), Damage> {
    visit(list.page, list, MOST_LEVELS, read, &mut |leaf| {
        for (name, definition) in pairs(leaf, list.widths).ok_or(Damage)? {
            match Root::of_table(definition, true) {
                Some(rows) if name == b"rows" => branches(pages, rows, read)?,
                Some(root) => visit(root.page, root, MOST_LEVELS, read, &mut |_| Ok(()))?,
                None => {}
            }
        }
        Ok(())
    })
}

/// Checks a page and those below it, down to so many levels. Calls `each` for every leaf.
fn visit(
    page: Named,
    root: Root,
    levels: u32,
    read: Read<'_>,
    each: &mut dyn FnMut(&[u8]) -> Result<(), Damage>,
) -> Result<(), Damage> {
    if levels == 0 {
        return Ok(());
    }
    let page = read(page, root).ok_or(Damage)?;
    match page.first() {
        Some(&LEAF) => each(&page),
        _ => children(&page, root)?.into_iter().try_for_each(|child| visit(child, root, levels - 1, read, each)),
    }
}
