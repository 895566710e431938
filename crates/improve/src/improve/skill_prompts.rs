//! Asks a model for prompts that should activate a skill, for a person to review.

use serde_json::{Value, json};

use super::answer_forms::closed_object;
use super::{Adviser, AdviserAnswer};
use practicum_agents::llm::ToolDefinition;
use practicum_engine::grade::judge::StructuredQuestion;
use practicum_skills::skill::Skill;

const RULES: &str = "\
You write what users of an agent say. You are shown the name and the description of one of many skills of the agent, and you \
write requests for which this skill, and no other, is the right one.

Rules:
- A request never names the skill, and does not repeat the words of its description where users would say it otherwise.
- Requests differ from each other: in length, in tone, in how much the user knows.
- Each is complete: no placeholders, no questions back.";

/// The longest prompt that is kept.
const LONGEST_PROMPT: usize = 2_000;

/// Asks for this many prompts that should activate a skill.
pub async fn propose_skill_prompts(
    adviser: &Adviser,
    skill: &Skill,
    count: u32,
) -> AdviserAnswer<Vec<String>> {
    let description = skill.description.clone().unwrap_or_default();
    let inquiry = StructuredQuestion {
        rules: RULES.to_owned(),
        exhibits: vec![("The skill".to_owned(), format!("name: {}\ndescription: {description}", skill.name))],
        task: format!("Write {count} requests. Answer with JSON of the form {{\"prompts\": [\"…\"]}}."),
        form: ToolDefinition {
            name: "write_prompts".to_owned(),
            description: "Write requests of users for the skill.".to_owned(),
            input_schema: closed_object(json!({"prompts": {"type": "array", "items": {"type": "string"}}})),
        },
        round: 0,
    };
    let name = skill.name.to_lowercase();
    let read = |answer: &Value| {
        let prompts = answer["prompts"].as_array().ok_or("\"prompts\" must be a list of texts")?;
        let mut kept: Vec<String> = Vec::new();
        for prompt in prompts.iter().filter_map(Value::as_str).map(str::trim) {
            // A prompt that names the skill measures nothing.
            let is_fit = (1..=LONGEST_PROMPT).contains(&prompt.chars().count())
                && !prompt.to_lowercase().contains(&name)
                && !kept.iter().any(|known| known == prompt);
            if is_fit {
                kept.push(prompt.to_owned());
            }
        }
        kept.truncate(count as usize);
        match kept.is_empty() {
            true => Err("no prompt is left that is not empty and does not name the skill".to_owned()),
            false => Ok(kept),
        }
    };
    adviser.ask_as(&format!("prompts for {}", skill.name), &inquiry, &read).await
}
