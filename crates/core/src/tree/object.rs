//! Reading of mappings key by key.

use super::{MapEntry, NodeData, TreeNode};
use crate::model::{Diagnostics, Span};

/// A mapping that is read key by key. Afterwards it can list the keys that were not read.
#[derive(Clone)]
pub struct ObjectReader<'n> {
    /// The position of the mapping in the text.
    pub span: Span,
    entries: &'n [MapEntry],
    requested_keys: Vec<&'static str>,
    /// Keys that were read together with all others, whatever their names.
    taken_keys: Vec<&'n str>,
}

impl<'n> ObjectReader<'n> {
    /// Makes a reader. `what` names the thing in messages: "a case", "the file".
    pub fn new(node: &'n TreeNode, what: &str, diagnostics: &mut Diagnostics) -> Option<Self> {
        match &node.data {
            NodeData::Map(entries) => {
                Some(Self { span: node.span, entries, requested_keys: Vec::new(), taken_keys: Vec::new() })
            }
            _ => {
                diagnostics.error(
                    "wrong-type",
                    node.span,
                    format!("{what} must be a mapping, not {}", node.kind_name()),
                );
                None
            }
        }
    }

    /// Gives the value of a key, and counts the key as known.
    pub fn get(&mut self, key: &'static str) -> Option<&'n TreeNode> {
        self.requested_keys.push(key);
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// Reads a value like `get`, but treats an explicit null as a missing key.
    pub fn get_non_null(&mut self, key: &'static str) -> Option<&'n TreeNode> {
        self.get(key).filter(|node| !node.is_null())
    }

    /// Reads a text. Reports a value of another type.
    pub fn text(&mut self, key: &'static str, diagnostics: &mut Diagnostics) -> Option<&'n str> {
        self.get_non_null(key).and_then(|node| node_text(node, key, diagnostics))
    }

    /// Reads a text that must be there and must not be blank. Reports if it is not.
    pub fn required_text(&mut self, key: &'static str, diagnostics: &mut Diagnostics) -> Option<&'n str> {
        match self.get_non_null(key) {
            Some(node) => {
                let text = node_text(node, key, diagnostics)?;
                if text.trim().is_empty() {
                    diagnostics.error("empty-text", node.span, format!("\"{key}\" must not be blank"));
                    return None;
                }
                Some(text)
            }
            None => {
                self.report_missing(key, diagnostics);
                None
            }
        }
    }

    /// Reads a boolean. Reports a value of another type.
    pub fn bool(&mut self, key: &'static str, diagnostics: &mut Diagnostics) -> Option<bool> {
        let node = self.get_non_null(key)?;
        match node.data {
            NodeData::Bool(value) => Some(value),
            _ => {
                report_wrong_type(node, key, "true or false", diagnostics);
                None
            }
        }
    }

    /// Reads a whole number within bounds, both included.
    pub fn int(
        &mut self,
        key: &'static str,
        least: i64,
        most: i64,
        diagnostics: &mut Diagnostics,
    ) -> Option<i64> {
        let node = self.get_non_null(key)?;
        node_int(node, key, least, most, diagnostics)
    }

    /// Reads a number within bounds, both included.
    pub fn number(
        &mut self,
        key: &'static str,
        least: f64,
        most: f64,
        diagnostics: &mut Diagnostics,
    ) -> Option<f64> {
        let node = self.get_non_null(key)?;
        let value = match node.data {
            NodeData::Int(n) => n as f64,
            NodeData::Float(x) => x,
            _ => {
                report_wrong_type(node, key, "a number", diagnostics);
                return None;
            }
        };
        if !(least..=most).contains(&value) {
            diagnostics.error(
                "out-of-range",
                node.span,
                format!("\"{key}\" must be between {least} and {most}"),
            );
            return None;
        }
        Some(value)
    }

    /// Reads a list. Reports a value of another type.
    pub fn list(&mut self, key: &'static str, diagnostics: &mut Diagnostics) -> Option<&'n [TreeNode]> {
        let node = self.get_non_null(key)?;
        match &node.data {
            NodeData::List(items) => Some(items),
            _ => {
                report_wrong_type(node, key, "a list", diagnostics);
                None
            }
        }
    }

    /// Reads a list of texts; a single text stands for a list of one.
    pub fn texts(
        &mut self,
        key: &'static str,
        diagnostics: &mut Diagnostics,
    ) -> Option<Vec<(&'n str, Span)>> {
        let node = self.get_non_null(key)?;
        match &node.data {
            NodeData::Text(text) => Some(vec![(text, node.span)]),
            NodeData::List(items) => Some(
                items
                    .iter()
                    .filter_map(|item| node_text(item, key, diagnostics).map(|text| (text, item.span)))
                    .collect(),
            ),
            _ => {
                report_wrong_type(node, key, "text or a list of texts", diagnostics);
                None
            }
        }
    }

    /// Reports that a key is missing, and which unknown key may be a misspelling of it.
    pub fn report_missing(&self, key: &str, diagnostics: &mut Diagnostics) {
        if let Some(entry) = self.entries.iter().find(|entry| entry.key == key) {
            diagnostics.error("missing-key", entry.key_span, format!("\"{key}\" has no value"));
            return;
        }
        let start = Span::new(self.span.start, self.span.start + 1);
        let message = format!("\"{key}\" is missing");
        let others: Vec<&str> = self.entries.iter().map(|entry| entry.key.as_str()).collect();
        match closest_word(key, &others).filter(|other| !self.requested_keys.contains(other)) {
            Some(other) => {
                let help = format!("there is a key \"{other}\"; is it misspelt?");
                diagnostics.error_with_help("missing-key", start, message, help);
            }
            None => diagnostics.error("missing-key", start, message),
        }
    }

    /// Gives the entries that were not read.
    pub fn unread_entries(&self) -> impl Iterator<Item = &'n MapEntry> + '_ {
        #[cfg(any(test, feature = "test-helpers"))]
        requested_keys::record(&self.requested_keys);
        self.entries.iter().filter(|entry| !self.is_read(&entry.key))
    }

    fn is_read(&self, key: &str) -> bool {
        self.requested_keys.contains(&key) || self.taken_keys.contains(&key)
    }

    /// Counts entries of this mapping as read.
    pub fn take_named(&mut self, entries: &[&'n MapEntry]) {
        self.taken_keys.extend(entries.iter().map(|entry| entry.key.as_str()));
    }

    /// Reads all entries that were not read before, except those with certain keys.
    pub fn take_unread(&mut self, except: &[&str]) -> Vec<&'n MapEntry> {
        let is_left = |entry: &&MapEntry| !self.is_read(&entry.key) && !except.contains(&entry.key.as_str());
        let taken: Vec<&'n MapEntry> = self.entries.iter().filter(is_left).collect();
        self.taken_keys.extend(taken.iter().map(|entry| entry.key.as_str()));
        taken
    }

    /// Gives the value of a key without counting the key as read.
    pub fn peek(&self, key: &str) -> Option<&'n TreeNode> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// Says whether this key was asked for, so that it has a meaning in this mapping.
    pub fn is_known_key(&self, key: &str) -> bool {
        self.requested_keys.contains(&key)
    }

    /// Finds the known key that the author perhaps meant by an unknown one, unless the mapping already has it.
    pub fn suggest_key(&self, unknown: &str) -> Option<&'static str> {
        closest_word(unknown, &self.absent_keys().collect::<Vec<_>>())
    }

    /// Finds the known key of which an unknown one is a misspelling, unless the mapping already has it. A key that
    /// begins with `_` is never a misspelling.
    pub fn find_misspelt_key(&self, unknown: &str) -> Option<&'static str> {
        self.absent_keys().find(|known| !unknown.starts_with('_') && is_misspelt(unknown, known))
    }

    /// Finds the known key that the mapping has beside a misspelling of it.
    pub fn find_misspelt_duplicate(&self, unknown: &str) -> Option<&'static str> {
        let is_here = |key: &str| self.entries.iter().any(|entry| entry.key == key);
        let mut known = self.requested_keys.iter().copied().filter(|asked| is_here(asked));
        known.find(|known| !unknown.starts_with('_') && is_misspelt(unknown, known))
    }

    /// Gives the known keys that the mapping does not have.
    fn absent_keys(&self) -> impl Iterator<Item = &'static str> + '_ {
        let is_here = |key: &str| self.entries.iter().any(|entry| entry.key == key);
        self.requested_keys.iter().copied().filter(move |asked| !is_here(asked))
    }

    /// Reports unknown keys as errors, with the known key that the author perhaps meant.
    pub fn reject_unknown_keys(&self, what: &str, diagnostics: &mut Diagnostics) {
        self.reject_misplaced_keys(what, &[], diagnostics);
    }

    /// Reports unknown keys as errors. Some of them belong into a part of the mapping, given by its name and its
    /// keys; the message then says so.
    pub fn reject_misplaced_keys(
        &self,
        what: &str,
        parts: &[(&str, Vec<String>)],
        diagnostics: &mut Diagnostics,
    ) {
        for entry in self.unread_entries() {
            let message = format!("unknown key \"{}\" in {what}", entry.key);
            let part = parts.iter().find(|(_, keys)| keys.contains(&entry.key));
            let help = match (part, closest_word(&entry.key, &self.requested_keys)) {
                (Some((part, _)), _) => format!("it stands under \"{part}\""),
                (None, Some(known)) => format!("did you mean \"{known}\"?"),
                (None, None) => {
                    diagnostics.error("unknown-key", entry.key_span, message);
                    continue;
                }
            };
            diagnostics.error_with_help("unknown-key", entry.key_span, message, help);
        }
    }
}

/// Reads a node as a text. Reports a value of another type.
pub fn node_text<'n>(node: &'n TreeNode, key: &str, diagnostics: &mut Diagnostics) -> Option<&'n str> {
    match &node.data {
        NodeData::Text(text) => Some(text),
        _ => {
            report_wrong_type(node, key, "text", diagnostics);
            None
        }
    }
}

/// Reads a node as a whole number between two limits, both included. Reports any other value.
pub fn node_int(
    node: &TreeNode,
    key: &str,
    least: i64,
    most: i64,
    diagnostics: &mut Diagnostics,
) -> Option<i64> {
    match node.data {
        NodeData::Int(value) if (least..=most).contains(&value) => Some(value),
        NodeData::Int(_) => {
            diagnostics.error(
                "out-of-range",
                node.span,
                format!("\"{key}\" must be between {least} and {most}"),
            );
            None
        }
        _ => {
            report_wrong_type(node, key, "a whole number", diagnostics);
            None
        }
    }
}

/// Reports that a value has the wrong type.
pub fn report_wrong_type(node: &TreeNode, key: &str, expected: &str, diagnostics: &mut Diagnostics) {
    let message = format!("\"{key}\" must be {expected}, not {}", node.kind_name());
    match node.data {
        NodeData::Bool(_) | NodeData::Int(_) | NodeData::Float(_) if expected.starts_with("text") => {
            diagnostics.error_with_help("wrong-type", node.span, message, "put it in quotes");
        }
        _ => diagnostics.error("wrong-type", node.span, message),
    }
}

/// The longest word, in bytes, that may be a misspelt key. Comparing words takes time with the square of their length.
const LONGEST_MISSPELT: usize = 200;

/// Says whether two words differ only in how they are divided, in their case, or in a letter or two.
fn is_misspelt(word: &str, meant: &str) -> bool {
    if word.len() > LONGEST_MISSPELT {
        return false;
    }
    let letters = |text: &str| text.to_lowercase().replace(['_', '-', ' '], "");
    let (word, meant) = (letters(word), letters(meant));
    // In a short word, one changed letter makes a different word.
    let most = match meant.chars().count() {
        0..=3 => 0,
        4..=6 => 1,
        _ => 2,
    };
    strsim::damerau_levenshtein(&word, &meant) <= most
}

/// Finds the known word that was perhaps meant.
pub fn closest_word<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    if word.len() > LONGEST_MISSPELT {
        return None;
    }
    known
        .iter()
        .map(|candidate| (strsim::jaro_winkler(&word.to_lowercase(), candidate), *candidate))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// The keys that readers ask for, recorded so that a test can compare them with the published schema.
#[cfg(any(test, feature = "test-helpers"))]
pub mod requested_keys {
    use std::cell::RefCell;
    use std::collections::BTreeSet;

    thread_local! {
        static ASKED: RefCell<BTreeSet<BTreeSet<&'static str>>> = RefCell::default();
    }

    /// Records the keys of a mapping that was read.
    pub fn record(keys: &[&'static str]) {
        ASKED.with_borrow_mut(|asked| asked.insert(keys.iter().copied().collect()));
    }

    /// Gives the keys of each mapping read on this thread since the last call.
    pub fn take() -> BTreeSet<BTreeSet<&'static str>> {
        ASKED.take()
    }
}
