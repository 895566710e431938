//! skill-creator's and agentskills.io's `evals/evals.json` for editors.

use serde_json::{Value, json};

use super::super::reading;
use super::TRIGGERS;
use practicum_core::tree::shape::{self, Mapping, named};

pub fn schema() -> Value {
    let file = Mapping::open()
        .may("skill_name", "The skill's name; the folder that the evals lie in decides.", shape::text())
        .must("evals", "The evals, each run with and without the skill.", shape::some(named("eval")))
        .may(
            TRIGGERS,
            "Queries for which the skill must be activated, and must not.",
            reading::sorted_trigger_schema(),
        );
    shape::document(
        "skill-creator evals (evals/evals.json)",
        "Evals of a skill, as skill-creator and agentskills.io write them.",
        file,
        [("eval", eval().into()), ("assertion", assertion())],
    )
}

fn eval() -> Mapping {
    let says = |key: &str| json!({"required": [key], "properties": {key: {"minItems": 1}}});
    let expected =
        json!({"required": ["expected_output"], "properties": {"expected_output": shape::filled()}});
    let eval = Mapping::open()
        .must(
            "id",
            "A name or number that stays.",
            shape::either([shape::filled(), json!({"type": "integer"})]),
        )
        .may("name", "A name for people.", shape::text())
        .must("prompt", "What the user says.", shape::filled())
        .may("expected_output", "What should come out. Judged only where nothing else is.", shape::text())
        .may("files", "Fixtures, seen from the skill's folder, staged at the same path.", shape::texts())
        .may("expectations", "Statements that must be true afterwards.", shape::list(named("assertion")))
        .may("assertions", "The same, or exact checks.", shape::list(named("assertion")));
    reading::activation_schema(eval).with(
        "anyOf",
        json!(
            [vec![says("expectations"), says("assertions"), expected], reading::activation_conditions()]
                .concat()
        ),
    )
}

/// Objects vary a good deal; these are the keys that mean something.
fn assertion() -> Value {
    let anything = || json!({});
    let such_as = |examples: Value| shape::such_as(anything(), examples);
    let flag = || such_as(json!([true, false]));
    // Which keys matter depends on the type, so that a wrong value under another is no mistake.
    let object = Mapping::open()
        .may("id", "A name that stays.", shape::text())
        .may("name", "A name for people, and the id where there is none.", shape::text())
        .may("type", "What kind of check it is. Kinds that code cannot decide, a judge does.", kinds())
        .may("required", "Whether the eval can pass without it.", shape::default(shape::yes_or_no(), true))
        .may("value", "What to look for; the command of a script; any value of a native check.", anything())
        .may("values", "Several texts to look for.", anything())
        .may("needle", "The text to look for, by another key.", anything())
        .may("ignore_case", "Whether capital and small letters are the same.", flag())
        .may("case_insensitive", "The same as ignore_case.", flag())
        .may("case_sensitive", "The opposite of ignore_case.", flag())
        .may("pattern", "A regular expression (Python's `re` syntax).", anything())
        .may("expect", "Whether it must be there.", such_as(json!(["present", "absent", true, false])))
        .may("path", "The file that a check of files is about.", anything())
        .may("file", "The same as path.", anything())
        .may("command", "The command of a script: text, or a list of words.", anything())
        .may("script", "The same as command.", anything())
        .may("expect_exit_code", "How the command must end, if not with 0.", such_as(json!([1])))
        .may("text", "What must be true, for a judge.", anything())
        .may("statement", "The same as text.", anything())
        .may("assertion", "The same as text.", anything())
        .may("criterion", "The same as text.", anything())
        .may("description", "What must be true, for a judge; else a name for people.", anything())
        .may("check", "How it shows, for a judge.", anything());
    shape::either([shape::filled(), object.into()])
}

fn kinds() -> Value {
    let kinds = [
        "contains",
        "not_contains",
        "starts_with",
        "ends_with",
        "regex",
        "transcript_regex",
        "file_exists",
        "file_contains",
        "script",
        "semantic",
    ];
    shape::such_as(shape::text(), json!(kinds))
}
