//! Decides which columns of a table are shown, and how wide each of them is. No I/O.

/// Columns of space between two cells.
pub(super) const GAP: usize = 2;

/// What a column of a table needs.
#[derive(Clone, Copy)]
pub(super) struct Need {
    /// The width at which nothing of it is cut.
    pub(super) whole: usize,
    /// The width that is enough where the table does not fit as a whole: the same, or less if it has long names.
    pub(super) width: usize,
    /// The width down to which it may be cut; the same if nothing of it may be cut.
    pub(super) least: usize,
    /// Whether people copy its values. Other columns are cut first.
    pub(super) is_copied: bool,
    /// Whether the table is not complete without it.
    pub(super) is_essential: bool,
    /// Whether it has ids, which have a line of their own under the row if there is no room beside the other columns.
    pub(super) is_id: bool,
}

/// Where the columns of a table are.
pub(super) struct Layout {
    /// The columns that are beside each other, from left to right, and their widths.
    pub(super) beside: Vec<(usize, usize)>,
    /// The columns that are under each row.
    pub(super) under: Vec<usize>,
    /// How many essential columns are not shown.
    pub(super) hidden: usize,
}

/// Lays out columns, each with its place in the table, in `room` columns of a terminal. Before an essential column is cut, ids
/// move under their rows and all that is not essential is left out. Before one is left out, the widest ones are cut.
pub(super) fn layout(needs: &[(usize, Need)], room: usize) -> Layout {
    let essential = || needs.iter().filter(|(_, need)| need.is_essential);
    let fits_whole = total(essential().map(|(_, need)| need.whole)) <= room;
    let enough = |need: &Need| if fits_whole && need.is_essential { need.whole } else { need.width };
    let is_id_first = needs.first().is_some_and(|(_, need)| need.is_id);
    let below = is_id_first && needs.len() > 1 && total(essential().map(|(_, need)| enough(need))) > room;
    let (under, beside): (Vec<_>, Vec<_>) = needs.iter().partition(|(_, need)| below && need.is_id);
    let (mut shown, mut used, mut hidden): (Vec<(usize, Need)>, usize, usize) = (Vec::new(), 0, 0);
    for one in beside.iter().filter(|(_, need)| need.is_essential) {
        let needed = one.1.least + if shown.is_empty() { 0 } else { GAP };
        if shown.is_empty() || used + needed <= room {
            used += needed;
            shown.push(*one);
        } else {
            hidden += 1;
        }
    }
    let mut used = total(shown.iter().map(|(_, need)| enough(need)));
    // What is not essential is not shown in the place of what is.
    for one in beside.iter().filter(|(_, need)| !need.is_essential && hidden == 0) {
        let needed = one.1.width + if shown.is_empty() { 0 } else { GAP };
        if shown.is_empty() || used + needed <= room {
            used += needed;
            shown.push(*one);
        }
    }
    shown.sort_by_key(|(at, _)| *at);
    let beside = fitted(&shown, room);
    Layout { beside, under: under.into_iter().map(|(at, _)| at).collect(), hidden }
}

/// Lays out columns that somebody chose: all of them beside each other, also if they do not fit when all texts are cut.
pub(super) fn chosen(needs: &[(usize, Need)], room: usize) -> Layout {
    Layout { beside: fitted(needs, room), under: Vec::new(), hidden: 0 }
}

/// The columns with their widths. Those that are not essential get what the others leave.
fn fitted(shown: &[(usize, Need)], room: usize) -> Vec<(usize, usize)> {
    let wanted = |need: &Need| if need.is_essential { need.whole } else { need.width };
    let needs: Vec<Need> = shown.iter().map(|(_, need)| Need { width: wanted(need), ..*need }).collect();
    let mut widths = narrowed(&needs, room);
    let mut free = room.saturating_sub(total(widths.iter().copied()));
    for (need, width) in needs.iter().zip(&mut widths).filter(|(need, _)| !need.is_essential) {
        let more = need.whole.saturating_sub(*width).min(free);
        *width += more;
        free -= more;
    }
    shown.iter().map(|(at, _)| *at).zip(widths).collect()
}

/// The widths of columns that fit together: those that nobody copies are cut alone, if that is enough; always the widest ones.
fn narrowed(needs: &[Need], room: usize) -> Vec<usize> {
    let mut widths = Vec::new();
    for all in [false, true] {
        widths = needs.iter().map(|need| need.width).collect();
        while total(widths.iter().copied()) > room {
            let cut = needs.iter().zip(&mut widths).filter(|(need, _)| all || !need.is_copied);
            let Some((_, widest)) = cut.filter(|(need, width)| **width > need.least).max_by_key(|(_, width)| **width)
            else {
                break;
            };
            *widest -= 1;
        }
        if total(widths.iter().copied()) <= room {
            break;
        }
    }
    widths
}

