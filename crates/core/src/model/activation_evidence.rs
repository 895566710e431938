//! The rule that decides from all evidence whether a skill was activated in a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ActivatedSkill, ActivationEvidence, Observation, ObservedActivation};

/// A possible activation that was not observed well enough to count, so that "no" cannot be said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UncertainActivation {
    /// The name of the skill as the agent gave it; `None` if it may have been any skill.
    pub skill: Option<String>,
    /// Why it cannot be said.
    pub why: String,
}

/// What the texts that a model received show about one skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkillTextFinding {
    /// All names of the skill in the workspace.
    pub names: Vec<String>,
    /// Whether its text reached the model.
    pub reached: TextReached,
}

/// Whether the text of a skill reached the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TextReached {
    /// The model received the text.
    Yes {
        /// Where the text was seen: a request to the model, or the result of a tool.
        seen_in: String,
    },
    /// Everything that the model received is known, and the text is not in it.
    No,
    /// The results of the tool calls in the stream do not have the text. The stream need not show every call.
    NotInStream,
    /// It cannot be said.
    Unknown {
        /// Why it cannot be said.
        why: String,
    },
}

impl Observation {
    /// Says whether the skill of this name was activated.
    pub fn activation_of(&self, skill: &str) -> ObservedActivation {
        self.activation_of_any(&[skill])
    }

    /// Says whether a skill was activated that has these names, with or without a plugin's name before them.
    pub fn activation_of_any(&self, names: &[&str]) -> ObservedActivation {
        let mut doubt = None;
        for activated in &self.activated {
            match self.is_activation_of(activated, names) {
                Some(true) => return ObservedActivation::Yes(activated.evidence.clone()),
                Some(false) => {}
                None => {
                    doubt = Some(format!(
                        "the agent activated {}, which may be another skill",
                        activated.full_name()
                    ))
                }
            }
        }
        if !self.ended.can_be_graded() {
            return ObservedActivation::Unknown(self.ended.describe().to_owned());
        }
        let found = self.text_findings.iter().find(|finding| finding.is_about(names));
        match (doubt, found.map(|finding| &finding.reached)) {
            (Some(why), _) => ObservedActivation::Unknown(why),
            (None, Some(TextReached::Unknown { why })) => ObservedActivation::Unknown(why.clone()),
            (None, Some(TextReached::Yes { seen_in })) => {
                ObservedActivation::Yes(ActivationEvidence::TextReached { seen_in: seen_in.clone() })
            }
            (None, Some(TextReached::No)) => ObservedActivation::No,
            (None, Some(TextReached::NotInStream) | None) => self.activation_not_seen(names),
        }
    }

    /// Decides between "no" and "unknown" for a skill of which nothing was seen.
    fn activation_not_seen(&self, names: &[&str]) -> ObservedActivation {
        let is_meant =
            |skill: &str| names.iter().any(|name| bare_name(name) == bare_name(skill) || *name == skill);
        let mut doubts = self.uncertain.iter();
        match doubts.find(|doubt| doubt.skill.as_deref().is_none_or(is_meant)) {
            Some(doubt) => ObservedActivation::Unknown(doubt.why.clone()),
            None if self.hides_tools => {
                ObservedActivation::Unknown("the agent's stream shows no tool calls".to_owned())
            }
            None => ObservedActivation::No,
        }
    }

    /// Says whether an activation is one of the skill with these names. `None` if that cannot be told.
    fn is_activation_of(&self, activated: &ActivatedSkill, names: &[&str]) -> Option<bool> {
        let (bare, full) = (activated.skill.as_str(), activated.full_name());
        let of_plugin = names.iter().any(|name| name.contains(':'));
        let listed = || self.skills_listed.iter().flatten().chain(&self.commands_listed);
        let namesakes = || listed().filter(|name| name.contains(':') && bare_name(name) == bare);
        if names.contains(&full.as_str()) {
            // If the agent lists the bare name beside that of the plugin, the bare name calls the agent's own skill.
            let is_own = activated.plugin.is_none()
                && of_plugin
                && matches!(activated.evidence, ActivationEvidence::SkillTool)
                && listed().any(|name| name == bare)
                && namesakes().any(|name| names.contains(&name.as_str()));
            return Some(!is_own);
        }
        if activated.plugin.is_none() || of_plugin || !names.contains(&bare) {
            return Some(false);
        }
        // The agent put a plugin's name before a name that the skill has without one. Only its listing says whether
        // that is the same skill.
        self.skills_listed.as_ref()?;
        let is_only = namesakes().all(|name| *name == full) && namesakes().next().is_some();
        match listed().any(|name| name == bare) {
            true => Some(false),
            false => is_only.then_some(true),
        }
    }

    /// Adds what the texts that the model received show. Text that was received is evidence of activation; if a
    /// command seemed to read a skill, and its text was not received, the command is none.
    pub fn apply_text_findings(&mut self, findings: Vec<SkillTextFinding>) {
        for finding in &findings {
            let names: Vec<&str> = finding.names.iter().map(String::as_str).collect();
            let is_it = |activated: &ActivatedSkill| names.contains(&activated.full_name().as_str());
            match &finding.reached {
                TextReached::Yes { seen_in } if !self.activated.iter().any(is_it) => {
                    let (skill, seen_in) =
                        (finding.names.first().cloned().unwrap_or_default(), seen_in.clone());
                    let evidence = ActivationEvidence::TextReached { seen_in };
                    self.activated.push(ActivatedSkill { skill, plugin: None, evidence });
                }
                TextReached::No | TextReached::NotInStream if self.ended.can_be_graded() => {
                    let is_read = |activated: &ActivatedSkill| {
                        matches!(activated.evidence, ActivationEvidence::ReadSkillFile { .. })
                    };
                    self.activated.retain(|activated| !(is_read(activated) && is_it(activated)));
                }
                _ => {}
            }
        }
        self.text_findings = findings;
    }
}

