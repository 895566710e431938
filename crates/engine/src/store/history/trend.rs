//! Shows how one number changes over the runs of a project.

use schemars::JsonSchema;
use serde::Serialize;

use crate::store::{Index, IndexError, Metric, MetricScope};

/// The values of a metric over the runs of a project: `trend --json`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(title = "The values of a metric over runs (trend --json)")]
pub struct Trend {
    #[schemars(extend("const" = 1))]
    pub schema_version: u32,
    pub metric: String,
    /// The suite, case, agent and arm it is about; `None` is all (but the arm without the skill).
    pub suite: Option<String>,
    pub case: Option<String>,
    pub agent: Option<String>,
    pub arm: Option<String>,
    /// The oldest run first.
    pub points: Vec<TrendPoint>,
}

/// The value of a metric in one run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TrendPoint {
    pub run: String,
    /// When the run started.
    pub started: String,
    /// `None` where the run measured nothing of it.
    pub value: Option<f64>,
    /// The interval of the value, for shares of trials; `None` for other metrics.
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// The number of results behind the value.
    pub n: u64,
    /// How many of the trials were reused: their results come from earlier runs.
    pub reused: u64,
    /// Whether the model's answers came from a script or (`replayed`) from a recording.
    pub scripted: bool,
    pub replayed: bool,
}

/// Reads a number for each of the newest runs.
pub fn trend(index: &Index, metric: Metric, scope: &MetricScope, runs: usize) -> Result<Trend, IndexError> {
    let points = index.metric_points(metric, scope, runs)?.into_iter();
    Ok(Trend {
        schema_version: 1,
        metric: metric.name().to_owned(),
        suite: scope.suite.clone(),
        case: scope.case.clone(),
        agent: scope.agent.clone(),
        arm: scope.arm.clone(),
        points: points
            .map(|point| TrendPoint {
                run: point.run,
                started: point.started,
                value: point.value,
                low: point.interval.map(|interval| interval.low),
                high: point.interval.map(|interval| interval.high),
                n: point.n,
                reused: point.reused,
                scripted: point.scripted,
                replayed: point.replayed,
            })
            .collect(),
    })
}

const SPARKLINE_BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Draws a bar for each value, and a dot if there is none. Shares are drawn on a scale from 0 to 1, so that a fall
/// from 1.00 to 0.99 stays small. Other numbers are drawn between the smallest and the largest.
pub fn sparkline(values: &[Option<f64>], is_share: bool) -> String {
    let known_values = || values.iter().flatten().copied();
    let (low, high) = match is_share {
        true => (0.0, 1.0),
        false => {
            (known_values().fold(f64::INFINITY, f64::min), known_values().fold(f64::NEG_INFINITY, f64::max))
        }
    };
    let highest = SPARKLINE_BARS.len() - 1;
    let bar = |value: f64| {
        let part = if high > low { (value - low) / (high - low) } else { 0.5 };
        SPARKLINE_BARS[((part.clamp(0.0, 1.0) * highest as f64).round() as usize).min(highest)]
    };
    values.iter().map(|value| value.map_or('·', bar)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparklines() {
        for (values, is_share, expected) in [
            (vec![], true, ""),
            (vec![Some(0.0), Some(0.5), Some(1.0)], true, "▁▅█"),
            (vec![Some(1.0), Some(0.99)], true, "██"),
            (vec![Some(10.0), None, Some(20.0)], false, "▁·█"),
            (vec![Some(3.0), Some(3.0)], false, "▅▅"),
            (vec![None], false, "·"),
        ] {
            assert_eq!(sparkline(&values, is_share), expected, "{values:?}");
        }
    }
}
