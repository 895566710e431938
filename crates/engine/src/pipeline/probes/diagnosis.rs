//! Explains why an agent that was asked to use a skill did not activate it.
//!
//! In: the observation of that run, the skill's own file, and what the model received. Out: a `ProbeFailure`, or
//! none if the skill was activated. Never: runs anything; guesses from what an agent says about itself.

use practicum_core::model::{
    AgentEnding, Observation, ObservedActivation, ProbeFailure, ProbeFailureKind, RefusedSkill,
    SkillRefusalSource,
};

/// Gives the prompt of a probe. It asks only for activation of the skill, so that a probe costs little.
pub(crate) fn probe_prompt(skill: &str) -> String {
    format!(
        "Use the skill {skill}. This only tests whether it can be activated: activate it, do none of its \
         work, and answer \"ready\"."
    )
}

/// The skill that the agent was asked to use.
pub struct ProbedSkill<'w> {
    /// The name of the skill in the workspace.
    pub name: &'w str,
    pub description: Option<&'w str>,
    /// Whether its frontmatter lets the model activate it.
    pub model_may_use: bool,
    /// Everything that the model received; `None` if it was not recorded.
    pub model_input: Option<&'w str>,
}

/// Finds out why the skill was not activated. `None` if it was.
pub fn diagnose_activation(seen: &Observation, wanted: &ProbedSkill<'_>) -> Option<ProbeFailure> {
    let ProbedSkill { name, .. } = wanted;
    let unseen = match seen.activation_of(name) {
        ObservedActivation::Yes(_) => return None,
        ObservedActivation::Unknown(why) => Some(why),
        ObservedActivation::No => None,
    };
    let trouble = ending_failure(seen)
        .or_else(|| listing_failure(seen, name))
        .or_else(|| reservation_failure(wanted))
        .or_else(|| refusal_failure(&seen.refused, name))
        .or_else(|| {
            let why =
                format!("the output of the agent does not show whether {name} was activated: {}", unseen?);
            let hint = "give the agent a decoder that shows tool calls, or choose cases that are not about \
                        activation with --case";
            Some(new_failure(ProbeFailureKind::NotSeen, why, hint))
        })
        .or_else(|| description_failure(wanted))
        .unwrap_or_else(|| {
            let why = format!("{name} was available, and the model did not activate it when asked to");
            let hint = "read the probe's transcript, or measure without it with --no-probe";
            new_failure(ProbeFailureKind::NotTaken, why, hint)
        });
    Some(trouble)
}

fn new_failure(kind: ProbeFailureKind, why: String, hint: &str) -> ProbeFailure {
    ProbeFailure { kind, why, hint: hint.to_owned() }
}

/// Explains a run that did not end properly. Such a run shows nothing else.
fn ending_failure(seen: &Observation) -> Option<ProbeFailure> {
    let (kind, hint) = match seen.ended {
        AgentEnding::Finished => return None,
        AgentEnding::AuthFailed => {
            (ProbeFailureKind::NotLoggedIn, "log the agent in; practicum doctor says how")
        }
        AgentEnding::RateLimited => {
            (ProbeFailureKind::RateLimited, "wait, then continue with practicum run --resume")
        }
        AgentEnding::ApiFailed => {
            (ProbeFailureKind::ApiFailed, "wait, then continue with practicum run --resume")
        }
        AgentEnding::TimedOut => (ProbeFailureKind::TimedOut, "give it more time with --timeout"),
        AgentEnding::OverBudget => (ProbeFailureKind::OverBudget, "give it a larger budget"),
        AgentEnding::OverLimit => (ProbeFailureKind::AgentFailed, "raise the limit with --limit"),
        AgentEnding::Lost => (
            ProbeFailureKind::AgentFailed,
            "read what the workers say, then continue with practicum run --resume",
        ),
        AgentEnding::AskedUser
        | AgentEnding::Crashed
        | AgentEnding::NotLaunched
        | AgentEnding::NotStarted
        | AgentEnding::SetupFailed
        | AgentEnding::NoReply
        | AgentEnding::Cancelled => {
            (ProbeFailureKind::AgentFailed, "read the probe's transcript and standard error")
        }
    };
    let because = seen.ended_because.as_ref().map_or_else(String::new, |why| format!(" ({})", shorten(why)));
    Some(new_failure(kind, format!("{}{because}", seen.ended.describe()), hint))
}

