//! Decides whether a new version replaces the best one so far.

use std::cmp::Ordering;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CaseSplit, VersionScore};
use practicum_core::compare::{ComparisonRules, SideComparison, SideRecords, compare};
use practicum_core::model::{Estimate, Noise, TrialRecord, count_with_noun};
use practicum_core::stats::{ALPHA, DEFAULT_MARGIN};

/// What was found, and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VersionDecision {
    pub accepted: bool,
    /// In words.
    pub why: String,
    /// Whether it was refused because a case has no answer, of this version or of the best so far.
    #[serde(default)]
    pub unanswered: bool,
    /// The change of the pass rate on the tuning cases.
    pub tuning: Estimate,
    /// The same on the held-out cases; undefined if there are none.
    pub held_out: Estimate,
}

/// What is tuned decides what counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ImproveGoal {
    /// The whole skill, by all its evals.
    Skill,
    /// Its description, by whether it fires when it should.
    Description,
}

/// One of the two versions of a decision.
#[derive(Debug, Clone, Copy)]
pub struct VersionResult<'s> {
    pub records: &'s [TrialRecord],
    /// The length of its description.
    pub description_length: usize,
}

/// Decides whether the candidate replaces the best version, on the tuning and the held-out cases.
pub fn decide_version(
    goal: ImproveGoal,
    best: VersionResult<'_>,
    candidate: VersionResult<'_>,
    split: &CaseSplit,
    noise: Option<&Noise>,
) -> VersionDecision {
    let part = |part: &[super::CaseId]| {
        let side = |name: &str, records| SideRecords {
            name: String::from(name),
            records: CaseSplit::records_of_part(records, part),
        };
        let rules =
            ComparisonRules { margin: DEFAULT_MARGIN, count_every_loss: false, allow_missing: false, noise };
        let sides = [side("best", best.records), side("candidate", candidate.records)];
        compare(&sides, &rules).comparisons.into_iter().next().unwrap_or_default()
    };
    let (tuning, held_out) = (part(&split.tuning), part(&split.held_out));
    let unanswered = unanswered_cases_reason(best, candidate, split);
    let is_unanswered = unanswered.is_some();
    let refused = unanswered.or_else(|| refusal_reason(goal, best, candidate, split, &tuning, &held_out));
    VersionDecision {
        accepted: refused.is_none(),
        why: refused.unwrap_or_else(|| acceptance_reason(candidate, split)),
        unanswered: is_unanswered,
        tuning: tuning.difference,
        held_out: held_out.difference,
    }
}

/// Gives the reason why a version cannot be decided: cases without a result in one of the two versions. An
/// unmeasured case may have become worse.
fn unanswered_cases_reason(
    best: VersionResult<'_>,
    candidate: VersionResult<'_>,
    split: &CaseSplit,
) -> Option<String> {
    let of_version = |words: &str, standing: VersionResult<'_>| {
        let cases = split.tuning.iter().chain(&split.held_out);
        let is_silent = |id: &&super::CaseId| {
            !CaseSplit::records_of_part(standing.records, std::slice::from_ref(id))
                .iter()
                .any(|run| run.is_conclusive())
        };
        let silent: Vec<&str> = cases.filter(is_silent).map(|id| id.case.as_str()).collect();
        let listed = silent.iter().take(MOST_NAMED).copied().collect::<Vec<_>>().join(", ");
        let more = if silent.len() > MOST_NAMED { ", …" } else { "" };
        let count = count_with_noun(silent.len(), "case");
        (!silent.is_empty()).then(|| format!("{count} of the {words} have no answer ({listed}{more})"))
    };
    of_version("new version", candidate).or_else(|| of_version("version before", best))
}

/// The largest number of cases that a reason names.
const MOST_NAMED: usize = 5;

/// Gives the reason why a version was accepted, with the amount of measurements.
fn acceptance_reason(candidate: VersionResult<'_>, split: &CaseSplit) -> String {
    let runs = candidate.records.len();
    let scored = candidate.records.iter().filter(|record| record.is_conclusive()).count();
    let held_out = match split.held_out.len() {
        0 => "no case is held out".to_owned(),
        1 => "not worse on the 1 held-out case".to_owned(),
        several => format!("not worse on the {several} held-out cases"),
    };
    format!("better on the tuning cases, {held_out} ({scored} of {runs} runs scored)")
}

fn refusal_reason(
    goal: ImproveGoal,
    best: VersionResult<'_>,
    candidate: VersionResult<'_>,
    split: &CaseSplit,
    tuning: &SideComparison,
    held_out: &SideComparison,
) -> Option<String> {
    let score = |standing: VersionResult<'_>| VersionScore::from_records("", standing.records);
    let (old, new) = (score(best), score(candidate));
    if tuning.lost {
        return Some("the tuning cases got worse".to_owned());
    }
    if !split.held_out.is_empty() && has_regressed(held_out) {
        return Some("the held-out cases got worse".to_owned());
    }
    if new.not_scored > old.not_scored {
        return Some(format!("{} gave no answer", count_with_noun(new.not_scored, "run")));
    }
    let order = match goal {
        ImproveGoal::Skill => new.compare_rank(&old),
        // The best description is the one that does best on the held-out cases; of equals, the shorter.
        ImproveGoal::Description => {
            let part = |records| {
                VersionScore::from_records("", CaseSplit::records_of_part(records, &split.held_out))
            };
            let held_out = part(candidate.records).compare_rank(&part(best.records));
            held_out
                .then(new.compare_rank(&old))
                .then(best.description_length.cmp(&candidate.description_length))
        }
    };
    (order != Ordering::Greater).then(|| "it does no better".to_owned())
}

