//! Precision, recall, F1 and accuracy of activation, with their intervals.

use super::clustered::{Cluster, clustered_rate};
use super::proportion::Interval;
use crate::model::Estimate;

/// The number of runs by expected and observed activation. Inconclusive runs are not counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Confusion {
    /// The number of runs in which a skill was activated that had to be.
    pub tp: u64,
    /// The number of runs in which a skill was activated that must not be.
    pub fp: u64,
    /// The number of runs in which a skill was not activated that must not be.
    pub tn: u64,
    /// The number of runs in which a skill was not activated that had to be.
    pub fn_: u64,
}

impl Confusion {
    /// Adds up two tables.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            tp: self.tp + other.tp,
            fp: self.fp + other.fp,
            tn: self.tn + other.tn,
            fn_: self.fn_ + other.fn_,
        }
    }

    /// Gives the number of all runs in the table.
    pub fn runs(self) -> u64 {
        self.tp + self.fp + self.tn + self.fn_
    }
}

/// The rates of a confusion table, each with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConfusionRates {
    /// The share of activations that were right.
    pub precision: Estimate,
    /// The share of wanted activations that happened.
    pub recall: Estimate,
    /// The harmonic mean of precision and recall.
    pub f1: Estimate,
    /// The share of runs in which activation was as wanted.
    pub accuracy: Estimate,
}

/// One of the two kinds of cases: those in which the skill must be activated, or those in which it must not.
struct ActivationShare {
    runs: u64,
    /// The share of runs that activated the skill, and its interval.
    share: f64,
    interval: Interval,
}

impl ActivationShare {
    fn of_cases(cases: &[Confusion], activated_of: fn(Confusion) -> (u64, u64), alpha: f64) -> Option<Self> {
        let clusters: Vec<Cluster> = cases
            .iter()
            .map(|case| activated_of(*case))
            .filter(|(_, runs)| *runs > 0)
            .map(|(activated, runs)| Cluster::new(activated, runs))
            .collect();
        let (_, interval) = clustered_rate(&clusters, alpha)?;
        let (activated, runs) = clusters.iter().fold((0, 0), |(a, n), of| (a + of.passed, n + of.runs));
        let share = activated as f64 / runs as f64;
        // The interval is about a mean over cases; the share counts runs, as the usual formulas do.
        Some(Self { runs, share, interval: interval.extended_to(share) })
    }
}

/// Gives the rates over all runs. The intervals are about cases like these: they follow from those of the two kinds of
/// cases, which ran independently.
pub fn rates(cases: &[Confusion], alpha: f64) -> ConfusionRates {
    let must = ActivationShare::of_cases(cases, |case| (case.tp, case.tp + case.fn_), alpha);
    let must_not = ActivationShare::of_cases(cases, |case| (case.fp, case.fp + case.tn), alpha);
    let recall = must.as_ref().map_or(Estimate::undefined(0), |must| {
        Estimate::new(Some(must.share), Some((must.interval.low, must.interval.high)), must.runs)
    });
    let all = cases.iter().copied().fold(Confusion::default(), Confusion::plus);
    // If no run could have activated the skill wrongly, the absence of false positives says nothing.
    let Some(must_not) = must_not else {
        let undefined = Estimate::undefined(0);
        return ConfusionRates { precision: undefined, recall, f1: undefined, accuracy: undefined };
    };
    let must =
        must.unwrap_or(ActivationShare { runs: 0, share: 0.0, interval: Interval { low: 0.0, high: 0.0 } });
    let estimate = |measure: ConfusionMeasure, runs| {
        estimate_measure(measure, &must, &must_not, measure.value(all), runs)
    };
    ConfusionRates {
        precision: estimate(ConfusionMeasure::Precision, all.tp + all.fp),
        recall,
        f1: estimate(ConfusionMeasure::F1, all.tp + all.fp + all.fn_),
        accuracy: estimate(ConfusionMeasure::Accuracy, all.runs()),
    }
}

/// A measure that rises with the share of activated runs where the skill must be, and falls with that where it must
/// not be.
#[derive(Debug, Clone, Copy)]
enum ConfusionMeasure {
    Precision,
    F1,
    Accuracy,
}

impl ConfusionMeasure {
    /// Gives the measure. `None` if it is undefined: a precision where nothing was activated, say.
    fn value(self, Confusion { tp, fp, tn, fn_ }: Confusion) -> Option<f64> {
        let (part, whole) = match self {
            ConfusionMeasure::Precision => (tp, tp + fp),
            ConfusionMeasure::F1 => (2 * tp, 2 * tp + fp + fn_),
            ConfusionMeasure::Accuracy => (tp + tn, tp + fp + tn + fn_),
        };
        (whole > 0).then(|| part as f64 / whole as f64)
    }

