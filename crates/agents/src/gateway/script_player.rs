//! Plays a script: finds the scenario of a conversation, and its step.

use std::collections::BTreeMap;

use serde_json::Value;

use super::script::{FaultKind, ModelScript, ScenarioCondition, ScriptFault, ScriptScenario, ScriptStep};
use super::{
    AnswerForm, AnswerFuture, BYTES_PER_TOKEN, GatewayAnswer, GatewayCall, GatewayRefusal, Responder,
    ScopeKind,
};
use crate::llm::{ChatMessage, ContentBlock, ModelReply, ModelRequest, Role, StopReason};
use practicum_core::model::{Digest, TokenUsage};

/// The tags of texts that agent programs add to a person's message. A skill's description or a folder's name in
/// there must not choose the scenario.
const ADDED_TAGS: [&str; 4] = ["system-reminder", "environment_context", "INSTRUCTIONS", "session_context"];

const LONGEST_EXCERPT: usize = 80;

impl Responder for ModelScript {
    fn answer<'a>(&'a self, call: GatewayCall<'a>) -> AnswerFuture<'a> {
        let outcome = self.answer_call(&call);
        Box::pin(std::future::ready(outcome))
    }
}

impl ModelScript {
    fn answer_call(&self, call: &GatewayCall<'_>) -> GatewayAnswer {
        let turns = conversation_turns(call.request);
        let Some((scenario, answered)) = self.find_scenario(&turns, call.scope.kind) else {
            let asked = turns.iter().rev().find_map(|turn| turn.user_question()).unwrap_or_default();
            let problem = match call.scope.kind {
                ScopeKind::Judge => {
                    format!("no scenario with `to: judge` fits the judge's question {:?}", excerpt(asked))
                }
                ScopeKind::User => {
                    format!("no scenario with `to: user` fits the question to the user {:?}", excerpt(asked))
                }
                ScopeKind::Mock => {
                    format!("no scenario with `to: mock` fits the call of a server {:?}", excerpt(asked))
                }
                ScopeKind::Agent | ScopeKind::Probe => {
                    format!("no scenario of the script fits {:?}", excerpt(asked))
                }
            };
            call.scope.add_note(&problem);
            return match &self.default {
                Some(step) => perform_step(step, call),
                None => AnswerForm::Refused(GatewayRefusal::invalid(problem)).into(),
            };
        };
        match next_step(scenario, answered, call) {
            Some(step) => perform_step(step, call),
            None => {
                call.scope.add_note(format!(
                    "the script ended: scenario {:?} has no step for answer {}",
                    scenario.name,
                    answered + 1
                ));
                perform_step(&ScriptStep::with_text("(end of script)"), call)
            }
        }
    }

    /// Finds the scenario, and counts the model's answers in it.
    fn find_scenario(&self, turns: &[ConversationTurn], kind: ScopeKind) -> Option<(&ScriptScenario, usize)> {
        let fits = |text: &str| {
            self.scenarios
                .iter()
                .find(|scenario| scenario.recipient == kind && scenario.condition.matches(text))
        };
        let mut answered = 0;
        for turn in turns.iter().rev() {
            match turn.role {
                Role::Assistant => answered += 1,
                Role::User => {
                    if let Some(scenario) = turn.user_question().and_then(fits) {
                        return Some((scenario, answered));
                    }
                }
            }
        }
        None
    }
}

impl ScenarioCondition {
    fn matches(&self, text: &str) -> bool {
        match self {
            ScenarioCondition::Always => true,
            ScenarioCondition::Text(part) => text.to_lowercase().contains(part),
            ScenarioCondition::Regex(regex) => regex.is_match(text),
            ScenarioCondition::Marker(marker) => text.contains(marker),
        }
    }
}

/// One turn of a conversation: consecutive messages of one role. Some programs split a person's message, or send a
/// tool's result and a remark about it separately.
struct ConversationTurn {
    role: Role,
    text: String,
    brings_results: bool,
}

impl ConversationTurn {
    /// Gives a person's text in this turn. Text after a tool result does not count: it may be the body of a skill,
    /// which contains the words of its subject.
    fn user_question(&self) -> Option<&str> {
        (self.role == Role::User && !self.brings_results).then_some(&self.text)
    }
}

