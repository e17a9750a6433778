//! Probable twins: an agency read the tag of a vehicle and, for the same passage, also its plate, and posted both. Or the passage
//! is in two statements. One of them is charged in vain, so only the first one is attached automatically, and a person looks at the
//! second one.

use crate::{
    error::Error,
    resources::{Attributable, Posting, parse, posting_look_up},
    schema::Attribution,
    store::{Key, Order, Span, Store, key_of},
    value::{Id, OrganizationId, Text, Timestamp, folded, nfc},
};
use std::collections::HashMap;

/// Two postings of one passage are at most this far apart, in milliseconds: the clocks of tag readers and cameras differ.
const MOST_APART: i64 = 120_000;
/// Postings of one vehicle around one passage that are read.
const MOST_NEAR: usize = 50;
/// The word with which the reason of a probable twin begins.
const CODE: &str = "PROBABLE_TWIN";

/// Whether two postings are probably of one passage.
///
/// A vehicle passes once in a second, whatever the plazas, agencies and numbers are. But a statement to the minute has all
/// passages of one minute at one time.
///
/// At nearly the same time they are of one passage at the same plaza when one was read by tag and the other by plate, when two
/// agencies posted them, or when one has no number and so can be the other one in another statement. The plaza can be absent
/// in one of them. The amounts can differ, because a toll by plate costs more.
///
/// Two tags (or two plates) that one agency read and numbered are two passages, unless the numbers are one: a spreadsheet removes leading
/// zeros, and people write spaces.
#[must_use]
pub fn are_twins(one: &Posting<'_>, other: &Posting<'_>) -> bool {
    let same = |one: &str, other: &str| one == other || folded(one) == folded(other);
    let until = |at: Timestamp| at.plus_millis(MOST_APART);
    if one.vehicle != other.vehicle || one.at > until(other.at) || other.at > until(one.at) {
        return false;
    }
    let second = |at: Timestamp| at.millis().div_euclid(1000);
    if second(one.at) == second(other.at) && second(one.at).rem_euclid(60) != 0 {
        return true;
    }
    let plazas = one.plaza.zip(other.plaza);
    let is_one_place = plazas.is_none_or(|(here, there)| same(here, there));
    let numbers = one.number.zip(other.number);
    if is_one_place && numbers.is_some_and(|(one, other)| is_one_number(one, other)) {
        return true;
    }
    let is_repeated = one.by_tag != other.by_tag || numbers.is_none();
    match plazas {
        Some(_) => is_one_place && (is_repeated || !same(one.agency, other.agency)),
        // Gantries of an agency that names no plaza and gives no numbers can be a minute apart.
        None => one.by_tag != other.by_tag || (is_repeated && (one.plaza.is_some() || other.plaza.is_some())),
    }
}

/// Whether two numbers differ only in leading zeros and spaces.
fn is_one_number(one: &str, other: &str) -> bool {
    fn bare(number: &str) -> impl Iterator<Item = char> {
        number.chars().filter(|c| !c.is_whitespace()).skip_while(|c| *c == '0')
    }
    bare(&nfc(one)).eq(bare(&nfc(other)))
}

/// Whether `other` comes before its twin `one`, so that `one` is not attached automatically: what is attached comes before
/// what is not; of two that the server attached, the one that is billed; then what nobody took for a twin, and the one that
/// was recorded first. What a person attached beside its twin is a passage of its own.
fn is_before<T: Attributable>(other: &T, one: &T) -> bool {
    let (theirs, mine) = (other.payer(), one.payer());
    let rank = |object: &T, is_last: bool| (is_last, object.id().uuid());
    match (theirs.customer.is_some(), mine.customer.is_some()) {
        (true, false) => true,
        (false, true) => false,
        (true, true) => {
            theirs.attribution == Some(Attribution::Automatic)
                && rank(other, other.billed().is_none()) < rank(one, one.billed().is_none())
        }
        (false, false) => rank(other, theirs.is_second_posting()) < rank(one, mine.is_second_posting()),
    }
}

/// The posting of the same passage that comes before this object: it is recorded, or one of `more`, which are not recorded
/// yet or not with their vehicle.
///
/// # Errors
/// The store is not available.
pub async fn first_twin<T: Attributable>(
    store: &dyn Store,
    organization: OrganizationId,
    object: &T,
    more: &[T],
) -> Result<Option<T>, Error> {
    Near::default().first_twin(store, organization, object, more).await
}

