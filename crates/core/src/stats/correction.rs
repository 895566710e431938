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
