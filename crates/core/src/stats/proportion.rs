//! Intervals of proportions.

use statrs::distribution::{Beta, ContinuousCDF};

use super::quantile;

/// An interval in which the true value may lie.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    /// Gives the smallest interval that contains both this one and a point.
    #[must_use]
    pub(crate) fn extended_to(self, point: f64) -> Self {
        Self { low: self.low.min(point), high: self.high.max(point) }
    }

    /// Says whether a value lies in the interval, its ends included.
    pub fn contains(self, point: f64) -> bool {
        self.low <= point && point <= self.high
    }

    /// Cuts the interval down to the possible values.
    #[must_use]
    pub(crate) fn clamped_to(self, low: f64, high: f64) -> Self {
        Self { low: self.low.clamp(low, high), high: self.high.clamp(low, high) }
    }
}

/// Gives the Wilson score interval of a proportion. `None` if nothing was counted.
///
/// ```
/// use practicum_core::stats::{ALPHA, wilson};
///
/// let interval = wilson(8, 10, ALPHA).expect("there are trials");
/// assert!(interval.low > 0.48 && interval.high < 0.95);
/// assert_eq!(wilson(0, 0, ALPHA), None, "without trials there is no interval");
/// ```
pub fn wilson(successes: u64, trials: u64, alpha: f64) -> Option<Interval> {
    if trials == 0 || successes > trials {
        return None;
    }
    wilson_effective(successes as f64 / trials as f64, trials as f64, alpha)
}

/// Gives the Wilson score interval for correlated points, which count as fewer than there are.
pub(crate) fn wilson_effective(share: f64, points: f64, alpha: f64) -> Option<Interval> {
    if !(points > 0.0 && (0.0..=1.0).contains(&share)) {
        return None;
    }
    let z = quantile::normal(1.0 - alpha / 2.0);
    let z2 = z * z / points;
    let middle = (share + z2 / 2.0) / (1.0 + z2);
    let reach = z / (1.0 + z2) * (share * (1.0 - share) / points + z2 / (4.0 * points)).sqrt();
    // Rounding must not exclude the end that is exact.
    Some(Interval { low: middle - reach, high: middle + reach }.clamped_to(0.0, 1.0).extended_to(share))
}

/// Gives the exact (Clopper-Pearson) interval of a proportion, which is never too narrow. `None` if nothing was
/// counted.
pub fn clopper_pearson(successes: u64, trials: u64, alpha: f64) -> Option<Interval> {
    if trials == 0 || successes > trials {
        return None;
    }
    clopper_pearson_of_points(successes as f64 / trials as f64, trials as f64, alpha)
}

/// Gives the Clopper-Pearson interval for correlated points, which count as fewer than there are.
pub fn clopper_pearson_of_points(share: f64, points: f64, alpha: f64) -> Option<Interval> {
    if !(points > 0.0 && (0.0..=1.0).contains(&share)) {
        return None;
    }
    let (successes, failures) = (share * points, (1.0 - share) * points);
    let end = |a: f64, b: f64, share: f64| {
        let beta = Beta::new(a, b).ok()?;
        Some(quantile::find_quantile(0.0, 1.0, share, |point| beta.cdf(point)))
    };
    let low = if successes < 1e-9 { 0.0 } else { end(successes, failures + 1.0, alpha / 2.0)? };
    let high = if failures < 1e-9 { 1.0 } else { end(successes + 1.0, failures, 1.0 - alpha / 2.0)? };
    Some(Interval { low, high }.extended_to(share))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{ProptestConfig, prop_assert, proptest};

    use super::*;
    use crate::stats::testing::assert_near;

    #[test]
    fn golden_wilson() {
        for (successes, trials, low, high) in
            [(4, 5, 0.3755, 0.9638), (3, 3, 0.4385, 1.0), (0, 3, 0.0, 0.5615), (10, 10, 0.7225, 1.0)]
        {
            let interval = wilson(successes, trials, 0.05).expect("an interval");
            assert_near(interval.low, low);
            assert_near(interval.high, high);
        }
    }

    #[test]
    fn golden_clopper_pearson() {
        let interval = clopper_pearson(4, 5, 0.05).expect("an interval");
        assert_near(interval.low, 0.2836);
        assert_near(interval.high, 0.9949);
    }

    #[test]
    fn nothing_counted_has_no_interval() {
        assert_eq!((wilson(0, 0, 0.05), clopper_pearson(0, 0, 0.05)), (None, None));
        assert_eq!(wilson_effective(f64::NAN, 3.0, 0.05), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn intervals_hold_the_share_and_grow_with_it(trials in 1u64..400, part in 0.0f64..1.0) {
            let successes = (part * trials as f64) as u64;
            let share = successes as f64 / trials as f64;
            for make in [wilson, clopper_pearson] {
                let interval = make(successes, trials, 0.05).expect("an interval");
                prop_assert!(0.0 <= interval.low && interval.high <= 1.0);
                prop_assert!(interval.contains(share));
                if successes < trials {
                    let next = make(successes + 1, trials, 0.05).expect("an interval");
                    prop_assert!(next.low >= interval.low && next.high >= interval.high);
                }
                let surer = make(successes, trials, 0.01).expect("an interval");
                prop_assert!(surer.low <= interval.low + 1e-12 && surer.high >= interval.high - 1e-12);
            }
        }
    }
}
