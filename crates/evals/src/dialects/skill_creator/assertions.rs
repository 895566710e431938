//! Reads assertions as people write them: a sentence, or an object that names a kind of check.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::super::reading::{self, UniqueIds, UnusedKeys, slug};
use super::super::rules;
use crate::checks::rule_kind;
use practicum_core::model::{
    Check, CheckKind, CheckNeed, CheckTarget, CheckWeight, Diagnostics, RelPath, Rule, Span,
};
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
            self.checks.push(Check { id, name, need, weight: CheckWeight::ONE, target: looks_at, kind });
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
    /// Not something that code decides. `notice` says why, where that is a surprise; `words` say what kind of check
    /// it is; `named` is whether its name and its values may say what must be true, where no sentence does.
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
                    words: Some(format!("An assertion of type {kind}")),
                    named: true,
                };
            }
        },
    };
    let wanted = wanted.and_then(|wanted| apply_polarity(&normal, wanted, object, diagnostics));
    let target = match wanted.is_ok() {
        true => read_target(wanted.iter().flatten(), object, diagnostics),
        false => Ok(None),
    };
    let wanted = match target.and_then(|target| Ok((wanted?, target))) {
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
    let (wanted, target) = wanted;
    let mut made = Vec::new();
    for (key, value, span) in wanted {
        match rules::build_rule(key, &value, span, diagnostics) {
            rules::BuiltRule::Rule(rule, looks_at) => {
                made.push((rule, target.clone().unwrap_or(looks_at)));
            }
            rules::BuiltRule::Invalid => return ExactCheck::Invalid,
            rules::BuiltRule::NoSuchKind => {
                return ExactCheck::NotExact {
                    notice: Some(format!("this version knows no check \"{key}\"")),
                    words: Some(format!("An assertion of type {kind}")),
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
    let mut is_expected = true;
    for key in ["expect", "expected"] {
        // What is expected may also be a text to look for; then it says nothing of presence.
        let is_presence = |node: &TreeNode| key == "expect" || presence_of(node).is_some();
        if !object.peek(key).is_some_and(is_presence) {
            continue;
        }
        let Some(node) = object.get_non_null(key) else { continue };
        let Some(is_present) = presence_of(node) else {
            diagnostics.error_with_help(
                "unknown-value",
                node.span,
                format!("\"expect\" cannot be {}", node.to_value()),
                "it may be present or absent",
            );
            return Err(IncompleteAssertion::Invalid);
        };
        is_expected = is_present;
    }
    for key in ["negate", "negated", "not", "invert"] {
        let is_given = object.get_non_null(key).is_some();
        match object.bool(key, diagnostics) {
            Some(true) => is_expected = !is_expected,
            None if is_given => return Err(IncompleteAssertion::Invalid),
            Some(false) | None => {}
        }
    }
    Ok(is_expected)
}

/// Whether a value says that something must be there, or that it must not.
fn presence_of(node: &TreeNode) -> Option<bool> {
    match &node.data {
        NodeData::Bool(expected) => Some(*expected),
        NodeData::Text(text) if ["present", "exists"].contains(&text.as_str()) => Some(true),
        NodeData::Text(text) if ["absent", "not_exists", "missing"].contains(&text.as_str()) => Some(false),
        _ => None,
    }
}

/// Turns rules round where the assertion says that they must not hold.
fn apply_polarity(
    kind: &str,
    wanted: Vec<(&'static str, Value, Span)>,
    object: &mut ObjectReader<'_>,
    diagnostics: &mut Diagnostics,
) -> RequestedRules {
    // These say it in the rule itself.
    if ["transcript_regex", "file_exists", "file_contains"].contains(&kind)
        || is_expected(object, diagnostics)?
    {
        return Ok(wanted);
    }
    let invert = |(key, value, span): (&'static str, Value, Span)| match (key, &value) {
        ("contains", _) => Some(("not_contains", value, span)),
        ("not_contains", _) => Some(("contains", value, span)),
        ("tool_used", Value::String(_)) => Some(("tool_not_used", value, span)),
        ("tool_not_used", Value::String(_)) => Some(("tool_used", value, span)),
        ("regex", Value::String(pattern)) => Some(("regex", json!(match_nowhere(pattern)), span)),
        _ => None,
    };
    let inverted: Option<Vec<_>> = wanted.into_iter().map(invert).collect();
    inverted.ok_or_else(|| {
        diagnostics.error_with_help(
            "unknown-value",
            object.span,
            format!("an assertion of type \"{kind}\" cannot be turned round"),
            "say in \"description\" what must be true, without a type, and a judge decides it",
        );
        IncompleteAssertion::Invalid
    })
}

/// A pattern that matches where another matches nowhere. Flags for the whole pattern stay in front.
fn match_nowhere(pattern: &str) -> String {
    let is_flags = |flags: &&str| !flags.is_empty() && flags.chars().all(|flag| flag.is_ascii_lowercase());
    let flags = pattern.strip_prefix("(?").and_then(|rest| rest.split_once(')')).map(|(flags, _)| flags);
    let length = flags.filter(is_flags).map_or(0, |flags| flags.len() + "(?)".len());
    let (flags, rest) = pattern.split_at(length);
    format!(r"{flags}\A(?![\s\S]*?(?:{rest}))")
}

/// The keys under which an assertion names a file, the usual one first.
const FILE_KEYS: [&str; 2] = ["path", "file"];

/// The text that the rules of an assertion look at, where it names one.
fn read_target<'w>(
    mut wanted: impl Iterator<Item = &'w (&'static str, Value, Span)>,
    object: &mut ObjectReader<'_>,
    diagnostics: &mut Diagnostics,
) -> Result<Option<CheckTarget>, IncompleteAssertion> {
    // Rules about files and commands say themselves what they look at. An invalid value is reported when the rule is
    // built.
    let reads_no_text = |(key, value, span): &(&'static str, Value, Span)| {
        let built = rules::build_rule(key, value, *span, &mut Diagnostics::default());
        !matches!(built, rules::BuiltRule::Rule(_, target) if target != CheckTarget::WholeRun)
    };
    if wanted.any(reads_no_text) {
        return Ok(None);
    }
    let named = ["path", "file", "target"].into_iter().find_map(|key| Some((key, object.get_non_null(key)?)));
    let Some((key, node)) = named else { return Ok(None) };
    let text = node_text(node, key, diagnostics).ok_or(IncompleteAssertion::Invalid)?;
    let is_path = key != "target" || text.contains(['.', '/']);
    match (text, RelPath::new(text)) {
        ("output" | "response" | "answer" | "final_output", _) if !is_path => Ok(Some(CheckTarget::Output)),
        ("transcript", _) if !is_path => Ok(Some(CheckTarget::WholeRun)),
        (_, Some(path)) if is_path => Ok(Some(CheckTarget::File(path))),
        _ => {
            diagnostics.error_with_help(
                "unknown-value",
                node.span,
                format!("\"{key}\" names no text that can be checked: {text:?}"),
                "name a file in the workspace, or leave the key out to check the agent's answer",
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
    if !is_expected(object, diagnostics)? {
        text_under(object, &FILE_KEYS, diagnostics)?;
        return text_rules("not_contains", object, diagnostics);
    }
    let node = text_under(object, &FILE_KEYS, diagnostics)?;
    let needle = object.get_non_null("value").ok_or(IncompleteAssertion::MissingKey("value"))?;
    Ok(vec![("file", json!({"path": node.to_value(), "contains": needle.to_value()}), node.span)])
}

fn command_rule(object: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) -> RequestedRules {
    let node = ["command", "script", "value"].into_iter().find_map(|key| object.get_non_null(key));
    let node = node.ok_or(IncompleteAssertion::MissingKey("command"))?;
    let command = match &node.data {
        NodeData::Text(text) => text.clone(),
        NodeData::List(words) => {
            let texts = words.iter().map(|word| node_text(word, "command", diagnostics));
            let texts: Vec<&str> = texts.collect::<Option<_>>().ok_or(IncompleteAssertion::Invalid)?;
            shlex::Quoter::new().allow_nul(true).join(texts).unwrap_or_default()
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
    let are_sentences = kind.is_none() || said.is_some();
    let describe = |key| describe_operand(key, object.get_non_null(key)?, are_sentences);
    let mut operands: Vec<String> = OPERAND_KEYS.into_iter().filter_map(describe).collect();
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
