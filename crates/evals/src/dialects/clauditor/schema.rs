//! The schema of clauditor's eval spec for editors. Null is allowed where the format gives it no meaning.

use serde_json::{Value, json};

use super::DEFAULT_TIMEOUT;
use super::assertions::ASSERTION_KINDS;
use super::grading::MOST_RUNS;
use super::policy::HARNESS_WORDS;
use crate::checks::FORMATS;
use practicum_core::model::{JudgeTransportChoice, Provider};
use practicum_core::tree::json_schema::{self, MappingSchema, or_null, reference};

pub fn schema() -> Value {
    json_schema::document(
        "clauditor eval spec (<skill>.eval.json)",
        "How one skill or command is run, and what its output must be. Lies beside the skill.",
        spec(),
        [("assertion", assertion()), ("section", section().into()), ("criterion", criterion().into())],
    )
}

fn spec() -> MappingSchema {
    let spec = MappingSchema::open()
        .optional("skill_name", "The skill's name; by default as the file.", or_null(json_schema::text()))
        .optional("description", "What the skill does, for people.", or_null(json_schema::text()))
        .optional("test_args", "Arguments that the skill's command is given.", or_null(json_schema::text()))
        .optional(
            "input_files",
            "Files below this folder, copied flat into the working folder of each run.",
            or_null(json_schema::list(json!({"type": "string", "minLength": 1}))),
        )
        .optional("assertions", "Exact checks of the output.", json_schema::list(reference("assertion")))
        .optional(
            "sections",
            "Parts that a model reads out of the output, which code then checks.",
            json_schema::list(reference("section")),
        )
        .optional(
            "output_file",
            "The file that is looked at instead of what was said.",
            or_null(json_schema::text()),
        )
        .optional(
            "output_files",
            "Globs for such files; output_file wins over them.",
            json_schema::list(json_schema::text()),
        )
        .optional(
            "grading_criteria",
            "Criteria that a judge scores from 0 to 1.",
            json_schema::list(reference("criterion")),
        )
        .optional(
            "user_prompt",
            "The request as a blind comparison shows it to the judge.",
            or_null(json_schema::nonempty_text()),
        )
        .optional(
            "system_prompt",
            "Text for agents that know no skill command.",
            or_null(json_schema::nonempty_text()),
        )
        .optional(
            "timeout",
            "The time limit in seconds.",
            or_null(json_schema::with_default(json_schema::whole_seconds(), DEFAULT_TIMEOUT.as_secs())),
        );
    let spec = policies(spec);
    spec.optional("grade_thresholds", "What the criteria must reach.", or_null(thresholds()))
        .optional(
            "trigger_tests",
            "Queries that must and must not make the agent take the skill up.",
            or_null(triggers()),
        )
        .optional("variance", "Several runs, and how many of them must pass.", or_null(variance()))
}

fn policies(spec: MappingSchema) -> MappingSchema {
    spec.optional("grading_model", "The judge's model.", or_null(json_schema::nonempty_text()))
        .optional(
            "grading_provider",
            "Whose model judges.",
            or_null(json_schema::one_of_words(&Provider::NAMES)),
        )
        .optional(
            "transport",
            "How the judge is reached.",
            json_schema::one_of_words(&JudgeTransportChoice::NAMES),
        )
        .optional("harness", "The agent that runs the skill.", json_schema::one_of_words(&HARNESS_WORDS))
        .optional(
            "sync_tasks",
            "Whether background tasks are made to run in the foreground.",
            json_schema::with_default(json_schema::boolean(), false),
        )
        .optional(
            "allow_hang_heuristic",
            "Whether a run that ends by asking a question counts as one that hangs.",
            json_schema::with_default(json_schema::boolean(), true),
        )
}

