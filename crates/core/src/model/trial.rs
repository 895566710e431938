//! A trial: one execution of a case by an agent, under one condition.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Digest;

/// One execution of one case under one condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trial {
    /// The id of the trial, which is also the name of its folder.
    pub id: TrialId,
    /// The index of the suite in the plan. `case` is the index of the case in that suite.
    pub suite: usize,
    /// The index of the case in its suite.
    pub case: usize,
    /// The agent, model, arm and mode.
    pub condition: Condition,
    /// The number of the repetition, from 1.
    pub attempt: u32,
}

/// The condition of a trial: agent, model, arm and mode.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Condition {
    /// The name of the agent.
    pub agent: String,
    /// The requested model; `None` leaves the choice to the agent.
    pub model: Option<String>,
    /// Whether the agent has the skill under test, and which version of it.
    pub arm: Arm,
    /// How strongly the system prompt urges the agent to use skills.
    pub mode: SkillUseMode,
}

/// Whether the agent has the skill under test, and which version of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Arm {
    /// The agent has the skill as it is now.
    #[serde(rename = "with")]
    WithSkill,
    /// The agent does not have the skill.
    #[serde(rename = "without")]
    WithoutSkill,
    /// The agent has a stored version of the skill.
    Version(u32),
}

impl Arm {
    /// Says whether the arm has the skill, in any version.
    pub fn has_skill(self) -> bool {
        match self {
            Arm::WithSkill | Arm::Version(_) => true,
            Arm::WithoutSkill => false,
        }
    }

    /// Gives the name of the arm in documents: `with`, `without`, or a version such as `v2`.
    pub fn name(self) -> String {
        match self {
            Arm::WithSkill => "with".to_owned(),
            Arm::WithoutSkill => "without".to_owned(),
            Arm::Version(n) => format!("v{n}"),
        }
    }

    /// Reads the name of an arm; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "with" => Some(Arm::WithSkill),
            "without" => Some(Arm::WithoutSkill),
            _ => text.strip_prefix('v')?.parse().ok().map(Arm::Version),
        }
    }
}

/// How strongly the system prompt urges the agent to use skills.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum SkillUseMode {
    /// The agent's own system prompt, unchanged.
    Baseline,
    /// The system prompt asks the agent to use skills that fit.
    Smart,
    /// The system prompt requires the agent to evaluate every skill first.
    Forced,
    /// A system prompt of the user's own, by its name in the project file.
    Named(String),
}

impl JsonSchema for SkillUseMode {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Mode".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "How much the agent is pushed to use skills: baseline, smart, forced, or a name of the project file.",
            "type": "string"
        })
    }
}

impl From<String> for SkillUseMode {
    fn from(text: String) -> Self {
        match text.as_str() {
            "baseline" => SkillUseMode::Baseline,
            "smart" => SkillUseMode::Smart,
            "forced" => SkillUseMode::Forced,
            _ => SkillUseMode::Named(text),
        }
    }
}

impl From<SkillUseMode> for String {
    fn from(mode: SkillUseMode) -> Self {
        mode.name().to_owned()
    }
}

impl SkillUseMode {
    /// Gives the name of the mode.
    pub fn name(&self) -> &str {
        match self {
            SkillUseMode::Baseline => "baseline",
            SkillUseMode::Smart => "smart",
            SkillUseMode::Forced => "forced",
            SkillUseMode::Named(name) => name,
        }
    }
}

/// The id of a trial, which is also the name of its folder. It is derived from the suite, the case, the condition and
/// the attempt, so that two plans of the same suites give the same ids. It begins with the case's id, as far as file
/// names allow.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct TrialId(#[serde(deserialize_with = "read_trial_id")] String);

/// Reads an id from a record, which may come from an untrusted source. An id that is not the name of a folder is refused.
fn read_trial_id<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let id = String::deserialize(deserializer)?;
    match id.is_empty() || id.starts_with('.') || id.contains(['/', '\\', '\0']) {
        true => Err(serde::de::Error::custom(format!("{id:?} is not the id of a trial"))),
        false => Ok(id),
    }
}

impl TrialId {
    /// Derives the id of a trial. Equal arguments give the same id.
    pub fn new(suite: &str, case: &str, condition: &Condition, attempt: u32) -> Self {
        let digest = Digest::of_parts([
            suite.as_bytes(),
            case.as_bytes(),
            condition.agent.as_bytes(),
            condition.model.as_deref().unwrap_or("").as_bytes(),
            condition.arm.name().as_bytes(),
            condition.mode.name().as_bytes(),
            &attempt.to_le_bytes(),
        ]);
        let readable: String = case
            .chars()
            .take(60)
            .map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' })
            .collect();
        // A leading dot would hide the folder, and `.` and `..` are not names.
        let readable = readable.trim_start_matches('.');
        Self(format!("{readable}-{}", digest.short()))
    }

    /// Gives the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TrialId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition() -> Condition {
        Condition {
            agent: "claude".to_owned(),
            model: None,
            arm: Arm::WithSkill,
            mode: SkillUseMode::Baseline,
        }
    }

    #[test]
    fn a_renamed_or_truncated_id_does_not_hide_a_regression() {
        let long = "x".repeat(300);
        let longer = format!("{long}y");
        let ids: Vec<TrialId> = ["a/b", "a_b", "a:b", &long, &longer]
            .iter()
            .map(|case| TrialId::new("s", case, &condition(), 1))
            .collect();
        for (i, one) in ids.iter().enumerate() {
            assert!(one.as_str().len() < 100);
            for other in &ids[i + 1..] {
                assert_ne!(one, other, "ids that only look alike stay apart");
            }
        }
    }

    #[test]
    fn a_hostile_case_id_is_a_plain_folder_name() {
        for case in ["../../etc", "..", ".hidden", "a\0b", "a/b", "ü\u{202e}"] {
            let id = TrialId::new("s", case, &condition(), 1);
            assert!(!id.as_str().contains(['/', '\0']) && !id.as_str().starts_with('.'), "{id}");
        }
    }
}
