//! Why an agent that was told to use a skill did not.
//!
//! In: what was seen of that run, what the skill's own file says, what the model was told. Out: a
//! `Trouble`, or none if the skill was taken up. Never: runs anything; guesses from what an agent says
//! of itself.

use practicum_core::model::{Ended, Fired, Observation, Refused, RefusedBy, Trouble, TroubleKind};

/// The words of a probe. Taking the skill up is all that is wanted of it, so that it costs little.
pub fn prompt(skill: &str) -> String {
    format!(
        "Use the skill {skill}. This only tries whether it can be taken up: take it up, do none of its \
         work, and answer \"ready\"."
    )
}

/// The skill that the agent was told to use.
pub struct Wanted<'w> {
    /// The name it has in the room.
    pub name: &'w str,
    pub description: Option<&'w str>,
    /// Whether its frontmatter lets the model take it up.
    pub model_may_use: bool,
    /// All that the model was told; `None` where nobody listened.
    pub told: Option<&'w str>,
}

/// What kept the skill from being taken up. `None` if it was.
pub fn diagnose(seen: &Observation, wanted: &Wanted<'_>) -> Option<Trouble> {
    let Wanted { name, .. } = wanted;
    let unseen = match seen.fired(name) {
        Fired::Yes(_) => return None,
        Fired::Unknown(why) => Some(why),
        Fired::No => None,
    };
    let trouble = of_ending(seen)
        .or_else(|| of_listing(seen, name))
        .or_else(|| of_reservation(wanted))
        .or_else(|| of_refusal(&seen.refused, name))
        .or_else(|| {
            let why = format!("whether {name} was taken up cannot be seen: {}", unseen?);
            let hint = "give the agent a decoder that shows tool calls, or choose cases that are not about \
                        activation with --case";
            Some(trouble(TroubleKind::NotSeen, why, hint))
        })
        .or_else(|| of_description(wanted))
        .unwrap_or_else(|| {
            let why = format!("{name} could be taken up, and the model did not do it when told to");
            let hint = "read the probe's transcript, or measure without it with --no-probe";
            trouble(TroubleKind::NotTaken, why, hint)
        });
    Some(trouble)
}

fn trouble(kind: TroubleKind, why: String, hint: &str) -> Trouble {
    Trouble { kind, why, hint: hint.to_owned() }
}

/// A run that did not come to its end says nothing else.
fn of_ending(seen: &Observation) -> Option<Trouble> {
    let (kind, hint) = match seen.ended {
        Ended::Finished => return None,
        Ended::AuthFailed => (TroubleKind::NotLoggedIn, "log the agent in; practicum doctor says how"),
        Ended::RateLimited => (TroubleKind::RateLimited, "wait, then go on with practicum run --resume"),
        Ended::ApiFailed => (TroubleKind::ApiFailed, "wait, then go on with practicum run --resume"),
        Ended::TimedOut => (TroubleKind::TimedOut, "give it more time with --timeout"),
        Ended::OverBudget => (TroubleKind::OverBudget, "give it a larger budget"),
        Ended::AskedUser
        | Ended::Crashed
        | Ended::NotLaunched
        | Ended::NotStarted
        | Ended::SetupFailed
        | Ended::Cancelled => (TroubleKind::AgentFailed, "read the probe's transcript and standard error"),
    };
    let because = seen.ended_because.as_ref().map_or_else(String::new, |why| format!(" ({})", short(why)));
    Some(trouble(kind, format!("{}{because}", seen.ended.in_words()), hint))
}

fn of_listing(seen: &Observation, name: &str) -> Option<Trouble> {
    let listed = seen.skills_listed.as_ref()?;
    // A skill staged as a command file is listed as a command.
    let mut names = listed.iter().chain(&seen.commands_listed);
    let is_there = names.any(|known| known == name || known.rsplit(':').next() == Some(name));
    (!is_there).then(|| {
        let why = format!("the agent does not see {name}: its own list of skills lacks it");
        let hint = "practicum lint says what agents refuse in a SKILL.md";
        trouble(TroubleKind::NotVisible, why, hint)
    })
}

fn of_refusal(refused: &[Refused], name: &str) -> Option<Trouble> {
    let refused = refused.iter().find(|refused| refused.skill == name).or(refused.first())?;
    let (asked, said) = (short(&refused.skill), short(&refused.said));
    Some(match refused.by {
        RefusedBy::Permissions => trouble(
            TroubleKind::PermissionDenied,
            format!("the agent may not use {asked}: {said}"),
            "let the agent use skills without asking",
        ),
        RefusedBy::SkillTool => trouble(
            TroubleKind::NameRejected,
            format!("the agent called for {asked}, and its skill tool refused: {said}"),
            "make the name in the SKILL.md that of its folder; practicum lint says what agents refuse",
        ),
    })
}

fn of_reservation(wanted: &Wanted<'_>) -> Option<Trouble> {
    let name = wanted.name;
    (!wanted.model_may_use).then(|| {
        let why = format!("the frontmatter of {name} keeps it from the model (disable-model-invocation)");
        let hint = "a skill that only users invoke has no activation to measure";
        trouble(TroubleKind::KeptFromModel, why, hint)
    })
}

