//! An estimated figure with its interval.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A figure with its 95 % interval. What is undefined has no number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    pub value: Option<f64>,
    /// The ends of the interval, where one is known.
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// How many points it is made from: runs of a rate, cases of a difference.
    pub n: u64,
}

impl Estimate {
    pub fn new(value: Option<f64>, interval: Option<(f64, f64)>, n: u64) -> Self {
        let (low, high) = value.and(interval).unzip();
        Self { value, low, high, n }
    }

    pub fn undefined(n: u64) -> Self {
        Self { n, ..Self::default() }
    }
}

/// What a comparison of two ways comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ComparisonVerdict {
    Better,
    Worse,
    /// Whatever the difference is, it is too small to matter.
    Equivalent,
    Inconclusive,
}

impl ComparisonVerdict {
    pub fn name(self) -> &'static str {
        match self {
            ComparisonVerdict::Better => "better",
            ComparisonVerdict::Worse => "worse",
            ComparisonVerdict::Equivalent => "equivalent",
            ComparisonVerdict::Inconclusive => "inconclusive",
        }
    }
}
