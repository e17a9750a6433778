//! Where the fields of a toll stand in one file: a mapping held against its header.

use super::{cells::filled, header::Header, mapping::Mapping};

/// What a column can be for a toll.
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
}

/// Every field in order, with its name in a mapping file.
pub(super) const FIELDS: [(Field, &str); 14] = [
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

pub(super) struct Layout {
    /// For each field the places of its columns, in the order in which they are looked into.
    places: [Vec<usize>; FIELDS.len()],
    /// For each field the name of its first column, for messages.
    labels: [String; FIELDS.len()],
    skip: Option<usize>,
}

impl Layout {
    /// Finds the columns of a mapping; of each field, but those in `optional`, at least one must be there.
    ///
    /// # Errors
    /// What is missing, or stands there twice.
    pub(super) fn resolve(mapping: &Mapping, optional: &[Field], header: &Header) -> Result<Self, String> {
        let mut layout = Self {
            places: std::array::from_fn(|_| Vec::new()),
            labels: FIELDS.map(|(_, name)| name.to_owned()),
            skip: None,
        };
        let missing = |name: &str| format!("there is no column `{name}`{}", header.near(name));
        for (field, names) in &mapping.columns {
            let places: Vec<usize> = names.iter().filter_map(|name| header.find(name)).collect();
            match (places.first(), names.first()) {
                (Some(first), _) => header.name(*first).clone_into(&mut layout.labels[*field as usize]),
                (None, Some(name)) if !optional.contains(field) => return Err(missing(name)),
                _ => {}
            }
            layout.places[*field as usize] = places;
        }
        if let Some((column, _)) = &mapping.skip {
            layout.skip = Some(header.find(column).ok_or_else(|| missing(column))?);
        }
        let all: Vec<usize> = layout.places.iter().flatten().copied().chain(layout.skip).collect();
        match header.repeated(&all) {
            Some(name) => Err(format!("there are two columns `{name}`")),
            None => Ok(layout),
        }
    }

    /// Whether the file has a column for it.
    pub(super) fn has(&self, field: Field) -> bool {
        !self.places[field as usize].is_empty()
    }

    /// The first filled column of a field.
    pub(super) fn get<'a>(&self, row: &[&'a str], field: Field) -> Option<&'a str> {
        self.all(row, field).next()
    }

    /// Every filled column of a field.
    pub(super) fn all<'a>(&self, row: &[&'a str], field: Field) -> impl Iterator<Item = &'a str> {
        self.places[field as usize].iter().filter_map(|at| filled(row.get(*at)?))
    }

    /// The name of a field's column as the file spells it.
    pub(super) fn label(&self, field: Field) -> &str {
        &self.labels[field as usize]
    }

    /// The value that a mapping's `skip` looks at.
    pub(super) fn skipped_by<'a>(&self, row: &[&'a str]) -> Option<&'a str> {
        self.skip.and_then(|at| filled(row.get(at)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_stands_at_its_own_place() {
        for (at, (field, _)) in FIELDS.iter().enumerate() {
            assert_eq!(*field as usize, at);
        }
    }
}
