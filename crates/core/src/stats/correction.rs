//! Corrections for several tests at once.

/// Corrects p-values for several tests at once with Holm's method, which allows any dependence between them. The
/// results are compared with the same alpha as a single p-value, and keep their order.
pub fn holm(chances: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..chances.len()).collect();
    order.sort_by(|a, b| chances[*a].total_cmp(&chances[*b]));
    let mut corrected = vec![1.0; chances.len()];
    let mut largest: f64 = 0.0;
    for (rank, at) in order.into_iter().enumerate() {
        largest = largest.max(chances[at] * (chances.len() - rank) as f64).min(1.0);
        corrected[at] = largest;
    }
    corrected
}

/// Gives the alpha for each of several tests with Tarone's method. It counts only the tests whose p-value could be
/// small enough. `least` has the smallest p-value that each test could have given.
pub fn tarone(least: &[f64], alpha: f64) -> f64 {
    let could = |number: usize| least.iter().filter(|chance| **chance <= alpha / number as f64).count();
    let number = (1..=least.len().max(1)).find(|number| could(*number) <= *number);
    alpha / number.unwrap_or(1) as f64
}

/// Says which of several findings may be claimed so that on average at most a share of `alpha` of the claims is wrong
/// (Wang and Ramdas's method for e-values). It allows any dependence between them, and each may have stopped on its own.
pub fn claims_by_evidence(evidence: &[f64], alpha: f64) -> Vec<bool> {
    let mut order: Vec<usize> = (0..evidence.len()).collect();
    order.sort_by(|a, b| evidence[*b].total_cmp(&evidence[*a]));
    let is_enough =
        |rank: usize, at: usize| (rank + 1) as f64 * evidence[at] * alpha >= evidence.len() as f64;
    let claimed =
        order.iter().enumerate().filter(|(rank, at)| is_enough(*rank, **at)).map(|(rank, _)| rank + 1);
    let claimed = claimed.max().unwrap_or(0);
    let mut claims = vec![false; evidence.len()];
    order[..claimed].iter().for_each(|at| claims[*at] = true);
    claims
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop, prop_assert, proptest};

    use super::*;
    use crate::stats::testing::assert_near;

    #[test]
    fn by_hand() {
        for (chances, expected) in [
            (vec![], vec![]),
            (vec![0.03], vec![0.03]),
            (vec![0.01, 0.04, 0.03], vec![0.03, 0.06, 0.06]),
            (vec![0.5, 0.9], vec![1.0, 1.0]),
        ] {
            let corrected = holm(&chances);
            assert_eq!(corrected.len(), chances.len());
            corrected.iter().zip(expected).for_each(|(actual, expected)| assert_near(*actual, expected));
        }
    }

    #[test]
    fn evidence_is_shared_by_those_that_have_it() {
        for (evidence, expected) in [
            (vec![], vec![]),
            (vec![20.0], vec![true]),
            (vec![19.0], vec![false]),
            // One alone needs 60, two together 30 each.
            (vec![40.0, 1.0, 1.0], vec![false, false, false]),
            (vec![40.0, 31.0, 1.0], vec![true, true, false]),
        ] {
            assert_eq!(claims_by_evidence(&evidence, 0.05), expected, "{evidence:?}");
        }
    }

    #[test]
    fn cases_that_could_not_tell_make_the_others_no_harder() {
        for (least, expected) in [
            (vec![], 0.05),
            (vec![0.0079, 1.0, 1.0, 1.0], 0.05),
            (vec![0.0079; 3], 0.05 / 3.0),
            (vec![0.03, 0.03, 0.03], 0.05 / 2.0),
        ] {
            assert_near(tarone(&least, 0.05), expected);
        }
    }

    proptest! {
        #[test]
        fn correcting_never_makes_surer(chances in prop::collection::vec(0.0f64..=1.0, 0..20)) {
            for (before, after) in chances.iter().zip(holm(&chances)) {
                prop_assert!(after >= *before && after <= 1.0);
            }
        }
    }
}
