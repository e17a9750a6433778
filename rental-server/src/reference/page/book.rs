//! The OpenAPI document as pages see it: chapters of operations, each on a page of its own.

use super::markup::{array, object, text};
use crate::endpoint::{camel, capitalized, is_for_operators};
use rental_core::{resources, schema::ResourceSpec};
use serde_json::Value;

/// An operation of the document.
pub(super) struct Operation<'d> {
    pub(super) method: String,
    pub(super) path: &'d str,
    pub(super) value: &'d Value,
}

/// What a request authenticates itself with.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Secret {
    /// The key of an organization.
    Key,
    /// The token of an operator.
    Token,
    /// Nothing.
    None,
}

/// The operations of a tag that are for the same callers.
pub(super) struct Chapter<'d> {
    /// Last part of its path: `vehicles`.
    pub(super) name: String,
    pub(super) title: String,
    pub(super) description: &'d str,
    pub(super) for_operators: bool,
    /// The resource that it is about.
    pub(super) spec: Option<&'static ResourceSpec>,
    pub(super) operations: Vec<Operation<'d>>,
}

/// The document and its chapters, those of the API first.
pub(super) struct Book<'d> {
    pub(super) document: &'d Value,
    pub(super) chapters: Vec<Chapter<'d>>,
    /// Whether the pages for operators have the address of the others.
    pub(super) names_operators_pages: bool,
}

impl<'d> Book<'d> {
    pub(super) fn new(document: &'d Value, names_operators_pages: bool) -> Self {
        let tags = array(&document["tags"]);
        let of = |for_operators| tags.iter().map(move |tag| Chapter::new(document, tag, for_operators));
        let chapters = of(false).chain(of(true)).filter(|chapter| !chapter.operations.is_empty());
        let mut chapters: Vec<Chapter<'d>> = chapters.collect();
        chapters.sort_by_key(|chapter| (chapter.for_operators, chapter.rank()));
        Self { document, chapters, names_operators_pages }
    }

    /// Follows a `$ref` inside the document.
    pub(super) fn resolve(&self, value: &'d Value) -> &'d Value {
        let pointer = value["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
        pointer.and_then(|pointer| self.document.pointer(pointer)).unwrap_or(value)
    }

    /// The parameters of an operation.
    pub(super) fn parameters(&self, operation: &Operation<'d>) -> impl Iterator<Item = &'d Value> {
        array(&operation.value["parameters"]).iter().map(|parameter| self.resolve(parameter))
    }

    /// The operation with this name.
    pub(super) fn operation(&self, id: &str) -> Option<&Operation<'d>> {
        self.chapters.iter().flat_map(|chapter| &chapter.operations).find(|operation| operation.id() == id)
    }

    /// The resource of a chapter and its schema, on the first page with an operation on all of its objects.
    pub(super) fn resource(&self, chapter: &Chapter<'_>) -> Option<(&'static ResourceSpec, &'d Value)> {
        let spec = chapter.spec?;
        let has_it = |chapter: &&Chapter<'_>| {
            let all = format!("/{}", spec.plural);
            chapter.operations.iter().any(|operation| operation.path.ends_with(&all))
        };
        let mut same = self.chapters.iter().filter(|other| other.name == chapter.name);
        let first = same.find(has_it)?;
        let schema = self.document["components"]["schemas"].get(camel(spec.object))?;
        (first.for_operators == chapter.for_operators).then_some((spec, schema))
    }
}

impl<'d> Chapter<'d> {
    fn new(document: &'d Value, tag: &'d Value, for_operators: bool) -> Self {
        let name = text(&tag["name"]);
        let spec = resources::specs().find(|spec| capitalized(&spec.plural.replace('_', " ")) == name);
        let mut operations: Vec<Operation<'d>> = object(&document["paths"])
            .flat_map(|(path, item)| object(item).map(move |(method, value)| (method, path, value)))
            .filter(|(_, path, value)| value["tags"][0] == tag["name"] && is_for_operators(path) == for_operators)
            .map(|(method, path, value)| Operation { method: method.to_uppercase(), path, value })
            .collect();
        // What every resource has comes first, then what only this one has.
        operations.sort_by_key(|operation| spec.is_some_and(|spec| !operation.is_generic(spec)));
        Self {
            name: name.to_lowercase().replace(' ', "_"),
            title: name.replace("Api ", "API "),
            description: text(&tag["description"]),
            for_operators,
            spec,
            operations,
        }
    }

