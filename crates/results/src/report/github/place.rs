use std::collections::HashMap;
use std::path::Path;

use crate::report::Results;
use crate::report::results::Questions;
use practicum_core::model::Diagnostics;
use practicum_core::tree::{Data, Node, Source};

/// Where a case stands, as GitHub names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Seen from the repository's root.
    pub file: String,
    /// From 1.
    pub line: usize,
}

/// Where cases stand in their eval files, as far as those are still what was run.
pub struct Places<'r> {
    results: &'r Results,
    questions: Questions<'r>,
    sources: HashMap<String, Option<Source>>,
}

impl<'r> Places<'r> {
    pub fn new(results: &'r Results) -> Self {
        Self { results, questions: results.questions(), sources: HashMap::new() }
    }

    pub fn of(&mut self, suite: &str, case: &str) -> Option<Place> {
        let origin = &self.results.info.suites.iter().find(|of| of.suite["name"] == *suite)?.origin;
        let read = || unchanged(&origin.path).filter(|source| source.digest() == origin.digest);
        let source = self.sources.entry(suite.to_owned()).or_insert_with(read).as_ref()?;
        let prompts = self.questions.prompts(suite, case);
        let node = named(&source.root, case).or_else(|| saying(&source.root, prompts.first()?));
        let line = node.map_or(1, |node| source.text[..node.span.start].matches('\n').count() + 1);
        Some(Place { file: in_repository(&origin.path), line })
    }
}

fn unchanged(path: &Path) -> Option<Source> {
    Source::read(path, &mut Diagnostics::default()).1
}

/// The mapping that calls itself so.
fn named<'n>(node: &'n Node, id: &str) -> Option<&'n Node> {
    let is_id = |node: &&Node| match &node.data {
        Data::Text(text) => text == id,
        Data::Int(number) => number.to_string() == id,
        Data::Null | Data::Bool(_) | Data::Float(_) | Data::List(_) | Data::Map(_) => false,
    };
    find(node, &|node| ["id", "name"].iter().any(|key| node.get(key).filter(is_id).is_some()))
}

/// The mapping that asks this.
fn saying<'n>(node: &'n Node, prompt: &str) -> Option<&'n Node> {
    find(node, &|node| {
        let entries = node.as_map().unwrap_or_default();
        entries.iter().any(|entry| entry.value.as_text() == Some(prompt))
    })
}

fn find<'n>(node: &'n Node, fits: &dyn Fn(&Node) -> bool) -> Option<&'n Node> {
    if fits(node) {
        return Some(node);
    }
    match &node.data {
        Data::List(items) => items.iter().find_map(|item| find(item, fits)),
        Data::Map(entries) => entries.iter().find_map(|entry| find(&entry.value, fits)),
        Data::Null | Data::Bool(_) | Data::Int(_) | Data::Float(_) | Data::Text(_) => None,
    }
}

/// The path below the checkout it lies in; all of it where it lies in none.
fn in_repository(path: &Path) -> String {
    let root = path.ancestors().find(|folder| folder.join(".git").exists());
    let below = root.and_then(|root| path.strip_prefix(root).ok()).unwrap_or(path);
    below.to_string_lossy().into_owned()
}
