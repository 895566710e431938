//! Predicts which skills would be activated, from their descriptions alone and without running an agent. A
//! prediction is cheap, but an agent may do something else.

use serde_json::{Value, json};

use super::{Judge, JudgeContext, JudgeResult, JudgeVerdict, StructuredQuestion};
use practicum_agents::llm::ToolDefinition;
use practicum_core::model::{ActivationCheck, ActivationSource, Check, CheckFinding, CheckKind};
use practicum_evals::checks::check_prediction;

/// The tool with which a model reports its choice over an API.
const CHOICE_TOOL: &str = "report_choice";

/// A skill as an agent is offered it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedSkill {
    pub name: String,
    pub description: String,
}

/// The situation of an agent: the skills that it is offered, and what the user says.
#[derive(Debug, Clone, Default)]
pub struct PredictionInput {
    pub skills: Vec<OfferedSkill>,
    pub turns: Vec<String>,
}

/// Gives the activation check of a check, if a model is to predict the activation.
pub fn predicted_activation(check: &Check) -> Option<&ActivationCheck> {
    match &check.kind {
        CheckKind::Activation(activation) => {
            Some(activation).filter(|asked| asked.source == ActivationSource::Predicted)
        }
        CheckKind::Rule(_) | CheckKind::Judged(_) | CheckKind::Sections(_) => None,
    }
}

/// The skills that the model would activate, and why.
struct SkillChoice {
    skills: Vec<String>,
    reasoning: String,
}

impl Judge {
    /// Asks one question for all checks, because they are about the same situation.
    pub(super) async fn predict_activation(
        &self,
        asked: &[(&str, &ActivationCheck)],
        situation: &PredictionInput,
        sitting: &JudgeContext<'_>,
    ) -> JudgeResult {
        let read = |answer: &Value| read_choice(answer, &situation.skills);
        let consulted = self.ask_structured(&prediction_question(situation), &read, sitting).await;
        let verdict_of = |(id, activation): &(&str, &ActivationCheck)| {
            let finding = match &consulted.answer {
                Ok(SkillChoice { skills, reasoning }) => check_prediction(activation, skills, reasoning),
                Err(why) => CheckFinding::not_scored(why.clone()),
            };
            JudgeVerdict::new(id, id, finding)
        };
        let verdicts = asked.iter().map(verdict_of).collect();
        let chosen = consulted.answer.ok().map(|choice| choice.skills);
        JudgeResult { verdicts, predicted_skills: chosen, usage: consulted.usage, ..JudgeResult::default() }
    }
}

fn prediction_question(situation: &PredictionInput) -> StructuredQuestion {
    let skills: Vec<String> = situation
        .skills
        .iter()
        .map(|OfferedSkill { name, description }| {
            format!("- {name}: {}", description.trim().replace('\n', " "))
        })
        .collect();
    let text = json!({"type": "string"});
    StructuredQuestion {
        rules: "\
You predict what an AI agent does. It has skills, of which it knows the name and the description, and it \
takes one up before it answers where the description fits what the user wants.

Rules:
- Name the skills that the agent would activate, by the names in the list. Most often that is one or none.
- Decide by the descriptions alone, and not by what a skill might also be good for.
- Answer once, in the given form, and nothing else."
            .to_owned(),
        exhibits: vec![
            ("The skills".to_owned(), skills.join("\n")),
            ("What the user says".to_owned(), situation.turns.join("\n\n")),
        ],
        task: "Which skills would the agent activate? Answer with JSON of the form {\"skills\": [names], \
                 \"reasoning\": text}; without any, the list is empty."
            .to_owned(),
        form: ToolDefinition {
            name: CHOICE_TOOL.to_owned(),
            description: "Report the skills that would be activated.".to_owned(),
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

/// Reads a choice of skills. A skill that was not offered is an error: a model that names one has not read the
/// list.
fn read_choice(answer: &Value, offered: &[OfferedSkill]) -> Result<SkillChoice, String> {
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
    Ok(SkillChoice { skills, reasoning })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_offered_can_be_chosen() {
        let offered =
            ["greeter", "doctor"].map(|name| OfferedSkill { name: name.into(), description: "".into() });
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
            let found = read_choice(&answer, &offered).ok().map(|choice| choice.skills);
            assert_eq!(
                found,
                expected.map(|names| names.into_iter().map(str::to_owned).collect()),
                "{answer}"
            );
        }
    }

    #[test]
    fn the_question_shows_names_and_descriptions_and_nothing_of_what_is_expected() {
        let situation = PredictionInput {
            skills: vec![OfferedSkill { name: "greeter".into(), description: "Greets\npeople.".into() }],
            turns: vec!["Say hello.".to_owned()],
        };
        let asked = prediction_question(&situation);
        assert_eq!(asked.exhibits[0].1, "- greeter: Greets people.");
        assert_eq!(asked.exhibits[1].1, "Say hello.");
    }
}
