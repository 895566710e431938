//! Comparison of two sides that ran the same cases: which is better, and is the difference significant?

use super::clustered::Cluster;
use super::correction::holm;
use super::exact::stratified_test;
use super::power::{Variances, needed_cases};
use super::proportion::{Interval, wilson_effective};
use super::quantile;
use crate::model::{ComparisonVerdict, Estimate};

/// The runs of one case on both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CasePair {
    pub before: Cluster,
    pub after: Cluster,
}

impl CasePair {
    /// Gives the pass rate after minus the pass rate before. `None` if a side has no runs.
    pub fn difference(self) -> Option<f64> {
        Some(self.after.share()? - self.before.share()?)
    }

    /// Gives the p-value: the chance that the sides would differ this much if nothing had changed.
    pub fn chance(self) -> f64 {
        stratified_test(&[self.clusters()])
    }

    /// Gives the smallest p-value that the case could have given with as many passes and runs.
    pub fn least_chance(self) -> f64 {
        let passed = self.before.passed + self.after.passed;
        let most = |side: Cluster, other: Cluster| {
            let own = passed.min(side.runs);
            stratified_test(&[(Cluster::new(own, side.runs), Cluster::new(passed - own, other.runs))])
        };
        most(self.before, self.after).min(most(self.after, self.before))
    }

    /// Gives the chance that two sides which both pass at this rate differ this much.
    pub fn chance_at_rate(self, rate: f64) -> f64 {
        let Some(seen) = self.difference() else { return 1.0 };
        let (before, after) = (binomial(self.before.runs, rate), binomial(self.after.runs, rate));
        let share = |count: usize, of: u64| count as f64 / of as f64;
        let mut chance = 0.0;
        for (x, p) in before.iter().enumerate() {
            for (y, q) in after.iter().enumerate() {
                let difference = share(y, self.after.runs) - share(x, self.before.runs);
                if difference.abs() >= seen.abs() - 1e-9 {
                    chance += p * q;
                }
            }
        }
        chance.clamp(0.0, 1.0)
    }

    fn clusters(self) -> (Cluster, Cluster) {
        (self.after, self.before)
    }
}

/// The result of a comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairedComparison {
    /// The pass rate after minus the pass rate before, over the cases that both sides have.
    pub difference: Estimate,
    /// The p-value: the chance of such a difference if nothing had changed.
    pub chance: f64,
    pub verdict: ComparisonVerdict,
    /// About how many more runs would show a clear result, if these do not.
    pub more_runs: Option<u64>,
    /// The difference that so many runs would find: the observed one, or the margin if that is larger.
    pub detectable_difference: Option<f64>,
}

/// Corrects several comparisons for being made together: each has to be clearer than a single one.
pub fn correct_comparisons(found: &mut [PairedComparison], alpha: f64) {
    let corrected = holm(&found.iter().map(|one| one.chance).collect::<Vec<_>>());
    for (one, chance) in found.iter_mut().zip(corrected) {
        one.chance = chance;
        match one.verdict {
            ComparisonVerdict::Better | ComparisonVerdict::Worse if chance > alpha => {
                one.verdict = ComparisonVerdict::Inconclusive
            }
            ComparisonVerdict::Better
            | ComparisonVerdict::Worse
            | ComparisonVerdict::Equivalent
            | ComparisonVerdict::Inconclusive => {}
        }
    }
}

/// Gives the chances of 0, 1, … passes in this many runs.
fn binomial(runs: u64, rate: f64) -> Vec<f64> {
    let mut chances = vec![1.0];
    for _ in 0..runs {
        let failed = chances.iter().map(|chance| chance * (1.0 - rate)).chain([0.0]);
        let passed = [0.0].into_iter().chain(chances.iter().map(|chance| chance * rate));
        chances = failed.zip(passed).map(|(failed, passed)| failed + passed).collect();
    }
    chances
}

/// Gives the mean of the differences, one for each case, with its interval. Undefined if there are none.
pub fn mean_difference(differences: &[f64], alpha: f64) -> Estimate {
    let count = differences.len() as u64;
    if count == 0 {
        return Estimate::undefined(0);
    }
    let value = differences.iter().sum::<f64>() / count as f64;
    let reach = quantile::student(alpha, count - 1).zip(standard_error(differences, value));
    let interval = reach.map(|(reach, error)| (value - reach * error, value + reach * error));
    Estimate::new(Some(value), interval, count)
}

/// The default margin: smaller differences do not matter.
pub const DEFAULT_MARGIN: f64 = 0.1;

