//! Makes exact checks of assertions that name their kind: a text to find, a pattern, a file, a tool, a command.
//!
//! None of these kinds has a public specification; their names say what they mean. Capital and small letters differ
//! unless the assertion says otherwise.

use std::sync::Arc;

use serde_json::{Value, json};

use super::super::rules;
use crate::checks::rule_kind;
use practicum_core::model::{CheckTarget, Diagnostics, RelPath, Rule, Span};
use practicum_core::tree::{NodeData, ObjectReader, TreeNode, closest_word, node_text, report_wrong_type};

/// What an assertion becomes.
pub enum ExactCheck {
    /// The rules, usually one. A list of texts to find gives one rule for each.
    Rules(Vec<(Arc<dyn Rule>, CheckTarget)>),
    /// There is such a check, but it has an error, which is reported.
    Invalid,
    /// Not something that code decides. `notice` says why, where that is a surprise; `words` say what kind of check
    /// it is; `named` is whether its name and its values may say what must be true, where no sentence does.
    NotExact { notice: Option<String>, words: Option<String>, named: bool },
}

/// The types that code decides, for suggestions when one is misspelt.
const EXACT_TYPES: [&str; 22] = [
    "contains",
    "content_contains",
    "contains_phrase",
    "content_includes_all",
    "content_includes_any",
    "output_contains",
    "not_contains",
    "regex_includes",
    "regex_excludes",
    "contains_pattern",
    "not_contains_pattern",
    "transcript_contains",
    "file_matches_glob",
    "tool_use",
    "command_succeeds",
    "starts_with",
    "ends_with",
    "regex",
    "transcript_regex",
    "file_exists",
    "file_contains",
    "script",
];

/// The types that name no mechanism: a judge decides by their words.
const JUDGED_TYPES: [&str; 11] = [
    "semantic",
    "llm",
    "llm_judge",
    "judge",
    "manual",
    "qualitative",
    "rubric",
    "output",
    "behavior",
    "behavioral",
    "quality",
];

