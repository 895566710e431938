//! Checks whether a skill was activated, and whether the agent saw exactly the skills that its arm should have.

use super::excerpt;
use practicum_core::model::{
    ActivationCheck, ActivationExpectation, Arm, CheckFinding, NotScoredReason, Observation,
    ObservedActivation,
};

/// The names of the skills in one workspace: pairs of a skill's own name and the name under which it is staged.
#[derive(Debug, Clone, Default)]
pub struct SkillNames {
    pairs: Vec<(String, String)>,
}

impl SkillNames {
    /// Makes the table from pairs of a skill's own name and its name in the workspace.
    pub fn new(pairs: Vec<(String, String)>) -> Self {
        Self { pairs }
    }

    /// Gives a skill's own name for the name under which it is staged. A skill that is not under test has only one
    /// name.
    pub fn own_name<'n>(&'n self, staged: &'n str) -> &'n str {
        self.pairs.iter().find(|(_, name)| name == staged).map_or(staged, |(own, _)| own)
    }

    /// Says whether this is a name, own or staged, of a skill under test.
    pub fn is_tested(&self, name: &str) -> bool {
        self.pairs.iter().any(|(own, staged)| own == name || staged == name)
    }

    /// Gives all staged names of a skill, found by its own name or by one of its staged names. A skill in a plugin
    /// has two: its folder's name and the name in its frontmatter.
    fn staged_names<'n>(&'n self, name: &'n str) -> Vec<&'n str> {
        let is_own = self.pairs.iter().any(|(own, _)| own == name);
        let own = if is_own { name } else { self.own_name(name) };
        let staged: Vec<&str> =
            self.pairs.iter().filter(|(known, _)| known == own).map(|(_, staged)| staged.as_str()).collect();
        if staged.is_empty() { vec![name] } else { staged }
    }
}

/// Says whether any of these skills was activated.
pub fn any_activated(skills: &[String], observation: &Observation, names: &SkillNames) -> ObservedActivation {
    first_activated(skills, observation, names).1
}

/// Gives the first of these skills that was activated, if any, and whether any was.
fn first_activated<'s>(
    skills: &'s [String],
    observation: &Observation,
    names: &SkillNames,
) -> (Option<&'s String>, ObservedActivation) {
    let mut unknown = None;
    for skill in skills {
        match observation.activation_of_any(&names.staged_names(skill)) {
            ObservedActivation::Yes(evidence) => return (Some(skill), ObservedActivation::Yes(evidence)),
            ObservedActivation::No => {}
            ObservedActivation::Unknown(why) => unknown = Some(why),
        }
    }
    (None, unknown.map_or(ObservedActivation::No, ObservedActivation::Unknown))
}

/// Checks whether the skills of a check were activated as expected.
pub fn check_activation(
    activation: &ActivationCheck,
    observation: &Observation,
    names: &SkillNames,
) -> CheckFinding {
    if activation.skills.is_empty() && observation.ended.can_be_graded() {
        return CheckFinding::not_scored(NotScoredReason::CheckFailed("it names no skill".to_owned()));
    }
    let (which, fired) = first_activated(&activation.skills, observation, names);
    // A run that did not finish proves only one thing: an activation that must not happen did happen.
    let is_wrong =
        activation.expect == ActivationExpectation::MustNot && matches!(fired, ObservedActivation::Yes(_));
    if !observation.ended.can_be_graded() && !is_wrong {
        return CheckFinding::not_scored(NotScoredReason::Ended(observation.ended));
    }
    let which = excerpt(&which.cloned().unwrap_or_else(|| activation.skills.join(", ")), 120);
    let idle = match activation.skills.len() {
        1 => format!("{which} was not activated"),
        _ => format!("none of {which} was activated"),
    };
    match (activation.expect, fired) {
        (_, ObservedActivation::Unknown(why)) => CheckFinding::not_scored(NotScoredReason::CheckFailed(why)),
        (ActivationExpectation::Must, ObservedActivation::Yes(evidence)) => {
            CheckFinding::new(true, format!("{which} was activated")).with_evidence(evidence.describe())
        }
        (ActivationExpectation::Must, ObservedActivation::No) => CheckFinding::new(
            false,
            format!("{idle}{}", describe_other_activations(activation, observation, names)),
        ),
        (ActivationExpectation::MustNot, ObservedActivation::Yes(evidence)) => {
            CheckFinding::new(false, format!("{which} was activated, and must not be"))
                .with_evidence(evidence.describe())
        }
        (ActivationExpectation::MustNot, ObservedActivation::No) => CheckFinding::new(true, idle),
        (ActivationExpectation::Either, ObservedActivation::Yes(evidence)) => {
            CheckFinding::new(true, format!("{which} was activated, which is fine"))
                .with_evidence(evidence.describe())
        }
        (ActivationExpectation::Either, ObservedActivation::No) => {
            CheckFinding::new(true, format!("{idle}, which is fine"))
        }
    }
}

