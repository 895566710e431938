//! Helpers for tests of statistics.

/// Asserts that two numbers are equal to four decimals.
#[track_caller]
pub fn assert_near(actual: f64, expected: f64) {
    assert!((actual - expected).abs() < 5e-5, "{actual} is not {expected}");
}