/// The number of runs from which the spread of the cases alone decides; with fewer, an exact test has to agree.
pub const MANY_RUNS: u64 = 400;

/// Compares the runs of cases before and after. The interval is that of a mean over cases, so it is about cases
/// like these and not only about these runs.
pub fn compare_pairs(pairs: &[CasePair], margin: f64, alpha: f64) -> PairedComparison {
    let told: Vec<CasePair> = pairs.iter().copied().filter(|pair| pair.difference().is_some()).collect();
    let differences: Vec<f64> = told.iter().filter_map(|pair| pair.difference()).collect();
    let runs: u64 = told.iter().map(|pair| pair.before.runs + pair.after.runs).sum();
    if told.is_empty() {
        let difference = Estimate::undefined(0);
        return PairedComparison {
            difference,
            chance: 1.0,
            verdict: ComparisonVerdict::Inconclusive,
            more_runs: None,
            detectable_difference: None,
        };
    }
    let value = differences.iter().sum::<f64>() / differences.len() as f64;
    let chance = chance_of_difference(&told, &differences, value, runs);
    let spread = interval_of_difference(&told, &differences, value, alpha);
    // The interval has to include 0 if the exact test cannot rule out that nothing changed.
    let interval = spread.map(|at| if chance > alpha { at.extended_to(0.0) } else { at });
    let verdict = interval.map_or(ComparisonVerdict::Inconclusive, |at| verdict_of_interval(at, margin));
    let difference = Estimate::new(Some(value), interval.map(|at| (at.low, at.high)), told.len() as u64);
    let more_runs = match verdict {
        ComparisonVerdict::Inconclusive => interval.and_then(|at| more_runs(at, &told, value, margin, alpha)),
        ComparisonVerdict::Better | ComparisonVerdict::Worse | ComparisonVerdict::Equivalent => None,
    };
    let sought = more_runs.map(|_| value.abs().max(margin));
    PairedComparison { difference, chance, verdict, more_runs, detectable_difference: sought }
}

/// Gives the p-value of a difference: with few runs by an exact test, with many from the spread.
fn chance_of_difference(told: &[CasePair], differences: &[f64], value: f64, runs: u64) -> f64 {
    match standard_error(differences, value) {
        Some(error) if runs >= MANY_RUNS => quantile::student_chance(value / error, told.len() as u64 - 1),
        Some(_) | None => stratified_test(&told.iter().map(|pair| pair.clusters()).collect::<Vec<_>>()),
    }
}

/// Gives the standard error of the mean difference. `None` if the cases show no spread.
fn standard_error(differences: &[f64], mean: f64) -> Option<f64> {
    let count = differences.len() as f64;
    let squares: f64 = differences.iter().map(|difference| (difference - mean).powi(2)).sum();
    (squares > 1e-12).then(|| (squares / (count - 1.0) / count).sqrt())
}

fn verdict_of_interval(at: Interval, margin: f64) -> ComparisonVerdict {
    match at {
        _ if at.low > 0.0 => ComparisonVerdict::Better,
        _ if at.high < 0.0 => ComparisonVerdict::Worse,
        _ if at.low >= -margin && at.high <= margin => ComparisonVerdict::Equivalent,
        _ => ComparisonVerdict::Inconclusive,
    }
}

fn interval_of_difference(
    told: &[CasePair],
    differences: &[f64],
    value: f64,
    alpha: f64,
) -> Option<Interval> {
    let found = match quantile::student(alpha, told.len() as u64 - 1).zip(standard_error(differences, value))
    {
        Some((reach, error)) => Interval { low: value - reach * error, high: value + reach * error },
        // A single case, and cases that all differ alike, show no spread. Then the interval follows from the two
        // rates; if there are several cases, each counts once.
        None => interval_from_rates(told, value, alpha)?,
    };
    Some(found.clamped_to(-1.0, 1.0).extended_to(value))
}

/// Gives the interval of a difference from those of the two rates (Newcombe's method).
fn interval_from_rates(told: &[CasePair], value: f64, alpha: f64) -> Option<Interval> {
    let side = |of: fn(&CasePair) -> Cluster| {
        let shares: Vec<f64> = told.iter().filter_map(|pair| of(pair).share()).collect();
        let share = shares.iter().sum::<f64>() / shares.len() as f64;
        let points = if let [one] = told { of(one).runs as f64 } else { told.len() as f64 };
        wilson_effective(share, points, alpha).map(|at| (share, at))
    };
    let (before, at_before) = side(|pair| pair.before)?;
    let (after, at_after) = side(|pair| pair.after)?;
    Some(Interval {
        low: value - (after - at_after.low).hypot(at_before.high - before),
        high: value + (at_after.high - after).hypot(before - at_before.low),
    })
}

