//! Prediction of future passes from known results.

use super::clustered::Cluster;
use super::exact::{convolve, log_factorials};

/// Gives the chance that so few runs of all these cases together pass if each case behaves as before. Each case
/// comes with its known results and its present results.
///
/// A few runs do not determine a rate. So each next run of a case passes with the chance of Laplace's rule of
/// succession, (passed + 1) / (runs + 2), in which the runs before it count.
pub(crate) fn chance_of_so_few(cases: &[(Cluster, Cluster)]) -> f64 {
    let mut all = PassDistribution { fewest_passes: 0, chances: vec![1.0] };
    let mut passed = 0;
    for (known, now) in cases {
        all = all.convolve_with(&predict_passes(*known, now.runs));
        passed += now.passed as usize;
    }
    let few = (passed + 1).saturating_sub(all.fewest_passes);
    all.chances.iter().take(few).sum::<f64>().clamp(0.0, 1.0)
}

/// The chances of `least` passes, one more, and so on.
struct PassDistribution {
    fewest_passes: usize,
    chances: Vec<f64>,
}

/// The smallest chance that is kept. Smaller ones change no decision, and would make thousands of runs slow to
/// count.
const NEGLIGIBLE_CHANCE: f64 = 1e-15;

impl PassDistribution {
    fn convolve_with(&self, more: &[f64]) -> Self {
        let chances = convolve(&self.chances, more);
        let is_likely = |chance: &f64| *chance > NEGLIGIBLE_CHANCE;
        let first = chances.iter().position(is_likely).unwrap_or(0);
        let end = chances.iter().rposition(is_likely).map_or(chances.len(), |last| last + 1);
        Self { fewest_passes: self.fewest_passes + first, chances: chances[first..end].to_vec() }
    }
}

/// Gives the chances of 0, 1, … passes in the next runs of a case.
fn predict_passes(known: Cluster, runs: u64) -> Vec<f64> {
    let logs = log_factorials(known.runs + runs + 1);
    let log = |n: u64| logs[n as usize];
    let ways = |passed: u64, failed: u64| log(passed) + log(failed) - log(passed + failed + 1);
    let failed = known.runs - known.passed;
    let chance = |passes: u64| {
        let chosen = log(runs) - log(passes) - log(runs - passes);
        (chosen + ways(known.passed + passes, failed + runs - passes) - ways(known.passed, failed)).exp()
    };
    (0..=runs).map(chance).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop, prop_assert, proptest};

    use super::*;
    use crate::stats::testing::assert_near;

    type Counts = (u64, u64);

    fn cases(of: &[(Counts, Counts)]) -> Vec<(Cluster, Cluster)> {
        of.iter().map(|((a, n), (b, m))| (Cluster::new(*a, *n), Cluster::new(*b, *m))).collect()
    }

    /// Adds up every way in which all runs could go, one after the other.
    fn tried_out(of: &[(Cluster, Cluster)]) -> f64 {
        let runs: Vec<usize> =
            of.iter().enumerate().flat_map(|(at, (_, now))| vec![at; now.runs as usize]).collect();
        let seen: u64 = of.iter().map(|(_, now)| now.passed).sum();
        let mut sum = 0.0;
        for ways in 0u32..1 << runs.len() {
            if u64::from(ways.count_ones()) > seen {
                continue;
            }
            let mut known: Vec<Cluster> = of.iter().map(|(known, _)| *known).collect();
            let mut chance = 1.0;
            for (run, case) in runs.iter().enumerate() {
                let passes = u64::from(ways >> run & 1);
                let Cluster { passed, runs } = known[*case];
                let rate = (passed + 1) as f64 / (runs + 2) as f64;
                chance *= if passes == 1 { rate } else { 1.0 - rate };
                known[*case] = Cluster::new(passed + passes, runs + 1);
            }
            sum += chance;
        }
        sum
    }

    #[test]
    fn golden() {
        for (of, expected) in [
            // The rate of each is 9/12: 1/4 to the power of how many failed.
            (vec![((8, 10), (0, 1))], 0.25),
            (vec![((8, 10), (0, 1)); 2], 0.0625),
            (vec![((8, 10), (0, 1)); 3], 0.015625),
            // One of nine passes: (1 + 9 · 3) / 4⁹.
            ([vec![((8, 10), (0, 1)); 8], vec![((8, 10), (1, 1))]].concat(), 28.0 / 262_144.0),
            // 6 · 7 · 8 · 9 · 10 / (12 · 13 · 14 · 15 · 16)
            (vec![((5, 10), (0, 5))], 30_240.0 / 524_160.0),
            // Two rates: 1/4 · 1/2, and with it 3/4 · 1/2 and 1/4 · 1/2.
            (vec![((8, 10), (0, 1)), ((1, 2), (0, 1))], 0.125),
            (vec![((8, 10), (1, 1)), ((1, 2), (0, 1))], 0.625),
            (vec![((8, 10), (1, 1))], 1.0),
            (vec![((8, 10), (0, 0))], 1.0),
            (vec![], 1.0),
        ] {
            let of = cases(&of);
            assert_near(chance_of_so_few(&of), expected);
            assert_near(tried_out(&of), expected);
        }
    }

    #[test]
    fn many_runs_are_counted_out_too() {
        let usual = vec![((800, 1000), (80, 100)); 300];
        let chance = chance_of_so_few(&cases(&usual));
        assert!((0.4..0.6).contains(&chance), "{chance}");
        let worse = vec![((800, 1000), (75, 100)); 300];
        assert!(chance_of_so_few(&cases(&worse)) < 1e-9);
        let better = vec![((800, 1000), (85, 100)); 300];
        assert!(chance_of_so_few(&cases(&better)) > 1.0 - 1e-6);
    }

    proptest! {
        #[test]
        fn counting_is_trying_out(of in prop::collection::vec(((0u64..6, 0u64..6), (0u64..4, 0u64..4)), 0..4)) {
            let ordered = |(a, b): Counts| (a.min(b), a.max(b));
            let of: Vec<_> = of.into_iter().map(|(known, now)| (ordered(known), ordered(now))).collect();
            let of = cases(&of);
            prop_assert!((chance_of_so_few(&of) - tried_out(&of)).abs() < 1e-9);
        }
    }
}
