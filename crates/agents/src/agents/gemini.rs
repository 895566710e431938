//! Gemini CLI, run with `gemini --prompt`, and the decoder of its stream of JSON lines.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{
    AgentCli, AgentCredentials, AgentProgram, Decoder, DecoderKind, GatewayRoute, ModelAddress, StreamEnd,
    StreamTranscript,
};
use practicum_core::model::{RelPath, Step, TokenUsage, ToolCall};

pub static DECODER: DecoderKind = DecoderKind {
    name: "gemini-stream-json",
    shows_skills: true,
    new_decoder: || Box::new(GeminiDecoder::default()),
    new_client: None,
};

pub fn agent() -> AgentCli {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
    let always = words(&["--output-format", "stream-json", "--approval-mode", "yolo"]);
    let model = words(&["--model", "{model}"]);
    // With the equals sign, a prompt that begins with a dash is still the prompt.
    let prompt = words(&["--prompt={prompt}"]);
    AgentCli {
        name: "gemini".to_owned(),
        program: AgentProgram::OnPath("gemini".to_owned()),
        first_turn_args: vec![always.clone(), model.clone(), prompt.clone()],
        // The home belongs to the trial, so its latest session is the trial's.
        later_turn_args: vec![always, words(&["--resume", "latest"]), model, prompt],
        decoder: &DECODER,
        skills_dir: RelPath::new(".gemini/skills").expect("a relative path"),
        env: [
            // In a folder that is not trusted it loads no skills, and asks before each call.
            ("GEMINI_CLI_TRUST_WORKSPACE", "true"),
            ("GEMINI_CLI_NO_RELAUNCH", "true"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec(),
        pass_env: words(&["GOOGLE_GEMINI_BASE_URL", "GEMINI_MODEL"]),
        credentials: AgentCredentials::from_variables(words(&["GEMINI_API_KEY", "GOOGLE_API_KEY"])),
        route: Some(GatewayRoute {
            base_url_variable: "GOOGLE_GEMINI_BASE_URL".to_owned(),
            suffix: "",
            key_variable: "GEMINI_API_KEY".to_owned(),
            model_prefixes: &[],
            also_set: &[],
        }),
        models: vec![ModelAddress::from_variable(
            "GOOGLE_GEMINI_BASE_URL",
            "https://generativelanguage.googleapis.com",
        )],
        skill_command: None,
        home_files: Some(|_, _| {
            let path = RelPath::new(".gemini/settings.json").expect("a relative path");
            vec![(path, settings_json())]
        }),
        own_skills: OWN_SKILLS,
        auto: None,
    }
}

/// The skills that Gemini CLI brings along. They are switched off, because they would compete with the skill under test.
const OWN_SKILLS: &[&str] = &["antigravity-support", "skill-creator"];

/// The model that is asked for if the user names none. Without one, the CLI would first ask another model which to use.
const DEFAULT_MODEL: &str = "gemini-2.5-pro";

/// Writes the settings. The CLI loads no skills in a folder that is not trusted, and in a new home it must be configured
/// how to log in. With its own number of attempts, it would take minutes until it reports that the model does not answer.
fn settings_json() -> String {
    let settings = json!({
        "general": {"enableAutoUpdate": false, "maxAttempts": 2, "retryFetchErrors": false},
        "model": {"name": DEFAULT_MODEL},
        "skills": {"disabled": OWN_SKILLS},
        "privacy": {"usageStatisticsEnabled": false},
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false}},
    });
    settings.to_string()
}

#[derive(Default)]
struct GeminiDecoder {
    transcript: StreamTranscript,
    /// Tool calls without a result so far, by their id in the stream.
    pending_calls: HashMap<String, usize>,
    /// Whether the last event was a piece of the same message.
    in_message: bool,
    message_count: u32,
}

impl Decoder for GeminiDecoder {
    fn read_event(&mut self, event: Value) {
        let text = |key: &str| event[key].as_str().unwrap_or_default();
        match (text("type"), text("role")) {
            ("message", "assistant") => {
                self.add_message_text(text("content"), event["delta"] == true);
                return;
            }
            ("init", _) => {
                self.transcript.session = event["session_id"].as_str().map(str::to_owned);
                self.transcript.model = event["model"].as_str().map(str::to_owned);
            }
            ("tool_use", _) => {
                self.pending_calls.insert(text("tool_id").to_owned(), self.transcript.steps.len());
                let (name, input) = (text("tool_name").to_owned(), event["parameters"].clone());
                self.transcript.steps.push(Step::Tool(ToolCall { name, input, result: None, ok: None }));
            }
            ("tool_result", _) => self.record_tool_result(&event),
            ("result", _) => self.read_result(&event),
            // An `error` is a warning: the error that ends the run comes with the result.
            _ => {}
        }
        self.in_message = false;
    }

    fn finish(self: Box<Self>) -> StreamTranscript {
        self.transcript
    }
}

impl GeminiDecoder {
    /// Adds text to the steps. A message comes in pieces.
    fn add_message_text(&mut self, content: &str, piece: bool) {
        match self.transcript.steps.last_mut() {
            Some(Step::Text(text)) if self.in_message && piece => {
                text.push_str(content);
                self.transcript.output.push_str(content);
            }
            _ => {
                self.message_count += 1;
                self.transcript.output = content.to_owned();
                self.transcript.steps.push(Step::Text(content.to_owned()));
            }
        }
        self.in_message = true;
    }

    fn record_tool_result(&mut self, event: &Value) {
        let at = event["tool_id"].as_str().and_then(|id| self.pending_calls.remove(id));
        let output = event["output"].as_str().or_else(|| event["error"]["message"].as_str());
        let ok = event["status"] == "success";
        if let Some(at) = at {
            self.transcript.record_call_result(at, ok, output.map(str::to_owned));
        }
    }

