//! Routing: which skill of a catalogue an agent activates for which prompt.
//!
//! All prompts that expect the same skill are a *row*. A row is run in *rounds*: one run of each of its prompts. The
//! results of a row decide whether it gets a further round, so its intervals are confidence sequences, which hold
//! whenever the rounds stop. They also hold if the prompts of a row have different rates: the evidence against the
//! mean rate of a round is at most 1 on average (the inequality of the arithmetic and the geometric mean). They are
//! about these prompts if they were run again. Only complete rounds count.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SimilarDescriptions;
use crate::model::{ActivationExpectation, Case, CheckKind, Estimate, TrialRecord};
use crate::stats::{ALPHA, claims_by_evidence, clopper_pearson, confidence_sequence, evidence_of_lower_rate};

/// One run of a prompt in a catalogue of skills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoutedRun {
    /// The id of the prompt's case.
    pub prompt: String,
    /// The number of the repetition, from 1.
    pub attempt: u32,
    /// The skills of which one must be activated, in order. Empty if none must be.
    pub accepted: Vec<String>,
    /// The skills that were activated; `None` if that is unknown.
    pub activated: Option<Vec<String>>,
}

impl RoutedRun {
    /// Reads a run from its record and its case. `None` if the case does not demand or forbid activation.
    pub(super) fn from_record(record: &TrialRecord, case: &Case) -> Option<Self> {
        // A trial that was never graded does not say what it is about, but its case does.
        let check = case.checks.iter().find_map(|check| match &check.kind {
            CheckKind::Activation(activation) => Some(activation),
            CheckKind::Rule(_) | CheckKind::Judged(_) | CheckKind::Sections(_) => None,
        })?;
        let mut accepted = match check.expect {
            ActivationExpectation::Must => check.skills.clone(),
            ActivationExpectation::MustNot => Vec::new(),
            ActivationExpectation::Either => return None,
        };
        accepted.sort();
        let activated = record.was_activated().map(|_| record.skills.activated.clone());
        Some(Self { prompt: record.case.clone(), attempt: record.attempt, accepted, activated })
    }

    /// Says whether exactly what was expected was activated; `None` if that is unknown.
    fn is_right(&self) -> Option<bool> {
        let activated = self.activated.as_ref()?;
        Some(match self.accepted.is_empty() {
            true => activated.is_empty(),
            false => !activated.is_empty() && activated.iter().all(|skill| self.accepted.contains(skill)),
        })
    }
}

/// The rules by which routing is analysed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RoutingRules {
    /// The share of the runs of a row that should be right.
    pub goal: f64,
    /// The greatest number of rounds of a row.
    pub most_rounds: u32,
}

/// What the runs of one agent show about the routing of all prompts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RoutingAnalysis {
    /// The number of prompts.
    pub prompts: u64,
    /// The number of runs in complete rounds.
    pub runs: u64,
    /// The number of these runs that do not show what was activated. They are neither right nor wrong, and widen the
    /// intervals.
    pub unknown: u64,
    /// The share of prompts whose first run was right, with the interval of Clopper and Pearson over prompts.
    pub right_at_first: Estimate,
    /// The rows: all prompts that expect the same.
    pub rows: Vec<RoutingRow>,
    /// The skills that were activated in place of others, those that surely happen most first.
    pub collisions: Vec<SkillCollision>,
}

/// The prompts that expect the same skill, and what was activated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RoutingRow {
    /// The skills of which one is expected. Empty if none is.
    pub expected: Vec<String>,
    /// The number of prompts.
    pub prompts: u64,
    /// How often each prompt was run.
    pub rounds: u32,
    /// The number of runs that do not show what was activated.
    pub unknown: u64,
    /// The share of runs that activated what was expected and nothing else.
    pub right: Estimate,
    /// How the row stands to the goal.
    pub standing: RowStanding,
    /// What was activated, most often first.
    pub activated: Vec<RoutedShare>,
}