fn listing_failure(seen: &Observation, name: &str) -> Option<ProbeFailure> {
    let listed = seen.skills_listed.as_ref()?;
    // A skill that is staged as a command file is listed as a command.
    let mut names = listed.iter().chain(&seen.commands_listed);
    let is_there = names.any(|known| known == name || known.rsplit(':').next() == Some(name));
    (!is_there).then(|| {
        let why = format!("the agent does not see {name}: its own list of skills lacks it");
        let hint = "practicum lint says what agents refuse in a SKILL.md";
        new_failure(ProbeFailureKind::NotVisible, why, hint)
    })
}

fn refusal_failure(refused: &[RefusedSkill], name: &str) -> Option<ProbeFailure> {
    let refused = refused.iter().find(|refused| refused.skill == name).or(refused.first())?;
    let (asked, said) = (shorten(&refused.skill), shorten(&refused.said));
    Some(match refused.by {
        SkillRefusalSource::Permissions => new_failure(
            ProbeFailureKind::PermissionDenied,
            format!("the agent may not use {asked}: {said}"),
            "let the agent use skills without asking",
        ),
        SkillRefusalSource::SkillTool => new_failure(
            ProbeFailureKind::NameRejected,
            format!("the agent called for {asked}, and its skill tool refused: {said}"),
            "make the name in the SKILL.md that of its folder; practicum lint says what agents refuse",
        ),
    })
}

fn reservation_failure(wanted: &ProbedSkill<'_>) -> Option<ProbeFailure> {
    let name = wanted.name;
    (!wanted.model_may_use).then(|| {
        let why = format!("the frontmatter of {name} keeps it from the model (disable-model-invocation)");
        let hint = "a skill that only users invoke has no activation to measure";
        new_failure(ProbeFailureKind::KeptFromModel, why, hint)
    })
}

/// The length of a description's beginning that is enough to recognise it when the rest was cut off.
const DESCRIPTION_START: usize = 40;

fn description_failure(wanted: &ProbedSkill<'_>) -> Option<ProbeFailure> {
    let name = wanted.name;
    let whole = collapse_spaces(wanted.description.unwrap_or_default());
    if whole.is_empty() {
        let why = format!("{name} has no description, so the model cannot know what it is for");
        let hint = "say in its frontmatter what it does and when to use it";
        return Some(new_failure(ProbeFailureKind::DescriptionMissing, why, hint));
    }
    let model_input_text = collapse_spaces(wanted.model_input?);
    if model_input_text.contains(&whole) {
        return None;
    }
    let beginning: String = whole.chars().take(DESCRIPTION_START).collect();
    let hint = "shorten the description, or stage fewer skills beside it: an agent shows its model only a limited length";
    Some(if model_input_text.contains(&beginning) {
        let why = format!("the model got only a part of the description of {name}");
        new_failure(ProbeFailureKind::DescriptionCut, why, hint)
    } else {
        let why = format!("the model did not get the description of {name}");
        new_failure(ProbeFailureKind::DescriptionMissing, why, hint)
    })
}

/// Shortens a text from the agent, which may be of any length.
fn shorten(text: &str) -> String {
    collapse_spaces(text).chars().take(LONGEST_EXCERPT).collect()
}

const LONGEST_EXCERPT: usize = 300;

