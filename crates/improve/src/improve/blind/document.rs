//! The documents of blind comparisons: one comparison, and the report of all.

use std::collections::BTreeMap;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::JudgedPair;
use super::statistics::{BlindTally, tally_cases};
use crate::improve::{atomic_files, skill_creator};
use practicum_core::model::{ComparisonVerdict, Estimate};

/// One look at two outputs, in the shape that writing-skills documents, with exactly its keys.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Two outputs compared blindly, in one order (comparison.json)")]
pub struct BlindComparison {
    /// What both outputs were made for.
    pub eval_prompt: String,
    /// The better one. Labels are dealt anew for each case, and say nothing of versions.
    pub winner: OutputLabel,
    /// Why it is the better one.
    pub reasoning: String,
    /// What each output got for each dimension.
    pub scores: DimensionScores,
}

pub type DimensionScores = BTreeMap<String, ScorePair>;

/// The scores of both outputs for one dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScorePair {
    /// The score of output A, from 1 to 10.
    #[serde(rename = "A")]
    #[schemars(range(min = 1, max = 10))]
    pub a: u8,
    /// The score of output B, from 1 to 10.
    #[serde(rename = "B")]
    #[schemars(range(min = 1, max = 10))]
    pub b: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OutputLabel {
    A,
    B,
}

/// Which of the two sides that the user named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ComparedSide {
    First,
    Second,
}

impl ComparedSide {
    /// Gives the side that has a label, if this side is labelled A.
    pub fn side_with_label(self, label: OutputLabel) -> ComparedSide {
        match (self, label) {
            (ComparedSide::First, OutputLabel::A) | (ComparedSide::Second, OutputLabel::B) => {
                ComparedSide::First
            }
            (ComparedSide::Second, OutputLabel::A) | (ComparedSide::First, OutputLabel::B) => {
                ComparedSide::Second
            }
        }
    }
}

/// What two looks at a pair come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PairOutcome {
    First,
    Second,
    Tie,
    /// One of the looks gave no answer.
    NotCompared,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OutcomeConfidence {
    /// Both orders agree.
    High,
    /// They contradict each other.
    Low,
}

/// A blind comparison of two sides: `compare --blind --json`, and `blind.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "Two sides compared blindly (compare --blind --json, blind.json)")]
pub struct BlindReport {
    #[schemars(extend("const" = 1))]
    pub schema_version: u32,
    /// What the user called the sides.
    pub first: String,
    pub second: String,
    /// Tossed the coins that dealt the labels.
    pub seed: u64,
    /// Cases in which the second is better, the first is better, or neither.
    pub wins: u64,
    pub losses: u64,
    pub ties: u64,
    pub not_compared: u64,
    /// The share of wins of the second among the cases that were decided.
    pub win_rate: Estimate,
    /// How likely a fair coin would decide the cases so one-sidedly.
    pub chance: f64,
    /// What may be said of the second.
    pub verdict: ComparisonVerdict,
    pub cases: Vec<BlindCase>,
    /// Cases that only one side has an output for.
    pub unpaired: Vec<String>,
    /// `None` where the cost is not known.
    pub cost_usd: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlindCase {
    pub suite: String,
    pub case: String,
    pub outcome: PairOutcome,
    pub confidence: Option<OutcomeConfidence>,
    /// The looks, in both orders: the key to the labels.
    pub orders: Vec<BlindOrder>,
    /// The comparison.json of each look, from where this document is.
    pub files: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlindOrder {
    /// Who was labelled A.
    pub a: ComparedSide,
    /// `None` if there was no answer.
    pub winner: Option<ComparedSide>,
    /// The words of one of the outputs that decided.
    #[serde(default)]
    pub quote: Option<String>,
    /// Why there was no answer.
    pub why: Option<String>,
}

impl BlindReport {
    /// Collects the judged pairs into a report and writes it to a new folder: a comparison document for each
    /// judgement, and the report with the key to their labels.
    pub fn write_new(
        first: &str,
        second: &str,
        seed: u64,
        judged: Vec<JudgedPair>,
        unpaired: Vec<String>,
        folder: &Path,
    ) -> std::io::Result<Self> {
        let mut cases = Vec::new();
        let mut cost_usd = Some(0.0);
        let mut looks = 0;
        for (number, judged) in judged.into_iter().enumerate() {
            let mut case = judged.case;
            for (at, comparison) in judged.comparisons.iter().enumerate() {
                let Some(comparison) = comparison else { continue };
                // A case's name can be anything, so it is not used as a path.
                let file = format!("case-{}/order-{}/comparison.json", number + 1, at + 1);
                let path = folder.join(&file);
                std::fs::create_dir_all(path.parent().unwrap_or(folder))?;
                atomic_files::write_json(&path, comparison)?;
                case.files.push(file);
                looks += 1;
                let theirs = folder.join(skill_creator::SKILL_CREATOR_FOLDER);
                std::fs::create_dir_all(&theirs)?;
                let theirs = theirs.join(format!("comparison-{looks}.json"));
                atomic_files::write_json(&theirs, &skill_creator::comparison_document(comparison))?;
            }
            cost_usd = cost_usd.zip(judged.cost_usd).map(|(sum, more)| sum + more);
            cases.push(case);
        }
        let BlindTally { wins, losses, ties, not_compared, win_rate, chance, verdict } = tally_cases(&cases);
        let blind = Self {
            schema_version: 1,
            first: first.to_owned(),
            second: second.to_owned(),
            seed,
            wins,
            losses,
            ties,
            not_compared,
            win_rate,
            chance,
            verdict,
            cases,
            unpaired,
            cost_usd,
        };
        std::fs::create_dir_all(folder)?;
        atomic_files::write_json(&folder.join("blind.json"), &blind)?;
        Ok(blind)
    }
}
