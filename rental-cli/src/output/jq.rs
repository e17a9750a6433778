//! `--jq`: filters JSON with an expression of jq. Numbers keep the digits of the response.

use crate::failure::Failure;
use jaq_core::{
    Compiler, Ctx, Vars, data, defs, funs,
    load::{Arena, File, Loader},
    unwrap_valr,
};
use jaq_json::{Val, read};

/// Maximum bytes of an expression.
const MAX_EXPRESSION_BYTES: usize = 16 * 1024;

/// A compiled expression.
pub(crate) struct Filter(jaq_core::Filter<data::JustLut<Val>>);

impl Filter {
    /// Compiles an expression.
    pub(crate) fn compile(expression: &str) -> Result<Self, Failure> {
        let invalid = |problem: &str| Failure::Usage(format!("--jq {expression}: {problem}"));
        if expression.len() > MAX_EXPRESSION_BYTES {
            return Err(Failure::Usage(format!("--jq is longer than {MAX_EXPRESSION_BYTES} bytes")));
        }
        let loader = Loader::new(defs().chain(jaq_std::defs()).chain(jaq_json::defs()));
        let arena = Arena::default();
        let modules = loader
            .load(&arena, File { code: expression, path: () })
            .map_err(|_| invalid("this is not an expression of jq; write it like '.data[].id'"))?;
        let functions = funs().chain(jaq_std::funs()).chain(jaq_json::funs());
        let compiled = Compiler::default().with_funs(functions).compile(modules).map_err(|errors| {
            let unknown = errors.iter().flat_map(|(_, errors)| errors).map(|(name, _)| (*name).to_string());
            let unknown: Vec<String> = unknown.collect();
            invalid(&format!("unknown here: {}", unknown.join(", ")))
        });
        Ok(Self(compiled?))
    }

    /// What the expression makes of a JSON value: one result per line, strings without quotes.
    pub(crate) fn run(&self, json: &str) -> Result<String, Failure> {
        let input = read::parse_single(json.as_bytes())
            .map_err(|error| Failure::Unreadable(format!("the response is not JSON: {error}")))?;
        let context = Ctx::<data::JustLut<Val>>::new(&self.0.lut, Vars::new([]));
        let mut text = String::new();
        for result in self.0.id.run((context, input)).map(unwrap_valr) {
            let value = result.map_err(|error| Failure::Unsuccessful {
                kind: "jq",
                problem: format!("the expression of --jq failed: {error}"),
                hint: "look at the JSON with --json",
            })?;
            match &value {
                Val::TStr(string) => text.push_str(&String::from_utf8_lossy(string)),
                other => text.push_str(&other.to_string()),
            }
            text.push('\n');
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(expression: &str, json: &str) -> String {
        Filter::compile(expression).and_then(|filter| filter.run(json)).unwrap()
    }

    #[test]
    fn results_are_lines_and_numbers_keep_their_digits() {
        let list = r#"{"data":[{"id":"a","rate":89.50},{"id":"b","rate":12345678901234567.89}]}"#;
        assert_eq!(run(".data[].id", list), "a\nb\n");
        assert_eq!(run(".data[] | .rate", list), "89.50\n12345678901234567.89\n");
        assert_eq!(run(".data | map(select(.id == \"b\")) | length", list), "1\n");
        assert_eq!(run(".data[0]", list), "{\"id\":\"a\",\"rate\":89.50}\n");
        assert_eq!(run(r#".data[0].id | test("^A$"; "i")"#, list), "true\n");
    }

    #[test]
    fn a_wrong_expression_is_a_wrong_usage() {
        for expression in [".data[", "nosuch", "$x", &"x".repeat(MAX_EXPRESSION_BYTES + 1)] {
            assert!(Filter::compile(expression).is_err_and(|failure| failure.exit_code() == 2), "{expression}");
        }
        let filter = Filter::compile(".a.b").unwrap();
        assert_eq!(filter.run("{\"a\":\"x\"}").map_err(|failure| failure.exit_code()), Err(1));
    }
}
