//! What good, bad and doubtful look like on a terminal.

use anstyle::{AnsiColor, Style};

pub const GOOD: Style = AnsiColor::Green.on_default().bold();
pub const BAD: Style = AnsiColor::Red.on_default().bold();
pub const UNSURE: Style = AnsiColor::Yellow.on_default().bold();
pub const FAINT: Style = Style::new().dimmed();
