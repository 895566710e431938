//! Normalises requests, so that they are the same on every machine and every day.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use crate::llm::{ContentBlock, ModelRequest, Role};
use practicum_core::model::Digest;

/// Replacements for the paths of one trial, which differ in every run.
pub struct PathPlaceholders {
    /// Each path and its name in a cassette, the longest first.
    replacements: Vec<(String, String)>,
}

/// The shortest path that is replaced. Shorter ones would be found by accident.
const SHORTEST_PATH: usize = 4;

impl PathPlaceholders {
    pub fn new(vars: &BTreeMap<String, String>) -> Self {
        let mut names = Vec::new();
        for (name, value) in vars.iter().filter(|(_, value)| value.len() >= SHORTEST_PATH) {
            names.push((value.clone(), format!("{{{{practicum:{name}}}}}")));
            // Claude Code names a project's folder after its path.
            let slug: String =
                value.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
            if slug != *value {
                names.push((slug, format!("{{{{practicum:{name}-slug}}}}")));
            }
        }
        names.sort_by_key(|(value, _)| std::cmp::Reverse(value.len()));
        Self { replacements: names }
    }

    pub fn insert_placeholders(&self, text: &str) -> String {
        self.replacements.iter().fold(text.to_owned(), |text, (value, name)| text.replace(value, name))
    }

    pub fn restore_paths(&self, text: &str) -> String {
        self.replacements.iter().fold(text.to_owned(), |text, (value, name)| text.replace(name, value))
    }
}

/// Changes every text in a value.
pub fn map_texts(value: &mut Value, change: &dyn Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| map_texts(item, change)),
        Value::Object(fields) => fields.values_mut().for_each(|field| map_texts(field, change)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Patterns of texts that change from run to run without meaning anything, and their replacements.
static VOLATILE_PATTERNS: LazyLock<Vec<(Regex, &'static str)>> = LazyLock::new(|| {
    let months = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*";
    let rows = [
        // The line that Claude Code writes above its system prompt for the vendor's billing.
        (r"(?m)^x-anthropic-billing-header: .*$".to_owned(), "<billing>"),
        (r"(?m)^( *- (?:OS Version|Platform|Shell): ).*$".to_owned(), "${1}<machine>"),
        (r"(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b".to_owned(), "<uuid>"),
        (r"\b[0-9a-f]{32,64}\b".to_owned(), "<hex>"),
        // The gateway's own address.
        (r"127\.0\.0\.1:\d+/t/<hex>".to_owned(), "<gateway>"),
        // As `date` prints it.
        (
            format!(
                r"\b[A-Z][a-z]{{2}} {months} +\d{{1,2}} \d{{2}}:\d{{2}}:\d{{2}} (?:[AP]M )?[A-Z]+ \d{{4}}\b"
            ),
            "<date>",
        ),
        (
            r"\b\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?"
                .to_owned(),
            "<date>",
        ),
        (r"\b\d{2}:\d{2}:\d{2}(?:\.\d+)?\b".to_owned(), "<time>"),
        (format!(r"\b(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) )?{months}\.? \d{{1,2}},? \d{{4}}\b"), "<date>"),
        (format!(r"\b\d{{1,2}}\.? {months}\.? \d{{4}}\b"), "<date>"),
        (r"\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b".to_owned(), "<day>"),
        (r"\b1[6-9]\d{8}(?:\d{3})?\b".to_owned(), "<time>"),
        // Workspaces are made below a folder of this name.
        (r"/[\w./-]*/practicum-[A-Za-z0-9]{6}\b".to_owned(), "<rooms>"),
        (r"-practicum-[A-Za-z0-9]{6}\b".to_owned(), "-<rooms>"),
    ];
    // The test below uses every row, so no pattern is invalid.
    rows.into_iter().filter_map(|(pattern, name)| Some((Regex::new(&pattern).ok()?, name))).collect()
});

fn replace_volatile(text: &str) -> String {
    VOLATILE_PATTERNS.iter().fold(text.to_owned(), |text, (pattern, name)| match pattern.is_match(&text) {
        true => pattern.replace_all(&text, *name).into_owned(),
        false => text,
    })
}