fn total(widths: impl Iterator<Item = usize>) -> usize {
    widths.map(|width| width + GAP).sum::<usize>().saturating_sub(GAP)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIXED: Need = Need { whole: 10, width: 10, least: 10, is_copied: false, is_essential: true, is_id: false };
    const NAME: Need = Need { whole: 40, width: 40, least: 14, ..FIXED };
    const LONG: Need = Need { whole: 60, ..NAME };
    const EMAIL: Need = Need { is_copied: true, ..NAME };
    const ID: Need = Need { whole: 36, width: 36, least: 36, is_id: true, ..FIXED };
    const EXTRA: Need = Need { is_essential: false, ..FIXED };

    #[track_caller]
    fn check(needs: &[Need], room: usize, expected: &[(usize, usize)], (under, hidden): (&[usize], usize)) {
        let needs: Vec<(usize, Need)> = needs.iter().copied().enumerate().collect();
        let Layout { beside, under: below, hidden: left } = layout(&needs, room);
        assert_eq!((beside.as_slice(), below.as_slice(), left), (expected, under, hidden));
    }

    #[test]
    fn what_is_not_essential_is_left_out_before_anything_is_cut() {
        check(&[ID, NAME, EXTRA], 90, &[(0, 36), (1, 40), (2, 10)], (&[], 0));
        check(&[ID, NAME, EXTRA], 89, &[(0, 36), (1, 40)], (&[], 0));
    }

    #[test]
    fn ids_move_under_their_rows_before_anything_is_cut() {
        check(&[ID, NAME, FIXED], 89, &[(1, 40), (2, 10)], (&[0], 0));
        check(&[ID, NAME, FIXED, EXTRA], 64, &[(1, 40), (2, 10), (3, 10)], (&[0], 0));
    }

    #[test]
    fn the_widest_names_are_cut_before_a_column_is_left_out() {
        check(&[ID, NAME, Need { whole: 20, width: 20, ..NAME }, FIXED], 60, &[(1, 26), (2, 20), (3, 10)], (&[0], 0));
        check(&[ID, NAME, NAME, FIXED], 42, &[(1, 14), (2, 14), (3, 10)], (&[0], 0));
        check(&[ID, NAME, NAME, FIXED], 41, &[(1, 20), (2, 19)], (&[0], 1));
    }

    #[test]
    fn what_people_copy_is_cut_only_when_names_are_not_enough() {
        check(&[ID, NAME, EMAIL], 60, &[(1, 18), (2, 40)], (&[0], 0));
        check(&[ID, NAME, EMAIL], 50, &[(1, 24), (2, 24)], (&[0], 0));
    }

    #[test]
    fn a_name_is_cut_only_where_it_does_not_fit() {
        check(&[ID, LONG, EXTRA], 110, &[(0, 36), (1, 60), (2, 10)], (&[], 0));
        check(&[ID, LONG], 97, &[(0, 36), (1, 59)], (&[], 0));
        check(&[ID, LONG, EXTRA], 100, &[(0, 36), (1, 60)], (&[], 0));
        check(&[ID, LONG, EXTRA], 97, &[(0, 36), (1, 47), (2, 10)], (&[], 0));
        check(&[ID, LONG, LONG, FIXED], 150, &[(0, 36), (1, 49), (2, 49), (3, 10)], (&[], 0));
        let extra = Need { is_essential: false, ..LONG };
        check(&[ID, NAME, extra], 130, &[(0, 36), (1, 40), (2, 50)], (&[], 0));
    }

    #[test]
    fn chosen_columns_are_all_beside_each_other() {
        let check = |needs: &[Need], room, expected: &[usize]| {
            let needs: Vec<(usize, Need)> = needs.iter().copied().enumerate().collect();
            let Layout { beside, under, hidden } = chosen(&needs, room);
            let widths: Vec<usize> = beside.into_iter().map(|(_, width)| width).collect();
            assert_eq!((widths.as_slice(), under.len(), hidden), (expected, 0, 0));
        };
        check(&[LONG, ID], 98, &[60, 36]);
        check(&[LONG, ID], 80, &[42, 36]);
        check(&[LONG, ID, FIXED, EMAIL], 110, &[18, 36, 10, 40]);
        check(&[LONG, ID, FIXED, EMAIL], 90, &[19, 36, 10, 19]);
        check(&[LONG, ID, FIXED], 40, &[14, 36, 10]);
    }
}
