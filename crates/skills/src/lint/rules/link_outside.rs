use std::collections::HashSet;

use crate::lint::reference::{Standing, Target, standing, target};
use crate::lint::{Draft, Findings, LintRule};
use practicum_core::model::Severity;

pub static RULE: LintRule = LintRule {
    code: "link-outside",
    severity: Severity::Error,
    summary: "No link leads out of the skill's folder.",
    why: "A skill is installed by copying its folder. What lies outside is not there any more, or is \
          something else: a path like ../../etc/passwd may even lead an agent to a file that is none \
          of the skill's business. Links through symbolic links count.",
    bad: "See [the house style](../../docs/style.md).",
    good: "See [the house style](references/style.md).",
    convention: None,
    check,
};

fn check(draft: &Draft, findings: &mut Findings<'_>) {
    let mut seen = HashSet::new();
    for link in draft.page.links.iter().filter(|link| seen.insert(&link.target)) {
        let leads_out = match target(&link.target) {
            Target::Outside => Some("leads out of the skill's folder"),
            Target::Inside(path) => (standing(draft.folder(), &path) == Standing::Outside)
                .then_some("leads out of the skill's folder through a symbolic link"),
            Target::Elsewhere | Target::Unclear => None,
        };
        if let Some(how) = leads_out {
            findings.add_help(
                link.span,
                format!("\"{}\" {how}", super::shortened(&link.target)),
                "copy the file into the skill, or name the other skill in words",
            );
        }
    }
}
