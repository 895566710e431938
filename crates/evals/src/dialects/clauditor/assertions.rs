//! Reads the assertions of a clauditor spec: texts, counts and formats that code checks.

use serde_json::{Value, json};

use super::super::rules::{self, BuiltRule};
use super::SpecEntries;
use super::keys::{read_list, whole_number};
use crate::checks::{NamedFormat, PythonPattern};
use practicum_core::model::{Check, CheckKind, Diagnostics, Span};
use practicum_core::tree::{NodeData, ObjectReader, TreeNode, closest_word};

/// A type of assertion: its required keys, its optional keys, and the native check that it becomes.
pub(super) struct AssertionKind {
    pub(super) name: &'static str,
    pub(super) required: &'static [&'static str],
    pub(super) optional: &'static [&'static str],
    /// Makes the value of the native check from the keys.
    to_native: fn(&AssertionKeys<'_>) -> Value,
}

pub(super) static ASSERTION_KINDS: &[AssertionKind] = &[
    AssertionKind {
        name: "contains",
        required: &["needle"],
        optional: &[],
        to_native: |given| json!(given.text("needle")),
    },
    AssertionKind {
        name: "not_contains",
        required: &["needle"],
        optional: &[],
        to_native: |given| json!(given.text("needle")),
    },
    AssertionKind {
        name: "regex",
        required: &["pattern"],
        optional: &[],
        to_native: |given| json!(given.text("pattern")),
    },
    AssertionKind {
        name: "min_count",
        required: &["pattern", "count"],
        optional: &[],
        to_native: |given| json!({"pattern": given.text("pattern"), "count": given.int("count")}),
    },
    AssertionKind {
        name: "min_length",
        required: &["length"],
        optional: &[],
        to_native: |given| json!(given.int("length")),
    },
    AssertionKind {
        name: "max_length",
        required: &["length"],
        optional: &[],
        to_native: |given| json!(given.int("length")),
    },
    AssertionKind {
        name: "has_urls",
        required: &[],
        optional: &["count"],
        to_native: |given| json!(given.count()),
    },
    AssertionKind {
        name: "has_entries",
        required: &[],
        optional: &["count"],
        to_native: |given| json!(given.count()),
    },
    AssertionKind {
        name: "urls_reachable",
        required: &[],
        optional: &["count"],
        to_native: |given| json!(given.count()),
    },
    AssertionKind {
        name: "has_format",
        required: &["format"],
        optional: &["count"],
        to_native: |given| json!({"format": given.text("format"), "count": given.count()}),
    },
];

/// The keys of an entry, after they were checked.
struct AssertionKeys<'n> {
    keys: Vec<(&'static str, &'n TreeNode)>,
}

impl AssertionKeys<'_> {
    fn node(&self, key: &str) -> Option<&TreeNode> {
        self.keys.iter().find(|(known, _)| *known == key).map(|(_, node)| *node)
    }

    fn text(&self, key: &str) -> &str {
        self.node(key).and_then(TreeNode::as_text).unwrap_or_default()
    }

    fn int(&self, key: &str) -> i64 {
        self.node(key).and_then(whole_number).unwrap_or(0)
    }

    fn count(&self) -> i64 {
        self.node("count").map_or(1, |_| self.int("count"))
    }
}

pub fn decode_assertions(
    spec: &mut ObjectReader<'_>,
    entries: &mut SpecEntries<'_>,
    diagnostics: &mut Diagnostics,
) -> Vec<Check> {
    let nodes = read_list(spec, "assertions", diagnostics).unwrap_or_default();
    nodes.iter().filter_map(|node| decode_assertion(node, entries, diagnostics)).collect()
}