impl SkillTextFinding {
    fn is_about(&self, names: &[&str]) -> bool {
        self.names.iter().any(|name| names.contains(&name.as_str()))
    }
}

/// Gives a name without a plugin's name before it.
fn bare_name(name: &str) -> &str {
    name.rsplit(':').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::AgentEnding;

    fn tool(name: &str) -> ActivatedSkill {
        let (plugin, skill) = match name.split_once(':') {
            Some((plugin, skill)) => (Some(plugin.to_owned()), skill.to_owned()),
            None => (None, name.to_owned()),
        };
        ActivatedSkill { skill, plugin, evidence: ActivationEvidence::SkillTool }
    }

    fn word(activation: &ObservedActivation) -> &'static str {
        match activation {
            ObservedActivation::Yes(_) => "yes",
            ObservedActivation::No => "no",
            ObservedActivation::Unknown(_) => "unknown",
        }
    }

    #[test]
    fn a_skill_of_another_plugin_is_another_skill() {
        let bare = &["greet"][..];
        let plugged = &["greet", "harbour:greet"][..];
        for (activated, listed, names, expected) in [
            ("greet", Some(&["greet"][..]), bare, "yes"),
            ("greet", None, bare, "yes"),
            ("greet", Some(&["greet", "acme:greet"]), bare, "yes"),
            ("acme:greet", Some(&["greet", "acme:greet"]), bare, "no"),
            ("acme:greet", Some(&["greet"]), bare, "no"),
            // The only skill of that name, so a plugin has it.
            ("harbour:greet", Some(&["harbour:greet", "wave"]), bare, "yes"),
            ("acme:greet", Some(&["harbour:greet", "acme:greet"]), bare, "unknown"),
            ("acme:greet", None, bare, "unknown"),
            ("harbour:greet", None, plugged, "yes"),
            ("harbour:greet", Some(&["harbour:greet", "acme:greet", "greet"]), plugged, "yes"),
            ("acme:greet", None, plugged, "no"),
            ("acme:greet", Some(&["harbour:greet", "acme:greet"]), plugged, "no"),
            // The agent's own skill has the bare name.
            ("greet", Some(&["greet", "harbour:greet"]), plugged, "no"),
            ("greet", Some(&["harbour:greet"]), plugged, "yes"),
            // The skill of the plugin is staged as a plain skill.
            ("harbour:greet", Some(&["greet"]), plugged, "yes"),
            ("greet", Some(&["greet", "acme:greet"]), plugged, "yes"),
            ("acme:greet", Some(&["greet"]), plugged, "no"),
            ("wave", None, bare, "no"),
        ] {
            let seen = Observation {
                activated: vec![tool(activated)],
                skills_listed: listed.map(|names| names.iter().map(|name| (*name).to_owned()).collect()),
                ..Observation::with_ending(AgentEnding::Finished)
            };
            let found = seen.activation_of_any(names);
            assert_eq!(word(&found), expected, "{activated} among {listed:?} for {names:?}");
        }
    }

    #[test]
    fn texts_decide_over_commands_and_not_over_the_skill_tool() {
        let read = ActivationEvidence::ReadSkillFile { tool: "Bash".to_owned() };
        let (yes, why) = (TextReached::Yes { seen_in: "x".into() }, || "w".to_owned());
        let unknown = || TextReached::Unknown { why: why() };
        let anything = || UncertainActivation { skill: None, why: why() };
        for (ended, evidence, doubts, reached, expected) in [
            (AgentEnding::Finished, None, vec![], yes.clone(), "yes"),
            (AgentEnding::TimedOut, None, vec![], yes, "yes"),
            (AgentEnding::Finished, None, vec![], unknown(), "unknown"),
            (AgentEnding::Finished, Some(&read), vec![], TextReached::No, "no"),
            (AgentEnding::Finished, Some(&read), vec![], TextReached::NotInStream, "no"),
            (AgentEnding::TimedOut, Some(&read), vec![], TextReached::No, "yes"),
            (AgentEnding::Finished, Some(&read), vec![], unknown(), "yes"),
            (AgentEnding::Finished, Some(&ActivationEvidence::SkillTool), vec![], TextReached::No, "yes"),
            // A record of everything settles a doubt, and a stream does not.
            (AgentEnding::Finished, None, vec![anything()], TextReached::No, "no"),
            (AgentEnding::Finished, None, vec![anything()], TextReached::NotInStream, "unknown"),
            (AgentEnding::TimedOut, None, vec![], TextReached::No, "unknown"),
        ] {
            let about = format!("{ended:?} {evidence:?} {doubts:?} {reached:?}");
            let activated = evidence.map(|evidence| ActivatedSkill {
                skill: "greet".into(),
                plugin: None,
                evidence: evidence.clone(),
            });
            let mut seen = Observation {
                activated: activated.into_iter().collect(),
                uncertain: doubts,
                ..Observation::with_ending(ended)
            };
            seen.apply_text_findings(vec![SkillTextFinding { names: vec!["greet".into()], reached }]);
            assert_eq!(word(&seen.activation_of("greet")), expected, "{about}");
        }
    }
}
