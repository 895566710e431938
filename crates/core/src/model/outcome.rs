//! The outcome of a command, which decides its exit code.

use serde::{Deserialize, Serialize};

/// The outcome of a command or a run. Documents contain it as its exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "u8", from = "u8")]
pub enum Outcome {
    /// Every gate holds, or the command did what it should.
    Passed,
    /// A gate failed, or a comparison found a loss.
    Failed,
    /// Bad usage, an eval file that cannot be understood, or an invalid skill.
    Invalid,
    /// The run could not be completed, or something has no answer.
    Incomplete,
    /// The limit of money or tokens was reached.
    OverBudget,
    /// The user or a signal stopped the command.
    Interrupted,
}

impl Outcome {
    /// Gives `Passed` or `Failed`.
    pub fn from_passed(passed: bool) -> Self {
        if passed { Outcome::Passed } else { Outcome::Failed }
    }
}

impl From<Outcome> for u8 {
    fn from(outcome: Outcome) -> u8 {
        match outcome {
            Outcome::Passed => 0,
            Outcome::Failed => 1,
            Outcome::Invalid => 2,
            Outcome::Incomplete => 3,
            Outcome::OverBudget => 4,
            Outcome::Interrupted => 130,
        }
    }
}

/// Reads an exit code from a document. A code that no version writes counts as incomplete.
impl From<u8> for Outcome {
    fn from(code: u8) -> Self {
        match code {
            0 => Outcome::Passed,
            1 => Outcome::Failed,
            2 => Outcome::Invalid,
            4 => Outcome::OverBudget,
            130 => Outcome::Interrupted,
            _ => Outcome::Incomplete,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_is_the_same_after_its_exit_code() {
        for code in [0, 1, 2, 3, 4, 130] {
            assert_eq!(u8::from(Outcome::from(code)), code);
        }
        assert_eq!(Outcome::from(77), Outcome::Incomplete);
    }
}
