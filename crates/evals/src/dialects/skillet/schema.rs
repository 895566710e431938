//! Skillet's format for editors.

use serde_json::{Value, json};

use super::super::reading;
use super::TYPES;
use practicum_core::tree::shape::{self, Mapping};

pub fn schema() -> Value {
    shape::document(
        "Skillet eval (one YAML file an eval)",
        "One eval in Skillet's format. The files of a folder are one suite.",
        eval(),
        [],
    )
}

fn eval() -> Mapping {
    let timestamp = json!({"type": "string", "pattern": "^\\s*[-+]?[0-9]{4,6}-?[0-9]{2}-?[0-9]{2}"});
    let types = TYPES.map(|(kind, _)| kind);
    let assertion = Mapping::open()
        .must("type", "What is looked for. All but regex and the tools ignore case.", shape::words(&types))
        .must("value", "The text, the pattern (Python's `re` syntax) or the tool's name.", shape::text());
    let eval = Mapping::open()
        .may("schema_version", "The version of the format.", shape::default(json!({"const": 1}), 1))
        .must(
            "timestamp",
            "When the eval was written, as ISO 8601.",
            shape::such_as(timestamp, json!(["2025-01-15T10:30:00Z"])),
        )
        .must("name", "The category that the eval belongs to.", shape::filled())
        .must(
            "prompt",
            "What the user says. A list is a conversation, sent turn by turn.",
            shape::filled_texts(),
        )
        .must(
            "expected",
            "What the agent should do and not do. A judge decides it, unless there are assertions.",
            shape::filled(),
        )
        .may("actual", "What the agent once answered. For people; nothing reads it.", json!({}))
        .may("setup", "A bash script run before the prompt. If it fails, the eval is skipped.", shape::text())
        .may(
            "teardown",
            "A bash script run afterwards. That it fails is told and changes nothing.",
            shape::text(),
        )
        .may("assertions", "Exact checks, which replace the judge.", shape::some(assertion));
    reading::activation_schema(eval)
}
