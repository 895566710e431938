//! Headings of option groups in `--help`.

pub const AGENT: &str = "Agent";
pub const CASES: &str = "Which cases";
pub const WORKSPACE: &str = "Workspace and sandbox";
pub const JUDGE: &str = "Judge";
pub const GATES: &str = "Gates";
pub const LIMITS: &str = "Limits and speed";
pub const STAND_INS: &str = "In place of the model";
pub const WORKERS: &str = "Workers";
pub const OUTPUT: &str = "Output";
