//! The dimensions in which the trials of one run may differ, and the split of a run along one of them.

use std::collections::BTreeSet;

use super::SideRecords;
use crate::model::{NotScoredReason, TrialRecord, Verdict};

/// A property in which the trials of one run may differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dimension {
    /// With the skill, without it, or with a version of it.
    Arm,
    /// The agent CLI.
    Agent,
    /// The requested model.
    Model,
    /// How strongly the system prompt urges the agent to use skills.
    Mode,
}

impl Dimension {
    /// Every dimension, in the order of `compare --help`.
    pub const ALL: [Dimension; 4] = [Dimension::Arm, Dimension::Agent, Dimension::Model, Dimension::Mode];

    /// Gives the word for the dimension on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Dimension::Arm => "arm",
            Dimension::Agent => "agent",
            Dimension::Model => "model",
            Dimension::Mode => "mode",
        }
    }

    /// Reads the word for a dimension; `None` for any other word.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dimension| dimension.name() == text)
    }

    /// Gives the value that a trial has in this dimension.
    pub(crate) fn value_in(self, record: &TrialRecord) -> String {
        let condition = &record.condition;
        match self {
            Dimension::Arm => condition.arm.name(),
            Dimension::Agent => condition.agent.clone(),
            Dimension::Model => condition.model.clone().unwrap_or_else(|| "the agent's own".to_owned()),
            Dimension::Mode => condition.mode.name().to_owned(),
        }
    }
}

/// Splits a run into sides. The first side is the one that the others are compared with: the arm without the
/// skill, the mode that adds nothing, otherwise the first by name.
pub fn split_by_dimension<'r>(records: &[&'r TrialRecord], dimension: Dimension) -> Vec<SideRecords<'r>> {
    let mut names: Vec<String> = records
        .iter()
        .map(|record| dimension.value_in(record))
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    names.sort_by_key(|name| !["without", "baseline"].contains(&name.as_str()));
    let void = if dimension == Dimension::Arm { void_pairs(records) } else { BTreeSet::new() };
    let part = |name: String| {
        let is_own = |record: &&&TrialRecord| {
            dimension.value_in(record) == name && !void.contains(&trial_pair_key(record))
        };
        let own = records.iter().filter(is_own).copied().collect();
        SideRecords::new(name, own)
    };
    names.into_iter().map(part).collect()
}

type TrialPairKey<'r> = (&'r str, &'r str, &'r str, Option<&'r str>, &'r str, u32);

fn trial_pair_key(record: &TrialRecord) -> TrialPairKey<'_> {
    let condition = &record.condition;
    let (agent, model, mode) = (condition.agent.as_str(), condition.model.as_deref(), condition.mode.name());
    (&record.suite, &record.case, agent, model, mode, record.attempt)
}

/// Finds the pairs of which one trial did not have the skills of its arm: its partner has no counterpart.
fn void_pairs<'r>(records: &[&'r TrialRecord]) -> BTreeSet<TrialPairKey<'r>> {
    let void =
        |record: &&&TrialRecord| matches!(record.verdict, Verdict::NotScored(NotScoredReason::InvalidArm(_)));
    records.iter().filter(void).map(|record| trial_pair_key(record)).collect()
}
