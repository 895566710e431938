//! Quantiles of the normal and of Student's distribution.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// Gives the point below which this share of a standard normal distribution lies.
pub fn normal(share: f64) -> f64 {
    Normal::standard().inverse_cdf(share)
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
