//! An estimated figure with its interval.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A figure with its 95 % interval. What is undefined has no number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// The estimated figure; `None` if it is undefined.
    pub value: Option<f64>,
    /// The ends of the interval, where one is known.
    pub low: Option<f64>,
    /// The upper end of the interval.
    pub high: Option<f64>,
    /// The number of observations: runs for a rate, cases for a difference.
    pub n: u64,
}

impl Estimate {
    /// Makes an estimate. Without a value, the interval is left out too.
    pub fn new(value: Option<f64>, interval: Option<(f64, f64)>, n: u64) -> Self {
        let (low, high) = value.and(interval).unzip();
        Self { value, low, high, n }
    }

    /// Makes an estimate without a value, from `n` observations.
    pub fn undefined(n: u64) -> Self {
        Self { n, ..Self::default() }
    }
}

/// The verdict of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ComparisonVerdict {
    /// The new side is better.
    Better,
    /// The new side is worse.
    Worse,
    /// Whatever the difference is, it is too small to matter.
    Equivalent,
    /// These runs do not show which side is better.
    Inconclusive,
}

impl ComparisonVerdict {
    /// Gives the word for the verdict in documents.
    pub fn name(self) -> &'static str {
        match self {
            ComparisonVerdict::Better => "better",
            ComparisonVerdict::Worse => "worse",
            ComparisonVerdict::Equivalent => "equivalent",
            ComparisonVerdict::Inconclusive => "inconclusive",
        }
    }
}

/// What a comparison without a clear result could have found, and what would settle it. Empty where the result is
/// clear.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparisonOutlook {
    /// The smallest loss that as many cases and runs show four times out of five; `None` if they show no loss so often.
    #[serde(default)]
    pub smallest_loss: Option<f64>,
    /// About how many cases more would settle it, run as often as these. `None` also where a single case is compared.
    #[serde(default)]
    pub more_cases: Option<u64>,
    /// How often each of these cases would have to run on each side instead; `None` if more repeats cannot settle it.
    #[serde(default)]
    pub repeat: Option<u64>,
    /// The number of further runs of the cheaper of the two, and what they would cost.
    pub more_runs: Option<u64>,
    /// The cost of these further runs in USD; `None` if the cost of a run is unknown.
    pub more_usd: Option<f64>,
    /// The margin within which so many runs would show that the sides are equivalent, if they are.
    #[serde(default)]
    pub sought: Option<f64>,
}
