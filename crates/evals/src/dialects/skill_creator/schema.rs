//! The schema of skill-creator's and agentskills.io's `evals/evals.json` for editors.

use serde_json::{Value, json};

use super::super::reading;
use super::super::reading::case_keys::TRIGGERS_KEY;
use practicum_core::tree::json_schema::{self, MappingSchema, reference};

pub fn schema() -> Value {
    let file = MappingSchema::open()
        .optional(
            "skill_name",
            "The skill's name; the folder that the evals lie in decides.",
            json_schema::text(),
        )
        .required(
            "evals",
            "The evals, each run with and without the skill.",
            json_schema::nonempty_list(reference("eval")),
        )
        .optional(
            TRIGGERS_KEY,
            "Queries for which the skill must be activated, and must not.",
            reading::sorted_trigger_schema(),
        );
    json_schema::document(
        "skill-creator evals (evals/evals.json)",
        "Evals of a skill, as skill-creator and agentskills.io write them.",
        file,
        [("eval", eval().into()), ("assertion", assertion())],
    )
}

fn eval() -> MappingSchema {
    let says = |key: &str| json!({"required": [key], "properties": {key: {"minItems": 1}}});
    let expected = json!({"required": ["expected_output"], "properties": {"expected_output": json_schema::nonempty_text()}});
    let eval = MappingSchema::open()
        .required(
            "id",
            "A name or number that stays.",
            json_schema::any_of([json_schema::nonempty_text(), json!({"type": "integer"})]),
        )
        .optional("name", "A name for people.", json_schema::text())
        .required("prompt", "What the user says.", json_schema::nonempty_text())
        .optional(
            "expected_output",
            "The expected result. It is judged only if the eval has no other checks.",
            json_schema::text(),
        )
        .optional(
            "files",
            "Fixtures, seen from the skill's folder, staged at the same path.",
            json_schema::text_or_texts(),
        )
        .optional(
            "expectations",
            "Statements that must be true afterwards.",
            json_schema::list(reference("assertion")),
        )
        .optional("assertions", "The same, or exact checks.", json_schema::list(reference("assertion")));
    reading::activation_schema(eval).with_keyword(
        "anyOf",
        json!(
            [vec![says("expectations"), says("assertions"), expected], reading::activation_conditions()]
                .concat()
        ),
    )
}

/// Gives the schema of an assertion. Objects vary a lot; these are the keys that have an effect.
fn assertion() -> Value {
    let anything = || json!({});
    let such_as = |examples: Value| json_schema::with_examples(anything(), examples);
    let flag = || such_as(json!([true, false]));
    // The type decides which keys have an effect, so a wrong value under another key is no error.
    let object = MappingSchema::open()
        .optional("id", "A name that stays.", json_schema::text())
        .optional("name", "A name for people, and the id where there is none.", json_schema::text())
        .optional("type", "The kind of the check. If code cannot decide this kind, a judge does.", kinds())
        .optional(
            "required",
            "Whether the eval can pass without it.",
            json_schema::with_default(json_schema::boolean(), true),
        )
        .optional(
            "value",
            "What to look for; the command of a script; any value of a native check.",
            anything(),
        )
        .optional("values", "Several texts to look for.", anything())
        .optional("needle", "The text to look for, by another key.", anything())
        .optional("ignore_case", "Whether capital and small letters are the same.", flag())
        .optional("case_insensitive", "The same as ignore_case.", flag())
        .optional("case_sensitive", "The opposite of ignore_case.", flag())
        .optional("pattern", "A regular expression (Python's `re` syntax).", anything())
        .optional("expect", "Whether it must be there.", such_as(json!(["present", "absent", true, false])))
        .optional("expected", "The same as expect.", such_as(json!(["present", "absent", true, false])))
        .optional("negate", "Whether the check must not hold.", flag())
        .optional("negated", "The same as negate.", flag())
        .optional("not", "The same as negate.", flag())
        .optional("invert", "The same as negate.", flag())
        .optional("path", "The file that the check looks at.", anything())
        .optional("target", "The same as path; or output, or transcript.", anything())
        .optional("file", "The same as path.", anything())
        .optional("command", "The command of a script: text, or a list of words.", anything())
        .optional("script", "The same as command.", anything())
        .optional("expect_exit_code", "How the command must end, if not with 0.", such_as(json!([1])))
        .optional("text", "What must be true, for a judge.", anything())
        .optional("statement", "The same as text.", anything())
        .optional("assertion", "The same as text.", anything())
        .optional("criterion", "The same as text.", anything())
        .optional("description", "What must be true, for a judge; else a name for people.", anything())
        .optional("check", "How it shows, for a judge.", anything())
        .optional("criteria", "What must be true, for a judge: text, or a list of texts.", anything())
        .optional("rubric", "The same as criteria.", anything());
    json_schema::any_of([json_schema::nonempty_text(), object.into()])
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
    json_schema::with_examples(json_schema::text(), json!(kinds))
}
