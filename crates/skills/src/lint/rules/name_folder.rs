//! The rule that a skill has the name of its folder.

use super::name_too_long::MAX_NAME_LENGTH;
use crate::lint::prose::to_kebab;
use crate::lint::{Convention, LintFindings, LintRule, SkillFileDraft};
use crate::skill::{SkillForm, name_from_path};
use practicum_core::model::Severity;

pub static RULE: LintRule = LintRule {
    code: "name-folder",
    severity: Severity::Error,
    summary: "A skill is called as its folder is.",
    rationale: "The specification requires it: some agents know a skill by its folder, some by its name, and \
          evals, commands and cross-references break where the two differ.",
    bad_example: "notes/SKILL.md:\n\n---\nname: release-notes",
    good_example: "release-notes/SKILL.md:\n\n---\nname: release-notes",
    convention: Some(Convention::Frontmatter),
    check,
};

fn check(draft: &SkillFileDraft, findings: &mut LintFindings<'_>) {
    let Some((name, span)) = draft.nonblank_text("name") else { return };
    let folder = name_from_path(&draft.file, SkillForm::Folder);
    // If the name differs only by characters that names must not have, the rule for names reports it.
    let same_but_misspelled = to_kebab(name, MAX_NAME_LENGTH).as_ref() == Some(&folder);
    if name != folder && !same_but_misspelled {
        findings.add_with_help(
            span,
            format!("the skill is called \"{}\" and its folder \"{folder}\"", super::shorten_quote(name)),
            "rename one of them",
        );
    }
}
