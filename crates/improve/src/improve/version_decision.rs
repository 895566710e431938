//! Decides whether a new version replaces the best one so far: first by a lenient test on the runs of the round,
//! then, for a candidate, by a strict test on fresh runs of both versions.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CaseSplit, VersionScore};
use practicum_core::compare::{ComparisonRules, SideComparison, SideRecords, compare};
use practicum_core::model::{Condition, Estimate, Noise, TrialRecord, Verdict, count_with_noun};
use practicum_core::stats::{
    ALPHA, CANDIDATE_ALPHA, CasePair, Cluster, DEFAULT_MARGIN, confirmation_alpha, improvement_chance,
    is_significant, mean_difference,
};

/// The decision about a version, with its reason.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VersionDecision {
    /// Whether the version is a candidate; after its confirmation, whether it replaces the best version.
    pub accepted: bool,
    /// The reason in words.
    pub why: String,
    /// Whether it was refused because a case has no answer, of this version or of the best so far.
    #[serde(default)]
    pub unanswered: bool,
    /// The change of the pass rate on the tuning cases.
    pub tuning: Estimate,
    /// The change of the pass rate on the held-out cases; undefined if there are none.
    pub held_out: Estimate,
    /// The test on fresh runs; `None` if the version was no candidate.
    #[serde(default)]
    pub confirmation: Option<Confirmation>,
}

/// The test of a candidate on fresh runs of it and of the best version so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Confirmation {
    /// The number of the confirmation in its loop, from 1.
    pub number: u32,
    /// The pass rate of the best version so far in its fresh run.
    pub best_pass_rate: Option<f64>,
    /// The pass rate of the candidate in its fresh run.
    pub pass_rate: Option<f64>,
    /// The change of the pass rate over all cases.
    pub difference: Estimate,
    /// The p-value: the chance of so many more passes if no case had changed.
    pub chance: f64,
    /// The significance level, which is smaller for each further confirmation of a loop.
    pub alpha: f64,
}

/// The part of the skill that is improved, which decides what is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ImproveGoal {
    /// The whole skill, by all its evals.
    Skill,
    /// The description, measured by whether the skill is activated when it should be.
    Description,
}

/// The trials of the two versions of a decision.
#[derive(Debug, Clone, Copy)]
pub struct VersionPair<'s> {
    pub best: &'s [TrialRecord],
    pub candidate: &'s [TrialRecord],
}

/// Decides whether a version is a candidate: whether it looks better in the runs of its round. Such a version
/// replaces nothing yet, because the best of several equal versions always looks better.
pub fn decide_candidate(pair: VersionPair<'_>, split: &CaseSplit, noise: Option<&Noise>) -> VersionDecision {
    decide(pair, split, noise, |pairs| {
        let looks_better = is_significant(improvement_chance(pairs), CANDIDATE_ALPHA);
        (!looks_better).then(|| "it does no better".to_owned())
    })
}

/// Decides whether a candidate replaces the best version, by fresh runs of both. The number counts the
/// confirmations of the loop, from 1.
pub fn confirm_candidate(
    pair: VersionPair<'_>,
    split: &CaseSplit,
    noise: Option<&Noise>,
    number: u32,
) -> VersionDecision {
    let pairs = case_pairs(pair);
    let differences: Vec<f64> = pairs.iter().filter_map(|pair| pair.difference()).collect();
    let rate = |records| VersionScore::from_records("", records).pass_rate;
    let confirmation = Confirmation {
        number,
        best_pass_rate: rate(pair.best),
        pass_rate: rate(pair.candidate),
        difference: mean_difference(&differences, ALPHA),
        chance: improvement_chance(&pairs),
        alpha: confirmation_alpha(number),
    };
    let decision = decide(pair, split, noise, |_| {
        let Confirmation { chance, alpha, .. } = confirmation;
        (!is_significant(chance, alpha)).then(|| {
            format!(
                "fresh runs do not confirm that it is better (p = {chance:.3}, at most {alpha:.4} is needed)"
            )
        })
    });
    VersionDecision { confirmation: Some(confirmation), ..decision }
}

