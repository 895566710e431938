//! Writes a trial as OpenTelemetry spans, in the JSON form of OTLP and with the names of the GenAI conventions.

use practicum_core::model::{AgentEnding, CheckResult, Digest, Step, ToolCall, TrialRecord, Verdict};
use serde_json::{Value, json};

use super::{TracedTrial, input_tokens};

/// The kind of a span within one program.
const INTERNAL: u8 = 1;
/// The status of a span with an error.
const ERROR: u8 = 2;

/// Writes one trial as a request for a trace receiver: a span for the agent, with the verdicts as events, and one below
/// it for each tool call. Streams of agents have no times of single calls, so the spans of calls have the agent's start,
/// one nanosecond apart to keep their order, and say so.
pub fn trace_request(trial: &TracedTrial<'_>) -> Value {
    let record = trial.record;
    let ids = SpanIds::of_trial(trial);
    let start = trial.started.map_or(0, |at| u128::try_from(at.as_nanosecond()).unwrap_or(0));
    let end = start + (record.seconds.max(0.0) * 1e9) as u128;
    let mut spans = vec![agent_span(trial, &ids, start, end)];
    let calls = trial.steps.iter().filter_map(|step| match step {
        Step::Tool(call) => Some(call),
        Step::User(_) | Step::Text(_) => None,
    });
    for (number, call) in calls.enumerate() {
        spans.push(tool_span(call, number, &ids, start + number as u128));
    }
    json!({"resourceSpans": [{
        "resource": {"attributes": [text("service.name", "practicum")]},
        "scopeSpans": [{
            "scope": {"name": "practicum", "version": env!("CARGO_PKG_VERSION")},
            "spans": spans,
        }],
    }]})
}

/// The ids of a trial's spans. The same trial always has the same.
struct SpanIds {
    digest: String,
}

impl SpanIds {
    fn of_trial(trial: &TracedTrial<'_>) -> Self {
        let parts = [trial.run, trial.record.trial.as_str()];
        Self { digest: Digest::of_parts(parts.map(str::as_bytes)).as_str().to_owned() }
    }

    /// Gives the id of the trace: 16 bytes in hexadecimal.
    fn trace(&self) -> &str {
        &self.digest[..32]
    }

    /// Gives the id of a span: 8 bytes in hexadecimal. 0 is the agent's.
    fn span(&self, number: usize) -> String {
        Digest::of_parts([self.digest.as_bytes(), number.to_string().as_bytes()]).as_str()[..16].to_owned()
    }
}

fn agent_span(trial: &TracedTrial<'_>, ids: &SpanIds, start: u128, end: u128) -> Value {
    let record = trial.record;
    let agent = &record.condition.agent;
    let mut attributes = vec![
        text("gen_ai.operation.name", "invoke_agent"),
        text("gen_ai.agent.name", agent),
        text("gen_ai.conversation.id", record.trial.as_str()),
        whole("gen_ai.usage.input_tokens", input_tokens(record)),
        whole("gen_ai.usage.output_tokens", record.usage.output),
        whole("gen_ai.usage.cache_read.input_tokens", record.usage.cache_read),
        whole("gen_ai.usage.cache_creation.input_tokens", record.usage.cache_write),
        text("practicum.run", trial.run),
        text("practicum.suite", &record.suite),
        text("practicum.case", &record.case),
        text("practicum.arm", &record.condition.arm.name()),
        whole("practicum.attempt", u64::from(record.attempt)),
        text("practicum.ended", record.ended.name()),
        text("practicum.verdict", record.verdict.name()),
        json!({"key": "practicum.steps_complete", "value": {"boolValue": trial.is_complete}}),
        text("gen_ai.input.messages", &messages(trial, "user")),
        text("gen_ai.output.messages", &messages(trial, "assistant")),
    ];
    attributes.extend(record.condition.model.iter().map(|model| text("gen_ai.request.model", model)));
    attributes.extend(record.model.iter().map(|model| text("gen_ai.response.model", model)));
    attributes.extend(record.cost_usd.map(|cost| number("practicum.cost_usd", cost)));
    let status = match record.ended {
        AgentEnding::Finished => json!({}),
        ended => json!({"code": ERROR, "message": ended.describe()}),
    };
    json!({
        "traceId": ids.trace(),
        "spanId": ids.span(0),
        "name": format!("invoke_agent {agent}"),
        "kind": INTERNAL,
        "startTimeUnixNano": start.to_string(),
        "endTimeUnixNano": end.to_string(),
        "attributes": attributes,
        "events": evaluation_events(record, end),
        "status": status,
    })
}

/// Writes what the user or the agent said, in the form of the GenAI conventions.
fn messages(trial: &TracedTrial<'_>, role: &str) -> String {
    let said = trial.steps.iter().filter_map(|step| match (step, role) {
        (Step::User(text), "user") | (Step::Text(text), "assistant") => Some(text),
        (Step::User(_) | Step::Text(_) | Step::Tool(_), _) => None,
    });
    let said = said.map(|text| json!({"role": role, "parts": [{"type": "text", "content": text}]}));
    Value::Array(said.collect()).to_string()
}

/// Gives an event for the trial's verdict, and one for each check.
fn evaluation_events(record: &TrialRecord, at: u128) -> Vec<Value> {
    let event = |name: &str, verdict: &Verdict, score: Option<f64>, why: &str| {
        let mut attributes =
            vec![text("gen_ai.evaluation.name", name), text("gen_ai.evaluation.score.label", verdict.name())];
        attributes.extend(score.map(|score| number("gen_ai.evaluation.score.value", score)));
        attributes.extend((!why.is_empty()).then(|| text("gen_ai.evaluation.explanation", why)));
        json!({"timeUnixNano": at.to_string(), "name": "gen_ai.evaluation.result", "attributes": attributes})
    };
    // A verdict without an answer has no number.
    let plain = |verdict: &Verdict| match verdict {
        Verdict::Pass => Some(1.0),
        Verdict::Fail => Some(0.0),
        Verdict::NotScored(_) => None,
    };
    let whole = record.score.or_else(|| plain(&record.verdict));
    let why = record.not_scored_reason().unwrap_or_default();
    let checks = record.checks.iter().map(|check: &CheckResult| {
        event(&check.check, &check.verdict, check.score.or_else(|| plain(&check.verdict)), &check.rationale)
    });
    std::iter::once(event("trial", &record.verdict, whole, &why)).chain(checks).collect()
}

fn tool_span(call: &ToolCall, number: usize, ids: &SpanIds, at: u128) -> Value {
    let mut attributes = vec![
        text("gen_ai.operation.name", "execute_tool"),
        text("gen_ai.tool.name", &call.name),
        text("gen_ai.tool.call.arguments", &call.input.to_string()),
        json!({"key": "practicum.time_known", "value": {"boolValue": false}}),
    ];
    attributes.extend(call.result.iter().map(|result| text("gen_ai.tool.call.result", result)));
    json!({
        "traceId": ids.trace(),
        "spanId": ids.span(number + 1),
        "parentSpanId": ids.span(0),
        "name": format!("execute_tool {}", call.name),
        "kind": INTERNAL,
        "startTimeUnixNano": at.to_string(),
        "endTimeUnixNano": at.to_string(),
        "attributes": attributes,
        "status": if call.ok == Some(false) { json!({"code": ERROR}) } else { json!({}) },
    })
}

fn text(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

fn whole(key: &str, value: u64) -> Value {
    json!({"key": key, "value": {"intValue": value.to_string()}})
}

fn number(key: &str, value: f64) -> Value {
    json!({"key": key, "value": {"doubleValue": value}})
}
