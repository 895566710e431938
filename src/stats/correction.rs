/// Chances corrected for having been looked at together (Holm's way, which allows any dependence):
/// compare them with the same bound as one alone. In the order they came.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop, prop_assert, proptest};

    use super::*;
    use crate::stats::testing::near;

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
            corrected.iter().zip(expected).for_each(|(actual, expected)| near(*actual, expected));
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
