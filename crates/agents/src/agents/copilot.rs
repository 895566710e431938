//! GitHub Copilot CLI, run with `copilot -p`, and the decoder of its stream of JSON lines.

use std::collections::HashMap;

use serde_json::Value;

use super::{
    AgentCli, AgentCredentials, AgentProgram, Decoder, DecoderKind, GatewayRoute, ModelAddress, StreamEnd,
    StreamTranscript, classify_api_error,
};
use practicum_core::model::{RelPath, SkillRefusalSource, Step, ToolCall};

pub static DECODER: DecoderKind = DecoderKind {
    name: "copilot-json",
    shows_skills: true,
    new_decoder: || Box::new(CopilotDecoder::default()),
    new_client: None,
};

/// The skills that Copilot CLI brings along, and that cannot be switched off.
const OWN_SKILLS: &[&str] = &["customize-cloud-agent", "github-pr-media"];

pub fn agent() -> AgentCli {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
    let always = words(&["--output-format", "json", "--stream", "off", "--allow-all"]);
    // With the equals sign, a prompt that begins with a dash is still the prompt.
    let prompt = words(&["--prompt={prompt}"]);
    AgentCli {
        name: "copilot".to_owned(),
        program: AgentProgram::OnPath("copilot".to_owned()),
        first_turn_args: vec![always.clone(), prompt.clone()],
        later_turn_args: vec![always, words(&["--resume={session}"]), prompt],
        decoder: &DECODER,
        skills_dir: RelPath::new(".agents/skills").expect("a relative path"),
        env: [
            ("COPILOT_HOME", "{home}/.copilot"),
            ("COPILOT_AUTO_UPDATE", "false"),
            ("COPILOT_ALLOW_ALL", "true"),
            ("COPILOT_MODEL", "{model}"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec(),
        // A shared cache saves unpacking 240 MB in every new home.
        pass_env: words(&[
            "COPILOT_CACHE_HOME",
            "COPILOT_MODEL",
            "COPILOT_PROVIDER_BASE_URL",
            "COPILOT_PROVIDER_TYPE",
            "COPILOT_PROVIDER_WIRE_API",
        ]),
        credentials: AgentCredentials::from_variables(words(&[
            "COPILOT_PROVIDER_API_KEY",
            "COPILOT_GITHUB_TOKEN",
            "GH_TOKEN",
            "GITHUB_TOKEN",
        ])),
        route: Some(GatewayRoute {
            base_url_variable: "COPILOT_PROVIDER_BASE_URL".to_owned(),
            suffix: "/v1",
            key_variable: "COPILOT_PROVIDER_API_KEY".to_owned(),
            model_prefixes: &[],
            also_set: &[
                // It removes its key from everything that it prints, so the key must not be a word.
                ("COPILOT_PROVIDER_API_KEY", "practicum-gateway-key"),
                ("COPILOT_OFFLINE", "true"),
                ("COPILOT_MODEL", "gpt-5"),
                ("COPILOT_PROVIDER_TYPE", "openai"),
                ("COPILOT_PROVIDER_WIRE_API", "completions"),
            ],
        }),
        models: vec![
            ModelAddress::from_variable("COPILOT_PROVIDER_BASE_URL", "https://api.githubcopilot.com"),
            ModelAddress { variable: None, default: "https://api.github.com".to_owned() },
        ],
        skill_command: None,
        home_files: None,
        own_skills: OWN_SKILLS,
        auto: None,
    }
}

#[derive(Default)]
struct CopilotDecoder {
    transcript: StreamTranscript,
    /// Tool calls without a result so far, by their id in the stream.
    pending_calls: HashMap<String, usize>,
    /// The error that ended the session, if one did.
    error: Option<StreamEnd>,
    model_calls: u64,
}

impl Decoder for CopilotDecoder {
    fn read_event(&mut self, event: Value) {
        let data = &event["data"];
        let text = |key: &str| data[key].as_str().unwrap_or_default();
        match event["type"].as_str() {
            Some("session.skills_loaded") => {
                let skills = data["skills"].as_array().into_iter().flatten();
                let enabled = skills.filter(|skill| skill["enabled"] != false);
                let names = enabled.filter_map(|skill| skill["name"].as_str()).map(str::to_owned);
                self.transcript.skills_listed = Some(names.collect());
            }
            Some("assistant.message") => {
                self.transcript.model =
                    data["model"].as_str().map(str::to_owned).or(self.transcript.model.take());
                let content = text("content");
                // A message may consist of calls alone.
                if !content.is_empty() {
                    self.transcript.output = content.to_owned();
                    self.transcript.steps.push(Step::Text(content.to_owned()));
                }
            }
            Some("tool.execution_start") => {
                self.pending_calls.insert(text("toolCallId").to_owned(), self.transcript.steps.len());
                let (name, input) = (text("toolName").to_owned(), data["arguments"].clone());
                self.transcript.steps.push(Step::Tool(ToolCall { name, input, result: None, ok: None }));
            }
            Some("tool.execution_complete") => self.record_tool_result(data),
            Some("model.call_finished") if data["outcome"] == "success" => self.model_calls += 1,
            Some("session.error") => self.error = Some(classify_session_error(data)),
            Some("result") => self.read_result(&event),
            _ => {}
        }
    }

    fn finish(mut self: Box<Self>) -> StreamTranscript {
        self.transcript.api_calls = (self.model_calls > 0).then_some(self.model_calls);
        self.transcript
    }
}

impl CopilotDecoder {
    fn record_tool_result(&mut self, data: &Value) {
        let at = data["toolCallId"].as_str().and_then(|id| self.pending_calls.remove(id));
        let Some(at) = at else { return };
        let result = data["result"]["content"].as_str().or_else(|| data["error"]["message"].as_str());
        // A command that ran is a success of the tool, whatever its exit code; its result ends with the code.
        let failed = result.is_some_and(|text| {
            let code = text.rsplit_once("completed with exit code ").map(|(_, code)| code);
            code.is_some_and(|code| !code.starts_with('0'))
        });
        let ok = data["success"] == true && !failed;
        let refusals = self.transcript.refused_skills.len();
        self.transcript.record_call_result(at, ok, result.map(str::to_owned));
        if data["error"]["code"] == "denied" {
            for refused in &mut self.transcript.refused_skills[refusals..] {
                refused.by = SkillRefusalSource::Permissions;
            }
        }
    }

    /// Reads the end. The stream counts no tokens: they are only in a file that the CLI can write, and at a gateway.
    fn read_result(&mut self, event: &Value) {
        self.transcript.session = event["sessionId"].as_str().map(str::to_owned);
        match (event["exitCode"].as_i64(), self.error.take()) {
            (Some(0), None) => self.transcript.set_finished(),
            (_, Some(error)) => self.transcript.end = error,
            (code, None) => {
                let code = code.map_or_else(|| "none".to_owned(), |code| code.to_string());
                self.transcript.end = StreamEnd::ApiFailed(format!("the agent reports the exit code {code}"));
            }
        }
    }
}

/// Classifies the error that ended a session. It has a type, and an error of the API also the HTTP status.
fn classify_session_error(data: &Value) -> StreamEnd {
    let why = data["message"].as_str().unwrap_or_default().to_owned();
    match (data["errorType"].as_str(), data["statusCode"].as_u64()) {
        (_, Some(429)) | (Some("rate_limit"), _) => StreamEnd::RateLimited(why),
        (_, Some(401 | 403)) | (Some("authentication"), _) => StreamEnd::AuthFailed(why),
        (_, Some(_)) => StreamEnd::ApiFailed(why),
        (_, None) => classify_api_error(&why),
    }
}
