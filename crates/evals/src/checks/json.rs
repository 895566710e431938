//! The check `json`: a text is JSON, and a place in it has a certain value.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::json_path::JsonPath;
use super::regex::decode_pattern;
use super::{PythonPattern, RuleKind, excerpt};
use practicum_core::model::{CheckEvidence, CheckFinding, Diagnostics, NotScoredReason, Rule, Verdict};
use practicum_core::tree::{
    NodeData, ObjectReader, TreeNode,
    json_schema::{self, MappingSchema},
    node_text, report_wrong_type,
};

pub static KIND: RuleKind = RuleKind {
    key: "json",
    doc: "the text, or its first ```json block, is JSON; with `path`, what is there: that it `exists`, \
          `equals` a value or `matches` a pattern; `extent` says which part of the text is read",
    schema,
    decode: |node, diagnostics| Some(Arc::new(JsonRule::decode(node, diagnostics)?)),
};

/// The rule of the check `json`: a path, and what is expected there.
#[derive(Debug, Clone)]
pub struct JsonRule {
    path: JsonPath,
    expect: JsonExpectation,
    extent: JsonExtent,
}

/// The part of a text that must be JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JsonExtent {
    /// The whole text, or its first block labelled JSON.
    TextOrBlock,
    /// The whole text.
    Whole,
    /// Some object in the text.
    Part,
}

