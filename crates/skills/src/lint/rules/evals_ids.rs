use std::collections::HashSet;
use std::path::Path;

use crate::lint::prose::{is_kebab, to_kebab};
use crate::lint::reference::{Standing, standing};
use crate::lint::{Draft, Findings, LintRule};
use practicum_core::model::{Diagnostics, Severity};
use practicum_core::tree::{Node, Source};

const EVALS: &str = "evals/evals.json";

pub static RULE: LintRule = LintRule {
    code: "evals-ids",
    severity: Severity::Warning,
    summary: "The cases in evals/evals.json have ids in kebab-case, each its own.",
    why: "Ids become file names and words on a command line, and results are compared by them. Numbers \
          are left alone, because some formats want them. Whether the file is valid at all is for \
          `practicum check` to say.",
    bad: "{\"id\": \"Case 1: Docker\", \"prompt\": \"…\"}",
    good: "{\"id\": \"docker-deployment\", \"prompt\": \"…\"}",
    convention: None,
    check,
};

fn check(draft: &Draft, findings: &mut Findings<'_>) {
    let Standing::File(path) = standing(draft.folder(), Path::new(EVALS)) else { return };
    let (text, source) = Source::read(&path, &mut Diagnostics::default());
    let Some(source) = source else { return };
    let mut seen = HashSet::new();
    for case in cases(&source.root) {
        let Some(node) = case.get("id") else { continue };
        let Some(id) = node.as_text() else { continue };
        let position = node.span.position(&text);
        let place = format!("{EVALS}, line {}, column {}", position.line, position.column);
        let shown = super::shortened(id);
        if !is_kebab(id) {
            let message = format!("{place}: the id \"{shown}\" is not in kebab-case");
            match to_kebab(id, 64) {
                Some(better) => findings.add_help(None, message, format!("\"{better}\" would do")),
                None => findings.add(None, message),
            }
        }
        if !seen.insert(id) {
            findings.add(None, format!("{place}: the id \"{shown}\" is used a second time"));
        }
    }
}

/// The list of cases, whatever the format calls it.
fn cases(root: &Node) -> &[Node] {
    let list = root.get("cases").or_else(|| root.get("evals")).unwrap_or(root);
    list.as_list().unwrap_or_default()
}
