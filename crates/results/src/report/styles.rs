//! The terminal styles for good, bad and doubtful results.

use anstyle::{AnsiColor, Style};

use practicum_core::model::{GateResult, RunStatus};

pub const GOOD: Style = AnsiColor::Green.on_default().bold();
pub const BAD: Style = AnsiColor::Red.on_default().bold();
pub const UNSURE: Style = AnsiColor::Yellow.on_default().bold();
pub const FAINT: Style = Style::new().dimmed();

pub fn status_style(standing: RunStatus) -> Style {
    match standing {
        RunStatus::Passed => GOOD,
        RunStatus::Failed => BAD,
        RunStatus::Ungated | RunStatus::Incomplete | RunStatus::OverBudget | RunStatus::Interrupted => UNSURE,
    }
}

pub fn gate_style(gate: &GateResult) -> Style {
    match (gate.ok, gate.fails()) {
        (true, _) => GOOD,
        (false, true) => BAD,
        (false, false) => UNSURE,
    }
}
