//! Codex, run with `codex exec`, and the decoder of its stream of JSON lines.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use serde_json::{Value, json};

use super::given_tools::COMMANDS_VARIABLE;
use super::launch::SANDBOX_VARIABLE;
use super::shell_reads::script_inside_shell;
use super::{
    AgentCli, AgentCredentials, AgentProgram, Decoder, DecoderKind, GatewayRoute, LoginFile, ModelAddress,
    StreamEnd, StreamTranscript, hidden_subagent,
};
use practicum_core::model::{RelPath, Step, TokenUsage, ToolCall};

pub static DECODER: DecoderKind = DecoderKind {
    name: "codex-jsonl",
    shows_skills: true,
    new_decoder: || Box::new(CodexDecoder::default()),
    new_client: None,
};

const LOGIN_VARIABLES: [&str; 2] = ["CODEX_API_KEY", "OPENAI_API_KEY"];
const BASE_URL_VARIABLE: &str = "OPENAI_BASE_URL";
const VENDOR_URL: &str = "https://api.openai.com/v1";

pub fn agent() -> AgentCli {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
    let always = words(&["--json", "--skip-git-repo-check"]);
    let model = words(&["-m", "{model}"]);
    let servers = words(&["-c", "{mcp_servers_toml}"]);
    AgentCli {
        name: "codex".to_owned(),
        program: AgentProgram::OnPath("codex".to_owned()),
        // The dashes keep a prompt from being read as an option or a subcommand.
        first_turn_args: vec![
            words(&["exec"]),
            always.clone(),
            model.clone(),
            servers.clone(),
            words(&["--", "{prompt}"]),
        ],
        later_turn_args: vec![
            words(&["exec", "resume"]),
            always,
            model,
            servers,
            words(&["--", "{session}", "{prompt}"]),
        ],
        decoder: &DECODER,
        skills_dir: RelPath::new(".agents/skills").expect("a relative path"),
        env: vec![("CODEX_HOME".to_owned(), "{home}/.codex".to_owned())],
        pass_env: words(&[BASE_URL_VARIABLE, "OPENAI_ORGANIZATION", "OPENAI_PROJECT"]),
        credentials: AgentCredentials {
            variables: words(&LOGIN_VARIABLES),
            file: Some(LoginFile { variable: "CODEX_HOME", folder: ".codex", name: "auth.json" }),
        },
        route: Some(GatewayRoute {
            base_url_variable: BASE_URL_VARIABLE.to_owned(),
            suffix: "/v1",
            key_variable: LOGIN_VARIABLES[0].to_owned(),
            model_prefixes: &[],
            also_set: &[],
        }),
        // A `$skill` in the prompt works, but the stream does not show whether it did.
        models: vec![ModelAddress::from_variable("OPENAI_BASE_URL", "https://api.openai.com/v1")],
        skill_command: None,
        home_files: Some(|env, by_file| {
            let path = RelPath::new(".codex/config.toml").expect("a relative path");
            vec![(path, config_toml(env, by_file))]
        }),
        own_skills: &[],
        auto: Some(2),
    }
}