/// Gives the difference of two rates that were measured separately, with an interval made from theirs (Newcombe's
/// method). If both rates are of the same cases, the interval is wider than necessary, never too narrow. No
/// interval if either rate has none.
pub fn rate_difference(before: Estimate, after: Estimate) -> Estimate {
    let Some((old, new)) = before.value.zip(after.value) else {
        return Estimate::undefined(before.n.min(after.n));
    };
    let value = new - old;
    let ends = before.low.zip(before.high).zip(after.low.zip(after.high));
    let interval = ends.map(|((old_low, old_high), (new_low, new_high))| {
        let low = value - (new - new_low).hypot(old_high - old);
        let high = value + (new_high - new).hypot(old - old_low);
        (low.max(-1.0), high.min(1.0))
    });
    Estimate::new(Some(value), interval, before.n.min(after.n))
}

/// Says whether a difference would be printed as 0.
pub fn is_no_difference(difference: f64) -> bool {
    difference.abs() < 0.005
}

/// Estimates how many more runs would show a difference like this one with a power of 80 %. If the difference is
/// below the margin, the runs are those that would show a difference as large as the margin.
fn more_runs(at: Interval, told: &[CasePair], value: f64, margin: f64, alpha: f64) -> Option<u64> {
    let sides = |of: fn(&CasePair) -> Cluster| told.iter().map(of);
    let runs: u64 = sides(|pair| pair.before).chain(sides(|pair| pair.after)).map(|side| side.runs).sum();
    if is_no_difference(value) {
        return runs_for_margin(told, runs, margin, alpha);
    }
    let reach = (at.high - at.low) / 2.0;
    let sought = value.abs().max(margin);
    if sought <= 0.0 || reach <= 0.0 {
        return None;
    }
    let z = quantile::normal(1.0 - alpha / 2.0);
    let times = ((z + quantile::normal(0.8)) / z * reach / sought).powi(2);
    // The exact test may need more runs than the spread suggests.
    Some(((times - 1.0) * runs as f64).ceil().max(2.0) as u64)
}

