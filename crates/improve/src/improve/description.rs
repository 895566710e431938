//! Asks for a new description of a skill, as an edit of its frontmatter.

use std::path::Path;

use serde_json::{Value, json};

use super::answer_forms::{closed_object, text_of};
use super::edits::EditSuggestion;
use super::failures::FailedChecks;
use super::{Adviser, AdviserAnswer};
use practicum_agents::llm::ToolDefinition;
use practicum_core::model::Diagnostics;
use practicum_engine::grade::judge::StructuredQuestion;
use practicum_skills::skill::{SKILL_FILE, read_frontmatter, split_frontmatter};

const RULES: &str = "\
You write descriptions of agent skills. An agent reads only names and descriptions when it decides which \
skill to activate, so a description must say what the skill does and when to use it, in words that users use.

Rules:
- You are shown the skill and the requests for which it was activated and should not have been, or should \
have been and was not. Mend the cause.
- Do not list the requests you were shown: others like them will be tried. Do not describe how the skill \
works inside.
- As short as can be, at most 1024 characters, in the third person.";

/// The longest description that the specification allows.
const LONGEST_DESCRIPTION: usize = 1024;

/// Asks for a better description of the skill with this SKILL.md.
pub async fn suggest_description(
    adviser: &Adviser,
    text: &str,
    failures: &FailedChecks,
    round: u32,
) -> AdviserAnswer<EditSuggestion> {
    let mut exhibits = vec![("The skill".to_owned(), text.to_owned())];
    exhibits.extend(failures.exhibits());
    let inquiry = StructuredQuestion {
        rules: RULES.to_owned(),
        exhibits,
        task: "Propose a description for the skill. Answer with JSON of the form {\"description\", \
                 \"reasoning\"}."
            .to_owned(),
        form: ToolDefinition {
            name: "propose_description".to_owned(),
            description: "Propose a description for the skill.".to_owned(),
            input_schema: closed_object(
                json!({"description": {"type": "string"}, "reasoning": {"type": "string"}}),
            ),
        },
        round,
    };
    let read = |answer: &Value| {
        let description = text_of(answer, "description")?;
        let length = description.trim().chars().count();
        if !(1..=LONGEST_DESCRIPTION).contains(&length) {
            return Err(format!("\"description\" must have 1 to {LONGEST_DESCRIPTION} characters"));
        }
        let before = description_lines(text).ok_or("the skill has no description to replace")?;
        // A JSON string is also a valid YAML string.
        let after = format!("description: {}\n", Value::from(description.trim()));
        let reasoning = text_of(answer, "reasoning")?;
        Ok(EditSuggestion { area: "description".to_owned(), before, after, reasoning })
    };
    adviser.ask_as(&format!("describe {round}"), &inquiry, &read).await
}

/// Gives the lines of the frontmatter that hold the description.
fn description_lines(text: &str) -> Option<String> {
    let front = split_frontmatter(text).0?;
    let mut diagnostics = Diagnostics::default();
    let root = read_frontmatter(Path::new(SKILL_FILE), front, &mut diagnostics)?;
    let entries = root.as_map()?;
    let at = entries.iter().position(|entry| entry.key == "description")?;
    let end = entries.get(at + 1).map_or(front.len(), |next| next.key_span.start);
    front.get(entries[at].key_span.start..end).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_is_found_however_it_is_written() {
        for (text, expected) in [
            ("---\nname: a\ndescription: b\nlicense: c\n---\nbody", Some("description: b\n")),
            ("---\nname: a\ndescription: b\n---\nbody", Some("description: b\n")),
            ("---\ndescription: >-\n  one\n  two\nname: a\n---\n", Some("description: >-\n  one\n  two\n")),
            ("---\n\"description\": 'b'\nname: a\n---\n", Some("\"description\": 'b'\n")),
            ("---\nname: a\n---\n", None),
            ("no front", None),
        ] {
            assert_eq!(description_lines(text).as_deref(), expected, "{text}");
        }
    }
}
