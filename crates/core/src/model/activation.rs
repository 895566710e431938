//! Which skills a trial activated, and what that counts as.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ActivationExpectation;

/// The skills that a trial tests, and those that were activated.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkillUse {
    /// The skills that the case's activation check names.
    pub about: Vec<String>,
    /// The skills that the agent activated, rivals included, by their own names.
    pub activated: Vec<String>,
    /// Whether the prompt names the skill, so that the agent had nothing to decide.
    pub invoked: bool,
}

/// The activation that a model predicted from descriptions, and the expected one. Predictions and observations are
/// never counted together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ActivationPrediction {
    /// Whether the case requires activation, forbids it or accepts both.
    pub expect: ActivationExpectation,
    /// The skills that the case is about.
    pub about: Vec<String>,
    /// The skills that the model predicts to be activated; `None` if it gave no answer.
    pub chosen: Option<Vec<String>>,
}

impl ActivationPrediction {
    /// Says whether the model predicted one of the skills that the case is about; `None` without a prediction.
    pub fn is_activated(&self) -> Option<bool> {
        let chosen = self.chosen.as_ref()?;
        Some(self.about.iter().any(|skill| chosen.contains(skill)))
    }
}

/// The outcome of a trial with respect to activation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ActivationOutcome {
    /// The skill was activated, as expected.
    TruePositive,
    /// The skill was activated, and should not have been.
    FalsePositive,
    /// The skill was not activated, as expected.
    TrueNegative,
    /// The skill was not activated, and should have been.
    FalseNegative,
    /// The case accepts both.
    Acceptable,
    /// The trial does not show whether the skill was activated.
    Error,
}

impl ActivationOutcome {
    /// Gives the outcome as skill-test writes it.
    pub fn name(self) -> &'static str {
        match self {
            ActivationOutcome::TruePositive => "tp",
            ActivationOutcome::FalsePositive => "fp",
            ActivationOutcome::TrueNegative => "tn",
            ActivationOutcome::FalseNegative => "fn",
            ActivationOutcome::Acceptable => "acceptable",
            ActivationOutcome::Error => "error",
        }
    }
}

impl SkillUse {
    /// Gives the skills that the agent activated though the case is not about them.
    pub fn activated_instead(&self) -> Vec<&str> {
        self.activated.iter().filter(|skill| !self.about.contains(skill)).map(String::as_str).collect()
    }

    /// Says whether there is nothing to store.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
