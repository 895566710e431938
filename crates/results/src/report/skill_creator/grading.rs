use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::Shape;
use crate::report::left_behind;
use crate::report::markup::cut;
use crate::report::results::{Questions, Results};
use crate::report::{printable, when};
use practicum_core::model::{CheckResult, Claim, Step, TrialRecord, Verdict};
use practicum_core::tree::read_bounded;
use practicum_engine::store::TrialFacts;
use practicum_engine::transcript::{Told, told};

const LONGEST_TEXT: usize = 4000;

/// How much of a transcript is read to count what was done in it.
const MOST_READ: u64 = 64 * 1024 * 1024;

/// What was answered of a trial.
pub struct Graded {
    /// `{text, passed, evidence}`. Those without an answer are left out, but count as not passed in a failed trial.
    pub expectations: Vec<Value>,
    pub passed: usize,
    /// How many have no answer.
    pub silent: usize,
    /// Whether the trial has a verdict.
    is_scored: bool,
    suggestions: Vec<Value>,
}

impl Graded {
    /// Whether every expectation has an answer: a rate of some of them would be taken for the rate of all.
    pub fn is_whole(&self) -> bool {
        self.is_scored && self.silent == 0 && !self.expectations.is_empty()
    }

    pub fn pass_rate(&self) -> f64 {
        self.passed as f64 / self.expectations.len().max(1) as f64
    }

    pub fn failed(&self) -> usize {
        self.expectations.len() - self.passed
    }

    fn summary(&self) -> Value {
        json!({
            "passed": self.passed,
            "failed": self.failed(),
            "total": self.expectations.len(),
            "pass_rate": rounded(self.pass_rate(), 2),
        })
    }
}

/// What a run did, as far as its transcript tells.
pub struct Metrics {
    tools: BTreeMap<String, u64>,
    steps: usize,
    pub errors: usize,
    /// The files that the agent created or changed, as far as they were kept.
    files: Vec<String>,
    /// Of its answer and of those of its files that are text.
    output_chars: usize,
    transcript_chars: usize,
    /// What the agent counted of its own work, if it left that.
    own: Option<Map<String, Value>>,
    /// What the agent wrote for the user to look at, if it left that.
    user_notes: Option<String>,
}

impl Metrics {
    pub fn tool_calls(&self) -> u64 {
        self.tools.values().sum()
    }
}

pub fn graded(record: &TrialRecord, questions: &Questions<'_>) -> Graded {
    let is_scored = !matches!(record.verdict, Verdict::NotScored(_));
    let (expectations, suggestions) = (Vec::new(), Vec::new());
    let mut graded = Graded { expectations, passed: 0, silent: 0, is_scored, suggestions };
    for check in &record.checks {
        let wording = questions.wording(&record.suite, &record.case, &check.check);
        let text = said(wording.unwrap_or(&check.check));
        for flag in check.weak.iter().chain(&check.flags) {
            graded.suggestions.push(json!({"assertion": text, "reason": said(flag)}));
        }
        let (passed, evidence) = match check.verdict {
            Verdict::Pass => (true, evidence(check)),
            Verdict::Fail => (false, evidence(check)),
            // A failed trial stays failed, whatever the answer would have been; left out, it would count for nothing.
            Verdict::NotScored(_) if record.verdict == Verdict::Fail => {
                (false, format!("no answer, in a run that failed: {}", evidence(check)))
            }
            Verdict::NotScored(_) => {
                graded.silent += 1;
                continue;
            }
        };
        graded.passed += usize::from(passed);
        graded.expectations.push(json!({"text": text, "passed": passed, "evidence": evidence}));
    }
    graded
}

fn evidence(check: &CheckResult) -> String {
    let lines = std::iter::once(&check.rationale).chain(&check.evidence).filter(|line| !line.is_empty());
    said(&lines.map(String::as_str).collect::<Vec<&str>>().join("\n"))
}

fn said(text: &str) -> String {
    cut(&printable(text), LONGEST_TEXT)
}

pub fn metrics(results: &Results, record: &TrialRecord) -> Metrics {
    let folder = results.folder(record);
    let Told { steps, .. } = told(&folder, record, MOST_READ);
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
                *tools.entry(cut(&printable(&call.name), 100)).or_default() += 1;
            }
        }
    }
    let kept = kept_files(&folder.join("files"));
    let written = kept.iter().map(|(_, path)| path.clone()).chain([folder.join("output.txt")]);
    Metrics {
        tools,
        steps: count,
        errors,
        files: kept.iter().map(|(name, _)| cut(&printable(name), 300)).collect(),
        output_chars: written.filter_map(|path| characters_in(&path)).sum(),
        transcript_chars: said,
        own: left_behind::metrics(&folder),
        user_notes: left_behind::user_notes(&folder),
    }
}