/// Says whether cases got worse by more than noise. The question has one direction, so the exact test is
/// one-sided.
fn has_regressed(found: &SideComparison) -> bool {
    let fell = found.difference.value.is_some_and(|difference| difference < 0.0);
    found.lost || (fell && found.chance / 2.0 <= ALPHA + 1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::improve::CaseId;
    use crate::improve::testing::record;

    /// Makes records of three trials for each case, with this many passes.
    fn records(passes: &[(&str, u32)]) -> Vec<TrialRecord> {
        let runs =
            passes.iter().flat_map(|(case, passed)| (1..=3).map(move |n| record(case, n, n <= *passed)));
        runs.collect()
    }

    fn split() -> CaseSplit {
        let ids = |cases: &[&str]| {
            cases.iter().map(|case| CaseId { suite: "s".into(), case: (*case).into() }).collect()
        };
        CaseSplit { tuning: ids(&["a", "b", "c"]), held_out: ids(&["x"]) }
    }

    #[test]
    fn better_on_tuning_and_no_worse_elsewhere_is_accepted() {
        let best = [("a", 0), ("b", 1), ("c", 3), ("x", 3)];
        for (candidate, expected) in [
            ([("a", 3), ("b", 1), ("c", 3), ("x", 3)], None),
            ([("a", 3), ("b", 1), ("c", 3), ("x", 2)], None),
            // The candidate helps cases that the proposer saw and harms one that it did not see.
            ([("a", 3), ("b", 3), ("c", 3), ("x", 0)], Some("held-out")),
            (best, Some("no better")),
            ([("a", 0), ("b", 0), ("c", 3), ("x", 3)], Some("no better")),
        ] {
            let (old, new) = (records(&best), records(&candidate));
            let standing = |records| VersionResult { records, description_length: 10 };
            let found = decide_version(ImproveGoal::Skill, standing(&old), standing(&new), &split(), None);
            match expected {
                None => assert!(found.accepted, "{candidate:?}: {}", found.why),
                Some(part) => {
                    assert!(!found.accepted && found.why.contains(part), "{candidate:?}: {}", found.why);
                }
            }
        }
    }

    #[test]
    fn worse_on_tuning_is_never_accepted() {
        let best = records(&[("a", 3), ("b", 3), ("c", 3), ("x", 0)]);
        let new = records(&[("a", 0), ("b", 0), ("c", 0), ("x", 3)]);
        let standing = |records| VersionResult { records, description_length: 10 };
        for goal in [ImproveGoal::Skill, ImproveGoal::Description] {
            let found = decide_version(goal, standing(&best), standing(&new), &split(), None);
            assert!(!found.accepted && found.why.contains("tuning"), "{}", found.why);
        }
    }

    #[test]
    fn a_description_is_chosen_by_held_out_cases_and_the_shorter_wins_ties() {
        let best = records(&[("a", 1), ("b", 1), ("c", 1), ("x", 1)]);
        for (candidate, length, accepted) in [
            ([("a", 1), ("b", 1), ("c", 1), ("x", 2)], 20, true),
            ([("a", 3), ("b", 1), ("c", 1), ("x", 1)], 20, true),
            ([("a", 1), ("b", 1), ("c", 1), ("x", 1)], 9, true),
            ([("a", 1), ("b", 1), ("c", 1), ("x", 1)], 10, false),
            ([("a", 3), ("b", 3), ("c", 3), ("x", 0)], 5, false),
        ] {
            let new = records(&candidate);
            let (best, new) = (
                VersionResult { records: &best, description_length: 10 },
                VersionResult { records: &new, description_length: length },
            );
            let found = decide_version(ImproveGoal::Description, best, new, &split(), None);
            assert_eq!(found.accepted, accepted, "{candidate:?} {length}: {}", found.why);
        }
    }

    #[test]
    fn runs_without_an_answer_do_not_make_a_version_better() {
        use practicum_core::model::{NotScoredReason, Verdict};
        let best = records(&[("a", 1), ("b", 1), ("c", 1), ("x", 1)]);
        let mut new = records(&[("a", 3), ("b", 3), ("c", 3), ("x", 3)]);
        new[0].verdict = Verdict::NotScored(NotScoredReason::NotTrusted);
        let standing = |records| VersionResult { records, description_length: 1 };
        let found = decide_version(ImproveGoal::Skill, standing(&best), standing(&new), &split(), None);
        assert!(!found.accepted && found.why.contains("no answer"), "{}", found.why);
    }
}