/// Reads one assertion. The order of the tests is that of the original tool: id, type, unknown keys, missing keys,
/// types, formats.
fn decode_assertion(
    node: &TreeNode,
    entries: &mut SpecEntries<'_>,
    diagnostics: &mut Diagnostics,
) -> Option<Check> {
    let mut entry = ObjectReader::new(node, "an assertion", diagnostics)?;
    let id = entries.read_id(&mut entry, "an assertion", diagnostics);
    let kind = read_kind(&mut entry, diagnostics)?;
    let name = match entry.get("name") {
        Some(name) => practicum_core::tree::node_text(name, "name", diagnostics),
        None => None,
    };
    let mut fine = true;
    let mut keys = Vec::new();
    for key in kind.required.iter().chain(kind.optional) {
        if let Some(value) = entry.get(key) {
            keys.push((*key, value));
        }
    }
    let known: Vec<&str> = kind.required.iter().chain(kind.optional).copied().collect();
    for unknown in entry.unread_entries() {
        fine = false;
        let message = format!("unknown key \"{}\" for \"{}\"", unknown.key, kind.name);
        let meant = closest_word(&unknown.key, &known).or_else(|| suggest_key(&unknown.key, &known));
        match meant {
            Some(meant) => diagnostics.error_with_help(
                "unknown-key",
                unknown.key_span,
                message,
                format!("did you mean \"{meant}\"?"),
            ),
            None => diagnostics.error("unknown-key", unknown.key_span, message),
        }
    }
    for key in
        kind.required.iter().filter(|key| !keys.iter().any(|(given, node)| given == *key && !node.is_null()))
    {
        fine = false;
        let start = Span::new(node.span.start, node.span.start + 1);
        diagnostics.error("missing-key", start, format!("\"{}\" needs \"{key}\"", kind.name));
    }
    for (key, value) in &keys {
        fine &= has_right_type(kind, key, value, diagnostics);
    }
    if !fine {
        return None;
    }
    let given = AssertionKeys { keys };
    let BuiltRule::Rule(rule, _) =
        rules::build_rule(kind.name, &(kind.to_native)(&given), node.span, diagnostics)
    else {
        return None;
    };
    Some(entries.build_check(id?.to_owned(), name, CheckKind::Rule(rule)))
}

/// Suggests the key of this type that an unknown key stands for. The unknown key may belong to another type, to
/// another tool, or to the format's past, when the key was always `value`.
fn suggest_key<'k>(unknown: &str, known: &[&'k str]) -> Option<&'k str> {
    let (texts, numbers) = (["needle", "pattern", "format"], ["count", "length"]);
    let wanted: &[&str] = match unknown {
        "value" => return known.first().copied(),
        "needle" | "pattern" | "format" | "text" | "substring" => &texts,
        "count" | "length" | "min" | "max" | "minimum" | "maximum" | "threshold" => &numbers,
        _ => return None,
    };
    known.iter().copied().find(|known| wanted.contains(known))
}

fn read_kind(entry: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) -> Option<&'static AssertionKind> {
    let Some(node) = entry.get("type") else {
        entry.report_missing("type", diagnostics);
        return None;
    };
    let word = node.as_text().unwrap_or_default();
    let found = ASSERTION_KINDS.iter().find(|kind| kind.name == word);
    if found.is_none() {
        let names: Vec<&str> = ASSERTION_KINDS.iter().map(|kind| kind.name).collect();
        let help = closest_word(word, &names).map_or_else(
            || format!("the types are {}", names.join(", ")),
            |known| format!("did you mean \"{known}\"?"),
        );
        let shown = node.as_text().map_or_else(|| node.kind_name().to_owned(), |word| format!("\"{word}\""));
        diagnostics.error_with_help(
            "unknown-type",
            node.span,
            format!("no assertion has the type {shown}"),
            help,
        );
    }
    found
}

fn has_right_type(kind: &AssertionKind, key: &str, value: &TreeNode, diagnostics: &mut Diagnostics) -> bool {
    let wants_int = key == "count" || key == "length";
    match &value.data {
        NodeData::Int(_) | NodeData::Float(_) if wants_int && whole_number(value).is_some() => true,
        NodeData::Text(text) if !wants_int => match key {
            "pattern" => match PythonPattern::new(text) {
                Ok(_) => true,
                Err(problem) => {
                    diagnostics.error(
                        "invalid-pattern",
                        value.span,
                        format!("the pattern does not compile: {problem}"),
                    );
                    false
                }
            },
            "format" => is_known_format(text, value.span, diagnostics),
            _ => true,
        },
        // This is already reported as missing.
        NodeData::Null if kind.required.contains(&key) => false,
        _ => {
            let expected = if wants_int { "a whole number" } else { "text" };
            practicum_core::tree::report_wrong_type(value, key, expected, diagnostics);
            false
        }
    }
}

fn is_known_format(name: &str, span: Span, diagnostics: &mut Diagnostics) -> bool {
    if NamedFormat::find_format(name).is_some() {
        return true;
    }
    let help = NamedFormat::near_miss(name).map_or_else(
        || "for a pattern of your own use an assertion of type regex".to_owned(),
        |known| format!("did you mean \"{known}\"?"),
    );
    diagnostics.error_with_help("unknown-format", span, format!("there is no format \"{name}\""), help);
    false
}