/// The recorded postings near those that one transaction records. Each vehicle and time is read once, however many have it.
#[derive(Debug)]
pub struct Near<T>(HashMap<Key, Vec<T>>);

impl<T> Default for Near<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T: Attributable> Near<T> {
    /// The same as [`first_twin`].
    ///
    /// # Errors
    /// The store is not available.
    pub async fn first_twin(
        &mut self,
        store: &dyn Store,
        organization: OrganizationId,
        object: &T,
        more: &[T],
    ) -> Result<Option<T>, Error> {
        let Some(span) = entries_near(organization, object) else { return Ok(None) };
        if !self.0.contains_key(&span.from) {
            let entries = store.scan(&span, MOST_NEAR).await?;
            // Nearly always the object itself is the only one.
            let others = entries.iter().filter_map(|entry| key_of(entry).id()).filter(|id| *id != object.id().uuid());
            let places: Vec<Key> = others.map(|id| T::key(organization, Id::from_uuid(id))).collect();
            let mut found = Vec::with_capacity(places.len());
            if !places.is_empty() {
                for record in store.get(&places).await?.into_iter().flatten() {
                    found.push(parse::<T>(&record.key, &record.value)?);
                }
            }
            self.0.insert(span.from.clone(), found);
        }
        let found = self.0.get(&span.from).into_iter().flatten();
        Ok(first_among(object, found.chain(more)))
    }
}

/// The index entries of the recorded postings that are near enough to be twins of this object.
#[must_use]
pub fn entries_near<T: Attributable>(organization: OrganizationId, object: &T) -> Option<Span> {
    let own = object.posting()?;
    let prefix = |at: Timestamp| posting_look_up(own.vehicle, at).prefix(organization, T::SPEC);
    Some(Span {
        from: prefix(own.at.plus_millis(-MOST_APART)),
        to: prefix(own.at.plus_millis(MOST_APART + 1)),
        order: Order::Ascending,
        follow: None,
    })
}

/// Of these postings the one of the same passage that comes before this object.
#[must_use]
pub fn first_among<'t, T: Attributable>(object: &T, others: impl Iterator<Item = &'t T>) -> Option<T> {
    let own = object.posting()?;
    let is_first = |other: &&T| {
        other.id() != object.id()
            && other.posting().is_some_and(|posting| are_twins(&own, &posting))
            && is_before(*other, object)
    };
    others.filter(is_first).min_by_key(|other| (other.payer().customer.is_none(), other.id().uuid())).cloned()
}

