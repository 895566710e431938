//! The schema of promptfoo configs for editors, as far as they are read.

use serde_json::{Value, json};

use super::assertions::ASSERTION_TYPES;
use practicum_core::tree::json_schema::{self, MappingSchema};

pub fn schema() -> Value {
    let options = MappingSchema::open()
        .optional("repeat", "The number of trials of each test.", json_schema::integer_between(1, 1000))
        .optional("timeoutMs", "The time limit of a trial, in milliseconds.", json_schema::integer_from(1));
    json_schema::document(
        "promptfoo config",
        "A config of promptfoo whose providers are agents that load skills.",
        MappingSchema::open()
            .optional("description", "For people.", json_schema::text())
            .optional("providers", "The agents.", json!({"type": ["array", "string", "object"]}))
            .optional(
                "targets",
                "Another name of \"providers\".",
                json!({"type": ["array", "string", "object"]}),
            )
            .optional(
                "prompts",
                "The prompts, with variables like {{name}}.",
                json!({"type": ["array", "string"]}),
            )
            .optional("defaultTest", "What every test has.", json!({"type": ["object", "string"]}))
            .optional(
                "tests",
                "The tests, or files of tests.",
                json!({"anyOf": [
                    {"type": "array", "items": {"anyOf": [json_schema::text(), Value::from(test())]}},
                    {"type": "string"},
                    {"type": "object"},
                ]}),
            )
            .optional("evaluateOptions", "How tests are run.", options),
        [],
    )
}

fn test() -> MappingSchema {
    let assertion = MappingSchema::open()
        .optional(
            "type",
            "The kind of assertion; \"not-\" before it turns it round.",
            json!({"type": "string", "examples": ASSERTION_TYPES}),
        )
        .optional("value", "What it asks for.", json!({}))
        .optional("threshold", "The least score, or the most cost or time.", json!({"type": "number"}))
        .optional(
            "weight",
            "How much it counts; 0 is only measured.",
            json!({"type": "number", "minimum": 0}),
        )
        .optional("metric", "A name for people.", json_schema::text());
    MappingSchema::open()
        .optional("description", "The name of the test.", json_schema::text())
        .optional("vars", "The variables of the prompts; a list of texts makes a case for each.", json!({}))
        .optional("assert", "The assertions.", json_schema::list(assertion))
        .optional("threshold", "The least weighted mean of the assertions' scores.", json_schema::ratio())
        .optional("options", "How the test is read.", json!({"type": "object"}))
        .optional("metadata", "Kept for reports and for writing the file again.", json!({}))
}
