//! The check `file`: a file in the workspace exists, or is absent, and has certain content. Also reads the files
//! that other checks look at.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::line_ends::text_for_rule;
use super::regex::decode_pattern;
use super::{Globs, PythonPattern, RuleKind, excerpt};
use practicum_core::model::{
    CheckEvidence, CheckFinding, CheckTarget, CheckedText, Diagnostics, FileChangeKind, NotScoredReason,
    Observation, RelPath, Rule, WorkspaceView,
};
use practicum_core::tree::{
    ObjectReader, TreeNode,
    json_schema::{self, MappingSchema},
    node_text,
};

pub static KIND: RuleKind = RuleKind {
    key: "file",
    doc: "a file in the workspace after the run: that it exists, or is absent, and what it says",
    schema,
    decode: |node, diagnostics| Some(Arc::new(FileRule::decode(node, diagnostics)?)),
};

/// The rule of the check `file`: a path, and what is expected there.
#[derive(Debug, Clone)]
pub struct FileRule {
    /// The path of the file in the workspace.
    pub path: RelPath,
    /// What the file must be like.
    pub expect: FileExpectation,
}

/// The expected state of a file.
#[derive(Debug, Clone)]
pub enum FileExpectation {
    /// The file does not exist.
    Absent,
    /// The file exists, and all of these conditions hold.
    Present {
        /// Texts that the file must contain.
        contains: Vec<String>,
        /// A pattern that must be found in the file.
        matches: Option<PythonPattern>,
    },
}

impl FileRule {
    /// Reads either the path alone or `{path, exists, contains, matches}`.
    fn decode(node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<Self> {
        let present = FileExpectation::Present { contains: Vec::new(), matches: None };
        if node.as_map().is_none() {
            let path = decode_path(node, diagnostics)?;
            return Some(Self { path, expect: present });
        }
        let mut object = ObjectReader::new(node, "file", diagnostics)?;
        let path = match object.get_non_null("path") {
            Some(path) => decode_path(path, diagnostics),
            None => {
                object.report_missing("path", diagnostics);
                None
            }
        };
        let exists = object.bool("exists", diagnostics).unwrap_or(true);
        let contains = object.texts("contains", diagnostics).unwrap_or_default();
        let matches_node = object.get_non_null("matches");
        let matches = matches_node.map(|node| decode_pattern("matches", node, diagnostics));
        object.reject_unknown_keys("file", diagnostics);
        if !exists && (!contains.is_empty() || matches.is_some()) {
            diagnostics.error(
                "contradiction",
                node.span,
                "a file that must not exist cannot contain anything",
            );
            return None;
        }
        let expect = if exists {
            let contains = contains.into_iter().map(|(text, _)| text.to_owned()).collect();
            let matches = match matches {
                Some(compiled) => Some(compiled?),
                None => None,
            };
            FileExpectation::Present { contains, matches }
        } else {
            FileExpectation::Absent
        };
        Some(Self { path: path?, expect })
    }
}

fn decode_path(node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<RelPath> {
    let text = node_text(node, "path", diagnostics)?;
    let path = RelPath::new(text);
    if path.is_none() {
        diagnostics.error("escaping-path", node.span, format!("{text:?} is not a path inside the workspace"));
    }
    path
}

impl Rule for FileRule {
    fn key(&self) -> &'static str {
        KIND.key
    }

    fn default_target(&self) -> CheckTarget {
        CheckTarget::WholeRun
    }

    fn reads_agent_output(&self) -> bool {
        false
    }

    fn value(&self) -> Value {
        let mut map = Map::new();
        map.insert("path".to_owned(), json!(self.path.as_str()));
        match &self.expect {
            FileExpectation::Absent => {
                map.insert("exists".to_owned(), json!(false));
            }
            FileExpectation::Present { contains, matches } => {
                if !contains.is_empty() {
                    map.insert("contains".to_owned(), json!(contains));
                }
                if let Some(pattern) = matches {
                    map.insert("matches".to_owned(), json!(pattern.source()));
                }
            }
        }
        Value::Object(map)
    }

    fn check(&self, evidence: &CheckEvidence<'_>) -> CheckFinding {
        let path = &self.path;
        let there = match evidence.workspace.exists(path) {
            Ok(there) => there,
            Err(error) => {
                return CheckFinding::not_scored(NotScoredReason::CheckFailed(format!("{path}: {error}")));
            }
        };
        let (contains, matches) = match &self.expect {
            FileExpectation::Absent if there => {
                return CheckFinding::new(false, format!("{path} exists, and must not"));
            }
            FileExpectation::Absent => return CheckFinding::new(true, format!("{path} does not exist")),
            FileExpectation::Present { .. } if !there => {
                return CheckFinding::new(false, format!("{path} does not exist"));
            }
            FileExpectation::Present { contains, matches } => (contains, matches),
        };
        if contains.is_empty() && matches.is_none() {
            return CheckFinding::new(true, format!("{path} exists"));
        }
        let text = match read_text(evidence.workspace, path) {
            Ok(CheckedText { unread: Some(why), .. }) => {
                return CheckFinding::not_scored(NotScoredReason::CheckFailed(why));
            }
            Ok(checked) => text_for_rule(self, checked.text),
            Err(finding) => return finding,
        };
        if let Some(missing) = contains.iter().find(|needle| !text.contains(needle.as_str())) {
            return CheckFinding::new(false, format!("{path} does not contain \"{}\"", excerpt(missing, 80)));
        }
        match matches.as_ref().map(|pattern| (pattern, pattern.find(&text))) {
            None => CheckFinding::new(true, format!("{path} says what it must")),
            Some((_, Ok(Some(range)))) => CheckFinding::new(true, format!("{path} says what it must"))
                .with_evidence(excerpt(&text[range], 160)),
            Some((pattern, Ok(None))) => {
                CheckFinding::new(false, format!("{path} does not match /{}/", excerpt(pattern.source(), 80)))
            }
            Some((pattern, Err(too_hard))) => CheckFinding::not_scored(NotScoredReason::CheckFailed(
                format!("/{}/ {too_hard}", excerpt(pattern.source(), 80)),
            )),
        }
    }
}

fn schema() -> Value {
    let path = || json_schema::with_examples(json_schema::nonempty_text(), json!(["NOTES.md"]));
    let file = MappingSchema::closed()
        .required("path", "The file, relative to the agent's working folder.", path())
        .optional(
            "exists",
            "Whether it must be there, or must not.",
            json_schema::with_default(json_schema::boolean(), true),
        )
        .optional(
            "contains",
            "A text that the file contains, or several that it all contains.",
            json_schema::text_or_texts(),
        )
        .optional(
            "matches",
            "A pattern that matches somewhere in it (Python's `re` syntax).",
            json_schema::text(),
        );
    json_schema::any_of([path(), file.into()])
}

/// Gives the text of one file, or the finding that it is missing or cannot be read.
pub fn read_text(
    workspace: &dyn WorkspaceView,
    path: &RelPath,
) -> Result<CheckedText<'static>, CheckFinding> {
    match workspace.read(path) {
        Ok(Some(bytes)) => Ok(text_of_bytes(bytes, path)),
        Ok(None) => {
            let why = workspace.describe_unreadable(path).unwrap_or("does not exist");
            Err(CheckFinding::new(false, format!("{path} {why}")))
        }
        Err(error) => Err(CheckFinding::not_scored(NotScoredReason::CheckFailed(format!(
            "cannot read {path}: {error}"
        )))),
    }
}

