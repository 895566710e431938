use super::Summary;

/// What a run came to. More than its exit code: that is 0 also where nothing had to be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    Passed,
    /// Trials failed, and no gate is about them.
    Ungated,
    Failed,
    Incomplete,
    OverBudget,
    Interrupted,
}

impl Standing {
    /// From the exit code of a run, and whether trials failed that no gate is about.
    pub fn of(exit: u8, ungated: bool) -> Self {
        match exit {
            0 if ungated => Standing::Ungated,
            0 => Standing::Passed,
            1 => Standing::Failed,
            4 => Standing::OverBudget,
            130 => Standing::Interrupted,
            _ => Standing::Incomplete,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Standing::Passed => "passed",
            Standing::Ungated => "no gate",
            Standing::Failed => "failed",
            Standing::Incomplete => "incomplete",
            Standing::OverBudget => "over budget",
            Standing::Interrupted => "interrupted",
        }
    }
}

impl Summary {
    pub fn standing(&self) -> Standing {
        Standing::of(self.exit, self.has_ungated_failures())
    }

    /// Whether a trial that has to pass failed in a suite without a gate that it could fail.
    pub fn has_ungated_failures(&self) -> bool {
        let is_gated = |suite: &str| self.gates.iter().any(|gate| gate.suite == suite && gate.can_fail());
        self.cases.iter().any(|case| case.is_examined() && case.failed > 0 && !is_gated(&case.suite))
    }
}
