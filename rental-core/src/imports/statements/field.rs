//! The meanings of columns.

/// The meaning of a column.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Field {
    Agency,
    TransactionId,
    OccurredAt,
    Date,
    Time,
    Plaza,
    Plate,
    PlateState,
    Transponder,
    TagOrPlate,
    Amount,
    Debit,
    Credit,
    Kind,
    SummonsNumber,
    AmountDue,
    Violation,
    Fine,
    Penalty,
    Interest,
    Reduction,
    Payment,
    Status,
    PlateType,
    RespondBy,
}

/// Number of fields.
pub(super) const FIELDS: usize = Field::RespondBy as usize + 1;

/// The kinds of files that have a field.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Of {
    Both,
    Tolls,
    Violations,
}

/// Every field with its names in a mapping file. The second name is that of the same field of a violation.
pub(super) const MAPPED: [(Field, &[&str], Of); 25] = [
    (Field::TransactionId, &["transaction_id"], Of::Tolls),
    (Field::SummonsNumber, &["summons_number"], Of::Violations),
    (Field::OccurredAt, &["occurred_at", "issued_at"], Of::Both),
    (Field::Date, &["date", "issue_date"], Of::Both),
    (Field::Time, &["time", "violation_time"], Of::Both),
    (Field::Plaza, &["plaza"], Of::Tolls),
    (Field::Plate, &["plate"], Of::Both),
    (Field::PlateState, &["plate_state", "state"], Of::Both),
    (Field::Transponder, &["transponder_number"], Of::Tolls),
    (Field::TagOrPlate, &["tag_or_plate"], Of::Tolls),
    (Field::Amount, &["amount"], Of::Tolls),
    (Field::Debit, &["debit"], Of::Tolls),
    (Field::Credit, &["credit"], Of::Tolls),
    (Field::Kind, &["type"], Of::Tolls),
    (Field::AmountDue, &["amount_due", "amount"], Of::Violations),
    (Field::Violation, &["violation"], Of::Violations),
    (Field::Fine, &["fine_amount"], Of::Violations),
    (Field::Penalty, &["penalty_amount"], Of::Violations),
    (Field::Interest, &["interest_amount"], Of::Violations),
    (Field::Reduction, &["reduction_amount"], Of::Violations),
    (Field::Payment, &["payment_amount"], Of::Violations),
    (Field::Agency, &["issuing_agency"], Of::Violations),
    (Field::Status, &["status"], Of::Violations),
    (Field::PlateType, &["plate_type"], Of::Violations),
    (Field::RespondBy, &["respond_by"], Of::Violations),
];

/// The fields of a kind of file, with their names. Lists of violations have one issuer, statements of tolls have none.
pub(super) fn fields_of(has_issuer: bool) -> impl Iterator<Item = (Field, &'static [&'static str])> {
    let own = if has_issuer { Of::Violations } else { Of::Tolls };
    MAPPED.into_iter().filter(move |(.., of)| *of == Of::Both || *of == own).map(|(field, names, _)| (field, names))
}

impl Field {
    /// Whether its values are amounts, which can be added up. Those of other fields can be joined.
    pub(super) fn is_amount(self) -> bool {
        use Field::{Amount, AmountDue, Credit, Debit, Fine, Interest, Payment, Penalty, Reduction};
        matches!(self, Amount | Debit | Credit | AmountDue | Fine | Penalty | Interest | Reduction | Payment)
    }
}
