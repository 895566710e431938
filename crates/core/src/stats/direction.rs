//! Two tests of whether a difference between two sides is a gain or a loss.

use super::clustered::Cluster;
use super::exact::one_sided_stratified_test;
use super::paired::CasePair;
use super::quantile;
use super::sign_flip::{SignFlipChances, sign_flip_test};

/// The chances of so great a gain, and of so great a loss, if there is neither.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DirectionChances {
    /// One-sided.
    pub gain: f64,
    /// One-sided.
    pub loss: f64,
}

impl DirectionChances {
    /// Gives the chance of a difference so great in either direction.
    pub(crate) fn two_sided(self) -> f64 {
        (2.0 * self.gain.min(self.loss)).min(1.0)
    }
}

/// The number of cases from which swapping their sides can show a difference: 2 to the power of minus 6 is below 2.5 %.
const ENOUGH_TO_SWAP: usize = 6;

/// The number of runs up to which the test over runs is counted out. With more, the spread of the cases decides.
const MAX_COUNTED_RUNS: u64 = 20_000;

/// Tests the direction of a difference twice, and gives the less clear result: over the runs, each case with its own
/// pass rate, so that chance alone hardly ever passes; and over the cases, so that it holds for cases like these.
/// With a single case only the first test exists. Every pair has to have runs on both sides.
///
/// One more failure of the new side never makes a gain clearer or a loss less clear.
pub fn direction_chances(pairs: &[CasePair]) -> DirectionChances {
    let of_cases = case_chances(pairs);
    let runs: u64 = pairs.iter().map(|pair| pair.before.runs + pair.after.runs).sum();
    if runs > MAX_COUNTED_RUNS {
        return of_cases;
    }
    let clusters: Vec<(Cluster, Cluster)> = pairs.iter().map(|pair| pair.clusters()).collect();
    let (gain, loss) = one_sided_stratified_test(&clusters);
    DirectionChances { gain: gain.max(of_cases.gain), loss: loss.max(of_cases.loss) }
}

/// Tests the differences of the cases.
fn case_chances(pairs: &[CasePair]) -> DirectionChances {
    let differences: Vec<f64> = pairs.iter().filter_map(|pair| pair.difference()).collect();
    match differences.len() {
        0 => DirectionChances { gain: 1.0, loss: 1.0 },
        1 => DirectionChances { gain: 0.0, loss: 0.0 },
        count if count < ENOUGH_TO_SWAP => {
            let mirrored: Vec<f64> = differences.iter().map(|difference| -difference).collect();
            DirectionChances { gain: chance_by_spread(&differences), loss: chance_by_spread(&mirrored) }
        }
        _ => {
            let SignFlipChances { gain, loss } = sign_flip_test(&differences, common_steps(pairs));
            DirectionChances { gain, loss }
        }
    }
}

/// Gives a number of steps by which every difference is a whole number. `None` if it would be very large.
fn common_steps(pairs: &[CasePair]) -> Option<u64> {
    let runs = pairs.iter().flat_map(|pair| [pair.before.runs, pair.after.runs]);
    runs.filter(|runs| *runs > 0).try_fold(1, |steps: u64, runs| {
        let common = steps / greatest_divisor(steps, runs) * runs;
        (common <= 1000).then_some(common)
    })
}

fn greatest_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_divisor(b, a % b) }
}

/// Gives the chance of so great a gain by Student's test on a few cases. It is the least clear result of all in which
/// any of the differences is as great as it can be: without that, a failure could make a gain clearer, because it made
/// the cases more alike. Whatever is least clear lies at an end of each difference.
fn chance_by_spread(differences: &[f64]) -> f64 {
    let chance = |raised: u32| {
        let choose = |(at, seen): (usize, &f64)| if raised >> at & 1 == 1 { 1.0 } else { *seen };
        student_chance_of_gain(&differences.iter().enumerate().map(choose).collect::<Vec<_>>())
    };
    (0u32..1 << differences.len()).map(chance).fold(0.0, f64::max)
}

fn student_chance_of_gain(differences: &[f64]) -> f64 {
    let count = differences.len() as f64;
    let mean = differences.iter().sum::<f64>() / count;
    if mean <= 1e-12 {
        return 1.0;
    }
    let squares: f64 = differences.iter().map(|difference| (difference - mean).powi(2)).sum();
    if squares < 1e-12 {
        return 0.0;
    }
    let error = (squares / (count - 1.0) / count).sqrt();
    quantile::student_chance(mean / error, differences.len() as u64 - 1) / 2.0
}
