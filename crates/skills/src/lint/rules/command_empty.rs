//! The rule that a command file contains instructions.

use crate::lint::{DraftFrontmatter, LintFindings, LintRule, SkillFileDraft};
use practicum_core::model::Severity;

pub static RULE: LintRule = LintRule {
    code: "command-empty",
    severity: Severity::Error,
    summary: "A command file has instructions.",
    rationale: "An agent gets the text of a command file when the command is called. An empty file gives it no \
          instructions.",
    bad_example: ".claude/commands/release-notes.md         (an empty file)",
    good_example: "Read the commits since the last tag. Write NOTES.md: …",
    convention: None,
    check,
};

fn check(draft: &SkillFileDraft, findings: &mut LintFindings<'_>) {
    let is_read = !matches!(draft.frontmatter, DraftFrontmatter::Unreadable { .. });
    if draft.is_command() && is_read && draft.text.trim_start_matches('\u{feff}').trim().is_empty() {
        findings.add_with_help(
            None,
            "the command file is empty",
            "write what the agent is to do, or delete the file",
        );
    }
}
