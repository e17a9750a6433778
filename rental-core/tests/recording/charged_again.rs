//! One number that a statement charges, gives back and charges again. The last charge is what is owed.

use crate::{Ids, Passage, empty, import_rows, money, toll_row, tolls};
use rental_core::{
    imports::{Counts, statements::TollRow},
    resources::toll::Toll,
    store::memory::Memory,
};
use std::sync::Arc;

/// A toll of that number on that day: an amount above 0 is charged, one below is given back.
fn row(number: u8, day: u8, amount: i64) -> TollRow {
    let passage: Passage = (Some(number), 0, u32::try_from(amount.unsigned_abs()).unwrap(), amount < 0);
    let row = toll_row(&passage);
    TollRow { occurred_at: row.occurred_at.map(|at| at.plus_millis(i64::from(day) * 24 * 3600 * 1000)), ..row }
}

fn import(store: &Arc<Memory>, edge: &Ids, rows: &[TollRow], size: usize) -> Counts {
    import_rows::<Toll>(store, edge, rows, (size, false))
}

/// The amount of the first toll once these files were imported, and again.
fn imported(files: &[&[i64]], size: usize) -> String {
    let (store, edge) = (empty(), Ids::default());
    let files: Vec<Vec<TollRow>> =
        files.iter().map(|file| file.iter().map(|amount| row(1, 0, *amount)).collect()).collect();
    let mut amounts = Vec::new();
    for _ in 0..2 {
        files.iter().for_each(|file| drop(import(&store, &edge, file, size)));
        amounts.push(tolls(&store)[0].amount.to_string());
    }
    assert_eq!(amounts[0], amounts[1], "the second import changes nothing: {files:?}");
    amounts.remove(0)
}

#[test]
fn a_charge_after_it_was_given_back_is_owed_in_one_file_and_in_several() {
    for size in [1, 2, 200] {
        for (files, owed) in [
            (&[&[7, -7, 9][..]][..], "9"),
            (&[&[7, -7, 5]], "5"),
            (&[&[7], &[-7], &[5]], "5"),
            (&[&[7], &[-7], &[9]], "9"),
            (&[&[7], &[7, -7, 5]], "5"),
            (&[&[7, 5], &[-7]], "5"),
            (&[&[7, -7, 7]], "7"),
            (&[&[7], &[7, -7, 7]], "7"),
            (&[&[7, -7]], "0"),
            (&[&[7], &[7, -7]], "0"),
            (&[&[9, -2]], "7"),
        ] {
            assert_eq!(imported(files, size), owed, "{files:?} in parts of {size}");
        }
    }
}

#[test]
fn a_credit_of_what_was_replaced_is_listed_for_review() {
    let (store, edge) = (empty(), Ids::default());
    let counts = import(&store, &edge, &[row(1, 0, 7), row(1, 0, -7), row(1, 0, 9)], 200);
    assert_eq!((counts.created, counts.updated, counts.duplicates, counts.review.len()), (1, 1, 1, 1), "{counts:?}");
    assert_eq!(counts.review[0].row, 3);
    assert!(counts.review[0].message.contains("before 9 replaced it, so 9 stays"), "{counts:?}");
    let counts = import(&store, &edge, &[row(2, 0, 7), row(2, 0, -7), row(2, 0, 7)], 200);
    assert!(counts.review[0].message.contains("charges twice under one number"), "{counts:?}");
}

#[test]
fn in_a_file_that_begins_with_the_newest_rows_the_first_one_of_a_number_is_the_last_word() {
    for size in [1, 2, 200] {
        let others = |days: [u8; 3]| days.map(|day| row(day, day, 3));
        let (store, edge) = (empty(), Ids::default());
        let file: Vec<TollRow> = others([9, 8, 7]).into_iter().chain([5, 7].map(|amount| row(1, 5, amount))).collect();
        let counts = import(&store, &edge, &file, size);
        let amount = |store: &Memory| {
            let found = tolls(store).into_iter().find(|toll| toll.transaction_id.as_deref() == Some("T1"));
            found.unwrap().amount
        };
        assert_eq!(amount(&store), money(5));
        assert!(counts.review[0].message.contains("so 5 stays"), "{counts:?}");
        import(&store, &edge, &file, size);
        assert_eq!(amount(&store), money(5), "also when it is imported again");
        // The oldest first: the last row corrects.
        let (store, edge) = (empty(), Ids::default());
        let file: Vec<TollRow> = others([2, 3, 4]).into_iter().chain([5, 7].map(|amount| row(1, 5, amount))).collect();
        import(&store, &edge, &file, size);
        assert_eq!(amount(&store), money(7));
    }
}
