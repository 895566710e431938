//! The sandbox modes: off, automatic, strict.

/// The strength of the sandbox around an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SandboxMode {
    /// The strongest sandbox that this machine has. The run reports how strong it is.
    Auto,
    /// No sandbox.
    Off,
    /// Isolates files and network, or the run is refused.
    Strict,
}

impl SandboxMode {
    /// The names of the modes, for help and messages.
    pub const NAMES: [&'static str; 3] = ["auto", "off", "strict"];

    /// Reads the name of a mode; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "auto" => Some(SandboxMode::Auto),
            "off" => Some(SandboxMode::Off),
            "strict" => Some(SandboxMode::Strict),
            _ => None,
        }
    }

    /// Gives the name of the mode in settings.
    pub fn name(self) -> &'static str {
        match self {
            SandboxMode::Auto => "auto",
            SandboxMode::Off => "off",
            SandboxMode::Strict => "strict",
        }
    }
}
