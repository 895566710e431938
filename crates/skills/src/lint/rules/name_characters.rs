//! The rule that a name has only lowercase letters, digits and single hyphens.

use super::name_too_long::MAX_NAME_LENGTH;
use crate::lint::prose::to_kebab;
use crate::lint::{Convention, LintFindings, LintRule, SkillFileDraft};
use practicum_core::model::Severity;

pub static RULE: LintRule = LintRule {
    code: "name-characters",
    severity: Severity::Error,
    summary: "A skill's name has only lowercase letters, digits and single hyphens between them.",
    rationale: "The name becomes a folder, a command and an identifier. The specification allows lowercase \
          letters, digits and hyphens, no hyphen at either end and no two in a row.",
    bad_example: "name: Release_Notes--v2",
    good_example: "name: release-notes-v2",
    convention: Some(Convention::Frontmatter),
    check,
};

fn check(draft: &SkillFileDraft, findings: &mut LintFindings<'_>) {
    let Some((name, span)) = draft.nonblank_text("name") else { return };
    let Some(problem) = describe_bad_name(name) else { return };
    let message = format!("the name \"{}\" {problem}", super::shorten_quote(name));
    match to_kebab(name, MAX_NAME_LENGTH) {
        Some(better) => findings.add_with_help(span, message, format!("\"{better}\" would do")),
        None => findings.add(span, message),
    }
}

fn describe_bad_name(name: &str) -> Option<String> {
    // Another rule reports letters beyond a-z, because some agents accept them.
    let allowed = |c: char| c == '-' || c.is_ascii_digit() || c.is_alphanumeric() && !c.is_ascii();
    if let Some(c) = name.chars().find(|&c| !allowed(c) && !c.is_ascii_alphabetic()) {
        return Some(format!("has a character that is not allowed: {c:?}"));
    }
    if name.chars().any(char::is_uppercase) {
        return Some("has uppercase letters".to_owned());
    }
    if name.starts_with('-') || name.ends_with('-') {
        return Some("begins or ends with a hyphen".to_owned());
    }
    name.contains("--").then(|| "has two hyphens in a row".to_owned())
}
