//! The recorded times of the handover and the return.

use super::{Rental, RentalStatus};
use crate::{
    error::{Error, FieldCode},
    schema::Fields,
    value::{Date, Timestamp},
};

impl Rental {
    /// Sets the times of handover and return when the status changes, unless the request contains them.
    ///
    /// `now` is a good time only when the status is changed in time. When it is changed later than one day after the
    /// planned day, the time stays unknown, and the planned day counts: else the tolls of all days until `now` would be
    /// those of this customer.
    pub(super) fn note_handover(&mut self, before: &Self, sent: &Fields, now: Timestamp) {
        if self.status == before.status {
            return;
        }
        let today = self.time_zone.local(now).date();
        let noted = |planned| (!is_late(planned, today)).then_some(now);
        let (activated, completed) = match self.status {
            RentalStatus::Active => (before.activated_at.or_else(|| noted(self.start_date)), None),
            RentalStatus::Completed => (before.activated_at, before.completed_at.or_else(|| noted(self.end_date))),
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

/// Whether a day is later than the day after the planned one.
fn is_late(planned: Option<Date>, today: Date) -> bool {
    planned.is_some_and(|planned| today.day_number() > planned.day_number() + 1)
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

    /// June 7 begins in New York at 04:00 UTC.
    #[test]
    fn a_return_that_is_marked_two_days_late_has_no_recorded_time() {
        let before = json!({"status": "ACTIVE", "activated_at": UP});
        for (now, noted) in [
            ("2026-06-03T10:00:00Z", true),
            ("2026-06-05T10:00:00Z", true),
            ("2026-06-07T03:59:59Z", true),
            ("2026-06-07T04:00:00Z", false),
            ("2026-11-25T10:00:00Z", false),
        ] {
            check(&before, &json!({"status": "COMPLETED"}), now, [Some(UP), noted.then_some(now)]);
        }
    }

    #[test]
    fn a_handover_that_is_marked_two_days_late_has_no_recorded_time() {
        for (now, noted) in [
            ("2026-05-20T10:00:00Z", true),
            ("2026-06-01T10:00:00Z", true),
            ("2026-06-03T03:59:59Z", true),
            ("2026-06-03T04:00:00Z", false),
        ] {
            check(&json!({"status": "APPROVED"}), &json!({"status": "ACTIVE"}), now, [noted.then_some(now), None]);
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
        let now = "2026-06-09T10:00:00Z";
        check(&before, &json!({"status": "COMPLETED", "end_date": "2026-06-09"}), now, [Some(UP), Some(now)]);
    }
}
