//! The rule that a skill's body has at most 500 lines.

use crate::lint::{Convention, LintFindings, LintRule, SkillFileDraft};
use practicum_core::model::Severity;

const MAX_LINES: usize = 500;

pub static RULE: LintRule = LintRule {
    code: "body-too-long",
    severity: Severity::Warning,
    summary: "The body has at most 500 lines.",
    rationale: "The whole body is loaded whenever the skill is activated. The specification recommends to \
          stay below 500 lines and to move details into files that are read when they are needed.",
    bad_example: "SKILL.md with 900 lines",
    good_example: "SKILL.md with 120 lines, and references/api.md with the rest",
    convention: Some(Convention::Disclosure),
    check,
};

fn check(draft: &SkillFileDraft, findings: &mut LintFindings<'_>) {
    let body = draft.body().trim_end();
    let lines = body.lines().count();
    if lines > MAX_LINES {
        let at = body.match_indices('\n').nth(MAX_LINES - 1).map_or(0, |(at, _)| at + 1);
        findings.add_with_help(
            draft.body_span_at(at),
            format!("the body has {lines} lines; from here on it is more than {MAX_LINES}"),
            "move details into files below references/ and link to them",
        );
    }
}
