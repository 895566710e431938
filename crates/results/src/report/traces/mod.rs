//! Writes the trials of a run for other programs: as ATIF trajectories, and as OpenTelemetry spans.
//!
//! In: `RunResults`. Out: one JSON document for each trial. Never: times that were not measured, or numbers that are not
//! known.

mod atif;
mod otlp;
mod protobuf;
mod receiver;

pub use receiver::TraceReceiver;

use std::io::{Error, Write};

use practicum_core::model::{Step, TrialRecord};
use practicum_engine::store::TrialFacts;
use practicum_engine::store::transcript::read_steps;
use serde_json::Value;

use super::RunResults;

/// The largest transcript that is read for a trace, in bytes.
const MAX_TRACE_BYTES: u64 = 64 * 1024 * 1024;

/// A format for traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceFormat {
    /// Harbor's Agent Trajectory Interchange Format.
    Atif,
    /// OpenTelemetry's protocol in JSON, with the names of the GenAI conventions.
    Otlp,
}

/// A trial as it is written.
struct TracedTrial<'t> {
    run: &'t str,
    record: &'t TrialRecord,
    steps: &'t [Step],
    /// Whether the steps are all that the agent did.
    is_complete: bool,
    /// When the agent started, if that is known.
    started: Option<jiff::Timestamp>,
}

/// Writes the trials that are wanted, each as a JSON document in a line of its own. Gives their number.
pub fn write_traces(
    results: &RunResults,
    format: TraceFormat,
    is_wanted: impl Fn(&TrialRecord) -> bool,
    out: &mut dyn Write,
) -> std::io::Result<usize> {
    for_each_trace(results, format, is_wanted, |document| {
        serde_json::to_writer(&mut *out, &document).map_err(Error::other)?;
        out.write_all(b"\n")
    })
}

/// Gives each trial that is wanted to `take`, as a JSON document, until it fails. Gives their number.
pub fn for_each_trace(
    results: &RunResults,
    format: TraceFormat,
    is_wanted: impl Fn(&TrialRecord) -> bool,
    mut take: impl FnMut(Value) -> std::io::Result<()>,
) -> std::io::Result<usize> {
    let mut count = 0;
    for record in results.all_trials() {
        let record = record?;
        if !is_wanted(&record) {
            continue;
        }
        let folder = results.trial_folder(&record);
        let read = read_steps(&folder, &record, MAX_TRACE_BYTES, &results.agents);
        let started = TrialFacts::read(&folder).ok().and_then(|facts| facts.started?.parse().ok());
        let trial = TracedTrial {
            run: &results.summary.run,
            record: &record,
            steps: &read.steps,
            is_complete: read.is_complete,
            started,
        };
        let document: Value = match format {
            TraceFormat::Atif => atif::trajectory(&trial),
            TraceFormat::Otlp => otlp::trace_request(&trial),
        };
        take(document)?;
        count += 1;
    }
    Ok(count)
}

/// Gives all tokens that were sent to the model, from its cache or not.
fn input_tokens(record: &TrialRecord) -> u64 {
    let usage = record.usage;
    usage.input.saturating_add(usage.cache_read).saturating_add(usage.cache_write)
}
