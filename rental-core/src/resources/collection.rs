//! A resource with the operations that a route table offers.

use super::{
    effects,
    resource::{Resource, Series, parse},
    rules::{Create, Otherwise, Outcome, RuleContext, Update},
};
use crate::{
    error::Error,
    schema::{Fields, ResourceSpec},
    store::{Key, Record},
};
use std::marker::PhantomData;

/// Creates the object of a POST.
type Rule = fn(&Fields, Otherwise<'_>, &RuleContext<'_>) -> Result<Outcome, Error>;
/// Names the records that the rule of a POST needs besides those in the body.
type Reads = fn(&Fields, Otherwise<'_>, &RuleContext<'_>) -> Result<Vec<(String, Key)>, Error>;
/// Applies a PATCH to a stored object.
type Change = fn(&Record, &Fields, &RuleContext<'_>) -> Result<Outcome, Error>;

/// A resource with the operations that one table offers; see [`of`].
#[derive(Clone, Copy)]
pub struct Collection {
    /// The description of the resource.
    pub spec: &'static ResourceSpec,
    /// How new objects are numbered, if they are.
    pub series: Option<Series>,
    /// Whether it offers GET on the collection.
    pub list: bool,
    /// Whether the list is in order of creation, oldest first. Other lists are newest first.
    pub rising: bool,
    /// Whether it offers GET on an object.
    pub get: bool,
    /// The rule of a POST on the collection, if it is offered.
    pub create: Option<Rule>,
    /// The further records that this rule needs, if it needs any.
    pub(crate) reads: Option<Reads>,
    /// The rule of a PATCH on an object, if it is offered.
    pub update: Option<Change>,
}

impl Collection {
    /// A collection that offers nothing.
    pub(super) const fn none(spec: &'static ResourceSpec) -> Self {
        Self { spec, series: None, list: false, rising: false, get: false, create: None, reads: None, update: None }
    }
}

/// A row of a route table, for one resource.
pub struct Row<T>(Collection, PhantomData<T>);

/// Begins a row for `T`, without any operation.
#[must_use]
pub const fn of<T: Resource>() -> Row<T> {
    Row(Collection { series: T::SERIES, ..Collection::none(T::SPEC) }, PhantomData)
}

impl<T: Resource> Row<T> {
    /// Offers GET on the collection.
    #[must_use]
    pub const fn list(mut self) -> Self {
        self.0.list = true;
        self
    }

    /// Offers GET on an object.
    #[must_use]
    pub const fn get(mut self) -> Self {
        self.0.get = true;
        self
    }

    /// Offers POST on the collection.
    #[must_use]
    pub const fn create(mut self) -> Self
    where
        T: Create,
    {
        self.0.create = Some(create::<T>);
        if T::READS_MORE {
            self.0.reads = Some(reads::<T>);
        }
        self
    }

    /// Offers PATCH on an object.
    #[must_use]
    pub const fn update(mut self) -> Self
    where
        T: Update,
    {
        self.0.update = Some(update::<T>);
        self
    }

    /// The collection with the operations that were added.
    #[must_use]
    pub const fn done(self) -> Collection {
        self.0
    }
}

fn create<T: Create>(sent: &Fields, otherwise: Otherwise<'_>, context: &RuleContext<'_>) -> Result<Outcome, Error> {
    let mut object: T = sent.object(otherwise).map_err(unfit)?;
    let events = object.create(context)?;
    let (elsewhere, asks) = (object.elsewhere(context)?, object.asks(None));
    Ok(Outcome { elsewhere, asks, ..Outcome::new(object, true, events, None)? })
}

fn reads<T: Create>(
    sent: &Fields,
    otherwise: Otherwise<'_>,
    context: &RuleContext<'_>,
) -> Result<Vec<(String, Key)>, Error> {
    sent.object::<T>(otherwise).map_err(unfit)?.reads(context)
}

fn update<T: Update>(before: &Record, sent: &Fields, context: &RuleContext<'_>) -> Result<Outcome, Error> {
    let before: T = parse(&before.key, &before.value)?;
    let mut object = before.clone();
    sent.apply(&mut object).map_err(unfit)?;
    object.apply(&before, sent, context)?;
    let changed = object != before;
    let events = object.events(&before, changed, sent);
    if changed {
        object.touch(context.now);
    }
    let asks = object.asks(Some(&before));
    Ok(Outcome { asks, ..Outcome::new(object, changed, events, Some(effects::of(&before)))? })
}

/// The error of valid fields that do not fit the struct. A test checks that structs and descriptions agree.
fn unfit(field: &'static str) -> Error {
    Error::Internal(format!("checked fields do not make an object: `{field}` does not fit its struct"))
}
