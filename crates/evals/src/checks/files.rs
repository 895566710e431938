//! The check `files`: a file that the agent created, or wrote at all, matches a glob.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::file::{names_hidden_parts, unknown_files_finding};
use super::regex::decode_pattern;
use super::{Globs, PythonPattern, RuleKind, excerpt};
use practicum_core::model::{
    CheckEvidence, CheckFinding, CheckTarget, Diagnostics, FileChangeKind, NotScoredReason, RelPath, Rule,
};
use practicum_core::tree::{
    ObjectReader, TreeNode,
    json_schema::{self, MappingSchema},
    node_text,
};

pub static KIND: RuleKind = RuleKind {
    key: "files",
    doc: "the agent wrote a file whose path matches this glob, or with `matches` a pattern; with `created`, one \
          that was not there before; `exists: false` turns it round",
    schema,
    decode: |node, diagnostics| Some(Arc::new(FilesRule::decode(node, diagnostics)?)),
};

/// The rule of the check `files`: a glob, and what is expected of the files that match it.
#[derive(Debug, Clone)]
pub struct FilesRule {
    paths: PathPattern,
    /// Whether a file counts only if it was not there before.
    created: bool,
    exists: bool,
}

/// What the paths of files must match.
#[derive(Debug, Clone)]
enum PathPattern {
    Glob(String),
    /// A pattern over the list of paths, one in each line.
    Regex(PythonPattern),
}

impl FilesRule {
    /// Reads either the glob alone or `{path or matches, created, exists}`.
    fn decode(node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<Self> {
        if node.as_map().is_none() {
            let paths = PathPattern::Glob(decode_glob(node, diagnostics)?);
            return Some(Self { paths, created: false, exists: true });
        }
        let mut object = ObjectReader::new(node, KIND.key, diagnostics)?;
        let paths = match (object.get_non_null("path"), object.get_non_null("matches")) {
            (Some(_), Some(node)) => {
                diagnostics.error("contradiction", node.span, "\"path\" and \"matches\" cannot be together");
                None
            }
            (Some(node), None) => decode_glob(node, diagnostics).map(PathPattern::Glob),
            (None, Some(node)) => decode_pattern("matches", node, diagnostics).map(PathPattern::Regex),
            (None, None) => {
                object.report_missing("path", diagnostics);
                None
            }
        };
        let created = object.bool("created", diagnostics).unwrap_or(false);
        let exists = object.bool("exists", diagnostics).unwrap_or(true);
        object.reject_unknown_keys(KIND.key, diagnostics);
        Some(Self { paths: paths?, created, exists })
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
        let (key, pattern) = match &self.paths {
            PathPattern::Glob(glob) => ("path", glob.as_str()),
            PathPattern::Regex(pattern) => ("matches", pattern.source()),
        };
        let mut map = Map::from_iter([(key.to_owned(), json!(pattern))]);
        if self.created {
            map.insert("created".to_owned(), json!(true));
        }
        if !self.exists {
            map.insert("exists".to_owned(), json!(false));
        }
        Value::Object(map)
    }

    fn check(&self, evidence: &CheckEvidence<'_>) -> CheckFinding {
        if let Some(unknown) = unknown_files_finding(evidence.observation) {
            return unknown;
        }
        let counts = |change: FileChangeKind| match change {
            FileChangeKind::Created => true,
            FileChangeKind::Deleted => false,
            FileChangeKind::Changed => !self.created,
        };
        let written: Vec<&RelPath> = evidence
            .observation
            .files
            .iter()
            .filter(|file| counts(file.change))
            .map(|file| &file.path)
            .collect();
        let found = match &self.paths {
            PathPattern::Glob(glob) => self.find_by_glob(glob, &written),
            PathPattern::Regex(pattern) => find_by_pattern(pattern, &written),
        };
        let found = match found {
            Ok(found) => found,
            Err(why) => return CheckFinding::not_scored(NotScoredReason::CheckFailed(why)),
        };
        let verb = if self.created { "created" } else { "written" };
        let said = match found.as_slice() {
            [] => format!("no such file was {verb}"),
            paths => format!("{verb}: {}", excerpt(&paths.join(", "), 160)),
        };
        CheckFinding::new(found.is_empty() != self.exists, said)
    }
}

impl FilesRule {
    fn find_by_glob<'p>(&self, glob: &str, written: &[&'p RelPath]) -> Result<Vec<&'p str>, String> {
        let compiled = Globs::new(&[glob])?;
        // A file that must not be there counts also if its name begins with a dot.
        let is_named = |path| !self.exists || names_hidden_parts(glob, path);
        let found = written.iter().filter(|path| compiled.match_path(path) && is_named(path));
        Ok(found.map(|path| path.as_str()).collect())
    }
}

/// Gives the lines in which a pattern matches; those of the first match.
fn find_by_pattern<'p>(pattern: &PythonPattern, written: &[&'p RelPath]) -> Result<Vec<&'p str>, String> {
    let paths: Vec<&str> = written.iter().map(|path| path.as_str()).collect();
    let text = paths.join("\n");
    let range = pattern.find(&text).map_err(|too_hard| format!("the pattern {too_hard}"))?;
    let Some(range) = range else { return Ok(Vec::new()) };
    let line = text[..range.start].matches('\n').count();
    Ok(paths.get(line).or(paths.last()).copied().into_iter().chain(paths.is_empty().then_some("")).collect())
}

fn schema() -> Value {
    let glob = || json_schema::with_examples(json_schema::nonempty_text(), json!(["**/*.md"]));
    let mapping = MappingSchema::closed()
        .optional("path", "The glob; ** matches across folders.", glob())
        .optional(
            "matches",
            "A pattern (Python's `re` syntax) over the list of paths, one in each line.",
            json_schema::text(),
        )
        .with_keyword("oneOf", json!([{"required": ["path"]}, {"required": ["matches"]}]))
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
    use practicum_core::model::FileChange;

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
            ("{matches: '^new', created: true}", "pass"),
            ("{matches: 'old', created: true}", "fail"),
            ("{matches: 'old'}", "pass"),
            ("{matches: 'nothing', exists: false}", "pass"),
            ("{matches: '(?m)deep.md$', exists: false}", "fail"),
            ("{matches: a, path: a}", "refused"),
            ("{matches: '('}", "refused"),
            ("''", "refused"),
            ("'a[b'", "refused"),
            ("{created: true}", "refused"),
            ("[a]", "refused"),
        ] {
            check_run(&KIND, yaml, &run, expected);
        }
        // A file that nobody looked for is not absent.
        run.missing.files = true;
        check_run(&KIND, "{path: '*.js', exists: false}", &run, "not_scored");
    }
}
