//! Graders and scores of `claude plugin eval`.

use super::{Row, SKILL, compare, prompt, results, row, script, verdicts};
use crate::common::Project;

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

/// A grader that asks for several things at once counts in full or not at all, as measured with `claude plugin eval`: a
/// half of its weight would let a case reach a lower threshold.
#[test]
fn a_failed_count_of_claude_plugin_eval_earns_nothing() {
    const ROWS: &[Row] =
        &[row("three", "", &[], "- a - b - c", "fail"), row("missing", "", &[], "ok", "fail")];
    let graders = [
        "type: regex\npattern: '- '\nmatch: 'count:2'",
        "type: regex\npattern: v1\nmatch: not_contains\ntarget: {source: file, path: out.txt}",
    ];
    let mut files = vec![
        ("script.yaml".to_owned(), script(ROWS)),
        (".claude-plugin/plugin.json".to_owned(), r#"{"name": "kit"}"#.to_owned()),
        ("skills/tidy/SKILL.md".to_owned(), SKILL.to_owned()),
    ];
    for (row, grader) in ROWS.iter().zip(graders) {
        files.push((format!("evals/{}/prompt.md", row.id), format!("---\nruns: 1\n---\n{}", prompt(row.id))));
        files.push((format!("evals/{}/graders/g.md", row.id), format!("---\n{grader}\n---\n")));
    }
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    for case in results(&Project::new(&files)) {
        assert_eq!(case["score"]["mean"].as_f64(), Some(0.0), "{case}");
    }
}
