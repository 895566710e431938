//! The positions of cases in their eval files.

use std::collections::HashMap;
use std::path::Path;

use crate::report::RunResults;
use crate::report::run_results::CaseTexts;
use practicum_core::model::Diagnostics;
use practicum_core::tree::{NodeData, SourceFile, TreeNode};

/// The position of a case, in the form that GitHub uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseLocation {
    /// The path from the repository's root.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
}

/// A search for the positions of cases in their eval files, as long as these are unchanged since the run.
pub struct CaseLocations<'r> {
    results: &'r RunResults,
    case_texts: CaseTexts<'r>,
    sources: HashMap<String, Option<SourceFile>>,
}

impl<'r> CaseLocations<'r> {
    pub fn new(results: &'r RunResults) -> Self {
        Self { results, case_texts: results.case_texts(), sources: HashMap::new() }
    }

    /// Finds the position of a case in its eval file.
    pub fn locate(&mut self, suite: &str, case: &str) -> Option<CaseLocation> {
        let origin = &self.results.info.suite(suite)?.suite.origin;
        let read = || read_if_unchanged(&origin.path).filter(|source| source.digest() == origin.digest);
        let source = self.sources.entry(suite.to_owned()).or_insert_with(read).as_ref()?;
        let prompts = self.case_texts.prompts(suite, case);
        let node = find_by_id(&source.root, case).or_else(|| find_by_prompt(&source.root, prompts.first()?));
        let line = node.map_or(1, |node| source.text[..node.span.start].matches('\n').count() + 1);
        Some(CaseLocation { file: path_in_repository(&origin.path), line })
    }
}

fn read_if_unchanged(path: &Path) -> Option<SourceFile> {
    SourceFile::read(path, &mut Diagnostics::default()).1
}

/// Finds the mapping with this id.
fn find_by_id<'n>(node: &'n TreeNode, id: &str) -> Option<&'n TreeNode> {
    let is_id = |node: &&TreeNode| match &node.data {
        NodeData::Text(text) => text == id,
        NodeData::Int(number) => number.to_string() == id,
        NodeData::Null | NodeData::Bool(_) | NodeData::Float(_) | NodeData::List(_) | NodeData::Map(_) => {
            false
        }
    };
    find_mapping(node, &|node| ["id", "name"].iter().any(|key| node.get(key).filter(is_id).is_some()))
}

/// Finds the mapping with this prompt.
fn find_by_prompt<'n>(node: &'n TreeNode, prompt: &str) -> Option<&'n TreeNode> {
    find_mapping(node, &|node| {
        let entries = node.as_map().unwrap_or_default();
        entries.iter().any(|entry| entry.value.as_text() == Some(prompt))
    })
}

fn find_mapping<'n>(node: &'n TreeNode, fits: &dyn Fn(&TreeNode) -> bool) -> Option<&'n TreeNode> {
    if fits(node) {
        return Some(node);
    }
    match &node.data {
        NodeData::List(items) => items.iter().find_map(|item| find_mapping(item, fits)),
        NodeData::Map(entries) => entries.iter().find_map(|entry| find_mapping(&entry.value, fits)),
        NodeData::Null | NodeData::Bool(_) | NodeData::Int(_) | NodeData::Float(_) | NodeData::Text(_) => {
            None
        }
    }
}

/// Gives the path below the checkout that contains it; the whole path if there is none.
fn path_in_repository(path: &Path) -> String {
    let root = path.ancestors().find(|folder| folder.join(".git").exists());
    let below = root.and_then(|root| path.strip_prefix(root).ok()).unwrap_or(path);
    below.to_string_lossy().into_owned()
}
