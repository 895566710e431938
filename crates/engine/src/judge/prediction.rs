//! Which skills would be taken up: a guess from their descriptions, made without letting anyone do
//! anything. It is cheap, and it is not what an agent does.

use serde_json::{Value, json};

use super::{Inquiry, Judge, Mark, Marks, Sitting};
use practicum_agents::llm::Tool;
use practicum_core::model::{Activation, By, Check, CheckKind, Finding};
use practicum_evals::score::mark_prediction;

/// The tool that the choice is reported with, where it is asked for over an API.
const CHOICE_TOOL: &str = "report_choice";

/// A skill as agents are offered it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offered {
    pub name: String,
    pub description: String,
}

/// What an agent would have before it: the skills, and what the user says.
#[derive(Debug, Clone, Default)]
pub struct Situation {
    pub offered: Vec<Offered>,
    pub turns: Vec<String>,
}

/// What is to be predicted by a check, if anything is.
pub fn predicted(check: &Check) -> Option<&Activation> {
    match &check.kind {
        CheckKind::Activation(activation) => Some(activation).filter(|asked| asked.by == By::Predicted),
        CheckKind::Exact(_) | CheckKind::Judged(_) | CheckKind::Sections(_) => None,
    }
}

/// The skills that would be taken up, and why.
struct Choice {
    skills: Vec<String>,
    reasoning: String,
}

impl Judge {
    /// Asks once for all checks, since it is one situation.
    pub(super) async fn predict(
        &self,
        asked: &[(&str, &Activation)],
        situation: &Situation,
        sitting: &Sitting<'_>,
    ) -> Marks {
        let read = |answer: &Value| choice(answer, &situation.offered);
        let consulted = self.consult(&inquiry(situation), &read, sitting).await;
        let mark = |(id, activation): &(&str, &Activation)| {
            let finding = match &consulted.answer {
                Ok(Choice { skills, reasoning }) => mark_prediction(activation, skills, reasoning),
                Err(why) => Finding::not_scored(why.clone()),
            };
            Mark::new(id, id, finding)
        };
        let marks = asked.iter().map(mark).collect();
        let chosen = consulted.answer.ok().map(|choice| choice.skills);
        Marks { marks, chosen, usage: consulted.usage, ..Marks::default() }
    }
}

fn inquiry(situation: &Situation) -> Inquiry {
    let skills: Vec<String> = situation
        .offered
        .iter()
        .map(|Offered { name, description }| format!("- {name}: {}", description.trim().replace('\n', " ")))
        .collect();
    let text = json!({"type": "string"});
    Inquiry {
        rules: "\
You predict what an AI agent does. It has skills, of which it knows the name and the description, and it \
takes one up before it answers where the description fits what the user wants.

Rules:
- Name the skills that the agent would take up, by the names in the list. Most often that is one or none.
- Decide by the descriptions alone, and not by what a skill might also be good for.
- Answer once, in the given form, and nothing else."
            .to_owned(),
        exhibits: vec![
            ("The skills".to_owned(), skills.join("\n")),
            ("What the user says".to_owned(), situation.turns.join("\n\n")),
        ],
        wanted: "Which skills would the agent take up? Answer with JSON of the form {\"skills\": [names], \
                 \"reasoning\": text}; without any, the list is empty."
            .to_owned(),
        form: Tool {
            name: CHOICE_TOOL.to_owned(),
            description: "Report the skills that would be taken up.".to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {"skills": {"type": "array", "items": text}, "reasoning": text},
                "required": ["skills", "reasoning"],
                "additionalProperties": false,
            }),
        },
        round: 0,
    }
}

/// A skill that is not in the list cannot be taken up, so whoever names one has not read it.
fn choice(answer: &Value, offered: &[Offered]) -> Result<Choice, String> {
    let names = answer["skills"].as_array().ok_or("\"skills\" must be a list of names")?;
    let mut skills = Vec::new();
    for name in names {
        let name = name.as_str().ok_or("\"skills\" must be a list of names")?;
        // Agents know the skills of a plugin by both names.
        let own = name.rsplit(':').next().unwrap_or(name);
        match offered.iter().find(|skill| skill.name == name || skill.name == own) {
            Some(skill) => skills.push(skill.name.clone()),
            None => return Err(format!("there is no skill {name:?}")),
        }
    }
    let reasoning = answer["reasoning"].as_str().ok_or("\"reasoning\" must be text")?.to_owned();
    Ok(Choice { skills, reasoning })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_offered_can_be_chosen() {
        let offered = ["greeter", "doctor"].map(|name| Offered { name: name.into(), description: "".into() });
        for (answer, expected) in [
            (json!({"skills": [], "reasoning": "r"}), Some(vec![])),
            (json!({"skills": ["greeter"], "reasoning": ""}), Some(vec!["greeter"])),
            (
                json!({"skills": ["harbour:doctor", "greeter"], "reasoning": ""}),
                Some(vec!["doctor", "greeter"]),
            ),
            (json!({"skills": ["baker"], "reasoning": ""}), None),
            (json!({"skills": "greeter", "reasoning": ""}), None),
            (json!({"skills": [1], "reasoning": ""}), None),
            (json!({"skills": []}), None),
        ] {
            let found = choice(&answer, &offered).ok().map(|choice| choice.skills);
            assert_eq!(
                found,
                expected.map(|names| names.into_iter().map(str::to_owned).collect()),
                "{answer}"
            );
        }
    }

    #[test]
    fn the_question_shows_names_and_descriptions_and_nothing_of_what_is_expected() {
        let situation = Situation {
            offered: vec![Offered { name: "greeter".into(), description: "Greets\npeople.".into() }],
            turns: vec!["Say hello.".to_owned()],
        };
        let asked = inquiry(&situation);
        assert_eq!(asked.exhibits[0].1, "- greeter: Greets people.");
        assert_eq!(asked.exhibits[1].1, "Say hello.");
    }
}
