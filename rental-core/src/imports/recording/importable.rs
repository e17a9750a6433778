//! What a resource says about its import. `toll` and `violation` have the rules of each.

use crate::{
    fleet::attribution::Attributable,
    imports::{RowOutcome, statements::StatementRow},
    resources::organization::Organization,
    schema::IndexPrefix,
    value::{Id, Money, Name, Timestamp, VehicleId},
};

/// A resource whose objects are recorded from the rows of statements.
pub trait Importable: Attributable {
    /// The rows.
    type Row: StatementRow + Sync;

    /// The outcome of a row that another row of a dry run precedes under the same identity. A dry run makes no object
    /// to compare the row with.
    const REPEATED_IN_DRY_RUN: RowOutcome;

    /// The object of a row. Its vehicle is not yet known.
    fn from_row(row: &Self::Row, new: &NewObject<'_, Self::Kind>) -> Self;

    /// The text that is the same in every row about this object, and in no row about another one. `None` when the row
    /// does not say enough.
    fn identity(&self) -> Option<String>;

    /// Changes the object to what a later row about it says. `before` is [`Importable::stated_amount`] of the row that
    /// was recorded last. `None` when the object would have an impossible amount.
    fn correct(&mut self, row: &Self::Row, vehicle: Option<VehicleId>, before: Money) -> Option<()>;

    /// The amount of a row, if a later row about the same object is a correction only when its amount differs. It is
    /// recorded with the identity, because the amount of the object changes with credits too.
    fn stated_amount(_row: &Self::Row) -> Option<Money> {
        None
    }

    /// Whether the row takes money back from an object that another row makes.
    fn is_credit(_row: &Self::Row) -> bool {
        false
    }

    /// The look-up of objects that a credit with an identity of its own may belong to.
    fn credit_look_up(&self) -> Option<IndexPrefix> {
        None
    }

    /// Takes the money of a credit back. `None` when it is more than the object's amount.
    fn take_back(&mut self, _credit: &Self::Row) -> Option<()> {
        None
    }
}

/// What a new object does not have from its row.
pub struct NewObject<'a, K> {
    /// Its id.
    pub id: Id<K>,
    /// The time in its id.
    pub created_at: Timestamp,
    /// Its organization.
    pub organization: &'a Organization,
    /// The authority that numbered the summonses of a list of violations.
    pub issuer: &'a Name,
}
