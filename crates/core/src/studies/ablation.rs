//! Ablation: which paragraphs of a skill's text its results depend on.
//!
//! The skill is run as a whole, and without a group of neighbouring paragraphs at a time. With groups of one paragraph
//! that is *leave one out*; with larger groups, only those that are needed are split further. A group counts as needed if
//! the skill is worse without it, and its p-value, times the number of all paragraphs divided by those of the group, is
//! at most 5 % (Meinshausen's hierarchical test). So the chance that any group is called needed that is not is at most
//! 5 % in the whole study, however many groups are tested. A group *without effect* needs a test that rules out a loss and
//! a gain of the margin, each with an error of 5 %.

use std::collections::BTreeMap;
use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::{ComparisonVerdict, Estimate, TrialRecord, Verdict};
use crate::stats::{ALPHA, CasePair, Cluster, PairedComparison, compare_pairs};

/// The scored runs of each case of one version of a skill.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct VersionRuns {
    /// The runs of each case, by suite, case and agent.
    pub cases: BTreeMap<[String; 3], Cluster>,
    /// The number of runs that have no verdict.
    pub not_scored: u64,
}

impl VersionRuns {
    /// Counts the runs in these records.
    pub fn from_records<'r>(records: impl IntoIterator<Item = &'r TrialRecord>) -> Self {
        let mut runs = Self::default();
        for record in records {
            let case = [record.suite.clone(), record.case.clone(), record.condition.agent.clone()];
            let cluster = runs.cases.entry(case).or_default();
            match &record.verdict {
                Verdict::Pass => *cluster = Cluster::new(cluster.passed + 1, cluster.runs + 1),
                Verdict::Fail => *cluster = Cluster::new(cluster.passed, cluster.runs + 1),
                Verdict::NotScored(_) => runs.not_scored += 1,
            }
        }
        runs
    }

    /// Gives the runs of each case on both sides, this side before.
    pub fn pairs_with(&self, after: &Self) -> Vec<CasePair> {
        let pair = |(case, before): (&[String; 3], &Cluster)| {
            Some(CasePair { before: *before, after: *after.cases.get(case)? })
        };
        self.cases.iter().filter_map(pair).collect()
    }

    /// Gives the pass rate: the mean over cases, with its interval.
    pub fn pass_rate(&self) -> Estimate {
        let clusters: Vec<Cluster> = self.cases.values().copied().collect();
        let runs = clusters.iter().map(|cluster| cluster.runs).sum();
        match crate::stats::clustered_rate(&clusters, ALPHA) {
            Some((rate, at)) => Estimate::new(Some(rate), Some((at.low, at.high)), runs),
            None => Estimate::undefined(runs),
        }
    }
}

/// What the skill's results show about a group of neighbouring paragraphs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GroupEffect {
    /// The number of the first paragraph of the group, from 0.
    pub first: usize,
    /// The number of paragraphs.
    pub count: usize,
    /// The pass rate without the group minus that of the whole skill. Negative if the group helps.
    pub effect: Estimate,
    /// The p-value, corrected for all groups that could be tested.
    pub chance: f64,
    /// What the group does.
    pub role: ParagraphRole,
}

impl GroupEffect {
    /// Gives the numbers of the paragraphs.
    pub fn paragraphs(&self) -> Range<usize> {
        self.first..self.first + self.count
    }
}

/// What a group of paragraphs does for the results of a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ParagraphRole {
    /// The skill is worse without it.
    Needed,
    /// The skill is better without it.
    Harmful,
    /// Without it the results are the same, up to the margin.
    WithoutEffect,
    /// These runs do not show what it does.
    Unclear,
}

/// Decides what a group of paragraphs does. `parent` is the corrected p-value of the group that it was split from.
pub fn judge_group(
    group: Range<usize>,
    paragraphs: usize,
    whole: &VersionRuns,
    without: &VersionRuns,
    margin: f64,
    parent: f64,
) -> GroupEffect {
    let PairedComparison { difference, chance, verdict } =
        compare_pairs(&whole.pairs_with(without), margin, ALPHA);
    let share = paragraphs as f64 / group.len().max(1) as f64;
    let chance = (chance * share).max(parent).min(1.0);
    let is_clear = chance <= ALPHA;
    // What passes too rarely cannot lose anything, whatever is left out.
    let can_lose = whole.pass_rate().low.is_some_and(|low| low > margin);
    // Runs without a verdict may be just those that the missing text broke.
    let is_complete = whole.not_scored + without.not_scored == 0;
    let role = match verdict {
        ComparisonVerdict::Worse if is_clear => ParagraphRole::Needed,
        ComparisonVerdict::Better if is_clear && is_complete => ParagraphRole::Harmful,
        ComparisonVerdict::Equivalent if is_complete && can_lose => ParagraphRole::WithoutEffect,
        ComparisonVerdict::Worse
        | ComparisonVerdict::Better
        | ComparisonVerdict::Equivalent
        | ComparisonVerdict::Inconclusive => ParagraphRole::Unclear,
    };
    GroupEffect { first: group.start, count: group.len(), effect: difference, chance, role }
}