/// Why a person has to look at the twin of this object.
#[must_use]
pub fn reason<T: Attributable>(first: &T) -> Text {
    let how = first.posting().map_or("", |posting| if posting.by_tag { " by transponder" } else { " by plate" });
    let (object, id) = (T::SPEC.object, first.id());
    Text::fit(
        &format!(
            "{CODE}: {object} {id} is probably the same passage, read{how}. Attach this {object} to a customer if it is another \
             passage; else set its customer to nobody."
        ),
        255,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        resources::{Billable, toll::Toll},
        value::{CustomerId, TollId, VehicleId},
    };
    use proptest::prelude::*;
    use serde_json::json;

    /// A posting of one of two vehicles, agencies and plazas, in seconds.
    fn posting() -> impl Strategy<Value = Posting<'static>> {
        let plaza = prop::sample::select(vec![None, Some("RKB"), Some("rkb"), Some("BWB")]);
        let agency = prop::sample::select(vec!["MTAB&T", "mtab&t", "NYSTA"]);
        let how = (any::<bool>(), prop::sample::select(vec![None, Some("612"), Some("613"), Some("614")]));
        (0..2u128, 0i64..400, agency, plaza, how).prop_map(|(vehicle, seconds, agency, plaza, (by_tag, number))| {
            Posting {
                vehicle: VehicleId::from_u128(vehicle),
                // A whole minute at 20, 80, 140 and so on.
                at: Timestamp::from_millis(1_780_000_000_000 + seconds * 1000),
                agency,
                plaza,
                by_tag,
                number,
            }
        })
    }

    fn toll(id: u128, attribution: Option<&str>, is_billed: bool, is_second: bool) -> Toll {
        let customer = attribution.map(|_| CustomerId::from_u128(1));
        let time = "2026-06-02T14:03:00.000Z";
        let members = json!({
            "id": TollId::from_u128(id), "object": "toll", "amount": 1, "currency": "USD", "agency": "MTAB&T",
            "customer_id": customer, "attribution": attribution, "review_reason": is_second.then_some("PROBABLE_TWIN"),
            "amount_billed": u8::from(is_billed), "invoice_ids": if is_billed { vec![customer] } else { Vec::new() },
            "created_at": time, "updated_at": time,
        });
        serde_json::from_value(members).unwrap()
    }

    /// A toll that nobody decided about: attached by the server, billed or not, or not attached.
    fn undecided(id: u128) -> impl Strategy<Value = Toll> {
        (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(move |(attached, billed, second)| {
            toll(id, attached.then_some("automatic"), attached && billed, !attached && second)
        })
    }

    proptest! {
        #[test]
        fn twins_are_one_vehicle_within_two_minutes(one in posting(), other in posting()) {
            let are = are_twins(&one, &other);
            prop_assert_eq!(are, are_twins(&other, &one));
            let same = |one: &str, other: &str| one.eq_ignore_ascii_case(other);
            let is_one_agency = same(one.agency, other.agency);
            let is_one_second = one.at == other.at;
            let are_numbered = one.number.zip(other.number).is_some_and(|(one, other)| one != other);
            prop_assert!(!are || one.vehicle == other.vehicle);
            prop_assert!(!are || one.at.millis().abs_diff(other.at.millis()) <= 120_000);
            prop_assert!(!are || is_one_second || one.plaza.zip(other.plaza).is_none_or(|(one, other)| same(one, other)));
            // Two passages that one agency read in the same way and numbered are twins only in the same second.
            let is_known = one.plaza.is_some() && other.plaza.is_some();
            prop_assert!(!are || is_one_second || one.by_tag != other.by_tag || !are_numbered || (!is_one_agency && is_known));
            let moved = Posting { by_tag: !one.by_tag, at: one.at.plus_millis(120_000), ..one };
            prop_assert!(are_twins(&one, &moved));
            let too_late = Posting { at: moved.at.plus_millis(1), ..moved };
            prop_assert!(!are_twins(&one, &too_late));
        }

        #[test]
        fn one_vehicle_in_one_second_is_one_passage(one in posting(), other in posting(), millis in 0i64..1000) {
            let other = Posting { vehicle: one.vehicle, at: one.at.plus_millis(millis), ..other };
            // A statement to the minute has all passages of one minute at one time.
            prop_assert!(are_twins(&one, &other) || one.at.millis() % 60_000 == 0);
        }

        #[test]
        fn one_number_in_another_spelling_is_one_passage(one in posting(), seconds in -120i64..=120) {
            let near = Posting { number: Some("612"), at: one.at.plus_millis(seconds * 1000), ..one };
            for number in ["612", "00612", "6 12", "0 612"] {
                let respelled = Posting { number: Some(number), ..one };
                prop_assert!(are_twins(&respelled, &near));
            }
            let other = Posting { number: Some("613"), ..near };
            let is_one_second = seconds == 0 && one.at.millis() % 60_000 != 0;
            prop_assert_eq!(are_twins(&Posting { number: Some("612"), ..one }, &other), is_one_second);
        }

        #[test]
        fn a_posting_without_a_number_can_be_another_one_in_other_words(one in posting(), seconds in -120i64..=120) {
            let near = Posting { number: None, at: one.at.plus_millis(seconds * 1000), ..one };
            let is_one_second = seconds == 0 && one.at.millis() % 60_000 != 0;
            prop_assert_eq!(are_twins(&one, &near), one.plaza.is_some() || is_one_second);
            let elsewhere = Posting { plaza: None, ..near };
            prop_assert!(one.plaza.is_none() || are_twins(&one, &elsewhere));
        }

        #[test]
        fn of_two_undecided_postings_exactly_one_comes_first(one in undecided(1), other in undecided(2)) {
            prop_assert_ne!(is_before(&one, &other), is_before(&other, &one));
            let [first, second] = if is_before(&one, &other) { [&one, &other] } else { [&other, &one] };
            prop_assert!(first.customer_id.is_some() || second.customer_id.is_none());
            prop_assert!(first.billed().is_some() || second.billed().is_none());
        }
    }

    #[test]
    fn what_a_person_attached_beside_its_twin_leaves_the_twin_attached() {
        let automatic = toll(2, Some("automatic"), false, false);
        let manual = toll(1, Some("manual"), false, false);
        assert!(!is_before(&manual, &automatic));
    }
}
