//! Source files: reading, syntax detection, and parsing into a tree.

use std::path::{Path, PathBuf};

use super::{TreeNode, json, read_bounded, yaml};
use crate::model::{Diagnostics, Digest, Span};

/// The largest file that is read. Eval files are smaller; a larger file was named by mistake or in malice.
const MAX_FILE_SIZE: u64 = 32 * 1024 * 1024;

/// A file's text and its tree.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// The path of the file.
    pub path: PathBuf,
    /// The text of the file.
    pub text: String,
    /// The document.
    pub root: TreeNode,
}

/// The syntax of a source file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceSyntax {
    /// JSON.
    Json,
    /// One JSON value in each line. The document is the list of them.
    JsonLines,
    /// YAML.
    Yaml,
}

impl SourceSyntax {
    /// Detects the syntax by the file's extension, otherwise by how the text begins.
    pub fn detect(path: &Path, text: &str) -> Self {
        let ending = path.extension().and_then(|ending| ending.to_str()).map(str::to_lowercase);
        match ending.as_deref() {
            Some("json") => SourceSyntax::Json,
            Some("jsonl" | "ndjson") => SourceSyntax::JsonLines,
            Some("yaml" | "yml") => SourceSyntax::Yaml,
            _ if text.trim_start().starts_with(['{', '[']) => SourceSyntax::Json,
            _ => SourceSyntax::Yaml,
        }
    }
}

const BYTE_ORDER_MARK: char = '\u{feff}';

impl SourceFile {
    /// Reads and parses a file. On failure it gives the text that was read, so that an excerpt can be shown with
    /// the problem.
    pub fn read(path: &Path, diagnostics: &mut Diagnostics) -> (String, Option<SourceFile>) {
        let text = match read_text(path, diagnostics) {
            Some(text) => text,
            None => return (String::new(), None),
        };
        let source = SourceFile::parse(path, text.clone(), SourceSyntax::detect(path, &text), diagnostics);
        (text, source)
    }

    /// Parses a text. Reports errors of syntax, and then gives `None`.
    pub fn parse(
        path: &Path,
        text: String,
        syntax: SourceSyntax,
        diagnostics: &mut Diagnostics,
    ) -> Option<SourceFile> {
        let root = match syntax {
            // Most readers of JSON refuse a byte order mark, so a file that has one would not work elsewhere.
            SourceSyntax::Json | SourceSyntax::JsonLines if text.starts_with(BYTE_ORDER_MARK) => {
                let at = Span::new(0, BYTE_ORDER_MARK.len_utf8());
                let help = "save the file as UTF-8 without a byte order mark";
                diagnostics.error_with_help(
                    "byte-order-mark",
                    at,
                    "JSON begins with a byte order mark",
                    help,
                );
                return None;
            }
            SourceSyntax::Json => json::parse(&text, diagnostics),
            SourceSyntax::JsonLines => json::parse_lines(&text, diagnostics),
            SourceSyntax::Yaml => yaml::parse(&text, diagnostics),
        }?;
        Some(SourceFile { path: path.to_owned(), text, root })
    }

    /// Gives the digest of the text.
    pub fn digest(&self) -> Digest {
        Digest::of_bytes(self.text.as_bytes())
    }

    /// Gives the folder that relative paths in the file start from.
    pub fn folder(&self) -> &Path {
        match self.path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        }
    }
}

fn read_text(path: &Path, diagnostics: &mut Diagnostics) -> Option<String> {
    let bytes = match read_bounded(path, MAX_FILE_SIZE) {
        Ok(bytes) => bytes,
        Err(problem) => {
            diagnostics.error("unreadable-file", None, format!("cannot read {}: {problem}", path.display()));
            return None;
        }
    };
    match String::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            let valid = String::from_utf8_lossy(&error.as_bytes()[..at]).into_owned();
            let position = Span::new(at, at).position(&valid);
            diagnostics.error_with_help(
                "invalid-utf8",
                None,
                format!(
                    "not UTF-8 text: line {}, column {} is where it breaks",
                    position.line, position.column
                ),
                "save the file as UTF-8",
            );
            None
        }
    }
}
