//! The schema of the Skillet format for editors.

use serde_json::{Value, json};

use super::super::reading;
use super::ASSERTION_TYPES;
use practicum_core::tree::json_schema::{self, MappingSchema};

pub fn schema() -> Value {
    json_schema::document(
        "Skillet eval (one YAML file an eval)",
        "One eval in Skillet's format. The files of a folder are one suite.",
        eval(),
        [],
    )
}

fn eval() -> MappingSchema {
    let timestamp = json!({"type": "string", "pattern": "^\\s*[-+]?[0-9]{4,6}-?[0-9]{2}-?[0-9]{2}"});
    let types = ASSERTION_TYPES.map(|(kind, _)| kind);
    let assertion = MappingSchema::open()
        .required(
            "type",
            "The text, pattern or tool to look for. Texts ignore case; patterns and tools do not.",
            json_schema::one_of_words(&types),
        )
        .required(
            "value",
            "The text, the pattern (Python's `re` syntax) or the tool's name.",
            json_schema::text(),
        );
    let eval = MappingSchema::open()
        .optional(
            "schema_version",
            "The version of the format.",
            json_schema::with_default(json!({"const": 1}), 1),
        )
        .required(
            "timestamp",
            "When the eval was written, as ISO 8601.",
            json_schema::with_examples(timestamp, json!(["2025-01-15T10:30:00Z"])),
        )
        .required("name", "The category that the eval belongs to.", json_schema::nonempty_text())
        .required(
            "prompt",
            "What the user says. A list is a conversation, sent turn by turn.",
            json_schema::nonempty_text_or_texts(),
        )
        .required(
            "expected",
            "What the agent should do and not do. A judge decides it, unless there are assertions.",
            json_schema::nonempty_text(),
        )
        .optional("actual", "What the agent once answered. For people; nothing reads it.", json!({}))
        .optional(
            "setup",
            "A bash script run before the prompt. If it fails, the eval is skipped.",
            json_schema::text(),
        )
        .optional(
            "teardown",
            "A bash script that runs after grading. If it fails, that is reported and changes no verdict.",
            json_schema::text(),
        )
        .optional(
            "assertions",
            "Exact checks, which replace the judge.",
            json_schema::nonempty_list(assertion),
        );
    reading::activation_schema(eval)
}
