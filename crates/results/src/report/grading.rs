//! The grading of one trial in the format of writing-skills.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::escaping::truncate_text;
use super::{agent_files, printable_text};
use practicum_core::model::{AgentClaim, CheckResult, ScoreScale, TrialRecord, Verdict};
use practicum_skills::lint::{ConventionCompliance, TypeAlignmentResult};

/// The grading of one run of a case, with exactly the keys that writing-skills documents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "A run graded by criteria from 1 to 5 (grading/<case>_v<version>_run<run>.json)")]
pub struct GradingDocument {
    /// The case's id in its evals.json.
    pub case_id: String,
    /// The version of the skill.
    pub version: u32,
    /// The number of the run, from 1.
    #[schemars(range(min = 1))]
    pub run: u32,
    /// The mean of all criteria, with one decimal; null if one of them has no score, as user_notes_summary says.
    #[schemars(range(min = 1, max = 5))]
    pub overall_score: Option<f64>,
    /// The mean of the required criteria; null if none has a score.
    #[schemars(range(min = 1, max = 5))]
    pub required_score: Option<f64>,
    /// The score of each criterion.
    pub results: Vec<CriterionGrade>,
    /// Whether the run passed: every required criterion, and every other required check of the case.
    /// user_notes_summary says which other check failed.
    pub overall: OverallGrade,
    /// Whether the skill follows the conventions for skills. No case has to check them.
    pub convention_compliance: ConventionCompliance,
    /// Notable claims that the agent made.
    pub claims: Vec<GradingClaim>,
    /// Unusual observations about the run; empty if there are none.
    pub user_notes_summary: String,
    /// Proposals for a better case; empty if there are none.
    pub eval_feedback: String,
    /// The metrics that the agent wrote about its own run; empty if there are none.
    pub execution_metrics: Map<String, Value>,
}

/// The grade of one criterion.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CriterionGrade {
    /// The label of the criterion in evals.json.
    pub criterion: String,
    /// The score, from 1 (unaddressed) to 5 (exemplary).
    #[schemars(range(min = 1, max = 5))]
    pub score: u8,
    /// Whether the score is at least 3.
    pub passed: bool,
    /// The reason for the score.
    pub reasoning: String,
}

/// A claim of the agent about its own work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GradingClaim {
    /// The claim in words.
    pub claim: String,
    /// Whether the record confirms the claim.
    pub verified: bool,
    /// The evidence for or against the claim.
    pub evidence: String,
}

/// Whether a graded run passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OverallGrade {
    Pass,
    Fail,
}

const MAX_TEXT_LENGTH: usize = 4000;

impl GradingDocument {
    /// Makes the grading of a trial. `None` if the trial has no criterion with such a score, or no verdict.
    pub fn from_record(
        record: &TrialRecord,
        version: u32,
        conventions: &ConventionCompliance,
    ) -> Option<Self> {
        let overall = match record.verdict {
            Verdict::Pass => OverallGrade::Pass,
            Verdict::Fail => OverallGrade::Fail,
            Verdict::NotScored(_) => return None,
        };
        let scored: Vec<(&CheckResult, f64)> = record
            .checks
            .iter()
            .filter(|check| check.scale == Some(ScoreScale::OneToFive))
            .filter_map(|check| Some((check, check.score?)))
            .collect();
        let result = |(check, score): &(&CheckResult, f64)| {
            let score = score.round().clamp(1.0, 5.0);
            CriterionGrade {
                criterion: sanitise_text(check.label()),
                score: score as u8,
                passed: ScoreScale::OneToFive.passes(score) == Some(true),
                reasoning: sanitise_text(&check.rationale),
            }
        };
        let weak = record.checks.iter().filter_map(|check| Some((check.label(), check.weak.as_ref()?)));
        let weak = weak.map(|(criterion, why)| format!("{criterion}: {why}"));
        let feedback = weak.chain(record.remarks.uncovered.iter().cloned());
        let feedback: Vec<String> = feedback.map(|line| sanitise_text(&line)).collect();
        let claim = |claim: &AgentClaim| GradingClaim {
            claim: sanitise_text(&claim.claim),
            verified: claim.verified,
            evidence: sanitise_text(&claim.evidence),
        };
        if scored.is_empty() {
            return None;
        }
        let unscored = record.checks.iter().filter(|check| check.scale == Some(ScoreScale::OneToFive));
        let unscored: Vec<&CheckResult> = unscored.filter(|check| check.score.is_none()).collect();
        let no_score = |check: &&CheckResult| {
            let (label, why) = (check.label(), &check.rationale);
            sanitise_text(&format!(
                "the criterion \"{label}\" has no score, so there is no overall score: {why}"
            ))
        };
        // The criteria alone do not show why the trial failed.
        let failed = record.checks.iter().filter(|check| check.required && check.verdict == Verdict::Fail);
        let others = failed.filter(|check| check.scale != Some(ScoreScale::OneToFive));
        let failed_by =
            others.map(|check| sanitise_text(&format!("failed: {}: {}", check.label(), check.rationale)));
        let notes = unscored.iter().map(no_score).chain(failed_by);
        let notes: Vec<String> =
            notes.chain(record.notes_with_origin().map(|note| sanitise_text(&note))).collect();
        let overall_score =
            mean_to_one_decimal(scored.iter().map(|(_, score)| *score)).filter(|_| unscored.is_empty());
        Some(Self {
            case_id: printable_text(&record.case),
            version,
            run: record.attempt,
            overall_score,
            required_score: mean_to_one_decimal(
                scored.iter().filter(|(check, _)| check.required).map(|(_, score)| *score),
            ),
            results: scored.iter().map(result).collect(),
            overall,
            convention_compliance: sanitise_conventions(conventions),
            claims: record.remarks.claims.iter().map(claim).collect(),
            user_notes_summary: notes.join("; "),
            eval_feedback: feedback.join("; "),
            execution_metrics: Map::new(),
        })
    }

    /// Adds the agent's own counts of its work and its notes for the user, if they are in the trial's folder.
    #[must_use]
    pub fn with_agent_files(self, trial: &Path) -> Self {
        let lines = agent_files::read_user_notes(trial).unwrap_or_default();
        let lines = lines.lines().map(str::trim).filter(|line| !line.is_empty()).map(sanitise_text);
        let own = Some(self.user_notes_summary).filter(|own| !own.is_empty());
        let user_notes_summary = lines.chain(own).collect::<Vec<String>>().join("; ");
        let execution_metrics = agent_files::read_metrics(trial).unwrap_or_default();
        Self { execution_metrics, user_notes_summary, ..self }
    }

    /// Gives the documented name of the file, without the extension.
    pub fn file_stem(&self) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
        let case: String = self.case_id.chars().take(100).map(plain).collect();
        format!("{}_v{}_run{}", case.trim_start_matches('.'), self.version, self.run)
    }
}

/// Makes a judge's text safe to print, like every text from a model.
fn sanitise_conventions(conventions: &ConventionCompliance) -> ConventionCompliance {
    let TypeAlignmentResult { passed, details } = &conventions.type_alignment;
    let type_alignment = TypeAlignmentResult { passed: *passed, details: sanitise_text(details) };
    ConventionCompliance { type_alignment, ..conventions.clone() }
}

/// Gives the mean with one decimal. `None` without scores.
fn mean_to_one_decimal(scores: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = scores.fold((0.0, 0u32), |(sum, count), score| (sum + score, count + 1));
    (count > 0).then(|| (sum / f64::from(count) * 10.0).round() / 10.0)
}

fn sanitise_text(text: &str) -> String {
    truncate_text(&printable_text(text), MAX_TEXT_LENGTH)
}
