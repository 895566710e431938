//! One-sided bounds of the mean of values that lie between two known ends.
//!
//! The bound weighs the values, and one more value at the worst possible end, with random weights that sum to 1
//! (uniform spacings), and takes a quantile of the weighted mean. For values that are 0 or 1 this is exactly
//! Clopper and Pearson's bound. A lower value never gives a higher bound, whatever the other values are.

use super::proportion::Interval;
use super::quantile;

/// Gives the lower and the upper bound of a mean, each with the error `alpha` on its own side. Every value has to lie
/// between `low_end` and `high_end`. `None` without values.
pub fn mean_bounds(values: &[f64], low_end: f64, high_end: f64, alpha: f64) -> Option<Interval> {
    if values.is_empty() {
        return None;
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let mirrored: Vec<f64> = values.iter().map(|value| -value).collect();
    // The order of equal values must not show, not even in the last digit.
    let rounded = |bound: f64| (bound * 1e12).round() / 1e12;
    let low = rounded(lower_bound(values, low_end, alpha));
    let high = -rounded(lower_bound(&mirrored, -high_end, alpha));
    Some(Interval { low, high }.clamped_to(low_end, high_end).extended_to(mean))
}

/// Gives the lower bound alone.
pub(super) fn lower_mean_bound(values: &[f64], low_end: f64, alpha: f64) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    lower_bound(values, low_end, alpha).clamp(low_end, mean.max(low_end))
}

/// Values that are equal count as one, this often.
struct WeightedValue {
    value: f64,
    times: f64,
}

fn lower_bound(values: &[f64], low_end: f64, alpha: f64) -> f64 {
    let mut sorted: Vec<f64> = values.to_vec();
    sorted.push(low_end);
    sorted.sort_by(f64::total_cmp);
    let mut groups: Vec<WeightedValue> = Vec::new();
    for value in sorted {
        match groups.last_mut() {
            Some(last) if value - last.value < 1e-9 => last.times += 1.0,
            _ => groups.push(WeightedValue { value, times: 1.0 }),
        }
    }
    if groups.len() == 1 {
        return low_end;
    }
    let count = values.len() as f64 + 1.0;
    let mean = groups.iter().map(|group| group.value * group.times).sum::<f64>() / count;
    quantile::find_quantile(low_end, mean, alpha, |point| chance_of_weighted_mean_below(&groups, point))
}

/// Gives the chance that the weighted mean lies below a point that is below the plain mean.
///
/// The weights are exponential variables divided by their sum, so this is the chance that a sum of exponential
/// variables, each times its distance from the point, is negative. It is computed from the moment generating function
/// by an integral through its saddle point, where the integrand falls fastest.
fn chance_of_weighted_mean_below(groups: &[WeightedValue], point: f64) -> f64 {
    let distances: Vec<(f64, f64)> = groups.iter().map(|group| (group.value - point, group.times)).collect();
    let Some(least) = distances.first().map(|(distance, _)| *distance).filter(|least| *least < 0.0) else {
        return 0.0;
    };
    let slope = |s: f64| distances.iter().map(|(a, k)| k * a / (1.0 - a * s)).sum::<f64>();
    // The slope rises from minus infinity at 1 / least to the mean distance, which is positive, at 0.
    let (mut low, mut high) = (1.0 / least, 0.0);
    if slope(high) <= 0.0 {
        return 0.5;
    }
    let mut saddle = (low + high) / 2.0;
    for _ in 0..60 {
        let (mut value, mut steepness) = (0.0, 0.0);
        for (a, k) in &distances {
            let part = a / (1.0 - a * saddle);
            value += k * part;
            steepness += k * part * part;
        }
        if value < 0.0 {
            low = saddle
        } else {
            high = saddle
        }
        let step = value / steepness;
        if step.abs() < 1e-10 * saddle.abs() {
            break;
        }
        let newton = saddle - step;
        saddle = if newton > low && newton < high { newton } else { (low + high) / 2.0 };
    }
    let curvature = distances.iter().map(|(a, k)| k * (a / (1.0 - a * saddle)).powi(2)).sum::<f64>();
    let scale = 1.0 / curvature.sqrt();
    if saddle.abs() < 1e-6 * scale {
        return 0.5;
    }
    integrate_through_saddle(&distances, saddle, scale)
}

