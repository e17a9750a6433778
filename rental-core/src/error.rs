//! What can go wrong, said so that the caller knows what to do next. No HTTP in it.
//!
//! Text in these values may be shown to a caller, except the detail of [`Error::Internal`], [`Error::Damaged`] and
//! [`Error::Unavailable`], which is for the log alone.

mod display;

use crate::store::{DamagedRow, Key, StoreError};
use crate::value::RentalId;

/// One thing wrong with one field of a body or one parameter of a query.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FieldError {
    /// Its name: `daily_rate`, `raw_data.form.name`, `limit`.
    pub param: String,
    /// What kind of mistake it is.
    pub code: FieldCode,
    /// A sentence that starts with the name.
    pub message: String,
}

/// The kinds of mistakes in a field or parameter.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FieldCode {
    /// A value that the field does not take.
    Invalid,
    /// Required, and not there.
    Missing,
    /// No such field or parameter, or one that only the server sets.
    Unknown,
    /// Sent more than once.
    Duplicate,
    /// Names an object that does not exist.
    ResourceMissing,
}

impl FieldCode {
    /// The code in an error body.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Invalid => "parameter_invalid",
            Self::Missing => "parameter_missing",
            Self::Unknown => "parameter_unknown",
            Self::Duplicate => "parameter_duplicate",
            Self::ResourceMissing => "resource_missing",
        }
    }
}

impl FieldError {
    /// A mistake in `param`; `rule` continues the sentence that its name begins.
    #[must_use]
    pub fn new(param: &str, code: FieldCode, rule: &str) -> Self {
        let end = if rule.ends_with('?') { "" } else { "." };
        Self { param: param.to_owned(), code, message: format!("`{param}` {rule}{end}") }
    }
}

/// The bad fields or parameters of one request: at most [`FieldErrors::MOST`] in full, and how many more there were.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct FieldErrors {
    listed: Vec<FieldError>,
    unlisted: usize,
}

impl FieldErrors {
    /// Most errors that a response lists (`docs/api.md`, "Errors").
    pub const MOST: usize = 50;

    /// Adds the error that `make` builds. `make` is called only when the error will be listed, so a request with
    /// thousands of mistakes costs no more than one with fifty.
    pub fn add(&mut self, make: impl FnOnce() -> FieldError) {
        if self.listed.len() < Self::MOST {
            self.listed.push(make());
        } else {
            self.unlisted += 1;
        }
    }

    /// Adds one error.
    pub fn push(&mut self, error: FieldError) {
        self.add(|| error);
    }

    /// The errors to list, in the order of the request.
    #[must_use]
    pub fn listed(&self) -> &[FieldError] {
        &self.listed
    }

    /// How many errors there were beyond those listed.
    #[must_use]
    pub fn unlisted(&self) -> usize {
        self.unlisted
    }

    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.listed.is_empty()
    }

    /// Adds the errors of another check of the same request.
    pub(crate) fn append(&mut self, others: Self) {
        self.unlisted += others.unlisted;
        self.extend(others.listed);
    }

    /// `outcome` when nothing is wrong so far.
    ///
    /// # Errors
    /// [`Error::Invalid`] with these errors otherwise, and with those of `outcome` if it is [`Error::Invalid`] too.
    pub(crate) fn join<T>(mut self, outcome: Result<T, Error>) -> Result<T, Error> {
        match outcome {
            outcome if self.is_empty() => outcome,
            Err(Error::Invalid(others)) => {
                self.append(others);
                Err(Error::Invalid(self))
            }
            _ => Err(Error::Invalid(self)),
        }
    }

    /// `value` when nothing is wrong.
    ///
    /// # Errors
    /// [`Error::Invalid`] with these errors otherwise.
    pub fn or<T>(self, value: T) -> Result<T, Error> {
        if self.is_empty() { Ok(value) } else { Err(Error::Invalid(self)) }
    }
}

impl Extend<FieldError> for FieldErrors {
    fn extend<I: IntoIterator<Item = FieldError>>(&mut self, errors: I) {
        errors.into_iter().for_each(|error| self.push(error));
    }
}

impl From<Vec<FieldError>> for FieldErrors {
    fn from(errors: Vec<FieldError>) -> Self {
        let mut all = Self::default();
        all.extend(errors);
        all
    }
}

/// Why a presented key is not accepted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum KeyProblem {
    /// No `Authorization: Bearer` header, or a garbled one.
    Missing,
    /// No such key.
    Invalid,
    /// Revoked by an operator.
    Revoked,
    /// Past its expiry.
    Expired,
}

/// Every way in which an operation can fail.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Error {
    /// The key is not accepted.
    Unauthenticated(KeyProblem),
    /// The organization is not on the Pro plan (spec, Authentication 3).
    PlanRequired,
    /// A write with a read key (spec, Authentication 5).
    ScopeRequired,
    /// No such object, or one of another organization: nobody can tell which.
    NotFound {
        /// The resource asked for.
        object: &'static str,
    },
    /// The body is not JSON, or not an object; the text says where.
    Malformed(String),
    /// At least one field or parameter is wrong.
    Invalid(FieldErrors),
    /// Another rental of the same organization holds the vehicle on one of these nights.
    VehicleUnavailable {
        /// The rental that holds it.
        rental: RentalId,
        /// The sentence for the caller.
        message: String,
    },
    /// `If-Match` names another revision than the present one.
    PreconditionFailed,
    /// What the object is now does not allow this change.
    Conflict(String),
    /// The idempotency key was used for another request.
    IdempotencyReused,
    /// The first request with this idempotency key still runs.
    IdempotencyInUse,
    /// Not now: overloaded or the store cannot serve. The detail is for the log.
    Unavailable(String),
    /// A row of the store is damaged. For a caller it is the same as [`Error::Internal`]; work in the background skips the
    /// row and goes on.
    Damaged(Box<DamagedRow>),
    /// A bug or damaged data. The detail is for the log.
    Internal(String),
}

impl Error {
    /// One wrong field.
    #[must_use]
    pub fn field(param: &str, code: FieldCode, rule: &str) -> Self {
        Self::Invalid(vec![FieldError::new(param, code, rule)].into())
    }

    /// For a record that does not parse: the store holds something that this program did not write.
    #[must_use]
    pub fn damaged(key: &Key, error: &serde_json::Error) -> Self {
        Self::damaged_row(key, format!("it does not parse: {error}"))
    }

    /// For a row that holds something else than what this program writes there.
    #[must_use]
    pub fn damaged_row(key: &Key, reason: impl Into<String>) -> Self {
        Self::Damaged(DamagedRow::new(key.clone(), reason))
    }

    /// Whether an idempotency record may keep this answer (`docs/decisions.md`, "Keys, plans, idempotency").
    #[must_use]
    pub fn is_final(&self) -> bool {
        match self {
            Self::NotFound { .. }
            | Self::Invalid(_)
            | Self::VehicleUnavailable { .. }
            | Self::PreconditionFailed
            | Self::Conflict(_) => true,
            Self::Unauthenticated(_)
            | Self::PlanRequired
            | Self::ScopeRequired
            | Self::Malformed(_)
            | Self::IdempotencyReused
            | Self::IdempotencyInUse
            | Self::Unavailable(_)
            | Self::Damaged(_)
            | Self::Internal(_) => false,
        }
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Busy | StoreError::Unavailable(_) | StoreError::Unknown(_) => {
                Self::Unavailable(error.to_string())
            }
            StoreError::Damaged(row) => Self::Damaged(row),
            StoreError::Corrupt(_) => Self::Internal(error.to_string()),
        }
    }
}
