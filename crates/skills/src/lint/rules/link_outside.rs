//! The rule that no link leads out of the skill's folder.

use std::collections::HashSet;

use crate::lint::reference::{LinkTarget, ReferencedPath, classify_link, resolve_reference};
use crate::lint::{LintFindings, LintRule, SkillFileDraft};
use practicum_core::model::Severity;

pub static RULE: LintRule = LintRule {
    code: "link-outside",
    severity: Severity::Error,
    summary: "No link leads out of the skill's folder.",
    rationale: "A skill is installed by copying its folder. What lies outside is not there any more, or is \
          something else: a path like ../../etc/passwd may even lead an agent to a file that is none \
          of the skill's business. Links through symbolic links count.",
    bad_example: "See [the house style](../../docs/style.md).",
    good_example: "See [the house style](references/style.md).",
    convention: None,
    check,
};

fn check(draft: &SkillFileDraft, findings: &mut LintFindings<'_>) {
    let mut seen = HashSet::new();
    for link in draft.markdown.links.iter().filter(|link| seen.insert(&link.target)) {
        let leads_out = match classify_link(&link.target) {
            LinkTarget::Outside => Some("leads out of the skill's folder"),
            LinkTarget::Inside(path) => (resolve_reference(draft.folder(), &path) == ReferencedPath::Outside)
                .then_some("leads out of the skill's folder through a symbolic link"),
            LinkTarget::External | LinkTarget::Placeholder => None,
        };
        if let Some(how) = leads_out {
            findings.add_with_help(
                link.span,
                format!("\"{}\" {how}", super::shorten_quote(&link.target)),
                "copy the file into the skill, or name the other skill in words",
            );
        }
    }
}
