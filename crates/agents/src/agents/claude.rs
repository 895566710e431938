//! Claude Code, run with `claude -p`, and the decoder of its stream of JSON lines.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::{
    AgentCli, AgentCredentials, AgentProgram, Decoder, DecoderKind, GatewayRoute, LoginFile, ModelAddress,
    StreamEnd, StreamTranscript, called_skill, hidden_subagent, is_skill_tool, is_subagent_tool,
    refused_skill_call,
};
use practicum_core::model::{
    ActivatedSkill, ActivationEvidence, RefusedSkill, RelPath, SkillRefusalSource, Step, TokenUsage, ToolCall,
};

pub static DECODER: DecoderKind = DecoderKind {
    name: "claude-stream-json",
    shows_skills: true,
    new_decoder: || Box::new(ClaudeDecoder::default()),
    new_client: None,
};

/// The folder of a project in which Claude Code looks for commands.
pub const COMMANDS_FOLDER: &str = ".claude/commands";

/// The tool with which a skill is activated. A list of allowed tools must name it.
pub const SKILL_TOOL: &str = "Skill";

/// The variable that makes background tasks run in the foreground. Other agents ignore it.
pub const FOREGROUND_TASKS_VARIABLE: (&str, &str) = ("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1");

/// The skills that Claude Code lists as its own. Most are bundled, and disappear if it obeys the variable set
/// below.
const OWN_SKILLS: &[&str] = &[
    "batch",
    "claude-api",
    "code-review",
    "dataviz",
    "debug",
    "deep-research",
    "doctor",
    "fewer-permission-prompts",
    "loop",
    "plugin-authoring",
    "run",
    "run-skill-generator",
    "simplify",
    "update-config",
    "verify",
    "workflow-authoring",
];

