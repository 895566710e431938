//! The script file: the replies of a scripted model, and when it gives them.
//!
//! ```yaml
//! practicum_script: 1
//! default: { text: "I have no script for that." }
//! scenarios:
//!   - name: happy
//!     when: "release notes"
//!     steps:
//!       - text: "I'll use the skill."
//!         tools: [{ name: Skill, input: { skill: release-notes } }]
//!       - tools: [{ name: Write, input: { file_path: "{{workspace}}/NOTES.md", content: "..." } }]
//!       - error: 529
//!         times: 2
//!       - Done.
//! ```
//!
//! **Choosing the scenario.** `when` is a text that a user message contains, in upper or lower case; or
//! `{ regex: … }`; or `{ marker: name }` for the literal `[[name]]`; without `when`, every message matches. The
//! latest user message that matches any scenario decides, and of the scenarios that match it, the first in the
//! file. Only text of a person counts: messages with tool results and reminders that an agent program adds are
//! ignored. A picture in a message reads as `(picture: image/png, DIGEST)`. With `to: judge`, a scenario answers judges instead of agents, and with `to: user` the model that plays the
//! user of a case. With `to: probe`, it answers the probes
//! that come before activation is measured; without such a scenario, there are no probes.
//!
//! **Choosing the step.** The step's number is the number of the model's answers since that message. So the same
//! request always gets the same step, however often it is sent. After the last step the answer is "(end of
//! script)". If no scenario matches, `default` answers, and without a default HTTP 400.
//!
//! **A step** is text, or a mapping of: `text`, `thinking`, `tools` (`name`, or `namespace.name` for an API that
//! has namespaces; `input`; `id`), `stop` (end_turn, max_tokens, refusal, …), `usage` (`input`, `output`,
//! `cache_read`, `cache_write`), `delay`; and at most one way to fail: `error` (an HTTP status; with `type`,
//! `message`, `headers`), `hang` (headers, then silence for that long, then the connection drops),
//! `hang_before_headers`, `truncate: true` (half of the reply, then the connection drops), `sse_error` (the stream
//! opens and reports this error). A step that fails does so each time. With `times`, it fails that often in each
//! attempt of a trial; then `then`, a step of its own, or the next step follows.
//!
//! `{{name}}` in any text of a step is replaced by the trial's variable of that name: `workspace`, the agent's
//! folder, and `skill`, the name under which the skill under test is staged.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use axum::http::HeaderName;
use regex::Regex;
use serde_json::{Value, json};

use super::{ScopeKind, error_kind_for_status};
use crate::llm::StopReason;
use practicum_core::model::{Diagnostics, TokenUsage, duration_from_seconds, parse_duration};
use practicum_core::tree::{
    NodeData, ObjectReader, SourceFile, TreeNode, closest_word, node_int, node_text, report_wrong_type,
};

pub(super) const MOST_TIMES: i64 = 1_000_000;
pub(super) const MOST_TOKENS: i64 = 1_000_000_000;
pub(super) const STOP_REASONS: [&str; 7] = [
    "end_turn",
    "tool_use",
    "max_tokens",
    "refusal",
    "stop_sequence",
    "pause_turn",
    "model_context_window_exceeded",
];

/// A script that answers in place of a model.
#[derive(Debug, Clone)]
pub struct ModelScript {
    pub(super) default: Option<ScriptStep>,
    pub(super) scenarios: Vec<ScriptScenario>,
}

#[derive(Debug, Clone)]
pub(super) struct ScriptScenario {
    /// The position in the file, from 0. Names need not be unique.
    pub position: usize,
    pub name: String,
    pub recipient: ScopeKind,
    pub condition: ScenarioCondition,
    pub steps: Vec<ScriptStep>,
}

