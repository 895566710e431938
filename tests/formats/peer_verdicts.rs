//! Verdicts of graders of other tools: for each type, a run that passes, one that fails, and an edge. What is expected
//! follows the rule that the tool documents.

use std::collections::BTreeMap;

use crate::common::Project;
use serde_json::{Value, json};

/// One case: its grader, what the agent does and says, and the verdict.
struct Row {
    id: &'static str,
    grader: &'static str,
    /// Commands that the agent runs, or calls of other tools as `Name {input}`.
    does: &'static [&'static str],
    says: &'static str,
    expected: &'static str,
}

const fn row(
    id: &'static str,
    grader: &'static str,
    does: &'static [&'static str],
    says: &'static str,
    expected: &'static str,
) -> Row {
    Row { id, grader, does, says, expected }
}

const SKILL: &str = "---\nname: tidy\ndescription: Tidies. Use it when asked to tidy.\n---\nTidy.\n";

fn prompt(id: &str) -> String {
    format!("Please do <{id}> now.")
}

/// Writes the script: what the agent does for each row, and what the judge says of it.
fn script(rows: &[Row]) -> String {
    let mut scenarios = Vec::new();
    for row in rows {
        let call = |does: &&str| match does.split_once(" {") {
            Some((name, input)) if name.chars().all(char::is_alphabetic) => {
                let input: Value = serde_json::from_str(&format!("{{{input}")).expect("an input");
                json!({"tools": [{"name": name, "input": input}]})
            }
            _ => json!({"tools": [{"name": "Bash", "input": {"command": does}}]}),
        };
        let mut steps: Vec<Value> = row.does.iter().map(call).collect();
        steps.push(json!(row.says));
        scenarios.push(json!({"when": format!("<{}>", row.id), "steps": steps}));
        let verdict = if row.says.contains("bad") { "fail" } else { "pass" };
        let mark = |id: String| {
            let score = if verdict == "pass" { 1.0 } else { 0.0 };
            let mark = json!({"id": id, "evidence": [row.says], "reasoning": "r", "weak": null});
            // Rubrics of skillgrade have a score, all others a verdict.
            let (key, value) = match row.id.starts_with("rubric") {
                true => ("score", json!(score)),
                false => ("verdict", json!(verdict)),
            };
            let mut mark = mark;
            mark[key] = value;
            mark
        };
        let ids = ["g", "prompt", "prompt-2", "llm"].map(|id| mark(id.to_owned()));
        let answers = json!({"tools": [{"name": "report_marks", "input": {"results": ids}}]});
        scenarios.push(json!({"to": "judge", "when": format!("<{}>", row.id), "steps": vec![answers; 6]}));
    }
    json!({"practicum_script": 1, "scenarios": scenarios}).to_string()
}

/// Runs a project and gives the verdict of each case with the skill.
fn verdicts(project: &Project) -> BTreeMap<String, String> {
    let args = [
        "run",
        ".",
        "--agent",
        "builtin",
        "--script",
        "script.yaml",
        "--arm",
        "with",
        "--trust",
        "--allow-unscored",
        "1",
        "--json",
    ];
    let ran = project.run(&args);
    let summary = ran.json();
    let cases = summary["cases"].as_array().unwrap_or_else(|| panic!("{summary:#}"));
    let verdict = |case: &Value| {
        let count = |key: &str| case[key].as_u64().unwrap_or(0);
        let word = match (count("passed"), count("failed")) {
            (0, 0) => "not_scored",
            (_, 0) => "pass",
            _ => "fail",
        };
        (case["id"].as_str().unwrap_or_default().to_owned(), word.to_owned())
    };
    cases.iter().map(verdict).collect()
}

fn compare(rows: &[Row], found: &BTreeMap<String, String>) {
    let wrong: Vec<String> = rows
        .iter()
        .filter(|row| found.get(row.id).map(String::as_str) != Some(row.expected))
        .map(|row| {
            format!("{} should be {}, is {:?}: {}", row.id, row.expected, found.get(row.id), row.grader)
        })
        .collect();
    assert_eq!(wrong, Vec::<String>::new());
    assert_eq!(found.len(), rows.len(), "{found:?}");
}