/// Gives the parts by which a request is recognised, each with a name for people.
pub fn request_parts(
    request: &ModelRequest,
    places: &PathPlaceholders,
    scrub: &dyn Fn(&str) -> String,
) -> Vec<(String, String)> {
    let normal = |text: &str| replace_volatile(&places.insert_placeholders(&scrub(text)));
    let mut parts = vec![
        ("model".to_owned(), request.model.clone()),
        ("stream".to_owned(), request.stream.to_string()),
        ("system".to_owned(), normal(request.system.as_deref().unwrap_or_default())),
        (
            "tools".to_owned(),
            request.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>().join("\n"),
        ),
    ];
    for (at, message) in request.messages.iter().enumerate() {
        let role = match message.role {
            Role::User => "user",
            Role::Assistant => "assistant",
        };
        for block in &message.blocks {
            let (what, text) = match block {
                ContentBlock::Text { text } => ("text", normal(text)),
                ContentBlock::Image { media_type, data } => {
                    ("picture", format!("{media_type} {}", Digest::of_bytes(data.as_bytes())))
                }
                ContentBlock::Thinking { text, signature: _ } => ("thinking", normal(text)),
                ContentBlock::ToolUse { name, input, id: _ } => {
                    ("tool call", normal(&format!("{name} {input}")))
                }
                ContentBlock::ToolResult { content, is_error, tool_use_id: _ } => {
                    ("tool result", normal(&format!("{}{content}", if *is_error { "error: " } else { "" })))
                }
            };
            parts.push((format!("messages[{at}] {role} {what}"), text));
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_without_meaning_is_left_out() {
        for (one, other) in [
            ("x-anthropic-billing-header: a=1; b=2\nYou", "x-anthropic-billing-header: c\nYou"),
            ("- OS Version: Linux 6.1\nx", "- OS Version: Darwin 25\nx"),
            ("id 3f2504e0-4f89-41d3-9a0c-0305e82c3301.", "id 9a3b1c7e-0000-4000-8000-0305e82c3302."),
            ("fence-0123456789abcdef0123456789abcdef", "fence-fedcba9876543210fedcba9876543210"),
            (
                "http://127.0.0.1:1234/t/0123456789abcdef0123456789abcdef/v1",
                "http://127.0.0.1:56789/t/fedcba9876543210fedcba9876543210/v1",
            ),
            ("Today's date is 2026-11-15.", "Today's date is 2027-01-02."),
            ("at 2026-11-15T10:00:00.123Z, yes", "at 2027-01-02T11:01:01Z, yes"),
            ("took until 10:11:12", "took until 23:59:59"),
            ("Sunday, November 15, 2026", "Monday, Jan 3, 2027"),
            ("15 Nov 2026", "3 January 2027"),
            ("Today's date: Mon Nov 16 2026", "Today's date: Sun Jan 03 2027"),
            ("now Sun Nov 15 22:41:53 UTC 2026", "now Mon Jan  4 01:00:00 CET 2027"),
            ("at 1763200000123 ms", "at 1763200000999 ms"),
            ("/tmp/practicum-AbC123/x/y", "/var/folders/q1/T/practicum-ZZZ999/x/y"),
            ("projects/-tmp-practicum-AbC123-x", "projects/-tmp-practicum-ZZZ999-x"),
        ] {
            assert_eq!(replace_volatile(one), replace_volatile(other));
        }
        assert_eq!(VOLATILE_PATTERNS.len(), 14, "every pattern is one");
        for (one, other) in [("port 8080", "port 8081"), ("v1.2.3", "v1.2.4"), ("abc1234", "abc1235")] {
            assert_ne!(replace_volatile(one), replace_volatile(other));
        }
    }

    #[test]
    fn places_are_hidden_and_shown_elsewhere() {
        let places = |root: &str| {
            let var = |name: &str| (name.to_owned(), format!("{root}/{name}"));
            PathPlaceholders::new(&[var("workspace"), var("home")].into())
        };
        let here = "in /a/b/workspace/x, slug -a-b-workspace, home /a/b/home";
        let hidden = places("/a/b").insert_placeholders(here);
        assert!(!hidden.contains("/a/b") && !hidden.contains("-a-b"), "{hidden}");
        assert_eq!(places("/c").restore_paths(&hidden), "in /c/workspace/x, slug -c-workspace, home /c/home");
    }
}
