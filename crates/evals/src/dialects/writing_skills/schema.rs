//! writing-skills' `evals.json` for editors.

use serde_json::{Value, json};

use super::super::reading;
use practicum_core::tree::shape::{self, Mapping, named};

pub fn schema() -> Value {
    shape::document(
        "writing-skills evals (evals.json)",
        "Cases with criteria that a judge scores from 1 to 5; 3 passes.",
        file(),
        [("case", case().into()), ("expectation", expectation().into())],
    )
}

fn file() -> Mapping {
    let version = shape::either([
        json!({"type": "string", "pattern": "^v*1(\\.|$)"}),
        json!({"type": "number", "minimum": 1, "exclusiveMaximum": 2}),
    ]);
    Mapping::open()
        .may("version", "The version of the format.", shape::such_as(version, json!(["1.0"])))
        .may("skill", "Path of the skill, seen from the project, then from this file.", shape::text())
        .may("skill_name", "The same by another key.", shape::text())
        .may("cases", "The cases.", shape::some(named("case")))
        .may("evals", "The cases, by another key.", shape::some(named("case")))
        .with("oneOf", json!([{"required": ["cases"]}, {"required": ["evals"]}]))
        .with("not", json!({"required": ["skill", "skill_name"]}))
}

fn case() -> Mapping {
    // A case without a required expectation could never fail, unless it is about activation.
    let optional = json!({"required": ["required"], "properties": {"required": {"const": false}}});
    let required = json!({"required": ["expectations"], "properties": {"expectations": {"contains": {"not": optional}}}});
    let case = Mapping::open()
        .must(
            "id",
            "A name that stays, kebab-case.",
            shape::either([shape::filled(), json!({"type": "integer"})]),
        )
        .must("prompt", "What the user says.", shape::filled())
        .may(
            "files",
            "Files given as context, seen from the workspace, then from the evals folder.",
            shape::texts(),
        )
        .may(
            "expectations",
            "What is scored; at least one is required, unless the case is about activation.",
            shape::list(named("expectation")),
        );
    let checked = [vec![required], reading::activation_conditions()].concat();
    reading::activation_schema(case).with("anyOf", json!(checked))
}

fn expectation() -> Mapping {
    Mapping::open()
        .must("criterion", "A short label; scores are compared by it.", shape::filled())
        .must(
            "description",
            "What must be true: concrete and falsifiable, not \"appropriate\" or \"reasonable\".",
            shape::filled(),
        )
        .may("required", "Whether a case that misses this fails.", shape::default(shape::yes_or_no(), true))
}
