//! The schema of waza's `eval.yaml` and `trigger_tests.yaml` for editors.

use serde_json::{Value, json};

use super::graders::GRADER_TYPES;
use super::{LONGEST_TIMEOUT, MOST_TRIALS};
use practicum_core::tree::json_schema::{self, MappingSchema};

pub fn schema() -> Value {
    let spec: Value = spec().into();
    json_schema::document(
        "waza eval.yaml",
        "A suite in waza's format. Tasks are files of their own; trigger_tests.yaml beside it is read too.",
        MappingSchema::open()
            .with_keyword("anyOf", json!([spec, Value::from(triggers()), Value::from(task())])),
        [],
    )
}

fn spec() -> MappingSchema {
    let config = MappingSchema::open()
        .optional(
            "trials_per_task",
            "The number of trials of each task.",
            json_schema::integer_between(1, MOST_TRIALS),
        )
        .optional(
            "timeout_seconds",
            "The time limit of a trial.",
            json_schema::integer_between(1, LONGEST_TIMEOUT),
        )
        .optional("skill_directories", "Folders in which the skill lies.", json_schema::text_or_texts())
        .optional("max_attempts", "Not used: each trial counts.", json!({}))
        .optional("mcp_servers", "Such a suite is not scored here.", json!({}));
    let metric = MappingSchema::open()
        .optional("name", "The metric; only trigger_accuracy has an effect.", json_schema::text())
        .optional("threshold", "The least value.", json_schema::ratio())
        .optional("enabled", "Whether it counts.", json_schema::boolean());
    MappingSchema::open()
        .required("name", "The name of the suite.", json_schema::nonempty_text())
        .optional("description", "For people.", json_schema::text())
        .optional("skill", "The name of the skill.", json_schema::text())
        .optional("version", "The version of the suite.", json!({}))
        .optional("config", "How the tasks run.", config)
        .optional("metrics", "What is reported.", json_schema::list(metric))
        .optional("graders", "Graders of every task.", json_schema::list(grader()))
        .optional("baseline", "Whether everything also runs without the skill.", json_schema::boolean())
        .optional("hooks", "Such a suite is not scored here.", json!({}))
        .required(
            "tasks",
            "Patterns for the task files, relative to this file.",
            json_schema::list(json_schema::text()),
        )
}

fn triggers() -> MappingSchema {
    let test = || {
        MappingSchema::open()
            .required("prompt", "What the user says.", json_schema::nonempty_text())
            .optional("reason", "For people.", json_schema::text())
            .optional("confidence", "How sure the author is.", json_schema::one_of_words(&["high", "medium"]))
    };
    MappingSchema::open()
        .required("skill", "The name of the skill.", json_schema::nonempty_text())
        .optional(
            "should_trigger_prompts",
            "Prompts that must activate the skill.",
            json_schema::list(test()),
        )
        .optional("should_not_trigger_prompts", "Prompts that must not.", json_schema::list(test()))
}

fn task() -> MappingSchema {
    let inputs = MappingSchema::open()
        .required("prompt", "What the user says.", json_schema::nonempty_text())
        .optional(
            "follow_up_prompts",
            "What the user says next, in the same session.",
            json_schema::text_or_texts(),
        )
        .optional("files", "Files of the workspace, by path or with their content.", json!({}));
    MappingSchema::open()
        .required("id", "The id of the task.", json!({}))
        .optional("name", "For people.", json_schema::text())
        .required("inputs", "What the agent gets.", inputs)
        .optional(
            "expected",
            "What the author expects. waza does not grade it; here it is graded.",
            json!({"type": "object"}),
        )
        .optional("graders", "Graders of this task.", json_schema::list(grader()))
        .optional("timeout_seconds", "The time limit.", json_schema::integer_between(1, LONGEST_TIMEOUT))
}

fn grader() -> MappingSchema {
    MappingSchema::open()
        .optional("type", "The kind of grader.", json!({"type": "string", "examples": GRADER_TYPES}))
        .optional("name", "The name of the grader.", json_schema::text())
        .optional("weight", "Has no effect on passing.", json!({}))
        .optional("config", "What it asks for.", json!({"type": "object"}))
}