/// How a row stands to the goal for right runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RowStanding {
    /// Fewer runs than the goal are right. Of all rows that are called so, at most 5 % are not, on average.
    Below,
    /// The whole interval is at the goal or above.
    Reached,
    /// These runs do not show it.
    Open,
}

/// How many runs of a row activated a skill.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RoutedShare {
    /// The activated skill; `None` if none was activated.
    pub skill: Option<String>,
    /// The number of runs.
    pub runs: u64,
    /// The share of the row's runs.
    pub share: Estimate,
}

/// A skill that was activated where others were expected.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SkillCollision {
    /// The skills of which one was expected. Empty if none was.
    pub expected: Vec<String>,
    /// The skill that was activated.
    pub activated: String,
    /// The number of runs in which it was activated.
    pub runs: u64,
    /// The share of the row's runs.
    pub share: Estimate,
    /// The prompts, by the ids of their cases.
    pub prompts: Vec<String>,
}

/// The runs of a row, by prompt and attempt.
type RowRuns<'r> = BTreeMap<&'r str, BTreeMap<u32, &'r RoutedRun>>;

/// Analyses the runs of one agent.
pub fn analyse_routing(runs: &[RoutedRun], rules: &RoutingRules) -> RoutingAnalysis {
    let mut by_row: BTreeMap<&[String], RowRuns<'_>> = BTreeMap::new();
    for run in runs {
        by_row.entry(&run.accepted).or_default().entry(&run.prompt).or_default().insert(run.attempt, run);
    }
    let first: Vec<&RoutedRun> = runs.iter().filter(|run| run.attempt == 1).collect();
    let right = first.iter().filter(|run| run.is_right() == Some(true)).count() as u64;
    let silent = first.iter().filter(|run| run.is_right().is_none()).count() as u64;
    let mut rows = Vec::new();
    let mut collisions = Vec::new();
    for (expected, prompts) in &by_row {
        let (row, found) = analyse_row(expected, prompts, rules.goal);
        rows.push(row);
        collisions.extend(found);
    }
    let evidence: Vec<f64> = rows.iter().map(|row| evidence_against(row, rules.goal)).collect();
    for (row, is_below) in rows.iter_mut().zip(claims_by_evidence(&evidence, ALPHA)) {
        if is_below {
            row.standing = RowStanding::Below;
        }
    }
    collisions.sort_by(|a, b| {
        let low = |collision: &SkillCollision| collision.share.low.unwrap_or(0.0);
        low(b).total_cmp(&low(a)).then(b.runs.cmp(&a.runs)).then(a.expected.cmp(&b.expected))
    });
    RoutingAnalysis {
        prompts: by_row.values().map(|prompts| prompts.len() as u64).sum(),
        runs: rows.iter().map(|row| row.right.n).sum(),
        unknown: rows.iter().map(|row| row.unknown).sum(),
        right_at_first: estimate(right, silent, first.len() as u64, clopper_pearson),
        rows,
        collisions,
    }
}

