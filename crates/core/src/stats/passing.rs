//! pass@k and pass^k.

/// Gives the chance that at least one of `k` runs passes, if `passed` of `runs` did. `None` with fewer than `k`
/// runs, because they do not show it.
///
/// ```
/// use practicum_core::stats::{pass_at_k, pass_hat_k};
///
/// // 3 of 4 runs passed: of 2 runs, one passes for sure, and both with a chance of one half.
/// assert_eq!(pass_at_k(3, 4, 2), Some(1.0));
/// assert_eq!(pass_hat_k(3, 4, 2), Some(0.5));
/// assert_eq!(pass_at_k(3, 4, 5), None);
/// ```
pub fn pass_at_k(passed: u64, runs: u64, k: u64) -> Option<f64> {
    let failed = runs.checked_sub(passed)?;
    chance_all_drawn(failed, runs, k).map(|none| 1.0 - none)
}

/// Gives the chance that all of `k` runs pass.
pub fn pass_hat_k(passed: u64, runs: u64, k: u64) -> Option<f64> {
    chance_all_drawn(passed, runs, k)
}

/// Gives C(part, k) / C(whole, k): the chance that `k` items drawn without replacement all belong to the part.
fn chance_all_drawn(part: u64, whole: u64, k: u64) -> Option<f64> {
    if k == 0 || k > whole || part > whole {
        return None;
    }
    // If the part is smaller than `k`, one factor is 0.
    Some((0..k).map(|i| part.saturating_sub(i) as f64 / (whole - i) as f64).product())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert, proptest};

    use super::*;
    use crate::stats::testing::assert_near;

    /// Passes 5, 4, 2 of 5 over three cases.
    #[test]
    fn golden_means_over_cases() {
        let mean = |of: fn(u64, u64, u64) -> Option<f64>, k| {
            [5, 4, 2].iter().map(|passed| of(*passed, 5, k).expect("enough runs")).sum::<f64>() / 3.0
        };
        for (k, expected) in [(1, 0.7333), (2, 0.5667), (3, 0.4667), (4, 0.4), (5, 0.3333)] {
            assert_near(mean(pass_hat_k, k), expected);
        }
        assert_near(mean(pass_at_k, 1), 0.7333);
        assert_near(mean(pass_at_k, 2), 0.9);
        assert_near(mean(pass_at_k, 3), 0.9667);
    }

    #[test]
    fn more_than_was_run_is_undefined() {
        for (passed, runs, k) in [(0, 0, 1), (1, 1, 2), (2, 3, 0), (4, 3, 1)] {
            assert_eq!((pass_at_k(passed, runs, k), pass_hat_k(passed, runs, k)), (None, None));
        }
    }

    proptest! {
        #[test]
        fn any_grows_and_all_shrinks_with_k(runs in 1u64..60, part in 0u64..60, k in 1u64..60) {
            let (passed, k) = (part.min(runs), k.min(runs));
            let (any, all) = (pass_at_k(passed, runs, k).expect("any"), pass_hat_k(passed, runs, k).expect("all"));
            prop_assert!((0.0..=1.0).contains(&any) && (0.0..=1.0).contains(&all) && all <= any + 1e-12);
            if k < runs {
                prop_assert!(pass_at_k(passed, runs, k + 1).expect("any") >= any - 1e-12);
                prop_assert!(pass_hat_k(passed, runs, k + 1).expect("all") <= all + 1e-12);
            }
        }
    }
}
