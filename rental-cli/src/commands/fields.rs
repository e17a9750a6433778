//! Flags built from resource descriptions: one for each field that a request accepts.

use crate::{
    commands::{
        days::{self, Whose},
        json_text::{self, JsonText},
        session::{Session, Wanted},
    },
    config::values,
    failure::Failure,
    flags::flag,
    output::columns,
};
use clap::{
    Arg, ArgAction, ArgMatches,
    builder::{PossibleValue, PossibleValuesParser},
};
use rental_core::{
    request::{body::Verb, page},
    resources::{rental, spec_of, toll, violation},
    schema::{FieldSpec, Kind, Presence, ResourceSpec},
};

/// The flag that chooses what is shown.
const COLUMNS: &str = "columns";
/// Field with the organization, in bodies of the operator's API.
const ORGANIZATION: &str = "organization_id";
/// What stands for the value of a flag that takes an organization.
pub(crate) const ID_OR_NAME: &str = "ID|NAME";

/// Builds a flag for each field that the request accepts; for updates also `--clear`.
pub(crate) fn field_args(spec: &'static ResourceSpec, verb: Verb) -> Vec<Arg> {
    let mut args: Vec<Arg> = accepted(spec, verb).map(|field| field_arg(field, verb)).collect();
    let clearable: Vec<PossibleValue> = accepted(spec, verb)
        .filter(|field| verb == Verb::Update && field.nullable)
        .map(|field| PossibleValue::new(flag(field.name)).alias(field.name))
        .collect();
    if !clearable.is_empty() {
        args.push(
            Arg::new("clear")
                .long("clear")
                .value_name("FIELD")
                .action(ArgAction::Append)
                .value_parser(PossibleValuesParser::new(clearable))
                .help("Clear a field; repeatable"),
        );
    }
    args
}

/// Whether the field is a list, so that its flag is repeatable and adds one item.
fn is_list(field: &FieldSpec) -> bool {
    matches!(field.kind, Kind::Lines | Kind::CreditLines | Kind::EventTypes)
}

fn field_arg(field: &'static FieldSpec, verb: Verb) -> Arg {
    let default = match field.default {
        Some(text) if verb == Verb::Create => format!(" [default: {}]", text.trim_matches('"')),
        _ => String::new(),
    };
    let is_list = is_list(field);
    // The environment or the profile can set the organization: `Body::set_organization`.
    let elsewhere = field.name == ORGANIZATION;
    let required = verb.presence(field) == Presence::Required && !elsewhere;
    let more = match field.kind {
        Kind::Date => " (YYYY-MM-DD, today, +7d)",
        _ if is_list => "; repeatable",
        _ => "",
    };
    let help = format!("{}{more}{default}", sentence(field.doc));
    named(field.name)
        .value_name(if elsewhere { ID_OR_NAME } else { json_text::placeholder(field.kind) })
        .value_parser(json_text::parser(field.kind, field.nullable))
        .allow_negative_numbers(matches!(field.kind, Kind::Money | Kind::Percent | Kind::Integer(..)))
        .action(if is_list { ArgAction::Append } else { ArgAction::Set })
        .required(required)
        .help(if elsewhere { defaulted(&help) } else { help })
}

