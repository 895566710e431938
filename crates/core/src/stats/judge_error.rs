//! Pass rates that are corrected for the errors of a judge, from outputs that people labelled.
//!
//! Both intervals are melded (Fay, Proschan and Brittain 2015): each share is drawn from the two distributions whose
//! quantiles are Clopper and Pearson's bounds, always on the side that makes the bound more cautious. So a judge that
//! never erred on a few labels still has an interval.

use super::SeededRandom;
use super::clustered::Cluster;
use super::proportion::Interval;

/// A share, and the number of independent points that it is worth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WeighedShare {
    /// The share, from 0 to 1.
    pub share: f64,
    /// The number of independent points.
    pub points: f64,
}

impl WeighedShare {
    /// Makes a share of points that are independent of each other. `None` without points.
    pub fn of_counts(successes: u64, points: u64) -> Option<Self> {
        (points > 0 && successes <= points)
            .then(|| Self { share: successes as f64 / points as f64, points: points as f64 })
    }

    /// Makes the share over all runs of several cases. Runs of one case are alike, so they are worth fewer points than
    /// there are: as many as the spread between cases allows, after one case that always passes and one that always
    /// fails were added. `None` without runs.
    pub fn of_clusters(clusters: &[Cluster]) -> Option<Self> {
        let counted: Vec<Cluster> = clusters.iter().copied().filter(|cluster| cluster.runs > 0).collect();
        let (passed, runs) = counted.iter().fold((0, 0), |(a, b), of| (a + of.passed, b + of.runs));
        // A single case cannot be compared with others, so its runs count one by one.
        let alone = Self::of_counts(passed, runs)?;
        if counted.len() < 2 {
            return Some(alone);
        }
        let (cases, all) = (counted.len() as f64 + 2.0, runs as f64);
        let size = all / counted.len() as f64;
        let added = [(size, size), (0.0, size)];
        let middle = (passed as f64 + size) / (all + 2.0 * size);
        let own = counted.iter().map(|of| (of.passed as f64, of.runs as f64));
        let squares: f64 = own.chain(added).map(|(passed, runs)| (passed - middle * runs).powi(2)).sum();
        let variance = squares / (all + 2.0 * size).powi(2) * cases / (cases - 1.0);
        Some(Self { points: (middle * (1.0 - middle) / variance).min(all), ..alone })
    }

    /// Draws a share from the distribution of the lower bound.
    fn draw_low(self, random: &mut SeededRandom) -> f64 {
        draw_beta(self.share * self.points, (1.0 - self.share) * self.points + 1.0, random)
    }

    /// Draws a share from the distribution of the upper bound.
    fn draw_high(self, random: &mut SeededRandom) -> f64 {
        draw_beta(self.share * self.points + 1.0, (1.0 - self.share) * self.points, random)
    }
}

fn draw_beta(successes: f64, failures: f64, random: &mut SeededRandom) -> f64 {
    const NONE: f64 = 1e-9;
    if successes < NONE {
        return 0.0;
    }
    if failures < NONE {
        return 1.0;
    }
    let (a, b) = (random.log_gamma(successes), random.log_gamma(failures));
    1.0 / (1.0 + (b - a).exp())
}

/// The number of draws of a bound, and the seed, for which any fixed number would do.
const DRAWS: usize = 2000;
const SEED: u64 = 1;

fn drawn_bound(share: f64, mut draw: impl FnMut(&mut SeededRandom) -> f64) -> f64 {
    let mut random = SeededRandom::new(SEED);
    let mut drawn: Vec<f64> = (0..DRAWS).map(|_| draw(&mut random)).collect();
    drawn.sort_by(f64::total_cmp);
    drawn[(share * (DRAWS - 1) as f64).round() as usize]
}

/// Corrects the share that a judge passes for the judge's errors (Rogan and Gladen's estimate), with an interval for the
/// uncertainty of all three shares. `specificity` is the share of outputs that fail in the eyes of people and of the
/// judge, among those that fail in the eyes of people; `sensitivity` is the same of passes. `None` if the judge is no
/// better than chance, or if the judge passes shares that its own error rates exclude, so that labels and outputs
/// cannot be of the same kind.
///
/// ```
/// use practicum_core::stats::{WeighedShare, corrected_rate};
///
/// let share = |passed, of| WeighedShare::of_counts(passed, of).expect("points");
/// // The judge passes 70 % of 1000 outputs. Of 100 bad outputs it fails 85, of 100 good outputs it passes 90.
/// let (rate, interval) = corrected_rate(share(700, 1000), share(85, 100), share(90, 100), 0.05).expect("a rate");
/// assert!((rate - 0.7333).abs() < 1e-4);
/// assert!(interval.low < 0.68 && interval.high > 0.78);
/// ```
pub fn corrected_rate(
    observed: WeighedShare,
    specificity: WeighedShare,
    sensitivity: WeighedShare,
    alpha: f64,
) -> Option<(f64, Interval)> {
    let correct = |passed: f64, q0: f64, q1: f64| (passed + q0 - 1.0) / (q0 + q1 - 1.0);
    let is_informative = |q0: f64, q1: f64| q0 + q1 > 1.0 + 1e-9;
    if !is_informative(specificity.share, sensitivity.share) {
        return None;
    }
    let value = correct(observed.share, specificity.share, sensitivity.share);
    // A judge that might be no better than chance allows any rate.
    let low = drawn_bound(alpha / 2.0, |random| {
        let passed = observed.draw_low(random);
        let (q0, q1) = (specificity.draw_low(random), sensitivity.draw_high(random));
        if is_informative(q0, q1) { correct(passed, q0, q1) } else { 0.0 }
    });
    let high = drawn_bound(1.0 - alpha / 2.0, |random| {
        let passed = observed.draw_high(random);
        let (q0, q1) = (specificity.draw_high(random), sensitivity.draw_low(random));
        if is_informative(q0, q1) { correct(passed, q0, q1) } else { 1.0 }
    });
    let value = value.clamp(0.0, 1.0);
    (low < 1.0 && high > 0.0).then(|| (value, Interval { low, high }.clamped_to(0.0, 1.0).extended_to(value)))
}

