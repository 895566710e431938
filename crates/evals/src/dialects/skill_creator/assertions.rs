//! Reads assertions as people write them: a sentence, or an object that names a kind of check.

use serde_json::{Value, json};
use std::collections::BTreeMap;

use super::super::reading::{self, UniqueIds, UnusedKeys, slug};
use super::super::rules;
use super::exact_checks::{ExactCheck, exact_check};
use practicum_core::model::{Check, CheckKind, CheckNeed, CheckTarget, CheckWeight, Diagnostics};
use practicum_core::tree::{NodeData, ObjectReader, TreeNode, report_wrong_type};

/// A reader for the assertions of one eval, with the checks read so far.
#[derive(Default)]
pub struct AssertionReader<'n> {
    pub checks: Vec<Check>,
    /// Whether there was an error, so that an empty list is not the author's intention.
    pub has_errors: bool,
    ids: UniqueIds,
    /// The parts of assertions that no check uses, by check.
    unused: Vec<(String, ObjectReader<'n>)>,
}

impl<'n> AssertionReader<'n> {
    /// A reader for assertions beside other checks, whose ids are taken.
    pub fn beside_checks(ids: Vec<String>) -> Self {
        let mut reader = Self::default();
        for id in ids {
            reader.ids.make_unique(&id);
        }
        reader
    }

    /// Takes in one that stands under a key.
    pub fn add_assertion(&mut self, node: &'n TreeNode, key: &str, diagnostics: &mut Diagnostics) {
        let added = match &node.data {
            NodeData::Text(text) if text.trim().is_empty() => {
                diagnostics.error("empty-text", node.span, "an assertion must not be blank");
                None
            }
            NodeData::Text(text) if typed_text(text).is_some() => self.add_typed_text(node, diagnostics),
            NodeData::Text(text) => {
                let check = reading::judged_check(self.ids.make_unique(&slug(text, "assertion")), text);
                self.checks.push(check);
                Some(())
            }
            NodeData::Map(_) => self.add_object(node, diagnostics),
            NodeData::Null
            | NodeData::Bool(_)
            | NodeData::Int(_)
            | NodeData::Float(_)
            | NodeData::List(_) => {
                report_wrong_type(node, key, "texts or mappings", diagnostics);
                None
            }
        };
        self.has_errors |= added.is_none();
    }

    /// Collects the unused keys, by check.
    pub fn collect_unused(&self, kept: &mut UnusedKeys, diagnostics: &mut Diagnostics) -> Option<Value> {
        let mut all = BTreeMap::new();
        for (id, object) in &self.unused {
            let rest = kept.collect_unused(object, "an assertion", diagnostics);
            if !rest.is_empty() {
                all.insert(id.clone(), json!(rest));
            }
        }
        (!all.is_empty()).then(|| json!(all))
    }

