//! What tolls and violations have in common: a vehicle caused each of them at a time, and one customer pays. The rules for
//! that customer, and the look-ups that find the objects to bill, to review and to derive again.

use super::{
    billing::Billable,
    event::EventType,
    rules::{Create, Portable, RuleContext, Update},
    vehicle::name_look_ups,
};
use crate::{
    error::{Error, FieldCode},
    rows::recheck::Marked,
    schema::{Attribution, Facts, Fields, Grounds, IndexPrefix, LookUpSpec, look_up},
    value::{Currency, CustomerId, Date, FromFields, Money, RentalId, Text, Timestamp, VehicleId, When},
};

/// Most characters of a reason.
const MOST_REASON: usize = 255;
/// The word with which the `review_reason` of an object begins that the server detached.
const DETACHED: &str = "DETACHED:";

/// What the vehicle did. After a return, a parked vehicle can be ticketed until the end of the next day.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Occasion {
    /// It was driven: past a toll gantry or a camera.
    Driving,
    /// It was parked, or nobody knows.
    Parking,
}

/// What a toll or violation charges, in words for people.
#[derive(Clone, Copy, Debug)]
pub struct Charged<'a> {
    /// The toll agency, or whose summons number it is.
    pub agency: Option<&'a str>,
    /// The agency's transaction number, or the summons number.
    pub number: Option<&'a str>,
    /// Where it happened, or what was violated.
    pub place: Option<&'a str>,
    /// What an invoice bills of it.
    pub amount: Money,
    /// The currency of the amount.
    pub currency: Currency,
}

/// One posting of a passage, which another posting can repeat.
#[derive(Clone, Copy, Debug)]
pub struct Posting<'a> {
    /// The vehicle.
    pub vehicle: VehicleId,
    /// When it passed.
    pub at: Timestamp,
    /// Who posted it.
    pub agency: &'a str,
    /// Where it passed.
    pub plaza: Option<&'a str>,
    /// Whether the transponder was read; otherwise the plate was.
    pub by_tag: bool,
    /// The number that the agency gave it.
    pub number: Option<&'a str>,
}

/// Who pays a toll or violation, and how that was decided.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Payer {
    /// The customer who pays.
    pub customer: Option<CustomerId>,
    /// Whether a request chose the customer or the server did.
    pub attribution: Option<Attribution>,
    /// The rental whose customer the server chose.
    pub rental: Option<RentalId>,
    /// Why the server chose the customer.
    pub reason: Option<Text>,
    /// Why a person has to look at it: it is billed, and the server would choose otherwise now or it costs less; or the server
    /// detached it; or it is not attached, because it is probably the second posting of one passage.
    pub review: Option<Text>,
}

impl Payer {
    /// Nobody pays, because the server took the object for the second posting of a passage; `review` says of which one.
    pub(crate) fn second_posting(review: Text) -> Self {
        Self { review: Some(review), ..Self::default() }
    }

    /// Nobody pays any more, for this reason: the server detached the object. It attaches it again when that becomes clear.
    pub(crate) fn detached(reason: &str) -> Self {
        Self { review: Some(Text::fit(&format!("{DETACHED} {reason}"), MOST_REASON)), ..Self::default() }
    }

    /// Whether the server detached the object and nobody decided since.
    pub(crate) fn is_detached(&self) -> bool {
        self.customer.is_none() && self.review.as_deref().is_some_and(|review| review.starts_with(DETACHED))
    }

    /// Whether the server took the object for the second posting of a passage.
    pub(crate) fn is_second_posting(&self) -> bool {
        self.customer.is_none() && self.review.is_some() && !self.is_detached()
    }

    /// The customer of this rental, whom the server chose for this reason.
    pub(crate) fn automatic(customer: CustomerId, rental: RentalId, reason: &str) -> Self {
        Self {
            customer: Some(customer),
            attribution: Some(Attribution::Automatic),
            rental: Some(rental),
            reason: Some(Text::fit(reason, MOST_REASON)),
            review: None,
        }
    }
}

/// A resource whose objects are attached to the customer who had the vehicle. It has the rules of this file.
pub trait Attributable: Billable + FromFields + Clone + PartialEq {
    /// The event type of an attached object.
    const ATTACHED: EventType;
    /// The event type of an object that the server detached from its customer.
    const DETACHED: EventType;

