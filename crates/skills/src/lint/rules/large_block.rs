use crate::lint::{Convention, Draft, Findings, LintRule};
use practicum_core::model::Severity;

const MOST_CODE: usize = 50;
const MOST_ROWS: usize = 30;

pub static RULE: LintRule = LintRule {
    code: "large-block",
    severity: Severity::Notice,
    summary: "Long code and large tables stand in files of their own.",
    why: "A program belongs below scripts/, where it costs no context to run; a table to look things up \
          in belongs below references/. More than 50 lines of code or 30 rows in the body are loaded \
          each time, whether they are needed or not.",
    bad: "```python\n(120 lines)\n```",
    good: "Run `python scripts/extract.py FILE`.",
    convention: Some(Convention::Disclosure),
    check,
};

fn check(draft: &Draft, findings: &mut Findings<'_>) {
    for block in draft.page.code_blocks.iter().filter(|block| block.lines > MOST_CODE) {
        findings.add_help(
            block.span,
            format!("a code block of {} lines", block.lines),
            "move it into a file below scripts/ or references/",
        );
    }
    for table in draft.page.tables.iter().filter(|table| table.rows > MOST_ROWS) {
        findings.add_help(
            table.span,
            format!("a table of {} rows", table.rows),
            "move it into a file below references/",
        );
    }
}