fn analyse_row(expected: &[String], prompts: &RowRuns<'_>, goal: f64) -> (RoutingRow, Vec<SkillCollision>) {
    // A round that not every prompt had is left out: what it shows may have stopped it.
    let complete = |runs: &BTreeMap<u32, &RoutedRun>| {
        (1..).take_while(|attempt| runs.contains_key(attempt)).count() as u32
    };
    let rounds = prompts.values().map(complete).min().unwrap_or(0);
    let counted: Vec<&RoutedRun> =
        prompts.values().flat_map(|runs| runs.range(1..=rounds).map(|(_, run)| *run)).collect();
    let total = counted.len() as u64;
    let right = counted.iter().filter(|run| run.is_right() == Some(true)).count() as u64;
    let unknown = counted.iter().filter(|run| run.activated.is_none()).count() as u64;
    let mut by_skill: BTreeMap<Option<&str>, (u64, BTreeSet<&str>)> = BTreeMap::new();
    for run in &counted {
        let Some(activated) = &run.activated else { continue };
        let named = activated.iter().map(|skill| Some(skill.as_str()));
        for skill in named.chain(activated.is_empty().then_some(None)) {
            let entry = by_skill.entry(skill).or_default();
            entry.0 += 1;
            entry.1.insert(&run.prompt);
        }
    }
    let share = |runs: u64| estimate(runs, unknown, total, confidence_sequence);
    let mut activated: Vec<RoutedShare> = by_skill
        .iter()
        .map(|(skill, (runs, _))| RoutedShare {
            skill: skill.map(str::to_owned),
            runs: *runs,
            share: share(*runs),
        })
        .collect();
    activated.sort_by_key(|share| std::cmp::Reverse(share.runs));
    let is_other = |skill: &str| expected.iter().all(|accepted| accepted != skill);
    let collisions = by_skill.iter().filter_map(|(skill, (runs, prompts))| {
        let skill = skill.filter(|skill| is_other(skill))?;
        Some(SkillCollision {
            expected: expected.to_vec(),
            activated: skill.to_owned(),
            runs: *runs,
            share: share(*runs),
            prompts: prompts.iter().map(|prompt| (*prompt).to_owned()).collect(),
        })
    });
    let right = share(right);
    let standing = match right.low {
        Some(low) if low >= goal => RowStanding::Reached,
        Some(_) | None => RowStanding::Open,
    };
    let row = RoutingRow {
        expected: expected.to_vec(),
        prompts: prompts.len() as u64,
        rounds,
        unknown,
        right,
        standing,
        activated,
    };
    (row, collisions.collect())
}

/// Gives the evidence that fewer of a row's runs than the goal are right. Unknown runs count as right.
fn evidence_against(row: &RoutingRow, goal: f64) -> f64 {
    let right = right_runs(row) + row.unknown;
    evidence_of_lower_rate(right.min(row.right.n), row.right.n, goal)
}

fn right_runs(row: &RoutingRow) -> u64 {
    let known = row.right.n - row.unknown;
    (row.right.value.unwrap_or(0.0) * known as f64).round() as u64
}

/// Estimates a share. The value is that of the known runs; the interval contains what it would be whatever the unknown
/// runs had shown.
fn estimate(
    counted: u64,
    unknown: u64,
    runs: u64,
    interval: fn(u64, u64, f64) -> Option<crate::stats::Interval>,
) -> Estimate {
    let known = runs.saturating_sub(unknown);
    let value = (known > 0).then(|| counted as f64 / known as f64);
    let low = interval(counted, runs, ALPHA).map(|ends| ends.low);
    let high = interval(counted + unknown, runs, ALPHA).map(|ends| ends.high);
    Estimate::new(value, low.zip(high), runs)
}

/// Decides which rows get further rounds, and how many rounds each then has in all: rows that do not show yet whether
/// they reach the goal, and in which a collision is likely. That is so if a run was not right, if their skill was
/// activated in another row, or if its description is similar to another's. The number of rounds doubles, so that few
/// steps are needed.
pub fn rows_to_repeat(
    analysis: &RoutingAnalysis,
    similar: &[SimilarDescriptions],
    rules: &RoutingRules,
) -> BTreeMap<Vec<String>, u32> {
    let intruders = analysis.collisions.iter().map(|collision| collision.activated.as_str());
    let likely: BTreeSet<&str> =
        intruders.chain(similar.iter().flat_map(|pair| &pair.skills).map(String::as_str)).collect();
    // An interval that excludes the goal is not enough: among hundreds of rows, some do so by chance.
    let is_open = |row: &&RoutingRow| row.standing == RowStanding::Open && row.right.value.is_some();
    let is_suspect = |row: &&RoutingRow| {
        right_runs(row) + row.unknown < row.right.n
            || row.expected.iter().any(|skill| likely.contains(skill.as_str()))
    };
    let rows = analysis.rows.iter().filter(|row| row.rounds > 0 && row.rounds < rules.most_rounds);
    let chosen = rows.filter(is_open).filter(is_suspect);
    chosen.map(|row| (row.expected.clone(), (row.rounds * 2).min(rules.most_rounds))).collect()
}

#[cfg(test)]
mod tests;
