//! The rule that every relative link leads to an existing file.

use std::collections::HashSet;

use crate::lint::reference::{LinkTarget, ReferencedPath, classify_link, resolve_reference};
use crate::lint::{LintFindings, LintRule, SkillFileDraft};
use practicum_core::model::Severity;

pub static RULE: LintRule = LintRule {
    code: "link-broken",
    severity: Severity::Error,
    summary: "Every relative link leads to a file that is there.",
    rationale: "An agent that follows the link finds nothing, and continues without the text that it should read. \
          Paths are relative to the folder of SKILL.md, with forward slashes.",
    bad_example: "See [the reference](references/comands.md).",
    good_example: "See [the reference](references/commands.md).",
    convention: None,
    check,
};

fn check(draft: &SkillFileDraft, findings: &mut LintFindings<'_>) {
    let mut seen = HashSet::new();
    for link in &draft.markdown.links {
        let LinkTarget::Inside(path) = classify_link(&link.target) else { continue };
        // Documentation about links uses a word like "url" as a placeholder.
        let placeholder = !link.target.contains(['/', '.']);
        if placeholder || !seen.insert(path.clone()) {
            continue;
        }
        if resolve_reference(draft.folder(), &path) == ReferencedPath::Nothing {
            let message = format!("there is no \"{}\" in the skill", super::shorten_quote(&link.target));
            if link.target.contains('\\') {
                findings.add_with_help(link.span, message, "write paths with forward slashes");
            } else {
                findings.add(link.span, message);
            }
        }
    }
}
