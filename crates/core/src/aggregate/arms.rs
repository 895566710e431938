//! The comparison of two arms on the same cases.

use std::collections::{BTreeMap, BTreeSet};

use super::CaseKey;
use super::case::{AttemptOutcome, CaseTally};
use crate::model::{Arm, ArmsResult, ArmsSummary, SuiteArmsResult, Verdict, VoidPair};
use crate::stats::{
    ALPHA, CasePair, Cluster, DEFAULT_MARGIN, PairedComparison, compare_pairs, comparison_outlook,
    correct_comparisons,
};

/// The greatest number of void pairs that the summary lists one by one.
const MAX_LISTED_VOID_PAIRS: usize = 20;

/// Compares the arms. `None` if there is only one. `usd_each` is the cost of one trial, from which the cost of
/// further trials is estimated.
pub fn summarise_arms(cases: &BTreeMap<CaseKey, CaseTally>, usd_each: Option<f64>) -> Option<ArmsSummary> {
    let (before, after) = choose_compared_arms(cases.keys())?;
    let mut pairs: BTreeMap<&str, Vec<CasePair>> = BTreeMap::new();
    let mut voided = Vec::new();
    for (key, old) in cases.iter().filter(|(key, _)| key.arm == before) {
        let Some(new) = cases.get(&CaseKey { arm: after, ..key.clone() }) else { continue };
        let (pair, void) = pair_case(key, old, new);
        pairs.entry(&key.suite).or_default().push(pair);
        voided.extend(void);
    }
    let all: Vec<CasePair> = pairs.values().flatten().copied().collect();
    let void_pairs = voided.len() as u64;
    voided.truncate(MAX_LISTED_VOID_PAIRS);
    Some(ArmsSummary {
        before: before.name(),
        after: after.name(),
        result: arms_result(&all, compare_pairs(&all, DEFAULT_MARGIN, ALPHA), usd_each),
        void_pairs,
        voided,
        suites: results_by_suite(&pairs, usd_each),
    })
}

/// Chooses the two arms to compare: without and with the skill, or the first and the last version.
fn choose_compared_arms<'k>(keys: impl Iterator<Item = &'k CaseKey>) -> Option<(Arm, Arm)> {
    let arms: BTreeSet<Arm> = keys.map(|key| key.arm).collect();
    let versions = || arms.iter().copied().filter(|arm| matches!(arm, Arm::Version(_)));
    let before = arms.get(&Arm::WithoutSkill).copied().or_else(|| versions().next())?;
    let after = arms.get(&Arm::WithSkill).copied().or_else(|| versions().next_back())?;
    (before != after).then_some((before, after))
}

/// Pairs the attempts of one case in both arms. An attempt that is void in either arm is left out and returned.
fn pair_case(key: &CaseKey, before: &CaseTally, after: &CaseTally) -> (CasePair, Vec<VoidPair>) {
    let mut void = Vec::new();
    let attempts: BTreeSet<u32> = before.attempts.numbers().chain(after.attempts.numbers()).collect();
    let (mut old, mut new) = (Cluster::default(), Cluster::default());
    for attempt in attempts {
        let sides = [before.attempts.get(attempt), after.attempts.get(attempt)];
        let why = sides.iter().find_map(|side| match side {
            Some(AttemptOutcome::Void(why)) => Some(why.clone()),
            Some(AttemptOutcome::Passed | AttemptOutcome::Failed(_) | AttemptOutcome::NoVerdict) | None => {
                None
            }
        });
        if let Some(why) = why {
            let (suite, case, agent) = (key.suite.clone(), key.case.clone(), key.agent.clone());
            void.push(VoidPair { suite, case, agent, attempt, why });
            continue;
        }
        for ((cluster, other), side) in [(&mut old, after), (&mut new, before)].into_iter().zip(sides) {
            let passed = match side {
                Some(AttemptOutcome::Passed) => true,
                Some(AttemptOutcome::Failed(failure)) => match failure.verdict_by_shared_checks(other) {
                    Verdict::Pass => true,
                    Verdict::Fail => false,
                    Verdict::NotScored(_) => continue,
                },
                Some(AttemptOutcome::NoVerdict | AttemptOutcome::Void(_)) | None => continue,
            };
            *cluster = Cluster::new(cluster.passed + u64::from(passed), cluster.runs + 1);
        }
    }
    (CasePair { before: old, after: new }, void)
}

fn arms_result(pairs: &[CasePair], found: PairedComparison, usd_each: Option<f64>) -> ArmsResult {
    ArmsResult {
        difference: found.difference,
        verdict: found.verdict,
        chance: found.chance,
        outlook: comparison_outlook(pairs, found.verdict, DEFAULT_MARGIN, usd_each),
    }
}

/// Compares the arms suite by suite. The more suites are compared, the more likely one differs by chance, so each
/// result is corrected for their number.
fn results_by_suite(pairs: &BTreeMap<&str, Vec<CasePair>>, usd_each: Option<f64>) -> Vec<SuiteArmsResult> {
    if pairs.len() < 2 {
        return Vec::new();
    }
    let mut found: Vec<PairedComparison> =
        pairs.values().map(|pairs| compare_pairs(pairs, DEFAULT_MARGIN, ALPHA)).collect();
    correct_comparisons(&mut found, ALPHA);
    let suites = pairs.iter().zip(found);
    suites
        .map(|((suite, pairs), one)| SuiteArmsResult {
            suite: (*suite).to_owned(),
            result: arms_result(pairs, one, usd_each),
        })
        .collect()
}
