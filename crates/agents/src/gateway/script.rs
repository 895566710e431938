//! The script file: what the model says, and when.
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
//! **Which scenario.** `when` is text that a user message contains, in any case; or
//! `{ regex: … }`; or `{ marker: name }` for the literal `[[name]]`; without it every message
//! fits. The latest user message that fits any scenario decides, and the first scenario in the
//! file that fits it. Only what a person wrote counts: a message that brings tool results never
//! decides, nor do reminders that an agent program adds. `to: judge` makes a scenario answer
//! judges instead of agents; `to: probe` answers the probes that come before activation is measured, and
//! a script without such a scenario has none.
//!
//! **Which step.** As many as the model has answered since that message: the same request always
//! gets the same step, however often it is sent. Past the last step the answer is
//! "(end of script)". Without a fitting scenario `default` answers, and without that HTTP 400.
//!
//! **A step** is text, or a mapping of:
//! `text`, `thinking`, `tools` (`name`, or `namespace.name` for an API that has namespaces; `input`;
//! `id`), `stop` (end_turn, max_tokens, refusal, …),
//! `usage` (`input`, `output`, `cache_read`, `cache_write`), `delay`; and at most one way to fail:
//! `error` (an HTTP status; with `type`, `message`, `headers`), `hang` (headers, then silence for
//! that long, then the connection drops), `hang_before_headers`, `truncate: true` (half of the
//! reply, then the connection drops), `sse_error` (the stream opens and reports this error).
//! A step that fails does so each time, or `times` times in each try of a trial and then gives way to
//! `then`, a step of its own, or to the next step.
//!
//! `{{name}}` in any text of a step is replaced by the trial's variable of that name: `workspace`, the
//! agent's folder, and `skill`, the name under which the skill under test is staged.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use axum::http::HeaderName;
use regex::Regex;
use serde_json::{Value, json};

use super::{ScopeKind, kind_of_status};
use crate::llm::Stop;
use practicum_core::model::{Diagnostics, Usage, parse_duration};
use practicum_core::tree::{Data, Node, Object, Source, closest, int_of, text_of, wrong_type};

pub(super) const MOST_TIMES: i64 = 1_000_000;
pub(super) const MOST_TOKENS: i64 = 1_000_000_000;
pub(super) const STOPS: [&str; 7] = [
    "end_turn",
    "tool_use",
    "max_tokens",
    "refusal",
    "stop_sequence",
    "pause_turn",
    "model_context_window_exceeded",
];

#[derive(Debug, Clone)]
pub struct Script {
    pub(super) default: Option<Step>,
    pub(super) scenarios: Vec<Scenario>,
}

#[derive(Debug, Clone)]
pub(super) struct Scenario {
    /// In the file, from 0. Names may be the same.
    pub position: usize,
    pub name: String,
    pub to: ScopeKind,
    pub when: When,
    pub steps: Vec<Step>,
}

