//! Stands in for Landlock on systems that do not have it. Landlock is a part of Linux.

use super::SandboxBackend;
use super::inner_steps::InnerSteps;

const REASON: &str = "Landlock exists only on Linux";

/// Says that there is no Landlock.
pub fn probe() -> Result<SandboxBackend, String> {
    Err(REASON.to_owned())
}

/// Refuses, so that nothing is started unrestricted.
pub fn confine_this_process(_steps: &InnerSteps) -> Result<(), String> {
    Err(REASON.to_owned())
}