pub fn agent() -> AgentCli {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
    let always = words(&[
        "--output-format",
        "stream-json",
        "--verbose",
        "--dangerously-skip-permissions",
        "--setting-sources",
        "project",
        "--strict-mcp-config",
    ]);
    let model = words(&["--model", "{model}"]);
    let append = words(&["--append-system-prompt", "{append_system}"]);
    // Only the servers given here are started: none of the project's, and those of plugins if they are allowed.
    let servers = words(&["--mcp-config", "{plugin_servers}"]);
    let mocks = words(&["--mcp-config", "{mcp_servers_json}"]);
    let plugin = words(&["--plugin-dir", "{plugin}"]);
    let tools = words(&["--tools", "{tools}"]);
    let print = words(&["-p"]);
    // The dashes keep a prompt that begins with a dash from being read as an option.
    let prompt = words(&["--", "{prompt}"]);
    AgentCli {
        name: "claude".to_owned(),
        program: AgentProgram::OnPath("claude".to_owned()),
        first_turn_args: vec![
            print.clone(),
            always.clone(),
            words(&["--session-id", "{session}"]),
            model.clone(),
            append.clone(),
            servers.clone(),
            mocks.clone(),
            plugin.clone(),
            tools.clone(),
            prompt.clone(),
        ],
        later_turn_args: vec![
            print,
            always,
            words(&["--resume", "{session}"]),
            model,
            append,
            servers,
            mocks,
            plugin,
            tools,
            prompt,
        ],
        decoder: &DECODER,
        skills_dir: RelPath::new(".claude/skills").expect("a relative path"),
        env: [
            // The CLI refuses to skip permissions as root unless a variable says that it is sandboxed.
            ("IS_SANDBOX", "1"),
            ("CLAUDE_CODE_TMPDIR", "{tmp}"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("DISABLE_TELEMETRY", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
            // Its sixteen bundled skills would compete with the one under test.
            ("CLAUDE_CODE_DISABLE_BUNDLED_SKILLS", "1"),
            // With ten retries, it would take minutes until the CLI reports that the model does not answer.
            ("CLAUDE_CODE_MAX_RETRIES", "2"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec(),
        pass_env: words(&["ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL", "ANTHROPIC_SMALL_FAST_MODEL"]),
        credentials: AgentCredentials {
            variables: words(&["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"]),
            file: Some(LoginFile {
                variable: "CLAUDE_CONFIG_DIR",
                folder: ".claude",
                name: ".credentials.json",
            }),
        },
        route: Some(GatewayRoute {
            base_url_variable: "ANTHROPIC_BASE_URL".to_owned(),
            suffix: "",
            key_variable: "ANTHROPIC_API_KEY".to_owned(),
            model_prefixes: &[],
            also_set: &[],
        }),
        models: vec![ModelAddress::from_variable("ANTHROPIC_BASE_URL", "https://api.anthropic.com")],
        skill_command: Some(|skill, args| format!("/{skill} {args}").trim_end().to_owned()),
        home_files: None,
        own_skills: OWN_SKILLS,
        auto: Some(1),
    }
}

#[derive(Default)]
pub struct ClaudeDecoder {
    transcript: StreamTranscript,
    /// Tool calls without a result so far, by their id in the stream.
    pending_calls: HashMap<String, usize>,
    last_text: String,
    /// Whether the stream contained the start of the session, so that it also contains the rest.
    started: bool,
    result_count: u32,
    assistant_messages: Vec<String>,
    asked_user: bool,
    auth_error: Option<String>,
    /// Tool calls that the user's rules forbid, by their id in the stream.
    denied_calls: HashSet<String>,
    /// The calls that started a subagent, and those of which the stream has an event of the subagent.
    subagent_calls: HashSet<String>,
    shown_subagents: HashSet<String>,
}

impl Decoder for ClaudeDecoder {
    fn read_event(&mut self, event: Value) {
        match event["type"].as_str() {
            Some("system") if event["subtype"] == "init" => self.read_init(&event),
            // This event comes before the call's result.
            Some("system") if event["subtype"] == "permission_denied" => {
                self.denied_calls.extend(event["tool_use_id"].as_str().map(str::to_owned));
            }
            Some("rate_limit_event") => {
                let limit = &event["rate_limit_info"];
                let refused = limit["status"] == "rejected";
                self.transcript.limit_resets_at = limit["resetsAt"].as_u64().filter(|_| refused);
            }
            Some("assistant") => self.read_assistant_message(&event),
            Some("user") => self.read_user_message(&event),
            Some("result") => self.read_result(&event),
            _ => {}
        }
    }

    fn finish(mut self: Box<Self>) -> StreamTranscript {
        if self.transcript.output.is_empty() {
            self.transcript.output = self.last_text;
        }
        if self.subagent_calls.iter().any(|call| !self.shown_subagents.contains(call)) {
            self.transcript.uncertain.push(hidden_subagent());
        }
        // `--output-format json` prints only the result, so the steps before it are not seen.
        self.transcript.hides_tools = !self.started && self.result_count > 0;
        self.transcript
    }
}

impl ClaudeDecoder {
    fn read_init(&mut self, event: &Value) {
        let text = |key: &str| event[key].as_str().map(str::to_owned);
        self.started = true;
        self.transcript.session = text("session_id");
        self.transcript.model = text("model");
        self.transcript.version = text("claude_code_version");
        let names = |key: &str| -> Option<Vec<String>> {
            Some(event[key].as_array()?.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        };
        self.transcript.skills_listed = names("skills").or(self.transcript.skills_listed.take());
        self.transcript.commands_listed.extend(names("slash_commands").unwrap_or_default());
    }

    fn read_assistant_message(&mut self, event: &Value) {
        let parent = event["parent_tool_use_id"].as_str();
        self.shown_subagents.extend(parent.map(str::to_owned));
        let of_subagent = parent.is_some();
        if event["is_api_error_message"] == true {
            if event["error"] == "authentication_failed" {
                self.auth_error = event["message"]["content"][0]["text"].as_str().map(str::to_owned);
            }
            return;
        }
        if let Some(id) = event["message"]["id"].as_str()
            && self.assistant_messages.last().is_none_or(|last| last != id)
        {
            self.assistant_messages.push(id.to_owned());
        }
        for block in event["message"]["content"].as_array().into_iter().flatten() {
            match block["type"].as_str() {
                Some("text") => {
                    let text = block["text"].as_str().unwrap_or_default().to_owned();
                    if !of_subagent {
                        self.last_text = text.clone();
                        self.transcript.steps.push(Step::Text(text));
                    }
                }
                Some("tool_use") => {
                    let name = block["name"].as_str().unwrap_or_default().to_owned();
                    self.asked_user |= name == "AskUserQuestion";
                    if let Some(id) = block["id"].as_str() {
                        self.pending_calls.insert(id.to_owned(), self.transcript.steps.len());
                        self.subagent_calls.extend(is_subagent_tool(&name).then(|| id.to_owned()));
                    }
                    let call = ToolCall { name, input: block["input"].clone(), result: None, ok: None };
                    self.transcript.steps.push(Step::Tool(call));
                }
                _ => {}
            }
        }
    }

    fn read_user_message(&mut self, event: &Value) {
        let parent = event["parent_tool_use_id"].as_str();
        self.shown_subagents.extend(parent.map(str::to_owned));
        for block in event["message"]["content"].as_array().into_iter().flatten() {
            if block["type"] != "tool_result" {
                continue;
            }
            let id = block["tool_use_id"].as_str().unwrap_or_default();
            let Some(at) = self.pending_calls.remove(id) else { continue };
            let Some(Step::Tool(call)) = self.transcript.steps.get_mut(at) else { continue };
            let ok = block["is_error"] != true;
            call.ok = Some(ok);
            call.result = Some(result_text(&block["content"]));
            if !ok && is_skill_tool(&call.name) {
                let denied = self.denied_calls.contains(id);
                let by = if denied { SkillRefusalSource::Permissions } else { SkillRefusalSource::SkillTool };
                let refused = refused_skill_call(call).map(|refused| RefusedSkill { by, ..refused });
                self.transcript.refused_skills.extend(refused);
            }
            if !ok {
                // A subagent that was not started did nothing.
                self.subagent_calls.remove(id);
            } else if let Some(activated) = activation_from_call(call, &event["tool_use_result"]) {
                self.transcript.activations.push(activated);
            }
        }
    }

    /// Reads a result event. Its money and tokens by model are those of the whole session, including the processes
    /// that it was resumed from.
    fn read_result(&mut self, event: &Value) {
        self.result_count += 1;
        let text = event["result"].as_str().unwrap_or_default();
        self.transcript.cost_usd = event["total_cost_usd"].as_f64().or(self.transcript.cost_usd);
        let by_model = usage_by_model(&event["modelUsage"]);
        match by_model {
            Some(usage) => {
                self.transcript.usage = usage;
                self.transcript.totals_of_session = true;
            }
            None => self.transcript.usage.add(plain_usage(&event["usage"])),
        }
        self.transcript.api_calls = Some(self.assistant_messages.len() as u64);
        let is_error = event["is_error"] == true;
        if !is_error {
            self.transcript.output = text.to_owned();
        }
        self.transcript.end = self.stream_end(event, text, is_error);
    }

    fn stream_end(&self, event: &Value, text: &str, is_error: bool) -> StreamEnd {
        let reason = || event["errors"][0].as_str().map_or_else(|| text.to_owned(), str::to_owned);
        match event["subtype"].as_str() {
            Some("success") if !is_error => {
                let one_turn = self.assistant_messages.len() <= 1 && self.result_count == 1;
                if self.asked_user || (one_turn && text.trim_end().ends_with('?')) {
                    StreamEnd::AskedUser
                } else {
                    StreamEnd::Done
                }
            }
            Some("error_max_turns" | "error_max_budget_usd") => StreamEnd::OverBudget(reason()),
            Some("error_during_execution") if was_aborted(event) => StreamEnd::Interrupted(reason()),
            // A turn that ended without any text of the model is also a failure of the API.
            _ => match event["api_error_status"].as_u64() {
                Some(429) => StreamEnd::RateLimited(reason()),
                Some(401 | 403) => StreamEnd::AuthFailed(reason()),
                Some(_) => StreamEnd::ApiFailed(reason()),
                None if self.auth_error.is_some() => StreamEnd::AuthFailed(reason()),
                None => StreamEnd::ApiFailed(reason()),
            },
        }
    }
}

/// Says whether someone stopped the turn, rather than something in it.
fn was_aborted(result: &Value) -> bool {
    result["terminal_reason"].as_str().is_none_or(|reason| reason.starts_with("aborted_"))
}

fn result_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}

/// Finds the skill that the model itself activated with its Skill tool.
fn activation_from_call(call: &ToolCall, outcome: &Value) -> Option<ActivatedSkill> {
    if !is_skill_tool(&call.name) || outcome["success"] == false {
        return None;
    }
    // The name of the launched skill is taken from the result if the stream has it.
    let launched = outcome["commandName"].as_str().or_else(|| called_skill(call))?;
    let launched = launched.trim_start_matches('/');
    let (plugin, skill) = match launched.rsplit_once(':') {
        Some((plugin, skill)) => (Some(plugin.to_owned()), skill),
        None => (None, launched),
    };
    Some(ActivatedSkill { skill: skill.to_owned(), plugin, evidence: ActivationEvidence::SkillTool })
}

/// Adds up the tokens of all models; `None` if none is counted.
pub fn usage_by_model(models: &Value) -> Option<TokenUsage> {
    let models = models.as_object().filter(|models| !models.is_empty())?;
    let mut total = TokenUsage::default();
    for model in models.values() {
        let count = |key: &str| model[key].as_u64().unwrap_or(0);
        total.add(TokenUsage {
            input: count("inputTokens"),
            output: count("outputTokens"),
            cache_read: count("cacheReadInputTokens"),
            cache_write: count("cacheCreationInputTokens"),
        });
    }
    Some(total)
}

/// Reads the tokens as the API gives them.
pub fn plain_usage(usage: &Value) -> TokenUsage {
    let count = |key: &str| usage[key].as_u64().unwrap_or(0);
    TokenUsage {
        input: count("input_tokens"),
        output: count("output_tokens"),
        cache_read: count("cache_read_input_tokens"),
        cache_write: count("cache_creation_input_tokens"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{activation_names, decode_recorded};
    use super::*;

    fn decode(name: &str) -> StreamTranscript {
        decode_recorded(&DECODER, &format!("claude-{name}"))
    }

    #[test]
    fn recorded_streams_say_how_they_ended_and_what_was_activated() {
        let long = "API Error: 529 scripted 529. This is a server-side issue, usually temporary — try again in a \
                    moment. If it persists, check your inference gateway (127.0.0.1:18080).";
        let cut = "this stream will be cut in the middle of the sentence";
        let greeting = "GREETING: Ahoy, Alice! (from the greeter skill)";
        let rate = || StreamEnd::RateLimited("API Error: Request rejected (429) · scripted 429".into());
        let login = || StreamEnd::AuthFailed("Failed to authenticate. API Error: 401 scripted 401".into());
        let interrupted = "[ede_diagnostic] result_type=user last_content_type=n/a stop_reason=null";
        for (name, said, output, activated) in [
            ("a-plain", StreamEnd::Done, "Hello from the scripted model.", ""),
            ("b-skill", StreamEnd::Done, greeting, "greeter"),
            ("b2-skill-missing", StreamEnd::Done, "That skill did not exist.", ""),
            ("c-read", StreamEnd::Done, "I read SKILL.md and the reference.", "greeter"),
            ("d0-write-noperm", StreamEnd::Done, "Files were created.", ""),
            ("d2-write-skipperm-sandbox", StreamEnd::Done, "Files were created.", ""),
            ("e6-streamin", StreamEnd::Done, "Second turn answer, I remember you.", "greeter"),
            ("f-agent", StreamEnd::Done, "MOCK-END-OF-SCRIPT cagent", ""),
            ("g-e401", login(), "", ""),
            ("g-e429", rate(), "", ""),
            ("g-e429once", StreamEnd::Done, "recovered after 429", ""),
            ("g-e529", StreamEnd::ApiFailed(long.into()), "", ""),
            ("g-nokey", StreamEnd::AuthFailed("Not logged in · Please run /login".into()), "", ""),
            ("g-trunc", StreamEnd::Done, cut, ""),
            ("g-hang-SIGINT", StreamEnd::Interrupted(interrupted.into()), "", ""),
            ("g-hang-SIGTERM", StreamEnd::BrokenOff, "", ""),
            ("h-maxturns", StreamEnd::OverBudget("Reached maximum number of turns (2)".into()), "", ""),
            ("h-budget", StreamEnd::OverBudget("Reached maximum budget ($0.5)".into()), "", ""),
            ("h-plugin", StreamEnd::Done, "PLUG", "evalplug:plugskill"),
            // A skill that the prompt itself invokes leaves no trace, and is no activation.
            ("h-slash", StreamEnd::Done, "Hello from the scripted model.", ""),
            ("j-forky", StreamEnd::Done, "F done", "forky"),
        ] {
            let seen = decode(name);
            assert_eq!(
                (&seen.end, seen.output.as_str(), activation_names(&seen).as_str()),
                (&said, output, activated),
                "{name}"
            );
            assert!(seen.skills_listed.is_some() && seen.version.as_deref() == Some("2.1.325"), "{name}");
        }
    }

    #[test]
    fn usage_and_cost_are_those_of_the_whole_session() {
        for (name, input, output, cost) in [
            ("b-skill", 23_524, 24, 0.094_576),
            // Two results, and a subagent's tokens only in the totals by model.
            ("f-agent", 50_921, 60, 0.204_884),
            ("e6-streamin", 47_209, 48, 0.189_796),
            ("h-budget", 500_000, 50_000, 3.0),
            ("g-e529", 0, 0, 0.0),
        ] {
            let seen = decode(name);
            assert_eq!((seen.usage.input, seen.usage.output), (input, output), "{name}");
            assert!((seen.cost_usd.expect("a cost") - cost).abs() < 1e-6, "{name}");
        }
    }

    #[test]
    fn a_skill_that_is_not_given_is_told_with_who_kept_it() {
        for (name, skill, by) in [
            ("b2-skill-missing", "no-such-skill", SkillRefusalSource::SkillTool),
            ("j-tooly", "tooly", SkillRefusalSource::Permissions),
            // The skill is known, but the model may not activate it.
            ("j-hidden", "hidden", SkillRefusalSource::SkillTool),
        ] {
            let seen = decode(name);
            let found: Vec<(&str, SkillRefusalSource)> =
                seen.refused_skills.iter().map(|refused| (refused.skill.as_str(), refused.by)).collect();
            assert_eq!(found, [(skill, by)], "{name}");
        }
        assert_eq!(decode("b-skill").refused_skills, []);
    }

    #[test]
    fn tool_calls_carry_their_results() {
        let seen = decode("d0-write-noperm");
        let calls: Vec<(&str, Option<bool>)> = seen
            .steps
            .iter()
            .filter_map(|step| match step {
                Step::Tool(call) => Some((call.name.as_str(), call.ok)),
                Step::User(_) | Step::Text(_) => None,
            })
            .collect();
        assert_eq!(calls, [("Write", Some(false)), ("Bash", Some(false)), ("Edit", Some(false))]);
    }
}
