//! Reads assertions as people write them: a sentence, or an object that names a kind of check.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::super::reading::{self, UniqueIds, UnusedKeys, slug};
use super::super::rules;
use super::super::writing::describe_check;
use crate::checks::rule_kind;
use practicum_core::model::{Check, CheckKind, CheckNeed, CheckTarget, Diagnostics, Rule, Span};
use practicum_core::tree::{NodeData, ObjectReader, TreeNode, closest_word, node_text, report_wrong_type};

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
    /// Adds an assertion from the list under `key`.
    pub fn add_assertion(&mut self, node: &'n TreeNode, key: &str, diagnostics: &mut Diagnostics) {
        let added = match &node.data {
            NodeData::Text(text) if text.trim().is_empty() => {
                diagnostics.error("empty-text", node.span, "an assertion must not be blank");
                None
            }
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
        let kind = object.text("type", diagnostics);
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
                let Some(statement) = statement(&mut object, words, named) else {
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
            (Some((CheckKind::Rule(_), _)), None) => object.text("description", diagnostics).or(name),
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
            let id = self.ids.make_unique(&wanted);
            self.unused.push((id.clone(), object.clone()));
            let name = title.filter(|title| *title != id).map(str::to_owned);
            self.checks.push(Check { id, name, need, target: looks_at, kind });
        }
        Some(())
    }
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

enum ExactCheck {
    /// The rules, usually one. A list of texts to find gives one rule for each.
    Rules(Vec<(Arc<dyn Rule>, CheckTarget)>),
    /// There is such a check, but it has an error, which is reported.
    Invalid,
    /// Code cannot decide this. `notice` says why, if that is a surprise. `words` are a statement for the judge,
    /// if the assertion itself has none. `named` says whether the assertion's name may serve as the statement if
    /// there is nothing else.
    NotExact { notice: Option<String>, words: Option<String>, named: bool },
}

/// The types that code decides, for suggestions when one is misspelt.
const EXACT_TYPES: [&str; 9] = [
    "contains",
    "not_contains",
    "starts_with",
    "ends_with",
    "regex",
    "transcript_regex",
    "file_exists",
    "file_contains",
    "script",
];

/// The types that name no mechanism: a judge decides by their words.
const JUDGED_TYPES: [&str; 8] =
    ["semantic", "llm", "llm_judge", "llm-judge", "judge", "manual", "qualitative", "rubric"];

/// Gives the rule for an assertion's type and keys.
fn exact_check(
    kind: Option<&str>,
    object: &mut ObjectReader<'_>,
    diagnostics: &mut Diagnostics,
) -> ExactCheck {
    let Some(kind) = kind else { return ExactCheck::NotExact { notice: None, words: None, named: true } };
    let normal = kind.trim().to_lowercase().replace('-', "_");
    let wanted = match normal.as_str() {
        "contains" => text_rules("contains", object, diagnostics),
        "not_contains" => text_rules("not_contains", object, diagnostics),
        "starts_with" => text_rules("starts_with", object, diagnostics),
        "ends_with" => text_rules("ends_with", object, diagnostics),
        "regex" | "matches" | "regex_match" => regex_rule(object, diagnostics),
        "transcript_regex" => transcript_rule(object, diagnostics),
        "file_exists" => file_exists_rule(object, diagnostics),
        "file_contains" => file_contains_rule(object, diagnostics),
        "script" | "command" => command_rule(object, diagnostics),
        // Any other check of the native format, given by its own key.
        key => match (rule_kind(key), object.get_non_null("value")) {
            (Some(kind), Some(value)) => Ok(vec![(kind.key, value.to_value(), value.span)]),
            (Some(_), None) => Err(IncompleteAssertion::MissingKey("value")),
            (None, _) if JUDGED_TYPES.contains(&normal.as_str()) => {
                return ExactCheck::NotExact { notice: None, words: None, named: true };
            }
            (None, _) => {
                let perhaps =
                    closest_word(&normal, &EXACT_TYPES).map(|known| format!(" (did you mean \"{known}\"?)"));
                let notice =
                    Some(format!("the type \"{kind}\" is not known here{}", perhaps.unwrap_or_default()));
                return ExactCheck::NotExact {
                    notice,
                    words: describe_unsupported(kind, object),
                    named: true,
                };
            }
        },
    };
    let wanted = match wanted {
        Ok(wanted) => wanted,
        Err(IncompleteAssertion::Invalid) => return ExactCheck::Invalid,
        Err(IncompleteAssertion::MissingKey(key)) => {
            let notice = Some(format!("there is no \"{key}\", which \"{kind}\" needs"));
            // The name of a search does not say what is searched for. Files and scripts often have only a name,
            // and it says what must be there.
            let named = ["file_exists", "script", "command"].contains(&normal.as_str());
            return ExactCheck::NotExact { notice, words: None, named };
        }
    };
    let mut made = Vec::new();
    for (key, value, span) in wanted {
        match rules::build_rule(key, &value, span, diagnostics) {
            rules::BuiltRule::Rule(rule, looks_at) => made.push((rule, looks_at)),
            rules::BuiltRule::Invalid => return ExactCheck::Invalid,
            rules::BuiltRule::NoSuchKind => {
                return ExactCheck::NotExact {
                    notice: Some(format!("this version knows no check \"{key}\"")),
                    words: Some(describe_check(key, &value, &CheckTarget::Output)),
                    named: true,
                };
            }
        }
    }
    ExactCheck::Rules(made)
}

/// Rules by key and value, each with its position, or what the assertion lacks.
type RequestedRules = Result<Vec<(&'static str, Value, Span)>, IncompleteAssertion>;

enum IncompleteAssertion {
    /// A required key is missing: this one.
    MissingKey(&'static str),
    /// A value is wrong, and that has been reported.
    Invalid,
}

/// Reads the text under the first of these keys that is present. The first key is our own name for it.
fn text_under<'n>(
    object: &mut ObjectReader<'n>,
    keys: &[&'static str],
    diagnostics: &mut Diagnostics,
) -> Result<&'n TreeNode, IncompleteAssertion> {
    let found = keys.iter().find_map(|key| Some((*key, object.get_non_null(key)?)));
    let (key, node) = found.ok_or(IncompleteAssertion::MissingKey(keys[0]))?;
    node_text(node, key, diagnostics).map(|_| node).ok_or(IncompleteAssertion::Invalid)
}

/// Makes one rule for each text.
fn text_rules(
    key: &'static str,
    object: &mut ObjectReader<'_>,
    diagnostics: &mut Diagnostics,
) -> RequestedRules {
    let value = ["value", "values", "needle"].into_iter().find_map(|key| object.get_non_null(key));
    let value = value.ok_or(IncompleteAssertion::MissingKey("value"))?;
    let ignore =
        object.bool("ignore_case", diagnostics).or_else(|| object.bool("case_insensitive", diagnostics));
    let sensitive = object.bool("case_sensitive", diagnostics);
    let ignore = ignore.unwrap_or(sensitive == Some(false));
    let nodes = match &value.data {
        NodeData::List(items) => items.as_slice(),
        _ => std::slice::from_ref(value),
    };
    let one = |node: &TreeNode| {
        let text = node.to_value();
        let value = if ignore { json!({"text": text, "ignore_case": true}) } else { text };
        (key, value, node.span)
    };
    if nodes.is_empty() {
        Err(IncompleteAssertion::MissingKey("value"))
    } else {
        Ok(nodes.iter().map(one).collect())
    }
}

fn regex_rule(object: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) -> RequestedRules {
    let node = text_under(object, &["pattern", "value"], diagnostics)?;
    Ok(vec![("regex", node.to_value(), node.span)])
}

/// Says whether something must be there, which is the default.
fn is_expected(
    object: &mut ObjectReader<'_>,
    diagnostics: &mut Diagnostics,
) -> Result<bool, IncompleteAssertion> {
    let Some(node) = object.get_non_null("expect") else { return Ok(true) };
    match &node.data {
        NodeData::Bool(expected) => Ok(*expected),
        NodeData::Text(text) if ["present", "exists"].contains(&text.as_str()) => Ok(true),
        NodeData::Text(text) if ["absent", "not_exists", "missing"].contains(&text.as_str()) => Ok(false),
        _ => {
            diagnostics.error_with_help(
                "unknown-value",
                node.span,
                format!("\"expect\" cannot be {}", node.to_value()),
                "it may be present or absent",
            );
            Err(IncompleteAssertion::Invalid)
        }
    }
}

fn transcript_rule(object: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) -> RequestedRules {
    let expect = if is_expected(object, diagnostics)? { "present" } else { "absent" };
    let node = text_under(object, &["pattern", "value"], diagnostics)?;
    Ok(vec![("transcript", json!({"pattern": node.to_value(), "expect": expect}), node.span)])
}

fn file_exists_rule(object: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) -> RequestedRules {
    let exists = is_expected(object, diagnostics)?;
    let node = text_under(object, &["path", "value", "file"], diagnostics)?;
    let value = if exists { node.to_value() } else { json!({"path": node.to_value(), "exists": false}) };
    Ok(vec![("file", value, node.span)])
}

fn file_contains_rule(object: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) -> RequestedRules {
    let node = text_under(object, &["path", "file"], diagnostics)?;
    let needle = object.get_non_null("value").ok_or(IncompleteAssertion::MissingKey("value"))?;
    Ok(vec![("file", json!({"path": node.to_value(), "contains": needle.to_value()}), node.span)])
}

fn command_rule(object: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) -> RequestedRules {
    let node = ["command", "script", "value"].into_iter().find_map(|key| object.get_non_null(key));
    let node = node.ok_or(IncompleteAssertion::MissingKey("command"))?;
    let command = match &node.data {
        NodeData::Text(text) => text.clone(),
        NodeData::List(words) => {
            let texts = words.iter().map(|word| node_text(word, "command", diagnostics).map(shell_quoted));
            texts.collect::<Option<Vec<String>>>().ok_or(IncompleteAssertion::Invalid)?.join(" ")
        }
        NodeData::Null | NodeData::Bool(_) | NodeData::Int(_) | NodeData::Float(_) | NodeData::Map(_) => {
            report_wrong_type(node, "command", "text or a list of texts", diagnostics);
            return Err(IncompleteAssertion::Invalid);
        }
    };
    let code = object.int("expect_exit_code", 0, 255, diagnostics).unwrap_or(0);
    // A command passes if it succeeds. The shell compares any other exit code.
    let command = if code == 0 { command } else { format!("({command}\n); test $? -eq {code}") };
    Ok(vec![("command", json!(command), node.span)])
}

/// Quotes a word for the shell.
fn shell_quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Gives the assertion as a statement from the most explicit key; from its name only if `named` allows that.
fn statement(object: &mut ObjectReader<'_>, words: Option<String>, named: bool) -> Option<String> {
    let text = |object: &mut ObjectReader<'_>, keys: &[&'static str]| {
        keys.iter()
            .find_map(|key| {
                object.get_non_null(key)?.as_text().map(str::trim).filter(|text| !text.is_empty())
            })
            .map(str::to_owned)
    };
    let said = text(object, &["text", "statement", "assertion", "criterion", "description"]);
    let how = text(object, &["check"]);
    match (said, how) {
        // The two texts belong together: what must be true, and how one sees it.
        (Some(said), Some(how)) if said != how => Some(format!("{said} ({how})")),
        (Some(said), _) => Some(said),
        (None, Some(how)) => Some(how),
        (None, None) => words.or_else(|| text(object, &["name"]).filter(|_| named)),
    }
}

/// Describes an assertion of a type that this program has no rule for.
fn describe_unsupported(kind: &str, object: &mut ObjectReader<'_>) -> Option<String> {
    let parts: Vec<String> = ["pattern", "value", "path", "command", "expect"]
        .into_iter()
        .filter_map(|key| Some(format!("{key} {}", object.get_non_null(key)?.to_value())))
        .collect();
    (!parts.is_empty()).then(|| format!("An assertion of type {kind} with {} holds.", parts.join(", ")))
}
