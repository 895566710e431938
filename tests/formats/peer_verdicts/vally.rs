//! Graders and scores of vally.

use super::{Row, SKILL, compare, prompt, row, script, verdicts};
use crate::common::Project;

const VALLY: &[Row] = &[
    row("done-1", "{type: completed}", &[], "ok", "pass"),
    row("done-2", "{type: exit-success}", &[], "ok", "pass"),
    row("done-3", "{type: completed}", &["true"], "ok", "pass"),
    row("match-1", "{type: output-matches, config: {pattern: '(?i)HEL+O'}}", &[], "hello", "pass"),
    row("match-2", "{type: output-matches, config: {pattern: '^there'}}", &[], "hello there", "fail"),
    row("match-3", "{type: output-matches, config: {pattern: hello, negate: true}}", &[], "hello", "fail"),
    row("not-match-1", "{type: output-not-matches, config: {pattern: error}}", &[], "fine", "pass"),
    row("not-match-2", "{type: output-not-matches, config: {pattern: error}}", &[], "an error", "fail"),
    row(
        "not-match-3",
        "{type: output-not-matches, config: {pattern: error}}",
        &["echo error"],
        "fine",
        "pass",
    ),
    row("has-1", "{type: output-contains, config: {substring: HELLO}}", &[], "hello", "pass"),
    row(
        "has-2",
        "{type: output-contains, config: {value: HELLO, case_sensitive: true}}",
        &[],
        "hello",
        "fail",
    ),
    row("has-3", "{type: output-not-contains, config: {substring: HELLO}}", &[], "hello", "fail"),
    row(
        "fmatch-1",
        "{type: file-matches, config: {path: a.md, pattern: '^x'}}",
        &["echo x > a.md"],
        "ok",
        "pass",
    ),
    row(
        "fmatch-2",
        "{type: file-matches, config: {path: '**/*.md', pattern: '^x'}}",
        &["mkdir d; echo y > d/a.md"],
        "ok",
        "fail",
    ),
    row("fmatch-3", "{type: file-not-matches, config: {path: a.md, pattern: x}}", &[], "ok", "fail"),
    row(
        "fmatch-4",
        "{type: file-not-matches, config: {path: a.md, pattern: x}}",
        &["echo y > a.md"],
        "ok",
        "pass",
    ),
    row("fhas-1", "{type: file-contains, config: {path: a.md, value: x}}", &["echo x > a.md"], "ok", "pass"),
    row(
        "fhas-2",
        "{type: file-not-contains, config: {path: a.md, value: x}}",
        &["echo x > a.md"],
        "ok",
        "fail",
    ),
    row("fhas-3", "{type: file-not-contains, config: {path: a.md, value: x}}", &[], "ok", "fail"),
    row(
        "fexists-1",
        "{type: file-exists, config: {path: 'd/*.md'}}",
        &["mkdir d; echo x > d/a.md"],
        "ok",
        "pass",
    ),
    row("fexists-2", "{type: file-exists, config: {path: a.md}}", &[], "ok", "fail"),
    row("fexists-3", "{type: file-not-exists, config: {path: a.md}}", &["echo x > a.md"], "ok", "fail"),
    row("fexists-4", "{type: file-not-exists, config: {path: a.md}}", &[], "ok", "pass"),
    row("judge-1", "{type: prompt, name: g, config: {prompt: Is it good?}}", &[], "a good answer", "pass"),
    row("judge-2", "{type: prompt, name: g, config: {prompt: Is it good?}}", &[], "a bad answer", "fail"),
    row("judge-3", "{type: prompt}", &[], "a good answer", "not_scored"),
    row(
        "skill-1",
        "{type: skill-invocation, config: {required: [tidy]}}",
        &["Skill {\"skill\": \"tidy\"}"],
        "ok",
        "pass",
    ),
    row("skill-2", "{type: skill-invocation, config: {required: [tidy]}}", &[], "ok", "fail"),
    row(
        "skill-3",
        "{type: skill-invocation, config: {disallowed: [tidy]}}",
        &["Skill {\"skill\": \"tidy\"}"],
        "ok",
        "fail",
    ),
    row(
        "calls-1",
        "{type: tool-calls, config: {required: [{name: '^(bash|run)$', command: 'ec+ho'}]}}",
        &["echo a"],
        "ok",
        "pass",
    ),
    row(
        "calls-2",
        "{type: tool-calls, config: {disallowed: [{name: '^bash$', command: 'rm'}]}}",
        &["rm -f x"],
        "ok",
        "fail",
    ),
    row(
        "calls-3",
        "{type: tool-calls, config: {required: [{name: bash}], disallowed: [{name: edit}]}}",
        &[],
        "ok",
        "fail",
    ),
    row("count-1", "{type: tool-call-count, config: {max: 1}}", &["true"], "ok", "pass"),
    row("count-2", "{type: tool-call-count, config: {max: 1}}", &["true", "true"], "ok", "fail"),
    row("count-3", "{type: tool-call-count, config: {min: 2}}", &["true"], "ok", "fail"),
    row(
        "run-1",
        "{type: run-command, config: {command: cat a.md, stdout_contains: x}}",
        &["echo x > a.md"],
        "ok",
        "pass",
    ),
    row(
        "run-2",
        "{type: run-command, config: {command: cat a.md, stdout_contains: x}}",
        &["echo y > a.md"],
        "ok",
        "fail",
    ),
    row(
        "run-3",
        "{type: run-command, config: {command: test, args: [-f, a.md], expected_exit_code: 1}}",
        &[],
        "ok",
        "pass",
    ),
    row("time-1", "{type: wall-time, config: {max: 5m}}", &[], "ok", "pass"),
    row("time-2", "{type: wall-time, config: {max: 1ms}}", &["sleep 0.1"], "ok", "fail"),
    row("time-3", "{type: wall-time, config: {}}", &[], "ok", "not_scored"),
    row(
        "trans-1",
        "{type: transcript-contains, config: {substring: hello-there}}",
        &["echo hello-there"],
        "ok",
        "pass",
    ),
    row("trans-2", "{type: transcript-matches, config: {pattern: hello-th+ere}}", &["true"], "ok", "fail"),
    row("trans-3", "{type: transcript-contains, config: {substring: hello-there}}", &[], "ok", "fail"),
    row("other-1", "{type: pairwise}", &[], "ok", "not_scored"),
];