    fn read_result(&mut self, event: &Value) {
        let stats = &event["stats"];
        let count = |key: &str| stats[key].as_u64().unwrap_or(0);
        let cached = count("cached");
        self.transcript.usage = TokenUsage {
            input: count("input_tokens").saturating_sub(cached),
            output: count("output_tokens"),
            cache_read: cached,
            cache_write: 0,
        };
        self.transcript.end = if event["status"] == "success" {
            let only_asked = self.message_count == 1 && self.transcript.steps.len() == 1;
            if only_asked && self.transcript.output.trim_end().ends_with('?') {
                StreamEnd::AskedUser
            } else {
                StreamEnd::Done
            }
        } else {
            classify_failure(&event["error"])
        };
    }
}

/// Classifies a failure. The CLI names the class of its own error, and quotes the API's error with its code.
fn classify_failure(error: &Value) -> StreamEnd {
    let message = error["message"].as_str().unwrap_or_default();
    let why = message.to_owned();
    let quoted = message.strip_prefix("[API Error: ").and_then(|rest| rest.strip_suffix(']'));
    let quoted = quoted.and_then(|text| serde_json::from_str::<Value>(text).ok()).unwrap_or_default();
    match (error["type"].as_str(), quoted["error"]["code"].as_u64()) {
        (Some("FatalAuthenticationError"), _) | (_, Some(401 | 403)) => StreamEnd::AuthFailed(why),
        (Some("FatalTurnLimitedError"), _) => StreamEnd::OverBudget(why),
        (Some("FatalCancellationError"), _) => StreamEnd::Interrupted(why),
        (_, Some(429)) => StreamEnd::RateLimited(why),
        _ => StreamEnd::ApiFailed(why),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{activation_names, decode_recorded, describe_tool_calls};
    use super::*;

    #[test]
    fn recorded_streams() {
        let plain = "Hello from the scripted model.";
        for (name, output, activated, input, tokens_out) in
            [("plain", plain, "", 7_890, 12), ("skill", "GREETING via gemini skill", "greeter", 23_840, 24)]
        {
            let seen = decode_recorded(&DECODER, &format!("gemini-{name}"));
            assert_eq!(
                (&seen.end, seen.output.as_str(), activation_names(&seen).as_str()),
                (&StreamEnd::Done, output, activated),
                "{name}"
            );
            assert_eq!((seen.usage.input, seen.usage.output), (input, tokens_out), "{name}");
            assert_eq!(seen.model.as_deref(), Some("gemini-2.5-flash"), "{name}");
            assert!(seen.session.is_some(), "{name}");
        }
        let seen = decode_recorded(&DECODER, "gemini-skill");
        assert!(
            describe_tool_calls(&seen)
                .starts_with("activate_skill greeter = ok: Skill **greeter** activated.")
        );
        let refused = decode_recorded(&DECODER, "gemini-e401").end;
        assert!(matches!(&refused, StreamEnd::AuthFailed(why) if why.contains("bad key")), "{refused:?}");
    }

    #[test]
    fn other_events_of_the_program() {
        let said = |text: &str| {
            json!({"type": "message", "role": "assistant", "content": text, "delta": true}).to_string()
        };
        let ends = |event: Value| {
            let mut event = event;
            event["type"] = json!("result");
            event.to_string()
        };
        let fails = |kind: &str| ends(json!({"status": "error", "error": {"type": kind, "message": "m"}}));
        let quoted = |code: u16| format!("[API Error: {{\"error\":{{\"code\":{code}}}}}]");
        let quotes = |code: u16| {
            ends(json!({"status": "error", "error": {"type": "unknown", "message": quoted(code)}}))
        };
        let success = || ends(json!({"status": "success"}));
        let refused = [
            json!({"type": "tool_use", "tool_name": "activate_skill", "tool_id": "1", "parameters": {"name": "x"}}),
            json!({"type": "tool_result", "tool_id": "1", "status": "error", "error": {"message": "no"}}),
        ];
        let refused = refused.map(|event| event.to_string());
        let warning = r#"{"type":"error","severity":"warning","message":"w"}"#.to_owned();
        for (lines, ending, output) in [
            (vec![said("Hello "), said("there."), success()], StreamEnd::Done, "Hello there."),
            (vec![said("Which "), said("one?"), success()], StreamEnd::AskedUser, "Which one?"),
            (vec![said("a"), warning, said("b"), success()], StreamEnd::Done, "b"),
            ([refused.to_vec(), vec![said("Ok?"), success()]].concat(), StreamEnd::Done, "Ok?"),
            (vec![fails("FatalAuthenticationError")], StreamEnd::AuthFailed("m".into()), ""),
            (vec![fails("FatalTurnLimitedError")], StreamEnd::OverBudget("m".into()), ""),
            (vec![fails("FatalCancellationError")], StreamEnd::Interrupted("m".into()), ""),
            (vec![fails("Error")], StreamEnd::ApiFailed("m".into()), ""),
            (vec![quotes(429)], StreamEnd::RateLimited(quoted(429)), ""),
            (vec![quotes(503)], StreamEnd::ApiFailed(quoted(503)), ""),
            (vec![said("cut off")], StreamEnd::BrokenOff, "cut off"),
        ] {
            let mut decoder = (DECODER.new_decoder)();
            lines.iter().for_each(|line| {
                decoder.read_line(line);
            });
            let seen = decoder.finish();
            assert_eq!((&seen.end, seen.output.as_str()), (&ending, output), "{lines:?}");
            assert_eq!(activation_names(&seen), "", "{lines:?}");
        }
    }
}
