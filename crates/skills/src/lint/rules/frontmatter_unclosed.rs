use crate::lint::{Convention, Draft, Findings, Front, LintRule};
use practicum_core::model::Severity;

pub static RULE: LintRule = LintRule {
    code: "frontmatter-unclosed",
    severity: Severity::Error,
    summary: "The frontmatter ends with a line of three hyphens.",
    why: "Without the second --- nobody can tell where the frontmatter ends and the body begins, so \
          neither is read.",
    bad: "---\nname: release-notes\ndescription: Writes release notes. Use when asked for a changelog.\n\n# Release notes",
    good: "---\nname: release-notes\ndescription: Writes release notes. Use when asked for a changelog.\n---\n\n# Release notes",
    convention: Some(Convention::Frontmatter),
    check,
};

fn check(draft: &Draft, findings: &mut Findings<'_>) {
    if matches!(draft.front, Front::Unclosed) {
        findings.add_help(
            draft.fence(),
            "the frontmatter that begins here is never closed",
            "put a line --- below its last key",
        );
    }
}
