//! An operation as a call of the TypeScript and the Python client.
//!
//! Their names follow one rule: the group is the resource, the method is the verb. The others are a table. `clients/check`
//! compiles every example against the clients.

use super::{
    book::{Book, Chapter, Operation},
    fields::Shape,
    markup::{array, text},
};
use crate::endpoint::camel;
use serde_json::Value;

/// Methods of the clients whose names do not follow from the path, as group and method.
const METHODS: &[(&str, &str, &str)] = &[
    ("getMe", "", "me"),
    ("listAvailableVehicles", "vehicles", "available"),
    ("getVehicleCalendar", "vehicles", "calendar"),
    ("getVehicleCalendarFeed", "vehicles", "calendar_feed"),
    ("createVehicleCalendarFeed", "vehicles", "create_calendar_feed"),
    ("deleteVehicleCalendarFeed", "vehicles", "delete_calendar_feed"),
    ("listReviewOfTolls", "tolls", "review"),
    ("listReviewOfViolations", "violations", "review"),
    ("pollCalendarFeed", "calendar_feeds", "poll"),
    ("deleteCalendarFeed", "calendar_feeds", "delete"),
];

/// The fields of objects that an example of a list prints, by the name of the variable.
const LISTED: &[(&str, [&str; 3])] = &[
    ("vehicle", ["name", "daily_rate", "status"]),
    ("customer", ["id", "full_name", "email"]),
    ("booking", ["start_date", "end_date", "status"]),
    ("invoice", ["invoice_number", "total", "status"]),
];

/// A call with its arguments.
pub(super) struct Call {
    /// Group of methods, in snake case; empty for methods of the client itself.
    group: &'static str,
    method: &'static str,
    /// Name of the variable that gets the result.
    result: &'static str,
    lists: bool,
    id: Option<String>,
    /// Required filters, or the body.
    arguments: Value,
}

impl Call {
    /// The call of an operation; `None` if the clients have none.
    pub(super) fn new<'d>(book: &Book<'d>, chapter: &Chapter<'d>, operation: &Operation<'d>) -> Option<Self> {
        let spec = chapter.spec?;
        let known = METHODS.iter().find(|(id, ..)| *id == operation.id());
        let of_one = operation.path.contains("{id}");
        let (group, method) = match (known, operation.method.as_str()) {
            (Some((_, group, method)), _) => (*group, *method),
            (None, "GET") if of_one => (spec.plural, "get"),
            (None, "GET") => (spec.plural, "list"),
            (None, "POST") => (spec.plural, "create"),
            (None, "PATCH") => (spec.plural, "update"),
            _ => return None,
        };
        let reply = &operation.value["responses"]["200"]["content"]["application/json"]["schema"];
        let lists = Shape::of(book, reply).fields(book).iter().any(|(name, ..)| *name == "has_more");
        let result = match method {
            "me" => "me",
            "calendar" => "interval",
            "review" => "item",
            "calendar_feed" | "create_calendar_feed" | "delete_calendar_feed" => "feed",
            // `rental` is the client.
            _ if spec.object == "rental" => "booking",
            _ => spec.object,
        };
        let ids = array(&operation.value["parameters"]).iter().find(|one| one["in"] == "path");
        let required = array(&operation.value["parameters"]).iter();
        let required = required.filter(|one| one["in"] == "query" && one["required"] == true);
        let query: Value = required.map(|one| (text(&one["name"]).to_owned(), one["example"].clone())).collect();
        let arguments = operation.body_example().unwrap_or(query);
        Some(Self { group, method, result, lists, id: ids.map(|id| text(&id["example"]).to_owned()), arguments })
    }

    pub(super) fn typescript(&self) -> String {
        let mut arguments: Vec<String> = self.id.iter().map(|id| format!("\"{id}\"")).collect();
        if self.arguments.as_object().is_some_and(|members| !members.is_empty()) {
            arguments.push(typescript(&self.arguments, 0));
        }
        let name = |snake: &str| lower_camel(snake);
        let call = [self.group, self.method].into_iter().filter(|part| !part.is_empty()).map(name);
        let call = format!("rental.{}({})", call.collect::<Vec<_>>().join("."), arguments.join(", "));
        let result = lower_camel(self.result);
        let used = if self.lists {
            let shown = self.shown(&result);
            format!("for await (const {result} of {call}) {{\n  console.log({shown});\n}}")
        } else {
            format!("const {result} = await {call};\nconsole.log({result});")
        };
        format!(
            "import {{ RentalClient }} from \"@rental-platform/client\";\n\nconst rental = new RentalClient();\n{used}"
        )
    }

    /// What an example prints of each object of a list: that by which a person knows it.
    fn shown(&self, result: &str) -> String {
        match LISTED.iter().find(|(object, _)| *object == self.result) {
            Some((_, fields)) => fields.map(|field| format!("{result}.{field}")).join(", "),
            None => result.to_owned(),
        }
    }

    pub(super) fn python(&self) -> String {
        let named = |name: &str| if name == "from" { "from_".to_owned() } else { name.to_owned() };
        let id = self.id.iter().map(|id| format!("\"{id}\""));
        let fields = self.arguments.as_object().into_iter().flatten();
        let fields = fields.map(|(name, value)| format!("{}={}", named(name), python(value)));
        let arguments: Vec<String> = id.chain(fields).collect();
        let arguments = if arguments.len() < 3 {
            arguments.join(", ")
        } else {
            arguments.iter().map(|one| format!("\n    {one},")).collect::<String>() + "\n"
        };
        let call = [self.group, self.method].into_iter().filter(|part| !part.is_empty());
        let call = format!("rental.{}({arguments})", call.collect::<Vec<_>>().join("."));
        let result = self.result;
        let used = if self.lists {
            format!("for {result} in {call}:\n    print({})", self.shown(result))
        } else {
            format!("{result} = {call}\nprint({result})")
        };
        format!("from rental_client import RentalClient\n\nrental = RentalClient()\n{used}")
    }
}

/// `credit_notes` as `creditNotes`.
fn lower_camel(snake: &str) -> String {
    let camel = camel(snake);
    let mut letters = camel.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

/// A value as TypeScript: JSON with bare names.
fn typescript(value: &Value, level: usize) -> String {
    let indent = "  ".repeat(level + 1);
    match value {
        Value::Object(members) if level == 0 && members.len() > 2 => {
            let lines =
                members.iter().map(|(name, value)| format!("{indent}{name}: {},\n", typescript(value, level + 1)));
            format!("{{\n{}}}", lines.collect::<String>())
        }
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| format!("{name}: {}", typescript(value, level + 1)));
            format!("{{ {} }}", members.collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => {
            let items = items.iter().map(|item| typescript(item, level + 1));
            format!("[{}]", items.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

/// A value as Python.
fn python(value: &Value) -> String {
    match value {
        Value::Null => "None".into(),
        Value::Bool(true) => "True".into(),
        Value::Bool(false) => "False".into(),
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| format!("\"{name}\": {}", python(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(python).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}
