//! The schema of vally's specs for editors.

use serde_json::{Value, json};

use super::graders::GRADER_TYPES;
use practicum_core::tree::json_schema::{self, MappingSchema};

pub fn schema() -> Value {
    let weights = json!({"type": "object", "additionalProperties": {"type": "number", "minimum": 0}});
    let scoring = MappingSchema::open()
        .optional("threshold", "The score that each trial must reach.", json_schema::ratio())
        .optional("weights", "The weight of each type of grader.", weights);
    let defaults = || {
        MappingSchema::open()
            .optional("runs", "The number of trials of each stimulus.", json_schema::integer_from(0))
            .optional(
                "timeout",
                "The time limit of a trial, with its unit.",
                json!({"type": ["string", "number"]}),
            )
    };
    json_schema::document(
        "vally eval",
        "A suite in vally's format.",
        MappingSchema::open()
            .optional("name", "The name of the suite.", json_schema::text())
            .optional("description", "For people.", json_schema::text())
            .optional("defaults", "Settings of all stimuli.", defaults())
            .optional("config", "The older name of \"defaults\".", defaults())
            .optional("scoring", "How the scores become one.", scoring)
            .optional(
                "environment",
                "What every stimulus has around it.",
                json!({"type": ["object", "string"]}),
            )
            .optional("stimuli", "The cases.", json_schema::list(stimulus()))
            .optional("evals", "Experiments: the files with the stimuli.", json_schema::text_or_texts())
            .optional("variants", "Experiments: the arms.", json!({"type": "object"})),
        [],
    )
}

fn stimulus() -> MappingSchema {
    let grader = MappingSchema::open()
        .required("type", "The kind of grader.", json!({"type": "string", "examples": GRADER_TYPES}))
        .optional("name", "The name of the grader.", json_schema::text())
        .optional("weight", "How much it counts.", json!({"type": "number", "minimum": 0}))
        .optional("config", "What it asks for.", json!({"type": "object"}))
        .optional(
            "turn",
            "The turn it looks at. Such a stimulus is scored only if it has one turn.",
            json!({}),
        );
    MappingSchema::open()
        .required("name", "The id of the stimulus.", json_schema::nonempty_text())
        .optional("prompt", "What the user says.", json_schema::nonempty_text())
        .optional("turns", "What the user says, turn by turn.", json!({"type": "array"}))
        .optional("rubric", "What a grader of type prompt judges.", json_schema::text_or_texts())
        .optional("graders", "The graders.", json_schema::list(grader))
        .optional("environment", "Skills, files and commands.", json!({"type": ["object", "string"]}))
        .optional("constraints", "Limits on the run, each of which must hold.", json!({"type": "object"}))
        .optional(
            "expect_activation",
            "Whether the skill must be activated, or must not.",
            json_schema::boolean(),
        )
}
