//! Collects keys that a format permits and that have no effect.

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;

use super::case_keys::PROMPT_KEYS;
use super::expected_activation::resembles_activation_key;
use practicum_core::model::{Diagnostic, Diagnostics, Severity, count_with_noun};
use practicum_core::tree::{NodeData, ObjectReader, TreeNode};

/// Keys that a format permits and that have no effect. They are kept, so that converting loses nothing. Each key
/// is reported once, so that a hundred cases do not give a hundred equal notices.
#[derive(Debug, Default)]
pub struct UnusedKeys {
    reported: HashSet<(&'static str, String)>,
    /// Whether keys that begin with `_` are the author's notes and are not reported.
    underscore_is_silent: bool,
    /// Whether a file is refused if it has cases under a key that is not read.
    refuses_unread_cases: bool,
}

impl UnusedKeys {
    /// Starts a collection that does not report keys that begin with `_`.
    pub fn with_silent_underscores() -> Self {
        Self { underscore_is_silent: true, ..Self::default() }
    }

    /// Starts a collection that refuses a file with cases under a key that is not read.
    pub fn refusing_unread_cases() -> Self {
        Self { refuses_unread_cases: true, ..Self::default() }
    }

    /// Collects the keys of an object that no reader used. `what` names the object: "an eval".
    pub fn collect_unused(
        &mut self,
        object: &ObjectReader<'_>,
        what: &'static str,
        diagnostics: &mut Diagnostics,
    ) -> BTreeMap<String, Value> {
        let mut meta = BTreeMap::new();
        for entry in object.unread_entries() {
            meta.insert(entry.key.clone(), entry.value.to_value());
            if self.underscore_is_silent && entry.key.starts_with('_') {
                continue;
            }
            // Every list is reported, because each is a loss of its own.
            if let Some(entries) = UnreadEntries::find_below(&entry.key, &entry.value) {
                let refused = self.refuses_unread_cases && entries.cases > 0;
                diagnostics.push(Diagnostic {
                    severity: if refused { Severity::Error } else { Severity::Warning },
                    code: "unread-cases",
                    message: format!(
                        "{} below \"{}\" of {what} {} not read",
                        entries.describe(),
                        entry.key,
                        if entries.cases + entries.others == 1 { "is" } else { "are" }
                    ),
                    span: Some(entry.key_span),
                    help: key_for_cases(object, &entry.key),
                });
                continue;
            }
            if !self.reported.insert((what, entry.key.clone())) {
                continue;
            }
            if let Some(label) = entry.value.as_text().filter(|text| is_activation_label(&entry.key, text)) {
                let known =
                    ["expectation", "should_trigger"].into_iter().find(|key| object.is_known_key(key));
                diagnostics.push(Diagnostic {
                    severity: Severity::Warning,
                    code: "unchecked-activation",
                    message: format!(
                        "{what} says \"{label}\" under \"{}\", a key that is not read, so nothing checks it",
                        entry.key
                    ),
                    span: Some(entry.key_span),
                    help: known.map(|known| format!("did you mean \"{known}\"?")),
                });
                continue;
            }
            let misspelt = object.find_misspelt_key(&entry.key);
            if misspelt.is_none() && resembles_activation_key(&entry.key) {
                diagnostics.push(Diagnostic {
                    severity: Severity::Warning,
                    code: "unchecked-activation",
                    message: format!(
                        "{what} has a key \"{}\" that seems to say whether a skill is activated; it is not \
                         understood here, so nothing checks it",
                        entry.key
                    ),
                    span: Some(entry.key_span),
                    help: activation_key_hint(object),
                });
                continue;
            }
            let beside = object.find_misspelt_duplicate(&entry.key);
            let meant = misspelt.or(beside).or_else(|| object.suggest_key(&entry.key));
            let is_asked = seems_to_ask(&entry.key);
            let decides =
                is_asked || CHECK_OBJECTS.contains(&what) && !NOTE_KEYS.contains(&entry.key.as_str());
            diagnostics.push(Diagnostic {
                // A misspelt key, or a key of a check, does not do what it should; a run must not hide that.
                severity: match misspelt.is_some() || beside.is_some() || decides {
                    true => Severity::Warning,
                    false => Severity::Notice,
                },
                code: "unknown-key",
                message: match beside {
                    Some(known) => format!(
                        "{what} has a key \"{}\" beside \"{known}\"; only \"{known}\" is read",
                        entry.key
                    ),
                    None if is_asked => format!(
                        "{what} has a key \"{}\" that is not read, so nothing checks or does what it says",
                        entry.key
                    ),
                    None => {
                        format!("{what} has a key \"{}\" that means nothing here; it is kept", entry.key)
                    }
                },
                span: Some(entry.key_span),
                help: meant.map(|known| format!("did you mean \"{known}\"?")),
            });
        }
        meta
    }
}

/// The objects that decide whether a case passes. An unread key in one of them may have been meant to decide.
const CHECK_OBJECTS: [&str; 3] = ["an assertion", "an expectation", "a criterion"];

/// Keys under which people write notes to each other.
const NOTE_KEYS: [&str; 8] =
    ["comment", "comments", "description", "note", "notes", "rationale", "reason", "why"];

/// Whether an unknown key seems to ask for a check, for something that must be there before the run, or for another
/// way to run.
fn seems_to_ask(key: &str) -> bool {
    const BEGINNINGS: &[&str] = &[
        "must",
        "should",
        "forbid",
        "prohibit",
        "disallow",
        "not_contain",
        "contain",
        "expect",
        "anti_",
        "assert",
        "require",
        "verif",
        "check",
        "setup",
        "set_up",
        "teardown",
        "tear_down",
        "fixture",
        "precondition",
        "prerequisite",
        "criteri",
        "success_criteri",
        "acceptance",
        "rubric",
        "grader",
        "validat",
        "timeout",
        "time_limit",
        "turns",
        "scaffold",
        "human_script",
        "codebase",
        "environment",
        "repo_fixture",
    ];
    let key = key.to_lowercase();
    BEGINNINGS.iter().any(|beginning| key.starts_with(beginning))
}

/// The keys of a case that hold what is expected, beside those that begin with `expect` or `should_`.
const LABEL_KEYS: [&str; 2] = ["must_not_activate", "target_skill"];

/// The entries of a list under a key that is not read.
#[derive(Default)]
struct UnreadEntries {
    cases: usize,
    /// The number of entries that expect something and have no prompt.
    others: usize,
}

impl UnreadEntries {
    /// Finds the entries below a value that look like cases, in lists at any depth.
    fn find_below(key: &str, node: &TreeNode) -> Option<Self> {
        let mut found = Self::default();
        found.count_entries(node, false);
        let lists_prompts =
            key.starts_with("negative") || key.ends_with("prompts") || key.ends_with("queries");
        if let Some(items) = node.as_list().filter(|_| lists_prompts) {
            found.cases += items.iter().filter(|item| item.as_text().is_some()).count();
        }
        (found.cases + found.others > 0).then_some(found)
    }

