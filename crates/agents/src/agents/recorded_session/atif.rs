//! Reads a trajectory in Harbor's Agent Trajectory Interchange Format (ATIF), version 1.

use std::collections::HashMap;

use serde_json::Value;

use super::super::{StreamEnd, StreamTranscript, hidden_subagent};
use super::{RecordedSession, RecordedTurn, SessionFormat, UNKNOWN_PROMPT, content_text};
use practicum_core::model::{AgentEnding, Step, TokenUsage, ToolCall};

/// Reads a trajectory. The error says in words why it cannot be read.
pub fn read_trajectory(document: &Value) -> Result<RecordedSession, String> {
    let version = document["schema_version"].as_str().unwrap_or_default();
    if !version.starts_with("ATIF-v1.") {
        return Err(format!("it is a trajectory of the version {version}, and only ATIF-v1 is known"));
    }
    let steps = document["steps"].as_array().filter(|steps| !steps.is_empty());
    let steps = steps.ok_or("it is a trajectory without steps")?;
    let mut reader = TrajectoryReader::default();
    steps.iter().for_each(|step| reader.read_step(step));
    let (agent, extra) = (&document["agent"], &document["extra"]);
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let mut turns = reader.turns;
    for turn in &mut turns {
        turn.transcript.model = text(&agent["model_name"]);
        turn.transcript.version = text(&agent["version"]).filter(|version| version != "unknown");
        turn.transcript.session = text(&document["session_id"]);
    }
    // Only what this program wrote says how the run ended.
    let ended: Option<AgentEnding> = serde_json::from_value(extra["ended"].clone()).ok();
    if let Some(last) = turns.last_mut() {
        let transcript = &mut last.transcript;
        let metrics = &document["final_metrics"];
        transcript.usage = read_metrics(metrics);
        transcript.cost_usd = metrics["total_cost_usd"].as_f64();
        transcript.totals_of_session = true;
        if extra["steps_complete"] == false {
            transcript.unread_reason = Some("the trajectory does not have all steps".to_owned());
        }
        if matches!(transcript.steps.last(), Some(Step::Text(_))) {
            transcript.end = StreamEnd::Done;
        }
    }
    Ok(RecordedSession {
        format: SessionFormat::Atif,
        agent: text(&agent["name"]).unwrap_or_else(|| "an unnamed agent".to_owned()),
        id: text(&document["session_id"]).or_else(|| text(&document["trajectory_id"])),
        turns,
        ended,
        seconds: extra["seconds"].as_f64(),
        notes: Vec::new(),
    })
}

/// Reads the tokens of all steps together. Those of a prompt include what came from a cache.
fn read_metrics(metrics: &Value) -> TokenUsage {
    let count = |key: &str| metrics[key].as_u64().unwrap_or(0);
    let cache_read = count("total_cached_tokens");
    TokenUsage {
        input: count("total_prompt_tokens").saturating_sub(cache_read),
        output: count("total_completion_tokens"),
        cache_read,
        cache_write: 0,
    }
}

#[derive(Default)]
struct TrajectoryReader {
    turns: Vec<RecordedTurn>,
    /// The steps of calls in the current turn, by the id of the call.
    calls: HashMap<String, usize>,
}

impl TrajectoryReader {
    fn transcript(&mut self) -> &mut StreamTranscript {
        if self.turns.is_empty() {
            self.begin_turn(UNKNOWN_PROMPT.to_owned());
        }
        &mut self.turns.last_mut().expect("a turn was added").transcript
    }

    fn begin_turn(&mut self, prompt: String) {
        self.calls.clear();
        self.turns.push(RecordedTurn { prompt, transcript: StreamTranscript::default() });
    }

    fn read_step(&mut self, step: &Value) {
        let message = content_text(&step["message"]);
        match step["source"].as_str() {
            Some("user") => self.begin_turn(message),
            Some("agent") => {
                if !message.is_empty() {
                    let transcript = self.transcript();
                    transcript.output = message.clone();
                    transcript.steps.push(Step::Text(message));
                }
                self.read_calls(step);
            }
            // Messages of the system are no part of the conversation, but may have results of calls.
            _ => {}
        }
        self.read_results(step);
    }

    fn read_calls(&mut self, step: &Value) {
        for call in step["tool_calls"].as_array().into_iter().flatten() {
            let name = call["function_name"].as_str().unwrap_or_default().to_owned();
            // The format wants a mapping, so another input was wrapped into one when it was written.
            let input = match step["extra"]["input_was_wrapped"] == true {
                true => call["arguments"]["input"].clone(),
                false => call["arguments"].clone(),
            };
            let at = self.transcript().steps.len();
            self.calls.extend(call["tool_call_id"].as_str().map(|id| (id.to_owned(), at)));
            self.transcript().steps.push(Step::Tool(ToolCall { name, input, result: None, ok: None }));
        }
    }

    /// Reads the results of calls. The format does not say whether a call succeeded; what this program wrote does.
    fn read_results(&mut self, step: &Value) {
        let ok = step["extra"]["ok"].as_bool();
        let only_call = match step["tool_calls"].as_array().map(Vec::as_slice) {
            Some([call]) => call["tool_call_id"].as_str(),
            _ => None,
        };
        for result in step["observation"]["results"].as_array().into_iter().flatten() {
            if !result["subagent_trajectory_ref"].is_null() {
                self.transcript().uncertain.push(hidden_subagent());
            }
            let id = result["source_call_id"].as_str().or(only_call);
            let Some(at) = id.and_then(|id| self.calls.get(id).copied()) else { continue };
            let text = Some(content_text(&result["content"])).filter(|_| !result["content"].is_null());
            let transcript = self.transcript();
            match ok {
                Some(ok) => transcript.record_call_result(at, ok, text),
                None => {
                    if let Some(Step::Tool(call)) = transcript.steps.get_mut(at) {
                        call.result = text;
                    }
                }
            }
        }
    }
}