/// Describes the activated skills that the check does not name. The text is appended to the message that the
/// expected skill was not activated.
fn describe_other_activations(
    activation: &ActivationCheck,
    observation: &Observation,
    names: &SkillNames,
) -> String {
    let mut others: Vec<String> = Vec::new();
    for activated in &observation.activated {
        let name = names.own_name(&activated.skill);
        // No expected skill was activated, so one with the same name is another.
        let is_namesake = activation.skills.iter().any(|skill| skill == name);
        let name = match (is_namesake, &activated.plugin) {
            (false, _) => name.to_owned(),
            (true, Some(plugin)) => format!("{plugin}:{name}"),
            (true, None) => format!("{name} (the agent's own)"),
        };
        if !others.contains(&name) {
            others.push(name);
        }
    }
    match others.as_slice() {
        [] => String::new(),
        [one] => format!("; {} was activated instead", excerpt(one, 120)),
        all => format!("; {} were activated instead", excerpt(&all.join(", "), 120)),
    }
}

/// Turns a model's prediction into a finding. `expected` are the skills that the model expects to be activated.
pub fn check_prediction(activation: &ActivationCheck, expected: &[String], reasoning: &str) -> CheckFinding {
    let chosen = activation.skills.iter().find(|skill| expected.contains(skill));
    let (fired, said) = match chosen {
        Some(skill) => (true, format!("a model expects {} to be activated", excerpt(skill, 120))),
        None => {
            let which = excerpt(&activation.skills.join(", "), 120);
            (false, format!("a model does not expect {which} to be activated"))
        }
    };
    let passed = match activation.expect {
        ActivationExpectation::Must => fired,
        ActivationExpectation::MustNot => !fired,
        ActivationExpectation::Either => true,
    };
    CheckFinding::new(passed, said).with_evidence(excerpt(reasoning, 500))
}

