//! Measures one cell of the grid: every interval and every verdict, on many simulated suites.

use std::collections::HashMap;

use practicum_core::model::{ComparisonVerdict, Estimate};
use practicum_core::stats::{
    ALPHA, CasePair, Cluster, DEFAULT_MARGIN, Interval, SeededRandom, Sprt, advise, clopper_pearson,
    clopper_pearson_of_points, clustered_rate, compare_pairs, confidence_sequence, evaluate_stopped_case,
    kappa, mean_of_cases, pass_at_k, pass_hat_k, rate_difference, rates,
};

use crate::simulate::{Cell, Change, draw_confusions, must_cases, run_cases};

/// How one interval did in one cell.
#[derive(Debug, Clone, Copy, Default)]
pub struct IntervalResult {
    pub suites: usize,
    pub undefined: usize,
    pub covered: usize,
    pub without_width: usize,
    pub width: f64,
}

impl IntervalResult {
    pub fn add(&mut self, found: Option<(f64, f64)>, truth: f64) {
        self.suites += 1;
        let Some((low, high)) = found else {
            self.undefined += 1;
            return;
        };
        self.covered += usize::from(low - 1e-9 <= truth && truth <= high + 1e-9);
        self.without_width += usize::from(high - low < 1e-9);
        self.width += high - low;
    }

    pub fn defined(&self) -> usize {
        self.suites - self.undefined
    }

    pub fn coverage(&self) -> f64 {
        self.covered as f64 / self.defined().max(1) as f64
    }

    pub fn mean_width(&self) -> f64 {
        self.width / self.defined().max(1) as f64
    }

    pub fn share_undefined(&self) -> f64 {
        self.undefined as f64 / self.suites.max(1) as f64
    }

    /// The standard error of the coverage.
    pub fn standard_error(&self) -> f64 {
        share_error(self.coverage(), self.defined())
    }
}

pub fn share_error(share: f64, of: usize) -> f64 {
    (share * (1.0 - share) / of.max(1) as f64).sqrt()
}

