//! Tests of single cases that are looked at together: which of them changed, and which could have shown that.

use super::correction::tarone;
use super::paired::{CasePair, binomial};
use super::{ALPHA, Cluster};

/// A case that is tested beside others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CaseToTest {
    /// The runs of both sides, with those of earlier runs of the same setup.
    pub pair: CasePair,
    /// The pass rate that is known of the case while nothing changes, if it is known.
    pub known_rate: Option<f64>,
}

/// What a test says of one of several cases.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CaseTest {
    /// The p-value: the chance that the sides would differ this much if nothing had changed.
    pub chance: f64,
    /// Whether the chance is so small that the case changed, also beside the other cases.
    pub is_clear: bool,
    /// Whether as many runs could have shown that the case changed, had it changed completely.
    pub could_tell: bool,
}

/// Tests cases together: the more of them could differ by chance, the clearer a change must be. The chance that any
/// case without a change is called clear is at most [`ALPHA`]; half of it is for losses.
pub fn test_cases(cases: &[CaseToTest]) -> Vec<CaseTest> {
    let bound = bound_of_cases(cases);
    let test = |case: &CaseToTest| {
        let chance =
            case.known_rate.map_or_else(|| case.pair.chance(), |rate| case.pair.chance_at_rate(rate));
        let is_clear = case.pair.difference().is_some_and(|difference| difference != 0.0) && chance <= bound;
        CaseTest {
            chance,
            is_clear,
            could_tell: case.known_rate.is_some() || case.pair.widest_chance() <= bound,
        }
    };
    cases.iter().map(test).collect()
}

/// Gives the p-value up to which a case of these is called changed.
pub fn bound_of_cases(cases: &[CaseToTest]) -> f64 {
    let least: Vec<f64> = cases
        .iter()
        .filter(|case| case.pair.difference().is_some())
        .map(|case| case.known_rate.map_or_else(|| case.pair.least_chance(), |_| 0.0))
        .collect();
    tarone(&least, ALPHA)
}

/// The number of runs of one side from which the search for a detectable loss would take too long. So many runs show
/// any loss that matters.
const MANY_RUNS: u64 = 40;

/// Gives the smallest loss of one case, in steps of 5 points, that as many runs show four times out of five at this
/// bound. `None` if they show no loss so often, however great it is.
pub fn smallest_loss_of_case(before: Cluster, after_runs: u64, bound: f64) -> Option<f64> {
    const POWER: f64 = 0.8;
    let rate = before.share()?;
    let (runs, after_runs) = (before.runs.min(MANY_RUNS), after_runs.min(MANY_RUNS));
    let found: Vec<(u64, u64)> = (0..=runs)
        .flat_map(|old| (0..=after_runs).map(move |new| (old, new)))
        .filter(|(old, new)| {
            let pair = CasePair { before: Cluster::new(*old, runs), after: Cluster::new(*new, after_runs) };
            pair.difference().is_some_and(|difference| difference < 0.0) && pair.chance() <= bound
        })
        .collect();
    let old = binomial(runs, rate);
    let power = |loss: f64| {
        let new = binomial(after_runs, (rate - loss).max(0.0));
        found.iter().map(|(x, y)| old[*x as usize] * new[*y as usize]).sum::<f64>()
    };
    let steps = (rate / 0.05).ceil() as u32;
    (1..=steps).map(|step| (f64::from(step) * 0.05).min(rate)).find(|loss| power(*loss) >= POWER)
}

/// Gives the fewest runs of each side that show, for this many cases together, that a case fell from always passing to
/// always failing.
pub fn fewest_runs_to_confirm(cases: usize) -> u64 {
    let fallen = |runs| CasePair { before: Cluster::new(runs, runs), after: Cluster::new(0, runs) };
    let enough = |runs: &u64| fallen(*runs).chance() * cases.max(1) as f64 <= ALPHA;
    (2..MANY_RUNS).find(enough).unwrap_or(MANY_RUNS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::SeededRandom;

    fn case(before: (u64, u64), after: (u64, u64)) -> CaseToTest {
        let side = |(passed, runs): (u64, u64)| Cluster::new(passed, runs);
        CaseToTest { pair: CasePair { before: side(before), after: side(after) }, known_rate: None }
    }

    #[test]
    fn three_runs_of_each_side_cannot_tell_and_five_can() {
        let same = |runs| vec![case((runs, runs), (runs, runs)); 19];
        for (dead, clear, could_tell) in [
            (case((3, 3), (0, 3)), false, false),
            (case((5, 5), (0, 5)), true, true),
            // What is known from earlier runs of the same setup counts.
            (case((23, 23), (0, 3)), true, true),
            // A small change of enough runs is not clear, but it could have been.
            (case((5, 5), (4, 5)), false, true),
        ] {
            let runs = dead.pair.after.runs;
            let found = test_cases(&[same(runs), vec![dead]].concat());
            assert_eq!((found[19].is_clear, found[19].could_tell), (clear, could_tell), "{dead:?}");
            assert!(found[..19].iter().all(|one| !one.is_clear));
        }
    }

    #[test]
    fn the_smallest_loss_of_a_case() {
        let always = |runs| Cluster::new(runs, runs);
        assert_eq!(smallest_loss_of_case(always(3), 3, 0.05), None);
        let five = smallest_loss_of_case(always(5), 5, 0.05).expect("a loss");
        let ten = smallest_loss_of_case(always(10), 10, 0.05).expect("a loss");
        assert!(ten < five && five <= 1.0, "{ten} {five}");
        assert_eq!(smallest_loss_of_case(Cluster::default(), 3, 0.05), None);
        assert_eq!(
            smallest_loss_of_case(Cluster::new(0, 9), 9, 0.05),
            None,
            "what always fails cannot get worse"
        );
    }

    #[test]
    fn runs_to_confirm_grow_with_the_cases() {
        for (cases, runs) in [(0, 4), (1, 4), (2, 5), (6, 5), (7, 6), (23, 6), (24, 7)] {
            assert_eq!(fewest_runs_to_confirm(cases), runs, "{cases}");
        }
    }

    /// Twenty flaky cases that did not change, each run five times on each side.
    #[test]
    fn losses_without_a_change_are_rare() {
        let mut random = SeededRandom::new(7);
        let alarms = (0..2000)
            .filter(|_| {
                let cases: Vec<CaseToTest> = (0..20)
                    .map(|at| {
                        let rate = [0.5, 0.7, 0.9, 1.0][at % 4];
                        case((random.successes(5, rate), 5), (random.successes(5, rate), 5))
                    })
                    .collect();
                let found = test_cases(&cases);
                cases
                    .iter()
                    .zip(found)
                    .any(|(case, test)| test.is_clear && case.pair.difference() < Some(0.0))
            })
            .count();
        assert!(alarms <= 50, "{alarms} of 2000 is more than 2.5 %");
    }
}
