//! Reads what the user says in a case: one message, several, or messages that depend on the agent.

use super::super::reading::case_keys::{PROMPT_KEYS, TURN_KEYS};
use practicum_core::model::Diagnostics;
use practicum_core::tree::{NodeData, ObjectReader, TreeNode, report_wrong_type};

/// The messages of the user, and why this version cannot send them, if it cannot.
pub struct PromptReading {
    pub turns: Vec<String>,
    pub unsupported: Option<String>,
}

/// What stands for a blank prompt. No agent is ever asked it.
const BLANK_PROMPT: &str = "(blank)";

/// Reads the messages of a case. Reports if there is none.
pub fn read_prompt(case: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) -> Option<PromptReading> {
    let given = |key: &str| case.peek(key).is_some_and(|node| !node.is_null());
    let key = PROMPT_KEYS.into_iter().find(|key| given(key));
    let turn_keys: Vec<&'static str> = TURN_KEYS.into_iter().filter(|key| given(key)).collect();
    let mut reading = PromptReading { turns: Vec::new(), unsupported: None };
    match key.and_then(|key| Some((key, case.get(key)?))) {
        Some((key, node)) => reading.turns.push(message_of(key, node, diagnostics)?),
        None if turn_keys.is_empty() => {
            case.get("prompt");
            case.report_missing("prompt", diagnostics);
            return None;
        }
        None => {}
    }
    for key in turn_keys {
        for turn in case.list(key, diagnostics).unwrap_or_default() {
            reading.add_turn(key, turn, diagnostics)?;
        }
    }
    if case.peek("responder").is_some_and(|node| !node.is_null()) {
        case.get("responder");
        let why = "a model answers for the user (\"responder\"), which this version does not do";
        reading.unsupported = Some(why.to_owned());
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
    /// Adds a later message: a text, or a mapping that may say when it is sent.
    fn add_turn(&mut self, key: &str, node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<()> {
        let text = message_of(key, node, diagnostics)?;
        // Some authors write the first message twice: alone, and as the first of the list.
        if self.turns.len() == 1 && self.turns[0] == text && self.unsupported.is_none() {
            return Some(());
        }
        let when = node.get("deliver_when").and_then(TreeNode::as_text).unwrap_or("always");
        if when != "always" || node.has("agent_response_matches") {
            let why = "a message of the user depends on what the agent says, which this version does not do";
            self.unsupported = Some(why.to_owned());
        }
        self.turns.push(text);
        Some(())
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
