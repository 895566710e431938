//! A judge's verdicts on the text of a skill.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CheckResult, Digest, JudgeUsage, Verdict};

/// A judge's verdicts on the text of a skill. They decide no trial and no gate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SkillJudgement {
    /// The name of the suite whose statements were judged.
    pub suite: String,
    /// The name of the skill.
    pub skill: String,
    /// The digest of the text; `None` if the text could not be read.
    pub text: Option<Digest>,
    /// The result of each statement of the suite.
    pub checks: Vec<CheckResult>,
    /// Remarks for people, such as why the text could not be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The tokens that the judge used; `None` if no judge was asked or a stored answer was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judging: Option<JudgeUsage>,
}

impl SkillJudgement {
    /// Says whether asking the judge again would show nothing new.
    pub fn is_conclusive(&self) -> bool {
        !self.checks.iter().any(|check| matches!(check.verdict, Verdict::NotScored(_)))
    }

    /// Finds the result for one statement.
    pub fn check(&self, id: &str) -> Option<&CheckResult> {
        self.checks.iter().find(|check| check.check == id)
    }

    /// Gives one line for people on each statement.
    pub fn describe(&self) -> Vec<String> {
        let line = |check: &CheckResult| {
            let word = match check.verdict {
                Verdict::Pass => "passed",
                Verdict::Fail => "failed",
                Verdict::NotScored(_) => "not scored",
            };
            format!("{} of skill {}: {word}: {}", check.check, self.skill, check.rationale)
        };
        self.checks.iter().map(line).collect()
    }
}