fn conversation_turns(request: &ModelRequest) -> Vec<ConversationTurn> {
    let mut turns: Vec<ConversationTurn> = Vec::new();
    for ChatMessage { role, blocks } in &request.messages {
        if turns.last().is_none_or(|turn| turn.role != *role) {
            turns.push(ConversationTurn { role: *role, text: String::new(), brings_results: false });
        }
        let Some(turn) = turns.last_mut() else { continue };
        for block in blocks {
            match block {
                ContentBlock::Text { text } => {
                    turn.text.push_str(&remove_added_tags(text));
                    turn.text.push('\n');
                }
                // A script fits pictures by this line.
                ContentBlock::Image { media_type, data } => {
                    let digest = Digest::of_bytes(data.as_bytes());
                    turn.text.push_str(&format!("(picture: {media_type}, {})\n", digest.short()));
                }
                ContentBlock::ToolResult { .. } => turn.brings_results = true,
                ContentBlock::Thinking { .. } | ContentBlock::ToolUse { .. } => {}
            }
        }
    }
    turns
}

fn remove_added_tags(text: &str) -> String {
    ADDED_TAGS.iter().fold(text.to_owned(), |text, tag| {
        let (opening, closing) = (format!("<{tag}>"), format!("</{tag}>"));
        let mut kept = String::new();
        let mut rest = text.as_str();
        while let Some((before, inside)) = rest.split_once(&opening) {
            // Without an end tag it is not a reminder, but text of a person.
            let Some((_, after)) = inside.split_once(&closing) else { break };
            kept.push_str(before);
            rest = after;
        }
        kept + rest
    })
}

/// Finds the step after this many answers. Steps that fail a few times come before the one that they delay.
fn next_step<'s>(
    scenario: &'s ScriptScenario,
    answered: usize,
    call: &GatewayCall<'_>,
) -> Option<&'s ScriptStep> {
    let mut passed = 0;
    for (at, step) in scenario.steps.iter().enumerate() {
        match step.failures_before_next() {
            Some(times) => {
                let due = passed == answered;
                if due && call.scope.count_fault((scenario.position, at), times) {
                    return Some(step);
                }
            }
            None if passed == answered => return Some(step),
            None => passed += 1,
        }
    }
    None
}

fn perform_step(step: &ScriptStep, call: &GatewayCall<'_>) -> GatewayAnswer {
    let vars = &call.scope.vars;
    let mut wait = step.delay;
    let form = match &step.fault {
        None => AnswerForm::Whole(reply_for_step(step, call)),
        Some(ScriptFault { kind, times: _ }) => match kind {
            FaultKind::Error { status, kind, message, headers } => AnswerForm::Refused(GatewayRefusal {
                status: *status,
                kind: kind.clone(),
                message: fill_variables(message, vars),
                headers: headers
                    .iter()
                    .map(|(name, value)| (name.clone(), fill_variables(value, vars)))
                    .collect(),
            }),
            FaultKind::Hang(silence) => AnswerForm::Stalled(*silence),
            FaultKind::HangBeforeHeaders(silence) => {
                wait += *silence;
                AnswerForm::Dropped
            }
            FaultKind::Truncate => AnswerForm::Truncated(reply_for_step(step, call)),
            FaultKind::SseError { kind, message } => AnswerForm::BrokenOff {
                reply: reply_for_step(step, call),
                kind: kind.clone(),
                message: fill_variables(message, vars),
            },
        },
    };
    GatewayAnswer { wait, form }
}

