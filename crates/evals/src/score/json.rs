use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::json_path::JsonPath;
use super::regex::decode_pattern;
use super::{Pattern, RuleKind, excerpt};
use practicum_core::model::{Diagnostics, Evidence, Finding, LooksAt, Rule, Verdict, Why};
use practicum_core::tree::{
    Data, Node, Object,
    shape::{self, Mapping},
    text_of, wrong_type,
};

pub static KIND: RuleKind = RuleKind {
    key: "json",
    doc: "the text, or its first ```json block, is JSON; with `path`, what is there: that it `exists`, \
          `equals` a value or `matches` a pattern",
    schema,
    looks_at: LooksAt::Output,
    decode: |node, diagnostics| Some(Arc::new(JsonRule::decode(node, diagnostics)?)),
};

#[derive(Debug, Clone)]
pub struct JsonRule {
    path: JsonPath,
    expect: Expectation,
}

#[derive(Debug, Clone)]
enum Expectation {
    Absent,
    Present { equals: Option<Value>, matches: Option<Pattern> },
}

impl JsonRule {
    /// `true` or nothing (it is JSON), a path (which must exist), or `{path, exists, equals, matches}`.
    fn decode(node: &Node, diagnostics: &mut Diagnostics) -> Option<Self> {
        let present = Expectation::Present { equals: None, matches: None };
        match &node.data {
            Data::Null | Data::Bool(true) => {
                return Some(Self { path: JsonPath::default(), expect: present });
            }
            Data::Text(_) => return Some(Self { path: decode_path(node, diagnostics)?, expect: present }),
            Data::Map(_) => {}
            Data::Bool(false) | Data::Int(_) | Data::Float(_) | Data::List(_) => {
                wrong_type(node, KIND.key, "true, a path or a mapping", diagnostics);
                return None;
            }
        }
        let mut object = Object::new(node, KIND.key, diagnostics)?;
        let path = match object.given("path") {
            Some(node) => decode_path(node, diagnostics),
            None => Some(JsonPath::default()),
        };
        let exists = match object.given("exists") {
            Some(_) => object.bool("exists", diagnostics),
            None => Some(true),
        };
        // Not `given`: a value may have to be null.
        let equals = object.get("equals").map(Node::to_value);
        let matches = object.given("matches").map(|node| decode_pattern("matches", node, diagnostics));
        object.refuse_rest(KIND.key, diagnostics);
        let matches = match matches {
            Some(pattern) => Some(pattern?),
            None => None,
        };
        let expect = match (exists?, equals, matches) {
            (true, equals, matches) => Expectation::Present { equals, matches },
            (false, None, None) => Expectation::Absent,
            (false, _, _) => {
                let message = "what must not exist cannot equal or match anything";
                diagnostics.error("contradiction", node.span, message);
                return None;
            }
        };
        Some(Self { path: path?, expect })
    }
}

fn decode_path(node: &Node, diagnostics: &mut Diagnostics) -> Option<JsonPath> {
    match JsonPath::new(text_of(node, "path", diagnostics)?) {
        Ok(path) => Some(path),
        Err(problem) => {
            diagnostics.error_help(
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
        match &self.expect {
            Expectation::Absent => {
                map.insert("exists".to_owned(), json!(false));
            }
            Expectation::Present { equals, matches } => {
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

    /// Every text has to be as it is wanted: one good file does not make up for a broken one.
    fn mark(&self, evidence: &Evidence<'_>) -> Finding {
        let mut good = None;
        for checked in evidence.texts {
            let mut finding = self.mark_text(&checked.text);
            finding.rationale.push_str(&checked.place());
            if finding.verdict != Verdict::Pass {
                return finding;
            }
            good.get_or_insert(finding);
        }
        good.unwrap_or_else(|| Finding::new(false, "there is no text to read"))
    }
}

impl JsonRule {
    fn mark_text(&self, text: &str) -> Finding {
        let document = match read(text) {
            Ok(document) => document,
            Err(problem) => return Finding::new(false, format!("this is no JSON: {problem}")),
        };
        let path = &self.path;
        let (equals, matches, found) = match (&self.expect, path.find(&document)) {
            (Expectation::Absent, None) => return Finding::new(true, format!("{path} does not exist")),
            (Expectation::Absent, Some(found)) => {
                return Finding::new(false, format!("{path} exists, and must not"))
                    .with_evidence(short(found));
            }
            (Expectation::Present { .. }, None) => {
                return Finding::new(false, format!("{path} does not exist"));
            }
            (Expectation::Present { equals, matches }, Some(found)) => (equals, matches, found),
        };
        if let Some(wanted) = equals
            && !same(wanted, found)
        {
            return Finding::new(false, format!("{path} is {}, not {}", short(found), short(wanted)));
        }
        let Some(pattern) = matches else {
            return Finding::new(true, format!("{path} is {}", short(found)));
        };
        let text = match found {
            Value::String(text) => text.clone(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                found.to_string()
            }
        };
        let shown = excerpt(pattern.source(), 80);
        match pattern.is_match(&text) {
            Ok(true) => Finding::new(true, format!("{path} matches /{shown}/")),
            Ok(false) => Finding::new(false, format!("{path} does not match /{shown}/")),
            Err(too_hard) => {
                return Finding::not_scored(Why::CheckFailed(format!("/{shown}/ {too_hard}")));
            }
        }
        .with_evidence(short(found))
    }
}

/// The JSON that a text is or, in a fence, has. Agents like to say a word before it.
fn read(text: &str) -> Result<Value, String> {
    let whole = serde_json::from_str(text.trim());
    let problem = match whole {
        Ok(value) => return Ok(value),
        Err(problem) => problem.to_string(),
    };
    match fenced(text) {
        Some(block) => serde_json::from_str(block).map_err(|problem| format!("in the block, {problem}")),
        None => Err(problem),
    }
}

/// The first block that calls itself JSON; else, if the text is one block, that.
fn fenced(text: &str) -> Option<&str> {
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

/// Equal as JSON means it: 1 and 1.0 are one number, the order of keys is none.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            a == b || (a.is_f64() || b.is_f64()) && a.as_f64() == b.as_f64()
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}

fn short(value: &Value) -> String {
    excerpt(&value.to_string(), 120)
}

fn schema() -> Value {
    let path = || shape::such_as(shape::text(), json!(["$.items[0].price"]));
    let value = Mapping::closed()
        .may("path", "Where in the JSON; nothing means all of it.", path())
        .may(
            "exists",
            "Whether there must be something at the path, or must not.",
            shape::default(shape::yes_or_no(), true),
        )
        .may("equals", "The value that must stand there.", json!({}))
        .may("matches", "A pattern for the text that stands there (Python's `re` syntax).", shape::text());
    shape::either([json!({"enum": [true, null]}), path(), value.into()])
}

#[cfg(test)]
mod tests {
    use super::super::rows::check;
    use super::KIND;

    #[test]
    fn rows() {
        let document = r#"{"name": "Ada", "tags": ["a", "b"], "n": 1, "none": null}"#;
        let block = format!("Here it is:\n\n```json\n{document}\n```\nDone.");
        check(
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
                ("false", document, "refused"),
                ("3", document, "refused"),
            ],
        );
    }

    #[test]
    fn deep_documents_are_no_json_rather_than_a_crash() {
        check(&KIND, &[("true", &"[".repeat(100_000), "fail")]);
    }
}
