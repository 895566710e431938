//! What would settle a comparison that is not clear: more cases or more repeats, and how many. And what the design
//! could have found.

use super::ALPHA;
use super::clustered::Cluster;
use super::paired::CasePair;
use super::power::{ComparisonDesign, detectable_loss};
use super::quantile;
use crate::model::{ComparisonOutlook, ComparisonVerdict};

/// Says what a comparison could have found and what would settle it. `usd_each` is the cost of one run.
pub fn comparison_outlook(
    pairs: &[CasePair],
    verdict: ComparisonVerdict,
    margin: f64,
    usd_each: Option<f64>,
) -> ComparisonOutlook {
    let advice = match verdict {
        ComparisonVerdict::Better | ComparisonVerdict::Worse => return ComparisonOutlook::default(),
        ComparisonVerdict::Equivalent => None,
        ComparisonVerdict::Inconclusive => advise(pairs, margin, ALPHA),
    };
    let more_runs = advice.map(|advice| advice.more_runs);
    ComparisonOutlook {
        smallest_loss: smallest_detectable_loss(pairs, ALPHA),
        more_cases: advice.and_then(|advice| advice.more_cases),
        repeat: advice.and_then(|advice| advice.repeat),
        more_runs,
        more_usd: more_runs.zip(usd_each).map(|(runs, usd)| runs as f64 * usd),
        sought: advice.map(|_| margin),
    }
}

/// What would settle a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advice {
    /// How many cases to add, each run as often as now. `None` if the comparison is about a single case.
    pub more_cases: Option<u64>,
    /// How often to run each of the present cases on each side instead. `None` if more repeats cannot settle it.
    pub repeat: Option<u64>,
    /// The number of further runs that the cheaper of the two takes.
    pub more_runs: u64,
}

/// The variance of the difference of one case, split into what is due to the case and what is due to its runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VarianceSplit {
    /// The variance of the true differences between cases.
    pub between_cases: f64,
    /// The variance of a difference of single runs of one case.
    pub within_case: f64,
}

impl VarianceSplit {
    fn with_repeat(self, repeat: f64) -> f64 {
        self.between_cases + self.within_case / repeat
    }
}

/// The chance of a clear result that the advice aims at. It is above 80 % because the variances are estimates.
const AIM: f64 = 0.9;

/// The largest number of cases or repeats that is worth saying.
const MAX_ADVISED: f64 = 100_000.0;

/// Advises what to add so that the comparison most likely becomes clear: better, worse, or equivalent within the
/// margin. `None` if nothing was compared.
pub fn advise(pairs: &[CasePair], margin: f64, alpha: f64) -> Option<Advice> {
    let measured: Vec<CasePair> = pairs.iter().copied().filter(|pair| pair.difference().is_some()).collect();
    let cases = measured.len() as f64;
    if measured.is_empty() || margin <= 0.0 {
        return None;
    }
    let runs: u64 = measured.iter().map(|pair| pair.before.runs + pair.after.runs).sum();
    let repeat = runs as f64 / cases / 2.0;
    let split = split_variance(&measured);
    let value = measured.iter().filter_map(|pair| pair.difference()).sum::<f64>() / cases;
    let seen_variance = split.with_repeat(repeat) / cases;
    let plan = SettlingPlan { value, seen_variance, margin, alpha, is_one_case: measured.len() == 1 };
    let enough_cases = if measured.len() == 1 {
        None
    } else {
        search_from(cases, |cases| plan.chance(cases, split.with_repeat(repeat)))
    };
    let enough_repeats = search_from(repeat, |repeat| plan.chance(cases, split.with_repeat(repeat)));
    let more_cases = enough_cases.map(|enough| (enough - cases).ceil().max(1.0) as u64);
    let runs_of_cases = more_cases.map(|more| (more as f64 * repeat * 2.0).ceil() as u64);
    let repeats = enough_repeats.map(|enough| enough.ceil() as u64);
    let runs_of_repeats =
        enough_repeats.map(|enough| ((enough - repeat) * cases * 2.0).ceil().max(2.0) as u64);
    let more_runs = runs_of_cases.into_iter().chain(runs_of_repeats).min()?;
    Some(Advice { more_cases, repeat: repeats, more_runs })
}