    /// Who charges it under which number, where it happened or what was violated, and the amount.
    fn charged(&self) -> Charged<'_>;
    /// The place among the objects that a person has to look at: the greatest number is listed first.
    fn review_order(&self) -> u32;
    /// The last day to pay, contest or name the driver, if it is known.
    fn respond_by(&self) -> Option<Date> {
        None
    }
    /// The status and the type of the plate, as a city reports them.
    fn reported(&self) -> [Option<&str>; 2] {
        [None, None]
    }
    /// Why a person has to look at its bill, if there is a reason. `credited` of it is credited for good.
    fn bill_review(&self, _credited: Money) -> Option<Text> {
        None
    }
    /// What the vehicle did.
    fn occasion(&self) -> Occasion;
    /// The id of the vehicle, if it is known.
    fn vehicle(&mut self) -> &mut Option<VehicleId>;
    /// The id of the vehicle, if it is known.
    fn known_vehicle(&self) -> Option<VehicleId>;
    /// The transponder's number, the plate, and the state of the plate, as reported.
    fn identifiers(&self) -> [Option<&str>; 3];
    /// The instant and the local date, if they are known, and the time zone of the statement.
    fn when(&self) -> When;
    /// Sets the local date.
    fn set_date(&mut self, date: Date);
    /// Who pays.
    fn payer(&self) -> Payer;
    /// Sets who pays.
    fn set_payer(&mut self, payer: Payer);

    /// The passage, if its vehicle and time are known and somebody has to pay for it; `None` for violations.
    fn posting(&self) -> Option<Posting<'_>> {
        None
    }

    /// Whether the server derives its payer again when something changes: it attached the object, detached it, or took
    /// it for the second posting of a passage.
    fn is_derived_again(&self) -> bool {
        let payer = self.payer();
        payer.attribution == Some(Attribution::Automatic) || (payer.customer.is_none() && payer.review.is_some())
    }

    /// Whether nobody was ever chosen for the object, so only its vehicle is looked up again when its number changes.
    fn is_undecided(&self) -> bool {
        self.payer() == Payer::default()
    }

    /// Attaches the object to a customer and the rental of that customer, and says why.
    fn attach(&mut self, customer: CustomerId, rental: RentalId, reason: &str) {
        self.set_payer(Payer::automatic(customer, rental, reason));
    }

    /// The day on which it happened, as a day number; 0 when it is not known.
    fn day(&self) -> u32 {
        let When { at, on, .. } = self.when();
        at.map(Timestamp::day_number).into_iter().chain(on.map(Date::day_number)).min().unwrap_or(0)
    }

    /// What the payer rests on; `None` for an object whose payer is not derived again.
    fn grounds(&self) -> Option<Grounds> {
        let vehicle = self.known_vehicle().filter(|_| self.is_derived_again())?;
        let facts = format!("{:?} {:?} {:?}", self.identifiers(), self.when(), self.occasion());
        Some(Grounds { vehicle, from: self.day(), facts: Facts::Attached(facts) })
    }

    /// The entry of an object that a person has to look at.
    fn review_entry(&self) -> Option<IndexPrefix> {
        let payer = self.payer();
        let is_unattached = payer.customer.is_none() && payer.attribution.is_none();
        let order = self.review_order().to_be_bytes();
        (is_unattached || payer.review.is_some()).then(|| review_look_up().with(&order))
    }

    /// What decides about an object that no person decided: the rentals of its vehicle, unless nobody was ever chosen, and the
    /// vehicles that have and had its transponder and its plate.
    fn decided_by(&self) -> impl Iterator<Item = Marked> {
        let is_derived_again = self.is_derived_again();
        let vehicle = self.known_vehicle().filter(|_| is_derived_again).map(Marked::vehicle);
        let is_free = is_derived_again || self.is_undecided();
        vehicle.into_iter().chain(self.numbers().filter(move |_| is_free))
    }

    /// Its transponder and its plate, as far as vehicles can have them.
    fn numbers(&self) -> impl Iterator<Item = Marked> {
        name_look_ups(self.identifiers()).map(|name| Marked::number(&name))
    }

    /// The entries in the look-ups of this file.
    fn attachment_entries(&self) -> impl Iterator<Item = IndexPrefix> {
        let payer = self.payer();
        let unattached = (payer.customer.is_none() && payer.attribution.is_none()).then(unattached_look_up);
        unattached
            .into_iter()
            .chain(self.review_entry())
            .chain(self.decided_by().map(|marked| automatic_look_up(marked, self.day())))
            .chain(self.posting().map(|posting| posting_look_up(posting.vehicle, posting.at)))
    }
}