/// How much of a description's beginning shows that the rest was cut off.
const BEGINNING: usize = 40;

fn of_description(wanted: &Wanted<'_>) -> Option<Trouble> {
    let name = wanted.name;
    let whole = one_spaced(wanted.description.unwrap_or_default());
    if whole.is_empty() {
        let why = format!("{name} has no description, so the model cannot know what it is for");
        let hint = "say in its frontmatter what it does and when to use it";
        return Some(trouble(TroubleKind::DescriptionMissing, why, hint));
    }
    let told = one_spaced(wanted.told?);
    if told.contains(&whole) {
        return None;
    }
    let beginning: String = whole.chars().take(BEGINNING).collect();
    let hint = "shorten the description, or stage fewer skills beside it: agents have room for so much";
    Some(if told.contains(&beginning) {
        let why = format!("the model was told only a part of the description of {name}");
        trouble(TroubleKind::DescriptionCut, why, hint)
    } else {
        let why = format!("the model was not told the description of {name}");
        trouble(TroubleKind::DescriptionMissing, why, hint)
    })
}

/// What an agent was told may be of any length.
fn short(text: &str) -> String {
    one_spaced(text).chars().take(LONGEST_TOLD).collect()
}

const LONGEST_TOLD: usize = 300;

/// Agents fold the lines of a description as they like.
fn one_spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<&str>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use practicum_core::model::{Activated, ActivationEvidence};

    const DESCRIPTION: &str = "Greets people by name. Use when asked to greet\n  someone in a polite way.";

    fn finished(listed: Option<&[&str]>) -> Observation {
        Observation {
            skills_listed: listed.map(|names| names.iter().map(|name| (*name).to_owned()).collect()),
            ..Observation::ended(Ended::Finished)
        }
    }

    fn refused(by: RefusedBy) -> Observation {
        let refused = Refused { skill: "greeter".into(), by, said: "no ".repeat(100_000) };
        Observation { refused: vec![refused], ..finished(Some(&["greeter"])) }
    }

    #[test]
    fn every_diagnosis_comes_from_what_was_seen() {
        use TroubleKind::*;
        let greeter = Wanted {
            name: "greeter",
            description: Some(DESCRIPTION),
            model_may_use: true,
            told: Some("- greeter: Greets people by name. Use when asked to greet someone in a polite way."),
        };
        let undescribed = Wanted { description: None, ..greeter };
        let reserved = Wanted { model_may_use: false, ..greeter };
        let told = |told| Wanted { told, ..greeter };
        let fired =
            Activated { skill: "greeter".into(), plugin: None, evidence: ActivationEvidence::SkillTool };
        let taken = |ended| Observation { activated: vec![fired.clone()], ..Observation::ended(ended) };
        let command = Observation { commands_listed: vec!["greeter".into()], ..finished(Some(&[])) };
        let blind = Observation { hides_tools: true, ..finished(None) };
        for (seen, wanted, expected) in [
            (taken(Ended::Finished), &greeter, None),
            // What came after it was taken up is not what was asked.
            (taken(Ended::TimedOut), &greeter, None),
            (finished(Some(&["doctor"])), &greeter, Some(NotVisible)),
            (finished(Some(&["plug:greeter"])), &greeter, Some(NotTaken)),
            (command, &greeter, Some(NotTaken)),
            (finished(None), &greeter, Some(NotTaken)),
            (refused(RefusedBy::SkillTool), &greeter, Some(NameRejected)),
            (refused(RefusedBy::Permissions), &greeter, Some(PermissionDenied)),
            (finished(None), &reserved, Some(KeptFromModel)),
            (finished(None), &undescribed, Some(DescriptionMissing)),
            (finished(None), &told(Some("use the skill greeter")), Some(DescriptionMissing)),
            (
                finished(None),
                &told(Some("- greeter: Greets people by name. Use when asked to gr…")),
                Some(DescriptionCut),
            ),
            (finished(None), &told(None), Some(NotTaken)),
            (blind, &greeter, Some(NotSeen)),
            (Observation::ended(Ended::AuthFailed), &greeter, Some(NotLoggedIn)),
            (Observation::ended(Ended::RateLimited), &greeter, Some(RateLimited)),
            (Observation::ended(Ended::ApiFailed), &greeter, Some(ApiFailed)),
            (Observation::ended(Ended::TimedOut), &greeter, Some(TimedOut)),
            (Observation::ended(Ended::OverBudget), &greeter, Some(OverBudget)),
            (Observation::ended(Ended::Crashed), &greeter, Some(AgentFailed)),
            (Observation::ended(Ended::NotLaunched), &greeter, Some(AgentFailed)),
        ] {
            let found = diagnose(&seen, wanted);
            assert!(found.iter().all(|trouble| trouble.why.len() < 500), "{found:?}");
            assert_eq!(found.map(|trouble| trouble.kind), expected);
        }
    }
}
