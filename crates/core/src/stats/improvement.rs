//! Tests for a loop that tries one change after another and keeps those that help.
//!
//! Each round has a cheap test, which decides whether a change is a candidate. A candidate is then confirmed on
//! fresh runs of both sides. The confirmations of a loop share one chance of a false alarm, however many there are.

use statrs::distribution::{ContinuousCDF, Normal};

use super::ALPHA;
use super::clustered::Cluster;
use super::exact::{convolve, hypergeometric};
use super::paired::CasePair;
use super::random::SeededRandom;

/// The largest one-sided p-value with which a change is a candidate. It is large because a candidate replaces
/// nothing before it is confirmed: a small one would only miss improvements.
pub const CANDIDATE_ALPHA: f64 = 0.25;

/// The number of rounds in a row without a candidate after which a loop stops.
pub const MOST_ROUNDS_WITHOUT_CANDIDATE: u32 = 2;

/// Gives the significance level of a loop's confirmation with this number, from 1. The levels of all confirmations
/// add up to [`ALPHA`] at most, so this is also the chance that a loop of any length confirms a change without an
/// effect.
pub fn confirmation_alpha(number: u32) -> f64 {
    let number = f64::from(number.max(1));
    ALPHA / (number * (number + 1.0))
}

/// The number of runs from which the normal approximation is used, because counting takes too long.
const MANY_RUNS: u64 = 400;

/// Says whether a p-value is at most a significance level, apart from rounding.
pub fn is_significant(chance: f64, alpha: f64) -> bool {
    chance <= alpha + 1e-9
}

/// Gives the one-sided p-value: the chance of at least so many passes after the change if no case had changed its
/// pass rate. With few runs the test is exact, with many it uses the normal approximation. 1 if there are no pairs.
pub fn improvement_chance(pairs: &[CasePair]) -> f64 {
    let measured = || pairs.iter().filter(|pair| pair.difference().is_some());
    let runs: u64 = measured().map(|pair| pair.before.runs + pair.after.runs).sum();
    match runs {
        0 => 1.0,
        _ if runs >= MANY_RUNS => chance_by_normal(measured()),
        _ => chance_by_counting(measured()),
    }
}

fn chance_by_counting<'p>(pairs: impl Iterator<Item = &'p CasePair>) -> f64 {
    let (mut chances, mut seen) = (vec![1.0], 0);
    for CasePair { before, after } in pairs {
        let (least, own) = hypergeometric(after.runs, before.runs, after.passed + before.passed);
        // A case that always passes or always fails on both sides says nothing.
        if own.len() > 1 {
            chances = convolve(&chances, &own);
            seen += after.passed.saturating_sub(least) as usize;
        }
    }
    chances.iter().skip(seen).sum::<f64>().clamp(0.0, 1.0)
}

fn chance_by_normal<'p>(pairs: impl Iterator<Item = &'p CasePair>) -> f64 {
    let (mut above, mut variance) = (0.0, 0.0);
    for CasePair { before, after } in pairs {
        let (n, m) = (after.runs as f64, before.runs as f64);
        let passed = (after.passed + before.passed) as f64;
        let share = passed / (n + m);
        above += after.passed as f64 - n * share;
        variance += n * m / (n + m - 1.0) * share * (1.0 - share);
    }
    match variance > 1e-12 {
        // Half a run less, because the number of passes is a whole number.
        true => Normal::standard().sf((above - 0.5) / variance.sqrt()),
        false => 1.0,
    }
}

/// A loop as it is planned, and the cases that it is assumed to meet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ImprovementDesign {
    /// The number of cases.
    pub cases: u64,
    /// The number of runs of each case with each version.
    pub repeat: u64,
    /// The largest number of rounds.
    pub rounds: u32,
    /// The mean pass rate before the loop.
    pub baseline: f64,
    /// How much the cases differ: the correlation of two runs of the same case (0 to less than 1).
    pub correlation: f64,
}

impl ImprovementDesign {
    /// Makes a design with the assumptions for a skill that was not measured yet: half of the runs pass, and the
    /// cases differ as they usually do.
    pub fn with_usual_cases(cases: u64, repeat: u64, rounds: u32) -> Self {
        Self { cases, repeat, rounds, baseline: 0.5, correlation: 0.3 }
    }

    /// Gives the chance that the loop confirms a change if every proposal raises the pass rate of every case by
    /// this much (at most to 1). Found by simulation.
    pub fn chance_of_finding(&self, effect: f64, loops: u32, seed: u64) -> f64 {
        let mut random = SeededRandom::new(seed);
        let found = (0..loops).filter(|_| self.simulate_loop(effect, &mut random)).count();
        found as f64 / f64::from(loops.max(1))
    }

