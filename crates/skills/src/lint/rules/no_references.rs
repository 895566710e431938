//! The rule that a long body moves details into other files.

use crate::lint::reference::{LinkTarget, classify_link, find_mentions};
use crate::lint::{Convention, LintFindings, LintRule, SkillFileDraft};
use practicum_core::model::Severity;

const MAX_LINES_WITHOUT_REFERENCE: usize = 300;

pub static RULE: LintRule = LintRule {
    code: "no-references",
    severity: Severity::Notice,
    summary: "A long body moves details into files that are read when they are needed.",
    rationale: "A skill is read in three steps: its description always, its body when it is activated, its \
          other files when the body sends the agent there. A body of more than 300 lines that refers \
          to no other file uses only two of them.",
    bad_example: "SKILL.md with 400 lines, the whole API reference among them",
    good_example: "For the options of each command see [the reference](references/commands.md).",
    convention: Some(Convention::Disclosure),
    check,
};

fn check(draft: &SkillFileDraft, findings: &mut LintFindings<'_>) {
    let lines = draft.body().trim_end().lines().count();
    let refers = || {
        draft.markdown.links.iter().any(|link| matches!(classify_link(&link.target), LinkTarget::Inside(_)))
            || !find_mentions(draft).is_empty()
    };
    if lines > MAX_LINES_WITHOUT_REFERENCE && !refers() {
        findings.add_with_help(
            draft.first_body_line(),
            format!("the body has {lines} lines and refers to no other file of the skill"),
            "move what is not always needed into files below references/",
        );
    }
}