fn reply_for_step(step: &ScriptStep, call: &GatewayCall<'_>) -> ModelReply {
    let vars = &call.scope.vars;
    // The id is unique within the trial, and the same when the trial is run again.
    let id = |prefix: &str, at: usize| {
        let seed = format!("{}\n{}\n{at}", call.scope.name, call.number);
        format!("{prefix}_{}", &blake3::hash(seed.as_bytes()).to_hex()[..24])
    };
    let mut blocks = Vec::new();
    if let Some(thinking) = &step.thinking {
        let signature = Some(id("sig", 0));
        blocks.push(ContentBlock::Thinking { text: fill_variables(thinking, vars), signature });
    }
    if let Some(text) = &step.text {
        blocks.push(ContentBlock::Text { text: fill_variables(text, vars) });
    }
    for (at, tool) in step.tools.iter().enumerate() {
        blocks.push(ContentBlock::ToolUse {
            id: tool.id.as_ref().map_or_else(|| id("toolu", at), |id| fill_variables(id, vars)),
            name: fill_variables(&tool.name, vars),
            input: fill_value_variables(&tool.input, vars),
        });
    }
    let usual = if step.tools.is_empty() { StopReason::EndTurn } else { StopReason::ToolUse };
    let model = Some(&call.request.model).filter(|model| !model.is_empty());
    ModelReply {
        id: id("msg", 0),
        model: model.cloned().unwrap_or_else(|| "practicum".to_owned()),
        usage: step.usage.unwrap_or_else(|| estimate_usage(call.raw_body, &blocks)),
        stop: step.stop.clone().unwrap_or(usual),
        blocks,
    }
}

fn estimate_usage(raw: &[u8], blocks: &[ContentBlock]) -> TokenUsage {
    let said: usize = blocks
        .iter()
        .map(|block| match block {
            ContentBlock::Text { text } | ContentBlock::Thinking { text, .. } => text.len(),
            ContentBlock::ToolUse { name, input, .. } => name.len() + input.to_string().len(),
            ContentBlock::ToolResult { content, .. } => content.len(),
            ContentBlock::Image { data, .. } => data.len(),
        })
        .sum();
    let tokens = |bytes: usize| u64::try_from(bytes.div_ceil(BYTES_PER_TOKEN)).unwrap_or(u64::MAX);
    TokenUsage { input: tokens(raw.len()), output: tokens(said), ..TokenUsage::default() }
}