/// Turns the bytes of a file into text. If they are not UTF-8, the text is flagged as not fully read.
fn text_of_bytes(bytes: Vec<u8>, path: &RelPath) -> CheckedText<'static> {
    match String::from_utf8(bytes) {
        Ok(text) => CheckedText::without_path(text),
        Err(error) => CheckedText {
            unread: Some(format!("{path} is not UTF-8 text, so it cannot be read in full")),
            ..CheckedText::without_path(String::from_utf8_lossy(error.as_bytes()).into_owned())
        },
    }
}

/// Gives the finding for a run of which nobody knows which files the agent wrote; `None` for other runs.
pub fn unknown_files_finding(observation: &Observation) -> Option<CheckFinding> {
    let why = || NotScoredReason::CheckFailed("nothing shows which files the agent wrote".to_owned());
    observation.missing.files.then(|| CheckFinding::not_scored(why()))
}

/// Gives the text of the one file that the agent had to write. A file that was there before the run and did not
/// change does not count.
pub fn read_written_file(
    workspace: &dyn WorkspaceView,
    observation: &Observation,
    path: &RelPath,
) -> Result<CheckedText<'static>, CheckFinding> {
    if let Some(unknown) = unknown_files_finding(observation) {
        return Err(unknown);
    }
    let text = read_text(workspace, path)?;
    let is_work = |path: &RelPath| observation.files.iter().any(|file| file.path == *path);
    // The list of files has no links, but it has the files that they point to.
    if is_work(path) || workspace.link_target(path).is_some_and(|real| is_work(&real)) {
        return Ok(text);
    }
    Err(CheckFinding::new(false, format!("{path} was there before, and the agent did not write it")))
}