    /// Finds the smallest improvement, in steps of 5 percentage points, that the loop confirms with a power of
    /// 80 %. `None` if it has this power for none.
    pub fn smallest_found(&self) -> Option<f64> {
        const LOOPS: u32 = 200;
        const POWER: f64 = 0.8;
        let effects: Vec<f64> = (1..=20).map(|steps| f64::from(steps) * 0.05).collect();
        // The chance grows with the effect, so the first effect that is found often enough is searched by halving.
        let first = effects.partition_point(|effect| self.chance_of_finding(*effect, LOOPS, 1) < POWER);
        effects.get(first).copied()
    }

    /// Simulates a loop, and says whether it confirmed a change.
    fn simulate_loop(&self, effect: f64, random: &mut SeededRandom) -> bool {
        let before: Vec<f64> = (0..self.cases).map(|_| self.simulate_rate(random)).collect();
        let after: Vec<f64> = before.iter().map(|rate| (rate + effect).clamp(0.0, 1.0)).collect();
        let run = |rates: &[f64], random: &mut SeededRandom| -> Vec<Cluster> {
            let repeat = self.repeat;
            rates.iter().map(|rate| Cluster::new(random.successes(repeat, *rate), repeat)).collect()
        };
        let mut best = run(&before, random);
        let (mut confirmations, mut without_candidate) = (0, 0);
        for _ in 0..self.rounds {
            let tried = run(&after, random);
            if is_significant(improvement_chance(&pair(&best, &tried)), CANDIDATE_ALPHA) {
                (confirmations, without_candidate) = (confirmations + 1, 0);
                best = run(&before, random);
                let fresh = run(&after, random);
                let chance = improvement_chance(&pair(&best, &fresh));
                if is_significant(chance, confirmation_alpha(confirmations)) {
                    return true;
                }
            } else {
                without_candidate += 1;
                if without_candidate == MOST_ROUNDS_WITHOUT_CANDIDATE {
                    return false;
                }
            }
        }
        false
    }

    /// Draws the pass rate of a case: evenly around the mean, as far as the correlation of the design says.
    fn simulate_rate(&self, random: &mut SeededRandom) -> f64 {
        let variance = self.correlation * self.baseline * (1.0 - self.baseline);
        let width = (12.0 * variance).sqrt();
        (self.baseline + (random.fraction() - 0.5) * width).clamp(0.0, 1.0)
    }
}

fn pair(before: &[Cluster], after: &[Cluster]) -> Vec<CasePair> {
    before.iter().zip(after).map(|(before, after)| CasePair { before: *before, after: *after }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::testing::assert_near;

    fn pairs(of: &[(u64, u64)], runs: u64) -> Vec<CasePair> {
        let side = |passed| Cluster::new(passed, runs);
        of.iter().map(|(before, after)| CasePair { before: side(*before), after: side(*after) }).collect()
    }

    #[test]
    fn golden_chances_of_an_improvement() {
        for (of, runs, expected) in [
            (&[(0, 3)][..], 3, 0.05),
            (&[(0, 3), (0, 3)], 3, 0.0025),
            (&[(0, 3), (3, 3), (0, 0)], 3, 0.05),
            (&[(3, 0)], 3, 1.0),
            (&[(0, 1); 5], 1, 1.0 / 32.0),
            (&[(1, 1)], 3, 0.8),
            (&[], 3, 1.0),
            (&[(0, 0)], 0, 1.0),
        ] {
            assert_near(improvement_chance(&pairs(of, runs)), expected);
        }
    }

    #[test]
    fn counting_and_the_normal_approximation_agree() {
        for (before, after) in [(4, 5), (5, 5), (6, 4), (5, 6)] {
            let pairs = pairs(&[(before, after); 20], 10);
            let (exact, normal) = (chance_by_counting(pairs.iter()), chance_by_normal(pairs.iter()));
            assert!((exact - normal).abs() < 0.003, "{before} {after}: {exact} {normal}");
        }
    }

    #[test]
    fn the_levels_of_any_number_of_confirmations_add_up_to_alpha() {
        assert_near(confirmation_alpha(1), 0.025);
        let sum: f64 = (1..=10_000).map(confirmation_alpha).sum();
        assert!(sum < ALPHA && sum > ALPHA * 0.999, "{sum}");
    }

    #[test]
    fn a_budget_finds_more_with_more_cases_and_nothing_with_too_few() {
        let found = |cases, repeat| ImprovementDesign::with_usual_cases(cases, repeat, 5).smallest_found();
        let (few, many) = (found(10, 3).expect("an effect"), found(40, 3).expect("an effect"));
        assert!(many < few && many >= 0.05, "{many} {few}");
        assert_eq!(found(2, 1), None, "two runs of each version cannot show anything");
        assert_eq!(found(0, 3), None);
    }
}