    fn add_object(&mut self, node: &'n TreeNode, diagnostics: &mut Diagnostics) -> Option<()> {
        let mut object = ObjectReader::new(node, "an assertion", diagnostics)?;
        let kind = object.text("type", diagnostics).or_else(|| kind_under_check(&mut object));
        let id = object.text("id", diagnostics).filter(|id| !id.trim().is_empty());
        let name = object.text("name", diagnostics).filter(|name| !name.trim().is_empty());
        let need = match object.bool("required", diagnostics) {
            Some(false) => CheckNeed::Advisory,
            Some(true) | None => CheckNeed::Required,
        };
        let made: Vec<(CheckKind, CheckTarget)> = match exact_check(kind, &mut object, diagnostics) {
            ExactCheck::Rules(rules) => {
                rules.into_iter().map(|(rule, looks_at)| (CheckKind::Rule(rule), looks_at)).collect()
            }
            ExactCheck::Invalid => return None,
            ExactCheck::NotExact { notice, words, named } => {
                let Some(statement) = statement(&mut object, words, named, name) else {
                    diagnostics.error_with_help(
                        "unknown-assertion",
                        node.span,
                        match (notice, kind) {
                            (Some(notice), _) => format!("{notice}, and there are no words for a judge"),
                            (None, Some(kind)) => format!("there are no words for a judge (type \"{kind}\")"),
                            (None, None) => "this assertion says nothing that could be checked".to_owned(),
                        },
                        "say in \"description\" what must be true, and a judge decides it",
                    );
                    return None;
                };
                if let Some(notice) = notice {
                    diagnostics.notice(
                        "judged-assertion",
                        node.span,
                        format!("{notice}, so a judge decides it by its words"),
                    );
                }
                let check = reading::judged_check(String::new(), &statement);
                vec![(check.kind, check.target)]
            }
        };
        // A rule needs no statement, so a description beside it can only be its name.
        let title = match (made.first(), id) {
            (Some((CheckKind::Rule(_), _)), None) => object
                .text("description", diagnostics)
                .or_else(|| text_where_given(&mut object, &["signal", "assertion"]))
                .or(name),
            (Some(_) | None, _) => name,
        };
        for (kind, looks_at) in made {
            let wanted = match (id.or(name), &kind) {
                (Some(given), _) => given.to_owned(),
                (None, CheckKind::Judged(judged)) => slug(&judged.statement, "assertion"),
                (None, CheckKind::Rule(rule)) => {
                    slug(&format!("{} {}", rule.key(), rule_texts(&rule.value())), "assertion")
                }
                (None, CheckKind::Sections(_) | CheckKind::Activation(_)) => "assertion".to_owned(),
            };
            for left_over in ["passed", "evidence", "dimension"] {
                // What an earlier grading left in the file, and how the author sorts assertions.
                if object.peek(left_over).is_some() {
                    object.get(left_over);
                }
            }
            let id = self.ids.make_unique(&wanted);
            self.unused.push((id.clone(), object.clone()));
            let name = title.filter(|title| *title != id).map(str::to_owned);
            self.checks.push(Check { id, name, need, weight: CheckWeight::ONE, target: looks_at, kind });
        }
        Some(())
    }
}

impl AssertionReader<'_> {
    /// Adds a check for a judge that a statement is true.
    pub fn add_statement(&mut self, id: &str, statement: &str) {
        let id = self.ids.make_unique(&slug(id, "assertion"));
        self.checks.push(reading::judged_check(id, statement));
    }

    /// Adds a check by its native key. If the value is not valid, a judge decides by the words.
    pub fn add_rule(&mut self, key: &str, value: &Value, words: &str, node: &TreeNode) {
        match rules::build_rule(key, value, node.span, &mut Diagnostics::default()) {
            rules::BuiltRule::Rule(rule, target) => {
                let id = self.ids.make_unique(&slug(&format!("{key} {}", rule_texts(value)), "assertion"));
                let (need, weight) = (CheckNeed::Required, CheckWeight::ONE);
                self.checks.push(Check { id, name: None, need, weight, target, kind: CheckKind::Rule(rule) });
            }
            rules::BuiltRule::Invalid | rules::BuiltRule::NoSuchKind => self.add_statement(words, words),
        }
    }

    /// Adds an exact check that stands in one text: its kind, a colon, and its value.
    fn add_typed_text(&mut self, node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<()> {
        let (kind, value) = typed_text(node.as_text()?)?;
        let object = TreeNode::from_value(&json!({"type": kind, "value": value}), node.span);
        let mut inner = AssertionReader { ids: std::mem::take(&mut self.ids), ..AssertionReader::default() };
        let added = inner.add_object(&object, diagnostics);
        self.checks.append(&mut inner.checks);
        self.ids = inner.ids;
        added
    }
}

/// Gives the words of an assertion that must not be true.
pub fn describe_assertion(node: &TreeNode) -> Option<String> {
    match &node.data {
        NodeData::Text(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        NodeData::Map(_) => {
            let mut object = ObjectReader::new(node, "an assertion", &mut Diagnostics::default())?;
            statement(&mut object, None, true, None)
        }
        NodeData::Null => None,
        _ => Some(node.to_value().to_string()),
    }
}

/// Splits a text such as `trajectory_contains:scripts/run.py` into the kind of an exact check and its value.
fn typed_text(text: &str) -> Option<(&str, &str)> {
    const KINDS: [&str; 8] = [
        "contains",
        "not_contains",
        "output_contains",
        "output_not_contains",
        "trajectory_contains",
        "transcript_contains",
        "file_exists",
        "regex",
    ];
    let (kind, value) = text.split_once(':')?;
    (KINDS.contains(&kind) && !value.trim().is_empty()).then(|| (kind, value.trim()))
}

/// Gives the kind of an assertion that names it under `check`, where other people write how something shows. With a
/// signal in words beside a tool, the call of the tool alone does not say enough.
fn kind_under_check<'n>(object: &mut ObjectReader<'n>) -> Option<&'n str> {
    let kind = object.peek("check")?.as_text()?;
    let has = |key: &str| object.peek(key).is_some_and(|node| !node.is_null());
    let is_exact = match kind {
        "tool_called" | "tool_used" => has("tool") && !has("signal") && !has("signals"),
        "output_contains" | "transcript_contains" => has("value") || has("pattern"),
        _ => false,
    };
    is_exact.then(|| object.get("check")).flatten()?.as_text()
}