/// Builds the flags of a list: its filters, and those of all lists.
pub(crate) fn list_args(spec: &'static ResourceSpec) -> Vec<Arg> {
    let filters = spec.filters.iter().map(|filter| {
        let kind = spec.field(filter.field).map_or(Kind::Text(0), |field| field.kind);
        let placeholder = if filter.field == ORGANIZATION { ID_OR_NAME } else { json_text::placeholder(kind) };
        let arg = Arg::new(filter.param).long(flag(filter.param)).value_name(placeholder);
        let arg = arg.help(format!("Filter by {}", filter.param.replace('_', " ")));
        match spec.filter_words(filter.field) {
            Some(words) => arg.value_parser(json_text::Words(words)),
            None => arg,
        }
    });
    let common = [
        Arg::new("created[gte]").long("created-gte").value_name("TIME")
            .help("Only objects created at or after this time (RFC 3339) or the beginning of this day (YYYY-MM-DD, today, -30d)"),
        Arg::new("created[lt]").long("created-lt").value_name("TIME")
            .help("Only objects created before this time (RFC 3339) or the beginning of this day (YYYY-MM-DD, today, -30d)"),
        Arg::new("limit")
            .long("limit")
            .value_name("N")
            .value_parser(values::count)
            .help("How many objects to list; with --all, how many on each page, at most 100 [default: 20]"),
        Arg::new("starting_after")
            .long("starting-after")
            .value_name("CURSOR")
            .help("Start after this cursor: `next_cursor` of the previous page"),
        Arg::new("all").long("all").action(ArgAction::SetTrue).help("Fetch all pages"),
        columns_of_list(spec),
    ];
    let ranges = spec.ranges.iter().flat_map(|range| {
        let (value, example) = match spec.field(range.field).map(|field| field.kind) {
            Some(Kind::Date) => ("DATE", "YYYY-MM-DD, today, +7d"),
            _ => ("TIME", "RFC 3339, YYYY-MM-DD, today, -7d"),
        };
        let param = range.param;
        let (what, at) = match param {
            "updated" => (param.to_owned(), " at"),
            _ => (format!("whose {} is", param.replace('_', " ")), ""),
        };
        let unit = value.to_lowercase();
        [("gte", format!("{at} this {unit} or later")), ("lt", format!(" before this {unit}"))].map(|(bound, words)| {
            Arg::new(format!("{param}[{bound}]"))
                .long(format!("{}-{bound}", param.replace('_', "-")))
                .value_name(value)
                .help(format!("Only those {what}{words} ({example}), the earliest first; without other filters"))
        })
    });
    filters.chain(ranges).chain(common).collect()
}

/// The kind of the bound of a list that a parameter is: of `start_date[gte]` a date. `None` for other parameters.
pub(crate) fn kind_of_bound(spec: &ResourceSpec, param: &str) -> Option<Kind> {
    let (name, _) = param.split_once('[')?;
    let range = spec.ranges.iter().find(|range| range.param == name);
    let field = range.and_then(|range| spec.field(range.field));
    // `created` is the time of the id.
    Some(field.map_or(Kind::Time, |field| field.kind))
}

/// Builds the query of a list from its flags.
pub(crate) fn query(matches: &ArgMatches, spec: &ResourceSpec) -> Vec<(String, String)> {
    let filters = spec.filters.iter().map(|filter| filter.param.to_owned());
    let common = ["created[gte]", "created[lt]", "starting_after"].map(str::to_owned);
    let texts = filters.chain(page::range_parameters(spec)).chain(common);
    texts
        .filter_map(|name| {
            let value = matches.get_one::<String>(&name)?.clone();
            Some((name, value))
        })
        .collect()
}

/// Builds `--columns` for a command that shows one object.
pub(crate) fn columns_of(spec: &'static ResourceSpec) -> Arg {
    let mut names: Vec<&str> = spec.fields.iter().map(|field| field.name).collect();
    names.extend(columns::choices(spec).filter(|name| spec.field(name).is_none()));
    columns_among(names).display_order(900)
}

/// Builds `--columns` for a command that shows a list.
pub(crate) fn columns_of_list(spec: &'static ResourceSpec) -> Arg {
    let help = "Fields to show, separated by commas; `vehicle` shows the name for `vehicle_id`";
    columns_among(columns::choices(spec)).help(help)
}

/// Builds `--columns` for a command that shows what has no description.
pub(crate) fn columns_among(names: impl IntoIterator<Item = &'static str>) -> Arg {
    Arg::new(COLUMNS)
        .long(COLUMNS)
        .value_name("NAMES")
        .value_delimiter(',')
        .hide_possible_values(true)
        .value_parser(PossibleValuesParser::new(names))
        .help("Fields to show, separated by commas")
}

