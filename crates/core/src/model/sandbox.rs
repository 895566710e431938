/// How an agent is walled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SandboxMode {
    /// As well as this machine can, and told how well that is.
    Auto,
    Off,
    /// Files and network, or no run at all.
    Strict,
}

impl SandboxMode {
    pub const NAMES: [&'static str; 3] = ["auto", "off", "strict"];

    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "auto" => Some(SandboxMode::Auto),
            "off" => Some(SandboxMode::Off),
            "strict" => Some(SandboxMode::Strict),
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            SandboxMode::Auto => "auto",
            SandboxMode::Off => "off",
            SandboxMode::Strict => "strict",
        }
    }
}