/// Gives the schema of an assertion: one alternative for each type, because each type has its own keys.
fn assertion() -> Value {
    let shapes = ASSERTION_KINDS.iter().map(|kind| {
        let entry = MappingSchema::closed()
            .required(
                "id",
                "A name that stays, unique in the file.",
                json!({"type": "string", "minLength": 1}),
            )
            .required("type", "What is checked.", json!({"const": kind.name}))
            .optional("name", "A name for people.", json_schema::text());
        let entry =
            kind.required.iter().fold(entry, |entry, key| entry.required(key, key_doc(key), key_schema(key)));
        let entry = kind.optional.iter().fold(entry, |entry, key| {
            entry.optional(key, key_doc(key), json_schema::with_default(key_schema(key), 1))
        });
        Value::from(entry)
    });
    json!({"oneOf": shapes.collect::<Vec<_>>()})
}

fn key_doc(key: &str) -> &'static str {
    match key {
        "needle" => "The text to look for.",
        "pattern" => "A regular expression (Python's `re` syntax).",
        "count" => "How many there must be at least.",
        "length" => "How many characters.",
        "format" => "The format's name.",
        _ => "A part of the check.",
    }
}

fn key_schema(key: &str) -> Value {
    match key {
        "count" | "length" => json!({"type": "integer"}),
        "format" => json_schema::one_of_words(&formats()),
        _ => json_schema::text(),
    }
}

fn formats() -> Vec<&'static str> {
    FORMATS.iter().map(|format| format.name).collect()
}

fn section() -> MappingSchema {
    let count = || json_schema::integer_between(0, u32::MAX.into());
    let format = json_schema::any_of([
        json_schema::one_of_words(&formats()),
        json!({"type": ["string", "null"], "minLength": 1}),
    ]);
    let field = MappingSchema::open()
        .required("id", "A name that stays, unique in the file.", json!({"type": "string", "minLength": 1}))
        .required("name", "What the entry calls it.", json_schema::nonempty_text())
        .optional(
            "required",
            "Whether every entry must have it.",
            or_null(json_schema::with_default(json_schema::boolean(), true)),
        )
        .optional("format", "A format's name, or a pattern for the whole value.", format)
        .with_keyword("not", json!({"required": ["pattern"]}));
    let tier = MappingSchema::open()
        .required("label", "What the tier is called.", json_schema::nonempty_text())
        .optional(
            "description",
            "What belongs to it, for the model that reads.",
            or_null(json_schema::text()),
        )
        .optional("min_entries", "The fewest entries.", or_null(json_schema::with_default(count(), 0)))
        .optional("max_entries", "The most entries.", or_null(count()))
        .optional("fields", "What each entry has.", json_schema::list(field));
    MappingSchema::open()
        .required("name", "What the section is called.", json_schema::nonempty_text())
        .required("tiers", "The kinds of entries it has.", json_schema::list(tier))
}

fn criterion() -> MappingSchema {
    MappingSchema::open()
        .required("id", "A name that stays, unique in the file.", json!({"type": "string", "minLength": 1}))
        .required("criterion", "What is scored.", json_schema::nonempty_text())
}

fn thresholds() -> MappingSchema {
    let share = |value: f64| or_null(json_schema::with_default(json_schema::ratio(), value));
    MappingSchema::open()
        .optional("min_pass_rate", "The least share of criteria that pass.", share(0.7))
        .optional("min_mean_score", "Their least mean score.", share(0.5))
}

fn triggers() -> MappingSchema {
    let queries = || or_null(json_schema::list(json_schema::nonempty_text()));
    MappingSchema::open()
        .optional("should_trigger", "Queries for which the skill must be activated.", queries())
        .optional("should_not_trigger", "Queries for which the skill must not be activated.", queries())
}

fn variance() -> MappingSchema {
    MappingSchema::open()
        .optional(
            "n_runs",
            "How often the skill is run.",
            or_null(json_schema::with_default(json_schema::integer_between(1, MOST_RUNS.into()), 5)),
        )
        .optional(
            "min_stability",
            "The least share of runs that pass.",
            or_null(json_schema::with_default(json_schema::ratio(), 0.8)),
        )
}
