//! Writes a trial as a trajectory in Harbor's Agent Trajectory Interchange Format.

use practicum_core::model::{Step, ToolCall};
use serde_json::{Map, Value, json};

use super::{TracedTrial, input_tokens};

const SCHEMA_VERSION: &str = "ATIF-v1.8";

/// Writes one trial. The verdicts are in `extra`, because the format has no place for them.
pub fn trajectory(trial: &TracedTrial<'_>) -> Value {
    let record = trial.record;
    let steps: Vec<Value> =
        trial.steps.iter().enumerate().map(|(at, step)| step_value(at + 1, step)).collect();
    let mut agent = Map::new();
    agent.insert("name".to_owned(), json!(record.condition.agent));
    // The format wants a version, and what ran is known only by its name.
    agent.insert("version".to_owned(), json!("unknown"));
    let model = record.model.as_ref().or(record.condition.model.as_ref());
    agent.extend(model.map(|model| ("model_name".to_owned(), json!(model))));
    let mut metrics = json!({
        "total_prompt_tokens": input_tokens(record),
        "total_completion_tokens": record.usage.output,
        "total_cached_tokens": record.usage.cache_read,
        "total_steps": steps.len(),
    });
    if let (Some(cost), Value::Object(metrics)) = (record.cost_usd, &mut metrics) {
        metrics.insert("total_cost_usd".to_owned(), json!(cost));
    }
    json!({
        "schema_version": SCHEMA_VERSION,
        "session_id": format!("{}/{}", trial.run, record.trial),
        "agent": agent,
        "steps": steps,
        "final_metrics": metrics,
        "extra": {
            "suite": record.suite,
            "case": record.case,
            "arm": record.condition.arm.name(),
            "attempt": record.attempt,
            "ended": record.ended.name(),
            "started": trial.started.map(|at| at.to_string()),
            "seconds": record.seconds,
            "steps_complete": trial.is_complete,
            "verdict": record.verdict.name(),
            "not_scored_because": record.not_scored_reason(),
            "checks": record.checks.iter().map(|check| json!({
                "id": check.check,
                "required": check.required,
                "verdict": check.verdict.name(),
                "score": check.score,
                "why": check.rationale,
            })).collect::<Vec<_>>(),
        },
    })
}

fn step_value(id: usize, step: &Step) -> Value {
    match step {
        Step::User(text) => json!({"step_id": id, "source": "user", "message": text}),
        Step::Text(text) => json!({"step_id": id, "source": "agent", "message": text}),
        Step::Tool(call) => tool_step(id, call),
    }
}

fn tool_step(id: usize, call: &ToolCall) -> Value {
    let call_id = format!("call-{id}");
    // The format wants a mapping of arguments.
    let (arguments, is_wrapped) = match &call.input {
        Value::Object(_) => (call.input.clone(), false),
        other => (json!({"input": other}), true),
    };
    let mut extra = Map::new();
    extra.extend(call.ok.map(|ok| ("ok".to_owned(), json!(ok))));
    extra.extend(is_wrapped.then(|| ("input_was_wrapped".to_owned(), json!(true))));
    let mut step = json!({
        "step_id": id,
        "source": "agent",
        "message": "",
        "tool_calls": [{"tool_call_id": call_id, "function_name": call.name, "arguments": arguments}],
    });
    if let Value::Object(step) = &mut step {
        // A call may have succeeded without a text.
        if call.result.is_some() || call.ok.is_some() {
            let result = json!({"results": [{"source_call_id": call_id, "content": call.result}]});
            step.insert("observation".to_owned(), result);
        }
        if !extra.is_empty() {
            step.insert("extra".to_owned(), Value::Object(extra));
        }
    }
    step
}
