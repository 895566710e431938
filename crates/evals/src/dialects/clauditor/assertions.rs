use serde_json::{Value, json};

use super::super::rules::{self, Built};
use super::Entries;
use super::keys::{list, whole};
use crate::score::{Format, Pattern};
use practicum_core::model::{Check, CheckKind, Diagnostics, Span};
use practicum_core::tree::{Data, Node, Object, closest};

/// An assertion type: the keys it must have, those it may have, and the native check it is.
pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) required: &'static [&'static str],
    pub(super) optional: &'static [&'static str],
    /// The native value, from the keys.
    native: fn(&Given<'_>) -> Value,
}

pub(super) static KINDS: &[Kind] = &[
    Kind {
        name: "contains",
        required: &["needle"],
        optional: &[],
        native: |given| json!(given.text("needle")),
    },
    Kind {
        name: "not_contains",
        required: &["needle"],
        optional: &[],
        native: |given| json!(given.text("needle")),
    },
    Kind {
        name: "regex",
        required: &["pattern"],
        optional: &[],
        native: |given| json!(given.text("pattern")),
    },
    Kind {
        name: "min_count",
        required: &["pattern", "count"],
        optional: &[],
        native: |given| json!({"pattern": given.text("pattern"), "count": given.int("count")}),
    },
    Kind {
        name: "min_length",
        required: &["length"],
        optional: &[],
        native: |given| json!(given.int("length")),
    },
    Kind {
        name: "max_length",
        required: &["length"],
        optional: &[],
        native: |given| json!(given.int("length")),
    },
    Kind { name: "has_urls", required: &[], optional: &["count"], native: |given| json!(given.count()) },
    Kind { name: "has_entries", required: &[], optional: &["count"], native: |given| json!(given.count()) },
    Kind {
        name: "urls_reachable",
        required: &[],
        optional: &["count"],
        native: |given| json!(given.count()),
    },
    Kind {
        name: "has_format",
        required: &["format"],
        optional: &["count"],
        native: |given| json!({"format": given.text("format"), "count": given.count()}),
    },
];

/// The keys an entry has, once they are known to be right.
struct Given<'n> {
    keys: Vec<(&'static str, &'n Node)>,
}

impl Given<'_> {
    fn node(&self, key: &str) -> Option<&Node> {
        self.keys.iter().find(|(known, _)| *known == key).map(|(_, node)| *node)
    }

    fn text(&self, key: &str) -> &str {
        self.node(key).and_then(Node::as_text).unwrap_or_default()
    }

    fn int(&self, key: &str) -> i64 {
        self.node(key).and_then(whole).unwrap_or(0)
    }

    fn count(&self) -> i64 {
        self.node("count").map_or(1, |_| self.int("count"))
    }
}

pub fn decode(spec: &mut Object<'_>, entries: &mut Entries<'_>, diagnostics: &mut Diagnostics) -> Vec<Check> {
    let nodes = list(spec, "assertions", diagnostics).unwrap_or_default();
    nodes.iter().filter_map(|node| assertion(node, entries, diagnostics)).collect()
}

/// Checked in the order of the original: id, type, unknown keys, missing keys, types, registry.
fn assertion(node: &Node, entries: &mut Entries<'_>, diagnostics: &mut Diagnostics) -> Option<Check> {
    let mut entry = Object::new(node, "an assertion", diagnostics)?;
    let id = entries.id(&mut entry, "an assertion", diagnostics);
    let kind = kind(&mut entry, diagnostics)?;
    let name = match entry.get("name") {
        Some(name) => practicum_core::tree::text_of(name, "name", diagnostics),
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
    for unknown in entry.rest() {
        fine = false;
        let message = format!("unknown key \"{}\" for \"{}\"", unknown.key, kind.name);
        let meant = closest(&unknown.key, &known).or_else(|| meant(&unknown.key, &known));
        match meant {
            Some(meant) => diagnostics.error_help(
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
        fine &= right_type(kind, key, value, diagnostics);
    }
    if !fine {
        return None;
    }
    let given = Given { keys };
    let Built::Rule(rule, _) = rules::build(kind.name, &(kind.native)(&given), node.span, diagnostics) else {
        return None;
    };
    Some(entries.check(id?.to_owned(), name, CheckKind::Exact(rule)))
}

/// The key of this type behind a word of another type, of another tool or of the format's past, where
/// `value` was whatever the type needed.
fn meant<'k>(unknown: &str, known: &[&'k str]) -> Option<&'k str> {
    let (texts, numbers) = (["needle", "pattern", "format"], ["count", "length"]);
    let wanted: &[&str] = match unknown {
        "value" => return known.first().copied(),
        "needle" | "pattern" | "format" | "text" | "substring" => &texts,
        "count" | "length" | "min" | "max" | "minimum" | "maximum" | "threshold" => &numbers,
        _ => return None,
    };
    known.iter().copied().find(|known| wanted.contains(known))
}

fn kind(entry: &mut Object<'_>, diagnostics: &mut Diagnostics) -> Option<&'static Kind> {
    let Some(node) = entry.get("type") else {
        entry.missing("type", diagnostics);
        return None;
    };
    let word = node.as_text().unwrap_or_default();
    let found = KINDS.iter().find(|kind| kind.name == word);
    if found.is_none() {
        let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
        let help = closest(word, &names).map_or_else(
            || format!("the types are {}", names.join(", ")),
            |known| format!("did you mean \"{known}\"?"),
        );
        let shown = node.as_text().map_or_else(|| node.what().to_owned(), |word| format!("\"{word}\""));
        diagnostics.error_help("unknown-type", node.span, format!("no assertion has the type {shown}"), help);
    }
    found
}

fn right_type(kind: &Kind, key: &str, value: &Node, diagnostics: &mut Diagnostics) -> bool {
    let wants_int = key == "count" || key == "length";
    match &value.data {
        Data::Int(_) | Data::Float(_) if wants_int && whole(value).is_some() => true,
        Data::Text(text) if !wants_int => match key {
            "pattern" => match Pattern::new(text) {
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
            "format" => known_format(text, value.span, diagnostics),
            _ => true,
        },
        // Already told as missing.
        Data::Null if kind.required.contains(&key) => false,
        _ => {
            let expected = if wants_int { "a whole number" } else { "text" };
            practicum_core::tree::wrong_type(value, key, expected, diagnostics);
            false
        }
    }
}

fn known_format(name: &str, span: Span, diagnostics: &mut Diagnostics) -> bool {
    if Format::named(name).is_some() {
        return true;
    }
    let help = Format::near_miss(name).map_or_else(
        || "for a pattern of your own use an assertion of type regex".to_owned(),
        |known| format!("did you mean \"{known}\"?"),
    );
    diagnostics.error_help("unknown-format", span, format!("there is no format \"{name}\""), help);
    false
}
