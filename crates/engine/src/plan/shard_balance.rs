//! Divides cases into parts that take about the same time, by how long each took before.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use serde::Deserialize;

use practicum_core::tree::read_regular_text;

/// A case, by the name of its suite and its id.
pub type CaseName = (String, String);

/// A line of `practicum export`, as far as it says how long a case takes.
#[derive(Deserialize)]
struct TimedTrial {
    suite: String,
    case: String,
    seconds: f64,
}

/// Reads how long the trials of each case took together, from the lines that `practicum export` writes.
pub fn read_durations(path: &Path) -> Result<HashMap<CaseName, f64>, String> {
    let text = read_regular_text(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut durations = HashMap::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let trial: TimedTrial = serde_json::from_str(line).map_err(|error| {
            format!("{}:{}: not a line of practicum export: {error}", path.display(), number + 1)
        })?;
        if trial.seconds.is_finite() && trial.seconds >= 0.0 {
            *durations.entry((trial.suite, trial.case)).or_insert(0.0) += trial.seconds;
        }
    }
    match durations.is_empty() {
        true => Err(format!("{} has no trials; practicum export writes them", path.display())),
        false => Ok(durations),
    }
}

/// Gives each case its part, from 1: the longest first, each to the part that is shortest so far. A case that was never
/// timed counts as long as the others on average. Equal cases, durations and parts give equal parts on every machine.
pub fn balance(
    cases: Vec<CaseName>,
    durations: &HashMap<CaseName, f64>,
    parts: u32,
) -> BTreeMap<CaseName, u32> {
    let usual = durations.values().sum::<f64>() / durations.len().max(1) as f64;
    let mut timed: Vec<(f64, CaseName)> =
        cases.into_iter().map(|case| (durations.get(&case).copied().unwrap_or(usual), case)).collect();
    timed.sort_by(|(one, one_name), (other, other_name)| other.total_cmp(one).then(one_name.cmp(other_name)));
    let mut loads = vec![0.0_f64; parts.max(1) as usize];
    let mut assigned = BTreeMap::new();
    for (seconds, case) in timed {
        let Some((index, load)) =
            loads.iter_mut().enumerate().min_by(|(_, one), (_, other)| one.total_cmp(other))
        else {
            break;
        };
        *load += seconds;
        assigned.insert(case, u32::try_from(index).unwrap_or(0) + 1);
    }
    assigned
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(case: usize) -> CaseName {
        ("suite".to_owned(), format!("case-{case}"))
    }

    #[test]
    fn parts_take_about_the_same_time_and_have_each_case_once() {
        let durations: HashMap<CaseName, f64> =
            (0..40).map(|case| (name(case), (case * case) as f64)).collect();
        let cases: Vec<CaseName> = (0..43).map(name).collect();
        let parts = balance(cases.clone(), &durations, 4);
        assert_eq!(parts.len(), 43);
        let usual = durations.values().sum::<f64>() / 40.0;
        let loads: Vec<f64> = (1..=4)
            .map(|part| {
                let own = parts.iter().filter(|(_, of)| **of == part);
                own.map(|(case, _)| durations.get(case).copied().unwrap_or(usual)).sum()
            })
            .collect();
        let (least, most) =
            loads.iter().fold((f64::MAX, 0.0_f64), |(low, high), load| (low.min(*load), high.max(*load)));
        assert!(most < least * 1.1, "{loads:?}");
        let reversed = cases.into_iter().rev().collect();
        assert_eq!(balance(reversed, &durations, 4), parts, "the order of the cases does not matter");
    }

    #[test]
    fn only_lines_of_an_export_are_durations() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("durations.jsonl");
        let line = |seconds: f64| {
            format!("{{\"suite\":\"s\",\"case\":\"c\",\"attempt\":1,\"seconds\":{seconds}}}\n")
        };
        std::fs::write(&path, line(2.0) + &line(3.0)).expect("write");
        let expected = [(("s".to_owned(), "c".to_owned()), 5.0)];
        assert_eq!(read_durations(&path), Ok(expected.into()));
        for text in ["", "no json\n", "{\"suite\":\"s\"}\n"] {
            std::fs::write(&path, text).expect("write");
            assert!(read_durations(&path).is_err(), "{text:?}");
        }
    }
}
