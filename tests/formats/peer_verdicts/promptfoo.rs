//! Assertions and thresholds of promptfoo. What is expected was also measured with promptfoo itself, on the same
//! outputs; docs/promptfoo.md says where practicum differs.

use super::{Row, SKILL, compare, prompt, row, script, verdicts};
use crate::common::Project;

const SKILL_CALL: &[&str] = &["Skill {\"skill\": \"tidy\"}"];

const PROMPTFOO: &[Row] = &[
    row("contains-1", "{type: contains, value: hello}", &[], "well, hello", "pass"),
    row("contains-2", "{type: contains, value: hello}", &[], "Hello", "fail"),
    row("contains-3", "{type: contains, value: 42}", &[], "it is 42.", "pass"),
    row("contains-4", "{type: contains, value: ''}", &[], "hello", "not_scored"),
    row("icontains-1", "{type: icontains, value: HELLO}", &[], "hello", "pass"),
    row("icontains-2", "{type: icontains, value: hello}", &[], "bye", "fail"),
    row("icontains-3", "{type: icontains, value: ÄPFEL}", &[], "zwei äpfel", "pass"),
    row("all-1", "{type: contains-all, value: [one, two]}", &[], "two one", "pass"),
    row("all-2", "{type: contains-all, value: [one, two]}", &[], "one", "fail"),
    row("all-3", "{type: contains-all, value: '\"a, b\", c'}", &[], "c and a, b", "pass"),
    row("all-4", "{type: contains-all, value: []}", &[], "one", "not_scored"),
    row("iall-1", "{type: icontains-all, value: [ONE, Two]}", &[], "two one", "pass"),
    row("iall-2", "{type: icontains-all, value: [ONE, Two]}", &[], "one", "fail"),
    row("iall-3", "{type: icontains-all, value: 'ONE, TWO'}", &[], "one, two", "pass"),
    row("any-1", "{type: contains-any, value: [one, two]}", &[], "just two", "pass"),
    row("any-2", "{type: contains-any, value: [one, two]}", &[], "ONE", "fail"),
    row("any-3", "{type: contains-any, value: 'one,,two'}", &[], "two", "pass"),
    row("iany-1", "{type: icontains-any, value: [one, two]}", &[], "ONE", "pass"),
    row("iany-2", "{type: icontains-any, value: [one, two]}", &[], "three", "fail"),
    row("iany-3", "{type: icontains-any, value: '\"x, y\"'}", &[], "X, Y", "pass"),
    row("equals-1", "{type: equals, value: done}", &[], "done", "pass"),
    row("equals-2", "{type: equals, value: done}", &[], "done.", "fail"),
    row("equals-3", "{type: equals, value: {a: [1, 2]}}", &[], "{\"a\": [1, 2]}", "pass"),
    row("equals-4", "{type: equals, value: {a: 1}}", &[], "```json\\n{\"a\": 1}\\n```", "fail"),
    row("equals-5", "{type: equals, value: 'a.c'}", &[], "abc", "fail"),
    row("regex-1", "{type: regex, value: '^h.l+o$'}", &[], "hello", "pass"),
    row("regex-2", "{type: regex, value: '^there'}", &[], "hello there", "fail"),
    row("regex-3", "{type: regex, value: 'HELLO'}", &[], "hello", "fail"),
    row("regex-4", "{type: regex, value: '(?i)HELLO'}", &[], "hello", "not_scored"),
    row("starts-1", "{type: starts-with, value: Dear}", &[], "Dear Ada", "pass"),
    row("starts-2", "{type: starts-with, value: Dear}", &[], "My dear", "fail"),
    row("starts-3", "{type: starts-with, value: 'a.'}", &[], "ab", "fail"),
    row("is-json-1", "{type: is-json}", &[], "{\"a\": [1]}", "pass"),
    row("is-json-2", "{type: is-json}", &[], "```json\n{}\n```", "fail"),
    row("is-json-3", "{type: is-json}", &[], "17", "pass"),
    row("is-json-4", "{type: is-json, value: {type: object}}", &[], "{}", "not_scored"),
    row("has-json-1", "{type: contains-json}", &[], "So: {\"a\": 1} it is", "pass"),
    row("has-json-2", "{type: contains-json}", &[], "no braces", "fail"),
    row("has-json-3", "{type: contains-json}", &[], "```json\n{\"a\": {}}\n```", "pass"),
    row("not-contains-1", "{type: not-contains, value: secret}", &[], "fine", "pass"),
    row("not-contains-2", "{type: not-contains, value: secret}", &[], "the secret", "fail"),
    row("not-contains-3", "{type: not-icontains, value: SECRET}", &[], "the secret", "fail"),
    row("not-all-1", "{type: not-contains-all, value: [one, two]}", &[], "one", "pass"),
    row("not-all-2", "{type: not-contains-all, value: [one, two]}", &[], "one two", "fail"),
    row("not-any-1", "{type: not-icontains-any, value: [one, two]}", &[], "three", "pass"),
    row("not-any-2", "{type: not-icontains-any, value: [one, two]}", &[], "TWO", "fail"),
    row("not-equals-1", "{type: not-equals, value: done}", &[], "not done", "pass"),
    row("not-equals-2", "{type: not-equals, value: done}", &[], "done", "fail"),
    row("not-equals-3", "{type: not-equals, value: {a: 1}}", &[], "no json", "pass"),
    row("not-regex-1", "{type: not-regex, value: 'err.r'}", &[], "fine", "pass"),
    row("not-regex-2", "{type: not-regex, value: 'err.r'}", &[], "an error", "fail"),
    row("not-regex-3", "{type: not-regex, value: '('}", &[], "fine", "not_scored"),
    row("not-starts-1", "{type: not-starts-with, value: Sorry}", &[], "Fine", "pass"),
    row("not-starts-2", "{type: not-starts-with, value: Sorry}", &[], "Sorry, no", "fail"),
    row("not-json-1", "{type: not-is-json}", &[], "text", "pass"),
    row("not-json-2", "{type: not-is-json}", &[], "{}", "fail"),
    row("not-json-3", "{type: not-contains-json}", &[], "text", "pass"),
    row("not-json-4", "{type: not-contains-json}", &[], "a {name} in braces", "fail"),
    row("skill-1", "{type: skill-used, value: tidy}", SKILL_CALL, "ok", "pass"),
    row("skill-2", "{type: skill-used, value: tidy}", &[], "ok", "fail"),
    row("skill-3", "{type: skill-used, value: {pattern: 'ti*'}}", SKILL_CALL, "ok", "pass"),
    row("skill-4", "{type: skill-used, value: [tidy, other]}", SKILL_CALL, "ok", "fail"),
    row("skill-5", "{type: skill-used, value: {name: tidy, max: 0}}", SKILL_CALL, "ok", "fail"),
    row("skill-6", "{type: skill-used, value: {name: tidy, min: 2}}", SKILL_CALL, "ok", "not_scored"),
    row("not-skill-1", "{type: not-skill-used, value: tidy}", &[], "ok", "pass"),
    row("not-skill-2", "{type: not-skill-used, value: tidy}", SKILL_CALL, "ok", "fail"),
    row("not-skill-3", "{type: not-skill-used, value: [other, tidy]}", SKILL_CALL, "ok", "fail"),
    row("llm-1", "{type: llm-rubric, value: It is good.}", &[], "a good answer", "pass"),
    row("llm-2", "{type: llm-rubric, value: It is good.}", &[], "a bad answer", "fail"),
    row("llm-3", "{type: llm-rubric}", &[], "a good answer", "not_scored"),
    row("llm-4", "{type: llm-rubric, value: It is good., threshold: 0.8}", &[], "a bad answer", "fail"),
    row("llm-5", "{type: not-llm-rubric, value: It is rude.}", &[], "a good answer", "pass"),
    row("geval-1", "{type: g-eval, value: It is good.}", &[], "a good answer", "pass"),
    row("geval-2", "{type: g-eval, value: It is good.}", &[], "a bad answer", "fail"),
    row("geval-3", "{type: g-eval, value: [It is good., It is short.]}", &[], "a good answer", "pass"),
    row("closed-1", "{type: model-graded-closedqa, value: It is good.}", &[], "a good answer", "pass"),
    row("closed-2", "{type: model-graded-closedqa, value: It is good.}", &[], "a bad answer", "fail"),
    row("closed-3", "{type: model-graded-closedqa, value: ''}", &[], "a good answer", "not_scored"),
    row("js-1", "{type: javascript, value: 'output.length > 3'}", &[], "long", "pass"),
    row("js-2", "{type: javascript, value: 'output.length > 3'}", &[], "abc", "fail"),
    row(
        "js-3",
        "{type: javascript, value: 'const n = output.length; n / 10', threshold: 0.5}",
        &[],
        "four",
        "fail",
    ),
    row("js-4", "{type: javascript, value: 'no.such.thing'}", &[], "four", "fail"),
    row(
        "js-5",
        "{type: javascript, value: \"console.log('{\\\"score\\\": 1}');\\nreturn {pass: false, score: 1, reason: 'no'};\"}",
        &[],
        "four",
        "fail",
    ),
    row("js-6", "{type: javascript, value: 'file://checks/polite.js'}", &[], "please", "pass"),
    row("js-7", "{type: javascript, value: 'file://checks/polite.js:isRude'}", &[], "please", "fail"),
    row("js-8", "{type: javascript, value: '!context.metadata?.skillCalls'}", &[], "four", "not_scored"),
    row("js-9", "{type: not-javascript, value: 'output.length > 3'}", &[], "abc", "pass"),
    row("js-10", "{type: javascript, value: 'context.vars.word === output'}", &[], "ferry", "pass"),
    row("py-1", "{type: python, value: 'len(output) > 3'}", &[], "long", "pass"),
    row("py-2", "{type: python, value: 'len(output) > 3'}", &[], "abc", "fail"),
    row(
        "py-3",
        "{type: python, value: \"if 'a' in output:\\n  return 0.4\\nreturn 1\", threshold: 0.5}",
        &[],
        "abc",
        "fail",
    ),
    row(
        "py-4",
        "{type: python, value: \"{'pass': True, 'score': 0.2, 'reason': ''}\", threshold: 0.5}",
        &[],
        "abc",
        "fail",
    ),
    row("py-5", "{type: python, value: 'file://checks/short.py'}", &[], "abc", "pass"),
    row("py-6", "{type: not-python, value: 'undefined_name'}", &[], "abc", "fail"),
    row("time-1", "{type: latency, threshold: 600000}", &[], "ok", "pass"),
    row("time-2", "{type: latency, threshold: 1}", &["sleep 0.1"], "ok", "fail"),
    row("time-3", "{type: latency}", &[], "ok", "not_scored"),
    row("cost-1", "{type: cost}", &[], "ok", "not_scored"),
    row(
        "set-1",
        "{type: assert-set, assert: [{type: contains, value: a}, {type: contains, value: b}]}",
        &[],
        "ab",
        "pass",
    ),
    row(
        "set-2",
        "{type: assert-set, assert: [{type: contains, value: a}, {type: contains, value: b}]}",
        &[],
        "a",
        "fail",
    ),
    row(
        "set-3",
        "{type: assert-set, threshold: 0.5, assert: [{type: contains, value: a}, {type: contains, value: b}]}",
        &[],
        "a",
        "not_scored",
    ),
    row("zero-1", "{type: contains, value: a}, {type: contains, value: b, weight: 0}", &[], "a", "pass"),
    row("zero-2", "{type: contains, value: a, weight: 0}, {type: contains, value: b}", &[], "a", "fail"),
    row("zero-3", "{type: no-such-type, weight: 0}, {type: contains, value: a}", &[], "a", "pass"),
    row("var-1", "{type: contains, value: 'the {{word}}'}", &[], "the ferry", "pass"),
    row("var-2", "{type: contains, value: 'the {{word}}'}", &[], "the {{word}}", "fail"),
    row("var-3", "{type: contains, value: '{% if word %}a{% endif %}'}", &[], "a", "not_scored"),
    row("file-1", "{type: equals, value: 'file://checks/answer.txt'}", &[], "forty-two", "pass"),
    row(
        "file-2",
        "{type: equals, value: 'file://checks/answer.txt'}",
        &[],
        "file://checks/answer.txt",
        "fail",
    ),
    row("ref-1", "{$ref: '#/assertionTemplates/polite'}", &[], "please", "pass"),
    row("ref-2", "{$ref: '#/assertionTemplates/polite'}", &[], "now", "fail"),
    row("ref-3", "{$ref: '#/assertionTemplates/missing'}", &[], "please", "not_scored"),
    row("kind-1", "{type: similar, value: hello}", &[], "hello", "not_scored"),
    row("kind-2", "{type: contains, value: a, transform: output.trim()}", &[], "a", "not_scored"),
];

