//! Reads what a case expects: lists of statements and of texts under any of the keys that people use.

use serde_json::json;

use super::super::reading::case_keys::{EXPECTED_KEYS, STATEMENT_KEYS, StatementKind};
use super::super::reading::expected_activation;
use super::assertions::{AssertionReader, describe_assertion};
use crate::checks::PythonPattern;
use practicum_core::model::{Check, Diagnostics, RelPath};
use practicum_core::tree::{NodeData, ObjectReader, TreeNode, report_wrong_type};

/// The keys that every case is asked for. The others are asked for only where they are.
const USUAL_KEYS: [&str; 2] = ["expectations", "assertions"];

/// Keys of a mapping of what is expected that have no meaning as keys of a case.
const KEYS_OF_EXPECTED: [(&str, StatementKind); 6] = [
    ("contains", StatementKind::Contains),
    ("includes", StatementKind::Judged),
    ("not_contains", StatementKind::ContainsNot),
    ("excludes", StatementKind::ContainsNot),
    ("files", StatementKind::File),
    ("statements", StatementKind::Judged),
];

/// What a case expects, apart from the text of its expected output.
#[derive(Default)]
pub struct Expected<'n> {
    pub reader: AssertionReader<'n>,
    /// What is expected under `expected`, if it is one text.
    pub text: Option<&'n str>,
    /// Checks of activation that stand among other expectations.
    pub activation: Vec<Check>,
}

/// Reads all statements of a case.
pub fn read_expected<'n>(
    case: &mut ObjectReader<'n>,
    skills: &[String],
    diagnostics: &mut Diagnostics,
) -> Expected<'n> {
    let mut expected = Expected::default();
    expected.read_lists(case, &STATEMENT_KEYS, diagnostics);
    for key in EXPECTED_KEYS {
        let Some(node) = case.peek(key).filter(|node| !node.is_null()) else { continue };
        case.get(key);
        match &node.data {
            NodeData::Text(text) if text.trim().is_empty() => {}
            NodeData::Text(text) => expected.text = Some(text),
            NodeData::List(_) => expected.read_items(key, node, StatementKind::Judged, diagnostics),
            NodeData::Map(_) => expected.read_mapping(node, skills, diagnostics),
            _ => expected.reader.add_statement(key, &format!("{key}: {}", node.to_value())),
        }
    }
    expected
}

