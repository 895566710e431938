//! The rule that long code and large tables are in files of their own.

use crate::lint::{Convention, LintFindings, LintRule, SkillFileDraft};
use practicum_core::model::Severity;

const MAX_CODE_LINES: usize = 50;
const MAX_TABLE_ROWS: usize = 30;

pub static RULE: LintRule = LintRule {
    code: "large-block",
    severity: Severity::Notice,
    summary: "Long code and large tables are in separate files.",
    rationale: "A program belongs below scripts/, where it costs no context to run; a table to look things up \
          in belongs below references/. More than 50 lines of code or 30 rows in the body are loaded \
          each time, whether they are needed or not.",
    bad_example: "```python\n(120 lines)\n```",
    good_example: "Run `python scripts/extract.py FILE`.",
    convention: Some(Convention::Disclosure),
    check,
};

fn check(draft: &SkillFileDraft, findings: &mut LintFindings<'_>) {
    for block in draft.markdown.code_blocks.iter().filter(|block| block.lines > MAX_CODE_LINES) {
        findings.add_with_help(
            block.span,
            format!("a code block of {} lines", block.lines),
            "move it into a file below scripts/ or references/",
        );
    }
    for table in draft.markdown.tables.iter().filter(|table| table.rows > MAX_TABLE_ROWS) {
        findings.add_with_help(
            table.span,
            format!("a table of {} rows", table.rows),
            "move it into a file below references/",
        );
    }
}