const CONFIG: &str = "prompts: ['{{prompt}}']\nproviders:\n- id: anthropic:claude-agent-sdk\n  config: {working_dir: ./project, \
                      setting_sources: [project]}\nassertionTemplates: {polite: {type: contains, value: please}}\n";

/// Runs a config with these tests.
fn check_config(rows: &[Row], config: &str) {
    let script = script(rows);
    let files = [
        ("script.yaml", script.as_str()),
        ("evals/project/.claude/skills/tidy/SKILL.md", SKILL),
        ("evals/promptfooconfig.yaml", config),
        (
            "evals/checks/polite.js",
            "module.exports = (output) => output.includes('please');\nmodule.exports.isRude = (output) => false;\n",
        ),
        (
            "evals/checks/short.py",
            "def get_assert(output, context):\n    print('x')\n    return len(output) < 5\n",
        ),
        ("evals/checks/answer.txt", "forty-two\n"),
    ];
    compare(rows, &verdicts(&Project::new(&files)));
}

#[test]
fn assertions_of_promptfoo() {
    let mut config = format!("{CONFIG}tests:\n");
    for row in PROMPTFOO {
        config += &format!(
            "- {{description: {}, vars: {{prompt: '{}', word: ferry}}, assert: [{}]}}\n",
            row.id,
            prompt(row.id),
            row.grader
        );
    }
    check_config(PROMPTFOO, &config);
}

