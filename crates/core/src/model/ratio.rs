//! A share between 0 and 1.

use serde::{Deserialize, Serialize};

/// A share between 0 and 1, both included.
#[derive(Debug, Clone, Copy, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Ratio(f64);

impl Ratio {
    /// The ratio 0.
    pub const ZERO: Ratio = Ratio(0.0);
    /// The ratio 1.
    pub const ONE: Ratio = Ratio(1.0);

    /// Makes a ratio. `None` if the value is not between 0 and 1.
    pub fn new(value: f64) -> Option<Self> {
        (0.0..=1.0).contains(&value).then_some(Self(value))
    }

    /// Gives the value.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Ratio {
    type Error = String;

    fn try_from(value: f64) -> Result<Self, String> {
        Self::new(value).ok_or_else(|| format!("{value} is not between 0 and 1"))
    }
}

impl From<Ratio> for f64 {
    fn from(ratio: Ratio) -> f64 {
        ratio.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_shares_are_ratios() {
        for (value, ok) in [
            (0.0, true),
            (0.5, true),
            (1.0, true),
            (-0.1, false),
            (1.01, false),
            (f64::NAN, false),
            (f64::INFINITY, false),
        ] {
            assert_eq!(Ratio::new(value).is_some(), ok, "{value}");
        }
    }
}