/// Gives the text under the first of these keys that an assertion has.
fn text_where_given<'n>(object: &mut ObjectReader<'n>, keys: &[&'static str]) -> Option<&'n str> {
    let key = keys.iter().find(|key| object.peek(key).is_some_and(|node| node.as_text().is_some()))?;
    object.get(key)?.as_text()
}

/// Gives the texts in a rule's value, for an id.
fn rule_texts(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(rule_texts).collect::<Vec<_>>().join(" "),
        Value::Object(map) => map.values().map(rule_texts).collect::<Vec<_>>().join(" "),
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}

/// What an assertion says in words: the most explicit key first, then everything else that it asks for. Without
/// such a key, the rest says it only where `may_stand_alone`, after the name.
fn statement(
    object: &mut ObjectReader<'_>,
    kind: Option<String>,
    may_stand_alone: bool,
    name: Option<&str>,
) -> Option<String> {
    let said = ["text", "statement", "assertion", "criterion", "description"].into_iter().find_map(|key| {
        object.get_non_null(key)?.as_text().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
    });
    let said = said.or_else(|| text_where_given(object, &["signal"]).map(str::to_owned));
    let are_sentences = kind.is_none() || said.is_some();
    let describe = |key| describe_operand(key, object.get_non_null(key)?, are_sentences);
    let mut operands: Vec<String> = OPERAND_KEYS.into_iter().filter_map(describe).collect();
    // An assertion asks for all that it has, apart from what is about the assertion itself.
    let others = object.take_unread(&ABOUT_ASSERTION);
    operands.extend(others.iter().filter_map(|entry| describe_operand(&entry.key, &entry.value, false)));
    operands.retain(|operand| Some(operand) != said.as_ref());
    let details = operands.join(if kind.is_some() { ", " } else { "; " });
    let title = name.map(|name| format!("{name}: ")).unwrap_or_default();
    match (said, kind) {
        (Some(said), _) if details.is_empty() => Some(said),
        // Two halves of one thing: what must be true, and how it shows.
        (Some(said), _) => Some(format!("{said} ({details})")),
        (None, _) if !may_stand_alone => None,
        (None, _) if details.is_empty() => name.map(str::to_owned),
        (None, Some(kind)) => Some(format!("{title}{kind} with {details} holds.")),
        (None, None) => Some(format!("{title}{details}")),
    }
}

/// The keys of an assertion that say what it asks for, beside its words.
const OPERAND_KEYS: [&str; 13] = [
    "check", "value", "values", "needle", "criteria", "rubric", "pattern", "path", "file", "target",
    "command", "expect", "expected",
];

/// The keys of an assertion that say nothing of what must be true.
const ABOUT_ASSERTION: [&str; 22] = [
    "id",
    "name",
    "type",
    "required",
    "weight",
    "points",
    "passed",
    "evidence",
    "dimension",
    "comment",
    "note",
    "notes",
    "rationale",
    "reason",
    "why",
    "category",
    "severity",
    "model",
    "ignore_case",
    "case_sensitive",
    "case_insensitive",
    "tags",
];

/// One part of an assertion in words. Texts under some keys are sentences already, unless the type of the assertion
/// says what they are.
fn describe_operand(key: &str, node: &TreeNode, are_sentences: bool) -> Option<String> {
    let is_sentence = are_sentences && ["check", "value", "criteria", "rubric"].contains(&key);
    match &node.data {
        NodeData::Text(text) if text.trim().is_empty() => None,
        NodeData::Text(text) if is_sentence => Some(text.trim().to_owned()),
        NodeData::List(items) if is_sentence && items.iter().all(|item| item.as_text().is_some()) => {
            let texts: Vec<&str> = items.iter().filter_map(TreeNode::as_text).collect();
            (!texts.is_empty()).then(|| texts.join("; "))
        }
        _ => Some(format!("{key} {}", node.to_value())),
    }
}