/// With a threshold, only the weighted mean of the scores decides.
#[test]
fn thresholds_of_promptfoo() {
    const ROWS: &[Row] = &[
        row("above", "", &[], "one two", "pass"),
        row("reached", "", &[], "one", "pass"),
        row("below", "", &[], "two", "fail"),
    ];
    let asserts = "[{type: contains, value: one, weight: 3}, {type: javascript, value: \"output.includes('two') ? 1 : 0\"}]";
    let mut config = format!("{CONFIG}defaultTest: {{threshold: 0.75}}\ntests:\n");
    for row in ROWS {
        config += &format!(
            "- {{description: {}, vars: {{prompt: '{}'}}, assert: {asserts}}}\n",
            row.id,
            prompt(row.id)
        );
    }
    check_config(ROWS, &config);
}

/// In a set, assertions share the weight of the set.
#[test]
fn sets_of_promptfoo_share_their_weight() {
    const ROWS: &[Row] = &[
        row("both", "", &[], "a b c", "pass"),
        row("set-half", "", &[], "a c", "pass"),
        row("set-only", "", &[], "a b", "fail"),
    ];
    let asserts = "[{type: assert-set, weight: 1, threshold: 1, assert: [{type: contains, value: a}, {type: contains, value: b}]}, \
                   {type: contains, value: c}]";
    let mut config = format!("{CONFIG}tests:\n");
    for row in ROWS {
        config += &format!(
            "- {{description: {}, threshold: 0.6, vars: {{prompt: '{}'}}, assert: {asserts}}}\n",
            row.id,
            prompt(row.id)
        );
    }
    check_config(ROWS, &config);
}
