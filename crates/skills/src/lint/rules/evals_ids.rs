//! The rule that cases in evals/evals.json have unique ids in kebab-case.

use std::collections::HashSet;
use std::path::Path;

use crate::lint::prose::{is_kebab, to_kebab};
use crate::lint::reference::{ReferencedPath, resolve_reference};
use crate::lint::{LintFindings, LintRule, SkillFileDraft};
use practicum_core::model::{Diagnostics, Severity};
use practicum_core::tree::{SourceFile, TreeNode};

const EVALS_FILE: &str = "evals/evals.json";

pub static RULE: LintRule = LintRule {
    code: "evals-ids",
    severity: Severity::Warning,
    summary: "The cases in evals/evals.json have ids in kebab-case, each its own.",
    rationale: "Ids become file names and words on a command line, and results are compared by them. Numbers \
          are left alone, because some formats want them. Whether the file is valid at all is for \
          `practicum check` to say.",
    bad_example: "{\"id\": \"Case 1: Docker\", \"prompt\": \"…\"}",
    good_example: "{\"id\": \"docker-deployment\", \"prompt\": \"…\"}",
    convention: None,
    check,
};

fn check(draft: &SkillFileDraft, findings: &mut LintFindings<'_>) {
    let ReferencedPath::File(path) = resolve_reference(draft.folder(), Path::new(EVALS_FILE)) else { return };
    let (text, source) = SourceFile::read(&path, &mut Diagnostics::default());
    let Some(source) = source else { return };
    let mut seen = HashSet::new();
    for case in case_nodes(&source.root) {
        let Some(node) = case.get("id") else { continue };
        let Some(id) = node.as_text() else { continue };
        let position = node.span.position(&text);
        let place = format!("{EVALS_FILE}, line {}, column {}", position.line, position.column);
        let shown = super::shorten_quote(id);
        if !is_kebab(id) {
            let message = format!("{place}: the id \"{shown}\" is not in kebab-case");
            match to_kebab(id, 64) {
                Some(better) => findings.add_with_help(None, message, format!("\"{better}\" would do")),
                None => findings.add(None, message),
            }
        }
        if !seen.insert(id) {
            findings.add(None, format!("{place}: the id \"{shown}\" is used a second time"));
        }
    }
}

/// Gives the list of cases, under any of the keys that formats use.
fn case_nodes(root: &TreeNode) -> &[TreeNode] {
    let list = root.get("cases").or_else(|| root.get("evals")).unwrap_or(root);
    list.as_list().unwrap_or_default()
}