const PLUGIN_EVAL: &[Row] = &[
    row("re-1", "type: regex\npattern: done$", &[], "all done", "pass"),
    row("re-2", "type: regex\npattern: done$", &[], "done, almost", "fail"),
    row("re-3", "type: regex\npattern: DONE\nflags: i", &[], "done", "pass"),
    row("re-4", "type: regex\npattern: DONE", &[], "done", "fail"),
    row("re-not-1", "type: regex\npattern: secret\nmatch: not_contains", &[], "fine", "pass"),
    row("re-not-2", "type: regex\npattern: secret\nmatch: not_contains", &[], "the secret", "fail"),
    row("re-count-1", "type: regex\npattern: '- '\nmatch: 'count:2'", &[], "- a - b", "pass"),
    row("re-count-2", "type: regex\npattern: '- '\nmatch: 'count:2'", &[], "- a - b - c", "fail"),
    row("re-count-3", "type: regex\npattern: x\nmatch: 'count:0'", &[], "none", "pass"),
    row(
        "re-file-1",
        "type: regex\npattern: v2\ntarget: {source: file, path: out.txt}",
        &["echo v2 > out.txt"],
        "ok",
        "pass",
    ),
    row("re-file-2", "type: regex\npattern: v2\ntarget: {source: file, path: out.txt}", &[], "v2", "fail"),
    row(
        "re-file-3",
        "type: regex\npattern: v1\nmatch: not_contains\ntarget: {source: file, path: out.txt}",
        &[],
        "ok",
        "fail",
    ),
    row(
        "re-file-4",
        "type: regex\npattern: v1\nmatch: not_contains\ntarget: {source: file, path: out.txt}",
        &["echo v2 > out.txt"],
        "ok",
        "pass",
    ),
    row("re-files-1", "type: regex\npattern: '\\.md$'\ntarget: files", &["echo a > a.md"], "ok", "pass"),
    row("re-files-2", "type: regex\npattern: '\\.md$'\ntarget: files", &["echo a > a.txt"], "ok", "fail"),
    row(
        "re-files-3",
        "type: regex\npattern: '\\.md$'\ntarget: files\nmatch: not_contains",
        &["echo a > a.md"],
        "ok",
        "fail",
    ),
    row(
        "re-trace-1",
        "type: regex\npattern: hello-there\ntarget: trace",
        &["echo hello-there"],
        "ok",
        "pass",
    ),
    row("re-trace-2", "type: regex\npattern: hello-there\ntarget: trace", &[], "ok", "fail"),
    row(
        "re-trace-3",
        "type: regex\npattern: '\"name\":\"Bash\"'\ntarget: trace\nmatch: not_contains",
        &["echo a"],
        "ok",
        "not_scored",
    ),
    row("tool-1", "type: tool_used\ntool: Bash\ninput_match: echo", &["echo a"], "ok", "pass"),
    row("tool-2", "type: tool_used\ntool: Bash\ninput_match: echo", &["true"], "ok", "fail"),
    row("tool-3", "type: tool_used\ntool: Bash\nmin: 1\nmax: 2", &["true", "true", "true"], "ok", "fail"),
    row("tool-4", "type: tool_used\ntool: Bash\nmin: 0\nmax: 0", &[], "ok", "pass"),
    row("tool-5", "type: tool_used\ntool: Bash\nmin: 0\nmax: 0", &["true"], "ok", "fail"),
    row(
        "skill-1",
        "type: tool_used\ntool: Skill\ninput_match: '\"skill\"\\s*:\\s*\"(?:[\\w-]+:)?tidy\"'",
        &["Skill {\"skill\": \"tidy\"}"],
        "ok",
        "pass",
    ),
    row("skill-2", "type: tool_used\ntool: Skill", &[], "ok", "fail"),
    row(
        "skill-3",
        "type: tool_used\ntool: Skill\nmin: 0\nmax: 0",
        &["Skill {\"skill\": \"tidy\"}"],
        "ok",
        "fail",
    ),
    row(
        "order-1",
        "type: tool_order\nbefore: {tool: Bash, input_match: first}\nafter: {tool: Bash, input_match: second}",
        &["echo first", "echo second"],
        "ok",
        "pass",
    ),
    row(
        "order-2",
        "type: tool_order\nbefore: {tool: Bash, input_match: first}\nafter: {tool: Bash, input_match: second}",
        &["echo second", "echo first", "echo second"],
        "ok",
        "fail",
    ),
    row("order-3", "type: tool_order\nbefore: Bash\nafter: Write", &["echo a"], "ok", "fail"),
    row("file-1", "type: file_exists\npath: '**/*.md'", &["mkdir -p d; echo a > d/a.md"], "ok", "pass"),
    row("file-2", "type: file_exists\npath: '*.md'", &[], "ok", "fail"),
    row(
        "file-3",
        "type: file_exists\npath: '*.md'\nexists: false",
        &["mkdir -p d; echo a > d/a.md"],
        "ok",
        "fail",
    ),
    row("llm-1", "type: llm\ncriteria: PASS if it is good.", &[], "a good answer", "pass"),
    row("llm-2", "type: llm\ncriteria: PASS if it is good.", &[], "a bad answer", "fail"),
    row(
        "llm-3",
        "type: llm\ncriteria: PASS if it is good.\nfocus: mock_calls",
        &[],
        "a good answer",
        "not_scored",
    ),
    row("base-1", "type: baseline\nbaseline_file: b.jsonl", &[], "a good answer", "not_scored"),
];

