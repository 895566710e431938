//! The agent of our own, and the stream that agents of one's own may speak too.

use std::collections::HashMap;

use serde_json::Value;

use super::{
    Agent, Credentials, Decoder, DecoderKind, ModelAddress, Program, Route, Said, Transcript,
    refused_by_tool, skill_read_in,
};
use crate::builtin::events::{Ending, Event, Via};
use practicum_core::model::{Activated, ActivationEvidence, RelPath, Step, ToolCall, Usage};

pub static STREAM: DecoderKind =
    DecoderKind { name: "practicum-jsonl", shows_skills: true, start: || Box::new(Jsonl::default()) };

/// The hidden subcommand under which this program is the agent.
pub const SUBCOMMAND: &str = "builtin-agent";

pub fn agent() -> Agent {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
    let groups = vec![
        words(&[SUBCOMMAND, "--workspace", "{workspace}", "--session-file", "{home}/session.json"]),
        words(&["--model", "{model}"]),
        words(&["--append-system", "{append_system}"]),
        words(&["--tools", "{tools}"]),
        words(&["--", "{prompt}"]),
    ];
    Agent {
        name: "builtin".to_owned(),
        program: Program::Ourselves,
        first: groups.clone(),
        later: groups,
        decoder: &STREAM,
        skills_dir: RelPath::new(".claude/skills").expect("a relative path"),
        env: Vec::new(),
        pass_env: words(&[
            "ANTHROPIC_BASE_URL",
            "ANTHROPIC_MODEL",
            "OPENAI_BASE_URL",
            "OPENAI_MODEL",
            "PRACTICUM_BUILTIN_API",
        ]),
        credentials: Credentials::of(words(&["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY"])),
        route: Some(Route {
            base_url: "ANTHROPIC_BASE_URL".to_owned(),
            suffix: "",
            key: "ANTHROPIC_API_KEY".to_owned(),
            models: &[],
        }),
        models: vec![
            ModelAddress::vendor("ANTHROPIC_BASE_URL", "https://api.anthropic.com"),
            ModelAddress::vendor("OPENAI_BASE_URL", "https://api.openai.com"),
        ],
        skill_command: Some(|skill, args| format!("/{skill} {args}").trim_end().to_owned()),
        home_files: None,
        own_skills: &[],
        auto: true,
    }
}

/// The tool with which agents ask the user.
const ASKING_TOOL: &str = "AskUserQuestion";

#[derive(Default)]
struct Jsonl {
    out: Transcript,
    pending: HashMap<String, usize>,
    api_calls: u64,
    /// Whether it began as this stream must.
    started: bool,
}

impl Decoder for Jsonl {
    fn event(&mut self, event: Value) {
        // Readers of this stream skip what they do not know.
        let is_call = ["skill", "tool", "tool_result"].iter().any(|known| event["type"] == *known);
        let Ok(event) = serde_json::from_value::<Event>(event) else {
            self.out.hides_tools |= is_call;
            return;
        };
        match event {
            Event::Start { version, model, skills, session, .. } => {
                self.started = true;
                self.out.model = model;
                self.out.version = version;
                self.out.session = session;
                self.out.skills_listed = skills;
            }
            Event::Text { text } => {
                self.out.output.clone_from(&text);
                self.out.steps.push(Step::Text(text));
            }
            Event::Tool { id, name, input } => {
                self.pending.insert(id, self.out.steps.len());
                self.out.steps.push(Step::Tool(ToolCall { name, input, result: None, ok: None }));
            }
            Event::ToolResult { id, ok, content } => self.tool_result(&id, ok, content),
            Event::Skill { name, via } => {
                let evidence = match via {
                    Via::Tool => ActivationEvidence::SkillTool,
                    Via::Read => ActivationEvidence::ReadSkillFile { tool: "read".to_owned() },
                };
                let (plugin, skill) = match name.rsplit_once(':') {
                    Some((plugin, skill)) => (Some(plugin.to_owned()), skill.to_owned()),
                    None => (None, name),
                };
                self.out.activated.push(Activated { skill, plugin, evidence });
            }
            Event::Usage { input, output, cache_read, cache_write } => {
                self.api_calls += 1;
                self.out.usage.add(Usage { input, output, cache_read, cache_write });
            }
            Event::End { ending, message, .. } => {
                let why = message.unwrap_or_default();
                self.out.said = match ending {
                    Ending::Finished if self.only_asked() => Said::Asked,
                    Ending::Finished => Said::Done,
                    Ending::RateLimited => Said::RateLimited(why),
                    Ending::AuthFailed => Said::AuthFailed(why),
                    Ending::ApiFailed => Said::ApiFailed(why),
                    Ending::OverBudget => Said::OverBudget(why),
                };
            }
        }
    }

    fn finish(mut self: Box<Self>) -> Transcript {
        self.out.api_calls = (self.api_calls > 0).then_some(self.api_calls);
        // What does not begin as it must may be another stream, in which calls show in another way.
        self.out.hides_tools |= !self.started;
        self.out
    }
}

impl Jsonl {
    /// Whether the agent did nothing but put a question to the user.
    fn only_asked(&self) -> bool {
        let calls = |step: &Step| matches!(step, Step::Tool(call) if call.name == ASKING_TOOL);
        match self.out.steps.as_slice() {
            [Step::Text(text)] => text.trim_end().ends_with('?'),
            steps => steps.iter().any(calls),
        }
    }

    fn tool_result(&mut self, id: &str, ok: bool, content: String) {
        let Some(at) = self.pending.remove(id) else { return };
        let Some(Step::Tool(call)) = self.out.steps.get_mut(at) else { return };
        call.ok = Some(ok);
        call.result = Some(content);
        if !ok && call.name == "Skill" {
            self.out.refused.extend(refused_by_tool(call, "skill"));
        }
        let read = call.input["file_path"].as_str().and_then(skill_read_in);
        if ok
            && call.name == "Read"
            && let Some(skill) = read
        {
            let evidence = ActivationEvidence::ReadSkillFile { tool: call.name.clone() };
            self.out.activated.push(Activated { skill: skill.to_owned(), plugin: None, evidence });
        }
    }
}
