//! Graders of skillgrade.

use super::{Row, SKILL, compare, prompt, row, script, verdicts};
use crate::common::Project;

const SKILLGRADE: &[Row] = &[
    row("det-1", "{type: deterministic, run: 'echo \"{\\\"score\\\": 1.0}\"'}", &[], "ok", "pass"),
    row("det-2", "{type: deterministic, run: 'echo \"{\\\"score\\\": 0.7}\"'}", &[], "ok", "fail"),
    row("det-3", "{type: deterministic, run: 'echo \"{\\\"score\\\": 0.8}\"; exit 1'}", &[], "ok", "pass"),
    row("det-4", "{type: deterministic, run: 'echo fine'}", &[], "ok", "fail"),
    row("det-5", "{type: deterministic, run: sh graders/has-file.sh}", &["echo x > a.md"], "ok", "pass"),
    row("det-6", "{type: deterministic, run: sh graders/has-file.sh}", &[], "ok", "fail"),
    row("det-7", "{type: deterministic, run: no-such-program-here}", &[], "ok", "not_scored"),
    row(
        "det-9",
        "{type: deterministic, run: 'echo \"{x}\"; echo \"{\\\"score\\\": 1}\"'}",
        &[],
        "ok",
        "fail",
    ),
    row(
        "det-10",
        "{type: deterministic, run: 'echo log; echo \"{\\\"score\\\": \\\"1\\\"}\"; echo end'}",
        &[],
        "ok",
        "pass",
    ),
    row("det-8", "{type: deterministic, setup: apt install x, run: 'true'}", &[], "ok", "not_scored"),
    row("rubric-1", "{type: llm_rubric, name: g, rubric: Is it good?}", &[], "a good answer", "pass"),
    row("rubric-2", "{type: llm_rubric, name: g, rubric: Is it good?}", &[], "a bad answer", "fail"),
    row(
        "rubric-3",
        "{type: llm_rubric, name: g, rubric: Is it good?}, {type: deterministic, weight: 4, run: 'echo \"{\\\"score\\\": 1}\"'}",
        &[],
        "a bad answer",
        "pass",
    ),
    row("kind-1", "{type: unknown-kind}", &[], "ok", "not_scored"),
];

#[test]
fn graders_of_skillgrade() {
    let mut tasks = String::from("version: '1'\nskill: ../../skills/tidy\ndefaults: {trials: 1}\ntasks:\n");
    for row in SKILLGRADE {
        tasks += &format!(
            "- {{name: {}, instruction: '{}', graders: [{}]}}\n",
            row.id,
            prompt(row.id),
            row.grader
        );
    }
    let script = script(SKILLGRADE);
    let files = [
        ("script.yaml", script.as_str()),
        ("skills/tidy/SKILL.md", SKILL),
        ("evals/tidy/eval.yaml", tasks.as_str()),
        ("evals/tidy/graders/has-file.sh", "[ -f a.md ] && echo '{\"score\": 1}' || echo '{\"score\": 0}'\n"),
    ];
    compare(SKILLGRADE, &verdicts(&Project::new(&files)));
}
