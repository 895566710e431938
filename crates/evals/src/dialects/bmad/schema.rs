//! BMad's `evals.json` for editors: the documented shape, and the newer one with inputs and rubrics.

use serde_json::{Value, json};

use super::super::reading;
use super::LONGEST;
use practicum_core::tree::shape::{self, Mapping, named};

pub fn schema() -> Value {
    shape::document(
        "BMad evals (evals.json)",
        "Artifact evals: prompts with expectations that a judge decides one by one. Trigger evals \
         stand in triggers.json.",
        shape::either([named("file"), shape::some(named("eval"))]),
        [("file", file().into()), ("eval", eval().into())],
    )
}

fn file() -> Mapping {
    Mapping::open()
        .may("skill_name", "The skill's name, for people; its place decides.", shape::text())
        .may("_design_notes", "Notes for people. Any key that begins with _ is ignored.", json!({}))
        .may("evals", "The evals.", shape::some(named("eval")))
        .may("cases", "The evals, in the newer shape.", shape::some(named("eval")))
        .with("oneOf", one_of(&["evals", "cases"]))
}

fn eval() -> Mapping {
    let files = shape::such_as(shape::texts(), json!([["evals/invoice-writer/files/order.md"]]));
    let eval = Mapping::open()
        .may(
            "id",
            "A name that stays. Also the folder whose setup/ is laid over the workspace.",
            shape::either([shape::filled(), json!({"type": "integer"})]),
        )
        .may("prompt", "What the user says.", shape::filled())
        .may("input", "What the user says, in the newer shape.", shape::filled())
        .may(
            "state_prefix",
            "Text put before the input: what went before.",
            json!({"type": ["string", "null"]}),
        )
        .may(
            "expected_output",
            "What should come out. The judge reads it and does not score it.",
            shape::text(),
        )
        .may("files", "Fixtures staged at the same path, read-only.", files)
        .may("expectations", "Statements that must be true afterwards.", statements())
        .may("rubric", "Statements that must be true afterwards, in the newer shape.", statements())
        .may("timeout", "The time limit in seconds.", shape::default(shape::whole(1, LONGEST), 600));
    let says = |key: &str| json!({"required": [key], "properties": {key: shape::filled_texts()}});
    let checked = [vec![says("expectations"), says("rubric")], reading::activation_conditions()].concat();
    reading::activation_schema(eval).with(
        "allOf",
        json!([
            {"oneOf": one_of(&["prompt", "input"])},
            {"anyOf": checked},
            {"not": {"required": ["expectations", "rubric"]}},
            {"anyOf": one_of(&["id", "input", "rubric"])},
        ]),
    )
}

/// Statements for a judge. None at all is enough where the eval is about activation.
fn statements() -> Value {
    shape::either([shape::filled(), shape::list(shape::filled())])
}

fn one_of(keys: &[&str]) -> Value {
    keys.iter().map(|key| json!({"required": [key]})).collect()
}
