//! Reads the modules of a crate with `syn`: what each one declares, imports, re-exports and names.
//!
//! Code for tests is left out: items with `#[cfg(test)]` or `#[test]`, and the files of such modules.

use std::collections::{BTreeMap, BTreeSet};
use syn::{
    Attribute, Item, UseTree, Visibility,
    buffer::Cursor,
    parse::ParseStream,
    visit::{self, Visit},
};

/// A path as its segments: `crate::store::Key` is `["crate", "store", "Key"]`.
pub(super) type Segments = Vec<String>;

/// Text of a file below `src`, or `None` where there is no such file.
pub(super) type Load<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A `use` of one name.
#[derive(Debug)]
pub(super) struct Import {
    /// The name in this module; `*` for all names.
    pub(super) name: String,
    /// What is imported.
    pub(super) path: Segments,
    /// Whether others can name it through this module.
    pub(super) public: bool,
}

/// What one module says.
#[derive(Debug, Default)]
pub(super) struct Module {
    /// The module of the file that contains it: itself, but for modules in braces.
    pub(super) file: String,
    pub(super) imports: Vec<Import>,
    /// Names of the items that it defines.
    pub(super) items: BTreeSet<String>,
    /// Every other path in its code, those inside macro calls included.
    pub(super) paths: BTreeSet<Segments>,
}

/// The modules of a crate by path, such as `store::key`; the root is empty.
pub(super) type Modules = BTreeMap<String, Module>;

pub(super) fn child(module: &str, name: &str) -> String {
    if module.is_empty() { name.to_owned() } else { format!("{module}::{name}") }
}

/// Reads a crate from its root, `lib.rs` or `main.rs`.
pub(super) fn read(load: Load<'_>) -> Modules {
    let mut modules = Modules::new();
    let root = load("lib.rs").or_else(|| load("main.rs")).expect("a crate has a root");
    read_file(&mut modules, load, &root, "", "");
    modules
}

/// `folder` is where the files of the module's children are.
fn read_file(modules: &mut Modules, load: Load<'_>, text: &str, module: &str, folder: &str) {
    let file = syn::parse_file(text).unwrap_or_else(|error| panic!("{module}: {error}"));
    let mut reader = Reader { modules, module: module.to_owned(), file: module.to_owned(), files: Vec::new() };
    reader.module_items(&file.items);
    for name in reader.files {
        let below = format!("{folder}{name}/");
        let text = load(&format!("{folder}{name}.rs")).or_else(|| load(&format!("{below}mod.rs")));
        let text = text.unwrap_or_else(|| panic!("{folder}{name}.rs is not there"));
        read_file(modules, load, &text, &child(module, &name), &below);
    }
}

struct Reader<'a> {
    modules: &'a mut Modules,
    /// The module that is being read.
    module: String,
    file: String,
    /// Children in files of their own.
    files: Vec<String>,
}

impl Reader<'_> {
    fn current(&mut self) -> &mut Module {
        self.modules.entry(self.module.clone()).or_default()
    }

    fn module_items(&mut self, items: &[Item]) {
        self.current().file = self.file.clone();
        for item in items {
            if let Some(name) = name_of(item) {
                self.current().items.insert(name);
            }
            self.visit_item(item);
        }
    }

    fn import(&mut self, tree: &UseTree, mut path: Segments, public: bool) {
        let (name, last) = match tree {
            UseTree::Path(inner) => {
                path.push(inner.ident.to_string());
                return self.import(&inner.tree, path, public);
            }
            UseTree::Group(group) => {
                return group.items.iter().for_each(|tree| self.import(tree, path.clone(), public));
            }
            UseTree::Glob(_) => ("*".to_owned(), None),
            UseTree::Name(name) => (name.ident.to_string(), Some(name.ident.to_string())),
            UseTree::Rename(renamed) => (renamed.rename.to_string(), Some(renamed.ident.to_string())),
        };
        // `use a::{self}` imports `a`.
        path.extend(last.filter(|last| last != "self"));
        let name = if name == "self" { path.last().cloned().unwrap_or_default() } else { name };
        self.current().imports.push(Import { name, path, public });
    }
}

macro_rules! skip_tests {
    ($($visit:ident: $kind:ident),*) => {
        $(fn $visit(&mut self, item: &'ast syn::$kind) {
            if !for_tests(&item.attrs) {
                visit::$visit(self, item);
            }
        })*
    };
}

impl<'ast> Visit<'ast> for Reader<'_> {
    skip_tests!(
        visit_item_fn: ItemFn, visit_item_impl: ItemImpl, visit_item_struct: ItemStruct, visit_item_enum: ItemEnum,
        visit_item_trait: ItemTrait, visit_item_const: ItemConst, visit_item_static: ItemStatic,
        visit_item_type: ItemType, visit_item_macro: ItemMacro, visit_impl_item_fn: ImplItemFn, visit_field: Field
    );

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if for_tests(&item.attrs) {
            return;
        }
        let name = item.ident.to_string();
        match &item.content {
            None => self.files.push(name),
            Some((_, items)) => {
                let inner = child(&self.module, &name);
                let outer = std::mem::replace(&mut self.module, inner);
                self.module_items(items);
                self.module = outer;
            }
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if !for_tests(&item.attrs) && item.leading_colon.is_none() {
            self.import(&item.tree, Vec::new(), !matches!(item.vis, Visibility::Inherited));
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            let segments = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            self.current().paths.insert(segments);
        }
        visit::visit_path(self, path);
    }

    /// `syn` does not parse the tokens of a macro call, so paths are gathered from them.
    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        let mut found = Vec::new();
        let gather = |input: ParseStream<'_>| {
            input.step(|cursor| {
                gather(*cursor, &mut found);
                let mut rest = *cursor;
                while let Some((_, next)) = rest.token_tree() {
                    rest = next;
                }
                Ok(((), rest))
            })
        };
        call.parse_body_with(gather).expect("every token is taken");
        self.current().paths.extend(found);
        visit::visit_macro(self, call);
    }

    /// `pub(crate)` and `pub(in path)` name no dependency.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    /// Neither do the names of attributes.
    fn visit_attribute(&mut self, _: &'ast Attribute) {}
}

/// Adds the paths in a sequence of tokens: identifiers with `::` between them.
fn gather(mut cursor: Cursor<'_>, found: &mut Vec<Segments>) {
    let (mut path, mut colons): (Segments, usize) = (Vec::new(), 0);
    while !cursor.eof() {
        if let Some((ident, next)) = cursor.ident() {
            if colons != 2 {
                found.push(std::mem::take(&mut path));
            }
            path.push(ident.to_string());
            (colons, cursor) = (0, next);
        } else if let Some((':', next)) = cursor.punct().map(|(punct, next)| (punct.as_char(), next)) {
            (colons, cursor) = (colons + 1, next);
        } else {
            found.push(std::mem::take(&mut path));
            colons = 0;
            if let Some((inside, _, _, next)) = cursor.any_group() {
                gather(inside, found);
                cursor = next;
            } else if let Some((_, next)) = cursor.token_tree() {
                cursor = next;
            }
        }
    }
    found.push(path);
    found.retain(|path| !path.is_empty());
}

fn for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let cfg = attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"));
        cfg || attribute.path().is_ident("test")
    })
}

fn name_of(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        _ => return None,
    };
    Some(ident.to_string())
}
