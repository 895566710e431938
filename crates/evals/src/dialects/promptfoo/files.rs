//! Files that a promptfoo config names with `file://`, and assertions that it names with `$ref`.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::super::EvalFileLocation;
use super::super::reading;
use practicum_core::model::Diagnostics;
use practicum_core::tree::{SourceFile, SourceSyntax, TreeNode, read_bounded};
use practicum_skills::skill::normalise_path;

/// The largest file that a config may name.
const LARGEST_FILE: u64 = 1024 * 1024;

/// Reads what a config names: files below its folder or its project, and its own templates.
pub struct ConfigFiles<'r> {
    pub source: &'r SourceFile,
    pub place: &'r EvalFileLocation,
}

impl ConfigFiles<'_> {
    /// Gives the full path of a file that the config names. A file outside the project is an error.
    pub fn full_path(&self, path: &str) -> Result<PathBuf, String> {
        let full = normalise_path(&self.source.folder().join(path));
        match reading::lies_in_none(&[&self.place.project, &self.place.root, self.source.folder()], &full) {
            true => Err(format!("{path} lies outside the project")),
            false => Ok(full),
        }
    }

    /// Reads a text file that the config names.
    pub fn read_text(&self, path: &str) -> Result<String, String> {
        let bytes =
            read_bounded(&self.full_path(path)?, LARGEST_FILE).map_err(|why| format!("{path}: {why}"))?;
        String::from_utf8(bytes).map_err(|_| format!("{path} is not UTF-8 text"))
    }

    /// Reads a script that the config names: its full path, and its text.
    pub fn read_script(&self, path: &str) -> Result<(String, String), String> {
        let full = self.full_path(path)?;
        Ok((full.to_string_lossy().into_owned(), self.read_text(path)?))
    }

    /// Reads a value from a file: the content of JSON and YAML, the text of others.
    pub fn read_value(&self, path: &str) -> Result<Value, String> {
        let ending = Path::new(path).extension().map(|ending| ending.to_string_lossy().to_lowercase());
        match ending.as_deref() {
            Some("json" | "yaml" | "yml") => Ok(self.read_document(path)?.root.to_value()),
            Some("js" | "cjs" | "mjs" | "ts" | "py" | "rb") => {
                Err(format!("{path} is code that makes a value, which is not run here"))
            }
            Some("pdf" | "png" | "jpg" | "jpeg" | "gif" | "webp" | "mp4" | "mp3" | "wav") => {
                Err(format!("{path} is no text"))
            }
            Some(_) | None => Ok(Value::String(self.read_text(path)?.trim().to_owned())),
        }
    }

    /// Parses a JSON, JSONL or YAML file that the config names.
    pub fn read_document(&self, path: &str) -> Result<SourceFile, String> {
        let full = self.full_path(path)?;
        let text = self.read_text(path)?;
        let syntax = SourceSyntax::detect(&full, &text);
        let mut problems = Diagnostics::default();
        let source = SourceFile::parse(&full, text, syntax, &mut problems).filter(|_| !problems.has_errors());
        source.ok_or_else(|| {
            let first = problems.iter().next().map(|problem| problem.message.clone()).unwrap_or_default();
            format!("{path} cannot be read: {first}")
        })
    }

    /// Gives the assertion that a node stands for: one of the templates of the config, or itself.
    pub fn dereference<'n>(&'n self, node: &'n TreeNode) -> Result<&'n TreeNode, String> {
        let Some(reference) = node.get("$ref").and_then(TreeNode::as_text) else { return Ok(node) };
        let mut found = &self.source.root;
        for part in reference.trim_start_matches("#/").split('/') {
            found = found.get(part).ok_or_else(|| format!("{reference} is not in the config"))?;
        }
        match found.has("$ref") {
            true => Err(format!("{reference} stands for another reference")),
            false => Ok(found),
        }
    }
}