impl JsonExtent {
    /// The extents that a file may name.
    const NAMED: [(&'static str, JsonExtent); 2] = [("whole", JsonExtent::Whole), ("part", JsonExtent::Part)];

    fn parse(self, text: &str) -> Result<Value, String> {
        match self {
            JsonExtent::TextOrBlock => parse_json(text),
            JsonExtent::Whole => serde_json::from_str(text.trim()).map_err(|problem| problem.to_string()),
            JsonExtent::Part => first_object(text).ok_or_else(|| "there is no object in the text".to_owned()),
        }
    }
}

#[derive(Debug, Clone)]
enum JsonExpectation {
    Absent,
    Present { equals: Option<Value>, matches: Option<PythonPattern> },
}

impl JsonRule {
    /// Reads `true` or nothing (the text must be JSON), a path (which must exist), or `{path, exists, equals,
    /// matches}`.
    fn decode(node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<Self> {
        let present = JsonExpectation::Present { equals: None, matches: None };
        let extent = JsonExtent::TextOrBlock;
        match &node.data {
            NodeData::Null | NodeData::Bool(true) => {
                return Some(Self { path: JsonPath::default(), expect: present, extent });
            }
            NodeData::Text(_) => {
                return Some(Self { path: decode_path(node, diagnostics)?, expect: present, extent });
            }
            NodeData::Map(_) => {}
            NodeData::Bool(false) | NodeData::Int(_) | NodeData::Float(_) | NodeData::List(_) => {
                report_wrong_type(node, KIND.key, "true, a path or a mapping", diagnostics);
                return None;
            }
        }
        let mut object = ObjectReader::new(node, KIND.key, diagnostics)?;
        let path = match object.get_non_null("path") {
            Some(node) => decode_path(node, diagnostics),
            None => Some(JsonPath::default()),
        };
        let exists = match object.get_non_null("exists") {
            Some(_) => object.bool("exists", diagnostics),
            None => Some(true),
        };
        // `given` would not do here: the required value may be null.
        let equals = object.get("equals").map(TreeNode::to_value);
        let matches = object.get_non_null("matches").map(|node| decode_pattern("matches", node, diagnostics));
        let extent = match object.get_non_null("extent") {
            Some(node) => decode_extent(node, diagnostics),
            None => Some(extent),
        };
        object.reject_unknown_keys(KIND.key, diagnostics);
        let matches = match matches {
            Some(pattern) => Some(pattern?),
            None => None,
        };
        let expect = match (exists?, equals, matches) {
            (true, equals, matches) => JsonExpectation::Present { equals, matches },
            (false, None, None) => JsonExpectation::Absent,
            (false, _, _) => {
                let message = "what must not exist cannot equal or match anything";
                diagnostics.error("contradiction", node.span, message);
                return None;
            }
        };
        Some(Self { path: path?, expect, extent: extent? })
    }
}

fn decode_extent(node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<JsonExtent> {
    let text = node_text(node, "extent", diagnostics)?;
    let found = JsonExtent::NAMED.iter().find(|(name, _)| *name == text).map(|(_, extent)| *extent);
    if found.is_none() {
        diagnostics.error("unknown-value", node.span, "\"extent\" must be whole or part");
    }
    found
}

fn decode_path(node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<JsonPath> {
    match JsonPath::new(node_text(node, "path", diagnostics)?) {
        Ok(path) => Some(path),
        Err(problem) => {
            diagnostics.error_with_help(
                "invalid-path",
                node.span,
                format!("the path cannot be read: {problem}"),
                "a path looks like $.items[0].name",
            );
            None
        }
    }
}

impl Rule for JsonRule {
    fn key(&self) -> &'static str {
        KIND.key
    }

    fn value(&self) -> Value {
        let mut map = Map::new();
        map.insert("path".to_owned(), json!(self.path.to_string()));
        if let Some((name, _)) = JsonExtent::NAMED.iter().find(|(_, extent)| *extent == self.extent) {
            map.insert("extent".to_owned(), json!(name));
        }
        match &self.expect {
            JsonExpectation::Absent => {
                map.insert("exists".to_owned(), json!(false));
            }
            JsonExpectation::Present { equals, matches } => {
                if let Some(equals) = equals {
                    map.insert("equals".to_owned(), equals.clone());
                }
                if let Some(pattern) = matches {
                    map.insert("matches".to_owned(), json!(pattern.source()));
                }
            }
        }
        Value::Object(map)
    }

    fn is_about_every_text(&self) -> bool {
        true
    }

    /// Checks every text. One good file does not make up for a broken one.
    fn check(&self, evidence: &CheckEvidence<'_>) -> CheckFinding {
        let mut good = None;
        for checked in evidence.texts {
            let mut finding = self.check_text(&checked.text);
            finding.rationale.push_str(&checked.location_phrase());
            if finding.verdict != Verdict::Pass {
                return finding;
            }
            good.get_or_insert(finding);
        }
        good.unwrap_or_else(|| CheckFinding::new(false, "there is no text to read"))
    }
}

impl JsonRule {
    fn check_text(&self, text: &str) -> CheckFinding {
        let document = match self.extent.parse(text) {
            Ok(document) => document,
            Err(problem) => return CheckFinding::new(false, format!("this is no JSON: {problem}")),
        };
        let path = &self.path;
        let (equals, matches, found) = match (&self.expect, path.find(&document)) {
            (JsonExpectation::Absent, None) => {
                return CheckFinding::new(true, format!("{path} does not exist"));
            }
            (JsonExpectation::Absent, Some(found)) => {
                return CheckFinding::new(false, format!("{path} exists, and must not"))
                    .with_evidence(shorten_json(found));
            }
            (JsonExpectation::Present { .. }, None) => {
                return CheckFinding::new(false, format!("{path} does not exist"));
            }
            (JsonExpectation::Present { equals, matches }, Some(found)) => (equals, matches, found),
        };
        if let Some(wanted) = equals
            && !is_json_equal(wanted, found)
        {
            return CheckFinding::new(
                false,
                format!("{path} is {}, not {}", shorten_json(found), shorten_json(wanted)),
            );
        }
        let Some(pattern) = matches else {
            return CheckFinding::new(true, format!("{path} is {}", shorten_json(found)));
        };
        let text = match found {
            Value::String(text) => text.clone(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                found.to_string()
            }
        };
        let shown = excerpt(pattern.source(), 80);
        match pattern.is_match(&text) {
            Ok(true) => CheckFinding::new(true, format!("{path} matches /{shown}/")),
            Ok(false) => CheckFinding::new(false, format!("{path} does not match /{shown}/")),
            Err(too_hard) => {
                return CheckFinding::not_scored(NotScoredReason::CheckFailed(format!(
                    "/{shown}/ {too_hard}"
                )));
            }
        }
        .with_evidence(shorten_json(found))
    }
}

/// Parses a text that is JSON or has JSON in a code fence. Agents often write a sentence before it.
fn parse_json(text: &str) -> Result<Value, String> {
    let whole = serde_json::from_str(text.trim());
    let problem = match whole {
        Ok(value) => return Ok(value),
        Err(problem) => problem.to_string(),
    };
    match fenced_json(text) {
        Some(block) => serde_json::from_str(block).map_err(|problem| format!("in the block, {problem}")),
        None => Err(problem),
    }
}

/// Finds the first JSON object in a text.
fn first_object(text: &str) -> Option<Value> {
    const MOST_TRIES: usize = 200;
    let starts = text.match_indices('{').take(MOST_TRIES);
    starts.into_iter().find_map(|(at, _)| {
        let mut values = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>();
        values.next()?.ok()
    })
}

/// Gives the first code block labelled JSON. If there is none and the whole text is one code block, gives that
/// block.
fn fenced_json(text: &str) -> Option<&str> {
    const FENCE: &str = "```";
    let mut at = 0;
    let mut lines = text.split_inclusive('\n').map(|line| {
        at += line.len();
        (at, line.trim())
    });
    let calls_itself_json = |line: &str| {
        let word = line.strip_prefix(FENCE).and_then(|info| info.split_whitespace().next());
        word.is_some_and(|word| word.eq_ignore_ascii_case("json"))
    };
    let begins = match lines.find(|(_, line)| calls_itself_json(line)) {
        Some((begins, _)) => begins,
        None => text.len() - text.trim_start().strip_prefix(FENCE)?.split_once('\n')?.1.len(),
    };
    let body = &text[begins..];
    let mut end = 0;
    for line in body.split_inclusive('\n') {
        if line.trim_start().starts_with(FENCE) {
            return Some(&body[..end]);
        }
        end += line.len();
    }
    None
}

/// Says whether two values are equal as JSON: 1 and 1.0 are the same number, and the order of keys does not
/// matter.
fn is_json_equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            a == b || (a.is_f64() || b.is_f64()) && a.as_f64() == b.as_f64()
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_json_equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| is_json_equal(a, b)))
        }
        _ => a == b,
    }
}

