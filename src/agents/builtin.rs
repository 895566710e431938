//! The agent of our own, and the stream that agents of one's own may speak too.

use std::collections::HashMap;

use serde_json::Value;

use super::{Agent, Credentials, Decoder, DecoderKind, Program, Route, Said, Transcript, skill_read_in};
use crate::model::{Activated, ActivationEvidence, RelPath, Step, ToolCall, Usage};

pub static STREAM: DecoderKind =
    DecoderKind { name: "practicum-jsonl", start: || Box::new(Jsonl::default()) };

/// The hidden subcommand under which this program is the agent.
pub const SUBCOMMAND: &str = "builtin-agent";

pub fn agent() -> Agent {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
    let groups = vec![
        words(&[SUBCOMMAND, "--workspace", "{workspace}", "--session-file", "{home}/session.json"]),
        words(&["--model", "{model}"]),
        words(&["--append-system", "{append_system}"]),
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
        pass_env: words(&["ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL", "OPENAI_BASE_URL", "OPENAI_MODEL"]),
        credentials: Credentials {
            variables: words(&["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY"]),
        },
        route: Some(Route {
            base_url: "ANTHROPIC_BASE_URL".to_owned(),
            suffix: "",
            key: "ANTHROPIC_API_KEY".to_owned(),
        }),
        skill_command: Some(|skill, args| format!("/{skill} {args}").trim_end().to_owned()),
    }
}

#[derive(Default)]
struct Jsonl {
    out: Transcript,
    pending: HashMap<String, usize>,
    api_calls: u64,
}

impl Decoder for Jsonl {
    fn line(&mut self, line: &str) {
        let Ok(event) = serde_json::from_str::<Value>(line) else { return };
        let text = |key: &str| event[key].as_str().map(str::to_owned);
        match event["type"].as_str() {
            Some("start") => {
                self.out.model = text("model");
                self.out.version = text("version");
                self.out.session = text("session");
                self.out.skills_listed = event["skills"]
                    .as_array()
                    .map(|names| names.iter().filter_map(Value::as_str).map(str::to_owned).collect());
            }
            Some("text") => {
                let said = text("text").unwrap_or_default();
                self.out.output = said.clone();
                self.out.steps.push(Step::Text(said));
            }
            Some("tool") => {
                if let Some(id) = text("id") {
                    self.pending.insert(id, self.out.steps.len());
                }
                let call = ToolCall {
                    name: text("name").unwrap_or_default(),
                    input: event["input"].clone(),
                    result: None,
                    ok: None,
                };
                self.out.steps.push(Step::Tool(call));
            }
            Some("tool_result") => self.tool_result(&event),
            Some("skill") => {
                if let Some(name) = text("name") {
                    let (plugin, skill) = match name.rsplit_once(':') {
                        Some((plugin, skill)) => (Some(plugin.to_owned()), skill.to_owned()),
                        None => (None, name),
                    };
                    self.out.activated.push(Activated {
                        skill,
                        plugin,
                        evidence: ActivationEvidence::SkillTool,
                    });
                }
            }
            Some("usage") => {
                let count = |key: &str| event[key].as_u64().unwrap_or(0);
                self.api_calls += 1;
                self.out.usage.add(Usage {
                    input: count("input"),
                    output: count("output"),
                    cache_read: count("cache_read"),
                    cache_write: count("cache_write"),
                });
                if let Some(cost) = event["cost_usd"].as_f64() {
                    self.out.cost_usd = Some(self.out.cost_usd.unwrap_or(0.0) + cost);
                }
            }
            Some("end") => {
                let why = text("message").unwrap_or_default();
                self.out.said = match event["ending"].as_str() {
                    Some("finished") => Said::Done,
                    Some("rate_limited") => Said::RateLimited(why),
                    Some("auth_failed") => Said::AuthFailed(why),
                    Some("over_budget") => Said::OverBudget(why),
                    _ => Said::ApiFailed(why),
                };
            }
            _ => {}
        }
    }

    fn finish(mut self: Box<Self>) -> Transcript {
        self.out.api_calls = (self.api_calls > 0).then_some(self.api_calls);
        self.out
    }
}

impl Jsonl {
    fn tool_result(&mut self, event: &Value) {
        let Some(at) = event["id"].as_str().and_then(|id| self.pending.remove(id)) else { return };
        let Some(Step::Tool(call)) = self.out.steps.get_mut(at) else { return };
        let ok = event["ok"] == true;
        call.ok = Some(ok);
        call.result = event["content"].as_str().map(str::to_owned);
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