#[test]
fn graders_of_claude_plugin_eval() {
    let script = script(PLUGIN_EVAL);
    let mut files = vec![
        ("script.yaml".to_owned(), script),
        (".claude-plugin/plugin.json".to_owned(), r#"{"name": "kit"}"#.to_owned()),
        ("skills/tidy/SKILL.md".to_owned(), SKILL.to_owned()),
    ];
    for row in PLUGIN_EVAL {
        files.push((format!("evals/{}/prompt.md", row.id), format!("---\nruns: 1\n---\n{}", prompt(row.id))));
        files.push((format!("evals/{}/graders/g.md", row.id), format!("---\n{}\n---\n", row.grader)));
    }
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    compare(PLUGIN_EVAL, &verdicts(&Project::new(&files)));
}

/// Weights decide, a run that earns every point passes, and a grader about the skill counts only with `arm: both`.
#[test]
fn scores_of_claude_plugin_eval() {
    const ROWS: &[Row] = &[
        row("all", "", &["Skill {\"skill\": \"tidy\"}"], "one two", "pass"),
        row("half", "", &["Skill {\"skill\": \"tidy\"}"], "one", "fail"),
        row("no-skill", "", &[], "one two", "pass"),
        row("no-skill-both", "", &[], "one two", "fail"),
    ];
    let mut files = vec![
        ("script.yaml".to_owned(), script(ROWS)),
        (".claude-plugin/plugin.json".to_owned(), r#"{"name": "kit"}"#.to_owned()),
        ("skills/tidy/SKILL.md".to_owned(), SKILL.to_owned()),
    ];
    for row in ROWS {
        let arm = if row.id == "no-skill-both" { "arm: both\n" } else { "" };
        let grader =
            |name: &str, text: &str| (format!("evals/{}/graders/{name}.md", row.id), text.to_owned());
        files.push((format!("evals/{}/prompt.md", row.id), format!("---\nruns: 2\n---\n{}", prompt(row.id))));
        files.push(grader("a", "---\ntype: regex\npattern: one\nweight: 3\n---\n"));
        files.push(grader("b", "---\ntype: regex\npattern: two\nweight: 1\n---\n"));
        files.push(grader("s", &format!("---\ntype: tool_used\ntool: Skill\n{arm}---\n")));
    }
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    compare(ROWS, &verdicts(&Project::new(&files)));
}

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

/// A scenario of Tessl passes with every point, and only files count.
#[test]
fn scores_of_tessl() {
    const ROWS: &[Row] = &[
        row("full", "1.0", &["echo good-words > a.md"], "ok", "pass"),
        row("half", "0.5", &["echo good-words > a.md"], "ok", "fail"),
        row("no-files", "1.0", &[], "good-words", "fail"),
    ];
    let mut scenarios = Vec::new();
    let mut files = vec![
        ("tile.json".to_owned(), r#"{"name": "kit"}"#.to_owned()),
        ("skills/tidy/SKILL.md".to_owned(), SKILL.to_owned()),
    ];
    for row in ROWS {
        let steps: Vec<Value> = row
            .does
            .iter()
            .map(|does| json!({"tools": [{"name": "Bash", "input": {"command": does}}]}))
            .chain([json!(row.says)])
            .collect();
        scenarios.push(json!({"when": format!("<{}>", row.id), "steps": steps}));
        let score: f64 = row.grader.parse().expect("a number");
        let mark = |id: &str, score: f64| json!({"id": id, "score": score, "evidence": ["good-words"], "reasoning": "r", "weak": null});
        let marks = json!({"tools": [{"name": "report_marks", "input": {"results": [mark("first", 1.0), mark("second", score)]}}]});
        scenarios.push(json!({"to": "judge", "when": format!("<{}>", row.id), "steps": vec![marks; 4]}));
        files.push((format!("evals/{}/task.md", row.id), prompt(row.id)));
        let criteria = json!({"context": "c", "type": "weighted_checklist", "checklist": [
            {"name": "first", "description": "It has words.", "max_score": 60},
            {"name": "second", "description": "They are good.", "max_score": 40}]});
        files.push((format!("evals/{}/criteria.json", row.id), criteria.to_string()));
    }
    files
        .push(("script.yaml".to_owned(), json!({"practicum_script": 1, "scenarios": scenarios}).to_string()));
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    compare(ROWS, &verdicts(&Project::new(&files)));
}

const SKILLGRADE: &[Row] = &[
    row("det-1", "{type: deterministic, run: 'echo \"{\\\"score\\\": 1.0}\"'}", &[], "ok", "pass"),
    row("det-2", "{type: deterministic, run: 'echo \"{\\\"score\\\": 0.7}\"'}", &[], "ok", "fail"),
    row("det-3", "{type: deterministic, run: 'echo \"{\\\"score\\\": 0.8}\"; exit 1'}", &[], "ok", "pass"),
    row("det-4", "{type: deterministic, run: 'echo fine'}", &[], "ok", "fail"),
    row("det-5", "{type: deterministic, run: sh graders/has-file.sh}", &["echo x > a.md"], "ok", "pass"),
    row("det-6", "{type: deterministic, run: sh graders/has-file.sh}", &[], "ok", "fail"),
    row("det-7", "{type: deterministic, run: no-such-program-here}", &[], "ok", "not_scored"),
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
