//! Stands in for Landlock on systems that do not have it. Landlock is a part of Linux.

use std::path::PathBuf;

use super::SandboxBackend;

const REASON: &str = "Landlock exists only on Linux";

/// Says that there is no Landlock.
pub fn probe() -> Result<SandboxBackend, String> {
    Err(REASON.to_owned())
}

/// Refuses, so that nothing is started unrestricted.
pub fn confine_this_process(_read_only: &[PathBuf], _writable: &[PathBuf]) -> Result<(), String> {
    Err(REASON.to_owned())
}
