//! Tells on stderr what the responses of a command noticed.

use crate::commands::{described::describe, session::Session};
use rental_core::{resources::spec_of, schema::Notice};

/// Prints each notice as a sentence with the names of the object, and the next step.
pub(crate) fn tell(session: &Session) {
    let mut notices: Vec<Notice> = session.api.notices();
    notices.dedup();
    if notices.is_empty() || session.out.quiet {
        return;
    }
    let ids: Vec<String> = notices.iter().map(|notice| notice.id.to_string()).collect();
    let plural = |notice: &Notice| spec_of(notice.object).map_or("", |spec| spec.plural);
    let objects: Vec<(&str, &str)> = notices.iter().map(plural).zip(ids.iter().map(String::as_str)).collect();
    for (notice, described) in notices.iter().zip(describe(&session.api, &objects)) {
        let lists = match notice.spec.name.starts_with("same-") {
            true => " `rental-cli vehicles duplicates` lists all of them.",
            false => "",
        };
        let says = notice.spec.says.trim_end_matches('.');
        session.out.warn(&format!("Note: {says}: {described}. {}{lists}", notice.spec.next));
    }
}