fn shorten_json(value: &Value) -> String {
    excerpt(&value.to_string(), 120)
}

fn schema() -> Value {
    let path = || json_schema::with_examples(json_schema::text(), json!(["$.items[0].price"]));
    let value = MappingSchema::closed()
        .optional("path", "Where in the JSON; nothing means all of it.", path())
        .optional(
            "exists",
            "Whether there must be something at the path, or must not.",
            json_schema::with_default(json_schema::boolean(), true),
        )
        .optional("equals", "The value that must be there.", json!({}))
        .optional(
            "matches",
            "A pattern for the text that is there (Python's `re` syntax).",
            json_schema::text(),
        )
        .optional(
            "extent",
            "The part of the text that must be JSON: the whole text, or some object in it. Nothing means the whole \
             text or its first block labelled JSON.",
            json!({"enum": ["whole", "part"]}),
        );
    json_schema::any_of([json!({"enum": [true, null]}), path(), value.into()])
}

#[cfg(test)]
mod tests {
    use super::super::rule_tests::check_rows;
    use super::KIND;

    #[test]
    fn rows() {
        let document = r#"{"name": "Ada", "tags": ["a", "b"], "n": 1, "none": null}"#;
        let block = format!("Here it is:\n\n```json\n{document}\n```\nDone.");
        check_rows(
            &KIND,
            &[
                ("true", document, "pass"),
                ("~", " [1]\n", "pass"),
                ("true", "```json\n{}\n```", "pass"),
                ("true", "```\n{}\n```\n", "pass"),
                ("true", "Sure:\n```\n{}\n```\n", "fail"),
                ("true", &block, "pass"),
                ("true", "", "fail"),
                ("true", "{'a': 1}", "fail"),
                ("true", "{} {}", "fail"),
                ("true", "```json\n{\n```", "fail"),
                ("true", "```json\n{}", "fail"),
                ("true", "```json\n```", "fail"),
                ("true", "```JSON title=x\r\n{}\r\n```\r\n", "pass"),
                ("true", "1. so:\n   ```json\n   {}\n   ```\n", "pass"),
                ("true", "```jsonl\n{}\n{}\n```\n\n```json\n{}\n```\n", "pass"),
                ("true", "Write ```json first:\n```json\n{}\n```\n", "pass"),
                ("true", "```jsonc\n{} // x\n```", "fail"),
                ("true", "  ```\n{}\n```", "pass"),
                ("true", "```", "fail"),
                ("$.name", document, "pass"),
                ("tags[1]", &block, "pass"),
                ("$.nope", document, "fail"),
                ("{path: $.name, equals: Ada}", document, "pass"),
                ("{path: $.name, equals: Bob}", document, "fail"),
                ("{path: $.n, equals: 1.0}", document, "pass"),
                ("{path: $.n, equals: '1'}", document, "fail"),
                ("{path: $.none, equals: null}", document, "pass"),
                ("{path: $.n, equals: null}", document, "fail"),
                ("{path: $.tags, equals: [a, b]}", document, "pass"),
                ("{path: $.name, matches: '^A'}", document, "pass"),
                ("{path: $.n, matches: '^1$'}", document, "pass"),
                ("{path: $.name, matches: '^B'}", document, "fail"),
                ("{path: $.nope, exists: false}", document, "pass"),
                ("{path: $.name, exists: false}", document, "fail"),
                ("{path: $.name, exists: true}", document, "pass"),
                ("{equals: {b: 1, a: 2}}", r#"{"a": 2, "b": 1}"#, "pass"),
                ("{path: $.name, exists: false, equals: Ada}", document, "refused"),
                ("{path: '$name'}", document, "refused"),
                ("{path: $.name, matches: '('}", document, "refused"),
                ("{path: $.name, is: Ada}", document, "refused"),
                ("{extent: whole}", document, "pass"),
                ("{extent: whole}", " [1]\n", "pass"),
                ("{extent: whole}", "```json\n{}\n```", "fail"),
                ("{extent: whole, equals: {a: 1}}", r#"{"a": 1.0}"#, "pass"),
                ("{extent: part}", r#"So: {"a": 1}, as you said."#, "pass"),
                ("{extent: part, path: $.a}", r#"So: {x} {"a": 1}"#, "pass"),
                ("{extent: part}", "[1, 2]", "fail"),
                ("{extent: part}", "{name}", "fail"),
                ("{extent: some}", document, "refused"),
                ("false", document, "refused"),
                ("3", document, "refused"),
            ],
        );
    }

    #[test]
    fn deep_documents_are_no_json_rather_than_a_crash() {
        check_rows(&KIND, &[("true", &"[".repeat(100_000), "fail")]);
    }
}
