//! Comparison of two sides that ran the same cases: which is better, and is the difference significant?

use super::bounded_mean::{lower_mean_bound, mean_bounds};
use super::clustered::Cluster;
use super::correction::holm;
use super::direction::{DirectionChances, direction_chances};
use super::exact::stratified_test;
use super::proportion::{Interval, clopper_pearson};
use super::quantile;
use crate::model::{ComparisonVerdict, Estimate};

/// The runs of one case on both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CasePair {
    /// The runs of the first version.
    pub before: Cluster,
    /// The runs of the second version.
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
    pub(crate) fn least_chance(self) -> f64 {
        let passed = self.before.passed + self.after.passed;
        let most = |side: Cluster, other: Cluster| {
            let own = passed.min(side.runs);
            stratified_test(&[(Cluster::new(own, side.runs), Cluster::new(passed - own, other.runs))])
        };
        most(self.before, self.after).min(most(self.after, self.before))
    }

    /// Gives the smallest p-value of all results of as many runs: that of a case that always passes on one side and never
    /// on the other.
    pub fn widest_chance(self) -> f64 {
        let all = |side: Cluster| Cluster::new(side.runs, side.runs);
        stratified_test(&[(all(self.before), Cluster::new(0, self.after.runs))])
    }

    /// Gives the chance that two sides which both pass at this rate differ this much.
    pub(crate) fn chance_at_rate(self, rate: f64) -> f64 {
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

    pub(super) fn clusters(self) -> (Cluster, Cluster) {
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
    /// What the comparison says.
    pub verdict: ComparisonVerdict,
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
pub(super) fn binomial(runs: u64, rate: f64) -> Vec<f64> {
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

/// Compares the runs of cases before and after. The interval is that of a mean over cases, so it is about cases
/// like these and not only about these runs. The runs of a single case are about that case only.
///
/// *Better* and *worse* need two tests (see `direction_chances`). *Equivalent* needs two as well: one that rules out a
/// loss of the margin, and one that rules out such a gain, each with the error `alpha`.
///
/// ```
/// use practicum_core::stats::{ALPHA, CasePair, Cluster, DEFAULT_MARGIN, compare_pairs};
///
/// // Ten cases with five runs each: the first version never passed, the second always did.
/// let pair = CasePair { before: Cluster::new(0, 5), after: Cluster::new(5, 5) };
/// let found = compare_pairs(&[pair; 10], DEFAULT_MARGIN, ALPHA);
/// assert_eq!(found.difference.value, Some(1.0));
/// ```
pub fn compare_pairs(pairs: &[CasePair], margin: f64, alpha: f64) -> PairedComparison {
    let measured: Vec<CasePair> = pairs.iter().copied().filter(|pair| pair.difference().is_some()).collect();
    if measured.is_empty() {
        let (difference, verdict) = (Estimate::undefined(0), ComparisonVerdict::Inconclusive);
        return PairedComparison { difference, chance: 1.0, verdict };
    }
    let differences: Vec<f64> = measured.iter().filter_map(|pair| pair.difference()).collect();
    let value = differences.iter().sum::<f64>() / differences.len() as f64;
    let chances = direction_chances(&measured);
    let verdict = match verdict_of_direction(chances, alpha) {
        Some(verdict) => verdict,
        None if is_within_margin(&measured, &differences, margin, alpha) => ComparisonVerdict::Equivalent,
        None => ComparisonVerdict::Inconclusive,
    };
    let interval = bounds_of_difference(&measured, &differences, alpha / 2.0).map(|at| match verdict {
        ComparisonVerdict::Better => Interval { low: at.low.max(0.0), ..at },
        ComparisonVerdict::Worse => Interval { high: at.high.min(0.0), ..at },
        // The interval has to include 0 if the tests cannot rule out that nothing changed.
        ComparisonVerdict::Equivalent | ComparisonVerdict::Inconclusive => at.extended_to(0.0),
    });
    let difference = Estimate::new(Some(value), interval.map(|at| (at.low, at.high)), measured.len() as u64);
    PairedComparison { difference, chance: chances.two_sided(), verdict }
}

/// Gives the verdict if the direction of the difference is clear.
pub(super) fn verdict_of_direction(chances: DirectionChances, alpha: f64) -> Option<ComparisonVerdict> {
    match chances {
        DirectionChances { gain, .. } if gain <= alpha / 2.0 => Some(ComparisonVerdict::Better),
        DirectionChances { loss, .. } if loss <= alpha / 2.0 => Some(ComparisonVerdict::Worse),
        DirectionChances { .. } => None,
    }
}

/// Says whether a difference of the margin is ruled out in both directions.
fn is_within_margin(measured: &[CasePair], differences: &[f64], margin: f64, alpha: f64) -> bool {
    if let [one] = measured {
        return bounds_of_one_case(*one, 2.0 * alpha).is_some_and(|at| at.low > -margin && at.high < margin);
    }
    let mirrored: Vec<f64> = differences.iter().map(|difference| -difference).collect();
    [differences, &mirrored].into_iter().all(|values| lower_mean_bound(values, -1.0, alpha) > -margin)
}

/// Gives the lower and the upper bound of the difference, each with the error `alpha` on its own side.
fn bounds_of_difference(measured: &[CasePair], differences: &[f64], alpha: f64) -> Option<Interval> {
    match measured {
        [one] => bounds_of_one_case(*one, 2.0 * alpha),
        _ => mean_bounds(differences, -1.0, 1.0, alpha),
    }
}

/// Gives the bounds for a single case from those of its two rates (Newcombe's method).
fn bounds_of_one_case(pair: CasePair, alpha: f64) -> Option<Interval> {
    let side = |of: Cluster| {
        let interval = clopper_pearson(of.passed, of.runs, alpha).map(|at| (at.low, at.high));
        Estimate::new(of.share(), interval, of.runs)
    };
    let found = rate_difference(side(pair.before), side(pair.after));
    Some(Interval { low: found.low?, high: found.high? })
}

/// Gives the standard error of the mean difference. `None` if the cases show no spread.
fn standard_error(differences: &[f64], mean: f64) -> Option<f64> {
    let count = differences.len() as f64;
    let squares: f64 = differences.iter().map(|difference| (difference - mean).powi(2)).sum();
    (squares > 1e-12).then(|| (squares / (count - 1.0) / count).sqrt())
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

#[cfg(test)]
mod tests {
    use proptest::prelude::{ProptestConfig, prop, prop_assert, prop_assert_eq, proptest};

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
            assert!(found.difference.low.is_some_and(|low| low <= 0.0));
        }
        assert_eq!(of(&pairs(&[((0, 1), (1, 1)); 6])).0, ComparisonVerdict::Better);
        assert_eq!(of(&pairs(&[((0, 5), (5, 5))])).0, ComparisonVerdict::Better);
    }

    #[test]
    fn sameness_must_be_shown_too() {
        for (cases, expected) in [
            (3, ComparisonVerdict::Inconclusive),
            (28, ComparisonVerdict::Inconclusive),
            (29, ComparisonVerdict::Equivalent),
        ] {
            for runs in [1, 10] {
                let same = vec![((runs, runs), (runs, runs)); cases];
                assert_eq!(of(&pairs(&same)).0, expected, "{cases} cases × {runs}");
            }
        }
    }

    /// The example that showed the fault: one failure made the tool surer.
    #[test]
    fn one_failure_makes_nothing_surer() {
        let mut of_ten = vec![((5, 5), (5, 5)); 10];
        let before = compare_pairs(&pairs(&of_ten), DEFAULT_MARGIN, 0.05);
        of_ten[0] = ((5, 5), (4, 5));
        let after = compare_pairs(&pairs(&of_ten), DEFAULT_MARGIN, 0.05);
        assert_eq!(
            (before.verdict, after.verdict),
            (ComparisonVerdict::Inconclusive, ComparisonVerdict::Inconclusive)
        );
        assert!(
            after.difference.low < before.difference.low && after.difference.high <= before.difference.high
        );
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

    /// Ranks verdicts by how well the new version stands.
    fn stands_well(verdict: ComparisonVerdict) -> bool {
        matches!(verdict, ComparisonVerdict::Better | ComparisonVerdict::Equivalent)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn the_interval_holds_the_difference(
            of in prop::collection::vec(((0u64..5, 0u64..5), (0u64..5, 0u64..5)), 0..10)
        ) {
            let found = compare_pairs(&pairs(&of), DEFAULT_MARGIN, 0.05);
            prop_assert!((0.0..=1.0).contains(&found.chance));
            match (found.difference.value, found.difference.low, found.difference.high) {
                (Some(value), Some(low), Some(high)) => {
                    prop_assert!(-1.0 <= low && low <= value && value <= high && high <= 1.0);
                    prop_assert!(high - low > 1e-3, "{} {}", low, high);
                }
                (value, low, high) => prop_assert_eq!((value, low, high), (None, None, None)),
            }
        }

        /// From any suite: one more failure never raises a bound of the difference, nor makes a gain clearer. So it never
        /// makes a version stand well that could have lost more than the margin.
        #[test]
        fn one_more_failure_never_helps(
            of in prop::collection::vec(((0u64..=4, 1u64..=4), (0u64..=4, 1u64..=4)), 2..40), at in 0usize..40
        ) {
            let before = pairs(&of);
            let mut after = before.clone();
            let at = at % after.len();
            let side = after[at].after;
            after[at].after = Cluster::new(side.passed.saturating_sub(1), side.runs);
            let differences = |of: &[CasePair]| of.iter().filter_map(|pair| pair.difference()).collect::<Vec<_>>();
            let bounds = |of: &[CasePair]| bounds_of_difference(of, &differences(of), 0.05).expect("bounds");
            let (old, new) = (bounds(&before), bounds(&after));
            prop_assert!(new.low <= old.low + 1e-6 && new.high <= old.high + 1e-6, "{:?} {:?}", old, new);
            let (old_chances, new_chances) = (direction_chances(&before), direction_chances(&after));
            prop_assert!(new_chances.gain >= old_chances.gain - 1e-9 && new_chances.loss <= old_chances.loss + 1e-9);
            let verdict = |of: &[CasePair]| compare_pairs(of, DEFAULT_MARGIN, 0.05).verdict;
            let could_have_lost = !stands_well(verdict(&before)) && old.low <= -DEFAULT_MARGIN;
            prop_assert!(!(could_have_lost && stands_well(verdict(&after))));
        }

        /// From a suite in which every run of both sides passes, whatever number of failures follows.
        #[test]
        fn failures_never_make_an_all_pass_comparison_surer(
            cases in 2usize..120, runs in 1u64..6, failures in prop::collection::vec(0usize..120, 1..8)
        ) {
            let all = pairs(&vec![((runs, runs), (runs, runs)); cases]);
            let mut fewer = all.clone();
            for at in failures {
                let one = &mut fewer[at % cases].after;
                *one = Cluster::new(one.passed.saturating_sub(1), runs);
            }
            let (before, after) = (compare_pairs(&all, DEFAULT_MARGIN, 0.05), compare_pairs(&fewer, DEFAULT_MARGIN, 0.05));
            prop_assert!(after.difference.low <= before.difference.low && after.difference.high <= before.difference.high);
            prop_assert!(stands_well(before.verdict) || !stands_well(after.verdict));
        }
    }
}
