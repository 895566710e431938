//! The activation report, in skill-test's terms.

use std::io::Write;

use serde::Serialize;
use serde_json::Value;

use super::{ReportFormat, ReportOutput, RunResults};
use practicum_core::model::{ActivationOutcome, ActivationSummary, TrialRecord};

/// The activation report: metrics of activation, and the outcome of every trial, as skill-test writes its results.
pub static REPORT: ReportFormat = ReportFormat {
    name: "activation",
    description: "JSON: rates of activation, and the outcome of each run",
    output: ReportOutput::File(write),
    environment_file: None,
};

/// The outcome of one trial.
#[derive(Serialize)]
struct ActivationRunRow<'r> {
    suite: &'r str,
    case: &'r str,
    prompt: String,
    /// The reason why the case exists, in its author's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    rationale: Option<&'r str>,
    agent: &'r str,
    mode: &'r str,
    attempt: u32,
    trial: &'r str,
    /// The expectation: must, must_not or either.
    expect: &'r str,
    /// The skills that the expectation is about.
    skills: &'r [String],
    /// One of tp, fp, tn, fn, acceptable and error.
    outcome: &'r str,
    /// Every skill that the agent activated.
    activated: &'r [String],
    /// The activated skills that the case is not about, if the skill that it is about was not activated.
    activated_instead: Vec<&'r str>,
    /// The way in which the agent's process ended.
    ended: &'r str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_because: Option<&'r str>,
    seconds: f64,
    /// The run that the result was reused from.
    #[serde(skip_serializing_if = "Option::is_none")]
    reused_from: Option<&'r str>,
}

/// Writes one trial after the other, so that a long run needs no more memory than a short one.
fn write(results: &RunResults, out: &mut dyn Write) -> std::io::Result<()> {
    let questions = results.case_texts();
    let summary = &results.summary;
    let metrics: Option<&ActivationSummary> = summary.activation.as_ref();
    write!(out, "{{\n  \"schema_version\": 1,\n  \"run\": {},\n", Value::from(summary.run.as_str()))?;
    if let Some(sample) = &summary.sample {
        writeln!(out, "  \"sample\": {},", serde_json::to_string(sample)?)?;
    }
    for (name, so) in [("scripted", results.info.scripted), ("replayed", results.info.replayed)] {
        if so {
            writeln!(out, "  \"{name}\": true,")?;
        }
    }
    write!(out, "  \"metrics\": ")?;
    serde_json::to_writer(&mut *out, &metrics)?;
    write!(out, ",\n  \"results\": [")?;
    let mut first = true;
    for trial in results.all_trials() {
        let record = trial?;
        let prompt = questions.prompts(&record.suite, &record.case).join("\n\n");
        let rationale = questions.note(&record.suite, &record.case);
        let Some(row) = activation_row(&record, prompt, rationale) else { continue };
        out.write_all(if first { b"\n    " } else { b",\n    " })?;
        first = false;
        serde_json::to_writer(&mut *out, &row)?;
    }
    out.write_all(if first { b"]\n}\n" } else { b"\n  ]\n}\n" })
}

fn activation_row<'r>(
    record: &'r TrialRecord,
    prompt: String,
    rationale: Option<&'r str>,
) -> Option<ActivationRunRow<'r>> {
    let (outcome, expect) = record.activation_outcome().zip(record.expect)?;
    Some(ActivationRunRow {
        suite: &record.suite,
        case: &record.case,
        prompt,
        rationale,
        agent: &record.condition.agent,
        mode: record.condition.mode.name(),
        attempt: record.attempt,
        trial: record.trial.as_str(),
        expect: expect.name(),
        skills: &record.skills.about,
        outcome: outcome.name(),
        activated: &record.skills.activated,
        activated_instead: match outcome {
            ActivationOutcome::TruePositive => Vec::new(),
            _ => record.skills.activated_instead(),
        },
        ended: record.ended.name(),
        ended_because: record.ended_because.as_deref(),
        seconds: record.seconds,
        reused_from: record.reused_from.as_deref(),
    })
}
