//! goose, run with `goose run`, and the decoder of its stream of JSON lines.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::{
    AgentCli, AgentCredentials, AgentProgram, Decoder, DecoderKind, GatewayRoute, ModelAddress, StreamEnd,
    StreamTranscript, classify_api_error,
};
use practicum_core::model::{RelPath, Step, TokenUsage, ToolCall};

pub static DECODER: DecoderKind = DecoderKind {
    name: "goose-stream-json",
    shows_skills: true,
    new_decoder: || Box::new(GooseDecoder::default()),
    new_client: None,
};

/// Says whether goose wrote this text itself to report an error of the model's API. After that it ends with exit code 0.
pub fn reports_api_error(text: &str) -> bool {
    let ends = [
        "Please retry if you think this is a transient or recoverable error.",
        "Please resend your message to try again.",
    ];
    text.starts_with("Ran into this error: ") || ends.iter().any(|end| text.trim_end().ends_with(end))
}

pub fn agent() -> AgentCli {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
    // Without `-q`, a banner precedes the stream.
    let always = words(&["run", "-q", "--output-format", "stream-json", "--name", "{session}"]);
    // With the equals sign, a prompt that begins with a dash is still the prompt.
    let prompt = words(&["--text={prompt}"]);
    let append = words(&["--system", "{append_system}"]);
    AgentCli {
        name: "goose".to_owned(),
        program: AgentProgram::OnPath("goose".to_owned()),
        first_turn_args: vec![always.clone(), append.clone(), prompt.clone()],
        later_turn_args: vec![always, words(&["--resume"]), append, prompt],
        decoder: &DECODER,
        skills_dir: RelPath::new(".agents/skills").expect("a relative path"),
        env: [
            ("GOOSE_MODE", "auto"),
            ("GOOSE_MODEL", "{model}"),
            ("GOOSE_DISABLE_KEYRING", "1"),
            ("GOOSE_TELEMETRY_OFF", "1"),
            ("GOOSE_TELEMETRY_ENABLED", "false"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec(),
        pass_env: words(&["GOOSE_PROVIDER", "GOOSE_MODEL", "OPENAI_HOST", "ANTHROPIC_HOST"]),
        credentials: AgentCredentials::from_variables(words(&[
            "OPENAI_API_KEY",
            "ANTHROPIC_API_KEY",
            "GOOGLE_API_KEY",
            "OPENROUTER_API_KEY",
        ])),
        route: Some(GatewayRoute {
            base_url_variable: "OPENAI_HOST".to_owned(),
            suffix: "",
            key_variable: "OPENAI_API_KEY".to_owned(),
            model_prefixes: &[],
            also_set: &[("GOOSE_PROVIDER", "openai"), ("GOOSE_MODEL", "gpt-4.1")],
        }),
        models: vec![
            ModelAddress::from_variable("OPENAI_HOST", "https://api.openai.com"),
            ModelAddress::from_variable("ANTHROPIC_HOST", "https://api.anthropic.com"),
        ],
        skill_command: None,
        home_files: Some(home_files),
        own_skills: &["goose-doc-guide"],
        auto: None,
    }
}

/// The vendors, each with the variable of its key and the model that is asked for if the user names none.
const VENDORS: [(&str, &str, &str); 4] = [
    ("OPENAI_API_KEY", "openai", "gpt-5"),
    ("ANTHROPIC_API_KEY", "anthropic", "claude-sonnet-4-5"),
    ("GOOGLE_API_KEY", "google", "gemini-2.5-pro"),
    ("OPENROUTER_API_KEY", "openrouter", "anthropic/claude-sonnet-4.5"),
];

/// Writes the configuration of a new home: the vendor whose key there is. Variables of the user go before it.
fn home_files(env: &BTreeMap<String, String>, _: bool) -> Vec<(RelPath, String)> {
    let vendor = VENDORS.iter().find(|(key, ..)| env.contains_key(*key));
    let config = vendor.map(|(_, name, model)| format!("GOOSE_PROVIDER: {name}\nGOOSE_MODEL: {model}\n"));
    let path = RelPath::new(".config/goose/config.yaml").expect("a relative path");
    config.map(|config| (path, config)).into_iter().collect()
}

#[derive(Default)]
struct GooseDecoder {
    transcript: StreamTranscript,
    /// Tool calls without a result so far, by their id in the stream.
    pending_calls: HashMap<String, usize>,
    /// The id of the message that the last piece of text belongs to. A message that goose itself writes has none.
    message_id: Option<String>,
    in_message: bool,
}

impl Decoder for GooseDecoder {
    fn read_event(&mut self, event: Value) {
        match event["type"].as_str() {
            Some("message") => self.read_message(&event["message"]),
            Some("complete") => self.read_end(&event),
            Some("error") => {
                let message = event["error"].as_str().or_else(|| event["message"].as_str());
                self.transcript.end = classify_api_error(message.unwrap_or_default());
            }
            _ => {}
        }
    }

    fn finish(self: Box<Self>) -> StreamTranscript {
        self.transcript
    }
}

impl GooseDecoder {
    fn read_message(&mut self, message: &Value) {
        for block in message["content"].as_array().into_iter().flatten() {
            let id = block["id"].as_str().unwrap_or_default();
            match (block["type"].as_str(), message["role"].as_str()) {
                (Some("text"), Some("assistant")) => {
                    self.add_text(message["id"].as_str(), block["text"].as_str().unwrap_or_default());
                    continue;
                }
                (Some("toolRequest"), _) => {
                    let call = &block["toolCall"]["value"];
                    let name = call["name"].as_str().unwrap_or_default().to_owned();
                    let input = call["arguments"].clone();
                    self.pending_calls.insert(id.to_owned(), self.transcript.steps.len());
                    let call = ToolCall { name, input, result: None, ok: None };
                    self.transcript.steps.push(Step::Tool(call));
                }
                (Some("toolResponse"), _) => self.record_tool_result(id, &block["toolResult"]),
                _ => {}
            }
            self.in_message = false;
        }
    }

    /// Adds text to the steps. A message comes in pieces with the same id.
    fn add_text(&mut self, id: Option<&str>, piece: &str) {
        let is_same = self.in_message && id.is_some() && self.message_id.as_deref() == id;
        match self.transcript.steps.last_mut() {
            Some(Step::Text(text)) if is_same => {
                text.push_str(piece);
                self.transcript.output.push_str(piece);
            }
            _ => {
                self.transcript.output = piece.to_owned();
                self.transcript.steps.push(Step::Text(piece.to_owned()));
            }
        }
        self.message_id = id.map(str::to_owned);
        self.in_message = true;
    }

    /// Records a result. The outer status says that the tool could be called, the inner mark whether it succeeded.
    fn record_tool_result(&mut self, id: &str, result: &Value) {
        let Some(at) = self.pending_calls.remove(id) else { return };
        let value = &result["value"];
        let exit_code = value["structuredContent"]["exit_code"].as_i64().unwrap_or(0);
        let ok = result["status"] == "success" && value["isError"] != true && exit_code == 0;
        let content = value["content"].as_array().into_iter().flatten();
        let texts: Vec<&str> = content.filter_map(|block| block["text"].as_str()).collect();
        let text = match result["error"].as_str() {
            Some(error) => error.to_owned(),
            None => texts.join("\n"),
        };
        self.transcript.record_call_result(at, ok, Some(text));
    }

    /// Reads the end. goose ends in the same way after an error of the model's API: then it has written the last message
    /// itself, and counts no tokens if there was no answer before.
    fn read_end(&mut self, event: &Value) {
        let count = |key: &str| event[key].as_u64().unwrap_or(0);
        let usage = TokenUsage {
            input: count("input_tokens"),
            output: count("output_tokens"),
            ..TokenUsage::default()
        };
        // The totals are those of the session. After an error they may be missing, and say nothing of earlier turns.
        let is_counted = event["total_tokens"].is_u64();
        if is_counted {
            self.transcript.usage = usage;
            self.transcript.totals_of_session = true;
        }
        let is_error = self.message_id.is_none() && reports_api_error(&self.transcript.output);
        let has_answer = self.message_id.is_some() && !self.transcript.steps.is_empty();
        if is_error || !(is_counted || has_answer) {
            let said = std::mem::take(&mut self.transcript.output);
            self.transcript.end = match said.as_str() {
                "" => StreamEnd::ApiFailed("goose ended without an answer of the model".to_owned()),
                said => classify_api_error(said),
            };
        } else {
            self.transcript.set_finished();
        }
    }
}