/// Splits the variance of the differences. Half a case that only got better and half a case that only got worse are
/// added, because cases that did not differ so far may still do so. What is due to runs is unknown if each case ran
/// once; then all of it counts as due to cases, so that no more is promised of repeats than can be kept.
pub fn split_variance(measured: &[CasePair]) -> VarianceSplit {
    let differences: Vec<f64> = measured.iter().filter_map(|pair| pair.difference()).collect();
    let count = differences.len() as f64;
    let mean = differences.iter().sum::<f64>() / count;
    let squares: f64 = differences.iter().map(|difference| (difference - mean).powi(2)).sum();
    let total = (squares + 1.0) / count.max(1.0);
    let within_of = |side: Cluster| {
        let rate = (side.passed as f64 + 0.5) / (side.runs as f64 + 1.0);
        rate * (1.0 - rate)
    };
    let within_case =
        measured.iter().map(|pair| within_of(pair.before) + within_of(pair.after)).sum::<f64>() / count;
    if measured.len() == 1 {
        return VarianceSplit { between_cases: 0.0, within_case };
    }
    let is_repeated = measured.iter().all(|pair| pair.before.runs > 1 && pair.after.runs > 1);
    if !is_repeated {
        return VarianceSplit { between_cases: total, within_case: 0.0 };
    }
    let due_to_runs: f64 = measured
        .iter()
        .map(|pair| {
            within_of(pair.before) / pair.before.runs as f64 + within_of(pair.after) / pair.after.runs as f64
        })
        .sum::<f64>()
        / count;
    // What is added for unseen cases is never due to runs.
    let between_cases = (total - due_to_runs).max(1.0 / count.max(1.0));
    VarianceSplit { between_cases, within_case }
}

/// The question that more runs are to settle.
struct SettlingPlan {
    value: f64,
    /// The variance of the value that was seen.
    seen_variance: f64,
    margin: f64,
    alpha: f64,
    is_one_case: bool,
}

impl SettlingPlan {
    /// Gives the chance of a clear result with so many cases, if each has this variance. The result may fall anywhere
    /// that the present one allows. Clear is what is far enough from 0, or far enough inside the margin.
    fn chance(&self, cases: f64, variance: f64) -> f64 {
        let spread = (self.seen_variance + variance / cases).sqrt();
        // The bounds count one more case, at the worst end.
        let (shift, points, variance) = match self.is_one_case {
            true => (0.0, 1.0, variance),
            false => (1.0 / (cases + 1.0), cases + 1.0, variance + 1.0 / (cases + 1.0)),
        };
        let error = (variance / points).sqrt();
        let clear = quantile::normal(1.0 - self.alpha / 2.0) * error;
        let inside = self.margin - shift - quantile::normal(1.0 - self.alpha) * error;
        let share = |below: f64| quantile::normal_share_below((below - self.value) / spread);
        let beyond = share(-clear) + 1.0 - share(clear);
        let within = if inside > 0.0 { share(inside) - share(-inside) } else { 0.0 };
        if inside >= clear { 1.0 } else { beyond + within }
    }
}

/// Finds the first number above `now`, in growing steps, with a chance that is high enough.
fn search_from(now: f64, chance: impl Fn(f64) -> f64) -> Option<f64> {
    let mut number = now + 1.0;
    while number <= MAX_ADVISED {
        if chance(number) >= AIM {
            return Some(number);
        }
        number = (number * 1.05).max(number + 1.0).floor();
    }
    None
}

/// Gives the smallest loss, in percentage points, that a comparison with as many cases and runs as this one shows with a
/// power of 80 %. `None` if it shows none: every loss could have gone unseen.
pub fn smallest_detectable_loss(pairs: &[CasePair], alpha: f64) -> Option<f64> {
    let measured: Vec<CasePair> = pairs.iter().copied().filter(|pair| pair.difference().is_some()).collect();
    if measured.is_empty() {
        return None;
    }
    let count = measured.len() as f64;
    let runs: u64 = measured.iter().map(|pair| pair.before.runs + pair.after.runs).sum();
    let baseline = measured.iter().filter_map(|pair| pair.before.share()).sum::<f64>() / count;
    let design = ComparisonDesign {
        baseline,
        effect: 0.0,
        cases: measured.len() as u64,
        repeat: ((runs as f64 / count / 2.0).round() as u64).max(1),
        spread: 0.0,
        alpha,
        power: 0.8,
    };
    detectable_loss(design)
}
