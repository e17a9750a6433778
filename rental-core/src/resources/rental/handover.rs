//! The recorded times of the handover and the return.

use super::{Rental, RentalStatus};
use crate::{
    error::{Error, FieldCode},
    schema::Fields,
    value::{Date, Timestamp},
};

/// How many days after the planned one a handover or return still has the time of the change of the status.
const MOST_DAYS_LATE: u32 = 14;

impl Rental {
    /// Sets the times of handover and return when the status changes, unless the request contains them.
    ///
    /// `now` is a good time while the change can be one of these days: a handover until [`MOST_DAYS_LATE`] after its planned day
    /// and while the plan is not over, a return as late if the customer had the vehicle by the status before. Else somebody types
    /// in what was long ago: the time stays unknown, and the planned day counts.
    pub(super) fn note_handover(&mut self, before: &Self, sent: &Fields, now: Timestamp) {
        if self.status == before.status {
            return;
        }
        let today = self.time_zone.local(now).date();
        let is_within = |days, planned: Option<Date>| {
            planned.is_none_or(|planned| today.day_number() <= planned.day_number() + days)
        };
        let (activated, completed) = match self.status {
            RentalStatus::Active => {
                let is_today = is_within(MOST_DAYS_LATE, self.start_date) && is_within(1, self.end_date);
                (before.activated_at.or_else(|| is_today.then_some(now)), None)
            }
            RentalStatus::Completed => {
                let days = if before.status == RentalStatus::Active { MOST_DAYS_LATE } else { 1 };
                (before.activated_at, before.completed_at.or_else(|| is_within(days, self.end_date).then_some(now)))
            }
            RentalStatus::Cancelled => (before.activated_at, before.completed_at),
            RentalStatus::New | RentalStatus::Approved => (None, None),
        };
        if !sent.has("activated_at") {
            self.activated_at = activated;
        }
        if !sent.has("completed_at") {
            self.completed_at = completed;
        }
        // The vehicle was not handed over, so no customer can have got another one for it.
        if matches!(self.status, RentalStatus::New | RentalStatus::Approved) {
            self.earlier_vehicles.clear();
        }
    }

    pub(super) fn check_handover(&self) -> Result<(), Error> {
        match (self.activated_at, self.completed_at) {
            (Some(handed_over), Some(back)) if back < handed_over => {
                Err(Error::field("completed_at", FieldCode::Invalid, "must not be before `activated_at`"))
            }
            _ => self.check_swaps(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{request::body::Verb, resources::rental::SPEC};
    use serde_json::{Value, json};

    /// A rental in New York from June 1 to June 5, with some other fields.
    fn rental(fields: &Value) -> Rental {
        let example = |field: &crate::schema::FieldSpec| format!("\"{}\":{}", field.name, field.example);
        let members: Vec<String> = SPEC.fields.iter().map(example).collect();
        let mut whole: Value = serde_json::from_str(&format!("{{{}}}", members.join(","))).unwrap();
        whole["activated_at"] = Value::Null;
        for (name, value) in fields.as_object().unwrap() {
            whole[name] = value.clone();
        }
        serde_json::from_value(whole).unwrap()
    }

    /// The recorded times after a PATCH at a time.
    #[track_caller]
    fn check(before: &Value, patch: &Value, now: &str, expected: [Option<&str>; 2]) {
        let merged = |fields: &Value, patch: &Value| {
            let mut fields = fields.clone();
            fields.as_object_mut().unwrap().extend(patch.as_object().unwrap().clone());
            rental(&fields)
        };
        let sent = Fields::parse(patch.to_string().as_bytes(), &SPEC, Verb::Update, 2).unwrap();
        let (before, mut after) = (rental(before), merged(before, patch));
        after.note_handover(&before, &sent, Timestamp::parse(now).unwrap());
        assert_eq!([after.activated_at, after.completed_at], expected.map(|time| time.and_then(Timestamp::parse)));
    }

    const UP: &str = "2026-06-01T14:00:00.000Z";
    const BACK: &str = "2026-06-05T15:00:00.000Z";

    /// June 20 begins in New York at 04:00 UTC.
    #[test]
    fn a_return_has_the_time_of_its_change_until_14_days_after_the_planned_day() {
        let before = json!({"status": "ACTIVE", "activated_at": UP});
        for (now, noted) in [
            ("2026-06-03T10:00:00Z", true),
            ("2026-06-05T10:00:00Z", true),
            ("2026-06-08T10:00:00Z", true),
            ("2026-06-20T03:59:59Z", true),
            ("2026-06-20T04:00:00Z", false),
            ("2026-11-25T10:00:00Z", false),
        ] {
            check(&before, &json!({"status": "COMPLETED"}), now, [Some(UP), noted.then_some(now)]);
        }
    }

    #[test]
    fn a_return_of_what_was_never_out_by_its_status_has_no_time_two_days_late() {
        for (now, noted) in [("2026-06-07T03:59:59Z", true), ("2026-06-07T04:00:00Z", false)] {
            check(&json!({"status": "APPROVED"}), &json!({"status": "COMPLETED"}), now, [None, noted.then_some(now)]);
        }
    }

    #[test]
    fn a_handover_has_the_time_of_its_change_until_its_plan_is_over() {
        for (now, noted) in [
            ("2026-05-20T10:00:00Z", true),
            ("2026-06-01T10:00:00Z", true),
            ("2026-06-04T10:00:00Z", true),
            ("2026-06-07T03:59:59Z", true),
            ("2026-06-07T04:00:00Z", false),
        ] {
            check(&json!({"status": "APPROVED"}), &json!({"status": "ACTIVE"}), now, [noted.then_some(now), None]);
        }
        let long = json!({"status": "APPROVED", "end_date": "2026-12-01"});
        for (now, noted) in [("2026-06-16T03:59:59Z", true), ("2026-06-16T04:00:00Z", false)] {
            check(&long, &json!({"status": "ACTIVE"}), now, [noted.then_some(now), None]);
        }
    }

    #[test]
    fn without_a_planned_day_the_time_of_the_change_is_recorded() {
        let now = "2026-11-25T10:00:00Z";
        let before = json!({"status": "APPROVED", "start_date": null, "end_date": null, "rental_days": null});
        check(&before, &json!({"status": "ACTIVE"}), now, [Some(now), None]);
        check(&before, &json!({"status": "COMPLETED"}), now, [None, Some(now)]);
    }

    #[test]
    fn a_time_of_the_request_or_of_the_record_is_kept_however_late_the_status_changes() {
        let late = "2026-11-25T10:00:00Z";
        let sent = json!({"status": "COMPLETED", "activated_at": UP, "completed_at": BACK});
        check(&json!({"status": "APPROVED"}), &sent, late, [Some(UP), Some(BACK)]);
        let known = json!({"status": "ACTIVE", "activated_at": UP, "completed_at": BACK});
        check(&known, &json!({"status": "COMPLETED"}), late, [Some(UP), Some(BACK)]);
        check(&known, &json!({"status": "COMPLETED"}), "2026-06-05T18:00:00Z", [Some(UP), Some(BACK)]);
        check(&known, &json!({"status": "COMPLETED", "completed_at": null}), BACK, [Some(UP), None]);
    }

    #[test]
    fn the_planned_day_of_the_same_request_counts() {
        let before = json!({"status": "ACTIVE", "activated_at": UP});
        let now = "2026-07-09T10:00:00Z";
        check(&before, &json!({"status": "COMPLETED", "end_date": "2026-07-05"}), now, [Some(UP), Some(now)]);
    }
}