/// Decides about a version, by a test of all cases and by what must not have become worse.
fn decide(
    pair: VersionPair<'_>,
    split: &CaseSplit,
    noise: Option<&Noise>,
    why_no_better: impl FnOnce(&[CasePair]) -> Option<String>,
) -> VersionDecision {
    let part = |part: &[super::CaseId]| {
        let side = |name: &str, records| SideRecords::new(name, CaseSplit::records_of_part(records, part));
        let rules = ComparisonRules {
            margin: DEFAULT_MARGIN,
            count_every_loss: false,
            allow_missing: false,
            noise,
            history: None,
        };
        let sides = [side("best", pair.best), side("candidate", pair.candidate)];
        compare(&sides, &rules).comparisons.into_iter().next().unwrap_or_default()
    };
    let (tuning, held_out) = (part(&split.tuning), part(&split.held_out));
    let unanswered = unanswered_cases_reason(pair, split);
    let is_unanswered = unanswered.is_some();
    let refused = unanswered
        .or_else(|| loss_reason(pair, split, &tuning, &held_out))
        .or_else(|| why_no_better(&case_pairs(pair)));
    VersionDecision {
        accepted: refused.is_none(),
        why: refused.unwrap_or_else(|| acceptance_reason(pair.candidate, split)),
        unanswered: is_unanswered,
        tuning: tuning.difference,
        held_out: held_out.difference,
        confirmation: None,
    }
}

/// Gives the scored runs of each case, in each condition, with both versions.
fn case_pairs(pair: VersionPair<'_>) -> Vec<CasePair> {
    type CaseKey<'r> = (&'r str, &'r str, &'r str, Option<&'r str>);
    let mut pairs: BTreeMap<CaseKey<'_>, CasePair> = BTreeMap::new();
    for (records, is_candidate) in [(pair.best, false), (pair.candidate, true)] {
        for record in records.iter().filter(|record| record.is_conclusive()) {
            let Condition { agent, model, .. } = &record.condition;
            let key = (record.suite.as_str(), record.case.as_str(), agent.as_str(), model.as_deref());
            let none = CasePair { before: Cluster::default(), after: Cluster::default() };
            let known = pairs.entry(key).or_insert(none);
            let side = if is_candidate { &mut known.after } else { &mut known.before };
            side.runs += 1;
            side.passed += u64::from(record.verdict == Verdict::Pass);
        }
    }
    pairs.into_values().collect()
}

/// Gives the reason why a version cannot be decided: cases without a result in one of the two versions. An
/// unmeasured case may have become worse.
fn unanswered_cases_reason(pair: VersionPair<'_>, split: &CaseSplit) -> Option<String> {
    let of_version = |words: &str, records: &[TrialRecord]| {
        let cases = split.tuning.iter().chain(&split.held_out);
        let is_silent = |id: &&super::CaseId| {
            !CaseSplit::records_of_part(records, std::slice::from_ref(id))
                .iter()
                .any(|run| run.is_conclusive())
        };
        let silent: Vec<&str> = cases.filter(is_silent).map(|id| id.case.as_str()).collect();
        let listed = silent.iter().take(MOST_NAMED).copied().collect::<Vec<_>>().join(", ");
        let more = if silent.len() > MOST_NAMED { ", …" } else { "" };
        let count = count_with_noun(silent.len(), "case");
        (!silent.is_empty()).then(|| format!("{count} of the {words} have no answer ({listed}{more})"))
    };
    of_version("new version", pair.candidate).or_else(|| of_version("version before", pair.best))
}

/// The largest number of cases that a reason names.
const MOST_NAMED: usize = 5;

/// Gives the reason why a version was accepted, with the amount of measurements.
fn acceptance_reason(candidate: &[TrialRecord], split: &CaseSplit) -> String {
    let scored = candidate.iter().filter(|record| record.is_conclusive()).count();
    let held_out = match split.held_out.len() {
        0 => "no case is held out".to_owned(),
        1 => "not worse on the 1 held-out case".to_owned(),
        several => format!("not worse on the {several} held-out cases"),
    };
    format!("better in fresh runs, {held_out} ({scored} of {} runs scored)", candidate.len())
}

/// Gives the reason why a version is not accepted if something got worse.
fn loss_reason(
    pair: VersionPair<'_>,
    split: &CaseSplit,
    tuning: &SideComparison,
    held_out: &SideComparison,
) -> Option<String> {
    let not_scored = |records| VersionScore::from_records("", records).not_scored;
    let (old, new) = (not_scored(pair.best), not_scored(pair.candidate));
    match () {
        () if tuning.lost => Some("the tuning cases got worse".to_owned()),
        () if !split.held_out.is_empty() && has_regressed(held_out) => {
            Some("the held-out cases got worse".to_owned())
        }
        () if new > old => Some(format!("{} gave no answer", count_with_noun(new, "run"))),
        () => None,
    }
}