/// Estimates the rate of passes in the eyes of people from the judge's verdicts on all outputs and from labels on a
/// random sample of them (prediction-powered inference). The sample is read by the judge's verdict: what people pass
/// among outputs that the judge passed, and among those that it failed. For verdicts this is the estimate with the best
/// weight of the judge. `None` if a verdict that the judge gave has no label.
pub fn prediction_powered_rate(
    judged: WeighedShare,
    among_passed: Option<WeighedShare>,
    among_failed: Option<WeighedShare>,
    alpha: f64,
) -> Option<(f64, Interval)> {
    // A verdict that the judge never gave has no weight.
    let part = |weight: f64, of: Option<WeighedShare>| {
        if weight < 1e-12 { Some(0.0) } else { of.map(|of| weight * of.share) }
    };
    let value = part(judged.share, among_passed)? + part(1.0 - judged.share, among_failed)?;
    let mix = |passed: f64, a: f64, b: f64| passed * a + (1.0 - passed) * b;
    let low = drawn_bound(alpha / 2.0, |random| {
        let a = among_passed.map_or(0.0, |of| of.draw_low(random));
        let b = among_failed.map_or(0.0, |of| of.draw_low(random));
        mix(judged.draw_low(random), a, b).min(mix(judged.draw_high(random), a, b))
    });
    let high = drawn_bound(1.0 - alpha / 2.0, |random| {
        let a = among_passed.map_or(1.0, |of| of.draw_high(random));
        let b = among_failed.map_or(1.0, |of| of.draw_high(random));
        mix(judged.draw_low(random), a, b).max(mix(judged.draw_high(random), a, b))
    });
    Some((value, Interval { low, high }.clamped_to(0.0, 1.0).extended_to(value)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{ProptestConfig, prop_assert, proptest};

    use super::*;
    use crate::stats::testing::assert_near;

    fn share(passed: u64, points: u64) -> WeighedShare {
        WeighedShare::of_counts(passed, points).expect("points")
    }

    #[test]
    fn golden_correction_of_rogan_and_gladen() {
        let (rate, interval) =
            corrected_rate(share(700, 1000), share(85, 100), share(90, 100), 0.05).expect("a rate");
        assert_near(rate, 0.7333);
        // The variance for large samples gives 0.7333 ± 0.0732.
        assert!(
            (interval.low - 0.6601).abs() < 0.03 && (interval.high - 0.8065).abs() < 0.03,
            "{interval:?}"
        );
    }

    #[test]
    fn a_judge_no_better_than_chance_corrects_nothing() {
        assert_eq!(corrected_rate(share(7, 10), share(5, 10), share(5, 10), 0.05), None);
        assert_eq!(corrected_rate(share(7, 10), share(2, 10), share(7, 10), 0.05), None);
    }

    #[test]
    fn verdicts_that_the_error_rates_exclude_have_no_rate() {
        assert_eq!(corrected_rate(share(1000, 1000), share(190, 200), share(140, 200), 0.05), None);
    }

    #[test]
    fn a_judge_without_errors_still_has_an_interval() {
        let (rate, interval) = corrected_rate(share(20, 20), share(5, 5), share(5, 5), 0.05).expect("a rate");
        assert!(rate == 1.0 && interval.low < 0.85 && interval.high == 1.0, "{interval:?}");
        let powered = prediction_powered_rate(share(20, 20), Some(share(5, 5)), None, 0.05);
        let (rate, interval) = powered.expect("a rate");
        assert!(rate == 1.0 && interval.low < 0.6 && interval.high == 1.0, "{interval:?}");
    }

    #[test]
    fn labels_of_every_output_give_the_rate_of_the_labels() {
        let (rate, _) = prediction_powered_rate(share(12, 20), Some(share(9, 12)), Some(share(2, 8)), 0.05)
            .expect("rate");
        assert_near(rate, 11.0 / 20.0);
        assert_eq!(prediction_powered_rate(share(12, 20), Some(share(9, 12)), None, 0.05), None);
    }

    #[test]
    fn repeats_of_one_case_are_worth_less_than_cases() {
        let alike: Vec<Cluster> = (0..10).map(|at| Cluster::new(if at < 7 { 5 } else { 0 }, 5)).collect();
        let points = |of: &[Cluster]| WeighedShare::of_clusters(of).expect("points").points;
        assert!(points(&alike) < 12.0, "{}", points(&alike));
        let single: Vec<Cluster> = (0..10).map(|at| Cluster::new(u64::from(at < 7), 1)).collect();
        assert_near(points(&single), 10.0);
        assert_eq!(WeighedShare::of_clusters(&[]), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn no_interval_has_zero_width(p in 0u64..=30, q0 in 0u64..=12, q1 in 0u64..=12) {
            let found = [
                corrected_rate(share(p, 30), share(q0, 12), share(q1, 12), 0.05),
                prediction_powered_rate(share(p, 30), Some(share(q1, 12)), Some(share(q0, 12)), 0.05),
            ];
            for (value, at) in found.into_iter().flatten() {
                prop_assert!(0.0 <= at.low && at.low <= value && value <= at.high && at.high <= 1.0);
                prop_assert!(at.high - at.low > 1e-3, "{value} {at:?}");
            }
        }
    }
}
