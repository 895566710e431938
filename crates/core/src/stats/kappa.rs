//! Cohen's kappa: agreement between two graders.

use super::SeededRandom;
use super::proportion::Interval;

/// The agreement of two graders beyond what chance alone would give.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Kappa {
    /// The agreement beyond chance: 1 is complete, 0 is chance.
    pub value: f64,
    /// The share of cases in which they agree.
    pub agreement: f64,
    /// The confidence interval of the value.
    pub interval: Interval,
}

/// Computes kappa from a table: rows are one grader's answers, columns the other's. `None` if nothing was graded,
/// or if chance alone makes them always agree, so that no agreement can go beyond it.
///
/// ```
/// use practicum_core::stats::kappa;
///
/// // A judge and a person agree that 40 outputs pass and 40 fail, and disagree about 20.
/// let agreement = kappa([[40, 10], [10, 40]], 0.05).expect("graded outputs");
/// assert!((agreement.value - 0.6).abs() < 1e-9);
/// assert!(agreement.interval.low > 0.0);
/// assert!(kappa([[0, 0], [0, 0]], 0.05).is_none());
/// ```
pub fn kappa(table: [[u64; 2]; 2], alpha: f64) -> Option<Kappa> {
    let counts = table.map(|row| row.map(|count| count as f64));
    let n = counts.iter().flatten().sum::<f64>();
    if n == 0.0 {
        return None;
    }
    let value = kappa_value(counts)?;
    let low = bound(counts, &[(0, 1), (1, 0)], alpha / 2.0);
    let high = bound(counts, &[(0, 0), (1, 1)], 1.0 - alpha / 2.0);
    let interval = Interval { low, high }.clamped_to(-1.0, 1.0).extended_to(value);
    Some(Kappa { value, agreement: (counts[0][0] + counts[1][1]) / n, interval })
}

fn kappa_value(counts: [[f64; 2]; 2]) -> Option<f64> {
    let n = counts.iter().flatten().sum::<f64>();
    let share = |row: usize, column: usize| counts[row][column] / n;
    let row = |i: usize| share(i, 0) + share(i, 1);
    let column = |i: usize| share(0, i) + share(1, i);
    let agreement = share(0, 0) + share(1, 1);
    let chance = row(0) * column(0) + row(1) * column(1);
    (chance < 1.0 - 1e-12).then(|| (agreement - chance) / (1.0 - chance))
}

/// The number of tables that are drawn for a bound, and the seed, for which any fixed number would do.
const DRAWS: usize = 2000;
const SEED: u64 = 1;

/// Gives a bound of kappa: a quantile over tables that are drawn around this one, with one more answer in whichever of
/// these cells gives the more cautious bound. That is how Clopper and Pearson's bounds of a share can be drawn.
fn bound(counts: [[f64; 2]; 2], cells: &[(usize, usize)], share: f64) -> f64 {
    let bounds = cells.iter().map(|(row, column)| {
        let mut with_one = counts;
        with_one[*row][*column] += 1.0;
        drawn_quantile(with_one, share)
    });
    if share < 0.5 { bounds.fold(1.0, f64::min) } else { bounds.fold(-1.0, f64::max) }
}

fn drawn_quantile(counts: [[f64; 2]; 2], share: f64) -> f64 {
    let mut random = SeededRandom::new(SEED);
    let mut draw = |count: f64| if count > 0.0 { random.log_gamma(count).exp() } else { 0.0 };
    let mut drawn: Vec<f64> =
        (0..DRAWS).filter_map(|_| kappa_value(counts.map(|row| row.map(&mut draw)))).collect();
    drawn.sort_by(f64::total_cmp);
    let last = drawn.len().saturating_sub(1);
    drawn.get((share * last as f64).round() as usize).copied().unwrap_or(if share < 0.5 { -1.0 } else { 1.0 })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{ProptestConfig, prop_assert, proptest};

    use super::*;
    use crate::stats::testing::assert_near;

    #[test]
    fn golden_kappa() {
        for (table, expected) in
            [([[20, 5], [10, 15]], 0.4), ([[45, 15], [25, 15]], 0.1304), ([[25, 35], [5, 35]], 0.2593)]
        {
            assert_near(kappa(table, 0.05).expect("defined").value, expected);
        }
        // By the variance for large samples, 0.016128, the interval is [0.1511, 0.6489].
        let found = kappa([[20, 5], [10, 15]], 0.05).expect("defined");
        assert!((found.interval.low - 0.1511).abs() < 0.04 && (found.interval.high - 0.6489).abs() < 0.04);
        assert_near(found.agreement, 0.7);
    }

    #[test]
    fn two_labels_say_next_to_nothing() {
        let found = kappa([[1, 0], [0, 1]], 0.05).expect("defined");
        assert!(found.value == 1.0 && found.interval.low < 0.1 && found.interval.high == 1.0, "{found:?}");
    }

    #[test]
    fn agreement_that_chance_explains_wholly_is_undefined() {
        assert_eq!(kappa([[0, 0], [0, 0]], 0.05), None);
        assert_eq!(kappa([[9, 0], [0, 0]], 0.05), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn kappa_stays_in_range(a in 0u64..50, b in 0u64..50, c in 0u64..50, d in 0u64..50) {
            if let Some(found) = kappa([[a, b], [c, d]], 0.05) {
                prop_assert!((-1.0..=1.0).contains(&found.value));
                prop_assert!(found.interval.contains(found.value));
            }
        }
    }
}