/// Gives the rules for an assertion's type and keys.
pub fn exact_check(
    kind: Option<&str>,
    object: &mut ObjectReader<'_>,
    diagnostics: &mut Diagnostics,
) -> ExactCheck {
    let Some(kind) = kind else { return ExactCheck::NotExact { notice: None, words: None, named: true } };
    let normal = kind.trim().to_lowercase().replace('-', "_");
    let wanted = match normal.as_str() {
        "contains"
        | "content_contains"
        | "contains_phrase"
        | "contains_text"
        | "includes"
        | "content_includes_all"
        | "contains_all" => text_rules("contains", object, diagnostics),
        "not_contains" | "content_not_contains" | "excludes" => {
            text_rules("not_contains", object, diagnostics)
        }
        "content_includes_any" | "contains_any" => any_text_rule(object, diagnostics),
        "output_contains" => output_contains_rule(object, diagnostics),
        "output_not_contains" => text_rules("not_contains", object, diagnostics),
        "starts_with" => text_rules("starts_with", object, diagnostics),
        "ends_with" => text_rules("ends_with", object, diagnostics),
        "regex" | "matches" | "regex_match" | "regex_includes" | "content_regex" | "contains_pattern"
        | "output_matches" => regex_rule(object, diagnostics),
        "regex_excludes" | "not_contains_pattern" | "regex_not_match" | "not_matches" => {
            regex_rule(object, diagnostics).map(|rules| rules.into_iter().filter_map(inverted).collect())
        }
        "transcript_regex" => transcript_rule(object, diagnostics),
        "transcript_contains" | "trajectory_contains" => transcript_text_rule(object, diagnostics),
        "transcript_check" => transcript_check_rule(object, diagnostics),
        "file_exists" => file_exists_rule(object, diagnostics),
        "file_contains" => file_contains_rule(object, diagnostics),
        "file_matches_glob" => file_glob_rule(object, diagnostics),
        "tool_use" | "tool_called" | "tool_call" => tool_rule("tool_used", object, diagnostics),
        "tool_not_called" => tool_rule("tool_not_used", object, diagnostics),
        "script" | "command" | "command_succeeds" | "command_check" => command_rule(object, diagnostics),
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
        true if normal == "file_matches_glob" => Ok(glob_target(object)),
        true => read_target(wanted.iter().flatten(), object, diagnostics),
        false => Ok(None),
    };
    let wanted = match target.and_then(|target| Ok((wanted?, target))) {
        Ok(wanted) => wanted,
        Err(IncompleteAssertion::Invalid) => return ExactCheck::Invalid,
        Err(IncompleteAssertion::Inexact(why)) => {
            let words = Some(format!("An assertion of type {kind}"));
            return ExactCheck::NotExact { notice: Some(why.to_owned()), words, named: true };
        }
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
    /// The assertion asks for more than a rule can say, for this reason.
    Inexact(&'static str),
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

/// Gives the text or texts that an assertion searches for.
fn searched_value<'n>(object: &mut ObjectReader<'n>) -> Option<&'n TreeNode> {
    let usual = ["value", "values", "needle"].into_iter().find_map(|key| object.get_non_null(key));
    // Less usual keys are asked for only where they are.
    let other = || {
        let key = ["phrase", "substring"].into_iter().find(|key| object.peek(key).is_some());
        key.and_then(|key| object.get_non_null(key))
    };
    usual.or_else(other)
}

/// Makes a rule that one of several texts is there. A pattern of the texts says it.
fn any_text_rule(object: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) -> RequestedRules {
    let value = searched_value(object).ok_or(IncompleteAssertion::MissingKey("value"))?;
    let nodes = match &value.data {
        NodeData::List(items) => items.as_slice(),
        _ => std::slice::from_ref(value),
    };
    let texts = nodes.iter().map(|node| node_text(node, "value", diagnostics));
    let texts: Vec<String> =
        texts.map(|text| Some(escape(text?))).collect::<Option<_>>().ok_or(IncompleteAssertion::Invalid)?;
    if texts.is_empty() {
        return Err(IncompleteAssertion::MissingKey("value"));
    }
    Ok(vec![("regex", json!(texts.join("|")), value.span)])
}

/// Writes a text as a pattern that matches only this text.
fn escape(text: &str) -> String {
    let mut pattern = String::new();
    for letter in text.chars() {
        if letter.is_ascii_punctuation() && letter != '_' {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern
}

/// Reads `output_contains`: a text to find, or a pattern.
fn output_contains_rule(object: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) -> RequestedRules {
    match object.peek("pattern").is_some_and(|node| !node.is_null()) {
        true => regex_rule(object, diagnostics),
        false => text_rules("contains", object, diagnostics),
    }
}

/// Makes one rule for each text.
fn text_rules(
    key: &'static str,
    object: &mut ObjectReader<'_>,
    diagnostics: &mut Diagnostics,
) -> RequestedRules {
    let value = searched_value(object).ok_or(IncompleteAssertion::MissingKey("value"))?;
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
    // Flags as JavaScript and Python write them: the pattern itself can say those that change what it matches.
    let flags = object.peek("flags").and_then(TreeNode::as_text).map(str::to_lowercase);
    let pattern = node.as_text().unwrap_or_default();
    let pattern = match flags.as_deref() {
        Some(flags) if !flags.is_empty() && flags.chars().all(|flag| "gimsux".contains(flag)) => {
            object.get("flags");
            let kept: String = flags.chars().filter(|flag| "imsx".contains(*flag)).collect();
            if kept.is_empty() { pattern.to_owned() } else { format!("(?{kept}){pattern}") }
        }
        _ => pattern.to_owned(),
    };
    Ok(vec![("regex", json!(pattern), node.span)])
}

/// Makes a rule that a text is somewhere in the transcript.
fn transcript_text_rule(object: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) -> RequestedRules {
    let expect = if is_expected(object, diagnostics)? { "present" } else { "absent" };
    let node = text_under(object, &["value", "pattern"], diagnostics)?;
    let pattern = escape(node.as_text().unwrap_or_default());
    Ok(vec![("transcript", json!({"pattern": pattern, "expect": expect}), node.span)])
}

/// Reads `transcript_check`: a pattern that matches in the session. One that must match before something else is not
/// exact here.
fn transcript_check_rule(object: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) -> RequestedRules {
    let precedes = object.peek("must_precede").and_then(TreeNode::as_text).filter(|when| *when != "any");
    if precedes.is_some() {
        return Err(IncompleteAssertion::Inexact("no rule says what must come first"));
    }
    object.get("must_precede");
    let on_tools = match object.peek("check").and_then(TreeNode::as_text) {
        None | Some("tool_invocation_matches") => true,
        Some("assistant_message_matches") => false,
        Some(_) => return Err(IncompleteAssertion::Inexact("its \"check\" is not known here")),
    };
    object.get("check");
    let node = text_under(object, &["pattern", "value"], diagnostics)?;
    Ok(match on_tools {
        true => vec![("transcript", json!({"pattern": node.to_value(), "expect": "present"}), node.span)],
        false => vec![("regex", node.to_value(), node.span)],
    })
}

fn tool_rule(
    key: &'static str,
    object: &mut ObjectReader<'_>,
    diagnostics: &mut Diagnostics,
) -> RequestedRules {
    let named = ["tool", "tool_pattern"].into_iter().find(|key| object.peek(key).is_some());
    let node = text_under(object, &[named.unwrap_or("value"), "value"], diagnostics)?;
    Ok(vec![(key, node.to_value(), node.span)])
}

/// Makes a rule that a written file matches a glob, and has this content if a pattern is given.
fn file_glob_rule(object: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) -> RequestedRules {
    let node = text_under(object, &["glob", "path", "value"], diagnostics)?;
    let content = object.peek("content_pattern").is_some_and(|pattern| !pattern.is_null());
    match content {
        true => {
            let pattern = text_under(object, &["content_pattern"], diagnostics)?;
            Ok(vec![("regex", pattern.to_value(), pattern.span)])
        }
        false => Ok(vec![("min_length", json!(0), node.span)]),
    }
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
    if ["transcript_regex", "transcript_contains", "trajectory_contains", "file_exists", "file_contains"]
        .contains(&kind)
        || is_expected(object, diagnostics)?
    {
        return Ok(wanted);
    }
    // Not one of several texts: none of them. Not all of them: at least one is missing, which no rule says.
    let inverted: Option<Vec<_>> = match (kind, wanted.len()) {
        ("content_includes_all" | "contains_all", 2..) => None,
        _ => wanted.into_iter().map(inverted).collect(),
    };
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

/// Turns one rule round, if there is a rule that says the opposite.
fn inverted((key, value, span): (&'static str, Value, Span)) -> Option<(&'static str, Value, Span)> {
    match (key, &value) {
        ("contains", _) => Some(("not_contains", value, span)),
        ("not_contains", _) => Some(("contains", value, span)),
        ("tool_used", Value::String(_)) => Some(("tool_not_used", value, span)),
        ("tool_not_used", Value::String(_)) => Some(("tool_used", value, span)),
        ("regex", Value::String(pattern)) => Some(("regex", json!(match_nowhere(pattern)), span)),
        _ => None,
    }
}

/// A pattern that matches where another matches nowhere. Flags for the whole pattern stay in front.
pub fn match_nowhere(pattern: &str) -> String {
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

/// The files that an assertion with a glob looks at.
fn glob_target(object: &mut ObjectReader<'_>) -> Option<CheckTarget> {
    let glob = ["glob", "path", "value"].into_iter().find_map(|key| object.get_non_null(key)?.as_text())?;
    Some(CheckTarget::Files(vec![glob.to_owned()]))
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
    if ["expect_stdout", "setup_files", "env", "matrix"].iter().any(|key| object.peek(key).is_some()) {
        return Err(IncompleteAssertion::Inexact("its command needs more than a shell in the workspace"));
    }
    let node = ["command", "script", "value"].into_iter().find_map(|key| object.get_non_null(key));
    let node = node.ok_or(IncompleteAssertion::MissingKey("command"))?;
    let command = match &node.data {
        NodeData::Text(text) => text.clone(),
        NodeData::List(words) => {
            let texts = words.iter().map(|word| node_text(word, "command", diagnostics));
            let texts: Vec<&str> = texts.collect::<Option<_>>().ok_or(IncompleteAssertion::Invalid)?;
            shlex::Quoter::new().allow_nul(true).join(texts).unwrap_or_default()
        }
        // A command with more than its text is written as in a native file.
        NodeData::Map(_) => return Ok(vec![("command", node.to_value(), node.span)]),
        NodeData::Null | NodeData::Bool(_) | NodeData::Int(_) | NodeData::Float(_) => {
            report_wrong_type(node, "command", "text or a list of texts", diagnostics);
            return Err(IncompleteAssertion::Invalid);
        }
    };
    let code = object.int("expect_exit_code", 0, 255, diagnostics).unwrap_or(0);
    // A command passes if it succeeds. The shell compares any other exit code.
    let command = if code == 0 { command } else { format!("({command}\n); test $? -eq {code}") };
    Ok(vec![("command", json!(command), node.span)])
}