/// Replaces the trial's variables; unknown names stay as they are.
fn fill_variables(text: &str, vars: &BTreeMap<String, String>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("{{") {
        let (before, from) = rest.split_at(start);
        out.push_str(before);
        let named = from[2..].find("}}").map(|end| (&from[2..2 + end], &from[4 + end..]));
        match named.and_then(|(name, after)| Some((vars.get(name.trim())?, after))) {
            Some((value, after)) => {
                out.push_str(value);
                rest = after;
            }
            None => {
                // Only one brace is skipped, because a name may follow in `{{{`.
                out.push('{');
                rest = &from[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

fn fill_value_variables(value: &Value, vars: &BTreeMap<String, String>) -> Value {
    match value {
        Value::String(text) => Value::String(fill_variables(text, vars)),
        Value::Array(items) => items.iter().map(|item| fill_value_variables(item, vars)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| (key.clone(), fill_value_variables(value, vars))).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn excerpt(text: &str) -> String {
    let text = text.trim();
    let short: String = text.chars().take(LONGEST_EXCERPT).collect();
    if short.len() < text.len() { format!("{short}…") } else { short }
}

#[cfg(test)]
mod tests {
    use super::super::{ScopeAccount, tests::script};
    use super::*;
    use crate::llm::ModelApi;
    use serde_json::json;

    const SCRIPT: &str = r#"
practicum_script: 1
scenarios:
  - name: notes
    when: Release Notes
    steps:
      - { text: use, tools: [{ name: Skill, input: { skill: release-notes } }] }
      - { text: write, tools: [{ name: Write }] }
      - done
  - { name: marked, when: { marker: two }, steps: [second-1, second-2] }
  - { name: pattern, when: { regex: "^fix (bug|issue) [0-9]+" }, steps: [fixed] }
  - { name: judge, to: judge, steps: [verdict] }
"#;

    /// Makes a conversation with one message per line: `u:` a person, `a:` the model, `r:` a tool's result with
    /// text after it.
    fn conversation(lines: &[&str]) -> ModelRequest {
        let said = |text: &str| ContentBlock::Text { text: text.to_owned() };
        let messages = lines.iter().map(|line| match line.split_at(2) {
            ("u:", text) => ChatMessage::user(text),
            ("a:", text) => ChatMessage { role: Role::Assistant, blocks: vec![said(text)] },
            ("r:", text) => {
                let result = ContentBlock::ToolResult {
                    tool_use_id: "t".to_owned(),
                    content: "[[two]] release notes".to_owned(),
                    is_error: false,
                };
                ChatMessage { role: Role::User, blocks: vec![result, said(text)] }
            }
            (other, _) => panic!("{other}"),
        });
        ModelRequest {
            model: "m".to_owned(),
            system: Some("release notes".to_owned()),
            messages: messages.collect(),
            tools: Vec::new(),
            tool_choice: None,
            max_tokens: None,
            temperature: None,
            stream: false,
        }
    }

    fn said(kind: ScopeKind, lines: &[&str]) -> String {
        let scope = ScopeAccount::new("t", kind, BTreeMap::new());
        let request = conversation(lines);
        let call = GatewayCall {
            scope: &scope,
            api: ModelApi::OpenAiChat,
            request: &request,
            raw_body: b"",
            query: None,
            headers: &axum::http::HeaderMap::new(),
            number: 1,
        };
        match script(SCRIPT).answer_call(&call).form {
            AnswerForm::Whole(reply) => reply.text(),
            AnswerForm::Refused(refusal) => format!("{} {}", refusal.status, refusal.kind),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_conversation_has_its_place_in_the_script() {
        let reminder = "u:<system-reminder>- release-notes: writes release notes</system-reminder>hello";
        let body = "r:Base directory\n\n# How to write release notes [[two]]";
        for (lines, expected) in [
            (&["u:write RELEASE NOTES please"][..], "use"),
            (&["u:release notes", "a:use", "r:"], "write"),
            // A skill's body comes with its tool result and contains words of the skill's subject.
            (&["u:release notes", "a:use", body], "write"),
            (&["u:release notes", "a:use", body, "a:write", "r:"], "done"),
            (&["u:release notes", "a:use", "r:", "a:write", "r:", "a:done", "u:thanks"], "(end of script)"),
            // The result and a remark about it in two messages are still one turn.
            (&["u:release notes", "a:use", "r:", "u:reminder: release notes"], "write"),
            // A person's later message can begin another scenario, or the same again.
            (&["u:release notes", "a:use", "r:", "a:write", "r:", "a:done", "u:now [[two]]"], "second-1"),
            (&["u:release notes", "a:x", "u:[[two]]", "a:second-1", "u:go on"], "second-2"),
            (&["u:release notes", "a:use", "r:", "a:write", "u:release notes"], "use"),
            // A match in one part of a message is a match of the message.
            (&["u:environment", "u:please write release notes"], "use"),
            (&["u:fix bug 12"], "fixed"),
            (&["u:please fix bug 12"], "400 invalid_request_error"),
            (&[reminder], "400 invalid_request_error"),
            (&["u:<system-reminder>x</system-reminder>release <b>notes</b>"], "400 invalid_request_error"),
            (&["u:<system-reminder> release notes"], "use"),
            (&["u:[[ two ]]"], "400 invalid_request_error"),
            (&[], "400 invalid_request_error"),
        ] {
            assert_eq!(said(ScopeKind::Agent, lines), expected, "{lines:?}");
        }
        assert_eq!(said(ScopeKind::Judge, &["u:release notes"]), "verdict");
    }

    #[test]
    fn variables_are_filled_in() {
        let vars = BTreeMap::from([("a".to_owned(), "{{b}}".to_owned()), ("b".to_owned(), "é".to_owned())]);
        for (text, expected) in [
            ("{{a}}/x", "{{b}}/x"),
            ("{{ b }}{{b}}", "éé"),
            ("{{{b}}}", "{é}"),
            ("{{c}} {{b", "{{c}} {{b"),
            ("{{", "{{"),
            ("{{c {{b}} }}", "{{c é }}"),
        ] {
            assert_eq!(fill_variables(text, &vars), expected, "{text}");
        }
        let value = json!({"a": ["{{b}}", 1, {"{{b}}": "{{b}}"}]});
        assert_eq!(fill_value_variables(&value, &vars), json!({"a": ["é", 1, {"{{b}}": "é"}]}));
    }
}