/// Divides paragraphs into groups of a size, the last perhaps smaller.
pub fn first_groups(paragraphs: usize, size: usize) -> Vec<Range<usize>> {
    let size = size.max(1);
    (0..paragraphs).step_by(size).map(|first| first..(first + size).min(paragraphs)).collect()
}

/// Gives the smallest size of groups whose study fits into a number of versions, the whole skill included. `None` if even
/// one group does not fit.
pub fn group_size_for(paragraphs: usize, versions: usize) -> Option<usize> {
    (1..=paragraphs).find(|size| paragraphs.div_ceil(*size) < versions)
}

/// Splits a group into two halves. `None` if it is a single paragraph.
pub fn split_group(group: &Range<usize>) -> Option<[Range<usize>; 2]> {
    let middle = group.start + group.len() / 2;
    (group.len() > 1).then_some([group.start..middle, middle..group.end])
}

/// What a study shows about the paragraphs of a skill: the output of `practicum ablate --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "Which paragraphs of a skill its results depend on (ablate --json)")]
pub struct AblationDocument {
    /// The version of this document's form.
    #[schemars(extend("const" = 1))]
    pub schema_version: u32,
    /// The name of the skill.
    pub skill: String,
    /// The pass rate of the whole skill.
    pub pass_rate: Estimate,
    /// Smaller differences of the pass rate do not matter.
    pub margin: f64,
    /// The paragraphs in their order.
    pub paragraphs: Vec<AblationParagraph>,
    /// The groups that were left out, each alone, in the order in which they were run.
    pub groups: Vec<GroupEffect>,
    /// What can be cut; `None` if nothing was shown to be without effect or harmful.
    pub proposal: Option<AblationProposal>,
    /// The number of runs of the whole study, reused ones included.
    pub runs: u64,
    /// The number of groups that were not split further, because the limit of runs was reached.
    pub not_split: u64,
}

/// A paragraph, and what it does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AblationParagraph {
    /// Its text.
    pub text: String,
    /// An estimate of its tokens: one for four characters.
    pub estimated_tokens: u64,
    /// What the smallest group does that was tested and contains it.
    pub role: ParagraphRole,
    /// The effect of that group.
    pub effect: Estimate,
    /// The number of paragraphs of that group.
    pub group: usize,
}

/// Paragraphs that can be cut together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AblationProposal {
    /// The numbers of the paragraphs, from 0.
    pub cut: Vec<usize>,
    /// The pass rate without all of them minus that of the whole skill.
    pub effect: Estimate,
    /// What the runs without all of them say. Paragraphs that say the same can each be cut, but not together.
    pub verdict: ComparisonVerdict,
    /// The estimated tokens that are saved.
    pub estimated_tokens: u64,
    /// The text of the skill without them.
    pub text: String,
}

impl AblationDocument {
    /// Describes each paragraph by the smallest tested group that contains it.
    pub fn describe_paragraphs<'t>(
        texts: impl Iterator<Item = &'t str>,
        groups: &[GroupEffect],
    ) -> Vec<AblationParagraph> {
        let describe = |(at, text): (usize, &str)| {
            let around = groups.iter().filter(|group| group.paragraphs().contains(&at));
            let group = around.min_by_key(|group| group.count);
            AblationParagraph {
                text: text.to_owned(),
                estimated_tokens: (text.chars().count() as u64).div_ceil(4),
                role: group.map_or(ParagraphRole::Unclear, |group| group.role),
                effect: group.map_or(Estimate::undefined(0), |group| group.effect),
                group: group.map_or(0, |group| group.count),
            }
        };
        texts.enumerate().map(describe).collect()
    }
}

#[cfg(test)]
mod tests;