/// Writes the configuration. The built-in provider does not read OPENAI_API_KEY, and its number of retries cannot
/// be lowered, so the file defines another provider. The key itself stays in the environment. The user's own login
/// works only with the built-in provider.
fn config_toml(env: &BTreeMap<String, String>, by_file: bool) -> String {
    let key = LOGIN_VARIABLES.iter().find(|name| env.contains_key(**name)).unwrap_or(&LOGIN_VARIABLES[0]);
    let url =
        env.get(BASE_URL_VARIABLE).map(String::as_str).filter(|url| !url.is_empty()).unwrap_or(VENDOR_URL);
    // Its own sandbox does not work inside this program's sandbox, which protects as much.
    let sandbox = if env.contains_key(SANDBOX_VARIABLE) { "danger-full-access" } else { "workspace-write" };
    // A mocked command is answered through a socket, which its own sandbox counts as network.
    let network = if env.contains_key(COMMANDS_VARIABLE) { "network_access = true" } else { "" };
    let quoted = |text: &str| toml::Value::from(text).to_string();
    let (key, url) = (quoted(key), quoted(url));
    let provider = if by_file {
        String::new()
    } else {
        format!(
            r#"model_provider = "practicum"

[model_providers.practicum]
name = "practicum"
base_url = {url}
wire_api = "responses"
env_key = {key}
request_max_retries = 2
stream_max_retries = 2
stream_idle_timeout_ms = 300000
"#
        )
    };
    format!(
        r#"approval_policy = "never"
sandbox_mode = "{sandbox}"
check_for_update_on_startup = false
{provider}
# Plugins and apps are fetched from other hosts, and would compete with the skill under test.
[features]
plugins = false
apps = false
remote_plugin = false
plugin_discovery_prefetch = false

[skills.bundled]
enabled = false

[analytics]
enabled = false

[otel]
exporter = "none"

# The agent has a temporary folder of its own; that of the machine is others'.
[sandbox_workspace_write]
exclude_slash_tmp = true
{network}

[shell_environment_policy]
exclude = ["CODEX_API_KEY", "OPENAI_API_KEY"]
"#
    )
}

#[derive(Default)]
struct CodexDecoder {
    transcript: StreamTranscript,
    /// The steps of items that have begun, by their id in the stream.
    started_items: HashMap<String, Range<usize>>,
    /// The number of items of what the agent said and did.
    item_count: u32,
}

impl Decoder for CodexDecoder {
    fn read_event(&mut self, event: Value) {
        match event["type"].as_str() {
            Some("thread.started") => {
                self.transcript.session = event["thread_id"].as_str().map(str::to_owned)
            }
            Some("item.started") => {
                self.begin_item(&event["item"]);
            }
            Some("item.completed") => self.complete_item(&event["item"]),
            Some("turn.completed") => self.record_usage(&event["usage"]),
            Some("turn.failed") => self.transcript.end = classify_failure(&event["error"]["message"]),
            // An `error` is a retry, or is repeated as the turn's failure.
            _ => {}
        }
    }

    fn finish(self: Box<Self>) -> StreamTranscript {
        self.transcript
    }
}

impl CodexDecoder {
    /// Adds an item's tool calls to the steps.
    fn begin_item(&mut self, item: &Value) -> Range<usize> {
        let from = self.transcript.steps.len();
        self.transcript.steps.extend(tool_calls_of_item(item).into_iter().map(Step::Tool));
        let steps = from..self.transcript.steps.len();
        if let Some(id) = item["id"].as_str() {
            self.started_items.insert(id.to_owned(), steps.clone());
        }
        steps
    }

    fn complete_item(&mut self, item: &Value) {
        match item["type"].as_str() {
            Some("agent_message") => {
                let text = item["text"].as_str().unwrap_or_default();
                self.item_count += 1;
                self.transcript.output = text.to_owned();
                self.transcript.steps.push(Step::Text(text.to_owned()));
            }
            // Warnings of the CLI, such as that it does not know the model.
            Some("error" | "reasoning") | None => {}
            Some(_) => self.record_tool_results(item),
        }
    }

    fn record_tool_results(&mut self, item: &Value) {
        self.item_count += 1;
        let begun = item["id"].as_str().and_then(|id| self.started_items.remove(id));
        let steps = begun.unwrap_or_else(|| self.begin_item(item));
        let ok = item["status"] == "completed";
        let result = result_text_of_item(item);
        for (step, now) in self.transcript.steps[steps].iter_mut().zip(tool_calls_of_item(item)) {
            if let Step::Tool(call) = step {
                *call = ToolCall { result: result.clone(), ok: Some(ok), ..now };
            }
        }
        // A subagent is a thread of its own, whose items are not in this stream.
        if item["type"] == "collab_tool_call" {
            self.transcript.uncertain.push(hidden_subagent());
        }
    }

