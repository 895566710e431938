//! Two arms on the same cases.

use std::collections::{BTreeMap, BTreeSet};

use super::CaseKey;
use super::case::{Attempt, CaseTally};
use crate::model::{Arm, ArmsOfSuite, ArmsResult, ArmsSummary, Verdict, VoidPair};
use crate::stats::{ALPHA, Cluster, Comparison, MARGIN, Pair, compare, together};

/// How many void pairs are told one by one.
const MOST_VOIDED: usize = 20;

/// `None` with one arm. A run's cost is used to say what certainty would cost.
pub fn summary(cases: &BTreeMap<CaseKey, CaseTally>, usd_each: Option<f64>) -> Option<ArmsSummary> {
    let (before, after) = arms(cases.keys())?;
    let mut pairs: BTreeMap<&str, Vec<Pair>> = BTreeMap::new();
    let mut voided = Vec::new();
    for (key, old) in cases.iter().filter(|(key, _)| key.arm == before) {
        let Some(new) = cases.get(&CaseKey { arm: after, ..key.clone() }) else { continue };
        let (pair, void) = paired(key, old, new);
        pairs.entry(&key.suite).or_default().push(pair);
        voided.extend(void);
    }
    let all: Vec<Pair> = pairs.values().flatten().copied().collect();
    let void_pairs = voided.len() as u64;
    voided.truncate(MOST_VOIDED);
    Some(ArmsSummary {
        before: before.name(),
        after: after.name(),
        result: result(compare(&all, MARGIN, ALPHA), usd_each),
        void_pairs,
        voided,
        suites: of_suites(&pairs, usd_each),
    })
}

/// What is compared with what: the skill with its absence, or the last version with the first.
fn arms<'k>(keys: impl Iterator<Item = &'k CaseKey>) -> Option<(Arm, Arm)> {
    let arms: BTreeSet<Arm> = keys.map(|key| key.arm).collect();
    let versions = || arms.iter().copied().filter(|arm| matches!(arm, Arm::Version(_)));
    let before = arms.get(&Arm::WithoutSkill).copied().or_else(|| versions().next())?;
    let after = arms.get(&Arm::WithSkill).copied().or_else(|| versions().next_back())?;
    (before != after).then_some((before, after))
}

/// A case in both arms, without the attempts in which either was not in its arm.
fn paired(key: &CaseKey, before: &CaseTally, after: &CaseTally) -> (Pair, Vec<VoidPair>) {
    let mut void = Vec::new();
    let attempts: BTreeSet<u32> = before.attempts.keys().chain(after.attempts.keys()).copied().collect();
    let (mut old, mut new) = (Cluster::default(), Cluster::default());
    for attempt in attempts {
        let sides = [before.attempts.get(&attempt), after.attempts.get(&attempt)];
        let why = sides.iter().find_map(|side| match side {
            Some(Attempt::Void(why)) => Some(why.clone()),
            Some(Attempt::Passed | Attempt::Failed(_) | Attempt::Silent) | None => None,
        });
        if let Some(why) = why {
            let (suite, case, agent) = (key.suite.clone(), key.case.clone(), key.agent.clone());
            void.push(VoidPair { suite, case, agent, attempt, why });
            continue;
        }
        for ((cluster, other), side) in [(&mut old, after), (&mut new, before)].into_iter().zip(sides) {
            let passed = match side {
                Some(Attempt::Passed) => true,
                Some(Attempt::Failed(failure)) => match failure.by_shared_checks(other) {
                    Verdict::Pass => true,
                    Verdict::Fail => false,
                    Verdict::NotScored(_) => continue,
                },
                Some(Attempt::Silent | Attempt::Void(_)) | None => continue,
            };
            *cluster = Cluster::new(cluster.passed + u64::from(passed), cluster.runs + 1);
        }
    }
    (Pair { before: old, after: new }, void)
}

fn result(found: Comparison, usd_each: Option<f64>) -> ArmsResult {
    ArmsResult {
        difference: found.difference,
        verdict: found.verdict,
        chance: found.chance,
        more_runs: found.more_runs,
        sought: found.sought,
        more_usd: found.more_runs.zip(usd_each).map(|(runs, usd)| runs as f64 * usd),
    }
}

/// Looking at many suites finds differences by chance, so each has to be clearer.
fn of_suites(pairs: &BTreeMap<&str, Vec<Pair>>, usd_each: Option<f64>) -> Vec<ArmsOfSuite> {
    if pairs.len() < 2 {
        return Vec::new();
    }
    let mut found: Vec<Comparison> = pairs.values().map(|pairs| compare(pairs, MARGIN, ALPHA)).collect();
    together(&mut found, ALPHA);
    let suites = pairs.keys().zip(found);
    suites
        .map(|(suite, one)| ArmsOfSuite { suite: (*suite).to_owned(), result: result(one, usd_each) })
        .collect()
}
