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

/// The fields of a toll, with their names in a mapping file.
pub(super) const TOLL_FIELDS: [(Field, &str); 14] = [
    (Field::Agency, "agency"),
    (Field::TransactionId, "transaction_id"),
    (Field::OccurredAt, "occurred_at"),
    (Field::Date, "date"),
    (Field::Time, "time"),
    (Field::Plaza, "plaza"),
    (Field::Plate, "plate"),
    (Field::PlateState, "plate_state"),
    (Field::Transponder, "transponder_number"),
    (Field::TagOrPlate, "tag_or_plate"),
    (Field::Amount, "amount"),
    (Field::Debit, "debit"),
    (Field::Credit, "credit"),
    (Field::Kind, "type"),
];
