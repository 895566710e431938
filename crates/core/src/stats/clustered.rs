//! Rates over clusters: the runs of one case are correlated, so they count for less than runs of as many cases.

use super::proportion::{Interval, clopper_pearson, clopper_pearson_of_points};

/// The runs of one case: how many passed, of how many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cluster {
    /// The number of runs that passed.
    pub passed: u64,
    /// The number of runs.
    pub runs: u64,
}

impl Cluster {
    /// Makes a cluster from the number of runs that passed and the number of runs.
    pub fn new(passed: u64, runs: u64) -> Self {
        Self { passed: passed.min(runs), runs }
    }

    /// Gives the share of runs that passed; `None` without runs.
    pub fn share(self) -> Option<f64> {
        (self.runs > 0).then(|| self.passed as f64 / self.runs as f64)
    }
}

/// The standard error of a mean over clusters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StandardErrors {
    /// The standard error as if every run were a case of its own.
    pub naive: f64,
    /// The standard error that counts the runs of one case as one cluster.
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

/// Gives the pass rate and its interval. The rate is the mean over cases, so that a case that ran more often than
/// others does not count more. `None` if nothing ran.
pub fn clustered_rate(clusters: &[Cluster], alpha: f64) -> Option<(f64, Interval)> {
    let counted: Vec<Cluster> = clusters.iter().copied().filter(|cluster| cluster.runs > 0).collect();
    // A single case cannot be compared with others, so its runs count one by one.
    if let [one] = counted.as_slice() {
        return one.share().zip(clopper_pearson(one.passed, one.runs, alpha));
    }
    let shares: Vec<f64> = counted.iter().filter_map(|cluster| cluster.share()).collect();
    mean_of_cases(&shares, counted.iter().map(|cluster| cluster.runs).sum(), alpha)
}

/// Gives the mean of one value from 0 to 1 for each case, and its interval. `runs` is the number of runs that the values
/// come from: the values are never worth more points than that.
///
/// The interval is Clopper and Pearson's with as many points as the values are worth by their spread. One more case that
/// passes always and one that fails always are added to the spread, because the next case may be one of these: so
/// values that are all equal still have an interval, and repeating what never varies hardly narrows it.
pub fn mean_of_cases(values: &[f64], runs: u64, alpha: f64) -> Option<(f64, Interval)> {
    if values.is_empty() || runs == 0 {
        return None;
    }
    let cases = values.len() as f64;
    let mean = values.iter().sum::<f64>() / cases;
    let with_added = cases + 2.0;
    let middle = (mean * cases + 1.0) / with_added;
    let squares = values.iter().chain(&[0.0, 1.0]).map(|value| (value - middle).powi(2)).sum::<f64>();
    let variance = squares / (with_added - 1.0) / with_added;
    let points = (middle * (1.0 - middle) / variance).min(runs as f64);
    let found = clopper_pearson_of_points(mean, points, alpha)?;
    // Nothing is surer than a suite in which every case passes always, which is worth one point more than its cases.
    let surest = (alpha / 2.0).powf(1.0 / (cases + 1.0));
    Some((mean, found.extended_to(surest.min(mean)).extended_to((1.0 - surest).max(mean))))
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

    /// The bounds were computed independently from the definition.
    #[test]
    fn repeating_what_never_varies_hardly_narrows() {
        let once = clustered_rate(&clusters(&[(1, 1); 10]), 0.05).expect("a rate");
        assert_near(once.1.low, 0.6915);
        for runs in [3, 9, 100] {
            let often = clustered_rate(&clusters(&[(runs, runs); 10]), 0.05).expect("a rate");
            assert_near(often.1.low, 0.025f64.powf(1.0 / 11.0));
        }
        let one = clustered_rate(&clusters(&[(0, 3)]), 0.05).expect("a rate");
        assert_near(one.1.high, 0.7076);
    }

    #[test]
    fn a_case_that_ran_more_often_does_not_count_more() {
        let (rate, _) = clustered_rate(&clusters(&[(7, 7), (0, 2)]), 0.05).expect("a rate");
        assert_near(rate, 0.5);
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
                prop_assert!(interval.high - interval.low > 1e-3, "{:?}", interval);
            }
        }

        #[test]
        fn one_more_failure_of_single_runs_never_raises_a_bound(passed in 1u64..60, failed in 0u64..60) {
            let suite = |passed: u64, failed: u64| -> Interval {
                let runs = (0..passed + failed).map(|at| Cluster::new(u64::from(at < passed), 1));
                clustered_rate(&runs.collect::<Vec<_>>(), 0.05).expect("a rate").1
            };
            let (before, after) = (suite(passed, failed), suite(passed - 1, failed + 1));
            prop_assert!(after.low <= before.low && after.high <= before.high, "{:?} {:?}", before, after);
        }

        #[test]
        fn failures_never_make_an_all_pass_suite_surer(
            cases in 1usize..40, runs in 1u64..12, failures in prop::collection::vec((0usize..40, 1u64..12), 1..6)
        ) {
            let all = vec![Cluster::new(runs, runs); cases];
            let mut fewer = all.clone();
            for (at, failed) in failures {
                let one = &mut fewer[at % cases];
                *one = Cluster::new(one.passed.saturating_sub(failed), runs);
            }
            let (before, after) = (clustered_rate(&all, 0.05).expect("a rate").1, clustered_rate(&fewer, 0.05).expect("a rate").1);
            prop_assert!(after.low <= before.low + 1e-9 && after.high <= before.high + 1e-9, "{:?} {:?}", before, after);
        }
    }
}