#[test]
fn graders_of_vally() {
    let mut stimuli = String::from("name: n\ntags: {skill: tidy}\nstimuli:\n");
    for row in VALLY {
        stimuli +=
            &format!("- {{name: {}, prompt: '{}', graders: [{}]}}\n", row.id, prompt(row.id), row.grader);
    }
    let script = script(VALLY);
    let files = [
        ("script.yaml", script.as_str()),
        ("skills/tidy/SKILL.md", SKILL),
        ("evals/tidy/eval.yaml", stimuli.as_str()),
    ];
    compare(VALLY, &verdicts(&Project::new(&files)));
}

/// With a threshold, the weighted mean decides and not each grader.
#[test]
fn scores_of_vally() {
    const ROWS: &[Row] = &[
        row("above", "", &[], "one two", "pass"),
        row("reached", "", &[], "one", "pass"),
        row("below", "", &[], "two", "fail"),
    ];
    let graders = "[{type: output-contains, weight: 3, config: {substring: one}}, {type: output-matches, config: {pattern: two}}]";
    let mut stimuli = String::from("name: n\ntags: {skill: tidy}\nscoring: {threshold: 0.75}\nstimuli:\n");
    for row in ROWS {
        stimuli += &format!("- {{name: {}, prompt: '{}', graders: {graders}}}\n", row.id, prompt(row.id));
    }
    let script = script(ROWS);
    let files = [
        ("script.yaml", script.as_str()),
        ("skills/tidy/SKILL.md", SKILL),
        ("evals/tidy/eval.yaml", stimuli.as_str()),
    ];
    compare(ROWS, &verdicts(&Project::new(&files)));
}