/// Replaces line breaks and repeated spaces by one space, because agents wrap descriptions as they like.
fn collapse_spaces(text: &str) -> String {
    text.split_whitespace().collect::<Vec<&str>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use practicum_core::model::{ActivatedSkill, ActivationEvidence};

    const DESCRIPTION: &str = "Greets people by name. Use when asked to greet\n  someone in a polite way.";

    fn finished(listed: Option<&[&str]>) -> Observation {
        Observation {
            skills_listed: listed.map(|names| names.iter().map(|name| (*name).to_owned()).collect()),
            ..Observation::with_ending(AgentEnding::Finished)
        }
    }

    fn refused(by: SkillRefusalSource) -> Observation {
        let refused = RefusedSkill { skill: "greeter".into(), by, said: "no ".repeat(100_000) };
        Observation { refused: vec![refused], ..finished(Some(&["greeter"])) }
    }

    #[test]
    fn every_diagnosis_comes_from_what_was_seen() {
        use ProbeFailureKind::*;
        let greeter = ProbedSkill {
            name: "greeter",
            description: Some(DESCRIPTION),
            model_may_use: true,
            model_input: Some(
                "- greeter: Greets people by name. Use when asked to greet someone in a polite way.",
            ),
        };
        let undescribed = ProbedSkill { description: None, ..greeter };
        let reserved = ProbedSkill { model_may_use: false, ..greeter };
        let model_input_text = |model_input_text| ProbedSkill { model_input: model_input_text, ..greeter };
        let fired =
            ActivatedSkill { skill: "greeter".into(), plugin: None, evidence: ActivationEvidence::SkillTool };
        let taken = |ended| Observation { activated: vec![fired.clone()], ..Observation::with_ending(ended) };
        let command = Observation { commands_listed: vec!["greeter".into()], ..finished(Some(&[])) };
        let blind = Observation { hides_tools: true, ..finished(None) };
        for (seen, wanted, expected) in [
            (taken(AgentEnding::Finished), &greeter, None),
            // A probe asks only for activation, so a failure after it does not count.
            (taken(AgentEnding::TimedOut), &greeter, None),
            (finished(Some(&["doctor"])), &greeter, Some(NotVisible)),
            (finished(Some(&["plug:greeter"])), &greeter, Some(NotTaken)),
            (command, &greeter, Some(NotTaken)),
            (finished(None), &greeter, Some(NotTaken)),
            (refused(SkillRefusalSource::SkillTool), &greeter, Some(NameRejected)),
            (refused(SkillRefusalSource::Permissions), &greeter, Some(PermissionDenied)),
            (finished(None), &reserved, Some(KeptFromModel)),
            (finished(None), &undescribed, Some(DescriptionMissing)),
            (finished(None), &model_input_text(Some("use the skill greeter")), Some(DescriptionMissing)),
            (
                finished(None),
                &model_input_text(Some("- greeter: Greets people by name. Use when asked to gr…")),
                Some(DescriptionCut),
            ),
            (finished(None), &model_input_text(None), Some(NotTaken)),
            (blind, &greeter, Some(NotSeen)),
            (Observation::with_ending(AgentEnding::AuthFailed), &greeter, Some(NotLoggedIn)),
            (Observation::with_ending(AgentEnding::RateLimited), &greeter, Some(RateLimited)),
            (Observation::with_ending(AgentEnding::ApiFailed), &greeter, Some(ApiFailed)),
            (Observation::with_ending(AgentEnding::TimedOut), &greeter, Some(TimedOut)),
            (Observation::with_ending(AgentEnding::OverBudget), &greeter, Some(OverBudget)),
            (Observation::with_ending(AgentEnding::Crashed), &greeter, Some(AgentFailed)),
            (Observation::with_ending(AgentEnding::NotLaunched), &greeter, Some(AgentFailed)),
        ] {
            let found = diagnose_activation(&seen, wanted);
            assert!(found.iter().all(|trouble| trouble.why.len() < 500), "{found:?}");
            assert_eq!(found.map(|trouble| trouble.kind), expected);
        }
    }
}
