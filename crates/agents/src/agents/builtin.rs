//! The program's own agent, and the decoder of practicum-jsonl, which agents of users may also write.

use std::collections::HashMap;

use serde_json::Value;

use super::{
    AgentCli, AgentCredentials, AgentProgram, Decoder, DecoderKind, GatewayRoute, ModelAddress, StreamEnd,
    StreamTranscript, called_skill, hidden_subagent, is_subagent_tool, refused_skill_call,
};
use crate::builtin::events::{ActivationMeans, JsonlEnding, JsonlEvent};
use practicum_core::model::{ActivatedSkill, ActivationEvidence, RelPath, Step, TokenUsage, ToolCall};

pub static DECODER: DecoderKind = DecoderKind {
    name: "practicum-jsonl",
    shows_skills: true,
    new_decoder: || Box::new(JsonlDecoder::default()),
    new_client: None,
};

/// The hidden subcommand under which this program is the agent.
pub const SUBCOMMAND: &str = "builtin-agent";

pub fn agent() -> AgentCli {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
    let groups = vec![
        words(&[SUBCOMMAND, "--workspace", "{workspace}", "--session-file", "{home}/session.json"]),
        words(&["--model", "{model}"]),
        words(&["--append-system", "{append_system}"]),
        words(&["--tools", "{tools}"]),
        words(&["--", "{prompt}"]),
    ];
    AgentCli {
        name: "builtin".to_owned(),
        program: AgentProgram::ThisProgram,
        first_turn_args: groups.clone(),
        later_turn_args: groups,
        decoder: &DECODER,
        skills_dir: RelPath::new(".claude/skills").expect("a relative path"),
        env: Vec::new(),
        pass_env: words(&[
            "ANTHROPIC_BASE_URL",
            "ANTHROPIC_MODEL",
            "OPENAI_BASE_URL",
            "OPENAI_MODEL",
            "PRACTICUM_BUILTIN_API",
        ]),
        credentials: AgentCredentials::from_variables(words(&[
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "OPENAI_API_KEY",
        ])),
        route: Some(GatewayRoute {
            base_url_variable: "ANTHROPIC_BASE_URL".to_owned(),
            suffix: "",
            key_variable: "ANTHROPIC_API_KEY".to_owned(),
            model_prefixes: &[],
            also_set: &[],
        }),
        models: vec![
            ModelAddress::from_variable("ANTHROPIC_BASE_URL", "https://api.anthropic.com"),
            ModelAddress::from_variable("OPENAI_BASE_URL", "https://api.openai.com"),
        ],
        skill_command: Some(|skill, args| format!("/{skill} {args}").trim_end().to_owned()),
        home_files: None,
        own_skills: &[],
        auto: Some(100),
    }
}

/// The tool with which agents ask the user.
const ASK_USER_TOOL: &str = "AskUserQuestion";

#[derive(Default)]
struct JsonlDecoder {
    transcript: StreamTranscript,
    pending: HashMap<String, usize>,
    api_calls: u64,
    /// Whether the stream began with the event that must be first.
    started: bool,
}

impl Decoder for JsonlDecoder {
    fn read_event(&mut self, event: Value) {
        // A reader of this stream skips events that it does not know.
        let is_call = ["skill", "tool", "tool_result"].iter().any(|known| event["type"] == *known);
        let Ok(event) = serde_json::from_value::<JsonlEvent>(event) else {
            self.transcript.hides_tools |= is_call;
            return;
        };
        match event {
            JsonlEvent::Start { version, model, skills, session, .. } => {
                self.started = true;
                self.transcript.model = model;
                self.transcript.version = version;
                self.transcript.session = session;
                self.transcript.skills_listed = skills;
            }
            JsonlEvent::Text { text } => {
                self.transcript.output.clone_from(&text);
                self.transcript.steps.push(Step::Text(text));
            }
            JsonlEvent::Tool { id, name, input } => {
                self.pending.insert(id, self.transcript.steps.len());
                self.transcript.steps.push(Step::Tool(ToolCall { name, input, result: None, ok: None }));
            }
            JsonlEvent::ToolResult { id, ok, content } => self.record_tool_result(&id, ok, content),
            JsonlEvent::Skill { name, via } => {
                let evidence = match via {
                    ActivationMeans::Tool => ActivationEvidence::SkillTool,
                    ActivationMeans::Read => ActivationEvidence::ReadSkillFile { tool: "read".to_owned() },
                };
                self.record_activation(name, evidence);
            }
            JsonlEvent::Usage { input, output, cache_read, cache_write } => {
                self.api_calls += 1;
                self.transcript.usage.add(TokenUsage { input, output, cache_read, cache_write });
            }
            JsonlEvent::End { ending, message, .. } => {
                let why = message.unwrap_or_default();
                self.transcript.end = match ending {
                    JsonlEnding::Finished if self.only_asked_user() => StreamEnd::AskedUser,
                    JsonlEnding::Finished => StreamEnd::Done,
                    JsonlEnding::RateLimited => StreamEnd::RateLimited(why),
                    JsonlEnding::AuthFailed => StreamEnd::AuthFailed(why),
                    JsonlEnding::ApiFailed => StreamEnd::ApiFailed(why),
                    JsonlEnding::OverBudget => StreamEnd::OverBudget(why),
                };
            }
        }
    }

    fn finish(mut self: Box<Self>) -> StreamTranscript {
        self.transcript.api_calls = (self.api_calls > 0).then_some(self.api_calls);
        // A stream that begins otherwise may be another format, which shows calls in another way.
        self.transcript.hides_tools |= !self.started;
        self.transcript
    }
}

impl JsonlDecoder {
    /// Says whether the agent did nothing but ask the user a question.
    fn only_asked_user(&self) -> bool {
        let calls = |step: &Step| matches!(step, Step::Tool(call) if call.name == ASK_USER_TOOL);
        match self.transcript.steps.as_slice() {
            [Step::Text(text)] => text.trim_end().ends_with('?'),
            steps => steps.iter().any(calls),
        }
    }

    /// Records an activation once: an agent may print both the call of its skill tool and an event for it.
    fn record_activation(&mut self, name: String, evidence: ActivationEvidence) {
        let (plugin, skill) = match name.rsplit_once(':') {
            Some((plugin, skill)) => (Some(plugin.to_owned()), skill.to_owned()),
            None => (None, name),
        };
        let activated = ActivatedSkill { skill, plugin, evidence };
        if !self.transcript.activations.contains(&activated) {
            self.transcript.activations.push(activated);
        }
    }

    fn record_tool_result(&mut self, id: &str, ok: bool, content: String) {
        let Some(at) = self.pending.remove(id) else { return };
        let Some(Step::Tool(call)) = self.transcript.steps.get_mut(at) else { return };
        call.ok = Some(ok);
        call.result = Some(content);
        self.transcript.uncertain.extend(is_subagent_tool(&call.name).then(hidden_subagent));
        let loaded = called_skill(call).filter(|_| ok).map(str::to_owned);
        self.transcript.refused_skills.extend(refused_skill_call(call).filter(|_| !ok));
        if let Some(name) = loaded {
            self.record_activation(name, ActivationEvidence::SkillTool);
        }
    }
}
