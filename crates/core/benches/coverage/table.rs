//! The tables that are printed and written into the documentation.

use crate::measure::{AdviceResult, CellResult, EquivalenceResult, IntervalResult, share_error};
use crate::results_of_measure;
use crate::simulate::Cell;

pub const LEAST_COVERAGE: f64 = 0.93;
const MOST_FALSE: f64 = 0.05;
const LEAST_SETTLED: f64 = 0.8;
const MOST_WIDTH: f64 = 1.1;
const REFERENCE: &str = "Korn–Graubard (for width only)";

fn names(results: &[CellResult]) -> Vec<&'static str> {
    results.first().map_or_else(Vec::new, |cell| cell.intervals.iter().map(|(name, _)| *name).collect())
}

fn share_names(results: &[CellResult]) -> Vec<&'static str> {
    results.first().map_or_else(Vec::new, |cell| cell.shares.iter().map(|(name, _)| *name).collect())
}

/// The share of an event that must stay small. `None` for events that are good or neither.
fn allowed_share(name: &str) -> Option<f64> {
    match name {
        _ if name.starts_with("false") => Some(MOST_FALSE),
        "gate at 90 % passes at its value" => Some(0.1),
        _ => None,
    }
}

/// The fewest suites with a defined interval from which a coverage means anything.
const FEWEST_DEFINED: usize = 100;

fn lowest<'r>(cells: &[(&'r Cell, &'r IntervalResult)]) -> Option<(&'r Cell, &'r IntervalResult)> {
    let defined = cells.iter().filter(|(_, of)| of.defined() >= FEWEST_DEFINED);
    defined.min_by(|a, b| a.1.coverage().total_cmp(&b.1.coverage())).copied()
}

fn shares_of<'r>(results: &'r [CellResult], name: &str) -> Vec<(&'r Cell, f64)> {
    let of = |cell: &'r CellResult| Some((&cell.cell, cell.shares.iter().find(|(own, _)| *own == name)?.1));
    results.iter().filter_map(of).collect()
}

/// Gives the mean width over the grid, divided by that of Korn and Graubard's intervals.
fn width_ratio(results: &[CellResult]) -> f64 {
    let sum =
        |name: &str| results_of_measure(results, name).iter().map(|(_, of)| of.mean_width()).sum::<f64>();
    sum("pass rate") / sum(REFERENCE)
}

pub fn render(
    results: &[CellResult],
    equivalence: &[EquivalenceResult],
    advice: &[AdviceResult],
    suites: usize,
) -> String {
    let mut out = render_intervals(results, suites);
    out += &render_verdicts(results, suites);
    out += &render_equivalence(equivalence);
    out += &render_advice(advice);
    out += &render_cells(results);
    out
}

fn render_intervals(results: &[CellResult], suites: usize) -> String {
    let mut out = format!(
        "### Intervals\n\n{suites} suites in each of {} cells. *Undefined* is the greatest share of suites in a cell \
         without the figure. The error is that of the simulation.\n\n| 95 % interval of | lowest coverage | in the cell \
         | mean width | undefined |\n|---|---|---|---|---|\n",
        results.len()
    );
    for name in names(results).into_iter().filter(|name| *name != REFERENCE) {
        let cells = results_of_measure(results, name);
        let Some((cell, worst)) = lowest(&cells) else { continue };
        let width = cells.iter().map(|(_, of)| of.mean_width()).sum::<f64>() / cells.len() as f64;
        let undefined = cells.iter().map(|(_, of)| of.share_undefined()).fold(0.0, f64::max);
        out += &format!(
            "| {name} | {:.3} ± {:.3} | {} | {width:.3} | {undefined:.2} |\n",
            worst.coverage(),
            worst.standard_error(),
            cell.name()
        );
    }
    let stopped = results.iter().map(|of| (of.stopped_mean - of.cell.rate).abs()).fold(0.0, f64::max);
    out + &format!(
        "\nThe mean width of the pass rate's interval is {:.3} times that of Korn and Graubard's over the grid. The mean \
         of the pass rate under early stopping is off by at most {stopped:.3}.\n\n",
        width_ratio(results)
    )
}

fn render_verdicts(results: &[CellResult], suites: usize) -> String {
    let mut out = "### Verdicts\n\n| share of suites | highest | in the cell | mean over the grid |\n|---|---|---|---|\n"
        .to_owned();
    for name in share_names(results) {
        let cells = shares_of(results, name);
        let Some((cell, most)) = cells.iter().max_by(|a, b| a.1.total_cmp(&b.1)) else { continue };
        let mean = cells.iter().map(|(_, share)| share).sum::<f64>() / cells.len() as f64;
        out += &format!(
            "| {name} | {most:.3} ± {:.3} | {} | {mean:.3} |\n",
            share_error(*most, suites),
            cell.name()
        );
    }
    out + "\n"
}

