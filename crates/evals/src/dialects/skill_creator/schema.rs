//! The schema of skill-creator's and agentskills.io's `evals/evals.json` for editors.

use serde_json::{Value, json};

use super::super::reading;
use super::super::reading::case_keys::{
    EXPECTED_KEYS, EXPECTED_TEXT_KEYS, PROMPT_KEYS, STATEMENT_KEYS, TRIGGERS_KEY, TURN_KEYS,
};
use practicum_core::tree::json_schema::{self, MappingSchema, reference};
use practicum_skills::own_files::activation_keys;

pub fn schema() -> Value {
    let file = MappingSchema::open()
        .optional(
            "skill_name",
            "The skill's name; the folder that the evals lie in decides.",
            json_schema::text(),
        )
        .required("evals", "The evals, each run with and without the skill.", evals_with_expectations())
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

/// Gives the schema of a list of evals of which at least one expects something.
fn evals_with_expectations() -> Value {
    let statements = STATEMENT_KEYS.into_iter().map(|(key, _)| key);
    let keys = statements.chain(EXPECTED_TEXT_KEYS).chain(EXPECTED_KEYS).chain(activation_keys()).chain([
        "expected_script",
        "description",
        "trigger",
        "negative",
        reading::FORBIDDEN_SKILLS_KEY,
    ]);
    let expects: Vec<Value> = keys.map(|key| json!({"required": [key]})).collect();
    let mut evals = json_schema::nonempty_list(reference("eval"));
    if let Some(evals) = evals.as_object_mut() {
        evals.insert("contains".to_owned(), json!({"anyOf": expects}));
    }
    evals
}

/// Gives the schema of an eval. People write many more keys than these; the page about the format lists them.
fn eval() -> MappingSchema {
    let statements = || {
        let item = || reference("assertion");
        json_schema::any_of([json_schema::list(item()), json_schema::nonempty_text()])
    };
    let prompts = PROMPT_KEYS.into_iter().chain(TURN_KEYS).map(|key| json!({"required": [key]}));
    let eval = MappingSchema::open()
        .optional(
            "id",
            "A name or number that stays; by default made from the name or the prompt.",
            json_schema::any_of([json_schema::nonempty_text(), json!({"type": ["integer", "null"]})]),
        )
        .optional("name", "A name for people.", json_schema::text())
        .optional("prompt", "What the user says.", json!({"type": ["string", "object", "null"]}))
        .optional(
            "expected_output",
            "The expected result. It is judged only if the eval has no other checks.",
            json_schema::text(),
        )
        .optional(
            "files",
            "Fixtures, seen from the skill's folder, staged at the same path; or files with their content.",
            json!({"type": ["string", "array", "object"]}),
        )
        .optional("timeout", "The time limit in seconds.", json_schema::or_null(json_schema::integer_from(1)))
        .optional("expectations", "Statements that must be true afterwards.", statements())
        .optional("assertions", "The same, or exact checks.", statements());
    reading::activation_schema(eval).with_keyword("anyOf", prompts.collect())
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
