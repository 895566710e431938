//! Cohen's kappa: agreement between two graders.

use super::proportion::Interval;
use super::quantile;

/// The agreement of two graders beyond what chance alone would give.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Kappa {
    pub value: f64,
    /// The share of cases in which they agree.
    pub agreement: f64,
    pub interval: Interval,
}

/// Computes kappa from a table: rows are one grader's answers, columns the other's. `None` if nothing was graded,
/// or if chance alone makes them always agree, so that no agreement can go beyond it.
pub fn kappa(table: [[u64; 2]; 2], alpha: f64) -> Option<Kappa> {
    let n = table.iter().flatten().sum::<u64>() as f64;
    if n == 0.0 {
        return None;
    }
    let share = |row: usize, column: usize| table[row][column] as f64 / n;
    let row = |i: usize| share(i, 0) + share(i, 1);
    let column = |i: usize| share(0, i) + share(1, i);
    let agreement = share(0, 0) + share(1, 1);
    let chance = row(0) * column(0) + row(1) * column(1);
    if chance >= 1.0 {
        return None;
    }
    let value = (agreement - chance) / (1.0 - chance);
    // The large-sample variance of Fleiss, Cohen and Everitt.
    let own: f64 = (0..2).map(|i| share(i, i) * (1.0 - (row(i) + column(i)) * (1.0 - value)).powi(2)).sum();
    let other: f64 = (0..2).map(|i| share(i, 1 - i) * (column(i) + row(1 - i)).powi(2)).sum::<f64>()
        * (1.0 - value).powi(2);
    let last = (value - chance * (1.0 - value)).powi(2);
    let error = ((own + other - last).max(0.0) / n).sqrt() / (1.0 - chance);
    let reach = quantile::normal(1.0 - alpha / 2.0) * error;
    let interval =
        Interval { low: value - reach, high: value + reach }.clamped_to(-1.0, 1.0).extended_to(value);
    Some(Kappa { value, agreement, interval })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert, proptest};

    use super::*;
    use crate::stats::testing::assert_near;

    #[test]
    fn golden_kappa() {
        for (table, expected) in
            [([[20, 5], [10, 15]], 0.4), ([[45, 15], [25, 15]], 0.1304), ([[25, 35], [5, 35]], 0.2593)]
        {
            assert_near(kappa(table, 0.05).expect("defined").value, expected);
        }
        // Computed by hand: the variance is 0.016128.
        let found = kappa([[20, 5], [10, 15]], 0.05).expect("defined");
        assert_near(found.interval.low, 0.1511);
        assert_near(found.interval.high, 0.6489);
        assert_near(found.agreement, 0.7);
    }

    #[test]
    fn agreement_that_chance_explains_wholly_is_undefined() {
        assert_eq!(kappa([[0, 0], [0, 0]], 0.05), None);
        assert_eq!(kappa([[9, 0], [0, 0]], 0.05), None);
    }

    proptest! {
        #[test]
        fn kappa_stays_in_range(a in 0u64..50, b in 0u64..50, c in 0u64..50, d in 0u64..50) {
            if let Some(found) = kappa([[a, b], [c, d]], 0.05) {
                prop_assert!((-1.0..=1.0).contains(&found.value));
                prop_assert!(found.interval.contains(found.value));
            }
        }
    }
}
