use super::name_too_long::LONGEST;
use crate::lint::prose::to_kebab;
use crate::lint::{Convention, Draft, Findings, LintRule};
use crate::skill::{Form, place_name};
use practicum_core::model::Severity;

pub static RULE: LintRule = LintRule {
    code: "name-folder",
    severity: Severity::Error,
    summary: "A skill is called as its folder is.",
    why: "The specification requires it: some agents know a skill by its folder, some by its name, and \
          evals, commands and cross-references break where the two differ.",
    bad: "notes/SKILL.md:\n\n---\nname: release-notes",
    good: "release-notes/SKILL.md:\n\n---\nname: release-notes",
    convention: Some(Convention::Frontmatter),
    check,
};

fn check(draft: &Draft, findings: &mut Findings<'_>) {
    let Some((name, span)) = draft.said("name") else { return };
    let folder = place_name(&draft.file, Form::Folder);
    // A name that only breaks the rules for names is that rule's to report.
    let same_but_misspelled = to_kebab(name, LONGEST).as_ref() == Some(&folder);
    if name != folder && !same_but_misspelled {
        findings.add_help(
            span,
            format!("the skill is called \"{}\" and its folder \"{folder}\"", super::shortened(name)),
            "rename one of them",
        );
    }
}
