//! Drafts a first skill from evals that exist before it.

use serde_json::{Value, json};

use super::answer_forms::{closed_object, text_of};
use super::stored_run::user_prompt;
use super::{Adviser, AdviserAnswer};
use practicum_agents::llm::ToolDefinition;
use practicum_core::model::{Case, CheckKind, Suite};
use practicum_engine::grade::judge::{StructuredQuestion, shorten_text};

/// A skill that a model drafted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DraftedSkill {
    pub description: String,
    pub body: String,
}

impl DraftedSkill {
    /// Gives the SKILL.md of the skill under this name.
    pub fn skill_md(&self, name: &str) -> String {
        // A JSON string is also a valid YAML string.
        let (name, description) = (Value::from(name), Value::from(self.description.as_str()));
        format!("---\nname: {name}\ndescription: {description}\n---\n\n{}\n", self.body.trim())
    }
}

const RULES: &str = "\
You write agent skills: texts that tell an AI agent how to do a kind of work. There is no skill yet. You are \
shown evals: what users ask, and what is expected of the answer.

Rules:
- Write what an agent has to know and do to meet such expectations, for all requests of this kind. Never write \
the answer to a request that you were shown into the skill: other requests will be tried.
- The description says what the skill does and when to use it, in the third person and in words that users \
use, in at most 1024 characters. It does not say how the skill works.
- The body is Markdown, short and concrete, without frontmatter.";

/// The longest description that the specification allows.
const LONGEST_DESCRIPTION: usize = 1024;
const LONGEST_CASE: usize = 8_000;
const LONGEST_EVALS: usize = 120_000;

/// Asks for a skill that would pass the evals. `wish` is what else the user wants of it.
pub async fn draft_skill(
    adviser: &Adviser,
    name: &str,
    suites: &[Suite],
    wish: Option<&str>,
) -> AdviserAnswer<DraftedSkill> {
    let cases: Vec<String> = suites.iter().flat_map(|suite| &suite.cases).map(describe_case).collect();
    let mut exhibits = vec![("The evals".to_owned(), shorten_text(&cases.join("\n\n"), LONGEST_EVALS))];
    exhibits.extend(wish.map(|wish| ("What the author wants".to_owned(), wish.to_owned())));
    let text = json!({"type": "string"});
    let inquiry = StructuredQuestion {
        rules: RULES.to_owned(),
        exhibits,
        task: format!(
            "Draft the skill {name:?}. Answer with JSON of the form {{\"description\": text, \"body\": text}}."
        ),
        form: ToolDefinition {
            name: "draft_skill".to_owned(),
            description: "Draft the skill.".to_owned(),
            input_schema: closed_object(json!({"description": text, "body": text})),
        },
        round: 0,
    };
    adviser.ask_as("create", &inquiry, &read).await
}

fn read(answer: &Value) -> Result<DraftedSkill, String> {
    let text = |key: &str| text_of(answer, key).map(|text| text.trim().to_owned());
    let drafted = DraftedSkill { description: text("description")?, body: text("body")? };
    if !(1..=LONGEST_DESCRIPTION).contains(&drafted.description.chars().count()) {
        return Err(format!("\"description\" must have 1 to {LONGEST_DESCRIPTION} characters"));
    }
    if drafted.body.is_empty() || drafted.body.starts_with("---") {
        return Err("\"body\" must be Markdown without frontmatter, and not empty".to_owned());
    }
    Ok(drafted)
}

/// Describes what a case asks and expects.
fn describe_case(case: &Case) -> String {
    let expected = case.checks.iter().filter_map(|check| match &check.kind {
        CheckKind::Judged(judged) => Some(judged.statement.clone()),
        CheckKind::Rule(rule) => Some(format!("{}: {}", rule.key(), rule.value())),
        CheckKind::Sections(_) | CheckKind::Activation(_) => None,
    });
    let expected: Vec<String> = expected.chain(case.context.clone()).collect();
    shorten_text(
        &format!("case {}\nasked:\n{}\nexpected:\n{}", case.id, user_prompt(case), expected.join("\n")),
        LONGEST_CASE,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_without_a_description_or_body_is_none() {
        let ok = json!({"description": "Says hello: to all.", "body": "Say hello."});
        let drafted = read(&ok).expect("a draft");
        assert_eq!(
            drafted.skill_md("greeter"),
            "---\nname: \"greeter\"\ndescription: \"Says hello: to all.\"\n---\n\nSay hello.\n"
        );
        for (description, body) in [("", "b"), ("d", " "), ("d", "---\nname: x\n---\n")] {
            assert!(
                read(&json!({"description": description, "body": body})).is_err(),
                "{description} {body}"
            );
        }
    }
}
