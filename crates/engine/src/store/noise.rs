use std::path::Path;

use practicum_core::model::Noise;

const NOISE_FILE: &str = ".practicum/noise.json";

/// What is known of a project's noise. `None` if it was never measured.
pub fn read_noise(project: &Path) -> Result<Option<Noise>, String> {
    let path = project.join(NOISE_FILE);
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("{}: {error}", path.display())),
    };
    let told = |error| format!("{}: {error}; practicum noise makes it anew", path.display());
    serde_json::from_slice(&bytes).map(Some).map_err(told)
}

/// Keeps what was measured now, and what was measured before of other cases.
pub fn save_noise(project: &Path, measured: &Noise) -> Result<(), String> {
    let mut all = measured.clone();
    // What cannot be read is replaced: it was only ever a measurement.
    for known in read_noise(project).ok().flatten().map(|noise| noise.cases).unwrap_or_default() {
        let again = measured.cases.iter().any(|case| {
            (&case.suite, &case.id, &case.agent) == (&known.suite, &known.id, &known.agent)
                && (&case.model, &case.mode, &case.arm) == (&known.model, &known.mode, &known.arm)
        });
        if !again {
            all.cases.push(known);
        }
    }
    let path = project.join(NOISE_FILE);
    let told = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let bytes = serde_json::to_vec_pretty(&all).map_err(|error| told(&error))?;
    std::fs::write(&path, bytes).map_err(|error| told(&error))
}
