//! Asks a model to say the prompt of a case in other words, for a person to review.

use serde_json::{Value, json};

use super::answer_forms::closed_object;
use super::{Adviser, AdviserAnswer};
use practicum_agents::llm::ToolDefinition;
use practicum_engine::grade::judge::StructuredQuestion;

const RULES: &str = "\
You are shown what a user says to an agent. You write the same request as other users would say it.

Rules:
- Each rewording asks for exactly the same: names, numbers, paths, quoted texts and conditions stay as they are, and \
nothing is added or left out.
- Rewordings differ from each other: in length, in tone, in order, in how much the user knows.
- None of them names a skill or a tool that the original does not name.
- They are in the language of the original.";

/// The longest rewording that is kept, as a multiple of the original and in characters beyond it.
const LONGEST_FACTOR: usize = 4;
const LONGEST_EXTRA: usize = 400;

/// Asks for this many rewordings of the first message of a case.
pub async fn propose_rewordings(
    adviser: &Adviser,
    case: &str,
    message: &str,
    skills: &[String],
    count: u32,
) -> AdviserAnswer<Vec<String>> {
    let inquiry = StructuredQuestion {
        rules: RULES.to_owned(),
        exhibits: vec![("The request".to_owned(), message.to_owned())],
        task: format!("Write {count} rewordings. Answer with JSON of the form {{\"rewordings\": [\"…\"]}}."),
        form: ToolDefinition {
            name: "write_rewordings".to_owned(),
            description: "Write the request in other words.".to_owned(),
            input_schema: closed_object(
                json!({"rewordings": {"type": "array", "items": {"type": "string"}}}),
            ),
        },
        round: 0,
    };
    let read = |answer: &Value| {
        let texts = answer["rewordings"].as_array().ok_or("\"rewordings\" must be a list of texts")?;
        let texts = texts.iter().filter_map(Value::as_str).map(|text| text.trim().to_owned());
        let kept = keep_usable(message, texts, skills, count as usize);
        match kept.is_empty() {
            true => Err("no rewording is left that is new and names no skill".to_owned()),
            false => Ok(kept),
        }
    };
    adviser.ask_as(&format!("rewordings of {case}"), &inquiry, &read).await
}

/// Keeps the rewordings that differ from the original and from each other, and name no skill that the original does not
/// name: such a prompt measures nothing.
fn keep_usable(
    message: &str,
    texts: impl Iterator<Item = String>,
    skills: &[String],
    count: usize,
) -> Vec<String> {
    let named = |text: &str, skill: &String| text.to_lowercase().contains(&skill.to_lowercase());
    let longest = message.chars().count() * LONGEST_FACTOR + LONGEST_EXTRA;
    let mut kept: Vec<String> = Vec::new();
    for text in texts {
        let names_skill = skills.iter().any(|skill| named(&text, skill) && !named(message, skill));
        let is_new = text != message.trim() && !kept.contains(&text);
        if is_new && !names_skill && (1..=longest).contains(&text.chars().count()) {
            kept.push(text);
        }
    }
    kept.truncate(count);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rewording_that_names_the_skill_or_changes_nothing_is_dropped() {
        let texts = [
            "Greet Alice.",
            "",
            "Say hi to Alice.",
            "Use greeter for Alice.",
            "Say hi to Alice.",
            "Hello for Alice, please.",
        ];
        let keep = |message: &str, count| {
            keep_usable(message, texts.iter().map(|text| (*text).to_owned()), &["Greeter".to_owned()], count)
        };
        assert_eq!(keep("Greet Alice.", 9), ["Say hi to Alice.", "Hello for Alice, please."]);
        assert_eq!(keep("Greet Alice.", 1), ["Say hi to Alice."]);
        assert_eq!(keep("Run greeter.", 9).len(), 4, "the original names it, too");
    }
}
