//! The grading documents of skill-creator and agentskills.io.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::BenchmarkLayout;
use crate::report::agent_files;
use crate::report::escaping::truncate_text;
use crate::report::run_results::{CaseTexts, RunResults};
use crate::report::{printable_text, timestamps};
use practicum_core::model::{AgentClaim, CheckResult, Step, TrialRecord, Verdict};
use practicum_core::tree::read_bounded;
use practicum_engine::store::TrialFacts;
use practicum_engine::store::transcript::{TrialSteps, read_steps};

const MAX_TEXT_LENGTH: usize = 4000;

/// The greatest number of bytes that are read of a transcript to count its steps.
const MAX_TRANSCRIPT_BYTES: u64 = 64 * 1024 * 1024;

/// An expectation with its answer, as both formats write it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GradedExpectation {
    pub text: String,
    pub passed: bool,
    pub evidence: String,
}

/// The graded expectations of a trial.
pub struct TrialExpectations {
    /// The expectations. Those without an answer are left out, but count as not passed in a failed trial.
    pub expectations: Vec<GradedExpectation>,
    pub passed: usize,
    /// The number of expectations without an answer.
    pub unanswered: usize,
    /// Whether the trial has a verdict.
    is_scored: bool,
    suggestions: Vec<Value>,
}

impl TrialExpectations {
    /// Says whether every expectation has an answer: a rate over some of them would be mistaken for the rate over
    /// all.
    pub fn is_complete(&self) -> bool {
        self.is_scored && self.unanswered == 0 && !self.expectations.is_empty()
    }

    pub fn pass_rate(&self) -> f64 {
        self.passed as f64 / self.expectations.len().max(1) as f64
    }

    pub fn failed(&self) -> usize {
        self.expectations.len() - self.passed
    }

    fn summary_document(&self) -> Value {
        json!({
            "passed": self.passed,
            "failed": self.failed(),
            "total": self.expectations.len(),
            "pass_rate": round_to(self.pass_rate(), 2),
        })
    }
}

/// The counts of what a trial did, as far as its transcript shows it.
pub struct TrialMetrics {
    tools: BTreeMap<String, u64>,
    steps: usize,
    pub errors: usize,
    /// The files that the agent created or changed, as far as they were kept.
    files: Vec<String>,
    /// The number of characters of the answer and of the text files.
    output_chars: usize,
    transcript_chars: usize,
    /// The agent's own counts of its work, if it wrote them.
    agent_metrics: Option<Map<String, Value>>,
    /// The agent's notes for the user, if it wrote them.
    user_notes: Option<String>,
}

impl TrialMetrics {
    pub fn tool_calls(&self) -> u64 {
        self.tools.values().sum()
    }
}

pub fn read_expectations(record: &TrialRecord, questions: &CaseTexts<'_>) -> TrialExpectations {
    let is_scored = !matches!(record.verdict, Verdict::NotScored(_));
    let (expectations, suggestions) = (Vec::new(), Vec::new());
    let mut graded = TrialExpectations { expectations, passed: 0, unanswered: 0, is_scored, suggestions };
    for check in &record.checks {
        let wording = questions.check_wording(&record.suite, &record.case, &check.check);
        let text = sanitise_text(wording.unwrap_or(&check.check));
        for flag in check.weak.iter().chain(&check.flags) {
            graded.suggestions.push(json!({"assertion": text, "reason": sanitise_text(flag)}));
        }
        let (passed, evidence) = match check.verdict {
            Verdict::Pass => (true, evidence_text(check)),
            Verdict::Fail => (false, evidence_text(check)),
            // A failed trial stays failed, whatever the answer would have been. If the expectation were left out,
            // the failure would not count.
            Verdict::NotScored(_) if record.verdict == Verdict::Fail => {
                (false, format!("no answer, in a run that failed: {}", evidence_text(check)))
            }
            Verdict::NotScored(_) => {
                graded.unanswered += 1;
                continue;
            }
        };
        graded.passed += usize::from(passed);
        graded.expectations.push(GradedExpectation { text, passed, evidence });
    }
    graded
}

