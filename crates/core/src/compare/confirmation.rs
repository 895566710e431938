//! The confirmation of losses: cases that seem to have got worse are run again on both sides, and the fresh runs decide.
//!
//! The first runs chose these cases because they went badly, so they cannot confirm anything.

use super::case::group_runs_by_case;
use super::{CaseChange, CaseConfirmation, CaseIdentity, ComparedCase, ComparisonDocument, SideRecords};
use crate::stats::{CasePair, CaseToTest, fewest_runs_to_confirm, test_cases};

/// The runs that would confirm losses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConfirmationPlan {
    /// The cases to run again, those that fell most first.
    pub cases: Vec<CaseIdentity>,
    /// How often to run each of them on each side.
    pub repeat: u64,
    /// The number of cases that seem to have got worse and that the budget leaves out.
    pub left_out: usize,
}

/// The fewest runs of each side that confirm a loss well: five suffice for a case that always failed, six also find
/// most of those that fail only mostly.
const LEAST_REPEAT: u64 = 6;

/// Plans the runs that confirm losses, with at most `most_runs` runs of both sides together. Only losses that are not
/// clear yet are suspicious.
pub fn plan_confirmation(found: &ComparisonDocument, most_runs: u64) -> ConfirmationPlan {
    let is_suspicious = |case: &&ComparedCase| {
        case.change == CaseChange::Flip && case.difference.is_some_and(|difference| difference < 0.0)
    };
    let mut cases: Vec<&ComparedCase> =
        found.comparisons.iter().flat_map(|one| &one.cases).filter(is_suspicious).collect();
    cases.sort_by(|a, b| a.difference.partial_cmp(&b.difference).unwrap_or(std::cmp::Ordering::Equal));
    let repeat_of = |count: usize| fewest_runs_to_confirm(count).max(LEAST_REPEAT);
    let affordable = (0..=cases.len()).rev().find(|count| 2 * repeat_of(*count) * *count as u64 <= most_runs);
    let count = affordable.unwrap_or(0);
    ConfirmationPlan {
        cases: cases.iter().take(count).map(|case| case.name.clone()).collect(),
        repeat: repeat_of(count),
        left_out: cases.len() - count,
    }
}

/// Adds fresh runs of both sides to the comparison of two sides. A case that got clearly worse in them is a regression.
pub fn confirm_losses(found: &mut ComparisonDocument, before: &SideRecords<'_>, after: &SideRecords<'_>) {
    let (old, new) = (group_runs_by_case(&before.records, &[]), group_runs_by_case(&after.records, &[]));
    let fresh: Vec<_> = old.iter().filter_map(|(name, runs)| Some((name, runs, new.get(name)?))).collect();
    let to_test: Vec<CaseToTest> = fresh
        .iter()
        .map(|(_, old, new)| CaseToTest {
            pair: CasePair { before: old.cluster, after: new.cluster },
            known_rate: None,
        })
        .collect();
    for ((name, old, new), (tested, test)) in fresh.iter().zip(to_test.iter().zip(test_cases(&to_test))) {
        let is_confirmed =
            test.is_clear && tested.pair.difference().is_some_and(|difference| difference < 0.0);
        for one in &mut found.comparisons {
            for case in one.cases.iter_mut().filter(|case| case.name == **name) {
                let (before, after, chance) = (old.counts(), new.counts(), test.chance);
                case.could_tell |= test.could_tell;
                case.confirmation = Some(CaseConfirmation { before, after, chance, is_confirmed });
                if is_confirmed {
                    case.change = CaseChange::Regression;
                }
            }
            one.lost |= one.has_regression();
        }
    }
    found.conclude();
}
