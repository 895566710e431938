//! Rates over clusters: the runs of one case are correlated, so they count for less than runs of as many cases.

use super::proportion::{Interval, wilson_effective};

/// The runs of one case: how many passed, of how many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cluster {
    pub passed: u64,
    pub runs: u64,
}

impl Cluster {
    pub fn new(passed: u64, runs: u64) -> Self {
        Self { passed: passed.min(runs), runs }
    }

    pub fn share(self) -> Option<f64> {
        (self.runs > 0).then(|| self.passed as f64 / self.runs as f64)
    }
}

/// The standard error of a mean over clusters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StandardErrors {
    /// The standard error as if every run were a case of its own.
    pub naive: f64,
    pub clustered: f64,
    /// The clustered standard error, corrected for a small number of clusters. `None` with one cluster.
    pub corrected: Option<f64>,
}

/// Computes the standard errors. `None` with fewer than two runs.
pub fn standard_errors(clusters: &[Cluster]) -> Option<StandardErrors> {
    let counted = || clusters.iter().filter(|cluster| cluster.runs > 0);
    let (passed, runs) = total_passed_and_runs(clusters);
    if runs < 2.0 {
        return None;
    }
    let mean = passed / runs;
    let naive = (mean * (1.0 - mean) / (runs - 1.0)).sqrt();
    let squares: f64 =
        counted().map(|cluster| (cluster.passed as f64 - mean * cluster.runs as f64).powi(2)).sum();
    let clustered = squares.sqrt() / runs;
    let count = counted().count() as f64;
    let corrected = (count > 1.0).then(|| clustered * (count / (count - 1.0)).sqrt());
    Some(StandardErrors { naive, clustered, corrected })
}

fn total_passed_and_runs(clusters: &[Cluster]) -> (f64, f64) {
    let passed: u64 = clusters.iter().map(|cluster| cluster.passed).sum();
    let runs: u64 = clusters.iter().map(|cluster| cluster.runs).sum();
    (passed as f64, runs as f64)
}

/// Gives the pass rate and its score interval. The interval uses as many independent points as the runs are worth:
/// at least the number of cases, at most the number of runs. If each case is unanimous, each counts once, so that
/// repeating what never varies does not narrow the interval.
pub fn clustered_rate(clusters: &[Cluster], alpha: f64) -> Option<(f64, Interval)> {
    let (passed, runs) = total_passed_and_runs(clusters);
    if runs == 0.0 {
        return None;
    }
    let share = passed / runs;
    let cases = clusters.iter().filter(|cluster| cluster.runs > 0).count() as f64;
    let errors = standard_errors(clusters);
    let worth = errors.and_then(|errors| Some((errors.naive / errors.corrected?).powi(2) * runs));
    // A single case cannot be compared with others, so its runs count one by one.
    let single = if cases < 2.0 { runs } else { cases };
    let points = worth.filter(|points| points.is_finite()).unwrap_or(single).clamp(cases, runs);
    Some((share, wilson_effective(share, points, alpha)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop, prop_assert, proptest};

    use super::*;
    use crate::stats::testing::assert_near;

    fn clusters(of: &[(u64, u64)]) -> Vec<Cluster> {
        of.iter().map(|(passed, runs)| Cluster::new(*passed, *runs)).collect()
    }

    #[test]
    fn golden_standard_errors() {
        let errors = standard_errors(&clusters(&[(3, 3), (0, 3), (2, 3), (1, 3)])).expect("errors");
        assert_near(errors.naive, 0.15076);
        assert_near(errors.clustered, 0.18634);
        assert_near(errors.corrected.expect("several clusters"), 0.21517);
    }

    #[test]
    fn repeating_what_never_varies_narrows_nothing() {
        let once = clustered_rate(&clusters(&[(1, 1), (1, 1), (0, 1), (1, 1)]), 0.05);
        let often = clustered_rate(&clusters(&[(9, 9), (9, 9), (0, 9), (9, 9)]), 0.05);
        assert_eq!(once, often);
        let all = clustered_rate(&clusters(&[(5, 5), (5, 5), (5, 5)]), 0.05).expect("a rate");
        assert_near(all.1.low, 0.4385);
    }

    #[test]
    fn cases_that_were_not_scored_do_not_count() {
        assert_eq!(clustered_rate(&clusters(&[(0, 0)]), 0.05), None);
        let with = clustered_rate(&clusters(&[(2, 3), (1, 3), (0, 0)]), 0.05);
        assert_eq!(with, clustered_rate(&clusters(&[(2, 3), (1, 3)]), 0.05));
        assert_eq!(standard_errors(&clusters(&[(1, 1)])), None);
    }

    proptest! {
        #[test]
        fn the_interval_holds_the_share(of in prop::collection::vec((0u64..9, 0u64..9), 1..12)) {
            let all: Vec<Cluster> = of.iter().map(|(a, b)| Cluster::new(*a, *b)).collect();
            if let Some((share, interval)) = clustered_rate(&all, 0.05) {
                prop_assert!(interval.contains(share) && 0.0 <= interval.low && interval.high <= 1.0);
            }
        }
    }
}
