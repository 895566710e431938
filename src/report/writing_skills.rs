use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::markup::cut;
use super::{Form, Report, Results, safe};
use crate::lint::{Draft, convention_compliance};
use crate::model::{Arm, CheckResult, Claim, Scale, TrialRecord, Verdict};
use crate::skill::{SKILL_FILE, tidy};

/// The files of writing-skills: a grading of each run whose criteria have scores from 1 to 5, and the
/// history of the versions that ran.
pub static REPORT: Report = Report {
    name: "writing-skills",
    about: "writing-skills' grading files and history.json, in a folder",
    form: Form::Folder(write),
    adds: None,
};

const LONGEST_TEXT: usize = 4000;

/// The scores of a version's runs.
type Versions = BTreeMap<u32, Vec<f64>>;

fn write(results: &Results, folder: &Path) -> std::io::Result<()> {
    let gradings = folder.join("grading");
    std::fs::create_dir_all(&gradings)?;
    let mut versions = Versions::new();
    let mut conventions: BTreeMap<String, Value> = BTreeMap::new();
    let mut names = BTreeSet::new();
    for trial in results.all_trials() {
        let record = trial?;
        let Some(version) = version(record.condition.arm) else { continue };
        let scores = versions.entry(version).or_default();
        let suite = &record.suite;
        let compliance = conventions.entry(suite.clone()).or_insert_with(|| compliance(results, suite));
        let metrics = metrics(&results.folder(&record));
        let Some(document) = grading(&record, version, compliance, metrics) else { continue };
        scores.extend(document["overall_score"].as_f64());
        let name = format!("{}_v{version}_run{}", file_name(&record.case), record.attempt);
        // Several agents, or ids that only look alike.
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        let free = std::iter::once(name.clone()).chain(numbered).find(|name| names.insert(name.clone()));
        put(&gradings.join(format!("{}.json", free.unwrap_or(name))), &document)?;
    }
    put(&folder.join("history.json"), &history(results, &versions))
}

/// Without the skill there is no version of it.
fn version(arm: Arm) -> Option<u32> {
    match arm {
        Arm::WithSkill => Some(0),
        Arm::Version(number) => Some(number),
        Arm::WithoutSkill => None,
    }
}

/// `None` where the run has no criterion with such a score, or a required one has no answer.
fn grading(record: &TrialRecord, version: u32, compliance: &Value, metrics: Value) -> Option<Value> {
    if matches!(record.verdict, Verdict::NotScored(_)) {
        return None;
    }
    let scored: Vec<(&CheckResult, f64)> = record
        .checks
        .iter()
        .filter(|check| check.scale == Some(Scale::OneToFive))
        .filter_map(|check| Some((check, check.score?)))
        .collect();
    let required: Vec<f64> =
        scored.iter().filter(|(check, _)| check.required).map(|(_, score)| *score).collect();
    let all: Vec<f64> = scored.iter().map(|(_, score)| *score).collect();
    let result = |(check, score): &(&CheckResult, f64)| {
        json!({
            "criterion": said(&check.check),
            "score": score.round() as i64,
            "passed": Scale::OneToFive.passes(*score),
            "reasoning": said(&check.rationale),
        })
    };
    let weak = record.checks.iter().filter_map(|check| Some((&check.check, check.weak.as_ref()?)));
    let weak = weak.map(|(criterion, why)| format!("{criterion}: {why}"));
    let feedback = weak.chain(record.remarks.uncovered.iter().cloned());
    let feedback: Vec<String> = feedback.map(|line| said(&line)).collect();
    let claim = |claim: &Claim| {
        let (text, evidence) = (said(&claim.claim), said(&claim.evidence));
        json!({"claim": text, "verified": claim.verified, "evidence": evidence})
    };
    let notes: Vec<String> = record.notes.iter().map(|note| said(note)).collect();
    Some(json!({
        "case_id": safe(&record.case),
        "version": version,
        "run": record.attempt,
        "overall_score": mean(&all)?,
        "required_score": mean(&required),
        "results": scored.iter().map(result).collect::<Vec<Value>>(),
        "overall": if record.verdict == Verdict::Pass { "pass" } else { "fail" },
        "convention_compliance": compliance,
        "claims": record.remarks.claims.iter().map(claim).collect::<Vec<Value>>(),
        "user_notes_summary": notes.join("; "),
        "eval_feedback": feedback.join("; "),
        "execution_metrics": metrics,
    }))
}

/// What the agent itself counted, if it left that beside its work; else nothing.
fn metrics(trial: &Path) -> Value {
    const LARGEST: u64 = 64 * 1024;
    let path = trial.join("files/metrics.json");
    let small = path.metadata().is_ok_and(|metadata| metadata.len() <= LARGEST);
    let text = small.then(|| std::fs::read_to_string(&path).ok()).flatten();
    let document: Option<Value> = text.and_then(|text| serde_json::from_str(&text).ok());
    document.filter(Value::is_object).unwrap_or_else(|| json!({}))
}

/// The conventions that code can decide, of the skill as it is now. One that is gone keeps none.
fn compliance(results: &Results, suite: &str) -> Value {
    let file = skill_file(results, suite).unwrap_or_else(|| PathBuf::from(SKILL_FILE));
    json!(convention_compliance(&Draft::read(&file)))
}

fn skill_file(results: &Results, suite: &str) -> Option<PathBuf> {
    let asked = results.info.suites.iter().find(|of| of.suite["name"] == *suite)?;
    let path = asked.suite["skill"]["path"].as_str()?;
    let path = tidy(&asked.origin.path.parent()?.join(path));
    Some(if path.is_dir() { path.join(SKILL_FILE) } else { path })
}

fn history(results: &Results, versions: &Versions) -> Value {
    let version = |(number, scores): (&u32, &Vec<f64>)| {
        json!({
            "version": number,
            "timestamp": results.info.started,
            "description": if *number == 0 { "baseline" } else { "" },
            "git_hash": null,
            "path": format!("v{number}/skill"),
            "average_score": mean(scores),
        })
    };
    let current = versions.keys().next_back().copied().unwrap_or_default();
    json!({"versions": versions.iter().map(version).collect::<Vec<Value>>(), "current_version": current})
}

/// With one decimal. `None` of nothing.
fn mean(scores: &[f64]) -> Option<f64> {
    let sum: f64 = scores.iter().sum();
    (!scores.is_empty()).then(|| (sum / scores.len() as f64 * 10.0).round() / 10.0)
}

/// A case's id as a part of a file's name. Ids of writing-skills are such already.
fn file_name(case: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let name: String = case.chars().take(100).map(plain).collect();
    name.trim_start_matches('.').to_owned()
}

fn said(text: &str) -> String {
    cut(&safe(text), LONGEST_TEXT)
}

fn put(path: &Path, document: &Value) -> std::io::Result<()> {
    std::fs::write(path, format!("{document:#}\n"))
}