fn render_equivalence(equivalence: &[EquivalenceResult]) -> String {
    let mut out = "### False *equivalent* at the margin\n\nA tenth of the cases falls from always passing to always \
                   failing: the loss is exactly the margin.\n\n| cases | false *equivalent* | *equivalent* if nothing \
                   changed |\n|---|---|---|\n"
        .to_owned();
    for of in equivalence {
        let said = if of.power > 0.0 { "yes" } else { "no" };
        out += &format!(
            "| {} | {:.3} ± {:.3} | {said} |\n",
            of.cases,
            of.share,
            share_error(of.share, of.suites)
        );
    }
    out + "\n"
}

fn render_advice(advice: &[AdviceResult]) -> String {
    let mut out = "### Advice that was followed\n\nOf the comparisons that were not clear, the share that was clear \
                   after the advice was followed on a new run.\n\n| first comparison | not clear | cases to add (median) \
                   | settled by cases | repeats advised | settled by repeats |\n|---|---|---|---|---|---|\n"
        .to_owned();
    for of in advice {
        let repeats =
            if of.repeats_advised > 0.0 { format!("{:.2}", of.settled_by_repeats) } else { "–".to_owned() };
        out += &format!(
            "| {} | {:.2} | {} | {:.2} | {:.2} | {repeats} |\n",
            of.name, of.unclear, of.more_cases, of.settled_by_cases, of.repeats_advised
        );
    }
    out + "\n"
}

fn render_cells(results: &[CellResult]) -> String {
    let names = names(results);
    let head: String = names.iter().map(|name| format!(" {name} |")).collect();
    let rule: String = names.iter().map(|_| "---|").collect();
    let mut out = format!(
        "### Every cell: intervals\n\nCoverage, mean width, and in brackets the share without the figure where there is \
         one.\n\n| cases × repeats, ICC, p |{head}\n|---|{rule}\n"
    );
    for of in results {
        let figures: String =
            of.intervals.iter().map(|(_, of)| format!(" {} |", describe_interval(of))).collect();
        out += &format!("| {} |{figures}\n", of.cell.name());
    }
    let shares = share_names(results);
    let head: String = shares.iter().map(|name| format!(" {name} |")).collect();
    let rule: String = shares.iter().map(|_| "---|").collect();
    out += &format!("\n### Every cell: verdicts\n\n| cases × repeats, ICC, p |{head}\n|---|{rule}\n");
    for of in results {
        let figures: String = of.shares.iter().map(|(_, share)| format!(" {share:.3} |")).collect();
        out += &format!("| {} |{figures}\n", of.cell.name());
    }
    out
}

fn describe_interval(of: &IntervalResult) -> String {
    if of.defined() == 0 {
        return "–".to_owned();
    }
    let undefined = of.share_undefined();
    let undefined = if undefined > 0.0 { format!(" ({undefined:.2})") } else { String::new() };
    format!("{:.3} {:.2}{undefined}", of.coverage(), of.mean_width())
}

/// Lists what does not hold. Three standard errors are left to the simulation.
pub fn broken_promises(
    results: &[CellResult],
    equivalence: &[EquivalenceResult],
    advice: &[AdviceResult],
    suites: usize,
) -> Vec<String> {
    let mut broken = Vec::new();
    for name in names(results).into_iter().filter(|name| *name != REFERENCE) {
        for (cell, of) in results_of_measure(results, name) {
            if of.defined() >= FEWEST_DEFINED && of.coverage() + 3.0 * of.standard_error() < LEAST_COVERAGE {
                broken.push(format!("{name} covers {:.3} in {}", of.coverage(), cell.name()));
            }
            if of.without_width > 0 {
                broken.push(format!("{name} has no width {} times in {}", of.without_width, cell.name()));
            }
        }
    }
    for name in share_names(results) {
        let Some(allowed) = allowed_share(name) else { continue };
        for (cell, share) in shares_of(results, name) {
            if share - 3.0 * share_error(share, suites) > allowed {
                broken.push(format!("{name}: {share:.3} in {}", cell.name()));
            }
        }
    }
    let too_often =
        equivalence.iter().filter(|of| of.share - 3.0 * share_error(of.share, of.suites) > MOST_FALSE);
    broken.extend(too_often.map(|of| format!("false equivalent: {:.3} with {} cases", of.share, of.cases)));
    let rarely = advice.iter().filter(|of| of.unclear > 0.1 && of.settled_by_cases < LEAST_SETTLED);
    broken.extend(rarely.map(|of| format!("advice settled {:.2} of {}", of.settled_by_cases, of.name)));
    let ratio = width_ratio(results);
    if ratio > MOST_WIDTH {
        broken.push(format!("pass rates are {ratio:.3} times as wide as Korn and Graubard's"));
    }
    broken
}

/// Puts the text between the markers of this name in docs/numbers.md.
pub fn write_into_docs(name: &str, text: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/numbers.md");
    let page = std::fs::read_to_string(&path).expect("docs/numbers.md");
    let (begin, end) = (format!("<!-- begin of {name} -->\n"), format!("<!-- end of {name} -->"));
    let (before, rest) = page.split_once(&begin).expect("the marker where the tables begin");
    let (_, after) = rest.split_once(&end).expect("the marker where the tables end");
    std::fs::write(&path, format!("{before}{begin}\n{text}\n{end}{after}")).expect("docs/numbers.md");
}
