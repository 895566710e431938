//! The documents of blind comparisons: one comparison, and the report of all.

use std::collections::BTreeMap;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::JudgedPair;
use super::statistics::{BlindTally, can_never_decide, tally_cases};
use crate::improve::{atomic_files, skill_creator};
use practicum_core::model::{ComparisonVerdict, Estimate};

/// The blind comparison of two outputs in one order, with exactly the keys that writing-skills documents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Two outputs compared blindly, in one order (comparison.json)")]
pub struct BlindComparison {
    /// The prompt of both outputs.
    pub eval_prompt: String,
    /// The label of the better output. Labels are drawn for each case, so they do not reveal the version.
    pub winner: OutputLabel,
    /// Why this output is better.
    pub reasoning: String,
    /// The scores of both outputs by dimension.
    pub scores: DimensionScores,
}

/// The scores of both outputs, by dimension.
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

/// The label of an output in a blind comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OutputLabel {
    A,
    B,
}

/// One of the two sides of a comparison, in the order in which the user named them.
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

/// The combined result of comparing a pair in both orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PairOutcome {
    First,
    Second,
    /// The two orders contradict each other.
    Tie,
    /// A judge would be shown the same text twice. That is a tie, and no judge was asked.
    Identical,
    /// There was no answer in one of the orders.
    NotCompared,
}

/// How certain the result of a pair is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OutcomeConfidence {
    /// Both orders agree.
    High,
    /// The two orders contradict each other.
    Low,
}

/// A blind comparison of two sides: `compare --blind --json`, and `blind.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "Two sides compared blindly (compare --blind --json, blind.json)")]
pub struct BlindReport {
    #[schemars(extend("const" = 1))]
    pub schema_version: u32,
    /// The name of the first side, as the user gave it.
    pub first: String,
    pub second: String,
    /// The seed with which the labels were drawn.
    pub seed: u64,
    /// The number of cases in which the second side is better; `losses` and `ties` count the others.
    pub wins: u64,
    pub losses: u64,
    /// The number of cases without a better side. Identical outputs are ties, too.
    pub ties: u64,
    /// The number of ties in which a judge would be shown the same text twice.
    #[serde(default)]
    pub identical: u64,
    pub not_compared: u64,
    /// The share of decided cases in which the second side is better.
    pub win_rate: Estimate,
    /// The probability that chance alone makes such a one-sided result.
    pub chance: f64,
    /// The verdict on the second side.
    pub verdict: ComparisonVerdict,
    /// The label that the judge named whatever stood under it; `None` if it did not follow the order of the outputs. Such
    /// a judge is broken, and the comparison says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge_follows: Option<OutputLabel>,
    pub cases: Vec<BlindCase>,
    /// Cases for which only one side has an output.
    pub unpaired: Vec<String>,
    /// The cost of the comparison; `None` if it is unknown.
    pub cost_usd: Option<f64>,
}

/// The result of a blind comparison for one case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlindCase {
    pub suite: String,
    pub case: String,
    pub outcome: PairOutcome,
    pub confidence: Option<OutcomeConfidence>,
    /// The answers in both orders, with the side behind each label. Empty if the outputs are identical.
    pub orders: Vec<BlindOrder>,
    /// The paths of the comparison.json files, relative to this document.
    pub files: Vec<String>,
}

/// The answer of the judge for one order of the outputs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlindOrder {
    /// The side that was labelled A.
    pub a: ComparedSide,
    /// The better side; `None` if there was no answer.
    pub winner: Option<ComparedSide>,
    /// The quote from one of the outputs that decided.
    #[serde(default)]
    pub quote: Option<String>,
    /// Why there was no answer; `None` if there was one.
    pub why: Option<String>,
}

impl BlindReport {
    /// Says whether the judge preferred the first side in more cases than the second, and so few cases were decided
    /// that no result of them could have shown that one side is better.
    pub fn cannot_tell_a_loss(&self) -> bool {
        self.losses > self.wins && can_never_decide(self.wins + self.losses)
    }

    /// Says whether the judge chose by the order of the outputs, so that the comparison says nothing about them.
    pub fn is_judge_broken(&self) -> bool {
        self.judge_follows.is_some()
    }

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
        let BlindTally { wins, losses, ties, identical, not_compared, win_rate, chance, verdict, follows } =
            tally_cases(&cases);
        let blind = Self {
            schema_version: 1,
            first: first.to_owned(),
            second: second.to_owned(),
            seed,
            wins,
            losses,
            ties,
            identical,
            not_compared,
            win_rate,
            chance,
            verdict,
            judge_follows: follows,
            cases,
            unpaired,
            cost_usd,
        };
        std::fs::create_dir_all(folder)?;
        atomic_files::write_json(&folder.join("blind.json"), &blind)?;
        Ok(blind)
    }
}
