//! Reads files that are parts of one eval. Their problems have no position in the eval file, so each names its file.

use std::path::Path;

use super::super::EvalFolder;
use practicum_core::model::{Diagnostic, Diagnostics, RelPath};
use practicum_core::tree::{SourceFile, SourceSyntax, TreeNode};
use practicum_skills::skill::split_frontmatter;

/// Reads the text of a file of an eval. A file that cannot be read is reported.
pub fn read_part_text(folder: &EvalFolder, path: &str, diagnostics: &mut Diagnostics) -> Option<String> {
    let read = match RelPath::new(path) {
        Some(path) => folder.read_text(&path).map_err(|error| error.to_string()),
        None => Err("it is not a path inside the folder of the eval".to_owned()),
    };
    match read {
        Ok(text) => Some(text),
        Err(why) => {
            diagnostics.error("unreadable-file", None, format!("{path}: {why}"));
            None
        }
    }
}

/// Parses a part of an eval; `name` is what its problems are reported under.
pub fn parse_part(
    name: &str,
    path: &Path,
    text: String,
    syntax: SourceSyntax,
    diagnostics: &mut Diagnostics,
) -> Option<SourceFile> {
    let mut problems = Diagnostics::default();
    let source = SourceFile::parse(path, text.clone(), syntax, &mut problems);
    report_part(name, &text, problems, diagnostics);
    source
}

/// Adds the problems of a part, each with the name of its file and its line.
pub fn report_part(name: &str, text: &str, problems: Diagnostics, diagnostics: &mut Diagnostics) {
    for problem in problems.iter() {
        let place = problem.span.map(|span| span.position(text).line);
        let place = place.map_or_else(|| name.to_owned(), |line| format!("{name}, line {line}"));
        diagnostics.push(Diagnostic {
            message: format!("{place}: {}", problem.message),
            span: None,
            ..problem.clone()
        });
    }
}

/// A Markdown file with a frontmatter.
pub struct MarkdownPart {
    /// The text of the frontmatter, for positions.
    pub front_text: String,
    /// The frontmatter; an empty mapping if there is none.
    pub front: TreeNode,
    /// Whether there is a frontmatter.
    pub has_front: bool,
    /// The text after the frontmatter, without blank lines around it.
    pub body: String,
}

/// Splits a Markdown file into frontmatter and body.
pub fn parse_markdown(
    name: &str,
    path: &Path,
    text: &str,
    diagnostics: &mut Diagnostics,
) -> Option<MarkdownPart> {
    let (front, body) = split_frontmatter(text);
    let has_front = front.is_some();
    let front_text = front.filter(|front| !front.trim().is_empty()).unwrap_or("{}").to_owned();
    let source = parse_part(name, path, front_text.clone(), SourceSyntax::Yaml, diagnostics)?;
    Some(MarkdownPart { front_text, front: source.root, has_front, body: body.trim().to_owned() })
}