fn evidence_text(check: &CheckResult) -> String {
    let lines = std::iter::once(&check.rationale).chain(&check.evidence).filter(|line| !line.is_empty());
    sanitise_text(&lines.map(String::as_str).collect::<Vec<&str>>().join("\n"))
}

fn sanitise_text(text: &str) -> String {
    truncate_text(&printable_text(text), MAX_TEXT_LENGTH)
}

pub fn collect_metrics(results: &RunResults, record: &TrialRecord) -> TrialMetrics {
    let folder = results.trial_folder(record);
    let TrialSteps { steps, .. } = read_steps(&folder, record, MAX_TRANSCRIPT_BYTES, &results.agents);
    let mut tools: BTreeMap<String, u64> = BTreeMap::new();
    let (mut count, mut errors, mut said) = (0, 0, 0);
    for step in &steps {
        match step {
            Step::User(text) => said += text.chars().count(),
            Step::Text(text) => {
                count += 1;
                said += text.chars().count();
            }
            Step::Tool(call) => {
                count += 1;
                said += call.input.to_string().chars().count();
                said += call.result.as_ref().map_or(0, |result| result.chars().count());
                errors += usize::from(call.ok == Some(false));
                *tools.entry(truncate_text(&printable_text(&call.name), 100)).or_default() += 1;
            }
        }
    }
    let kept = list_kept_files(&folder.join("files"));
    let written = kept.iter().map(|(_, path)| path.clone()).chain([folder.join("output.txt")]);
    TrialMetrics {
        tools,
        steps: count,
        errors,
        files: kept.iter().map(|(name, _)| truncate_text(&printable_text(name), 300)).collect(),
        output_chars: written.filter_map(|path| count_characters(&path)).sum(),
        transcript_chars: said,
        agent_metrics: agent_files::read_metrics(&folder),
        user_notes: agent_files::read_user_notes(&folder),
    }
}

/// Lists the files below a folder, each with its relative name and its path.
pub fn list_kept_files(folder: &Path) -> Vec<(String, PathBuf)> {
    let walk = ignore::WalkBuilder::new(folder).standard_filters(false).follow_links(false).build();
    let files = walk.flatten().filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    let mut named: Vec<(String, PathBuf)> = files
        .filter_map(|entry| {
            let name = entry.path().strip_prefix(folder).ok()?.to_string_lossy().into_owned();
            Some((name, entry.into_path()))
        })
        .collect();
    named.sort();
    named
}

/// Counts the characters of a text file. `None` if the file is not text, or too large.
fn count_characters(path: &Path) -> Option<usize> {
    let bytes = read_bounded(path, MAX_TRANSCRIPT_BYTES).ok()?;
    String::from_utf8(bytes).ok().map(|text| text.chars().count())
}

/// Gives when a trial and its judge worked, and how long. A time that was not kept is left out.
pub fn timing_document(results: &RunResults, record: &TrialRecord, shape: BenchmarkLayout) -> Value {
    let tokens = total_tokens(record);
    let milliseconds = (record.seconds * 1000.0).round() as u64;
    if shape == BenchmarkLayout::Agentskills {
        return json!({"total_tokens": tokens, "duration_ms": milliseconds});
    }
    let seconds = round_to(record.seconds, 3);
    let mut timing = json!({
        "total_tokens": tokens,
        "duration_ms": milliseconds,
        "total_duration_seconds": total_seconds(record),
        "executor_duration_seconds": seconds,
    });
    let mut period = |who: &str, started: Option<&str>, seconds: Option<f64>| {
        let Some((started, seconds)) = started.and_then(|at| at.parse::<Timestamp>().ok()).zip(seconds)
        else {
            return;
        };
        let length = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let moment = |at: Timestamp| json!(timestamps::format_to_second(&at.to_string()));
        timing[format!("{who}_start")] = moment(started);
        timing[format!("{who}_end")] = moment(started.checked_add(length).unwrap_or(started));
        timing[format!("{who}_duration_seconds")] = json!(round_to(seconds, 3));
    };
    let facts = TrialFacts::read(&results.trial_folder(record)).ok();
    period("executor", facts.and_then(|facts| facts.started).as_deref(), Some(record.seconds));
    let judged = record.judged_by.as_ref();
    period("grader", judged.map(|by| by.started.as_str()), judged.map(|by| by.seconds));
    timing
}