/// Says why a trial is not valid for its arm: the agent's own list of skills has a skill that must not be there,
/// lacks one that must be there, or has one of the user's own; or the agent without the skill got its text. Gives
/// `None` if nothing shows that the trial is not valid.
pub fn arm_problem(arm: Arm, staged: &[String], own: &[String], observation: &Observation) -> Option<String> {
    if arm == Arm::WithoutSkill {
        let read = own.iter().find_map(|name| match observation.activation_of(name) {
            ObservedActivation::Yes(evidence) => Some((name, evidence.describe())),
            ObservedActivation::No | ObservedActivation::Unknown(_) => None,
        });
        if let Some((name, evidence)) = read {
            return Some(format!(
                "the agent used the skill {name}, which this arm must not have: it {evidence}"
            ));
        }
    }
    let listed = observation.skills_listed.as_ref()?;
    if let Some(name) = observation.leaked.first() {
        return Some(format!("the agent could see {name}, a skill of the user's own"));
    }
    let is_in = |names: &[String], name: &String| {
        names.iter().any(|seen| seen == name || seen.rsplit(':').next() == Some(name))
    };
    match arm {
        // An agent lists a skill that is staged as a command file among its commands.
        Arm::WithSkill | Arm::Version(_) => staged
            .iter()
            .find(|name| !is_in(listed, name) && !is_in(&observation.commands_listed, name))
            .map(|name| format!("the agent could not see the skill {name}")),
        // A command of that name may be the agent's own, so only the list of skills counts here.
        Arm::WithoutSkill => own
            .iter()
            .find(|name| is_in(listed, name))
            .map(|name| format!("the agent could see the skill {name}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use practicum_core::model::{ActivatedSkill, ActivationEvidence, ActivationSource, AgentEnding, Verdict};

    fn seen(ended: AgentEnding, fired: &[&str], listed: Option<&[&str]>) -> Observation {
        let activated = fired.iter().map(|skill| ActivatedSkill {
            skill: (*skill).to_owned(),
            plugin: None,
            evidence: ActivationEvidence::SkillTool,
        });
        Observation {
            skills_listed: listed.map(|names| names.iter().map(|name| (*name).to_owned()).collect()),
            activated: activated.collect(),
            ..Observation::with_ending(ended)
        }
    }

    #[test]
    fn a_timeout_or_a_failed_login_does_not_count_as_did_not_trigger() {
        let names = SkillNames::new(vec![("greeter".into(), "greeter-x1".into())]);
        for (expect, ended, fired, expected) in [
            (ActivationExpectation::Must, AgentEnding::Finished, vec!["greeter-x1"], "pass"),
            (ActivationExpectation::Must, AgentEnding::Finished, vec!["greeter"], "fail"),
            (ActivationExpectation::Must, AgentEnding::Finished, vec![], "fail"),
            (ActivationExpectation::MustNot, AgentEnding::Finished, vec![], "pass"),
            (ActivationExpectation::MustNot, AgentEnding::Finished, vec!["greeter-x1"], "fail"),
            (ActivationExpectation::Either, AgentEnding::Finished, vec![], "pass"),
            (ActivationExpectation::MustNot, AgentEnding::TimedOut, vec![], "not_scored"),
            (ActivationExpectation::MustNot, AgentEnding::AuthFailed, vec![], "not_scored"),
            (ActivationExpectation::MustNot, AgentEnding::RateLimited, vec![], "not_scored"),
            (ActivationExpectation::MustNot, AgentEnding::ApiFailed, vec![], "not_scored"),
            (ActivationExpectation::Must, AgentEnding::Crashed, vec![], "not_scored"),
        ] {
            let activation = ActivationCheck {
                skills: vec!["greeter".into()],
                expect,
                source: ActivationSource::Observed,
            };
            let finding = check_activation(&activation, &seen(ended, &fired, None), &names);
            assert_eq!(finding.verdict.name(), expected, "{expect:?} {ended:?} {fired:?}");
            if let Verdict::NotScored(_) = finding.verdict {
                assert_eq!(finding.score, None);
            }
        }
    }

    #[test]
    fn of_several_skills_the_activated_one_is_named() {
        let skills = vec!["greeter".to_owned(), "doctor".to_owned()];
        for (expect, fired, expected) in [
            (ActivationExpectation::MustNot, vec!["doctor"], "doctor was activated, and must not be"),
            (ActivationExpectation::MustNot, vec![], "none of greeter, doctor was activated"),
            (ActivationExpectation::Must, vec!["doctor"], "doctor was activated"),
        ] {
            let activation =
                ActivationCheck { skills: skills.clone(), expect, source: ActivationSource::Observed };
            let finding = check_activation(
                &activation,
                &seen(AgentEnding::Finished, &fired, None),
                &SkillNames::default(),
            );
            assert_eq!(finding.rationale, expected);
        }
    }

    #[test]
    fn a_stream_without_tool_calls_does_not_count_as_did_not_trigger() {
        for expect in
            [ActivationExpectation::Must, ActivationExpectation::MustNot, ActivationExpectation::Either]
        {
            let activation = ActivationCheck {
                skills: vec!["greeter".into()],
                expect,
                source: ActivationSource::Observed,
            };
            let blind = Observation { hides_tools: true, ..seen(AgentEnding::Finished, &[], None) };
            let finding = check_activation(&activation, &blind, &SkillNames::default());
            assert_eq!(finding.verdict.name(), "not_scored", "{expect:?}");
        }
    }

    #[test]
    fn the_without_skill_arm_had_the_skill_or_the_with_skill_arm_did_not() {
        let one = |name: &str| vec![name.to_owned()];
        for (arm, listed, valid) in [
            (Arm::WithSkill, Some(&["greeter", "doctor"][..]), true),
            (Arm::WithSkill, Some(&["plug:greeter"][..]), true),
            (Arm::WithSkill, Some(&["doctor"][..]), false),
            (Arm::WithSkill, None, true),
            (Arm::WithoutSkill, Some(&["doctor"][..]), true),
            (Arm::WithoutSkill, Some(&["greeter"][..]), false),
        ] {
            let staged = if arm == Arm::WithSkill { one("greeter") } else { Vec::new() };
            let problem =
                arm_problem(arm, &staged, &one("greeter"), &seen(AgentEnding::Finished, &[], listed));
            assert_eq!(problem.is_none(), valid, "{arm:?} {listed:?}");
            // A name in the list of commands is enough where the skill must be there. It proves nothing where the
            // skill must be absent, because a command may be the agent's own.
            let commands =
                Observation { commands_listed: one("greeter"), ..seen(AgentEnding::Finished, &[], listed) };
            let problem = arm_problem(arm, &staged, &one("greeter"), &commands);
            assert_eq!(problem.is_none(), valid || arm == Arm::WithSkill, "{arm:?} {listed:?}");
        }
    }
}