    /// Its place among the chapters: in the order of the resources.
    fn rank(&self) -> usize {
        let is_this = |spec: &ResourceSpec| self.spec.is_some_and(|own| own.object == spec.object);
        resources::specs().position(is_this).unwrap_or(usize::MAX)
    }

    /// The path of its page.
    pub(super) fn path(&self) -> String {
        format!("/docs{}/{}", if self.for_operators { "/admin" } else { "" }, self.name)
    }
}

impl<'d> Operation<'d> {
    /// The name of the operation.
    pub(super) fn id(&self) -> &'d str {
        text(&self.value["operationId"])
    }

    /// Whether it is about all objects of a resource, or about one: list, get, create, update or delete.
    pub(super) fn is_generic(&self, spec: &ResourceSpec) -> bool {
        let all = format!("/{}", spec.plural);
        self.path.ends_with(&all) || self.path.ends_with(&(all + "/{id}"))
    }

    pub(super) fn summary(&self) -> &'d str {
        text(&self.value["summary"])
    }

    pub(super) fn secret(&self) -> Secret {
        match self.value["security"].as_array().map(|all| all.first()) {
            None => Secret::Key,
            Some(Some(scheme)) if scheme.get("adminToken").is_some() => Secret::Token,
            Some(Some(_)) => Secret::Key,
            Some(None) => Secret::None,
        }
    }

    /// The media types of its body, each with what the document says of it.
    pub(super) fn content(&self) -> impl Iterator<Item = (&'d String, &'d Value)> + use<'d> {
        object(&self.value["requestBody"]["content"])
    }

    /// Whether its body is a file: a file has another media type than JSON, or several.
    pub(super) fn takes_file(&self) -> bool {
        self.content().any(|(media, _)| media != "application/json")
    }

    /// The example of its JSON body, without members that are null.
    pub(super) fn body_example(&self) -> Option<Value> {
        let mut example = self.value["requestBody"]["content"]["application/json"].get("example")?.clone();
        if let Some(members) = example.as_object_mut() {
            members.retain(|_, value| !value.is_null());
        }
        Some(example)
    }

    /// The query with the parameters that a request must have.
    pub(super) fn required_query(&self) -> String {
        let required = array(&self.value["parameters"]).iter();
        let required = required.filter(|one| one["in"] == "query" && one["required"] == true);
        let pairs: Vec<String> =
            required.map(|one| format!("{}={}", text(&one["name"]), text(&one["example"]))).collect();
        if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
    }

    /// Its path with an example for each id.
    pub(super) fn filled_path(&self) -> String {
        let ids = array(&self.value["parameters"]).iter().filter(|parameter| parameter["in"] == "path");
        ids.fold(self.path.to_owned(), |path, id| {
            path.replace(&format!("{{{}}}", text(&id["name"])), id["example"].as_str().unwrap_or("ID"))
        })
    }
}

/// The object that a parameter or field refers to: `vehicle` for `vehicle_id`, or for `{id}` after `vehicles`.
pub(super) fn object_of(name: &str, path: &str) -> Option<&'static str> {
    if name == "id" {
        let (before, _) = path.split_once("/{id}")?;
        let plural = before.rsplit('/').next()?;
        return resources::specs().find(|spec| spec.plural == plural).map(|spec| spec.object);
    }
    let object = name.strip_suffix("_id").unwrap_or(name);
    resources::spec_of(object).map(|spec| spec.object)
}
