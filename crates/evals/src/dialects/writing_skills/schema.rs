//! The schema of writing-skills' `evals.json` for editors.

use serde_json::{Value, json};

use super::super::reading;
use practicum_core::tree::json_schema::{self, MappingSchema, reference};

pub fn schema() -> Value {
    json_schema::document(
        "writing-skills evals (evals.json)",
        "Cases with criteria that a judge scores from 1 to 5; 3 passes.",
        file(),
        [("case", case().into()), ("expectation", expectation().into())],
    )
}

fn file() -> MappingSchema {
    let version = json_schema::any_of([
        json!({"type": "string", "pattern": "^v*1(\\.|$)"}),
        json!({"type": "number", "minimum": 1, "exclusiveMaximum": 2}),
    ]);
    MappingSchema::open()
        .optional(
            "version",
            "The version of the format.",
            json_schema::with_examples(version, json!(["1.0"])),
        )
        .optional(
            "skill",
            "Path of the skill, seen from the project, then from this file.",
            json_schema::text(),
        )
        .optional("skill_name", "The same by another key.", json_schema::text())
        .optional("cases", "The cases.", json_schema::nonempty_list(reference("case")))
        .optional("evals", "The cases, by another key.", json_schema::nonempty_list(reference("case")))
        .with_keyword("oneOf", json!([{"required": ["cases"]}, {"required": ["evals"]}]))
        .with_keyword("not", json!({"required": ["skill", "skill_name"]}))
}

fn case() -> MappingSchema {
    // A case without a required expectation could never fail, unless it is about activation.
    let optional = json!({"required": ["required"], "properties": {"required": {"const": false}}});
    let required = json!({"required": ["expectations"], "properties": {"expectations": {"contains": {"not": optional}}}});
    let case = MappingSchema::open()
        .required(
            "id",
            "A name that stays, kebab-case.",
            json_schema::any_of([json_schema::nonempty_text(), json!({"type": "integer"})]),
        )
        .required("prompt", "What the user says.", json_schema::nonempty_text())
        .optional(
            "files",
            "Files given as context, seen from the workspace, then from the evals folder.",
            json_schema::text_or_texts(),
        )
        .optional(
            "expectations",
            "What is scored; at least one is required, unless the case is about activation.",
            json_schema::list(reference("expectation")),
        );
    let checked = [vec![required], reading::activation_conditions()].concat();
    reading::activation_schema(case).with_keyword("anyOf", json!(checked))
}

fn expectation() -> MappingSchema {
    MappingSchema::open()
        .required("criterion", "A short label; scores are compared by it.", json_schema::nonempty_text())
        .required(
            "description",
            "What must be true: concrete and falsifiable, not \"appropriate\" or \"reasonable\".",
            json_schema::nonempty_text(),
        )
        .optional(
            "required",
            "Whether a case that misses this fails.",
            json_schema::with_default(json_schema::boolean(), true),
        )
}
