//! How much of what varies between results is due to the cases, to repeats of one case, and to the judge.

use crate::model::VarianceShares;

/// Splits the variance of single results. Each case has trials, and each trial has the verdicts that single votes of the
/// judge give it, or one verdict if there are no votes. `None` if there are fewer than two cases, if no case ran twice, or
/// if nothing varied.
pub fn share_variance(cases: &[Vec<Vec<bool>>]) -> Option<VarianceShares> {
    let trials = || cases.iter().flatten().filter(|votes| !votes.is_empty());
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let values: Vec<Vec<f64>> = cases
        .iter()
        .map(|trials| {
            trials.iter().filter(|votes| !votes.is_empty()).map(|votes| mean(&numbers(votes))).collect()
        })
        .filter(|values: &Vec<f64>| !values.is_empty())
        .collect();
    let votes: Vec<f64> = trials().filter_map(|votes| variance(&numbers(votes))).collect();
    let judge = (!votes.is_empty()).then(|| mean(&votes));
    let within: Vec<f64> = values.iter().filter_map(|values| variance(values)).collect();
    if values.len() < 2 || within.is_empty() {
        return None;
    }
    let within = mean(&within);
    let each_vote: Vec<f64> = trials().map(|votes| 1.0 / votes.len() as f64).collect();
    let run = (within - judge.unwrap_or(0.0) * mean(&each_vote)).max(0.0);
    let each_run: Vec<f64> = values.iter().map(|values| 1.0 / values.len() as f64).collect();
    let means: Vec<f64> = values.iter().map(|values| mean(values)).collect();
    let case = (variance(&means)? - within * mean(&each_run)).max(0.0);
    let total = case + run + judge.unwrap_or(0.0);
    (total > 1e-12).then(|| VarianceShares {
        case: case / total,
        run: run / total,
        judge: judge.map(|judge| judge / total),
    })
}

fn numbers(votes: &[bool]) -> Vec<f64> {
    votes.iter().map(|passed| f64::from(u8::from(*passed))).collect()
}

/// Gives the variance of a sample; `None` for fewer than two values.
fn variance(values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    (values.len() > 1).then(|| values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::SeededRandom;
    use crate::stats::testing::assert_near;

    #[test]
    fn what_never_varies_inside_a_case_is_due_to_the_cases() {
        let always = |passed: bool| vec![vec![passed]; 4];
        let found = share_variance(&[always(true), always(false), always(true)]).expect("shares");
        assert_near(found.case, 1.0);
        assert_eq!(found.judge, None, "nobody knows, because no trial has two votes");
        assert_eq!(share_variance(&[always(true), always(true)]), None, "nothing varied");
        assert_eq!(share_variance(&[always(true)]), None);
        assert_eq!(share_variance(&[vec![vec![true]], vec![vec![false]]]), None, "nothing ran twice");
    }

    /// Cases, runs and votes with known variances: 0.04 between cases, 0.04 between runs, the rest by the judge.
    #[test]
    fn the_shares_are_those_that_the_results_were_made_with() {
        let mut random = SeededRandom::new(3);
        let mut flip = |size: f64| if random.fraction() < 0.5 { size } else { -size };
        let mut rates = Vec::new();
        for _ in 0..400 {
            let case = 0.5 + flip(0.2);
            rates.push((0..6).map(|_| case + flip(0.2)).collect::<Vec<f64>>());
        }
        let mut random = SeededRandom::new(4);
        let cases: Vec<Vec<Vec<bool>>> = rates
            .iter()
            .map(|runs| runs.iter().map(|rate| (0..3).map(|_| random.fraction() < *rate).collect()).collect())
            .collect();
        let found = share_variance(&cases).expect("shares");
        assert!((found.case - 0.16).abs() < 0.04, "{found:?}");
        assert!((found.run - 0.16).abs() < 0.04, "{found:?}");
        assert!((found.judge.expect("votes") - 0.68).abs() < 0.05, "{found:?}");
    }
}