#[derive(Debug, Clone)]
pub(super) enum ScenarioCondition {
    Always,
    /// A text in lower case.
    Text(String),
    Regex(Regex),
    Marker(String),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct ScriptStep {
    pub text: Option<String>,
    pub thinking: Option<String>,
    pub tools: Vec<ScriptedToolCall>,
    pub stop: Option<StopReason>,
    pub usage: Option<TokenUsage>,
    pub delay: Duration,
    pub fault: Option<ScriptFault>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct ScriptedToolCall {
    pub name: String,
    pub input: Value,
    pub id: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct ScriptFault {
    pub kind: FaultKind,
    /// The number of failures before the next step; `None` fails each time.
    pub times: Option<u32>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum FaultKind {
    Error { status: u16, kind: String, message: String, headers: BTreeMap<String, String> },
    Hang(Duration),
    HangBeforeHeaders(Duration),
    Truncate,
    SseError { kind: String, message: String },
}

impl ModelScript {
    /// Reads a script. Also gives the file's text, so that an excerpt can be shown.
    pub fn read(path: &Path, diagnostics: &mut Diagnostics) -> (String, Option<ModelScript>) {
        let (text, source) = SourceFile::read(path, diagnostics);
        let script = source.and_then(|source| ModelScript::from_source(&source, diagnostics));
        (text, script)
    }

    /// Says whether there is a scenario for this kind of scope.
    pub fn has_scenario_for(&self, kind: ScopeKind) -> bool {
        self.scenarios.iter().any(|scenario| scenario.recipient == kind)
    }

    pub fn from_source(source: &SourceFile, diagnostics: &mut Diagnostics) -> Option<ModelScript> {
        let mut file = ObjectReader::new(&source.root, "the script", diagnostics)?;
        match file.get("practicum_script") {
            Some(version) => {
                node_int(version, "practicum_script", 1, 1, diagnostics);
            }
            None => file.report_missing("practicum_script", diagnostics),
        }
        let default = file.get_non_null("default").and_then(|node| parse_default_step(node, diagnostics));
        let nodes = file.list("scenarios", diagnostics).unwrap_or_default();
        if nodes.is_empty() && file.get_non_null("default").is_none() {
            diagnostics.error("empty-script", None, "the script has neither scenarios nor a default");
        }
        let scenarios = nodes
            .iter()
            .enumerate()
            .filter_map(|(position, node)| parse_scenario(node, position, diagnostics))
            .collect();
        file.reject_unknown_keys("the script", diagnostics);
        (!diagnostics.has_errors()).then_some(ModelScript { default, scenarios })
    }
}

fn parse_default_step(node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<ScriptStep> {
    let steps = parse_steps(node, diagnostics)?;
    let step = steps.into_iter().next()?;
    if step.failures_before_next().is_some() {
        diagnostics.error("default-with-times", node.span, "the default is one step, without \"times\"");
    }
    if !step.tools.is_empty() {
        diagnostics.error_with_help(
            "default-calls-tools",
            node.span,
            "the default answers every time, so its tools would be called for ever",
            "write a scenario for them",
        );
    }
    Some(step)
}

fn parse_scenario(node: &TreeNode, position: usize, diagnostics: &mut Diagnostics) -> Option<ScriptScenario> {
    let mut object = ObjectReader::new(node, "a scenario", diagnostics)?;
    let name = object.text("name", diagnostics).map_or_else(|| format!("#{}", position + 1), str::to_owned);
    let to = match object.get_non_null("to") {
        Some(node) => parse_one_of(node, "to", &["agent", "judge", "user", "mock", "probe"], diagnostics)
            .map(|to| match to {
                "judge" => ScopeKind::Judge,
                "user" => ScopeKind::User,
                "mock" => ScopeKind::Mock,
                "probe" => ScopeKind::Probe,
                _ => ScopeKind::Agent,
            }),
        None => Some(ScopeKind::Agent),
    };
    let when = object
        .get_non_null("when")
        .map_or(Some(ScenarioCondition::Always), |node| parse_condition(node, diagnostics));
    let steps_node = object.get_non_null("steps");
    let steps = object.list("steps", diagnostics).unwrap_or_default();
    match steps_node {
        None => object.report_missing("steps", diagnostics),
        Some(node) if steps.is_empty() && node.as_list().is_some() => {
            diagnostics.error("empty-scenario", node.span, "a scenario needs a step");
        }
        Some(_) => {}
    }
    let steps = steps.iter().filter_map(|node| parse_steps(node, diagnostics)).flatten().collect();
    object.reject_unknown_keys("a scenario", diagnostics);
    Some(ScriptScenario { position, name, recipient: to?, condition: when?, steps })
}

fn parse_condition(node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<ScenarioCondition> {
    if let NodeData::Text(text) = &node.data {
        return parse_text_condition(text, node, diagnostics);
    }
    let mut object = ObjectReader::new(node, "\"when\"", diagnostics)?;
    let text = object.get_non_null("text");
    let regex = object.get_non_null("regex");
    let marker = object.get_non_null("marker");
    object.reject_unknown_keys("\"when\"", diagnostics);
    match (text, regex, marker) {
        (Some(node), None, None) => {
            parse_text_condition(node_text(node, "text", diagnostics)?, node, diagnostics)
        }
        (None, Some(node), None) => match Regex::new(node_text(node, "regex", diagnostics)?) {
            Ok(regex) => Some(ScenarioCondition::Regex(regex)),
            Err(problem) => {
                diagnostics.error("invalid-regex", node.span, format!("not a regular expression: {problem}"));
                None
            }
        },
        (None, None, Some(node)) => {
            let name = node_text(node, "marker", diagnostics)?;
            Some(ScenarioCondition::Marker(format!("[[{name}]]")))
        }
        _ => {
            diagnostics.error(
                "wrong-when",
                node.span,
                "\"when\" takes text, or exactly one of \"text\", \"regex\" and \"marker\"",
            );
            None
        }
    }
}

fn parse_text_condition(
    text: &str,
    node: &TreeNode,
    diagnostics: &mut Diagnostics,
) -> Option<ScenarioCondition> {
    if text.trim().is_empty() {
        diagnostics.error_with_help(
            "empty-text",
            node.span,
            "\"when\" must not be blank",
            "leave \"when\" out to fit every message",
        );
        return None;
    }
    Some(ScenarioCondition::Text(text.to_lowercase()))
}

/// Reads a step, and the one under `then`.
fn parse_steps(node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<Vec<ScriptStep>> {
    if let NodeData::Text(text) = &node.data {
        return Some(vec![ScriptStep::with_text(text)]);
    }
    let mut object = ObjectReader::new(node, "a step", diagnostics)?;
    let usage = object.get_non_null("usage").and_then(|node| parse_usage(node, diagnostics));
    let tools = object.list("tools", diagnostics).unwrap_or_default();
    let mut step = ScriptStep {
        text: object.text("text", diagnostics).map(str::to_owned),
        thinking: object.text("thinking", diagnostics).map(str::to_owned),
        tools: tools.iter().filter_map(|node| parse_tool_call(node, diagnostics)).collect(),
        stop: object
            .get_non_null("stop")
            .and_then(|node| parse_one_of(node, "stop", &STOP_REASONS, diagnostics))
            .map(StopReason::from_name),
        usage,
        delay: parse_duration_key(&mut object, "delay", diagnostics).unwrap_or_default(),
        fault: None,
    };
    let fault = parse_fault(&mut object, diagnostics);
    let times_node = object.get_non_null("times");
    let times = times_node.and_then(|node| node_int(node, "times", 1, MOST_TIMES, diagnostics));
    let then = object.get_non_null("then");
    object.reject_unknown_keys("a step", diagnostics);
    if let (Some(node), None) = (times_node, &fault) {
        diagnostics.error(
            "times-without-fault",
            node.span,
            "\"times\" says how often a step fails, and this one does not",
        );
    }
    if let (Some(node), None) = (then, times_node) {
        diagnostics.error_with_help(
            "then-without-times",
            node.span,
            "\"then\" would never be reached",
            "say with \"times\" how often the step fails before it",
        );
    }
    let says_something = step.text.is_some() || step.thinking.is_some() || !tools.is_empty();
    if !says_something && fault.is_none() && step.stop.is_none() {
        diagnostics.error("empty-step", node.span, "the step neither says, calls nor fails anything");
    }
    let times = times.and_then(|times| u32::try_from(times).ok());
    step.fault = fault.map(|kind| ScriptFault { kind, times });
    let mut steps = vec![step];
    if let Some(then) = then {
        steps.extend(parse_steps(then, diagnostics)?);
    }
    Some(steps)
}

impl ScriptStep {
    pub fn with_text(text: &str) -> Self {
        Self {
            text: Some(text.to_owned()),
            thinking: None,
            tools: Vec::new(),
            stop: None,
            usage: None,
            delay: Duration::ZERO,
            fault: None,
        }
    }

    /// Gives how often the step fails before the next one.
    pub fn failures_before_next(&self) -> Option<u32> {
        self.fault.as_ref().and_then(|fault| fault.times)
    }
}

fn parse_tool_call(node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<ScriptedToolCall> {
    let mut object = ObjectReader::new(node, "a tool call", diagnostics)?;
    let name = object.required_text("name", diagnostics);
    let id = object.text("id", diagnostics).map(str::to_owned);
    let input = match object.get_non_null("input") {
        None => json!({}),
        Some(node) => match node.data {
            NodeData::Map(_) | NodeData::Text(_) => node.to_value(),
            NodeData::Null
            | NodeData::Bool(_)
            | NodeData::Int(_)
            | NodeData::Float(_)
            | NodeData::List(_) => {
                report_wrong_type(
                    node,
                    "input",
                    "a mapping, or text for a tool that takes text",
                    diagnostics,
                );
                json!({})
            }
        },
    };
    object.reject_unknown_keys("a tool call", diagnostics);
    Some(ScriptedToolCall { name: name?.to_owned(), input, id })
}

fn parse_usage(node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<TokenUsage> {
    let mut object = ObjectReader::new(node, "\"usage\"", diagnostics)?;
    let mut tokens = |key| {
        let count = object.int(key, 0, MOST_TOKENS, diagnostics).unwrap_or(0);
        u64::try_from(count).unwrap_or(0)
    };
    let usage = TokenUsage {
        input: tokens("input"),
        output: tokens("output"),
        cache_read: tokens("cache_read"),
        cache_write: tokens("cache_write"),
    };
    object.reject_unknown_keys("\"usage\"", diagnostics);
    Some(usage)
}

fn parse_fault(object: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) -> Option<FaultKind> {
    let message = object.text("message", diagnostics);
    let mut faults = Vec::new();
    let error = object.get_non_null("error");
    let kind = object.get_non_null("type");
    let headers = object.get_non_null("headers");
    if let Some(node) = error {
        let status = node_int(node, "error", 400, 599, diagnostics).and_then(|n| u16::try_from(n).ok());
        let status = status.unwrap_or(500);
        faults.push(FaultKind::Error {
            status,
            kind: kind
                .and_then(|node| node_text(node, "type", diagnostics))
                .unwrap_or(error_kind_for_status(status))
                .to_owned(),
            message: message.unwrap_or("scripted error").to_owned(),
            headers: headers.map(|node| parse_headers(node, diagnostics)).unwrap_or_default(),
        });
    }
    for (key, node) in [("type", kind), ("headers", headers)] {
        if let (Some(node), None) = (node, error) {
            diagnostics.error("only-with-error", node.span, format!("\"{key}\" goes with \"error\""));
        }
    }
    faults.extend(parse_duration_key(object, "hang", diagnostics).map(FaultKind::Hang));
    faults.extend(
        parse_duration_key(object, "hang_before_headers", diagnostics).map(FaultKind::HangBeforeHeaders),
    );
    if object.bool("truncate", diagnostics) == Some(true) {
        faults.push(FaultKind::Truncate);
    }
    if let Some(kind) = object.text("sse_error", diagnostics) {
        let message = message.unwrap_or("scripted error").to_owned();
        faults.push(FaultKind::SseError { kind: kind.to_owned(), message });
    }
    if faults.len() > 1 {
        diagnostics.error("two-faults", object.span, "a step fails in one way only");
    }
    faults.pop()
}

fn parse_headers(node: &TreeNode, diagnostics: &mut Diagnostics) -> BTreeMap<String, String> {
    let Some(entries) = node.as_map() else {
        report_wrong_type(node, "headers", "a mapping", diagnostics);
        return BTreeMap::new();
    };
    let mut headers = BTreeMap::new();
    for entry in entries {
        if entry.key.parse::<HeaderName>().is_err() {
            diagnostics.error(
                "invalid-header",
                entry.key_span,
                format!("{:?} is not a header's name", entry.key),
            );
        }
        let value = match &entry.value.data {
            NodeData::Text(text) => text.clone(),
            NodeData::Int(number) => number.to_string(),
            NodeData::Float(number) => number.to_string(),
            NodeData::Bool(_) | NodeData::Null | NodeData::List(_) | NodeData::Map(_) => {
                report_wrong_type(&entry.value, &entry.key, "text or a number", diagnostics);
                continue;
            }
        };
        headers.insert(entry.key.clone(), value);
    }
    headers
}

fn parse_duration_key(
    object: &mut ObjectReader<'_>,
    key: &'static str,
    diagnostics: &mut Diagnostics,
) -> Option<Duration> {
    let node = object.get_non_null(key)?;
    let (duration, spelled) = match &node.data {
        NodeData::Text(text) => (parse_duration(text), text.clone()),
        NodeData::Int(seconds) => (duration_from_seconds(*seconds as f64), seconds.to_string()),
        NodeData::Float(seconds) => (duration_from_seconds(*seconds), seconds.to_string()),
        NodeData::Bool(_) | NodeData::Null | NodeData::List(_) | NodeData::Map(_) => {
            report_wrong_type(node, key, "a duration", diagnostics);
            return None;
        }
    };
    if duration.is_none() {
        diagnostics.error_with_help(
            "invalid-duration",
            node.span,
            format!("\"{key}\" must be a duration, not {spelled:?}"),
            "write 500ms, 20s, 5m or 1h; a bare number is seconds",
        );
    }
    duration
}

fn parse_one_of<'n>(
    node: &'n TreeNode,
    key: &str,
    known: &[&str],
    diagnostics: &mut Diagnostics,
) -> Option<&'n str> {
    let text = node_text(node, key, diagnostics)?;
    if known.contains(&text) {
        return Some(text);
    }
    let help = match closest_word(text, known) {
        Some(meant) => format!("did you mean \"{meant}\"?"),
        None => format!("one of: {}", known.join(", ")),
    };
    diagnostics.error_with_help("unknown-value", node.span, format!("\"{key}\" cannot be {text:?}"), help);
    None
}