/// Gives the globs with wildcards that no created or changed file matches. (If a glob without wildcards matches no
/// file, its check fails.)
pub fn unmatched_globs<'g>(observation: &Observation, globs: &'g [String]) -> Vec<&'g str> {
    let is_written = |glob: &&String| {
        let Ok(compiled) = Globs::new(&[glob]) else { return true };
        let files = observation.files.iter().filter(|file| file.change != FileChangeKind::Deleted);
        let mut paths = files.map(|file| &file.path);
        paths.any(|path| compiled.match_path(path) && names_hidden_parts(glob, path))
    };
    globs.iter().filter(|glob| !is_written(glob)).map(String::as_str).collect()
}

/// Reads all created or changed files that match a glob, in order, each with its path.
pub fn read_matching(
    workspace: &dyn WorkspaceView,
    observation: &Observation,
    globs: &[String],
) -> Result<Vec<CheckedText<'static>>, CheckFinding> {
    let read = |path: &RelPath| {
        let text = read_text(workspace, path)?;
        Ok(CheckedText { path: Some(path.clone()), ..text })
    };
    written_files(observation, globs)?.into_iter().map(read).collect()
}

/// Gives all created or changed files that match a glob, in order. Gives a failure if there is none, because the agent
/// had to write them, and if a file named without wildcards was not written.
pub fn written_files<'o>(
    observation: &'o Observation,
    globs: &[String],
) -> Result<Vec<&'o RelPath>, CheckFinding> {
    if let Some(unknown) = unknown_files_finding(observation) {
        return Err(unknown);
    }
    let unclear = |why| CheckFinding::not_scored(NotScoredReason::CheckFailed(why));
    let wanted: Vec<(&String, Globs)> = globs
        .iter()
        .map(|glob| Ok((glob, Globs::new(&[glob])?)))
        .collect::<Result<_, _>>()
        .map_err(unclear)?;
    let written: Vec<&RelPath> = observation
        .files
        .iter()
        .filter(|file| file.change != FileChangeKind::Deleted)
        .map(|file| &file.path)
        .collect();
    let matches = |(glob, compiled): &(&String, Globs), path: &RelPath| {
        compiled.match_path(path) && names_hidden_parts(glob, path)
    };
    let is_literal = |glob: &str| !glob.contains(['*', '?', '[', '{', '\\']);
    for entry in wanted.iter().filter(|(glob, _)| is_literal(glob)) {
        if !written.iter().any(|path| matches(entry, path)) {
            return Err(CheckFinding::new(false, format!("{} was not written", entry.0)));
        }
    }
    let found: Vec<&RelPath> =
        written.into_iter().filter(|path| wanted.iter().any(|entry| matches(entry, path))).collect();
    if found.is_empty() {
        return Err(CheckFinding::new(
            false,
            format!("no file was created or changed that matches {}", globs.join(", ")),
        ));
    }
    Ok(found)
}

/// Says whether a glob names the hidden parts of a path explicitly. As in Python and in shells, a wildcard at the
/// beginning of a name does not match a dot.
pub fn names_hidden_parts(glob: &str, path: &RelPath) -> bool {
    let hidden = |text: &str| text.split('/').filter(|part| part.starts_with('.') && *part != ".").count();
    hidden(path.as_str()) <= hidden(glob)
}

#[cfg(test)]
mod tests {
    use super::super::rule_tests::{FolderWorkspace, decode, run_rule, run_with_output};
    use super::KIND;

    #[test]
    fn rows() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("a.md"), "# Title\n\ntext\n").expect("a file");
        let view = FolderWorkspace(folder.path().to_owned());
        for (yaml, expected) in [
            ("a.md", "pass"),
            ("b.md", "fail"),
            ("{path: a.md, exists: false}", "fail"),
            ("{path: b.md, exists: false}", "pass"),
            ("{path: a.md, contains: Title}", "pass"),
            ("{path: a.md, contains: [Title, none]}", "fail"),
            ("{path: a.md, matches: '(?m)^text$'}", "pass"),
            ("{path: a.md, matches: '^text$'}", "fail"),
            ("{path: b.md, contains: x}", "fail"),
            ("{path: a.md, exists: false, contains: x}", "refused"),
            ("../a.md", "refused"),
            ("{contains: x}", "refused"),
            ("{path: a.md, matches: '['}", "refused"),
        ] {
            let found = match decode(&KIND, yaml) {
                Ok(rule) => run_rule(rule.as_ref(), &run_with_output(""), &view).verdict.name(),
                Err(_) => "refused",
            };
            assert_eq!(found, expected, "{yaml}");
        }
    }
}