/// The files below a folder, each by its relative name and its path.
pub fn kept_files(folder: &Path) -> Vec<(String, PathBuf)> {
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

/// How many characters a text file has. `None` for what is no text, or too large to be looked at.
fn characters_in(path: &Path) -> Option<usize> {
    let bytes = read_bounded(path, MOST_READ).ok()?;
    String::from_utf8(bytes).ok().map(|text| text.chars().count())
}

/// When a run and its judge worked, and how long. A time that was not kept is left out.
pub fn timing(results: &Results, record: &TrialRecord, shape: Shape) -> Value {
    let tokens = tokens(record);
    let milliseconds = (record.seconds * 1000.0).round() as u64;
    if shape == Shape::Agentskills {
        return json!({"total_tokens": tokens, "duration_ms": milliseconds});
    }
    let seconds = rounded(record.seconds, 3);
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
        let moment = |at: Timestamp| json!(when::to_the_second(&at.to_string()));
        timing[format!("{who}_start")] = moment(started);
        timing[format!("{who}_end")] = moment(started.checked_add(length).unwrap_or(started));
        timing[format!("{who}_duration_seconds")] = json!(rounded(seconds, 3));
    };
    let facts = TrialFacts::read(&results.folder(record)).ok();
    period("executor", facts.and_then(|facts| facts.started).as_deref(), Some(record.seconds));
    let judged = record.judged_by.as_ref();
    period("grader", judged.map(|by| by.started.as_str()), judged.map(|by| by.seconds));
    timing
}

/// How long the run and its judge worked together.
fn total_seconds(record: &TrialRecord) -> f64 {
    rounded(record.seconds + record.judged_by.as_ref().map_or(0.0, |by| by.seconds), 3)
}

pub fn tokens(record: &TrialRecord) -> u64 {
    let usage = record.usage;
    usage.input + usage.output + usage.cache_read + usage.cache_write
}

pub fn document(record: &TrialRecord, graded: &Graded, metrics: &Metrics, shape: Shape) -> Value {
    match shape {
        Shape::Agentskills => {
            json!({"assertion_results": graded.expectations, "summary": graded.summary()})
        }
        Shape::SkillCreator => {
            let mut document = Map::new();
            document.insert("expectations".to_owned(), json!(graded.expectations));
            document.insert("summary".to_owned(), graded.summary());
            document.insert("execution_metrics".to_owned(), execution_metrics(metrics));
            let seconds = rounded(record.seconds, 3);
            let mut timing = json!({"executor_duration_seconds": seconds, "total_duration_seconds": total_seconds(record)});
            if let Some(seconds) = record.judged_by.as_ref().map(|by| by.seconds) {
                timing["grader_duration_seconds"] = json!(rounded(seconds, 3));
            }
            document.insert("timing".to_owned(), timing);
            document.insert("claims".to_owned(), record.remarks.claims.iter().map(claim).collect());
            document
                .insert("user_notes_summary".to_owned(), user_notes(record, metrics.user_notes.as_deref()));
            let uncovered = said(&record.remarks.uncovered.join("\n"));
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

/// The judge holds only what can be held against the record, which skill-creator calls factual.
fn claim(of: &Claim) -> Value {
    json!({"claim": said(&of.claim), "type": "factual", "verified": of.verified, "evidence": said(&of.evidence)})
}

/// What the agent noted for the user, by its headings, and what this program noted of the run. What is under no
/// documented heading is to be reviewed.
fn user_notes(record: &TrialRecord, left: Option<&str>) -> Value {
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
        part.push(said(line.trim_start_matches(['-', '*']).trim()));
    }
    needs_review.extend(record.notes.iter().map(|note| said(note)));
    json!({"uncertainties": uncertainties, "needs_review": needs_review, "workarounds": workarounds})
}

fn execution_metrics(of: &Metrics) -> Value {
    // What the agent left is the file in its outputs, and both must say the same.
    if let Some(own) = &of.own {
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

/// The file that skill-creator's executor leaves beside its outputs.
pub fn metrics_file(of: &Metrics) -> Value {
    let mut metrics = execution_metrics(of);
    metrics["files_created"] = json!(of.files);
    metrics
}

pub fn rounded(value: f64, digits: i32) -> f64 {
    let unit = 10_f64.powi(digits);
    (value * unit).round() / unit
}
