//! Measures how often the intervals and verdicts of the program are right, on simulated suites whose truth is known.
//!
//! Run with `cargo bench -p practicum-core --bench coverage`. `-- --quick` simulates few suites; `-- --write` also puts
//! the tables into docs/numbers.md; `-- --judges` measures only what is corrected for the errors of a judge. Seeded: the
//! same program gives the same tables. It fails if a promise is broken.

mod judges;
mod measure;
mod simulate;
mod table;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use measure::{CellResult, measure_cell};
use simulate::Cell;

/// The suites of each cell. The margin of error of a coverage of 95 % is then a third of a percent.
const SUITES: usize = 4000;
const QUICK_SUITES: usize = 200;

fn main() {
    let has_flag = |flag: &str| std::env::args().any(|argument| argument == flag);
    let (is_quick, is_written) = (has_flag("--quick"), has_flag("--write"));
    let suites = if is_quick { QUICK_SUITES } else { SUITES };
    let mut broken = measure_judges(suites, is_written);
    if !has_flag("--judges") {
        broken.extend(measure_suites(suites, is_quick, is_written));
    }
    broken.iter().for_each(|promise| eprintln!("broken: {promise}"));
    if !broken.is_empty() {
        std::process::exit(1);
    }
}

/// Measures the rates that are corrected for the errors of a judge, and gives the promises that are broken.
fn measure_judges(suites: usize, is_written: bool) -> Vec<String> {
    let started = Instant::now();
    let results =
        measure_in_parallel(&judges::JudgeCell::grid(), |cell| judges::measure_judge_cell(cell, suites));
    let text = judges::render(&results, suites);
    println!("{text}");
    eprintln!("{} cells of judges in {:.0} s", results.len(), started.elapsed().as_secs_f64());
    if is_written {
        table::write_into_docs("the measured tables of judges", &text);
    }
    judges::broken_promises(&results)
}

/// Measures the intervals and verdicts of suites, and gives the promises that are broken.
fn measure_suites(suites: usize, is_quick: bool, is_written: bool) -> Vec<String> {
    let started = Instant::now();
    let results = measure_in_parallel(&Cell::grid(), |cell| measure_cell(cell, suites));
    let equivalence = measure_in_parallel(&measure::EQUIVALENCE_CASES, |cases| {
        measure::measure_false_equivalence(*cases, suites * 2)
    });
    let advice = measure_in_parallel(&measure::ADVICE_DESIGNS, |design| {
        measure::measure_advice(design, if is_quick { 50 } else { 500 })
    });
    let text = table::render(&results, &equivalence, &advice, suites);
    println!("{text}");
    eprintln!("{} cells in {:.0} s", results.len(), started.elapsed().as_secs_f64());
    if is_written {
        table::write_into_docs("the measured tables", &text);
    }
    table::broken_promises(&results, &equivalence, &advice, suites)
}

/// Measures each part on one of the cores, and gives the results in order.
fn measure_in_parallel<P: Sync, R: Send>(parts: &[P], measure: impl Fn(&P) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    // The last parts take longest, so they come first.
                    let taken = next.fetch_add(1, Ordering::Relaxed);
                    let Some(at) = parts.len().checked_sub(taken + 1) else { return };
                    let result = measure(&parts[at]);
                    done.lock().expect("no thread panicked").push((at, result));
                }
            });
        }
    });
    let mut done = done.into_inner().expect("no thread panicked");
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

/// The results of all cells, for one measure.
pub fn results_of_measure<'r>(
    results: &'r [CellResult],
    name: &str,
) -> Vec<(&'r Cell, &'r measure::IntervalResult)> {
    results
        .iter()
        .filter_map(|cell| {
            Some((&cell.cell, cell.intervals.iter().find(|(own, _)| *own == name).map(|(_, of)| of)?))
        })
        .collect()
}