    /// Gives the weights of both shares with which the measure is at least `level` where their weighted difference is.
    fn weights(self, level: f64, runs: f64, other_runs: f64) -> (f64, f64) {
        match self {
            ConfusionMeasure::Precision => (runs * (1.0 - level), other_runs * level),
            ConfusionMeasure::F1 => (runs * (2.0 - level), other_runs * level),
            ConfusionMeasure::Accuracy => (runs, other_runs),
        }
    }

    /// Gives what the weighted difference has to reach.
    fn needed(self, level: f64, runs: f64, other_runs: f64) -> f64 {
        match self {
            ConfusionMeasure::Precision => 0.0,
            ConfusionMeasure::F1 => level * runs,
            ConfusionMeasure::Accuracy => level * (runs + other_runs) - other_runs,
        }
    }
}

fn estimate_measure(
    measure: ConfusionMeasure,
    must: &ActivationShare,
    must_not: &ActivationShare,
    value: Option<f64>,
    runs: u64,
) -> Estimate {
    let Some(value) = value else { return Estimate::undefined(0) };
    // Without a run that must activate the skill, precision and F1 are 0 whatever happens: that is no measurement.
    if must.runs == 0 && !matches!(measure, ConfusionMeasure::Accuracy) {
        return Estimate::new(Some(value), None, runs);
    }
    // How far the weighted difference may lie from its value: the distances of both shares from the ends of their
    // intervals, added as independent errors are.
    let can_be = |level: f64, is_at_least: bool| {
        let (weight, other_weight) = measure.weights(level, must.runs as f64, must_not.runs as f64);
        let centre = weight * must.share
            - other_weight * must_not.share
            - measure.needed(level, must.runs as f64, must_not.runs as f64);
        let (own, other) = match is_at_least {
            true => (must.interval.high - must.share, must_not.share - must_not.interval.low),
            false => (must.share - must.interval.low, must_not.interval.high - must_not.share),
        };
        let reach = (weight * own).hypot(other_weight * other);
        if is_at_least { centre + reach >= 0.0 } else { centre - reach < 0.0 }
    };
    let low = first_level(0.0, value, |level| can_be(level, false));
    let high = 1.0 - first_level(0.0, 1.0 - value, |level| can_be(1.0 - level, true));
    Estimate::new(Some(value), Some((low.min(value), high.max(value))), runs)
}

/// Finds the lowest level from which on a condition holds. It holds at `high` at the latest.
fn first_level(mut low: f64, mut high: f64, holds: impl Fn(f64) -> bool) -> f64 {
    if holds(low) {
        return low;
    }
    for _ in 0..40 {
        let middle = (low + high) / 2.0;
        if holds(middle) { high = middle } else { low = middle }
    }
    high
}

/// What is said of a good figure whose interval reaches down to figures that are not good.
pub const TOO_FEW_CASES: &str = "Too few cases to say";

/// Gives the word for a precision or a recall. A word of praise needs a lower bound that supports it. `None` if there is
/// no figure.
pub fn describe_rate(of: Estimate) -> Option<&'static str> {
    let (value, low) = (of.value?, of.low.unwrap_or(0.0));
    Some(match value {
        _ if value >= 1.0 && low >= 0.8 => "Perfect",
        _ if value >= 0.8 && low >= 0.5 => "Good",
        _ if value >= 0.8 => TOO_FEW_CASES,
        _ if value >= 0.5 => "Needs work",
        _ => "Poor",
    })
}

