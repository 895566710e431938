use std::collections::HashSet;

use crate::lint::reference::{Standing, Target, standing, target};
use crate::lint::{Draft, Findings, LintRule};
use practicum_core::model::Severity;

pub static RULE: LintRule = LintRule {
    code: "link-broken",
    severity: Severity::Error,
    summary: "Every relative link leads to a file that is there.",
    why: "An agent that follows the link finds nothing, and goes on without what it was told to read. \
          Paths are relative to the folder of SKILL.md, with forward slashes.",
    bad: "See [the reference](references/comands.md).",
    good: "See [the reference](references/commands.md).",
    convention: None,
    check,
};

fn check(draft: &Draft, findings: &mut Findings<'_>) {
    let mut seen = HashSet::new();
    for link in &draft.page.links {
        let Target::Inside(path) = target(&link.target) else { continue };
        // A word like "url" stands for a link in documentation about links.
        let placeholder = !link.target.contains(['/', '.']);
        if placeholder || !seen.insert(path.clone()) {
            continue;
        }
        if standing(draft.folder(), &path) == Standing::Nothing {
            let message = format!("there is no \"{}\" in the skill", super::shortened(&link.target));
            if link.target.contains('\\') {
                findings.add_help(link.span, message, "write paths with forward slashes");
            } else {
                findings.add(link.span, message);
            }
        }
    }
}
