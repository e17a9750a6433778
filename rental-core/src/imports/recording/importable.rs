//! The rules of a resource for its import. `toll` and `violation` implement them.

use crate::{
    imports::statements::StatementRow,
    resources::{Attributable, organization::Organization},
    schema::IndexPrefix,
    value::{Id, Money, Name, Timestamp, VehicleId},
};

/// A resource whose objects are recorded from the rows of statements.
pub trait Importable: Attributable {
    /// The rows that a file of this resource contains.
    type Row: StatementRow + Sync;

    /// Creates the object of a row, without its vehicle.
    fn from_row(row: &Self::Row, new: &NewObject<'_, Self::Kind>) -> Self;

    /// A text that identifies the object: equal for all rows about it and different for all others. `None` when the row
    /// has too few values.
    fn identity(&self) -> Option<String>;

    /// Updates the object from a later row about it. `before` is [`Importable::stated_amount`] of the row that was recorded
    /// last. `None` when the object would have an impossible amount.
    fn correct(&mut self, row: &Self::Row, vehicle: Option<VehicleId>, before: Money) -> Option<()>;

    /// The amount of a row, for resources whose later rows are corrections only when this amount differs. It is stored
    /// with the identity, because credits also change the amount of the object.
    fn stated_amount(_row: &Self::Row) -> Option<Money> {
        None
    }

    /// The same object with other leading zeros in its number, or in the transponder of one without a number: spreadsheets remove
    /// them. None when nothing can have been removed.
    fn respellings(&self) -> Vec<Self> {
        Vec::new()
    }

    /// Whether an object whose number has other leading zeros is this one.
    fn is_respelled(&self, other: &Self) -> bool {
        self.contradiction(other).is_none()
    }

    /// What contradicts that two objects of one identity are the same one, such as `vehicle`, `time` or `plaza`. Values that only one
    /// of them has contradict nothing.
    fn contradiction(&self, other: &Self) -> Option<&'static str>;

    /// The amounts of the object, for resources whose later rows replace what is known. Former ones are stored with the
    /// identity, so that an older list is recognised. Always as many.
    fn amounts(&self) -> Vec<Money> {
        Vec::new()
    }

    /// What an authority can correct of the object, as text, for resources with [`Importable::amounts`]. Former ones are remembered, so
    /// that an older list does not bring them back.
    fn place(&self) -> Option<String> {
        None
    }

    /// Whether a row brings a value that the object lacks, for resources with [`Importable::stated_amount`].
    fn is_completed_by(&self, _other: &Self) -> bool {
        false
    }

    /// Takes over that value.
    fn complete(&mut self, _other: &Self) {}

    /// What a person should know of a row that changed the amounts of an object from these to those, if there is something.
    fn remark(_before: &[Money], _after: &[Money]) -> Option<&'static str> {
        None
    }

    /// Whether nothing tells the object from another one of the same day, place and amount: it has neither a number nor a time.
    fn is_told_by_day(&self) -> bool {
        false
    }

    /// The time of a row in milliseconds, for resources with [`Importable::stated_amount`].
    fn at(_row: &Self::Row) -> Option<i64> {
        None
    }

    /// Whether the row reduces the amount of another row's object.
    fn is_credit(_row: &Self::Row) -> bool {
        false
    }

    /// The look-up of the objects that a credit with another identity may belong to.
    fn credit_look_up(&self) -> Option<IndexPrefix> {
        None
    }

    /// Subtracts a credit from the object's amount. `None` when the credit is larger.
    fn take_back(&mut self, _credit: &Self::Row) -> Option<()> {
        None
    }
}

/// The number with other leading zeros; none when it is no number, or a short one, which nobody pads.
pub(super) fn with_other_zeros(number: &str) -> Vec<String> {
    /// Fewest digits behind the zeros.
    const SHORTEST: usize = 5;
    /// Most zeros that are tried.
    const MOST_ZEROS: usize = 4;
    let bare = number.trim_start_matches('0');
    if bare.len() < SHORTEST || !bare.bytes().all(|byte| byte.is_ascii_digit()) {
        return Vec::new();
    }
    let zeros = number.len() - bare.len();
    let others = (0..=MOST_ZEROS).filter(|other| *other != zeros);
    others.map(|other| format!("{}{bare}", "0".repeat(other))).collect()
}

/// The values of a new object that are not in its row.
pub struct NewObject<'a, K> {
    /// The id of the object.
    pub id: Id<K>,
    /// The time in the id.
    pub created_at: Timestamp,
    /// The organization of the object.
    pub organization: &'a Organization,
    /// The authority that numbered the summonses of a list of violations.
    pub issuer: &'a Name,
}
