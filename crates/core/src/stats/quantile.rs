//! Quantiles of the normal and of Student's distribution.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// Gives the point below which this share of a standard normal distribution lies.
pub fn normal(share: f64) -> f64 {
    Normal::standard().inverse_cdf(share)
}

/// Gives the share of a standard normal distribution that lies below a point.
pub fn normal_share_below(point: f64) -> f64 {
    if point.is_nan() { 0.0 } else { Normal::standard().cdf(point) }
}

/// Gives the number of standard errors that an interval extends to each side if the error was estimated with this
/// many degrees of freedom. `None` without any, because the spread is then unknown.
pub fn student(alpha: f64, freedom: u64) -> Option<f64> {
    let distribution = StudentsT::new(0.0, 1.0, freedom as f64).ok()?;
    Some(distribution.inverse_cdf(1.0 - alpha / 2.0)).filter(|reach| reach.is_finite())
}

/// Gives the chance that a mean lies this many standard errors from 0, or more, by chance alone.
pub fn student_chance(errors: f64, freedom: u64) -> f64 {
    let distribution = StudentsT::new(0.0, 1.0, freedom as f64);
    distribution.map_or(1.0, |distribution| 2.0 * distribution.sf(errors.abs())).clamp(0.0, 1.0)
}

/// Finds the point at which a distribution function reaches a share, between two ends. It draws straight lines through
/// points on a normal scale, where most such functions are nearly straight, and halves the range where that does not
/// help.
pub fn find_quantile(mut low: f64, mut high: f64, share: f64, distribution: impl Fn(f64) -> f64) -> f64 {
    let target = normal(share);
    let (mut at_low, mut at_high): (Option<f64>, Option<f64>) = (None, None);
    let mut next = (low + high) / 2.0;
    for step in 0..80 {
        let value = normal(distribution(next).clamp(1e-300, 1.0 - 1e-16)) - target;
        if value.abs() < 1e-9 {
            return next;
        }
        if value < 0.0 {
            (low, at_low) = (next, Some(value));
        } else {
            (high, at_high) = (next, Some(value));
        }
        if high - low < 1e-12 {
            break;
        }
        let straight = at_low.zip(at_high).map(|(a, b)| (low * b - high * a) / (b - a));
        // A line that keeps one end for long is halved, so that the range always shrinks.
        next = match straight.filter(|point| step % 4 != 3 && *point > low && *point < high) {
            Some(point) => point,
            None => (low + high) / 2.0,
        };
    }
    (low + high) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::testing::assert_near;

    #[test]
    fn known_quantiles() {
        assert_near(normal(0.975), 1.95996);
        assert_near(normal(0.8), 0.84162);
        for (freedom, expected) in [(1, 12.7062), (2, 4.30265), (9, 2.26216), (1000, 1.96234)] {
            assert_near(student(0.05, freedom).expect("a reach"), expected);
        }
        assert_eq!(student(0.05, 0), None);
        assert_near(student_chance(-2.26216, 9), 0.05);
        assert_eq!((student_chance(3.0, 0), student_chance(0.0, 5)), (1.0, 1.0));
    }
}
