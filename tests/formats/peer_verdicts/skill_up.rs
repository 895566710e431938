//! Rules and judges of skill-up.

use super::{Row, SKILL, compare, prompt, row, script, verdicts};
use crate::common::Project;

const SKILL_UP: &[Row] = &[
    row("must-1", "expect: {must_contain: [one, two]}", &[], "two one", "pass"),
    row("must-2", "expect: {must_contain: [one, two]}", &[], "one", "fail"),
    row("must-3", "expect: {must_contain: One}", &[], "one", "fail"),
    row("not-1", "expect: {must_not_contain: [secret]}", &[], "fine", "pass"),
    row("not-2", "expect: {must_not_contain: [secret]}", &[], "a secret", "fail"),
    row("not-3", "expect: {must_not_contain: [secret]}", &[], "SECRET", "fail"),
    row("any-1", "expect: {must_contain_any: [one, two]}", &[], "two", "pass"),
    row("any-2", "expect: {must_contain_any: [one, two]}", &[], "three", "fail"),
    row("exit-1", "expect: {must_contain: one, exit_code: 0}", &[], "one", "pass"),
    row("exit-2", "expect: {must_contain: one, exit_code: 3}", &[], "one", "not_scored"),
    row(
        "rule-1",
        "judge: {type: rule_based, success: [{output_contains: {all: [a, b]}}]}",
        &[],
        "b a",
        "pass",
    ),
    row("rule-2", "judge: {type: rule_based, success: [{output_contains: {all: [a, b]}}]}", &[], "a", "fail"),
    row(
        "rule-3",
        "judge: {type: rule_based, success: [{output_matches: {any: ['x+y', '(?s)a.b']}}]}",
        &[],
        "a\nb",
        "pass",
    ),
    row(
        "rule-4",
        "judge: {type: rule_based, success: [{output_contains: a}], failure: [{output_matches: {any: ['err.r']}}]}",
        &[],
        "a, with an error",
        "fail",
    ),
    row("rule-5", "judge: {type: rule_based, success: [{files_changed: 2}]}", &[], "a", "not_scored"),
    row("agent-1", "judge: {type: agent_judge, criteria: Is it good?}", &[], "a good answer", "pass"),
    row("agent-2", "judge: {type: agent_judge, criteria: Is it good?}", &[], "a bad answer", "fail"),
    row("agent-3", "judge: {type: agent_judge}", &[], "a good answer", "not_scored"),
    row("script-1", "judge: {type: script, script_path: x.sh}", &[], "ok", "not_scored"),
    row(
        "both-1",
        "expect: {must_contain: a}\njudge: {type: rule_based, success: [{output_contains: b}]}",
        &[],
        "b",
        "fail",
    ),
];

#[test]
fn rules_of_skill_up() {
    let mut files =
        vec![("script.yaml".to_owned(), script(SKILL_UP)), ("tidy/SKILL.md".to_owned(), SKILL.to_owned())];
    let mut names = Vec::new();
    for row in SKILL_UP {
        names.push(format!("evals/cases/{}.yaml", row.id));
        let text = format!("id: {}\ninput: {{prompt: '{}'}}\n{}\n", row.id, prompt(row.id), row.grader);
        files.push((format!("tidy/evals/cases/{}.yaml", row.id), text));
    }
    let suite = format!(
        "schema_version: v1alpha1\nengine: {{name: claude_code}}\ncases: {{files: [{}]}}\n",
        names.join(", ")
    );
    files.push(("tidy/evals/eval.yaml".to_owned(), suite));
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    compare(SKILL_UP, &verdicts(&Project::new(&files)));
}