#[derive(Debug, Clone)]
pub(super) enum When {
    Always,
    /// In lower case.
    Text(String),
    Regex(Regex),
    Marker(String),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Step {
    pub text: Option<String>,
    pub thinking: Option<String>,
    pub tools: Vec<ToolStep>,
    pub stop: Option<Stop>,
    pub usage: Option<Usage>,
    pub delay: Duration,
    pub fault: Option<Fault>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct ToolStep {
    pub name: String,
    pub input: Value,
    pub id: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fault {
    pub kind: FaultKind,
    /// `None` fails each time; otherwise the next step's turn comes after so many.
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

impl Script {
    /// The file's text comes back too, so that an excerpt can be shown.
    pub fn read(path: &Path, diagnostics: &mut Diagnostics) -> (String, Option<Script>) {
        let (text, source) = Source::read(path, diagnostics);
        let script = source.and_then(|source| Script::from_source(&source, diagnostics));
        (text, script)
    }

    /// Whether there is a scenario for them.
    pub fn answers(&self, kind: ScopeKind) -> bool {
        self.scenarios.iter().any(|scenario| scenario.to == kind)
    }

    pub fn from_source(source: &Source, diagnostics: &mut Diagnostics) -> Option<Script> {
        let mut file = Object::new(&source.root, "the script", diagnostics)?;
        match file.get("practicum_script") {
            Some(version) => {
                int_of(version, "practicum_script", 1, 1, diagnostics);
            }
            None => file.missing("practicum_script", diagnostics),
        }
        let default = file.given("default").and_then(|node| default_step(node, diagnostics));
        let nodes = file.list("scenarios", diagnostics).unwrap_or_default();
        if nodes.is_empty() && file.given("default").is_none() {
            diagnostics.error("empty-script", None, "the script has neither scenarios nor a default");
        }
        let scenarios = nodes
            .iter()
            .enumerate()
            .filter_map(|(position, node)| scenario(node, position, diagnostics))
            .collect();
        file.refuse_rest("the script", diagnostics);
        (!diagnostics.has_errors()).then_some(Script { default, scenarios })
    }
}

fn default_step(node: &Node, diagnostics: &mut Diagnostics) -> Option<Step> {
    let steps = steps_of(node, diagnostics)?;
    let step = steps.into_iter().next()?;
    if step.passes_after().is_some() {
        diagnostics.error("default-with-times", node.span, "the default is one step, without \"times\"");
    }
    if !step.tools.is_empty() {
        diagnostics.error_help(
            "default-calls-tools",
            node.span,
            "the default answers every time, so its tools would be called for ever",
            "write a scenario for them",
        );
    }
    Some(step)
}

fn scenario(node: &Node, position: usize, diagnostics: &mut Diagnostics) -> Option<Scenario> {
    let mut object = Object::new(node, "a scenario", diagnostics)?;
    let name = object.text("name", diagnostics).map_or_else(|| format!("#{}", position + 1), str::to_owned);
    let to = match object.given("to") {
        Some(node) => one_of(node, "to", &["agent", "judge", "probe"], diagnostics).map(|to| match to {
            "judge" => ScopeKind::Judge,
            "probe" => ScopeKind::Probe,
            _ => ScopeKind::Agent,
        }),
        None => Some(ScopeKind::Agent),
    };
    let when = object.given("when").map_or(Some(When::Always), |node| when(node, diagnostics));
    let steps_node = object.given("steps");
    let steps = object.list("steps", diagnostics).unwrap_or_default();
    match steps_node {
        None => object.missing("steps", diagnostics),
        Some(node) if steps.is_empty() && node.as_list().is_some() => {
            diagnostics.error("empty-scenario", node.span, "a scenario needs a step");
        }
        Some(_) => {}
    }
    let steps = steps.iter().filter_map(|node| steps_of(node, diagnostics)).flatten().collect();
    object.refuse_rest("a scenario", diagnostics);
    Some(Scenario { position, name, to: to?, when: when?, steps })
}

fn when(node: &Node, diagnostics: &mut Diagnostics) -> Option<When> {
    if let Data::Text(text) = &node.data {
        return wanted_text(text, node, diagnostics);
    }
    let mut object = Object::new(node, "\"when\"", diagnostics)?;
    let text = object.given("text");
    let regex = object.given("regex");
    let marker = object.given("marker");
    object.refuse_rest("\"when\"", diagnostics);
    match (text, regex, marker) {
        (Some(node), None, None) => wanted_text(text_of(node, "text", diagnostics)?, node, diagnostics),
        (None, Some(node), None) => match Regex::new(text_of(node, "regex", diagnostics)?) {
            Ok(regex) => Some(When::Regex(regex)),
            Err(problem) => {
                diagnostics.error("invalid-regex", node.span, format!("not a regular expression: {problem}"));
                None
            }
        },
        (None, None, Some(node)) => {
            let name = text_of(node, "marker", diagnostics)?;
            Some(When::Marker(format!("[[{name}]]")))
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

fn wanted_text(text: &str, node: &Node, diagnostics: &mut Diagnostics) -> Option<When> {
    if text.trim().is_empty() {
        diagnostics.error_help(
            "empty-text",
            node.span,
            "\"when\" must not be blank",
            "leave \"when\" out to fit every message",
        );
        return None;
    }
    Some(When::Text(text.to_lowercase()))
}

/// A step, and the one after `then`.
fn steps_of(node: &Node, diagnostics: &mut Diagnostics) -> Option<Vec<Step>> {
    if let Data::Text(text) = &node.data {
        return Some(vec![Step::saying(text)]);
    }
    let mut object = Object::new(node, "a step", diagnostics)?;
    let usage = object.given("usage").and_then(|node| usage(node, diagnostics));
    let tools = object.list("tools", diagnostics).unwrap_or_default();
    let mut step = Step {
        text: object.text("text", diagnostics).map(str::to_owned),
        thinking: object.text("thinking", diagnostics).map(str::to_owned),
        tools: tools.iter().filter_map(|node| tool(node, diagnostics)).collect(),
        stop: object
            .given("stop")
            .and_then(|node| one_of(node, "stop", &STOPS, diagnostics))
            .map(Stop::from_name),
        usage,
        delay: duration(&mut object, "delay", diagnostics).unwrap_or_default(),
        fault: None,
    };
    let fault = fault(&mut object, diagnostics);
    let times_node = object.given("times");
    let times = times_node.and_then(|node| int_of(node, "times", 1, MOST_TIMES, diagnostics));
    let then = object.given("then");
    object.refuse_rest("a step", diagnostics);
    if let (Some(node), None) = (times_node, &fault) {
        diagnostics.error(
            "times-without-fault",
            node.span,
            "\"times\" says how often a step fails, and this one does not",
        );
    }
    if let (Some(node), None) = (then, times_node) {
        diagnostics.error_help(
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
    step.fault = fault.map(|kind| Fault { kind, times });
    let mut steps = vec![step];
    if let Some(then) = then {
        steps.extend(steps_of(then, diagnostics)?);
    }
    Some(steps)
}

impl Step {
    pub fn saying(text: &str) -> Self {
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

    /// How often it fails before the next step's turn comes.
    pub fn passes_after(&self) -> Option<u32> {
        self.fault.as_ref().and_then(|fault| fault.times)
    }
}

fn tool(node: &Node, diagnostics: &mut Diagnostics) -> Option<ToolStep> {
    let mut object = Object::new(node, "a tool call", diagnostics)?;
    let name = object.required_text("name", diagnostics);
    let id = object.text("id", diagnostics).map(str::to_owned);
    let input = match object.given("input") {
        None => json!({}),
        Some(node) => match node.data {
            Data::Map(_) | Data::Text(_) => node.to_value(),
            Data::Null | Data::Bool(_) | Data::Int(_) | Data::Float(_) | Data::List(_) => {
                wrong_type(node, "input", "a mapping, or text for a tool that takes text", diagnostics);
                json!({})
            }
        },
    };
    object.refuse_rest("a tool call", diagnostics);
    Some(ToolStep { name: name?.to_owned(), input, id })
}

fn usage(node: &Node, diagnostics: &mut Diagnostics) -> Option<Usage> {
    let mut object = Object::new(node, "\"usage\"", diagnostics)?;
    let mut tokens = |key| {
        let count = object.int(key, 0, MOST_TOKENS, diagnostics).unwrap_or(0);
        u64::try_from(count).unwrap_or(0)
    };
    let usage = Usage {
        input: tokens("input"),
        output: tokens("output"),
        cache_read: tokens("cache_read"),
        cache_write: tokens("cache_write"),
    };
    object.refuse_rest("\"usage\"", diagnostics);
    Some(usage)
}

fn fault(object: &mut Object<'_>, diagnostics: &mut Diagnostics) -> Option<FaultKind> {
    let message = object.text("message", diagnostics);
    let mut faults = Vec::new();
    let error = object.given("error");
    let kind = object.given("type");
    let headers = object.given("headers");
    if let Some(node) = error {
        let status = int_of(node, "error", 400, 599, diagnostics).and_then(|n| u16::try_from(n).ok());
        let status = status.unwrap_or(500);
        faults.push(FaultKind::Error {
            status,
            kind: kind
                .and_then(|node| text_of(node, "type", diagnostics))
                .unwrap_or(kind_of_status(status))
                .to_owned(),
            message: message.unwrap_or("scripted error").to_owned(),
            headers: headers.map(|node| header_map(node, diagnostics)).unwrap_or_default(),
        });
    }
    for (key, node) in [("type", kind), ("headers", headers)] {
        if let (Some(node), None) = (node, error) {
            diagnostics.error("only-with-error", node.span, format!("\"{key}\" goes with \"error\""));
        }
    }
    faults.extend(duration(object, "hang", diagnostics).map(FaultKind::Hang));
    faults.extend(duration(object, "hang_before_headers", diagnostics).map(FaultKind::HangBeforeHeaders));
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

fn header_map(node: &Node, diagnostics: &mut Diagnostics) -> BTreeMap<String, String> {
    let Some(entries) = node.as_map() else {
        wrong_type(node, "headers", "a mapping", diagnostics);
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
            Data::Text(text) => text.clone(),
            Data::Int(number) => number.to_string(),
            Data::Float(number) => number.to_string(),
            Data::Bool(_) | Data::Null | Data::List(_) | Data::Map(_) => {
                wrong_type(&entry.value, &entry.key, "text or a number", diagnostics);
                continue;
            }
        };
        headers.insert(entry.key.clone(), value);
    }
    headers
}

fn duration(object: &mut Object<'_>, key: &'static str, diagnostics: &mut Diagnostics) -> Option<Duration> {
    let node = object.given(key)?;
    let spelled = match &node.data {
        Data::Text(text) => text.clone(),
        Data::Int(seconds) => seconds.to_string(),
        Data::Float(seconds) => seconds.to_string(),
        Data::Bool(_) | Data::Null | Data::List(_) | Data::Map(_) => {
            wrong_type(node, key, "a duration", diagnostics);
            return None;
        }
    };
    let duration = parse_duration(&spelled);
    if duration.is_none() {
        diagnostics.error_help(
            "invalid-duration",
            node.span,
            format!("\"{key}\" must be a duration, not {spelled:?}"),
            "write 500ms, 20s, 5m or 1h; a bare number is seconds",
        );
    }
    duration
}

fn one_of<'n>(node: &'n Node, key: &str, known: &[&str], diagnostics: &mut Diagnostics) -> Option<&'n str> {
    let text = text_of(node, key, diagnostics)?;
    if known.contains(&text) {
        return Some(text);
    }
    let help = match closest(text, known) {
        Some(meant) => format!("did you mean \"{meant}\"?"),
        None => format!("one of: {}", known.join(", ")),
    };
    diagnostics.error_help("unknown-value", node.span, format!("\"{key}\" cannot be {text:?}"), help);
    None
}
