//! Names in place of the ids that texts of the server mention: `toll 61231234567` for `toll 0190d0f2-...`.

use crate::{
    client::{access::Access, api::Api},
    commands::{by_field, by_name::is_id, names::LookUp},
};
use rental_core::{resources::specs, schema::ResourceSpec};
use std::{collections::BTreeSet, ops::Range};

/// Characters before and after an id in a sentence.
const AROUND: [char; 9] = ['.', ',', ';', ':', '(', ')', '`', '"', '\''];

/// The names of the objects that texts mention, each on a line. They are looked up with an API key, within a bounded time; without
/// a name of its own in the text, the id stays.
pub(crate) struct Mentions<'a>(LookUp<'a>);

impl<'a> Mentions<'a> {
    pub(crate) fn new(api: &'a Api) -> Self {
        Self(LookUp::called(api, Access::Organization, |plural, record| {
            Some(by_field::names_of(plural, record).join("\n"))
        }))
    }

    /// Looks up the objects that these texts mention.
    pub(crate) fn learn<'t>(&mut self, texts: impl IntoIterator<Item = &'t str>) {
        let of_text = |text: &str| {
            let named = mentioned(text).into_iter().filter(|(_, spec)| !by_field::fields(spec).is_empty());
            named.map(|(at, spec)| (text[at].to_owned(), spec.plural.to_owned())).collect::<Vec<_>>()
        };
        let wanted: BTreeSet<_> = texts.into_iter().flat_map(of_text).collect();
        if !wanted.is_empty() {
            self.0.find(wanted);
        }
    }

    /// The text with the names that are known.
    pub(crate) fn named(&self, text: &str) -> String {
        with_names(text, |id| self.0.names.get(id))
    }
}

/// The text with names in place of ids. Of the names of an object, each on a line, it has the first one that no other object of the
/// text has: two vehicles can have one plate.
fn with_names<'n>(text: &str, names: impl Fn(&str) -> Option<&'n str>) -> String {
    let (mut named, found) = (text.to_owned(), mentioned(text));
    let of = |at: &Range<usize>| names(&text[at.clone()]).unwrap_or_default().lines();
    for (at, _) in found.iter().rev() {
        let others = || found.iter().filter(|(other, _)| text[other.clone()] != text[at.clone()]);
        let own = of(at).find(|name| !others().any(|(other, _)| of(other).any(|taken| taken == *name)));
        if let Some(name) = own {
            let name = if name.contains(' ') { format!("{name:?}") } else { name.to_owned() };
            named.replace_range(at.clone(), &name);
        }
    }
    named
}

/// The ids in a text, with the resource that the nearest words before them name.
fn mentioned(text: &str) -> Vec<(Range<usize>, &'static ResourceSpec)> {
    let (mut found, mut resource, mut before) = (Vec::new(), None, String::new());
    for part in text.split(' ') {
        let word = part.trim_matches(AROUND);
        if word.len() == 36 && is_id(word) {
            let at = word.as_ptr() as usize - text.as_ptr() as usize;
            found.extend(resource.map(|spec| (at..at + word.len(), spec)));
        } else {
            let word = word.to_lowercase();
            let is = |name: &str| name == word || name == format!("{before}_{word}");
            resource = specs().find(|spec| is(spec.object) || is(spec.plural)).or(resource);
            before = word;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "0190d0f2-7c3a-7cc0-8000-00000000000a";
    const B: &str = "0190d0f2-7c3a-7cc0-8000-00000000000b";

    #[test]
    fn two_vehicles_with_one_plate_are_named_by_what_tells_them_apart() {
        let text = format!("2 vehicles had this plate number at that time: {A} and {B}.");
        for (a, b, expected) in [
            ("ABC1234\nCar A", "ABC1243\nNew car", "ABC1234 and ABC1243."),
            ("ABC1234\nCar A", "ABC1234\nNew", "\"Car A\" and New."),
            ("ABC1234\nCar", "ABC1234\nCar", &format!("{A} and {B}.")),
            ("ABC1234", "", &format!("ABC1234 and {B}.")),
        ] {
            let names = |id: &str| Some(if id == A { a } else { b });
            assert_eq!(with_names(&text, names), text.replace(&format!("{A} and {B}."), expected));
        }
    }

    #[test]
    fn an_id_is_of_the_resource_that_the_words_before_it_name() {
        for (text, expected) in [
            (
                format!("The transponder belongs to vehicle {A}, the plate to {B}."),
                vec![(A, "vehicle"), (B, "vehicle")],
            ),
            (format!("The toll {A} is already billed on invoice {B}."), vec![(A, "toll"), (B, "invoice")]),
            (format!("Credit note {A} has it."), vec![(A, "credit_note")]),
            (format!("{A} is none."), vec![]),
            ("The vehicle LZA7293.".to_owned(), vec![]),
        ] {
            let found: Vec<_> = mentioned(&text).into_iter().map(|(at, spec)| (&text[at], spec.object)).collect();
            assert_eq!(found, expected, "{text}");
        }
    }
}
