use crate::lint::{Convention, Draft, Findings, LintRule};
use practicum_core::model::Severity;

const MOST_LINES: usize = 500;

pub static RULE: LintRule = LintRule {
    code: "body-too-long",
    severity: Severity::Warning,
    summary: "The body has at most 500 lines.",
    why: "The whole body is loaded whenever the skill is taken up. The specification recommends to \
          stay below 500 lines and to move details into files that are read when they are needed.",
    bad: "SKILL.md with 900 lines",
    good: "SKILL.md with 120 lines, and references/api.md with the rest",
    convention: Some(Convention::Disclosure),
    check,
};

fn check(draft: &Draft, findings: &mut Findings<'_>) {
    let body = draft.body().trim_end();
    let lines = body.lines().count();
    if lines > MOST_LINES {
        let at = body.match_indices('\n').nth(MOST_LINES - 1).map_or(0, |(at, _)| at + 1);
        findings.add_help(
            draft.in_body(at),
            format!("the body has {lines} lines; from here on it is more than {MOST_LINES}"),
            "move details into files below references/ and link to them",
        );
    }
}