/// The step of the integral. Halving it changes no bound by more than 1e-6.
const STEP: f64 = 0.2;

fn integrate_through_saddle(distances: &[(f64, f64)], saddle: f64, scale: f64) -> f64 {
    let mut sum = 0.0;
    for step in 0..300 {
        let at = STEP * f64::from(step);
        let t = scale * at.sinh();
        let (mut log, mut angle) = (0.0, 0.0);
        for (a, k) in distances {
            let real = 1.0 - a * saddle;
            log -= 0.5 * k * (real * real + a * a * t * t).ln();
            angle += k * (a * t / real).atan();
        }
        // Divided by the point itself, saddle + i t.
        log -= 0.5 * (saddle * saddle + t * t).ln();
        angle -= t.atan2(saddle);
        let size = log.exp() * scale * at.cosh();
        sum += size * angle.cos() * if step == 0 { 0.5 } else { 1.0 };
        if step > 0 && size < 1e-10 {
            break;
        }
    }
    (-sum * STEP / std::f64::consts::PI).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{ProptestConfig, prop, prop_assert, proptest};

    use super::*;
    use crate::stats::{SeededRandom, clopper_pearson, testing::assert_near};

    /// Values of 0 and 1 have Clopper and Pearson's bounds.
    #[test]
    fn golden_values_are_those_of_clopper_and_pearson() {
        for (passed, runs) in [(1, 1), (0, 2), (4, 5), (5, 5), (0, 20), (1, 50), (37, 100), (200, 200)] {
            let values: Vec<f64> = (0..runs).map(|at| f64::from(u8::from(at < passed))).collect();
            let found = mean_bounds(&values, 0.0, 1.0, 0.025).expect("bounds");
            let exact = clopper_pearson(passed, runs, 0.05).expect("an interval");
            assert_near(found.low, exact.low);
            assert_near(found.high, exact.high);
        }
    }

    /// Other values have the quantile that drawing the weights gives.
    #[test]
    fn drawn_weights_give_the_same_bound() {
        let values = [0.3, -0.2, 0.0, 0.7, 0.1, 0.1, -0.6];
        let mut random = SeededRandom::new(3);
        let mut drawn: Vec<f64> = (0..40_000)
            .map(|_| {
                let weights: Vec<f64> = (0..8).map(|_| -(1.0 - random.fraction()).ln()).collect();
                let sum: f64 = weights.iter().zip(values.iter().chain([&-1.0])).map(|(w, v)| w * v).sum();
                sum / weights.iter().sum::<f64>()
            })
            .collect();
        drawn.sort_by(f64::total_cmp);
        let found = mean_bounds(&values, -1.0, 1.0, 0.05).expect("bounds");
        assert!((found.low - drawn[2000]).abs() < 0.01, "{found:?} {}", drawn[2000]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_lower_value_never_raises_a_bound(
            values in prop::collection::vec(-10i32..=10, 1..30), at in 0usize..30, drop in 1i32..10
        ) {
            let of = |values: &[i32]| -> Interval {
                let values: Vec<f64> = values.iter().map(|value| f64::from(*value) / 10.0).collect();
                mean_bounds(&values, -1.0, 1.0, 0.025).expect("bounds")
            };
            let mut lower = values.clone();
            let at = at % values.len();
            lower[at] = (lower[at] - drop).max(-10);
            let (before, after) = (of(&values), of(&lower));
            prop_assert!(after.low <= before.low + 1e-6 && after.high <= before.high + 1e-6, "{:?} {:?}", before, after);
        }
    }
}
