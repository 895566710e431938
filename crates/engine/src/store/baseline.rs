//! The stored results that later runs must not fall behind.

use std::path::{Path, PathBuf};

use super::{RunDir, read_records};
use practicum_core::compare::measure_noise;
use practicum_core::model::{Baseline, TrialRecord};
use practicum_core::tree::{read_regular, write_unlinked};

/// The usual name of the file, in the folder of the project. It is meant to be committed.
pub const BASELINE_FILE: &str = "practicum-baseline.json";

/// Reads the baseline of a project: from a file, from the records of a run, or from the usual file if nothing is named.
/// `None` if nothing is named and there is no usual file.
pub fn read_baseline(project: &Path, wanted: Option<&str>) -> Result<Option<Baseline>, String> {
    match wanted {
        Some(wanted) if Path::new(wanted).is_file() => read_baseline_file(Path::new(wanted)).map(Some),
        Some(wanted) => {
            let run = RunDir::find(project, wanted).map_err(|why| {
                format!("there is no baseline {wanted}: it is no file, and as a run: {why}")
            })?;
            baseline_of_run(&run).map(Some)
        }
        None => {
            let path = project.join(BASELINE_FILE);
            if path.symlink_metadata().is_err() { Ok(None) } else { read_baseline_file(&path).map(Some) }
        }
    }
}

fn read_baseline_file(path: &Path) -> Result<Baseline, String> {
    let bytes = read_regular(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let found: Baseline = serde_json::from_slice(&bytes)
        .map_err(|error| format!("{}: {error}; practicum baseline writes it again", path.display()))?;
    match found.schema_version {
        1 => Ok(found),
        newer => Err(format!("{}: schema_version {newer} is not known here", path.display())),
    }
}

/// Counts the results of a run.
pub fn baseline_of_run(run: &RunDir) -> Result<Baseline, String> {
    let records = read_records(run.path()).map_err(|error| format!("run {}: {error}", run.id()))?;
    let records: Vec<TrialRecord> = records.into_values().collect();
    let cases = measure_noise(&records.iter().collect::<Vec<_>>()).cases;
    Ok(Baseline { schema_version: 1, run: run.id().to_owned(), cases })
}

/// Writes a baseline, and gives the path of the file.
pub fn write_baseline(project: &Path, to: Option<&Path>, baseline: &Baseline) -> Result<PathBuf, String> {
    let path = to.map_or_else(|| project.join(BASELINE_FILE), Path::to_owned);
    let told = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let bytes = serde_json::to_vec_pretty(baseline).map_err(|error| told(&error))?;
    write_unlinked(&path, bytes).map_err(|error| told(&error))?;
    Ok(path)
}
