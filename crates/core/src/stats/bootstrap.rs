//! Bootstrap intervals.

use super::SeededRandom;
use super::proportion::Interval;

const RESAMPLES: usize = 2000;

/// Gives the interval of a figure that is computed from all cases together, by resampling whole cases. The same
/// cases and seed give the same interval. `None` with fewer than two cases, or if the figure is undefined in most
/// resamples.
pub fn bootstrap_ratio<C>(
    cases: &[C],
    figure: impl Fn(&mut dyn Iterator<Item = &C>) -> Option<f64>,
    alpha: f64,
    seed: u64,
) -> Option<Interval> {
    let value = figure(&mut cases.iter())?;
    if cases.len() < 2 {
        return None;
    }
    let mut random = SeededRandom::new(seed);
    let mut drawn = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        let picked: Vec<&C> = (0..cases.len()).map(|_| &cases[random.position(cases.len())]).collect();
        drawn.extend(figure(&mut picked.into_iter()));
    }
    if drawn.len() < RESAMPLES / 2 {
        return None;
    }
    drawn.sort_by(f64::total_cmp);
    let last = drawn.len() - 1;
    let at = |share: f64| drawn[((share * last as f64).round() as usize).min(last)];
    Some(Interval { low: at(alpha / 2.0), high: at(1.0 - alpha / 2.0) }.extended_to(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(of: &mut dyn Iterator<Item = &(f64, f64)>) -> Option<f64> {
        let (sum, count) = of.fold((0.0, 0.0), |(sum, count), (s, n)| (sum + s, count + n));
        (count > 0.0).then(|| sum / count)
    }

    #[test]
    fn seeded_and_about_right() {
        let cases: Vec<(f64, f64)> = (0..40).map(|i| (f64::from(i % 4), 4.0)).collect();
        let interval = bootstrap_ratio(&cases, mean, 0.05, 1).expect("an interval");
        assert_eq!(Some(interval), bootstrap_ratio(&cases, mean, 0.05, 1));
        // The mean is .375 with a standard error of .0442.
        assert!(
            (interval.low - 0.2884).abs() < 0.02 && (interval.high - 0.4616).abs() < 0.02,
            "{interval:?}"
        );
    }

    #[test]
    fn one_case_or_nothing_has_no_interval() {
        assert_eq!(bootstrap_ratio(&[(1.0, 2.0)], mean, 0.05, 1), None);
        assert_eq!(bootstrap_ratio(&[(0.0, 0.0); 5], mean, 0.05, 1), None);
    }
}
