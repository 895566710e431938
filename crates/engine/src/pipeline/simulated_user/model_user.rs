//! Asks a model what the person that it plays says next.

use serde_json::{Value, json};

use super::Exchange;
use crate::grade::judge::{Judge, JudgeContext, StructuredAnswer, StructuredQuestion, shorten_text};
use practicum_agents::llm::ToolDefinition;
use practicum_core::model::{NotScoredReason, TokenUsage};

const REPLY_TOOL: &str = "reply_as_user";

/// The most bytes of one message of the agent that the model is shown.
const LONGEST_MESSAGE: usize = 16 * 1024;

const RULES: &str = "You play a person who has asked an AI agent to do something. You are not the agent, and you do not \
help it. Decide what the person does after the agent's last message.
- If the agent asks something, answer it as the person would, from the person's facts and messages alone.
- Say only what is asked for. Do not volunteer other facts, do not say what a good result looks like, invent nothing and \
write no code. Keep it short.
- If the agent proposes something or recommends an option and nothing you know speaks against it, accept it.
- If the agent has finished the work and waits for nothing, the verdict is \"done\". If there is a goal and the agent stops \
before it is reached, say what is missing, in the person's words.
- If the question cannot be answered without inventing something, the verdict is \"cannot_answer\".";

/// The person that a model plays, and the conversation before the agent's messages.
pub struct ModelUser<'m> {
    pub persona: Option<&'m str>,
    pub facts: &'m [String],
    pub goal: Option<&'m str>,
    pub prompts: &'m [String],
    /// The number of the repetition. Each has its own answers in the cache.
    pub attempt: u32,
}

/// What the person does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PersonAction {
    Answer(String),
    Done,
    /// The person cannot answer without inventing something, for this reason.
    CannotAnswer(String),
}

impl ModelUser<'_> {
    /// Gives everything that the person was told.
    pub fn known_texts(&self) -> String {
        let texts = self.prompts.iter().chain(self.facts).map(String::as_str);
        texts.chain(self.persona).chain(self.goal).collect::<Vec<&str>>().join("\n")
    }

    /// Asks the model. Also gives the tokens that it used.
    pub async fn ask(
        &self,
        judge: &Judge,
        context: &JudgeContext<'_>,
        exchanges: &[Exchange],
    ) -> (Result<PersonAction, NotScoredReason>, TokenUsage) {
        let question = self.question(exchanges);
        let StructuredAnswer { answer, usage } = judge.ask_structured(&question, &read_reply, context).await;
        (answer, usage)
    }

    fn question(&self, exchanges: &[Exchange]) -> StructuredQuestion {
        let mut exhibits = Vec::new();
        let mut show = |title: &str, text: String| exhibits.push((title.to_owned(), text));
        if let Some(persona) = self.persona {
            show("The person", persona.to_owned());
        }
        if !self.facts.is_empty() {
            let facts: Vec<String> = self.facts.iter().map(|fact| format!("- {fact}")).collect();
            show("What the person knows", facts.join("\n"));
        }
        if let Some(goal) = self.goal {
            show("What the person wants", goal.to_owned());
        }
        for prompt in self.prompts {
            show("The person said", prompt.clone());
        }
        for Exchange { agent, reply } in exchanges {
            show("The agent said", shorten_text(agent, LONGEST_MESSAGE));
            if let Some(reply) = reply {
                show("The person said", reply.clone());
            }
        }
        StructuredQuestion {
            rules: RULES.to_owned(),
            exhibits,
            task: format!("Report what the person does after the agent's last message, with {REPLY_TOOL}."),
            form: ToolDefinition {
                name: REPLY_TOOL.to_owned(),
                description: "Report what the person does next.".to_owned(),
                input_schema: json!({
                    "type": "object",
                    "additionalProperties": false,
                    "required": ["verdict", "message", "reason"],
                    "properties": {
                        "verdict": {"type": "string", "enum": ["answer", "done", "cannot_answer"]},
                        "message": {"type": "string", "description": "What the person says; empty unless the verdict is answer."},
                        "reason": {"type": "string", "description": "Why, in one short sentence."},
                    },
                }),
            },
            round: self.attempt,
        }
    }
}

fn read_reply(answer: &Value) -> Result<PersonAction, String> {
    let text = |key: &str| answer[key].as_str().map(str::trim).unwrap_or_default().to_owned();
    match answer["verdict"].as_str() {
        Some("answer") => Ok(PersonAction::Answer(text("message"))),
        Some("done") => Ok(PersonAction::Done),
        Some("cannot_answer") => Ok(PersonAction::CannotAnswer(text("reason"))),
        _ => Err("\"verdict\" must be answer, done or cannot_answer".to_owned()),
    }
}
