//! The rule that SKILL.md begins with frontmatter.

use crate::lint::{Convention, DraftFrontmatter, LintFindings, LintRule, SkillFileDraft};
use practicum_core::model::{Severity, Span};

pub static RULE: LintRule = LintRule {
    code: "frontmatter-missing",
    severity: Severity::Error,
    summary: "SKILL.md begins with frontmatter: YAML between two lines of three hyphens.",
    rationale: "Name and description are in the frontmatter, and they are all that an agent sees until it \
          activates the skill. The first line of the file must be ---, with nothing before it and \
          nothing after it on that line.",
    bad_example: "# Release notes\n\nRead the commits you are given.",
    good_example: "---\nname: release-notes\ndescription: Writes release notes. Use when asked for a changelog.\n---\n\n# Release notes\n\nRead the commits you are given.",
    convention: Some(Convention::Frontmatter),
    check,
};

fn check(draft: &SkillFileDraft, findings: &mut LintFindings<'_>) {
    if !matches!(draft.frontmatter, DraftFrontmatter::Missing) {
        return;
    }
    let first_line = draft.text.find('\n').unwrap_or(draft.text.len());
    let late = draft.text.trim_start().starts_with("---");
    let help = if late {
        "the opening --- must be the whole first line of the file"
    } else {
        "begin the file with a line ---, then name: and description:, then a line ---"
    };
    findings.add_with_help(Span::new(0, first_line), "there is no frontmatter", help);
}
