//! Measures the pass rates that are corrected for the errors of a judge, on simulated outputs whose truth is known.

use practicum_core::aggregate::FEWEST_LABELS;
use practicum_core::stats::{
    ALPHA, Cluster, Interval, SeededRandom, WeighedShare, corrected_rate, prediction_powered_rate,
};

use crate::measure::IntervalResult;
use crate::simulate::Cell;
use crate::table::LEAST_COVERAGE;

/// A suite, the error rates of its judge, and the number of its outputs that are labelled.
#[derive(Debug, Clone, Copy)]
pub struct JudgeCell {
    suite: Cell,
    specificity: f64,
    sensitivity: f64,
    labels: u64,
}

pub struct JudgeCoverage {
    cell: JudgeCell,
    by_judge: IntervalResult,
    corrected: IntervalResult,
    powered: IntervalResult,
}

impl JudgeCell {
    pub fn grid() -> Vec<JudgeCell> {
        let mut cells = Vec::new();
        for (cases, repeat, icc, labels) in
            [(50, 1, 0.0, 20), (200, 1, 0.0, 50), (1000, 1, 0.0, 200), (40, 5, 0.3, 50), (20, 5, 0.8, 100)]
        {
            for rate in [0.5, 0.8, 0.95] {
                for (specificity, sensitivity) in [(0.85, 0.9), (0.95, 0.7), (0.98, 0.98)] {
                    let suite = Cell { cases, repeat, icc, rate };
                    cells.push(JudgeCell { suite, specificity, sensitivity, labels });
                }
            }
        }
        cells
    }

    fn name(&self) -> String {
        format!(
            "{}, {} labels, q0 {}, q1 {}",
            self.suite.name(),
            self.labels,
            self.specificity,
            self.sensitivity
        )
    }
}

/// The outputs of one case, by what judge and people say.
#[derive(Clone, Copy, Default)]
struct LabelledCase {
    judged: Cluster,
    right_passes: Cluster,
    right_failures: Cluster,
    people_of_passed: Cluster,
    people_of_failed: Cluster,
}

pub fn measure_judge_cell(cell: &JudgeCell, suites: usize) -> JudgeCoverage {
    let seed = cell.suite.seed() * 31 + cell.labels + (cell.specificity * 100.0) as u64 * 7919;
    let mut random = SeededRandom::new(seed);
    let mut result = JudgeCoverage {
        cell: *cell,
        by_judge: IntervalResult::default(),
        corrected: IntervalResult::default(),
        powered: IntervalResult::default(),
    };
    let ends = |found: Option<(f64, Interval)>| found.map(|(_, at)| (at.low, at.high));
    for _ in 0..suites {
        let cases = draw_cases(cell, &mut random);
        let share = |part: fn(&LabelledCase) -> Cluster| {
            WeighedShare::of_clusters(&cases.iter().map(part).collect::<Vec<_>>())
        };
        let judged = share(|of| of.judged).expect("outputs");
        let labels = |part: fn(&LabelledCase) -> Cluster| cases.iter().map(|of| part(of).runs).sum::<u64>();
        let is_enough =
            labels(|of| of.right_passes) >= FEWEST_LABELS && labels(|of| of.right_failures) >= FEWEST_LABELS;
        let errors = share(|of| of.right_failures).zip(share(|of| of.right_passes)).filter(|_| is_enough);
        let corrected = errors.and_then(|(q0, q1)| corrected_rate(judged, q0, q1, ALPHA));
        let powered = prediction_powered_rate(
            judged,
            share(|of| of.people_of_passed),
            share(|of| of.people_of_failed),
            ALPHA,
        );
        let clusters: Vec<Cluster> = cases.iter().map(|of| of.judged).collect();
        result.by_judge.add(ends(practicum_core::stats::clustered_rate(&clusters, ALPHA)), cell.suite.rate);
        result.corrected.add(ends(corrected), cell.suite.rate);
        result.powered.add(ends(powered), cell.suite.rate);
    }
    result
}

fn draw_cases(cell: &JudgeCell, random: &mut SeededRandom) -> Vec<LabelledCase> {
    let rates = cell.suite.draw_rates(random);
    let mut outputs_left = cell.suite.cases * cell.suite.repeat;
    let mut labels_left = cell.labels;
    let draw = |rate: f64| {
        let mut of = LabelledCase::default();
        for _ in 0..cell.suite.repeat {
            let person = random.happens(rate);
            let judge = random.happens(if person { cell.sensitivity } else { 1.0 - cell.specificity });
            count(&mut of.judged, judge);
            // Every output is as likely to be labelled as any other, and exactly so many are.
            if random.position(outputs_left as usize) < labels_left as usize {
                labels_left -= 1;
                count(if person { &mut of.right_passes } else { &mut of.right_failures }, person == judge);
                count(if judge { &mut of.people_of_passed } else { &mut of.people_of_failed }, person);
            }
            outputs_left -= 1;
        }
        of
    };
    rates.into_iter().map(draw).collect()
}

fn count(cluster: &mut Cluster, is_hit: bool) {
    cluster.runs += 1;
    cluster.passed += u64::from(is_hit);
}

pub fn render(results: &[JudgeCoverage], suites: usize) -> String {
    let mut out = format!(
        "{suites} suites in each of {} cells. Coverage of the 95 % interval ± the error of the simulation, mean width, and in \
         brackets the share without the figure.\n\n| cases × repeats, ICC, p, labels, q0, q1 | the judge's own rate | \
         corrected (Rogan–Gladen) | prediction-powered |\n|---|---|---|---|\n",
        results.len()
    );
    let describe = |of: &IntervalResult| {
        if of.defined() == 0 {
            return "–".to_owned();
        }
        let undefined = of.share_undefined();
        let undefined = if undefined > 0.0 { format!(" ({undefined:.2})") } else { String::new() };
        format!("{:.3} ± {:.3}, {:.2}{undefined}", of.coverage(), of.standard_error(), of.mean_width())
    };
    for of in results {
        let [own, corrected, powered] = [&of.by_judge, &of.corrected, &of.powered].map(describe);
        out += &format!("| {} | {own} | {corrected} | {powered} |\n", of.cell.name());
    }
    out
}

/// Lists what does not hold. The judge's own rate promises nothing about people.
pub fn broken_promises(results: &[JudgeCoverage]) -> Vec<String> {
    let mut broken = Vec::new();
    for of in results {
        for (name, found) in [("corrected rate", &of.corrected), ("prediction-powered rate", &of.powered)] {
            if found.defined() >= 100 && found.coverage() + 3.0 * found.standard_error() < LEAST_COVERAGE {
                broken.push(format!("{name} covers {:.3} in {}", found.coverage(), of.cell.name()));
            }
            if found.without_width > 0 {
                broken.push(format!("{name} has no width in {}", of.cell.name()));
            }
        }
    }
    broken
}
