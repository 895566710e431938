//! The stored noise of a project: how much the results of its cases vary between equal runs.

use std::path::Path;

use practicum_core::model::Noise;
use practicum_core::tree::{read_regular, write_unlinked};

const NOISE_FILE: &str = ".practicum/noise.json";

/// Reads the noise of a project. `None` if it was never measured.
pub fn read_noise(project: &Path) -> Result<Option<Noise>, String> {
    let path = project.join(NOISE_FILE);
    let bytes = match read_regular(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("{}: {error}", path.display())),
    };
    let told = |error| format!("{}: {error}; practicum noise measures it again", path.display());
    serde_json::from_slice(&bytes).map(Some).map_err(told)
}

/// Saves a new measurement together with the earlier ones of other cases.
pub fn save_noise(project: &Path, measured: &Noise) -> Result<(), String> {
    let mut all = measured.clone();
    // A file that cannot be read is replaced, because it can be measured again.
    for known in read_noise(project).ok().flatten().map(|noise| noise.cases).unwrap_or_default() {
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
    let told = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let bytes = serde_json::to_vec_pretty(&all).map_err(|error| told(&error))?;
    write_unlinked(&path, bytes).map_err(|error| told(&error))
}
