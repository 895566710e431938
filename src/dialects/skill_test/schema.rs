//! skill-test's format for editors: the documented shape, then the two others that people write.

use serde_json::{Value, json};

use super::{LABELS, MOST_RUNS, NEGATIVE_LABELS, RUNS};
use crate::model::Expect;
use crate::tree::shape::{self, Mapping, named};

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
        .must("test_cases", "Prompts about this skill.", shape::list(case(&LABELS)));
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
        .with("oneOf", one_of(&["skill", "skill_name"]))
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
    Mapping::open()
        .may("id", "A name that stays; by default made from the prompt.", id())
        .may("prompt", "What the user says.", shape::filled())
        .may("input", "What the user says, by another key.", shape::filled())
        .must(
            "expectation",
            "Whether the skill must fire or must not; acceptable counts neither way.",
            shape::words(&words),
        )
        .may("rationale", "Why, for people.", shape::text())
        .with("oneOf", one_of(&["prompt", "input"]))
}

fn list() -> Value {
    let item = Mapping::open()
        .may("id", "A name that stays; by default made from the prompt.", id())
        .may("input", "What the user says.", shape::filled())
        .may("query", "What the user says, by another key.", shape::filled())
        .may("prompt", "What the user says, by another key.", shape::filled())
        .must(
            "expected_skill",
            "The skill that must fire; null for none.",
            json!({"type": ["string", "null"]}),
        )
        .may("rationale", "Why, for people.", shape::text())
        .with("anyOf", one_of(&["input", "query", "prompt"]));
    let mut list = shape::list(item);
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