    fn record_usage(&mut self, usage: &Value) {
        self.transcript.usage = read_usage(usage);
        self.transcript.totals_of_session = true;
        let only_asked = self.item_count == 1 && self.transcript.output.trim_end().ends_with('?');
        self.transcript.end = if only_asked { StreamEnd::AskedUser } else { StreamEnd::Done };
    }
}

/// Reads a count of tokens. What came from a cache is not counted as input.
pub fn read_usage(usage: &Value) -> TokenUsage {
    let count = |key: &str| usage[key].as_u64().unwrap_or(0);
    let (read, write) = (count("cached_input_tokens"), count("cache_write_input_tokens"));
    TokenUsage {
        input: count("input_tokens").saturating_sub(read).saturating_sub(write),
        output: count("output_tokens"),
        cache_read: read,
        cache_write: write,
    }
}

/// Gives the calls that an item stands for: a change of several files is one call for each.
fn tool_calls_of_item(item: &Value) -> Vec<ToolCall> {
    let call = |name: &str, input: Value| ToolCall { name: name.to_owned(), input, result: None, ok: None };
    let text = |key: &str| item[key].as_str().unwrap_or_default();
    match text("type") {
        "command_execution" => {
            vec![call("command_execution", json!({"command": script_inside_shell(text("command"))}))]
        }
        "file_change" => {
            let changes = item["changes"].as_array().map(Vec::as_slice).unwrap_or_default();
            changes.iter().map(|change| call("file_change", change.clone())).collect()
        }
        "mcp_tool_call" => {
            let name = format!("mcp__{}__{}", text("server"), text("tool"));
            vec![call(&name, item["arguments"].clone())]
        }
        "collab_tool_call" => vec![call(text("tool"), json!({"prompt": item["prompt"]}))],
        "web_search" => vec![call("web_search", json!({"query": item["query"]}))],
        _ => Vec::new(),
    }
}

fn result_text_of_item(item: &Value) -> Option<String> {
    match &item["aggregated_output"] {
        Value::String(output) => Some(output.clone()),
        _ => match &item["result"] {
            Value::Null => item["error"]["message"].as_str().map(str::to_owned),
            result => Some(result.to_string()),
        },
    }
}

