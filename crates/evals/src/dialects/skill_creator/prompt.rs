//! Reads what the user says in a case: one message, several, or messages that depend on the agent.

use super::super::reading::case_keys::{PROMPT_KEYS, TURN_KEYS};
use crate::checks::decode_pattern;
use practicum_core::model::{
    DEFAULT_USER_TURNS, Diagnostics, ReplyCondition, ScriptedAnswer, SimulatedUser, UserPersona,
};
use practicum_core::tree::{NodeData, ObjectReader, TreeNode, report_wrong_type};

/// The messages of the user, who answers after them, and why this version cannot send them, if it cannot.
pub struct PromptReading {
    pub turns: Vec<String>,
    pub user: Option<SimulatedUser>,
    pub unsupported: Option<String>,
}

/// What stands for a blank prompt. No agent is ever asked it.
const BLANK_PROMPT: &str = "(blank)";

/// Reads the messages of a case. Reports if there is none.
pub fn read_prompt(case: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) -> Option<PromptReading> {
    let given = |key: &str| case.peek(key).is_some_and(|node| !node.is_null());
    let key = PROMPT_KEYS.into_iter().find(|key| given(key));
    let turn_keys: Vec<&'static str> = TURN_KEYS.into_iter().filter(|key| given(key)).collect();
    let mut reading = PromptReading { turns: Vec::new(), user: None, unsupported: None };
    match key.and_then(|key| Some((key, case.get(key)?))) {
        Some((key, node)) => reading.turns.push(message_of(key, node, diagnostics)?),
        None if turn_keys.is_empty() => {
            case.get("prompt");
            case.report_missing("prompt", diagnostics);
            return None;
        }
        None => {}
    }
    let mut answers = Vec::new();
    for key in turn_keys {
        for turn in case.list(key, diagnostics).unwrap_or_default() {
            reading.add_turn(key, turn, &mut answers, diagnostics)?;
        }
    }
    if !answers.is_empty() {
        reading.user = Some(SimulatedUser::Answers(answers));
    }
    if case.peek("responder").is_some_and(|node| !node.is_null()) {
        reading.read_responder(case, diagnostics);
    }
    reading.turns.retain(|turn| !turn.trim().is_empty());
    if reading.turns.is_empty() {
        let why = "its prompt is blank, so there is nothing to ask the agent";
        diagnostics.warning("empty-text", case.span, format!("this case is not run: {why}"));
        reading.unsupported = Some(why.to_owned());
        reading.turns = vec![BLANK_PROMPT.to_owned()];
    } else if let Some(why) = &reading.unsupported {
        diagnostics.warning("unsupported-case", case.span, format!("this case is not run: {why}"));
    }
    Some(reading)
}

impl PromptReading {
    /// Adds a later message: a text, or a mapping that may say when it is sent. From the first message that depends on
    /// the agent, all are answers of a simulated user.
    fn add_turn(
        &mut self,
        key: &str,
        node: &TreeNode,
        answers: &mut Vec<ScriptedAnswer>,
        diagnostics: &mut Diagnostics,
    ) -> Option<()> {
        let text = message_of(key, node, diagnostics)?;
        // Some authors write the first message twice: alone, and as the first of the list.
        if self.turns.len() == 1 && self.turns[0] == text && answers.is_empty() {
            return Some(());
        }
        let condition = self.read_condition(node, diagnostics);
        if text.trim().is_empty() || (answers.is_empty() && condition == ReplyCondition::default()) {
            self.turns.push(text);
        } else {
            answers.push(ScriptedAnswer { text, condition });
        }
        Some(())
    }

    /// Reads when a message is sent.
    fn read_condition(&mut self, node: &TreeNode, diagnostics: &mut Diagnostics) -> ReplyCondition {
        let when = node.get("deliver_when").and_then(TreeNode::as_text).unwrap_or("always");
        if when != "always" && when != "agent_asks" {
            self.unsupported = Some(format!("\"deliver_when: {when}\" is not known here"));
        }
        let pattern = node.get("agent_response_matches").filter(|pattern| !pattern.is_null());
        let pattern =
            pattern.and_then(|pattern| decode_pattern("agent_response_matches", pattern, diagnostics));
        ReplyCondition {
            must_ask: when == "agent_asks",
            pattern: pattern.map(|pattern| pattern.source().to_owned()),
        }
    }

    /// Reads `responder`: a model that answers in place of the user and knows only the prompt.
    fn read_responder(&mut self, case: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) {
        let Some(node) = case.get("responder") else { return };
        let Some(mut responder) = ObjectReader::new(node, "\"responder\"", diagnostics) else { return };
        let kind = responder.text("type", diagnostics).unwrap_or_default();
        let max_turns = responder.int("max_turns", 1, 100, diagnostics);
        let max_turns = max_turns.and_then(|turns| u32::try_from(turns).ok()).unwrap_or(DEFAULT_USER_TURNS);
        responder.reject_unknown_keys("\"responder\"", diagnostics);
        if kind != "llm" {
            self.unsupported = Some(format!("the responder \"{kind}\" is not known here; \"llm\" is"));
        } else if self.user.is_some() || self.turns.len() > 1 {
            self.unsupported = Some("\"turns\" and \"responder\" both answer the agent".to_owned());
        }
        let (personas, facts) = (Vec::new(), Vec::new());
        self.user = Some(SimulatedUser::Model(UserPersona { personas, facts, goal: None, max_turns }));
    }
}

/// Gives the message in a value: a text, a mapping with a message in it, or a mapping of what the user gives.
fn message_of(key: &str, node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<String> {
    match &node.data {
        NodeData::Text(text) => Some(text.clone()),
        NodeData::Map(entries) => {
            let said = PROMPT_KEYS.into_iter().chain(["content", "text", "user"]);
            let mut said = said.filter_map(|key| node.get(key)?.as_text());
            if let Some(text) = said.next() {
                let unread: Vec<&str> = entries
                    .iter()
                    .map(|entry| entry.key.as_str())
                    .filter(|key| !PROMPT_KEYS.contains(key) && !TURN_DETAILS.contains(key))
                    .collect();
                if !unread.is_empty() {
                    let message = format!("of \"{key}\" only the message is used, not {}", unread.join(", "));
                    diagnostics.warning("unknown-key", node.span, message);
                }
                return Some(text.to_owned());
            }
            let lines = entries.iter().map(|entry| match entry.value.as_text() {
                Some(text) => format!("{}: {text}", entry.key),
                None => format!("{}: {}", entry.key, entry.value.to_value()),
            });
            let message =
                format!("\"{key}\" is a mapping without a message; its entries are sent as lines of text");
            diagnostics.warning("prompt-from-mapping", node.span, message);
            Some(lines.collect::<Vec<_>>().join("\n"))
        }
        _ => {
            report_wrong_type(node, key, "text", diagnostics);
            None
        }
    }
}

/// The keys of a message that are read elsewhere or have no effect.
const TURN_DETAILS: [&str; 6] = ["content", "text", "user", "role", "deliver_when", "agent_response_matches"];
