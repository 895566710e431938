//! skill-test's format for editors: the documented shape, then the two others that people write.

use serde_json::{Value, json};

use super::super::reading;
use super::{BEHAVIOUR, LABELS, MOST_RUNS, NEGATIVE_LABELS, RUNS, TRUTH};
use practicum_core::model::Expect;
use practicum_core::tree::shape::{self, Mapping, named};

pub fn schema() -> Value {
    shape::document(
        "skill-test suite (JSON)",
        "Prompts that must, may or must not activate skills, for precision and recall.",
        shape::either([named("suite"), named("flat"), named("list")]),
        [("suite", suite().into()), ("flat", flat().into()), ("list", list())],
    )
}

fn suite() -> Mapping {
    let skill = Mapping::open()
        .must("name", "The skill's name, as the agent lists it.", shape::filled())
        .must("plugin", "The plugin that the skill is in.", shape::filled())
        .must("test_cases", "Prompts about this skill.", shape::list(case(&LABELS)))
        .may(
            "negative_cases",
            "Prompts for which the agent must not activate this skill.",
            shape::list(case(NEGATIVE_LABELS)),
        );
    about()
        .must("name", "What the suite is called.", shape::filled())
        .must("skills", "The skills under test, with their cases.", shape::some(skill))
        .may(
            "negative_cases",
            "Prompts that none of the skills may answer.",
            shape::list(case(NEGATIVE_LABELS)),
        )
}

fn flat() -> Mapping {
    about()
        .may("name", "What the suite is called; by default as the file.", shape::text())
        .may("skill", "The skill under test.", shape::filled())
        .may("skill_name", "The skill under test, by another key.", shape::filled())
        .may("plugin", "The plugin that the skill is in.", shape::text())
        .must("cases", "Prompts about the skill.", shape::some(case(&LABELS)))
        .with("not", json!({"required": ["skill", "skill_name"]}))
}

/// What both mappings say about the suite.
fn about() -> Mapping {
    Mapping::open().may("description", "What the suite asks, for people.", shape::text()).may(
        "runs_per_case",
        "How often each case is run.",
        shape::default(shape::whole(1, MOST_RUNS.into()), RUNS),
    )
}

fn case(labels: &[(&str, Expect)]) -> Mapping {
    let words: Vec<&str> = labels.iter().map(|(label, _)| *label).collect();
    let case = Mapping::open()
        .may("id", "A name that stays; by default made from the prompt.", id())
        .may("prompt", "What the user says.", shape::filled())
        .may("input", "What the user says, by another key.", shape::filled())
        .may(
            "expectation",
            "Whether the skill must fire or must not; acceptable counts neither way.",
            shape::words(&words),
        )
        .with("oneOf", one_of(&["prompt", "input"]));
    let expected = [vec![json!({"required": ["expectation"]})], reading::activation_conditions()].concat();
    reading::activation_schema(beside_activation(case)).with("anyOf", json!(expected))
}

/// What a case of any shape may say beside its prompt and what it expects of activation.
fn beside_activation(case: Mapping) -> Mapping {
    case.may(BEHAVIOUR, "What else must be true afterwards, for a judge.", shape::texts())
        .may(TRUTH, "What should come out. The judge reads it and does not score it.", shape::text())
        .may("rationale", "Why, for people.", shape::text())
}

fn list() -> Value {
    let item = Mapping::open()
        .may("id", "A name that stays; by default made from the prompt.", id())
        .may("input", "What the user says.", shape::filled())
        .may("query", "What the user says, by another key.", shape::filled())
        .may("question", "What the user says, by another key.", shape::filled())
        .may("prompt", "What the user says, by another key.", shape::filled());
    let said = json!([
        {"anyOf": one_of(&["input", "query", "question", "prompt"])},
        {"anyOf": reading::activation_conditions()},
    ]);
    let mut list = shape::list(reading::activation_schema(beside_activation(item)).with("allOf", said));
    // At least one names a skill, else there is nothing that could fire.
    list["contains"] = json!({"properties": {"expected_skill": shape::filled()}});
    list
}

fn id() -> Value {
    shape::either([shape::filled(), json!({"type": "integer"})])
}

fn one_of(keys: &[&str]) -> Value {
    keys.iter().map(|key| json!({"required": [key]})).collect()
}