/// Says whether cases got worse by more than noise. The question has one direction, so the exact test is
/// one-sided.
fn has_regressed(found: &SideComparison) -> bool {
    let fell = found.difference.value.is_some_and(|difference| difference < 0.0);
    found.lost || (fell && found.chance_over_runs / 2.0 <= ALPHA + 1e-9)
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
        split_of(&["a", "b", "c"])
    }

    fn split_of(tuning: &[&str]) -> CaseSplit {
        let ids = |cases: &[&str]| {
            cases.iter().map(|case| CaseId { suite: "s".into(), case: (*case).into() }).collect()
        };
        CaseSplit { tuning: ids(tuning), held_out: ids(&["x"]) }
    }

    #[test]
    fn what_looks_better_is_a_candidate_and_needs_more_to_be_confirmed() {
        let best = [("a", 0), ("b", 1), ("c", 3), ("x", 3)];
        for (candidate, looks_better, confirmed, part) in [
            ([("a", 3), ("b", 3), ("c", 3), ("x", 3)], true, true, "fresh runs, not worse"),
            ([("a", 3), ("b", 3), ("c", 3), ("x", 2)], true, false, "do not confirm"),
            ([("a", 3), ("b", 1), ("c", 3), ("x", 3)], true, false, "do not confirm"),
            // The candidate helps cases that the proposer saw and harms one that it did not see.
            ([("a", 3), ("b", 3), ("c", 3), ("x", 0)], false, false, "held-out"),
            (best, false, false, "do not confirm"),
            ([("a", 0), ("b", 0), ("c", 3), ("x", 3)], false, false, "do not confirm"),
        ] {
            let (old, new) = (records(&best), records(&candidate));
            let pair = VersionPair { best: &old, candidate: &new };
            let first = decide_candidate(pair, &split(), None);
            assert_eq!(first.accepted, looks_better, "{candidate:?}: {}", first.why);
            let found = confirm_candidate(pair, &split(), None, 1);
            assert_eq!(found.accepted, confirmed, "{candidate:?}: {}", found.why);
            assert!(found.why.contains(part), "{candidate:?}: {}", found.why);
        }
    }

    /// Also with as many cases as it takes, a later confirmation of a loop needs more than an earlier one.
    #[test]
    fn later_confirmations_are_stricter() {
        let (old, new) = (records(&[("a", 0), ("b", 0), ("x", 3)]), records(&[("a", 2), ("b", 3), ("x", 3)]));
        let pair = VersionPair { best: &old, candidate: &new };
        let found = |number| confirm_candidate(pair, &split_of(&["a", "b"]), None, number);
        let first = found(1);
        let chance = first.confirmation.as_ref().expect("a test").chance;
        assert!(first.accepted && (0.0083..=0.025).contains(&chance), "{first:?}");
        assert!(!found(2).accepted, "{:?}", found(2));
    }

    #[test]
    fn worse_on_tuning_is_never_accepted() {
        let best = records(&[("a", 3), ("b", 3), ("c", 3), ("x", 0)]);
        let new = records(&[("a", 0), ("b", 0), ("c", 0), ("x", 3)]);
        let found = decide_candidate(VersionPair { best: &best, candidate: &new }, &split(), None);
        assert!(!found.accepted && found.why.contains("tuning"), "{}", found.why);
    }

    #[test]
    fn runs_without_an_answer_do_not_make_a_version_better() {
        use practicum_core::model::NotScoredReason;
        let best = records(&[("a", 1), ("b", 1), ("c", 1), ("x", 1)]);
        let mut new = records(&[("a", 3), ("b", 3), ("c", 3), ("x", 3)]);
        new[0].verdict = Verdict::NotScored(NotScoredReason::NotTrusted);
        let pair = VersionPair { best: &best, candidate: &new };
        for found in [decide_candidate(pair, &split(), None), confirm_candidate(pair, &split(), None, 1)] {
            assert!(!found.accepted && found.why.contains("no answer"), "{}", found.why);
        }
    }
}
