use super::blank;
use crate::lint::{Convention, Draft, Findings, LintRule};
use practicum_core::model::Severity;

pub static RULE: LintRule = LintRule {
    code: "name-missing",
    severity: Severity::Error,
    summary: "The frontmatter gives the skill a name.",
    why: "The specification requires it. Some agents fall back to the folder's name, others do not \
          load the skill.",
    bad: "---\ndescription: Writes release notes. Use when asked for a changelog.\n---",
    good: "---\nname: release-notes\ndescription: Writes release notes. Use when asked for a changelog.\n---",
    convention: Some(Convention::Frontmatter),
    check,
};

fn check(draft: &Draft, findings: &mut Findings<'_>) {
    if let Some(span) = blank(draft, "name") {
        findings.add_help(span, "the skill has no name", "add name: with the name of its folder");
    }
}