/// Gives the word for an F1. A word of praise needs a lower bound that supports it. `None` if there is no figure.
pub fn describe_f1(of: Estimate) -> Option<&'static str> {
    let (value, low) = (of.value?, of.low.unwrap_or(0.0));
    Some(match value {
        _ if value >= 0.9 && low >= 0.8 => "Excellent",
        _ if value >= 0.8 && low >= 0.6 => "Good",
        _ if value >= 0.8 => TOO_FEW_CASES,
        _ if value >= 0.6 => "Acceptable",
        _ => "Needs improvement",
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{ProptestConfig, prop, prop_assert, proptest};

    use super::*;
    use crate::stats::testing::assert_near;

    fn confusion(tp: u64, fp: u64, tn: u64, fn_: u64) -> Confusion {
        Confusion { tp, fp, tn, fn_ }
    }

    /// Every way in which a measure is defined or not.
    #[test]
    fn documented_metrics_from_every_confusion() {
        let none = None;
        for ((tp, fp, tn, fn_), precision, recall, f1, accuracy) in [
            ((0, 0, 0, 0), none, none, none, none),
            ((0, 0, 4, 0), none, none, none, Some(1.0)),
            ((0, 0, 0, 3), none, Some(0.0), none, none),
            ((0, 0, 3, 1), none, Some(0.0), Some(0.0), Some(0.75)),
            ((0, 3, 0, 0), Some(0.0), none, Some(0.0), Some(0.0)),
            ((0, 1, 3, 0), Some(0.0), none, Some(0.0), Some(0.75)),
            ((0, 2, 0, 2), Some(0.0), Some(0.0), Some(0.0), Some(0.0)),
            ((5, 0, 0, 0), none, Some(1.0), none, none),
            ((8, 2, 9, 1), Some(0.8), Some(0.8889), Some(0.8421), Some(0.85)),
            ((3, 1, 0, 0), Some(0.75), Some(1.0), Some(0.8571), Some(0.75)),
            ((3, 0, 0, 1), none, Some(0.75), none, none),
        ] {
            let cases = [confusion(tp, 0, 0, fn_), confusion(0, fp, tn, 0)];
            let found = rates(&cases, 0.05);
            for (estimate, expected) in [
                (found.precision, precision),
                (found.recall, recall),
                (found.f1, f1),
                (found.accuracy, accuracy),
            ] {
                assert_eq!(estimate.value.is_some(), expected.is_some(), "{tp} {fp} {tn} {fn_}");
                if let (Some(value), Some(expected)) = (estimate.value, expected) {
                    assert_near(value, expected);
                }
            }
        }
    }

    #[test]
    fn unanimous_cases_count_once_however_often_they_ran() {
        let cases = vec![confusion(5, 0, 0, 0); 4];
        let found = rates(&cases, 0.05).recall;
        assert_near(found.low.expect("an end"), 0.025f64.powf(1.0 / 5.0));
        assert_eq!((found.value, found.high, found.n), (Some(1.0), Some(1.0), 20));
    }

    /// The examples that showed the fault: intervals of no width from a few cases.
    #[test]
    fn few_cases_never_have_an_interval_without_width() {
        let one_miss =
            [vec![confusion(5, 0, 0, 0); 4], vec![confusion(4, 0, 0, 1), confusion(0, 0, 5, 0)]].concat();
        let alike = [vec![confusion(3, 0, 0, 2); 3], vec![confusion(0, 0, 5, 0)]].concat();
        for cases in [one_miss, alike] {
            let found = rates(&cases, 0.05);
            for rate in [found.precision, found.recall, found.f1, found.accuracy] {
                let (low, high) = rate.low.zip(rate.high).expect("an interval");
                assert!(high - low > 0.1, "{rate:?}");
            }
        }
    }

    #[test]
    fn bands_are_as_documented_where_the_lower_bound_supports_them() {
        for (value, low, of_rate, of_f1) in [
            (1.0, 0.85, "Perfect", "Excellent"),
            (1.0, 0.7, "Good", "Good"),
            (1.0, 0.4, TOO_FEW_CASES, TOO_FEW_CASES),
            (0.95, 0.8, "Good", "Excellent"),
            (0.8, 0.6, "Good", "Good"),
            (0.79, 0.3, "Needs work", "Acceptable"),
            (0.6, 0.3, "Needs work", "Acceptable"),
            (0.5, 0.3, "Needs work", "Needs improvement"),
            (0.49, 0.3, "Poor", "Needs improvement"),
        ] {
            let of = Estimate::new(Some(value), Some((low, 1.0)), 9);
            assert_eq!((describe_rate(of), describe_f1(of)), (Some(of_rate), Some(of_f1)), "{value} {low}");
        }
        assert_eq!(
            (describe_rate(Estimate::undefined(0)), describe_f1(Estimate::undefined(0))),
            (None, None)
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn intervals_hold_the_value(of in prop::collection::vec((0u64..4, 0u64..4, 0u64..4, 0u64..4), 0..7)) {
            let cases: Vec<Confusion> = of.iter().map(|(a, b, c, d)| confusion(*a, *b, *c, *d)).collect();
            let found = rates(&cases, 0.05);
            for rate in [found.precision, found.recall, found.f1, found.accuracy] {
                match (rate.value, rate.low, rate.high) {
                    (Some(value), Some(low), Some(high)) => {
                        prop_assert!(0.0 <= low && low <= value && value <= high && high <= 1.0);
                        prop_assert!(high - low > 1e-3, "{:?}", rate);
                    }
                    (None, low, high) => prop_assert!(low.is_none() && high.is_none()),
                    (Some(_), low, high) => prop_assert!(low.is_none() && high.is_none()),
                }
            }
        }
    }
}
