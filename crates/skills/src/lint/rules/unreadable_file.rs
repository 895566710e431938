//! The rule that SKILL.md is a file of UTF-8 text of at most 1 MB.

use crate::lint::{Convention, DraftFrontmatter, LintFindings, LintRule, SkillFileDraft};
use practicum_core::model::Severity;

pub static RULE: LintRule = LintRule {
    code: "unreadable-file",
    severity: Severity::Error,
    summary: "SKILL.md is a file of UTF-8 text that is not larger than 1 MB.",
    rationale: "An agent reads the whole file as text. A folder, a pipe, a binary or a file of another \
          encoding cannot be read at all, and one of this size would not fit into any context.",
    bad_example: "release-notes/SKILL.md/        (a folder)",
    good_example: "release-notes/SKILL.md         (a text file, saved as UTF-8)",
    convention: Some(Convention::Frontmatter),
    check,
};

fn check(draft: &SkillFileDraft, findings: &mut LintFindings<'_>) {
    if let DraftFrontmatter::Unreadable { why, span: at } = &draft.frontmatter {
        let message = format!("this file cannot be read: {why}");
        match at {
            Some(at) => findings.add_with_help(*at, message, "save the file as UTF-8"),
            None => findings.add(None, message),
        }
    }
}