impl<'n> Expected<'n> {
    fn read_lists(
        &mut self,
        object: &mut ObjectReader<'n>,
        keys: &[(&'static str, StatementKind)],
        diagnostics: &mut Diagnostics,
    ) {
        for (key, kind) in keys {
            if object.peek(key).is_none() && !USUAL_KEYS.contains(key) {
                continue;
            }
            if let Some(node) = object.get_non_null(key) {
                self.read_items(key, node, *kind, diagnostics);
            }
        }
    }

    /// Reads the items under a key: a list, one text, or a mapping of names to statements.
    fn read_items(
        &mut self,
        key: &'static str,
        node: &'n TreeNode,
        kind: StatementKind,
        diagnostics: &mut Diagnostics,
    ) {
        match &node.data {
            NodeData::List(items) => {
                items.iter().for_each(|item| self.read_item(key, item, kind, diagnostics));
            }
            NodeData::Text(_) => self.read_item(key, node, kind, diagnostics),
            NodeData::Map(entries) if !USUAL_KEYS.contains(&key) => {
                for entry in entries.iter().filter(|entry| !entry.value.is_null()) {
                    match &entry.value.data {
                        NodeData::Text(text) => self.add_named(&entry.key, text, kind),
                        _ => {
                            let statement = format!("{}: {}", entry.key, entry.value.to_value());
                            self.add_named(&entry.key, &statement, kind);
                        }
                    }
                }
            }
            NodeData::Bool(_) | NodeData::Int(_) | NodeData::Float(_) if !USUAL_KEYS.contains(&key) => {
                self.reader.add_statement(key, &format!("{key}: {}", node.to_value()));
            }
            _ => {
                report_wrong_type(node, key, "a list", diagnostics);
                self.reader.has_errors = true;
            }
        }
    }

    fn add_named(&mut self, name: &str, text: &str, kind: StatementKind) {
        match kind {
            StatementKind::JudgedNot | StatementKind::ContainsNot => {
                self.reader.add_statement(name, &negated(text));
            }
            StatementKind::Judged | StatementKind::Contains | StatementKind::File => {
                self.reader.add_statement(name, text);
            }
        }
    }

    fn read_item(
        &mut self,
        key: &'static str,
        node: &'n TreeNode,
        kind: StatementKind,
        diagnostics: &mut Diagnostics,
    ) {
        let Some(text) = node.as_text().map(str::trim).filter(|text| !text.is_empty()) else {
            if kind == StatementKind::JudgedNot {
                match describe_assertion(node) {
                    Some(words) => self.reader.add_statement(&words, &negated(&words)),
                    None => self.reader.add_assertion(node, key, diagnostics),
                }
            } else {
                self.reader.add_assertion(node, key, diagnostics);
            }
            return;
        };
        match kind {
            StatementKind::Judged => self.reader.add_assertion(node, key, diagnostics),
            StatementKind::JudgedNot => self.reader.add_statement(text, &negated(text)),
            StatementKind::Contains => match as_pattern(text) {
                Some(pattern) => self.reader.add_rule("regex", &json!(pattern), text, node),
                None => self.reader.add_rule("contains", &json!(text), text, node),
            },
            StatementKind::ContainsNot => match as_pattern(text) {
                Some(pattern) => {
                    let nowhere = super::exact_checks::match_nowhere(pattern);
                    self.reader.add_rule("regex", &json!(nowhere), &negated(text), node);
                }
                // In capital letters it would be there too.
                None => {
                    let value = json!({"text": text, "ignore_case": true});
                    self.reader.add_rule("not_contains", &value, &negated(text), node);
                }
            },
            StatementKind::File if RelPath::new(text).is_some() && !text.contains(' ') => {
                self.reader.add_rule("file", &json!(text), text, node);
            }
            StatementKind::File => {
                self.reader.add_statement(text, &format!("There is this artifact: {text}"))
            }
        }
    }

    /// Reads a mapping of what is expected. An entry that has no other meaning is a statement of its own.
    fn read_mapping(&mut self, node: &'n TreeNode, skills: &[String], diagnostics: &mut Diagnostics) {
        let Some(mut object) = ObjectReader::new(node, "what is expected", diagnostics) else { return };
        self.activation.extend(expected_activation(&mut object, skills, diagnostics).checks);
        let given = |key: &str| object.peek(key).is_some();
        let keys: Vec<(&'static str, StatementKind)> =
            STATEMENT_KEYS.into_iter().chain(KEYS_OF_EXPECTED).filter(|(key, _)| given(key)).collect();
        self.read_lists(&mut object, &keys, diagnostics);
        for entry in object.take_unread(&[]) {
            if !entry.value.is_null() {
                let statement = match entry.value.as_text() {
                    Some(text) => format!("{}: {text}", entry.key),
                    None => format!("{}: {}", entry.key, entry.value.to_value()),
                };
                self.reader.add_statement(&statement, &statement);
            }
        }
    }
}

/// Words with which a statement already says that something must not be.
const NEGATIONS: [&str; 16] = [
    "does not ",
    "do not ",
    "don't ",
    "doesn't ",
    "did not ",
    "must not ",
    "should not ",
    "is not ",
    "are not ",
    "not ",
    "no ",
    "never ",
    "avoids ",
    "avoid ",
    "without ",
    "cannot ",
];

/// Says that something must not be. Many authors write "Does not …" in such a list, which says so already.
fn negated(text: &str) -> String {
    let lower = text.trim_start().to_lowercase();
    match NEGATIONS.iter().any(|negation| lower.starts_with(negation)) {
        true => text.trim().to_owned(),
        false => format!("This is not so, and does not happen: {}", text.trim()),
    }
}

/// Gives a text that is meant as a pattern: it has a class or a boundary such as `\\b`, and is a valid pattern.
fn as_pattern(text: &str) -> Option<&str> {
    let has_class = [r"\b", r"\d", r"\s", r"\w", r"\S", r"\W", ".*"].iter().any(|class| text.contains(class));
    (has_class && PythonPattern::new(text).is_ok()).then_some(text)
}
