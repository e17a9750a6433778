//! Errors of operations, independent of HTTP. Each tells the caller what to do next.
//!
//! Their texts may be shown to a client, except the details of [`Error::Internal`], [`Error::Damaged`] and
//! [`Error::Unavailable`], which are for the log.

mod display;

use crate::store::{DamagedRow, Key, StoreError};
use crate::value::Holder;

/// One error in one field of a body or one parameter of a query.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FieldError {
    /// The name of the field or parameter: `daily_rate`, `raw_data.form.name`, `limit`.
    pub param: String,
    /// The kind of error, for programs.
    pub code: FieldCode,
    /// A sentence for people. It starts with the name.
    pub message: String,
}

/// The kinds of errors in a field or parameter.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FieldCode {
    /// The value breaks a rule of the field.
    Invalid,
    /// The field is required but was not sent.
    Missing,
    /// The field or parameter does not exist, or only the server sets it.
    Unknown,
    /// The field or parameter was sent more than once.
    Duplicate,
    /// The value is the id of an object that does not exist.
    ResourceMissing,
}

impl FieldCode {
    /// The value of `code` in an error response, such as `parameter_invalid`.
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
    /// An error in `param`. `rule` is the rest of the sentence, without the name and the full stop.
    #[must_use]
    pub fn new(param: &str, code: FieldCode, rule: &str) -> Self {
        let end = if rule.ends_with('?') { "" } else { "." };
        Self { param: param.to_owned(), code, message: format!("`{param}` {rule}{end}") }
    }
}

/// The errors in the fields or parameters of one request: the first [`FieldErrors::MOST`] of them, and how many follow.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct FieldErrors {
    listed: Vec<FieldError>,
    unlisted: usize,
}

impl FieldErrors {
    /// Most errors that a response lists (`docs/api.md`, "Errors").
    pub const MOST: usize = 50;

    /// Adds the error that `make` returns. Calls `make` only when the error will be listed, so a request with thousands
    /// of errors costs no more than one with fifty.
    pub fn add(&mut self, make: impl FnOnce() -> FieldError) {
        if self.listed.len() < Self::MOST {
            self.listed.push(make());
        } else {
            self.unlisted += 1;
        }
    }

    /// Adds one error; only counts it when [`FieldErrors::MOST`] are listed already.
    pub fn push(&mut self, error: FieldError) {
        self.add(|| error);
    }

    /// The errors to list, in the order of the request.
    #[must_use]
    pub fn listed(&self) -> &[FieldError] {
        &self.listed
    }

    /// The number of errors that are not listed.
    #[must_use]
    pub fn unlisted(&self) -> usize {
        self.unlisted
    }

    /// Whether no error was added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.listed.is_empty()
    }

    /// Adds the errors of another check of the same request.
    pub(crate) fn append(&mut self, others: Self) {
        self.unlisted += others.unlisted;
        self.extend(others.listed);
    }

    /// Returns `outcome` when there are no errors so far.
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

    /// Returns `value` when there are no errors.
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

/// Why an API key is not accepted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum KeyProblem {
    /// The request has no `Authorization` header.
    Missing,
    /// Its `Authorization` header is not `Bearer` and a key, or there is more than one.
    Malformed,
    /// The key does not exist.
    Invalid,
    /// An operator revoked the key.
    Revoked,
    /// The key has expired.
    Expired,
}

/// Why an operation failed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Error {
    /// The API key is missing or not accepted.
    Unauthenticated(KeyProblem),
    /// The organization is not on the Pro plan (spec, Authentication 3).
    PlanRequired,
    /// The API key may only read (spec, Authentication 5).
    ScopeRequired,
    /// The object does not exist or belongs to another organization. The error does not tell which.
    NotFound {
        /// The resource of the object: `vehicle`.
        object: &'static str,
    },
    /// The body is not a JSON object. The text says where the error is.
    Malformed(String),
    /// At least one field or parameter is wrong.
    Invalid(FieldErrors),
    /// Another rental, or a block, of the same organization holds the vehicle on one of these nights.
    VehicleUnavailable {
        /// The rental or block that holds the vehicle.
        holder: Holder,
        /// A sentence for the client, with the nights.
        message: String,
    },
    /// `If-Match` contains another revision than the object's present one.
    PreconditionFailed,
    /// The present state of the object does not allow this change. The text says why.
    Conflict(String),
    /// The idempotency key was used for another request.
    IdempotencyReused,
    /// The first request with this idempotency key still runs.
    IdempotencyInUse,
    /// The server is overloaded or the store is not available. Retry later. The detail is for the log.
    Unavailable(String),
    /// The storage has no room for a write. Nothing was written, and reads go on. Retry when there is room.
    StorageFull,
    /// The clock of the server cannot be trusted, so that a write would have a wrong date. Nothing was written, and reads go on.
    ClockJumped,
    /// A row of the store is damaged. A client gets the same response as for [`Error::Internal`]; background tasks skip
    /// the row.
    Damaged(Box<DamagedRow>),
    /// A bug of this program or damaged data. The detail is for the log.
    Internal(String),
}

impl Error {
    /// [`Error::Invalid`] with one error; see [`FieldError::new`].
    #[must_use]
    pub fn field(param: &str, code: FieldCode, rule: &str) -> Self {
        Self::Invalid(vec![FieldError::new(param, code, rule)].into())
    }

    /// [`Error::Invalid`] for a sum or product that is larger than the largest amount.
    pub(crate) fn too_large(param: &str) -> Self {
        Self::field(param, FieldCode::Invalid, "would be larger than any amount")
    }

    /// [`Error::Damaged`] for a record that does not parse.
    #[must_use]
    pub fn damaged(key: &Key, error: &serde_json::Error) -> Self {
        Self::damaged_row(key, format!("it does not parse: {error}"))
    }

    /// [`Error::Damaged`] for a row with a value that this program does not write.
    #[must_use]
    pub fn damaged_row(key: &Key, reason: impl Into<String>) -> Self {
        Self::Damaged(DamagedRow::new(key.clone(), reason))
    }

    /// What was made; `None` if a damaged row prevented it, which is added to `damaged`. So one row stops no loop.
    ///
    /// # Errors
    /// Every other error.
    pub fn note_damage<T>(made: Result<T, Self>, damaged: &mut Vec<DamagedRow>) -> Result<Option<T>, Self> {
        match made {
            Ok(made) => Ok(Some(made)),
            Err(Self::Damaged(row)) => {
                damaged.push(*row);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Whether the response may be stored for an idempotency key (`docs/decisions.md`, "Keys, plans, idempotency").
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
            | Self::StorageFull
            | Self::ClockJumped
            | Self::Damaged(_)
            | Self::Internal(_) => false,
        }
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NoRoom => Self::StorageFull,
            StoreError::ClockJumped => Self::ClockJumped,
            StoreError::Damaged(row) => Self::Damaged(row),
            StoreError::DamagedStore(_) => Self::Internal(error.to_string()),
            StoreError::Busy
            | StoreError::Unavailable(_)
            | StoreError::InUse(_)
            | StoreError::NeedsUpgrade(_)
            | StoreError::Unknown(_) => Self::Unavailable(error.to_string()),
        }
    }
}