pub struct CellResult {
    pub cell: Cell,
    pub intervals: Vec<(&'static str, IntervalResult)>,
    /// The share of suites with each event.
    pub shares: Vec<(&'static str, f64)>,
    /// The mean estimate of the pass rate under early stopping.
    pub stopped_mean: f64,
}

/// The rule with which the program stops a case early.
fn stopping_rule() -> Sprt {
    Sprt::new(0.6, 0.9, ALPHA, 0.2).expect("sound")
}

pub fn measure_cell(cell: &Cell, suites: usize) -> CellResult {
    let mut tally = CellTally {
        cell: *cell,
        intervals: Vec::new(),
        counts: Vec::new(),
        stopped_sum: 0.0,
        kappas: HashMap::new(),
    };
    let mut random = SeededRandom::new(cell.seed());
    for _ in 0..suites {
        tally.add_rates(&mut random);
        tally.add_activation(&mut random);
        tally.add_agreement(&mut random);
        tally.add_stopped(&mut random);
        for change in
            [Change::None, Change::Redrawn, Change::Loss(DEFAULT_MARGIN), Change::Dead(DEFAULT_MARGIN)]
        {
            tally.add_comparison(change, &mut random);
        }
        tally.add_power(&mut random);
    }
    CellResult {
        cell: *cell,
        intervals: tally.intervals,
        shares: tally.counts.into_iter().map(|(name, count)| (name, count as f64 / suites as f64)).collect(),
        stopped_mean: tally.stopped_sum / suites as f64,
    }
}

struct CellTally {
    cell: Cell,
    intervals: Vec<(&'static str, IntervalResult)>,
    counts: Vec<(&'static str, usize)>,
    stopped_sum: f64,
    /// The intervals of tables that occurred before.
    kappas: HashMap<[[u64; 2]; 2], Option<(f64, f64)>>,
}

impl CellTally {
    fn add(&mut self, name: &'static str, found: Option<(f64, f64)>, truth: f64) {
        let at = match self.intervals.iter().position(|(own, _)| *own == name) {
            Some(at) => at,
            None => {
                self.intervals.push((name, IntervalResult::default()));
                self.intervals.len() - 1
            }
        };
        self.intervals[at].1.add(found, truth);
    }

    fn count(&mut self, name: &'static str, happened: bool) {
        match self.counts.iter_mut().find(|(own, _)| *own == name) {
            Some((_, count)) => *count += usize::from(happened),
            None => self.counts.push((name, usize::from(happened))),
        }
    }

    fn add_rates(&mut self, random: &mut SeededRandom) {
        let Cell { repeat, rate, .. } = self.cell;
        let own_rates = self.cell.draw_rates(random);
        let clusters = run_cases(&own_rates, repeat, random);
        self.add("pass rate", clustered_rate(&clusters, ALPHA).map(|(_, at)| ends(at)), rate);
        self.add("Korn–Graubard (for width only)", Some(ends(korn_graubard(&clusters))), rate);
        let one = clusters[0];
        self.add("one case", clopper_pearson(one.passed, one.runs, ALPHA).map(ends), own_rates[0]);
        // A gate with a confidence of 90 % on a skill that is exactly at its threshold.
        let bound = clustered_rate(&clusters, 0.2).map(|(_, at)| at.low);
        self.count("gate at 90 % passes at its value", bound.is_some_and(|low| low >= rate));
        let k = repeat.min(3);
        let over_cases = |of: fn(u64, u64, u64) -> Option<f64>| -> Vec<f64> {
            clusters.iter().filter_map(|case| of(case.passed, case.runs, k)).collect()
        };
        let runs = repeat * self.cell.cases;
        let all = mean_of_cases(&over_cases(pass_hat_k), runs, ALPHA).map(|(_, at)| ends(at));
        self.add("pass^k", all, self.cell.chance_of_all(k, rate));
        let any = mean_of_cases(&over_cases(pass_at_k), runs, ALPHA).map(|(_, at)| ends(at));
        self.add("pass@k", any, 1.0 - self.cell.chance_of_all(k, 1.0 - rate));
        // Scores of 0, ¼, ½, ¾ and 1 with the same mean as the pass rate.
        let score = |rate: &f64| random.successes(4 * repeat, *rate) as f64 / (4 * repeat) as f64;
        let scores: Vec<f64> = own_rates.iter().map(score).collect();
        self.add("mean score", mean_of_cases(&scores, runs, ALPHA).map(|(_, at)| ends(at)), rate);
    }

    fn add_activation(&mut self, random: &mut SeededRandom) {
        let found = rates(&draw_confusions(&self.cell, random), ALPHA);
        let (must, must_not) =
            (must_cases(&self.cell) as f64, (self.cell.cases - must_cases(&self.cell)) as f64);
        let (right, wrong) = (self.cell.rate, 1.0 - self.cell.rate);
        let truths = [
            must * right / (must * right + must_not * wrong),
            right,
            2.0 * must * right / (must * right + must_not * wrong + must),
            self.cell.rate,
        ];
        let estimates = [found.precision, found.recall, found.f1, found.accuracy];
        for ((name, estimate), truth) in
            ["precision", "recall", "F1", "accuracy"].into_iter().zip(estimates).zip(truths)
        {
            self.add(name, estimate.low.zip(estimate.high), truth);
        }
        let other = rates(&draw_confusions(&self.cell, random), ALPHA);
        let difference = rate_difference(found.f1, other.f1);
        self.add("difference of F1", difference.low.zip(difference.high), 0.0);
    }

    /// A person labels one answer of each case, and a judge agrees with the person in nine of ten.
    fn add_agreement(&mut self, random: &mut SeededRandom) {
        let (rate, agrees) = (self.cell.rate, 0.9);
        let mut table = [[0; 2]; 2];
        for _ in 0..self.cell.cases {
            let person = random.happens(rate);
            let judge = if random.happens(agrees) { person } else { !person };
            table[usize::from(!judge)][usize::from(!person)] += 1;
        }
        let judged = rate * agrees + (1.0 - rate) * (1.0 - agrees);
        let chance = judged * rate + (1.0 - judged) * (1.0 - rate);
        let own = || kappa(table, ALPHA).map(|kappa| ends(kappa.interval));
        let found = *self.kappas.entry(table).or_insert_with(own);
        self.add("kappa", found, (agrees - chance) / (1.0 - chance));
    }

    /// Cases stop as soon as they are decided.
    fn add_stopped(&mut self, random: &mut SeededRandom) {
        let rule = stopping_rule();
        let own_rates = self.cell.draw_rates(random);
        let mut shares = Vec::new();
        let mut runs = 0;
        for rate in &own_rates {
            let outcomes: Vec<bool> = (0..self.cell.repeat).map(|_| random.happens(*rate)).collect();
            let Some(found) = evaluate_stopped_case(&rule, outcomes.iter().copied()) else { continue };
            if shares.is_empty() {
                let passed = outcomes.iter().take(found.runs as usize).filter(|passed| **passed).count();
                let interval = confidence_sequence(passed as u64, found.runs, ALPHA);
                self.add("one case, stopped early", interval.map(ends), *rate);
            }
            shares.push(found.pass_rate);
            runs += found.runs;
        }
        let found = mean_of_cases(&shares, runs, ALPHA);
        self.stopped_sum += found.map_or(0.0, |(mean, _)| mean);
        self.add("pass rate, stopped early", found.map(|(_, at)| ends(at)), self.cell.rate);
    }

    fn add_comparison(&mut self, change: Change, random: &mut SeededRandom) {
        let pairs = change.draw_pairs(&self.cell, random);
        let found = compare_pairs(&pairs, DEFAULT_MARGIN, ALPHA);
        let Estimate { low, high, .. } = found.difference;
        let is_clear = matches!(found.verdict, ComparisonVerdict::Better | ComparisonVerdict::Worse);
        let is_equivalent = found.verdict == ComparisonVerdict::Equivalent;
        let (interval, truth) = (low.zip(high), change.true_difference());
        match change {
            Change::None => {
                self.add("difference, nothing changed", interval, truth);
                self.count("false alarm, nothing changed", is_clear);
                self.count("equivalent, nothing changed", is_equivalent);
            }
            Change::Redrawn => {
                self.add("difference, cases changed both ways", interval, truth);
                self.count("false alarm, cases changed both ways", is_clear);
            }
            Change::Loss(_) => {
                self.add("difference, loss of 0.1 everywhere", interval, truth);
                self.count("false equivalent, loss of 0.1 everywhere", is_equivalent);
            }
            Change::Dead(_) => {
                self.add("difference, loss of 0.1 by dead cases", interval, truth);
                self.count("false equivalent, loss of 0.1 by dead cases", is_equivalent);
            }
        }
    }

    fn add_power(&mut self, random: &mut SeededRandom) {
        let pairs = Change::Loss(0.3).draw_pairs(&self.cell, random);
        let found = compare_pairs(&pairs, DEFAULT_MARGIN, ALPHA);
        self.count("loss of 0.3 found", found.verdict == ComparisonVerdict::Worse);
    }
}

fn ends(at: Interval) -> (f64, f64) {
    (at.low, at.high)
}

/// Korn and Graubard's interval, for comparing widths: Clopper and Pearson's with an effective number of points from the
/// spread of the cases, corrected for few cases. Where every run passes or every run fails, each run is a point.
fn korn_graubard(clusters: &[Cluster]) -> Interval {
    use statrs::distribution::{ContinuousCDF, StudentsT};
    let shares: Vec<f64> = clusters.iter().filter_map(|cluster| cluster.share()).collect();
    let cases = shares.len() as f64;
    let runs: u64 = clusters.iter().map(|cluster| cluster.runs).sum();
    let mean = shares.iter().sum::<f64>() / cases;
    let variance = shares.iter().map(|share| (share - mean).powi(2)).sum::<f64>() / (cases - 1.0) / cases;
    let reach =
        |freedom: f64| StudentsT::new(0.0, 1.0, freedom).expect("positive").inverse_cdf(1.0 - ALPHA / 2.0);
    let points = match variance < 1e-12 {
        true => runs as f64,
        false => {
            let ratio = reach(runs as f64 - 1.0) / reach(cases - 1.0);
            (mean * (1.0 - mean) / variance * ratio.powi(2)).min(runs as f64)
        }
    };
    clopper_pearson_of_points(mean, points, ALPHA).expect("an interval")
}

/// The numbers of cases for which false equivalence is measured at the boundary, beside the grid.
pub const EQUIVALENCE_CASES: [u64; 4] = [20, 50, 100, 200];

/// A tenth of the cases falls from always passing to always failing.
pub struct EquivalenceResult {
    pub cases: u64,
    pub suites: usize,
    pub share: f64,
    /// The share of all-same suites that are equivalent.
    pub power: f64,
}

pub fn measure_false_equivalence(cases: u64, suites: usize) -> EquivalenceResult {
    let mut random = SeededRandom::new(cases);
    let mut said = 0;
    for _ in 0..suites {
        let pair = |random: &mut SeededRandom| {
            let passed = if random.happens(DEFAULT_MARGIN) { 0 } else { 3 };
            CasePair { before: Cluster::new(3, 3), after: Cluster::new(passed, 3) }
        };
        let pairs: Vec<CasePair> = (0..cases).map(|_| pair(&mut random)).collect();
        said += usize::from(
            compare_pairs(&pairs, DEFAULT_MARGIN, ALPHA).verdict == ComparisonVerdict::Equivalent,
        );
    }
    let same = vec![CasePair { before: Cluster::new(3, 3), after: Cluster::new(3, 3) }; cases as usize];
    let is_equivalent = compare_pairs(&same, DEFAULT_MARGIN, ALPHA).verdict == ComparisonVerdict::Equivalent;
    EquivalenceResult {
        cases,
        suites,
        share: said as f64 / suites as f64,
        power: f64::from(u8::from(is_equivalent)),
    }
}

/// A first comparison whose advice is followed.
pub struct AdviceDesign {
    pub cell: Cell,
    pub change: Change,
}

const fn advice_design(cases: u64, repeat: u64, icc: f64, rate: f64, change: Change) -> AdviceDesign {
    AdviceDesign { cell: Cell { cases, repeat, icc, rate }, change }
}

pub const ADVICE_DESIGNS: [AdviceDesign; 9] = [
    advice_design(100, 2, 0.0, 0.7, Change::None),
    advice_design(10, 3, 0.3, 0.9, Change::None),
    advice_design(10, 3, 0.3, 0.9, Change::Loss(0.2)),
    advice_design(20, 3, 0.3, 0.7, Change::Loss(0.05)),
    advice_design(20, 5, 0.8, 0.7, Change::None),
    advice_design(20, 5, 0.8, 0.7, Change::Redrawn),
    advice_design(20, 1, 0.3, 0.9, Change::Dead(0.1)),
    advice_design(30, 3, 0.0, 0.98, Change::None),
    advice_design(20, 3, 0.8, 0.9, Change::Dead(0.1)),
];

/// What became of the advice.
pub struct AdviceResult {
    pub name: String,
    /// The share of first comparisons without a clear result.
    pub unclear: f64,
    /// Of those, the share that is clear after cases were added.
    pub settled_by_cases: f64,
    /// The share in which repeats were said to settle it too, and of those the share that they settled.
    pub repeats_advised: f64,
    pub settled_by_repeats: f64,
    /// The median number of cases to add.
    pub more_cases: u64,
}

/// The largest suite that is simulated when advice is followed.
const MOST_CASES: u64 = 20_000;

pub fn measure_advice(design: &AdviceDesign, rounds: usize) -> AdviceResult {
    let AdviceDesign { cell, change } = design;
    let mut random = SeededRandom::new(cell.seed() + 5);
    let is_clear = |cell: &Cell, random: &mut SeededRandom| {
        let pairs = change.draw_pairs(cell, random);
        compare_pairs(&pairs, DEFAULT_MARGIN, ALPHA).verdict != ComparisonVerdict::Inconclusive
    };
    let (mut unclear, mut by_cases, mut advised, mut by_repeats) = (0, 0, 0, 0);
    let mut more = Vec::new();
    for _ in 0..rounds {
        let pairs = change.draw_pairs(cell, &mut random);
        if compare_pairs(&pairs, DEFAULT_MARGIN, ALPHA).verdict != ComparisonVerdict::Inconclusive {
            continue;
        }
        unclear += 1;
        let Some(advice) = advise(&pairs, DEFAULT_MARGIN, ALPHA) else { continue };
        if let Some(cases) = advice.more_cases {
            more.push(cases);
            let larger = Cell { cases: (cell.cases + cases).min(MOST_CASES), ..*cell };
            by_cases += usize::from(is_clear(&larger, &mut random));
        }
        // Repeats run the same cases again, so their true differences stay: the suite is drawn anew with them.
        if let Some(repeat) = advice.repeat {
            advised += 1;
            by_repeats += usize::from(is_clear(&Cell { repeat: repeat.min(2000), ..*cell }, &mut random));
        }
    }
    more.sort_unstable();
    let share = |part: usize, whole: usize| part as f64 / whole.max(1) as f64;
    AdviceResult {
        name: format!("{}, {}", cell.name(), change.describe()),
        unclear: share(unclear, rounds),
        settled_by_cases: share(by_cases, unclear),
        repeats_advised: share(advised, unclear),
        settled_by_repeats: share(by_repeats, advised),
        more_cases: more.get(more.len() / 2).copied().unwrap_or(0),
    }
}