/// Estimates how many more runs are needed if no difference was observed. Its spread is then unknown, so the
/// number follows from the rates: enough runs to show a difference as large as the margin.
fn runs_for_margin(told: &[CasePair], runs: u64, margin: f64, alpha: f64) -> Option<u64> {
    let passed: u64 = told.iter().map(|pair| pair.before.passed + pair.after.passed).sum();
    let rate = passed as f64 / runs as f64;
    let other = if rate > 0.5 { rate - margin } else { rate + margin };
    let of = |rate: f64| (rate.clamp(0.0, 1.0) * (1.0 - rate.clamp(0.0, 1.0)), 1);
    let variances = Variances { between_cases: 0.0, before: of(rate), after: of(other) };
    let on_each_side = needed_cases(margin, variances, alpha, 0.8)?;
    Some(on_each_side.saturating_mul(2).saturating_sub(runs).max(2))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};

    use super::*;

    type Counts = (u64, u64);

    fn pairs(of: &[(Counts, Counts)]) -> Vec<CasePair> {
        of.iter()
            .map(|((a, n), (b, m))| CasePair { before: Cluster::new(*a, *n), after: Cluster::new(*b, *m) })
            .collect()
    }

    fn of(pairs: &[CasePair]) -> (ComparisonVerdict, f64) {
        let found = compare_pairs(pairs, DEFAULT_MARGIN, 0.05);
        (found.verdict, found.difference.value.expect("a difference"))
    }

    #[test]
    fn a_delta_never_has_its_sign_reversed() {
        let up = pairs(&[((0, 5), (5, 5)), ((1, 5), (5, 5)), ((0, 5), (4, 5)), ((0, 5), (5, 5))]);
        let down: Vec<CasePair> =
            up.iter().map(|pair| CasePair { before: pair.after, after: pair.before }).collect();
        let ((better, more), (worse, less)) = (of(&up), of(&down));
        assert_eq!((better, worse), (ComparisonVerdict::Better, ComparisonVerdict::Worse));
        assert!(more > 0.0 && less < 0.0 && (more + less).abs() < 1e-12);
    }

    #[test]
    fn few_runs_prove_nothing() {
        for one_sided in [vec![((0, 3), (3, 3))], vec![((0, 1), (1, 1)); 5]] {
            let found = compare_pairs(&pairs(&one_sided), DEFAULT_MARGIN, 0.05);
            assert_eq!(found.verdict, ComparisonVerdict::Inconclusive, "{one_sided:?}");
            assert!(found.more_runs.is_some_and(|runs| runs > 0));
            assert!(found.difference.low.is_some_and(|low| low <= 0.0));
        }
        assert_eq!(of(&pairs(&[((0, 1), (1, 1)); 6])).0, ComparisonVerdict::Better);
        assert_eq!(of(&pairs(&[((0, 5), (5, 5))])).0, ComparisonVerdict::Better);
    }

    #[test]
    fn where_nothing_differs_only_a_difference_of_the_margin_is_looked_for() {
        for (same, most) in [(((3, 3), (3, 3)), 200), (((0, 5), (0, 5)), 200), (((2, 4), (2, 4)), 900)] {
            let found = compare_pairs(&pairs(&[same]), DEFAULT_MARGIN, 0.05);
            assert_eq!(
                (found.verdict, found.detectable_difference),
                (ComparisonVerdict::Inconclusive, Some(DEFAULT_MARGIN)),
                "{same:?}"
            );
            assert!(found.more_runs.is_some_and(|runs| runs > 0 && runs < most), "{same:?} {found:?}");
        }
        let found = compare_pairs(&pairs(&[((0, 3), (2, 3))]), DEFAULT_MARGIN, 0.05);
        assert!(
            found.detectable_difference.is_some_and(|sought| (sought - 2.0 / 3.0).abs() < 1e-9),
            "{found:?}"
        );
    }

    #[test]
    fn sameness_must_be_shown_too() {
        assert_eq!(of(&pairs(&[((1, 1), (1, 1)); 3])).0, ComparisonVerdict::Inconclusive);
        assert_eq!(of(&pairs(&[((1, 1), (1, 1)); 100])).0, ComparisonVerdict::Equivalent);
    }

    #[test]
    fn cases_without_an_answer_on_one_side_do_not_count() {
        let found = compare_pairs(&pairs(&[((0, 0), (3, 3)), ((3, 3), (0, 0))]), DEFAULT_MARGIN, 0.05);
        assert_eq!(
            (found.difference, found.verdict),
            (Estimate::undefined(0), ComparisonVerdict::Inconclusive)
        );
    }

    #[test]
    fn what_is_known_of_a_case_says_how_it_may_differ() {
        let [pair] = pairs(&[((3, 3), (0, 3))])[..] else { unreachable!() };
        // Fisher's test is not significant here; the test at a known rate is.
        assert!((pair.chance() - 0.1).abs() < 1e-9 && (pair.least_chance() - 0.1).abs() < 1e-9);
        assert!((pair.chance_at_rate(0.9) - 2.0 * 0.9f64.powi(3) * 0.1f64.powi(3)).abs() < 1e-9);
        let [same] = pairs(&[((3, 3), (3, 3))])[..] else { unreachable!() };
        assert_eq!((same.chance(), same.least_chance()), (1.0, 1.0));
        assert!((same.chance_at_rate(0.9) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn what_is_looked_at_together_must_be_clearer() {
        let one = compare_pairs(&pairs(&[((0, 1), (1, 1)); 6]), DEFAULT_MARGIN, 0.05);
        let mut both = [one, one];
        correct_comparisons(&mut both, 0.05);
        assert_eq!(both.map(|one| one.verdict), [ComparisonVerdict::Inconclusive; 2]);
    }

    #[test]
    fn means_have_intervals_from_two_on() {
        assert_eq!(mean_difference(&[], 0.05), Estimate::undefined(0));
        assert_eq!(mean_difference(&[2.0], 0.05), Estimate::new(Some(2.0), None, 1));
        let found = mean_difference(&[1.0, 2.0, 3.0], 0.05);
        crate::stats::testing::assert_near(found.low.expect("an end"), 2.0 - 4.30265 / 3f64.sqrt());
    }

    proptest! {
        #[test]
        fn the_interval_holds_the_difference(
            of in prop::collection::vec(((0u64..5, 0u64..5), (0u64..5, 0u64..5)), 0..10)
        ) {
            let found = compare_pairs(&pairs(&of), DEFAULT_MARGIN, 0.05);
            prop_assert!((0.0..=1.0).contains(&found.chance));
            match (found.difference.value, found.difference.low, found.difference.high) {
                (Some(value), Some(low), Some(high)) => {
                    prop_assert!(-1.0 <= low && low <= value && value <= high && high <= 1.0);
                }
                (value, low, high) => prop_assert_eq!((value, low, high), (None, None, None)),
            }
        }
    }
}
