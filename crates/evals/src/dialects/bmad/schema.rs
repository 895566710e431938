//! The schema of BMad's `evals.json` for editors: the documented form, and the newer one with inputs and rubrics.

use serde_json::{Value, json};

use super::super::reading;
use practicum_core::tree::json_schema::{self, MappingSchema, reference};

pub fn schema() -> Value {
    json_schema::document(
        "BMad evals (evals.json)",
        "Artifact evals: prompts with expectations that a judge decides one by one. Trigger evals \
         are in triggers.json.",
        json_schema::any_of([reference("file"), json_schema::nonempty_list(reference("eval"))]),
        [("file", file().into()), ("eval", eval().into())],
    )
}

fn file() -> MappingSchema {
    MappingSchema::open()
        .optional("skill_name", "The skill's name, for people; its place decides.", json_schema::text())
        .optional("_design_notes", "Notes for people. Any key that begins with _ is ignored.", json!({}))
        .optional("evals", "The evals.", json_schema::nonempty_list(reference("eval")))
        .optional("cases", "The evals, in the newer shape.", json_schema::nonempty_list(reference("eval")))
        .with_keyword("oneOf", one_of(&["evals", "cases"]))
}

fn eval() -> MappingSchema {
    let files = json_schema::with_examples(
        json_schema::text_or_texts(),
        json!([["evals/invoice-writer/files/order.md"]]),
    );
    let eval = MappingSchema::open()
        .optional(
            "id",
            "A name that stays. Also the folder whose setup/ is laid over the workspace.",
            json_schema::any_of([json_schema::nonempty_text(), json!({"type": "integer"})]),
        )
        .optional("prompt", "What the user says.", json_schema::nonempty_text())
        .optional("input", "What the user says, in the newer shape.", json_schema::nonempty_text())
        .optional(
            "state_prefix",
            "Text put before the input: what went before.",
            json!({"type": ["string", "null"]}),
        )
        .optional(
            "expected_output",
            "What should come out. The judge reads it and does not score it.",
            json_schema::text(),
        )
        .optional("files", "Fixtures staged at the same path, read-only.", files)
        .optional("expectations", "Statements that must be true afterwards.", statements())
        .optional("rubric", "Statements that must be true afterwards, in the newer shape.", statements())
        .optional(
            "timeout",
            "The time limit in seconds.",
            json_schema::with_default(json_schema::whole_seconds(), 600),
        );
    let says =
        |key: &str| json!({"required": [key], "properties": {key: json_schema::nonempty_text_or_texts()}});
    let checked = [vec![says("expectations"), says("rubric")], reading::activation_conditions()].concat();
    reading::activation_schema(eval).with_keyword(
        "allOf",
        json!([
            {"oneOf": one_of(&["prompt", "input"])},
            {"anyOf": checked},
            {"not": {"required": ["expectations", "rubric"]}},
            {"anyOf": one_of(&["id", "input", "rubric"])},
        ]),
    )
}

/// Gives the schema of statements for a judge. The list may be empty if the eval is about activation.
fn statements() -> Value {
    json_schema::any_of([json_schema::nonempty_text(), json_schema::list(json_schema::nonempty_text())])
}

fn one_of(keys: &[&str]) -> Value {
    keys.iter().map(|key| json!({"required": [key]})).collect()
}
