//! The noise of a run: how often cases change their result although nothing was changed.

use super::case::group_runs_by_case;
use crate::model::{Noise, NoisyCase, TrialRecord};
use crate::stats::Cluster;

/// Measures how often the cases of a run, in which nothing was changed, differ between their trials.
pub fn measure_noise(records: &[&TrialRecord]) -> Noise {
    let cases = group_runs_by_case(records, &[]).into_iter().map(|(name, runs)| {
        let content = runs.content().cloned();
        let Cluster { passed, runs } = runs.cluster;
        NoisyCase {
            suite: name.suite,
            id: name.id,
            agent: name.agent.unwrap_or_default(),
            model: name.model,
            mode: name.mode.unwrap_or_default(),
            arm: name.arm.unwrap_or_default(),
            content,
            runs,
            passed,
            flip_rate: flip_rate(passed, runs),
        }
    });
    Noise { schema_version: 1, cases: cases.collect() }
}

/// Gives the share of pairs of trials that differ.
fn flip_rate(passed: u64, runs: u64) -> Option<f64> {
    let pairs = runs * runs.saturating_sub(1) / 2;
    (pairs > 0).then(|| (passed * (runs - passed)) as f64 / pairs as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flips_are_counted_in_pairs() {
        for (passed, runs, expected) in [
            (0, 0, None),
            (1, 1, None),
            (5, 5, Some(0.0)),
            (1, 2, Some(1.0)),
            (1, 4, Some(0.5)),
            (5, 10, Some(25.0 / 45.0)),
        ] {
            assert_eq!(flip_rate(passed, runs), expected, "{passed}/{runs}");
        }
    }
}
