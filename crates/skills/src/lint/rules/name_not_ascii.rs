//! The rule that a name has no letters beyond a to z.

use crate::lint::{LintFindings, LintRule, SkillFileDraft};
use practicum_core::model::Severity;

pub static RULE: LintRule = LintRule {
    code: "name-not-ascii",
    severity: Severity::Warning,
    summary: "A skill's name gets by with the letters a to z.",
    rationale: "The specification's text names a-z; its reference validator also accepts other lowercase \
          letters, and several agents do not. A name in a-z works everywhere.",
    bad_example: "name: übersetzung",
    good_example: "name: uebersetzung",
    convention: None,
    check,
};

fn check(draft: &SkillFileDraft, findings: &mut LintFindings<'_>) {
    let Some((name, span)) = draft.nonblank_text("name") else { return };
    if let Some(c) = name.chars().find(|c| !c.is_ascii() && c.is_alphanumeric()) {
        findings.add(span, format!("not every agent accepts {c:?} in a name"));
    }
}
