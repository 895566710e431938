use crate::lint::{Draft, Findings, Front, LintRule};
use practicum_core::model::Severity;

pub static RULE: LintRule = LintRule {
    code: "command-empty",
    severity: Severity::Error,
    summary: "A command file holds instructions.",
    why: "The text of a command file is what an agent is told when the command is called. An empty file tells it \
          nothing.",
    bad: ".claude/commands/release-notes.md         (an empty file)",
    good: "Read the commits since the last tag. Write NOTES.md: …",
    convention: None,
    check,
};

fn check(draft: &Draft, findings: &mut Findings<'_>) {
    let is_read = !matches!(draft.front, Front::Unread { .. });
    if draft.is_command() && is_read && draft.text.trim_start_matches('\u{feff}').trim().is_empty() {
        findings.add_help(
            None,
            "the command file is empty",
            "write what the agent is to do, or delete the file",
        );
    }
}
