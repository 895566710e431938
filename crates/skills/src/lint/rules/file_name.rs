//! The rule that the file is called exactly SKILL.md.

use crate::lint::{Convention, LintFindings, LintRule, SkillFileDraft};
use crate::skill::SKILL_FILE;
use practicum_core::model::Severity;

pub static RULE: LintRule = LintRule {
    code: "file-name",
    severity: Severity::Error,
    summary: "The file is called SKILL.md, in exactly these letters.",
    rationale: "Agents look for this name. Where file names are case-sensitive, as on Linux and in most \
          containers, a skill.md is not found, and the skill silently does not exist.",
    bad_example: "release-notes/skill.md",
    good_example: "release-notes/SKILL.md",
    convention: Some(Convention::Frontmatter),
    check,
};

fn check(draft: &SkillFileDraft, findings: &mut LintFindings<'_>) {
    let Some(name) = draft.file.file_name() else { return };
    if name != SKILL_FILE {
        findings.add_with_help(
            None,
            format!("the file is called \"{}\"; agents look for {SKILL_FILE}", name.to_string_lossy()),
            format!("rename it to {SKILL_FILE}"),
        );
    }
}
