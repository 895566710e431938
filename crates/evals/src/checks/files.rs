//! The check `files`: a file that the agent created, or wrote at all, matches a glob.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::file::names_hidden_parts;
use super::{Globs, RuleKind, excerpt};
use practicum_core::model::{
    CheckEvidence, CheckFinding, CheckTarget, Diagnostics, FileChangeKind, NotScoredReason, Rule,
};
use practicum_core::tree::{
    ObjectReader, TreeNode,
    json_schema::{self, MappingSchema},
    node_text,
};

pub static KIND: RuleKind = RuleKind {
    key: "files",
    doc: "the agent wrote a file whose path matches this glob; with `created`, one that was not there before; \
          `exists: false` turns it round",
    schema,
    decode: |node, diagnostics| Some(Arc::new(FilesRule::decode(node, diagnostics)?)),
};

/// The rule of the check `files`: a glob, and what is expected of the files that match it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilesRule {
    glob: String,
    /// Whether a file counts only if it was not there before.
    created: bool,
    exists: bool,
}

impl FilesRule {
    /// Reads either the glob alone or `{path, created, exists}`.
    fn decode(node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<Self> {
        if node.as_map().is_none() {
            return Some(Self { glob: decode_glob(node, diagnostics)?, created: false, exists: true });
        }
        let mut object = ObjectReader::new(node, KIND.key, diagnostics)?;
        let glob = match object.get_non_null("path") {
            Some(node) => decode_glob(node, diagnostics),
            None => {
                object.report_missing("path", diagnostics);
                None
            }
        };
        let created = object.bool("created", diagnostics).unwrap_or(false);
        let exists = object.bool("exists", diagnostics).unwrap_or(true);
        object.reject_unknown_keys(KIND.key, diagnostics);
        Some(Self { glob: glob?, created, exists })
    }
}

fn decode_glob(node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<String> {
    let glob = node_text(node, "path", diagnostics)?;
    if glob.trim().is_empty() {
        diagnostics.error("empty-text", node.span, "this matches no file");
        return None;
    }
    match Globs::new(&[glob]) {
        Ok(_) => Some(glob.to_owned()),
        Err(why) => {
            diagnostics.error("invalid-pattern", node.span, why);
            None
        }
    }
}

impl Rule for FilesRule {
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
        let mut map = Map::from_iter([("path".to_owned(), json!(self.glob))]);
        if self.created {
            map.insert("created".to_owned(), json!(true));
        }
        if !self.exists {
            map.insert("exists".to_owned(), json!(false));
        }
        Value::Object(map)
    }

    fn check(&self, evidence: &CheckEvidence<'_>) -> CheckFinding {
        let compiled = match Globs::new(&[&self.glob]) {
            Ok(compiled) => compiled,
            Err(why) => return CheckFinding::not_scored(NotScoredReason::CheckFailed(why)),
        };
        let counts = |change: FileChangeKind| match change {
            FileChangeKind::Created => true,
            FileChangeKind::Deleted => false,
            _ => !self.created,
        };
        // A file that must not be there counts also if its name begins with a dot.
        let is_named = |path| !self.exists || names_hidden_parts(&self.glob, path);
        let files = evidence.observation.files.iter().filter(|file| counts(file.change));
        let found: Vec<&str> = files
            .filter(|file| compiled.match_path(&file.path) && is_named(&file.path))
            .map(|file| file.path.as_str())
            .collect();
        let (verb, glob) = (if self.created { "created" } else { "written" }, excerpt(&self.glob, 80));
        let said = match found.as_slice() {
            [] => format!("no file was {verb} that matches {glob}"),
            paths => format!("{verb}: {}", excerpt(&paths.join(", "), 160)),
        };
        CheckFinding::new(found.is_empty() != self.exists, said)
    }
}

fn schema() -> Value {
    let glob = || json_schema::with_examples(json_schema::nonempty_text(), json!(["**/*.md"]));
    let mapping = MappingSchema::closed()
        .required("path", "The glob; ** matches across folders.", glob())
        .optional(
            "created",
            "Whether a file counts only if it was not there before the run.",
            json_schema::with_default(json_schema::boolean(), false),
        )
        .optional(
            "exists",
            "Whether there must be such a file, or must not.",
            json_schema::with_default(json_schema::boolean(), true),
        );
    json_schema::any_of([glob(), mapping.into()])
}

#[cfg(test)]
mod tests {
    use super::super::rule_tests::{check_run, run_with_output};
    use super::*;
    use practicum_core::model::{FileChange, RelPath};

    #[test]
    fn rows() {
        let mut run = run_with_output("");
        let change = |path: &str, change| FileChange {
            path: RelPath::new(path).expect("a plain path"),
            change,
            bytes: 1,
        };
        run.files = vec![
            change("new.md", FileChangeKind::Created),
            change("a/b/deep.md", FileChangeKind::Created),
            change("old.txt", FileChangeKind::Changed),
            change("gone.py", FileChangeKind::Deleted),
            change(".hidden/x.rs", FileChangeKind::Created),
        ];
        for (yaml, expected) in [
            ("new.md", "pass"),
            ("'*.md'", "pass"),
            ("'**/deep.md'", "pass"),
            ("deep.md", "fail"),
            ("old.txt", "pass"),
            ("{path: old.txt, created: true}", "fail"),
            ("{path: '*.md', created: true}", "pass"),
            ("{path: '*.md', exists: false}", "fail"),
            ("{path: '*.js', exists: false}", "pass"),
            ("gone.py", "fail"),
            ("'**/*.rs'", "fail"),
            ("{path: '**/*.rs', exists: false}", "fail"),
            ("''", "refused"),
            ("'a[b'", "refused"),
            ("{created: true}", "refused"),
            ("[a]", "refused"),
        ] {
            check_run(&KIND, yaml, &run, expected);
        }
    }
}
