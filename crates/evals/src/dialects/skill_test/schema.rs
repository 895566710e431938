//! The schema of the skill-test format for editors: the documented form, then the two others that people write.

use serde_json::{Value, json};

use super::super::reading;
use super::{BEHAVIOUR_KEY, DEFAULT_RUNS, LABELS, MOST_RUNS, NEGATIVE_LABELS, TRUTH_KEY};
use practicum_core::model::ActivationExpectation;
use practicum_core::tree::json_schema::{self, MappingSchema, reference};

pub fn schema() -> Value {
    json_schema::document(
        "skill-test suite (JSON)",
        "Prompts that must, may or must not activate skills, for precision and recall.",
        json_schema::any_of([reference("suite"), reference("flat"), reference("list")]),
        [("suite", suite().into()), ("flat", flat().into()), ("list", list())],
    )
}

fn suite() -> MappingSchema {
    let skill = MappingSchema::open()
        .required("name", "The skill's name, as the agent lists it.", json_schema::nonempty_text())
        .required("plugin", "The plugin that the skill is in.", json_schema::nonempty_text())
        .required("test_cases", "Prompts about this skill.", json_schema::list(case(&LABELS)))
        .optional(
            "negative_cases",
            "Prompts for which the agent must not activate this skill.",
            json_schema::list(case(NEGATIVE_LABELS)),
        );
    shared_keys()
        .required("name", "What the suite is called.", json_schema::nonempty_text())
        .required("skills", "The skills under test, with their cases.", json_schema::nonempty_list(skill))
        .optional(
            "negative_cases",
            "Prompts that none of the skills may answer.",
            json_schema::list(case(NEGATIVE_LABELS)),
        )
}

fn flat() -> MappingSchema {
    shared_keys()
        .optional("name", "What the suite is called; by default as the file.", json_schema::text())
        .optional("skill", "The skill under test.", json_schema::nonempty_text())
        .optional("skill_name", "The skill under test, by another key.", json_schema::nonempty_text())
        .optional("plugin", "The plugin that the skill is in.", json_schema::text())
        .required("cases", "Prompts about the skill.", json_schema::nonempty_list(case(&LABELS)))
        .with_keyword("not", json!({"required": ["skill", "skill_name"]}))
}

/// Gives the keys about the suite that both mappings have.
fn shared_keys() -> MappingSchema {
    MappingSchema::open()
        .optional("description", "What the suite asks, for people.", json_schema::text())
        .optional(
            "runs_per_case",
            "How often each case is run.",
            json_schema::with_default(json_schema::integer_between(1, MOST_RUNS.into()), DEFAULT_RUNS),
        )
}

fn case(labels: &[(&str, ActivationExpectation)]) -> MappingSchema {
    let words: Vec<&str> = labels.iter().map(|(label, _)| *label).collect();
    let case = MappingSchema::open()
        .optional("id", "A name that stays; by default made from the prompt.", id())
        .optional("prompt", "What the user says.", json_schema::nonempty_text())
        .optional("input", "What the user says, by another key.", json_schema::nonempty_text())
        .optional(
            "expectation",
            "Whether the skill must be activated or must not be; acceptable runs count in no rate.",
            json_schema::one_of_words(&words),
        )
        .with_keyword("oneOf", one_of(&["prompt", "input"]));
    let expected = [vec![json!({"required": ["expectation"]})], reading::activation_conditions()].concat();
    reading::activation_schema(beside_activation(case)).with_keyword("anyOf", json!(expected))
}

/// Adds the keys that a case of any form may have beside its prompt and its expected activation.
fn beside_activation(case: MappingSchema) -> MappingSchema {
    case.optional(
        BEHAVIOUR_KEY,
        "What else must be true afterwards, for a judge.",
        json_schema::text_or_texts(),
    )
    .optional(
        TRUTH_KEY,
        "What should come out. The judge reads it and does not score it.",
        json_schema::text(),
    )
    .optional("rationale", "Why, for people.", json_schema::text())
}

fn list() -> Value {
    let item = MappingSchema::open()
        .optional("id", "A name that stays; by default made from the prompt.", id())
        .optional("input", "What the user says.", json_schema::nonempty_text())
        .optional("query", "What the user says, by another key.", json_schema::nonempty_text())
        .optional("question", "What the user says, by another key.", json_schema::nonempty_text())
        .optional("prompt", "What the user says, by another key.", json_schema::nonempty_text());
    let said = json!([
        {"anyOf": one_of(&["input", "query", "question", "prompt"])},
        {"anyOf": reading::activation_conditions()},
    ]);
    let mut list =
        json_schema::list(reading::activation_schema(beside_activation(item)).with_keyword("allOf", said));
    // At least one item names a skill; otherwise there is nothing to activate.
    list["contains"] = json!({"properties": {"expected_skill": json_schema::nonempty_text()}});
    list
}

fn id() -> Value {
    json_schema::any_of([json_schema::nonempty_text(), json!({"type": "integer"})])
}

fn one_of(keys: &[&str]) -> Value {
    keys.iter().map(|key| json!({"required": [key]})).collect()
}
