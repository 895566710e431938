//! Graders of waza.

use super::{Row, SKILL, compare, prompt, row, script, verdicts};
use crate::common::Project;

const WAZA: &[Row] = &[
    row(
        "text-1",
        "{type: text, config: {contains: [HELLO], regex_match: ['(?i)^hel']}}",
        &[],
        "hello",
        "pass",
    ),
    row(
        "text-2",
        "{type: text, config: {contains: [hello], not_contains: [BYE]}}",
        &[],
        "hello, bye",
        "fail",
    ),
    row("text-3", "{type: text, config: {contains_cs: [HELLO]}}", &[], "hello", "fail"),
    row("text-4", "{type: text, config: {regex_not_match: ['(?i)error']}}", &[], "an Error", "fail"),
    row("code-1", "{type: code, config: {assertions: ['len(output) > 3']}}", &[], "long", "pass"),
    row("code-2", "{type: code, config: {assertions: ['len(output) > 3']}}", &[], "abc", "fail"),
    row(
        "code-3",
        "{type: code, config: {assertions: [\"'a' in output.lower()\", 'output.count(\"b\") == 2']}}",
        &[],
        "Abb",
        "pass",
    ),
    row("code-4", "{type: code, config: {assertions: ['output.count(\"b\") == 2']}}", &[], "b", "fail"),
    row("code-5", "{type: code, config: {assertions: ['len(tool_calls) == 0']}}", &[], "b", "not_scored"),
    row(
        "file-1",
        "{type: file, config: {must_exist: [a.md], must_not_exist: [b.md], content_patterns: [{path: a.md, must_match: ['^x'], must_not_match: [y]}]}}",
        &["echo x > a.md"],
        "ok",
        "pass",
    ),
    row(
        "file-2",
        "{type: file, config: {must_exist: [a.md], must_not_exist: [b.md]}}",
        &["echo x > a.md; echo y > b.md"],
        "ok",
        "fail",
    ),
    row(
        "file-3",
        "{type: file, config: {content_patterns: [{path: a.md, must_not_match: [y]}]}}",
        &[],
        "ok",
        "fail",
    ),
    row(
        "diff-1",
        "{type: diff, config: {expected_files: [{path: a.md, contains: ['+x', '-y']}]}}",
        &["echo x > a.md"],
        "ok",
        "pass",
    ),
    row(
        "diff-2",
        "{type: diff, config: {expected_files: [{path: a.md, contains: ['+x', '-y']}]}}",
        &["echo xy > a.md"],
        "ok",
        "fail",
    ),
    row(
        "diff-3",
        "{type: diff, config: {expected_files: [{path: a.md, snapshot: want.md}]}}",
        &["printf 'a.b\\n' > a.md"],
        "ok",
        "pass",
    ),
    row(
        "diff-4",
        "{type: diff, config: {expected_files: [{path: a.md, snapshot: want.md}]}}",
        &["printf 'axb\\n' > a.md"],
        "ok",
        "fail",
    ),
    row("prog-1", "{type: program, config: {command: grep, args: [-q, yes]}}", &[], "yes", "pass"),
    row("prog-2", "{type: program, config: {command: grep, args: [-q, yes]}}", &[], "no", "fail"),
    row(
        "prog-3",
        "{type: program, config: {command: sh, args: [-c, 'test -f $WAZA_WORKSPACE_DIR/a.md']}}",
        &["echo x > a.md"],
        "ok",
        "pass",
    ),
    row(
        "behave-1",
        "{type: behavior, config: {max_tool_calls: 1, required_tools: [bash], forbidden_tools: [edit]}}",
        &["true"],
        "ok",
        "pass",
    ),
    row("behave-2", "{type: behavior, config: {max_tool_calls: 1}}", &["true", "true"], "ok", "fail"),
    row("behave-3", "{type: behavior, config: {forbidden_tools: [bash]}}", &["true"], "ok", "fail"),
    row(
        "action-1",
        "{type: action_sequence, config: {matching_mode: in_order_match, expected_actions: [bash, create]}}",
        &["true", "Write {\"file_path\": \"a\", \"content\": \"x\"}"],
        "ok",
        "pass",
    ),
    row(
        "action-2",
        "{type: action_sequence, config: {matching_mode: exact_match, expected_actions: [bash]}}",
        &["true", "true"],
        "ok",
        "fail",
    ),
    row(
        "action-3",
        "{type: action_sequence, config: {matching_mode: any_order_match, expected_actions: [bash, bash]}}",
        &["true"],
        "ok",
        "fail",
    ),
    row(
        "skill-1",
        "{type: skill_invocation, config: {required_skills: [tidy]}}",
        &["Skill {\"skill\": \"tidy\"}"],
        "ok",
        "pass",
    ),
    row("skill-2", "{type: skill_invocation, config: {required_skills: [tidy]}}", &[], "ok", "fail"),
    row(
        "skill-3",
        "{type: skill_invocation, config: {required_skills: [tidy, other], mode: in_order}}",
        &[],
        "ok",
        "not_scored",
    ),
    row(
        "constraint-1",
        "{type: tool_constraint, config: {reject_tools: [{tool: bash, command_pattern: 'rm -rf'}]}}",
        &["true"],
        "ok",
        "pass",
    ),
    row(
        "constraint-2",
        "{type: tool_constraint, config: {reject_tools: [{tool: bash, command_pattern: 'RM -rf'}]}}",
        &["rm -rf nothing-here"],
        "ok",
        "fail",
    ),
    row("constraint-3", "{type: tool_constraint, config: {expect_tools: [{tool: bash}]}}", &[], "ok", "fail"),
    row("prompt-1", "{type: prompt, name: g, config: {prompt: Is it good?}}", &[], "a good answer", "pass"),
    row("prompt-2", "{type: prompt, name: g, config: {prompt: Is it good?}}", &[], "a bad answer", "fail"),
    row(
        "prompt-3",
        "{type: prompt, name: g, config: {prompt: Is it good?, mode: pairwise}}",
        &[],
        "a good answer",
        "not_scored",
    ),
    row(
        "trigger-1",
        "{type: trigger, config: {skill_path: skills/tidy/SKILL.md, mode: positive}}",
        &["Skill {\"skill\": \"tidy\"}"],
        "ok",
        "pass",
    ),
    row(
        "trigger-2",
        "{type: trigger, config: {skill_path: skills/tidy/SKILL.md, mode: positive}}",
        &[],
        "ok",
        "fail",
    ),
    row(
        "trigger-3",
        "{type: trigger, config: {skill_path: skills/tidy/SKILL.md, mode: negative}}",
        &["Skill {\"skill\": \"tidy\"}"],
        "ok",
        "fail",
    ),
    row("schema-1", "{type: json_schema, config: {schema: {type: object}}}", &[], "{}", "not_scored"),
    row("none-1", "{name: no-type, config: {}}", &[], "ok", "not_scored"),
    row(
        "expect-1",
        "expected: {output_contains: [Hello], output_not_contains: [bye], output_contains_any: [x, y]}",
        &[],
        "hello y",
        "pass",
    ),
    row("expect-2", "expected: {output_contains: [hello]}", &[], "bye", "fail"),
    row("expect-3", "expected: {should_trigger: false}", &["Skill {\"skill\": \"tidy\"}"], "ok", "fail"),
    row("expect-4", "expected: {output_not_contains: [bye]}", &[], "Bye", "fail"),
    row("expect-5", "expected: {behavior: {max_tool_calls: 0}, output_contains: [ok]}", &[], "ok", "pass"),
];

#[test]
fn graders_of_waza() {
    let mut files = vec![
        ("script.yaml".to_owned(), script(WAZA)),
        ("skills/tidy/SKILL.md".to_owned(), SKILL.to_owned()),
        ("evals/tidy/eval.yaml".to_owned(), "name: n\nskill: tidy\nversion: '1'\nconfig: {trials_per_task: 1, timeout_seconds: 60}\ntasks: ['tasks/*.yaml']\n".to_owned()),
        ("evals/tidy/fixtures/want.md".to_owned(), "a.b\n".to_owned()),
    ];
    for row in WAZA {
        let grade = match row.grader.strip_prefix("expected: ") {
            Some(expected) => format!("expected: {expected}"),
            None => format!("graders: [{}]", row.grader),
        };
        let text = format!("id: {}\nname: n\ninputs: {{prompt: '{}'}}\n{grade}\n", row.id, prompt(row.id));
        files.push((format!("evals/tidy/tasks/{}.yaml", row.id), text));
    }
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    compare(WAZA, &verdicts(&Project::new(&files)));
}