    fn count_entries(&mut self, node: &TreeNode, is_entry: bool) {
        match &node.data {
            NodeData::List(items) => items.iter().for_each(|item| self.count_entries(item, true)),
            NodeData::Map(entries) => {
                let has = |wanted: fn(&str) -> bool| entries.iter().any(|entry| wanted(&entry.key));
                let expects = |key: &str| {
                    key.starts_with("expect") || key.starts_with("should_") || LABEL_KEYS.contains(&key)
                };
                if is_entry && has(|key| PROMPT_KEYS.contains(&key)) {
                    self.cases += 1;
                } else if is_entry && has(expects) {
                    self.others += 1;
                } else {
                    entries.iter().for_each(|entry| self.count_entries(&entry.value, false));
                }
            }
            NodeData::Null
            | NodeData::Bool(_)
            | NodeData::Int(_)
            | NodeData::Float(_)
            | NodeData::Text(_) => {}
        }
    }

    fn describe(&self) -> String {
        match self.others {
            0 => count_with_noun(self.cases, "case"),
            _ => match self.cases + self.others {
                1 => "1 entry".to_owned(),
                count => format!("{count} entries"),
            },
        }
    }
}

/// Gives the known key under which the cases of an unknown key belong.
fn key_for_cases(object: &ObjectReader<'_>, unknown: &str) -> Option<String> {
    if let Some(known) = object.find_misspelt_key(unknown) {
        return Some(format!("did you mean \"{known}\"?"));
    }
    let lower = unknown.to_lowercase();
    let negative = ["negat", "anti", "not_"].iter().any(|part| lower.contains(part));
    let lists: &[&'static str] = match negative {
        true => &["negative_cases", "test_cases", "cases", "evals", "trigger_tests"],
        false => &["test_cases", "cases", "evals", "trigger_tests"],
    };
    match lists.iter().find(|known| object.is_known_key(known)) {
        Some(&"evals") if negative => {
            Some("put them under \"evals\", each with \"should_trigger\": false".to_owned())
        }
        Some(known) => Some(format!("did you mean \"{known}\"?")),
        None => object.suggest_key(unknown).map(|known| format!("did you mean \"{known}\"?")),
    }
}

/// Says whether a text is a label that says whether a skill must be activated.
fn is_activation_label(key: &str, text: &str) -> bool {
    let text = text.trim().to_lowercase().replace(['-', ' '], "_");
    let expects = key.to_lowercase().starts_with("expect");
    match text.as_str() {
        "must" | "must_not" | "should_not" | "acceptable" | "must_pass" | "must_fail" => expects,
        text => ["must", "should"].iter().any(|verb| {
            ["_", "_not_"].iter().any(|between| {
                ["activate", "trigger"].iter().any(|what| text == format!("{verb}{between}{what}"))
            })
        }),
    }
}

/// Gives a hint that names the keys with which this object can say whether a skill must be activated.
fn activation_key_hint(object: &ObjectReader<'_>) -> Option<String> {
    let known = ["should_trigger", "trigger_tests", "trigger_evals"];
    Some(match known.into_iter().find(|key| object.is_known_key(key))? {
        "should_trigger" => "say it with \"should_trigger\" or \"expected_skill\"".to_owned(),
        key => format!("say it with \"{key}\""),
    })
}
