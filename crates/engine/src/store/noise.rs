//! The stored noise of a project: how much the results of its cases vary between equal runs.

use std::path::Path;

use super::RecordKey;
use practicum_core::model::Noise;
use practicum_core::tree::{read_regular, write_unlinked};

const NOISE_FILE: &str = ".practicum/noise.json";

/// Reads the noise of a project. `None` if it was never measured by an installation with this key: noise from elsewhere
/// could let failures pass as flaky.
pub fn read_noise(project: &Path, key: &RecordKey) -> Result<Option<Noise>, String> {
    let path = project.join(NOISE_FILE);
    let bytes = match read_regular(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("{}: {error}", path.display())),
    };
    let describe_error = |error| format!("{}: {error}; practicum noise measures it again", path.display());
    let noise = serde_json::from_slice(&bytes).map_err(describe_error)?;
    Ok(key.is_file_marked(&path, &bytes).then_some(noise))
}

/// Says whether a project has noise that no installation with this key measured.
pub fn has_foreign_noise(project: &Path, key: &RecordKey) -> bool {
    let path = project.join(NOISE_FILE);
    read_regular(&path).is_ok_and(|bytes| !key.is_file_marked(&path, &bytes))
}

/// Takes over the noise of a project that another installation measured.
pub fn import_noise(project: &Path, key: &RecordKey) -> Result<(), String> {
    let path = project.join(NOISE_FILE);
    let marked = read_regular(&path).and_then(|bytes| key.mark_file(&path, &bytes));
    marked.map_err(|error| format!("{}: {error}", path.display()))
}

/// Saves a new measurement together with the earlier ones of other cases.
pub fn save_noise(project: &Path, measured: &Noise, key: &RecordKey) -> Result<(), String> {
    let mut all = measured.clone();
    // A file that cannot be read is replaced, because it can be measured again.
    for known in read_noise(project, key).ok().flatten().map(|noise| noise.cases).unwrap_or_default() {
        let again = measured.cases.iter().any(|case| {
            let is_same_case = (&case.suite, &case.id) == (&known.suite, &known.id)
                || case.content.is_some() && case.content == known.content;
            is_same_case
                && (&case.agent, &case.model) == (&known.agent, &known.model)
                && (&case.mode, &case.arm) == (&known.mode, &known.arm)
        });
        if !again {
            all.cases.push(known);
        }
    }
    let path = project.join(NOISE_FILE);
    let describe_error = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let bytes = serde_json::to_vec_pretty(&all).map_err(|error| describe_error(&error))?;
    write_unlinked(&path, &bytes).map_err(|error| describe_error(&error))?;
    key.mark_file(&path, &bytes).map_err(|error| describe_error(&error))
}
