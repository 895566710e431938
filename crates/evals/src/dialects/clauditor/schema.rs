//! clauditor's eval spec for editors. Null stands where the format says that it means nothing.

use serde_json::{Value, json};

use super::TIMEOUT;
use super::assertions::KINDS;
use super::policy::HARNESS_WORDS;
use crate::score::FORMATS;
use practicum_core::model::{Provider, Transport};
use practicum_core::tree::shape::{self, Mapping, named, or_null};

pub fn schema() -> Value {
    shape::document(
        "clauditor eval spec (<skill>.eval.json)",
        "How one skill or command is run, and what its output must be. Lies beside the skill.",
        spec(),
        [("assertion", assertion()), ("section", section().into()), ("criterion", criterion().into())],
    )
}

fn spec() -> Mapping {
    let week = 7 * 24 * 3600;
    let spec = Mapping::open()
        .may("skill_name", "The skill's name; by default as the file.", or_null(shape::text()))
        .may("description", "What the skill does, for people.", or_null(shape::text()))
        .may("test_args", "Arguments that the skill's command is given.", or_null(shape::text()))
        .may(
            "input_files",
            "Files below this folder, copied flat into the working folder of each run.",
            or_null(shape::list(json!({"type": "string", "minLength": 1}))),
        )
        .may("assertions", "Exact checks of the output.", shape::list(named("assertion")))
        .may(
            "sections",
            "Parts that a model reads out of the output, which code then checks.",
            shape::list(named("section")),
        )
        .may("output_file", "The file that is looked at instead of what was said.", or_null(shape::text()))
        .may("output_files", "Globs for such files; output_file wins over them.", shape::list(shape::text()))
        .may("grading_criteria", "Criteria that a judge scores from 0 to 1.", shape::list(named("criterion")))
        .may(
            "user_prompt",
            "The request as a blind comparison shows it to the judge.",
            or_null(shape::filled()),
        )
        .may("system_prompt", "Text for agents that know no skill command.", or_null(shape::filled()))
        .may(
            "timeout",
            "The time limit in seconds.",
            or_null(shape::default(shape::whole(1, week), TIMEOUT.as_secs())),
        );
    let spec = policies(spec);
    spec.may("grade_thresholds", "What the criteria must reach.", or_null(thresholds()))
        .may(
            "trigger_tests",
            "Queries that must and must not make the agent take the skill up.",
            or_null(triggers()),
        )
        .may("variance", "Several runs, and how many of them must pass.", or_null(variance()))
}

fn policies(spec: Mapping) -> Mapping {
    spec.may("grading_model", "The judge's model.", or_null(shape::filled()))
        .may("grading_provider", "Whose model judges.", or_null(shape::words(&Provider::NAMES)))
        .may("transport", "How the judge is reached.", shape::words(&Transport::NAMES))
        .may("harness", "The agent that runs the skill.", shape::words(&HARNESS_WORDS))
        .may(
            "sync_tasks",
            "Whether background tasks are made to run in the foreground.",
            shape::default(shape::yes_or_no(), false),
        )
        .may(
            "allow_hang_heuristic",
            "Whether a run that ends by asking a question counts as one that hangs.",
            shape::default(shape::yes_or_no(), true),
        )
}

/// One shape for each type, because each has keys of its own.
fn assertion() -> Value {
    let shapes = KINDS.iter().map(|kind| {
        let entry = Mapping::closed()
            .must("id", "A name that stays, unique in the file.", json!({"type": "string", "minLength": 1}))
            .must("type", "What is checked.", json!({"const": kind.name}))
            .may("name", "A name for people.", shape::text());
        let entry = kind.required.iter().fold(entry, |entry, key| entry.must(key, doc(key), value(key)));
        let entry = kind
            .optional
            .iter()
            .fold(entry, |entry, key| entry.may(key, doc(key), shape::default(value(key), 1)));
        Value::from(entry)
    });
    json!({"oneOf": shapes.collect::<Vec<_>>()})
}

fn doc(key: &str) -> &'static str {
    match key {
        "needle" => "The text to look for.",
        "pattern" => "A regular expression (Python's `re` syntax).",
        "count" => "How many there must be at least.",
        "length" => "How many characters.",
        "format" => "The format's name.",
        _ => "A part of the check.",
    }
}

fn value(key: &str) -> Value {
    match key {
        "count" | "length" => json!({"type": "integer"}),
        "format" => shape::words(&formats()),
        _ => shape::text(),
    }
}

fn formats() -> Vec<&'static str> {
    FORMATS.iter().map(|format| format.name).collect()
}

fn section() -> Mapping {
    let count = || shape::whole(0, u32::MAX.into());
    let format =
        shape::either([shape::words(&formats()), json!({"type": ["string", "null"], "minLength": 1})]);
    let field = Mapping::open()
        .must("id", "A name that stays, unique in the file.", json!({"type": "string", "minLength": 1}))
        .must("name", "What the entry calls it.", shape::filled())
        .may(
            "required",
            "Whether every entry must have it.",
            or_null(shape::default(shape::yes_or_no(), true)),
        )
        .may("format", "A format's name, or a pattern for the whole value.", format)
        .with("not", json!({"required": ["pattern"]}));
    let tier = Mapping::open()
        .must("label", "What the tier is called.", shape::filled())
        .may("description", "What belongs to it, for the model that reads.", or_null(shape::text()))
        .may("min_entries", "The fewest entries.", or_null(shape::default(count(), 0)))
        .may("max_entries", "The most entries.", or_null(count()))
        .may("fields", "What each entry has.", shape::list(field));
    Mapping::open().must("name", "What the section is called.", shape::filled()).must(
        "tiers",
        "The kinds of entries it has.",
        shape::list(tier),
    )
}

fn criterion() -> Mapping {
    Mapping::open()
        .must("id", "A name that stays, unique in the file.", json!({"type": "string", "minLength": 1}))
        .must("criterion", "What is scored.", shape::filled())
}

fn thresholds() -> Mapping {
    let share = |value: f64| or_null(shape::default(shape::share(), value));
    Mapping::open().may("min_pass_rate", "The least share of criteria that pass.", share(0.7)).may(
        "min_mean_score",
        "Their least mean score.",
        share(0.5),
    )
}

fn triggers() -> Mapping {
    let queries = || or_null(shape::list(shape::filled()));
    Mapping::open().may("should_trigger", "Queries for which the skill must fire.", queries()).may(
        "should_not_trigger",
        "Queries for which it must not.",
        queries(),
    )
}

fn variance() -> Mapping {
    Mapping::open()
        .may("n_runs", "How often the skill is run.", or_null(shape::default(shape::whole(1, 1000), 5)))
        .may(
            "min_stability",
            "The least share of runs that pass.",
            or_null(shape::default(shape::share(), 0.8)),
        )
}