/// Gives how long the trial and its judge took together.
fn total_seconds(record: &TrialRecord) -> f64 {
    round_to(record.seconds + record.judged_by.as_ref().map_or(0.0, |by| by.seconds), 3)
}

pub fn total_tokens(record: &TrialRecord) -> u64 {
    let usage = record.usage;
    usage.input + usage.output + usage.cache_read + usage.cache_write
}

pub fn grading_document(
    record: &TrialRecord,
    graded: &TrialExpectations,
    metrics: &TrialMetrics,
    shape: BenchmarkLayout,
) -> Value {
    match shape {
        BenchmarkLayout::Agentskills => {
            json!({"assertion_results": graded.expectations, "summary": graded.summary_document()})
        }
        BenchmarkLayout::SkillCreator => {
            let mut document = Map::new();
            document.insert("expectations".to_owned(), json!(graded.expectations));
            document.insert("summary".to_owned(), graded.summary_document());
            document.insert("execution_metrics".to_owned(), execution_metrics_document(metrics));
            let seconds = round_to(record.seconds, 3);
            let mut timing = json!({"executor_duration_seconds": seconds, "total_duration_seconds": total_seconds(record)});
            if let Some(seconds) = record.judged_by.as_ref().map(|by| by.seconds) {
                timing["grader_duration_seconds"] = json!(round_to(seconds, 3));
            }
            document.insert("timing".to_owned(), timing);
            document.insert("claims".to_owned(), record.remarks.claims.iter().map(claim_document).collect());
            document.insert(
                "user_notes_summary".to_owned(),
                user_notes_document(record, metrics.user_notes.as_deref()),
            );
            let uncovered = sanitise_text(&record.remarks.uncovered.join("\n"));
            if !graded.suggestions.is_empty() || !uncovered.is_empty() {
                document.insert(
                    "eval_feedback".to_owned(),
                    json!({"suggestions": graded.suggestions, "overall": uncovered}),
                );
            }
            Value::Object(document)
        }
    }
}

/// Writes a claim. The judge checks only claims that the record can confirm, which skill-creator calls factual.
fn claim_document(of: &AgentClaim) -> Value {
    json!({"claim": sanitise_text(&of.claim), "type": "factual", "verified": of.verified, "evidence": sanitise_text(&of.evidence)})
}

/// Gives the agent's notes for the user by their headings, and this program's notes on the trial. Notes under no
/// documented heading are listed for review.
fn user_notes_document(record: &TrialRecord, left: Option<&str>) -> Value {
    let (mut uncertainties, mut needs_review, mut workarounds) = (Vec::new(), Vec::new(), Vec::new());
    let mut heading = String::new();
    for line in left.unwrap_or_default().lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(words) = line.strip_prefix('#') {
            heading = words.to_lowercase();
            continue;
        }
        let part = match () {
            () if heading.contains("uncertain") => &mut uncertainties,
            () if heading.contains("workaround") => &mut workarounds,
            () => &mut needs_review,
        };
        part.push(sanitise_text(line.trim_start_matches(['-', '*']).trim()));
    }
    needs_review.extend(record.notes_with_origin().map(|note| sanitise_text(&note)));
    json!({"uncertainties": uncertainties, "needs_review": needs_review, "workarounds": workarounds})
}

fn execution_metrics_document(of: &TrialMetrics) -> Value {
    // The agent's own counts are in a file among its outputs, and both must agree.
    if let Some(own) = &of.agent_metrics {
        return Value::Object(own.clone());
    }
    json!({
        "tool_calls": of.tools,
        "total_tool_calls": of.tool_calls(),
        "total_steps": of.steps,
        "errors_encountered": of.errors,
        "output_chars": of.output_chars,
        "transcript_chars": of.transcript_chars,
    })
}

/// Gives the content of the file that skill-creator's executor writes beside its outputs.
pub fn metrics_file_document(of: &TrialMetrics) -> Value {
    let mut metrics = execution_metrics_document(of);
    metrics["files_created"] = json!(of.files);
    metrics
}

pub fn round_to(value: f64, digits: i32) -> f64 {
    let unit = 10_f64.powi(digits);
    (value * unit).round() / unit
}