/// Classifies a failure. The CLI puts the HTTP status into its message, in one of two fixed forms.
pub fn classify_failure(message: &Value) -> StreamEnd {
    let message = message.as_str().unwrap_or_default();
    let why = message.to_owned();
    let status = ["unexpected status ", "exceeded retry limit, last status: "]
        .iter()
        .find_map(|form| message.strip_prefix(form))
        .and_then(|rest| rest.split(' ').next()?.parse::<u16>().ok());
    match status {
        Some(429) => StreamEnd::RateLimited(why),
        Some(401 | 403) => StreamEnd::AuthFailed(why),
        Some(_) => StreamEnd::ApiFailed(why),
        None if message.starts_with("You’ve hit your usage limit") => StreamEnd::RateLimited(why),
        None if message.starts_with("Quota exceeded.") => StreamEnd::RateLimited(why),
        None if message.starts_with("Missing environment variable: ") => StreamEnd::AuthFailed(why),
        None => StreamEnd::ApiFailed(why),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{activation_names, decode_recorded, describe_tool_calls};
    use super::*;

    fn decode(name: &str) -> StreamTranscript {
        decode_recorded(&DECODER, &format!("codex-{name}"))
    }

    #[test]
    fn recorded_streams_say_how_they_ended_and_what_was_activated() {
        let plain = "Hello from the scripted model.";
        let greeting = "GREETING: Ahoy, Alice!";
        let again = "Second turn answer, I remember you.";
        let status =
            |what: &str| format!("unexpected status {what}, url: http://127.0.0.1:18080/v1/responses");
        let cut = |why: &str| StreamEnd::ApiFailed(format!("stream disconnected before completion: {why}"));
        let bad_request = "{\"type\": \"error\", \"error\": {\"type\": \"invalid_request_error\", \
                           \"message\": \"prompt is bad\", \"code\": \"invalid_request_error\"}}";
        let busy = "We’re currently experiencing high demand, which may cause temporary errors.";
        let too_many = "exceeded retry limit, last status: 429 Too Many Requests";
        let broken = "Transport error: network error: error decoding response body";
        for (name, said, output, activated) in [
            ("a-plain", StreamEnd::Done, plain, ""),
            ("b-think", StreamEnd::Done, "Thought about it.", ""),
            // A call of a tool that does not exist leaves no trace.
            ("b-xbadtool", StreamEnd::Done, "ok", ""),
            ("b-xfail", StreamEnd::Done, "It failed with 3.", ""),
            ("b-xpar", StreamEnd::Done, "Both.", ""),
            ("b-xpatchsh", StreamEnd::Done, "Patched.", ""),
            ("b-xskill", StreamEnd::Done, greeting, "greeter"),
            ("b-xwrite", StreamEnd::Done, "Done writing.", ""),
            ("c-codemode", StreamEnd::Done, "Code mode done.", "greeter"),
            // A skill that the prompt itself names leaves no trace, and is no activation.
            ("c-mention", StreamEnd::Done, plain, ""),
            ("e1-turn1", StreamEnd::Done, greeting, "greeter"),
            ("e2-resume", StreamEnd::Done, again, ""),
            ("e3-resumelast", StreamEnd::Done, again, ""),
            ("f-agent", StreamEnd::Done, "agent spawned", ""),
            ("f-sbx-read-only", StreamEnd::Done, "probe done", ""),
            ("f-sbx-workspace-write", StreamEnd::Done, "probe done", ""),
            ("f-sbx-danger-full-access", StreamEnd::Done, "probe done", ""),
            ("g-authfail", StreamEnd::AuthFailed(status("401 Unauthorized: invalid x-api-key")), "", ""),
            ("g-e400", StreamEnd::ApiFailed(bad_request.into()), "", ""),
            ("g-e401", StreamEnd::AuthFailed(status("401 Unauthorized: scripted 401")), "", ""),
            ("g-e429", StreamEnd::RateLimited(too_many.into()), "", ""),
            // A connection that was lost and came back does not end the run.
            ("g-e429once", StreamEnd::Done, "recovered after 429", ""),
            ("g-e500", StreamEnd::ApiFailed(busy.into()), "", ""),
            ("g-e529", StreamEnd::ApiFailed(status("529 <unknown status code>: scripted 529")), "", ""),
            ("g-hang", cut("idle timeout waiting for SSE"), "", ""),
            ("g-hang-SIGTERM", StreamEnd::BrokenOff, "", ""),
            (
                "g-nokey",
                StreamEnd::AuthFailed("Missing environment variable: `MOCK_API_KEY`.".into()),
                "",
                "",
            ),
            ("g-sseerr", cut("scripted mid-stream error"), "", ""),
            ("g-trunc", cut(broken), "", ""),
        ] {
            let seen = decode(name);
            assert_eq!(
                (&seen.end, seen.output.as_str(), activation_names(&seen).as_str()),
                (&said, output, activated),
                "{name}"
            );
            assert!(seen.session.is_some_and(|session| session.starts_with("01a1e05")), "{name}");
        }
    }

    #[test]
    fn usage_counts_the_whole_thread() {
        for (name, input, output) in [
            ("a-plain", 10_078, 12),
            ("e1-turn1", 29_864, 36),
            ("e2-resume", 40_046, 48),
            ("e3-resumelast", 57_263, 60),
        ] {
            let seen = decode(name);
            assert_eq!((seen.usage.input, seen.usage.output), (input, output), "{name}");
            assert!(seen.totals_of_session, "{name}");
        }
        let failed = decode("g-e529");
        assert!(!failed.totals_of_session, "a turn that failed says nothing of the turns before it");
    }

    #[test]
    fn what_came_from_a_cache_is_not_counted_as_input() {
        let mut decoder = (DECODER.new_decoder)();
        decoder.read_line(
            r#"{"type":"turn.completed","usage":{"input_tokens":100,"cached_input_tokens":60,
            "cache_write_input_tokens":10,"output_tokens":7,"reasoning_output_tokens":3}}"#,
        );
        let expected = TokenUsage { input: 30, output: 7, cache_read: 60, cache_write: 10 };
        assert_eq!(decoder.finish().usage, expected);
    }

    #[test]
    fn tool_calls_carry_their_results() {
        for (name, expected) in [
            ("b-xfail", "command_execution echo oops >&2; exit 3 = failed: oops\n"),
            (
                "b-xpar",
                "command_execution sleep 1; echo B = ok: B\n, command_execution sleep 1; echo A = ok: A\n",
            ),
            ("b-xpatchsh", "file_change /workspace/patched.txt = ok: "),
            ("f-agent", "spawn_agent [[xsub]] do sub = ok: "),
            ("b-think", ""),
        ] {
            assert_eq!(describe_tool_calls(&decode(name)), expected, "{name}");
        }
    }

    #[test]
    fn other_events_of_the_program() {
        let item = |item: Value| json!({"type": "item.completed", "item": item}).to_string();
        let message = |text: &str| item(json!({"id": "m", "type": "agent_message", "text": text}));
        let fails = |message: &str| json!({"type": "turn.failed", "error": {"message": message}}).to_string();
        let done = r#"{"type":"turn.completed","usage":{}}"#.to_owned();
        let ran = item(json!({"id": "c", "type": "command_execution", "command": "ls",
            "aggregated_output": "a", "exit_code": 0, "status": "completed"}));
        let limit = "You’ve hit your usage limit. Try again later.";
        let quota = "Quota exceeded. Check your plan and billing details.";
        let forbidden = "unexpected status 403 Forbidden: forbidden, url: http://127.0.0.1/v1/responses";
        let talk = "the tool said: unexpected status 429 ";
        for (lines, said) in [
            (vec![message("Which one?"), done.clone()], StreamEnd::AskedUser),
            (vec![ran, message("Which one?"), done.clone()], StreamEnd::Done),
            (vec![message("No."), done], StreamEnd::Done),
            (vec![fails(limit)], StreamEnd::RateLimited(limit.into())),
            (vec![fails(quota)], StreamEnd::RateLimited(quota.into())),
            (vec![fails(forbidden)], StreamEnd::AuthFailed(forbidden.into())),
            (vec![fails(talk)], StreamEnd::ApiFailed(talk.into())),
            (vec!["no JSON".to_owned(), r#"{"type":"new.event"}"#.to_owned()], StreamEnd::BrokenOff),
            (vec![r#"{"type":"turn.failed"}"#.to_owned()], StreamEnd::ApiFailed(String::new())),
        ] {
            let mut decoder = (DECODER.new_decoder)();
            lines.iter().for_each(|line| {
                decoder.read_line(line);
            });
            assert_eq!(decoder.finish().end, said, "{lines:?}");
        }
    }

    #[test]
    fn the_configuration_names_the_key_and_never_holds_it() {
        let gateway = "http://127.0.0.1:1/t/x/v1";
        for (env, key, url) in [
            (vec![], "CODEX_API_KEY", VENDOR_URL),
            (vec![("CODEX_API_KEY", "secret")], "CODEX_API_KEY", VENDOR_URL),
            (vec![("OPENAI_API_KEY", "secret"), (BASE_URL_VARIABLE, "")], "OPENAI_API_KEY", VENDOR_URL),
            (vec![("CODEX_API_KEY", "secret"), (BASE_URL_VARIABLE, gateway)], "CODEX_API_KEY", gateway),
            (
                vec![(BASE_URL_VARIABLE, "http://a\"\n[features]\nplugins = true")],
                "CODEX_API_KEY",
                "http://a\"\n[features]\nplugins = true",
            ),
        ] {
            let env = env.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            let text = config_toml(&env, false);
            assert!(!text.contains("secret"), "{text}");
            let config: toml::Table = text.parse().expect("TOML");
            let provider = &config["model_providers"]["practicum"];
            assert_eq!((provider["env_key"].as_str(), provider["base_url"].as_str()), (Some(key), Some(url)));
            assert_eq!(config["features"]["plugins"].as_bool(), Some(false));
        }
    }
}
