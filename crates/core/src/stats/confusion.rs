//! Precision, recall, F1 and accuracy of activation, with their intervals.

use super::bootstrap::bootstrap_ratio;
use super::clustered::{Cluster, clustered_rate};
use super::proportion::{Interval, wilson};
use crate::model::Estimate;

/// The number of runs by expected and observed activation. Inconclusive runs are not counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Confusion {
    pub tp: u64,
    pub fp: u64,
    pub tn: u64,
    pub fn_: u64,
}

impl Confusion {
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            tp: self.tp + other.tp,
            fp: self.fp + other.fp,
            tn: self.tn + other.tn,
            fn_: self.fn_ + other.fn_,
        }
    }

    pub fn runs(self) -> u64 {
        self.tp + self.fp + self.tn + self.fn_
    }

    /// Says whether every run had the same outcome.
    fn has_one_outcome(self) -> bool {
        [self.tp, self.fp, self.tn, self.fn_].iter().filter(|count| **count > 0).count() < 2
    }
}

/// A measure of a confusion, as numerator and denominator. 0 of 0 is undefined.
type ConfusionMeasure = fn(Confusion) -> (u64, u64);

fn precision(of: Confusion) -> (u64, u64) {
    (of.tp, of.tp + of.fp)
}

fn recall(of: Confusion) -> (u64, u64) {
    (of.tp, of.tp + of.fn_)
}

fn accuracy(of: Confusion) -> (u64, u64) {
    (of.tp + of.tn, of.runs())
}

fn f1(of: Confusion) -> (u64, u64) {
    (2 * of.tp, 2 * of.tp + of.fp + of.fn_)
}

/// Gives the share j of runs from which F1 follows: F1 is 2 j / (1 + j).
fn jaccard(of: Confusion) -> (u64, u64) {
    (of.tp, of.tp + of.fp + of.fn_)
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConfusionRates {
    pub precision: Estimate,
    pub recall: Estimate,
    pub f1: Estimate,
    pub accuracy: Estimate,
}

/// Gives the rates over all cases. Their intervals resample cases, not runs, because the runs of a case are
/// correlated. If every case is unanimous, each counts once.
pub fn rates(cases: &[Confusion], alpha: f64) -> ConfusionRates {
    let Confusion { fp, tn, .. } = sum_confusions(cases.iter().copied());
    let recall = rate_of_measure(cases, recall, alpha);
    // If no run could have activated the skill wrongly, the absence of false positives says nothing.
    if fp + tn == 0 {
        let undefined = Estimate::undefined(0);
        return ConfusionRates { precision: undefined, recall, f1: undefined, accuracy: undefined };
    }
    ConfusionRates {
        precision: rate_of_measure(cases, precision, alpha),
        recall,
        accuracy: rate_of_measure(cases, accuracy, alpha),
        f1: f1_rate(cases, alpha),
    }
}

fn rate_of_measure(cases: &[Confusion], figure: ConfusionMeasure, alpha: f64) -> Estimate {
    let (value, n) = measure_value(figure, sum_confusions(cases.iter().copied()));
    Estimate::new(value, interval_of_measure(cases, figure, alpha).map(|at| (at.low, at.high)), n)
}

fn f1_rate(cases: &[Confusion], alpha: f64) -> Estimate {
    let all = sum_confusions(cases.iter().copied());
    let (value, _) = measure_value(f1, all);
    let unanimous = cases.iter().all(|case| case.has_one_outcome());
    let found = match unanimous {
        true => interval_of_measure(cases, jaccard, alpha).map(|at| {
            let f1_of = |share: f64| 2.0 * share / (1.0 + share);
            Interval { low: f1_of(at.low), high: f1_of(at.high) }
        }),
        false => interval_of_measure(cases, f1, alpha),
    };
    let held = found.zip(value).map(|(at, value)| at.extended_to(value));
    Estimate::new(value, held.map(|at| (at.low, at.high)), jaccard(all).1)
}

fn interval_of_measure(cases: &[Confusion], figure: ConfusionMeasure, alpha: f64) -> Option<Interval> {
    let counted: Vec<Confusion> = cases.iter().copied().filter(|case| figure(*case).1 > 0).collect();
    if counted.iter().all(|case| case.has_one_outcome()) && counted.len() > 1 {
        let whole = counted.iter().filter(|case| figure(**case).0 > 0).count();
        let at = wilson(whole as u64, counted.len() as u64, alpha)?;
        // The interval counts each case once, but cases with more runs weigh more in the value.
        return measure_value(figure, sum_confusions(counted.into_iter()))
            .0
            .map(|value| at.extended_to(value));
    }
    match counted.as_slice() {
        [] => None,
        // A single case cannot be resampled, so its runs count one by one.
        [one] => {
            let (part, whole) = figure(*one);
            clustered_rate(&[Cluster::new(part, whole)], alpha).map(|(_, at)| at)
        }
        _ => bootstrap_ratio(
            &counted,
            |drawn| measure_value(figure, sum_confusions(drawn.copied())).0,
            alpha,
            SEED,
        ),
    }
}

/// The seed of the bootstrap. Any fixed number would do.
const SEED: u64 = 1;

fn sum_confusions(cases: impl Iterator<Item = Confusion>) -> Confusion {
    cases.fold(Confusion::default(), Confusion::plus)
}

fn measure_value(figure: ConfusionMeasure, of: Confusion) -> (Option<f64>, u64) {
    let (part, whole) = figure(of);
    ((whole > 0).then(|| part as f64 / whole as f64), whole)
}

/// Gives the word for a precision or a recall.
pub fn describe_rate(value: f64) -> &'static str {
    match value {
        _ if value >= 1.0 => "Perfect",
        _ if value >= 0.8 => "Good",
        _ if value >= 0.5 => "Needs work",
        _ => "Poor",
    }
}

/// Gives the word for an F1.
pub fn describe_f1(value: f64) -> &'static str {
    match value {
        _ if value >= 0.9 => "Excellent",
        _ if value >= 0.8 => "Good",
        _ if value >= 0.6 => "Acceptable",
        _ => "Needs improvement",
    }
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
        assert_near(found.low.expect("an end"), 0.5101);
        assert_eq!((found.value, found.high, found.n), (Some(1.0), Some(1.0), 20));
        let mixed = [cases, vec![confusion(0, 0, 0, 5), confusion(0, 0, 5, 0)]].concat();
        let found = rates(&mixed, 0.05);
        assert_near(found.recall.low.expect("an end"), 0.3755);
        assert_near(found.f1.low.expect("an end"), 2.0 * 0.37553 / 1.37553);
    }

    #[test]
    fn bands_are_as_documented() {
        for (value, of_rate, of_f1) in [
            (1.0, "Perfect", "Excellent"),
            (0.95, "Good", "Excellent"),
            (0.9, "Good", "Excellent"),
            (0.8, "Good", "Good"),
            (0.79, "Needs work", "Acceptable"),
            (0.6, "Needs work", "Acceptable"),
            (0.5, "Needs work", "Needs improvement"),
            (0.49, "Poor", "Needs improvement"),
        ] {
            assert_eq!((describe_rate(value), describe_f1(value)), (of_rate, of_f1), "{value}");
        }
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
                    }
                    (None, low, high) => prop_assert!(low.is_none() && high.is_none()),
                    (Some(_), low, high) => prop_assert!(low.is_none() && high.is_none()),
                }
            }
        }
    }
}