impl<T: Attributable> Create for T {
    fn create(&mut self, context: &RuleContext<'_>) -> Result<Vec<EventType>, Error> {
        let payer = self.payer();
        let attribution = payer.customer.map(|_| Attribution::Manual);
        self.set_payer(Payer { attribution, ..payer.clone() });
        if let When { at: Some(time), on: None, zone } = self.when() {
            self.set_date(zone.unwrap_or(context.organization.time_zone).local(time).date());
        }
        Ok(attached::<T>(None, payer.customer))
    }
}

impl<T: Attributable> Update for T {
    /// A customer that a request sets is its choice, also nobody. What the server had chosen before is removed. The same
    /// customer is a choice, too, for an object that a person has to look at: all that are unattached, and some that are billed.
    fn apply(&mut self, before: &Self, sent: &Fields, context: &RuleContext<'_>) -> Result<(), Error> {
        let (payer, before) = (self.payer(), before.payer());
        let is_undecided = before.review.is_some() || before.attribution.is_none();
        if payer.customer != before.customer || (sent.has("customer_id") && is_undecided) {
            let attribution = Some(Attribution::Manual);
            let review = self.bill_review(context.credited(self.id().uuid()));
            self.set_payer(Payer { customer: payer.customer, attribution, review, ..Payer::default() });
        }
        Ok(())
    }

    fn events(&self, before: &Self, _: bool, _: &Fields) -> Vec<EventType> {
        attached::<T>(before.payer().customer, self.payer().customer)
    }
}

impl<T: Attributable> Portable for T {
    /// Checks that customer, attribution and rental are consistent.
    fn arrive(&self, _: &RuleContext<'_>) -> Result<(), Error> {
        let Payer { customer, attribution, rental, reason, review } = self.payer();
        if attribution != Some(Attribution::Automatic) && reason.is_some() {
            let rule = "must be null unless `attribution` is `automatic`";
            return Err(Error::field("attribution_reason", FieldCode::Invalid, rule));
        }
        if attribution == Some(Attribution::Manual) && review.is_some() && self.bill_review(Money::default()).is_none()
        {
            let rule = "must be null when `attribution` is `manual`";
            return Err(Error::field("review_reason", FieldCode::Invalid, rule));
        }
        match (customer, attribution, rental) {
            (None, None | Some(Attribution::Manual), None)
            | (Some(_), Some(Attribution::Manual), None)
            | (Some(_), Some(Attribution::Automatic), Some(_)) => Ok(()),
            _ => Err(Error::field(
                "attribution",
                FieldCode::Invalid,
                "must be `automatic` with a customer and a rental, `manual` without a rental, or null without both",
            )),
        }
    }
}

/// The event of an object that a request gave another customer; no event otherwise.
fn attached<T: Attributable>(before: Option<CustomerId>, after: Option<CustomerId>) -> Vec<EventType> {
    if after.is_some() && after != before { vec![T::ATTACHED] } else { Vec::new() }
}

/// The event of an object whose customer the server changed or removed; no event otherwise.
pub(crate) fn derived_events<T: Attributable>(before: Option<CustomerId>, after: Option<CustomerId>) -> Vec<EventType> {
    if before.is_some() && after.is_none() { vec![T::DETACHED] } else { attached::<T>(before, after) }
}

/// The look-up of unattached tolls and violations: those without a customer, unless a request chose that.
pub(super) const UNATTACHED: LookUpSpec = look_up(128, "unattached");

/// The prefix of the entries of unattached tolls or violations: those without a customer, unless a request chose that.
#[must_use]
pub fn unattached_look_up() -> IndexPrefix {
    UNATTACHED.of(&[])
}

/// The look-up of the objects that a person has to look at, by their order.
pub(super) const REVIEW: LookUpSpec = look_up(130, "review");

/// The prefix of the entries of the tolls or violations that a person has to look at.
#[must_use]
pub fn review_look_up() -> IndexPrefix {
    REVIEW.of(&[])
}

/// The look-up of the objects that no person decided, by what decides about them and by day.
pub(super) const AUTOMATIC: LookUpSpec = look_up(131, "automatic");

/// The prefix of the entries of objects that are derived again when a vehicle or number changes, by the day on which they
/// happened.
#[must_use]
pub fn automatic_look_up(marked: Marked, day: u32) -> IndexPrefix {
    AUTOMATIC.of(&[marked.as_bytes(), &day.to_be_bytes()])
}

/// The look-up of postings by vehicle and time.
pub(super) const POSTING: LookUpSpec = look_up(141, "posting");

/// The prefix of the entries of postings, by their vehicle and the time of the passage.
#[must_use]
pub fn posting_look_up(vehicle: VehicleId, at: Timestamp) -> IndexPrefix {
    POSTING.of(&[vehicle.as_bytes(), &at.millis().to_be_bytes()])
}
