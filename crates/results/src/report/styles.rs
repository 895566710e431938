//! What good, bad and doubtful look like on a terminal.

use anstyle::{AnsiColor, Style};

use practicum_core::model::{GateResult, Standing};

pub const GOOD: Style = AnsiColor::Green.on_default().bold();
pub const BAD: Style = AnsiColor::Red.on_default().bold();
pub const UNSURE: Style = AnsiColor::Yellow.on_default().bold();
pub const FAINT: Style = Style::new().dimmed();

pub fn standing(standing: Standing) -> Style {
    match standing {
        Standing::Passed => GOOD,
        Standing::Failed => BAD,
        Standing::Ungated | Standing::Incomplete | Standing::OverBudget | Standing::Interrupted => UNSURE,
    }
}

pub fn gate(gate: &GateResult) -> Style {
    match (gate.ok, gate.fails()) {
        (true, _) => GOOD,
        (false, true) => BAD,
        (false, false) => UNSURE,
    }
}
