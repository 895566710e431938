//! The headings that group the options of long commands in their help.

pub const AGENT: &str = "The agent";
pub const CASES: &str = "Which cases";
pub const WORKSPACE: &str = "The room";
pub const JUDGE: &str = "The judge";
pub const GATES: &str = "What counts";
pub const LIMITS: &str = "Limits and speed";
pub const STAND_INS: &str = "In place of the model";
pub const OUTPUT: &str = "What is shown";