/// The values of `--columns`; none where there is no such flag.
pub(crate) fn columns(matches: &ArgMatches) -> Vec<String> {
    matches.try_get_many::<String>(COLUMNS).ok().flatten().into_iter().flatten().cloned().collect()
}

/// Reads how much of a list is wanted.
pub(crate) fn wanted(matches: &ArgMatches) -> Wanted {
    Wanted { all: matches.get_flag("all"), limit: matches.get_one::<u32>("limit").copied(), columns: columns(matches) }
}

/// A request body: names of fields with their JSON text.
pub(crate) struct Body(Vec<(&'static str, JsonText)>);

impl Body {
    /// What the flags of [`field_args`] say.
    pub(crate) fn read(matches: &ArgMatches, spec: &'static ResourceSpec, verb: Verb) -> Result<Self, Failure> {
        let cleared: Vec<&str> = match matches.try_get_many::<String>("clear") {
            Ok(Some(names)) => names.map(String::as_str).collect(),
            _ => Vec::new(),
        };
        let mut body = Self(Vec::new());
        for field in accepted(spec, verb) {
            // A command may have flags for some of the fields only, as `attach` does.
            let given = matches.try_get_many::<JsonText>(field.name).ok().flatten();
            let given: Vec<&JsonText> = given.into_iter().flatten().collect();
            let clear = cleared.iter().any(|name| *name == flag(field.name) || *name == field.name);
            match (given.as_slice(), clear) {
                ([], false) => {}
                ([], true) => body.set(field.name, JsonText::null()),
                (_, true) => {
                    let flag = flag(field.name);
                    return Err(Failure::Usage(format!(
                        "--{flag} sets a field that --clear {flag} clears; use one of them"
                    )));
                }
                ([null], false) if **null == JsonText::null() => body.set(field.name, JsonText::null()),
                (items, false) if is_list(field) => body.set(field.name, JsonText::list(items.iter().copied())),
                ([value, ..], false) => body.set(field.name, (*value).clone()),
            }
        }
        Ok(body)
    }

    /// Adds a field.
    pub(crate) fn set(&mut self, name: &'static str, value: JsonText) {
        self.0.push((name, value));
    }

    /// Replaces the text of a field that is there.
    pub(crate) fn replace(&mut self, name: &str, text: &str) {
        if let Some(value) = self.field_mut(name) {
            *value = JsonText::string(text);
        }
    }

    /// Replaces what people call objects by the ids of these objects, in fields and in the lines of an invoice, and days and times as
    /// people type them by those of the API.
    pub(crate) fn resolve(
        &mut self,
        spec: &'static ResourceSpec,
        mut whose: Whose,
        session: &Session,
    ) -> Result<(), Failure> {
        whose.organization = whose.organization.or_else(|| self.field_mut(ORGANIZATION)?.text());

        for (name, value) in &mut self.0 {
            match spec.field(name).map(|field| field.kind) {
                Some(Kind::Reference(object)) if *name != ORGANIZATION => {
                    if let Some((spec, text)) = spec_of(object).zip(value.text()) {
                        *value = JsonText::string(&session.object_id(spec, &text)?);
                    }
                }
                Some(kind @ (Kind::Date | Kind::Time)) => {
                    if let Some(text) = value.text() {
                        *value = JsonText::string(&days::resolved(kind, &text, &whose, session)?);
                    }
                }
                Some(Kind::Lines) => {
                    let lines: Result<Vec<_>, _> =
                        value.items().iter().map(|line| line_with_id(line, session)).collect();
                    *value = JsonText::list(&lines?);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Sets the id of the organization that the flag, the environment or the profile names.
    pub(crate) fn set_organization(&mut self, session: &Session) -> Result<(), Failure> {
        let given = self.0.iter().position(|(name, _)| *name == ORGANIZATION).map(|at| self.0.remove(at).1);
        let id = match given.as_ref().and_then(JsonText::text) {
            Some(text) => session.organization_id(&text)?.to_owned(),
            None => session.organization_id(session.settings.organization()?)?.to_owned(),
        };
        self.0.insert(0, (ORGANIZATION, JsonText::string(&id)));
        Ok(())
    }

    /// The value of a field.
    pub(crate) fn field_mut(&mut self, name: &str) -> Option<&mut JsonText> {
        self.0.iter_mut().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// Whether the body has no field.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the body as a JSON object.
    pub(crate) fn into_json(self) -> String {
        let members: Vec<String> =
            self.0.iter().map(|(name, value)| format!("\"{name}\":{}", value.as_str())).collect();
        format!("{{{}}}", members.join(","))
    }
}

/// A line of an invoice: its toll, violation or rental by its id. An amount stays.
fn line_with_id(line: &JsonText, session: &Session) -> Result<JsonText, Failure> {
    match billed(line) {
        Some((spec, member, name)) => Ok(line.billing_id(member, &session.object_id(spec, &name)?)),
        None => Ok(line.clone()),
    }
}

/// What a line bills: its resource, the member with it, and what the line calls it.
pub(crate) fn billed(line: &JsonText) -> Option<(&'static ResourceSpec, &'static str, String)> {
    let sources = [(&toll::SPEC, "toll_id"), (&violation::SPEC, "violation_id"), (&rental::SPEC, "rental_id")];
    sources.into_iter().find_map(|(spec, member)| Some((spec, member, line.member(member)?)))
}

fn accepted(spec: &'static ResourceSpec, verb: Verb) -> impl Iterator<Item = &'static FieldSpec> {
    spec.fields.iter().filter(move |field| verb.presence(field) != Presence::Never)
}

/// Builds the argument of a field. Its full name in kebab-case is an alias if the flag is shorter.
pub(crate) fn named(field: &'static str) -> Arg {
    let (short, long) = (flag(field), field.replace('_', "-"));
    let arg = Arg::new(field).long(short.clone());
    if short == long { arg } else { arg.alias(long) }
}

/// Builds `--organization`.
pub(crate) fn organization(help: &'static str) -> Arg {
    Arg::new("organization").long("organization").value_name(ID_OR_NAME).value_parser(values::id).help(defaulted(help))
}

/// Adds the environment variable and the profile to the help of `--organization`.
pub(crate) fn defaulted(help: &str) -> String {
    format!("{help} [env: RENTAL_ORGANIZATION] [default: from the profile]")
}

/// Removes the full stop: help has none.
fn sentence(doc: &str) -> &str {
    doc.strip_suffix('.').unwrap_or(doc)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Command;
    use rental_core::resources::{self, customer, organization, rental, vehicle, webhook_endpoint};

    fn parse(spec: &'static ResourceSpec, verb: Verb, line: &str) -> Result<String, String> {
        let command = Command::new("x").no_binary_name(true).args(field_args(spec, verb));
        // `|` separates arguments, so that they can hold spaces or nothing.
        let words = line.split('|').filter(|_| !line.is_empty());
        let matches = command.try_get_matches_from(words).map_err(|error| error.to_string())?;
        let body = Body::read(&matches, spec, verb).map_err(|failure| format!("{failure:?}"))?;
        Ok(body.into_json())
    }

    #[test]
    fn every_field_of_the_api_is_a_flag() {
        for spec in resources::specs() {
            for verb in [Verb::Create, Verb::Update] {
                let args = field_args(spec, verb);
                for field in spec.fields.iter().filter(|field| verb.presence(field) != Presence::Never) {
                    let kebab = field.name.replace('_', "-");
                    let known = args.iter().any(|arg| {
                        arg.get_long() == Some(&kebab)
                            || arg.get_all_aliases().is_some_and(|all| all.contains(&kebab.as_str()))
                    });
                    assert!(
                        known || matches!(field.kind, Kind::Lines | Kind::CreditLines),
                        "{}.{}",
                        spec.object,
                        field.name
                    );
                }
            }
        }
    }

    #[test]
    fn numbers_are_sent_as_numbers_with_the_text_that_was_typed() {
        let body = parse(&vehicle::SPEC, Verb::Create, "--name|White \"T\"|--daily-rate|89.50|--year|2023");
        assert_eq!(body.as_deref(), Ok(r#"{"name":"White \"T\"","year":2023,"daily_rate":89.50}"#));
        let body = parse(&vehicle::SPEC, Verb::Update, "--daily-rate|-1");
        assert_eq!(body.as_deref(), Ok(r#"{"daily_rate":-1}"#), "the server says what is wrong with it");
    }

    #[test]
    fn a_number_field_takes_only_numbers() {
        assert!(
            parse(&vehicle::SPEC, Verb::Update, "--daily-rate|cheap").is_err_and(|text| text.contains("not a number"))
        );
        assert!(parse(&rental::SPEC, Verb::Update, "--damage-at-return|yes").is_err());
    }

    #[test]
    fn an_empty_text_clears_a_field_that_can_be_empty() {
        let body = parse(&customer::SPEC, Verb::Update, "--email||--notes|x|--clear|phone|--clear|source_channel");
        assert_eq!(body.as_deref(), Ok(r#"{"email":null,"phone":null,"source_channel":null,"notes":"x"}"#));
        let body = parse(&customer::SPEC, Verb::Update, "--full-name|");
        assert_eq!(body.as_deref(), Ok(r#"{"full_name":""}"#), "the server says that it must not be blank");
        assert_eq!(parse(&vehicle::SPEC, Verb::Update, "--daily-rate|").as_deref(), Ok(r#"{"daily_rate":null}"#));
    }

    #[test]
    fn a_field_is_not_both_set_and_cleared() {
        assert!(
            parse(&customer::SPEC, Verb::Update, "--email|a@b.c|--clear|email")
                .is_err_and(|text| text.contains("--clear email"))
        );
        assert!(parse(&customer::SPEC, Verb::Update, "--clear|full-name").is_err(), "it can never be empty");
    }

    #[test]
    fn words_are_judged_by_the_server() {
        assert_eq!(parse(&vehicle::SPEC, Verb::Update, "--status|parked").as_deref(), Ok(r#"{"status":"parked"}"#));
    }

    #[test]
    fn references_have_the_names_of_the_filters() {
        for line in ["--customer|c|--vehicle|v", "--customer-id|c|--vehicle-id|v"] {
            let body = parse(&rental::SPEC, Verb::Create, line);
            assert_eq!(body.as_deref(), Ok(r#"{"customer_id":"c","vehicle_id":"v"}"#));
        }
        let body = parse(&organization::SPEC, Verb::Create, "--name|n|--currency|JPY");
        assert_eq!(body.as_deref(), Ok(r#"{"name":"n","default_currency":"JPY"}"#));
    }

    #[test]
    fn a_repeated_flag_is_a_list_and_an_empty_one_no_list() {
        let body = parse(&webhook_endpoint::SPEC, Verb::Update, "--event|rental.created|--event|rental.creatd");
        assert_eq!(body.as_deref(), Ok(r#"{"events":["rental.created","rental.creatd"]}"#));
        for line in ["--event|", "--clear|events", "--clear|event"] {
            assert_eq!(parse(&webhook_endpoint::SPEC, Verb::Update, line).as_deref(), Ok(r#"{"events":null}"#));
        }
    }

    #[test]
    fn required_fields_are_asked_for_at_once() {
        let message = parse(&rental::SPEC, Verb::Create, "").unwrap_err();
        assert!(
            message.contains("--customer <ID|EMAIL|NAME>") && message.contains("--vehicle <ID|PLATE|NAME>"),
            "{message}"
        );
    }
}
