//! Codex, driven by `codex exec` and its stream of JSON lines.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use serde_json::{Value, json};

use super::launch::WALLED;
use super::shell_reads::{script_of, skills_read_by};
use super::{
    Agent, Credentials, Decoder, DecoderKind, LoginFile, ModelAddress, Program, Route, Said, Transcript,
};
use practicum_core::model::{Activated, ActivationEvidence, RelPath, Step, ToolCall, Usage};

pub static STREAM: DecoderKind =
    DecoderKind { name: "codex-jsonl", shows_skills: true, start: || Box::new(Codex::default()) };

const LOGINS: [&str; 2] = ["CODEX_API_KEY", "OPENAI_API_KEY"];
const BASE_URL: &str = "OPENAI_BASE_URL";
const VENDOR: &str = "https://api.openai.com/v1";

pub fn agent() -> Agent {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
    let always = words(&["--json", "--skip-git-repo-check"]);
    let model = words(&["-m", "{model}"]);
    Agent {
        name: "codex".to_owned(),
        program: Program::OnPath("codex".to_owned()),
        // The dashes keep a prompt from being read as an option or a subcommand.
        first: vec![words(&["exec"]), always.clone(), model.clone(), words(&["--", "{prompt}"])],
        later: vec![words(&["exec", "resume"]), always, model, words(&["--", "{session}", "{prompt}"])],
        decoder: &STREAM,
        skills_dir: RelPath::new(".agents/skills").expect("a relative path"),
        env: vec![("CODEX_HOME".to_owned(), "{home}/.codex".to_owned())],
        pass_env: words(&[BASE_URL, "OPENAI_ORGANIZATION", "OPENAI_PROJECT"]),
        credentials: Credentials {
            variables: words(&LOGINS),
            file: Some(LoginFile { variable: "CODEX_HOME", folder: ".codex", name: "auth.json" }),
        },
        route: Some(Route {
            base_url: BASE_URL.to_owned(),
            suffix: "/v1",
            key: LOGINS[0].to_owned(),
            models: &[],
        }),
        // A `$skill` in the prompt works, but leaves no trace that could be told from none.
        models: vec![ModelAddress::vendor("OPENAI_BASE_URL", "https://api.openai.com/v1")],
        skill_command: None,
        home_files: Some(|env, by_file| {
            let path = RelPath::new(".codex/config.toml").expect("a relative path");
            vec![(path, config(env, by_file))]
        }),
        own_skills: &[],
        auto: true,
    }
}

/// The built-in provider takes no key from OPENAI_API_KEY and its retries cannot be lowered, so
/// there is one of ours. The key itself stays in the environment. A login of its own works only with
/// the built-in one.
fn config(env: &BTreeMap<String, String>, by_file: bool) -> String {
    let key = LOGINS.iter().find(|name| env.contains_key(**name)).unwrap_or(&LOGINS[0]);
    let url = env.get(BASE_URL).map(String::as_str).filter(|url| !url.is_empty()).unwrap_or(VENDOR);
    // Its own walls do not stand inside ours, which hold as much.
    let sandbox = if env.contains_key(WALLED) { "danger-full-access" } else { "workspace-write" };
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

[shell_environment_policy]
exclude = ["CODEX_API_KEY", "OPENAI_API_KEY"]
"#
    )
}

#[derive(Default)]
struct Codex {
    out: Transcript,
    /// The steps of items that have begun, by the id the stream gives them.
    begun: HashMap<String, Range<usize>>,
    /// What the agent said and did, in number.
    items: u32,
}

impl Decoder for Codex {
    fn event(&mut self, event: Value) {
        match event["type"].as_str() {
            Some("thread.started") => self.out.session = event["thread_id"].as_str().map(str::to_owned),
            Some("item.started") => {
                self.begin(&event["item"]);
            }
            Some("item.completed") => self.complete(&event["item"]),
            Some("turn.completed") => self.completed(&event["usage"]),
            Some("turn.failed") => self.out.said = failure(&event["error"]["message"]),
            // An `error` is a retry, or comes again as the turn's failure.
            _ => {}
        }
    }

    fn finish(self: Box<Self>) -> Transcript {
        self.out
    }
}

impl Codex {
    /// Puts an item's tool calls among the steps.
    fn begin(&mut self, item: &Value) -> Range<usize> {
        let from = self.out.steps.len();
        self.out.steps.extend(calls(item).into_iter().map(Step::Tool));
        let steps = from..self.out.steps.len();
        if let Some(id) = item["id"].as_str() {
            self.begun.insert(id.to_owned(), steps.clone());
        }
        steps
    }

    fn complete(&mut self, item: &Value) {
        match item["type"].as_str() {
            Some("agent_message") => {
                let text = item["text"].as_str().unwrap_or_default();
                self.items += 1;
                self.out.output = text.to_owned();
                self.out.steps.push(Step::Text(text.to_owned()));
            }
            // Warnings of the program, such as that it does not know the model.
            Some("error" | "reasoning") | None => {}
            Some(_) => self.called(item),
        }
    }

    fn called(&mut self, item: &Value) {
        self.items += 1;
        let begun = item["id"].as_str().and_then(|id| self.begun.remove(id));
        let steps = begun.unwrap_or_else(|| self.begin(item));
        let ok = item["status"] == "completed";
        let result = result_of(item);
        for (step, now) in self.out.steps[steps].iter_mut().zip(calls(item)) {
            if let Step::Tool(call) = step {
                *call = ToolCall { result: result.clone(), ok: Some(ok), ..now };
            }
        }
        if item["type"] == "command_execution" {
            let (command, output) = (item["command"].as_str(), result.unwrap_or_default());
            for skill in skills_read_by(command.unwrap_or_default(), &output, ok) {
                let evidence = ActivationEvidence::ReadSkillFile { tool: "command_execution".to_owned() };
                self.out.activated.push(Activated { skill, plugin: None, evidence });
            }
        }
    }

    fn completed(&mut self, usage: &Value) {
        let count = |key: &str| usage[key].as_u64().unwrap_or(0);
        let (read, write) = (count("cached_input_tokens"), count("cache_write_input_tokens"));
        self.out.usage = Usage {
            input: count("input_tokens").saturating_sub(read).saturating_sub(write),
            output: count("output_tokens"),
            cache_read: read,
            cache_write: write,
        };
        self.out.totals_of_session = true;
        let only_asked = self.items == 1 && self.out.output.trim_end().ends_with('?');
        self.out.said = if only_asked { Said::Asked } else { Said::Done };
    }
}

/// The calls that an item stands for: a change of several files is as many.
fn calls(item: &Value) -> Vec<ToolCall> {
    let call = |name: &str, input: Value| ToolCall { name: name.to_owned(), input, result: None, ok: None };
    let text = |key: &str| item[key].as_str().unwrap_or_default();
    match text("type") {
        "command_execution" => {
            vec![call("command_execution", json!({"command": script_of(text("command"))}))]
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

fn result_of(item: &Value) -> Option<String> {
    match &item["aggregated_output"] {
        Value::String(output) => Some(output.clone()),
        _ => match &item["result"] {
            Value::Null => item["error"]["message"].as_str().map(str::to_owned),
            result => Some(result.to_string()),
        },
    }
}

/// The program puts the HTTP status into its message, in one of two fixed forms.
fn failure(message: &Value) -> Said {
    let message = message.as_str().unwrap_or_default();
    let why = message.to_owned();
    let status = ["unexpected status ", "exceeded retry limit, last status: "]
        .iter()
        .find_map(|form| message.strip_prefix(form))
        .and_then(|rest| rest.split(' ').next()?.parse::<u16>().ok());
    match status {
        Some(429) => Said::RateLimited(why),
        Some(401 | 403) => Said::AuthFailed(why),
        Some(_) => Said::ApiFailed(why),
        None if message.starts_with("You’ve hit your usage limit") => Said::RateLimited(why),
        None if message.starts_with("Quota exceeded.") => Said::RateLimited(why),
        None if message.starts_with("Missing environment variable: ") => Said::AuthFailed(why),
        None => Said::ApiFailed(why),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{activations, recorded, tools};
    use super::*;

    fn decode(name: &str) -> Transcript {
        recorded(&STREAM, &format!("codex-{name}"))
    }

    #[test]
    fn recorded_streams_say_how_they_ended_and_what_was_activated() {
        let plain = "Hello from the scripted model.";
        let greeting = "GREETING: Ahoy, Alice!";
        let again = "Second turn answer, I remember you.";
        let status =
            |what: &str| format!("unexpected status {what}, url: http://127.0.0.1:18080/v1/responses");
        let cut = |why: &str| Said::ApiFailed(format!("stream disconnected before completion: {why}"));
        let bad_request = "{\"type\": \"error\", \"error\": {\"type\": \"invalid_request_error\", \
                           \"message\": \"prompt is bad\", \"code\": \"invalid_request_error\"}}";
        let busy = "We’re currently experiencing high demand, which may cause temporary errors.";
        let too_many = "exceeded retry limit, last status: 429 Too Many Requests";
        let broken = "Transport error: network error: error decoding response body";
        for (name, said, output, activated) in [
            ("a-plain", Said::Done, plain, ""),
            ("b-think", Said::Done, "Thought about it.", ""),
            // A call of a tool that does not exist leaves no trace.
            ("b-xbadtool", Said::Done, "ok", ""),
            ("b-xfail", Said::Done, "It failed with 3.", ""),
            ("b-xpar", Said::Done, "Both.", ""),
            ("b-xpatchsh", Said::Done, "Patched.", ""),
            ("b-xskill", Said::Done, greeting, "greeter"),
            ("b-xwrite", Said::Done, "Done writing.", ""),
            ("c-codemode", Said::Done, "Code mode done.", "greeter"),
            // A skill that the prompt itself names leaves no trace, and is no activation.
            ("c-mention", Said::Done, plain, ""),
            ("e1-turn1", Said::Done, greeting, "greeter"),
            ("e2-resume", Said::Done, again, ""),
            ("e3-resumelast", Said::Done, again, ""),
            ("f-agent", Said::Done, "agent spawned", ""),
            ("f-sbx-read-only", Said::Done, "probe done", ""),
            ("f-sbx-workspace-write", Said::Done, "probe done", ""),
            ("f-sbx-danger-full-access", Said::Done, "probe done", ""),
            ("g-authfail", Said::AuthFailed(status("401 Unauthorized: invalid x-api-key")), "", ""),
            ("g-e400", Said::ApiFailed(bad_request.into()), "", ""),
            ("g-e401", Said::AuthFailed(status("401 Unauthorized: scripted 401")), "", ""),
            ("g-e429", Said::RateLimited(too_many.into()), "", ""),
            // Lost connections that came back are no ending.
            ("g-e429once", Said::Done, "recovered after 429", ""),
            ("g-e500", Said::ApiFailed(busy.into()), "", ""),
            ("g-e529", Said::ApiFailed(status("529 <unknown status code>: scripted 529")), "", ""),
            ("g-hang", cut("idle timeout waiting for SSE"), "", ""),
            ("g-hang-SIGTERM", Said::Nothing, "", ""),
            ("g-nokey", Said::AuthFailed("Missing environment variable: `MOCK_API_KEY`.".into()), "", ""),
            ("g-sseerr", cut("scripted mid-stream error"), "", ""),
            ("g-trunc", cut(broken), "", ""),
        ] {
            let seen = decode(name);
            assert_eq!(
                (&seen.said, seen.output.as_str(), activations(&seen).as_str()),
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
        let mut decoder = (STREAM.start)();
        decoder.line(
            r#"{"type":"turn.completed","usage":{"input_tokens":100,"cached_input_tokens":60,
            "cache_write_input_tokens":10,"output_tokens":7,"reasoning_output_tokens":3}}"#,
        );
        let expected = Usage { input: 30, output: 7, cache_read: 60, cache_write: 10 };
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
            assert_eq!(tools(&decode(name)), expected, "{name}");
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
            (vec![message("Which one?"), done.clone()], Said::Asked),
            (vec![ran, message("Which one?"), done.clone()], Said::Done),
            (vec![message("No."), done], Said::Done),
            (vec![fails(limit)], Said::RateLimited(limit.into())),
            (vec![fails(quota)], Said::RateLimited(quota.into())),
            (vec![fails(forbidden)], Said::AuthFailed(forbidden.into())),
            (vec![fails(talk)], Said::ApiFailed(talk.into())),
            (vec!["no JSON".to_owned(), r#"{"type":"new.event"}"#.to_owned()], Said::Nothing),
            (vec![r#"{"type":"turn.failed"}"#.to_owned()], Said::ApiFailed(String::new())),
        ] {
            let mut decoder = (STREAM.start)();
            lines.iter().for_each(|line| {
                decoder.line(line);
            });
            assert_eq!(decoder.finish().said, said, "{lines:?}");
        }
    }

    #[test]
    fn the_configuration_names_the_key_and_never_holds_it() {
        let gateway = "http://127.0.0.1:1/t/x/v1";
        for (env, key, url) in [
            (vec![], "CODEX_API_KEY", VENDOR),
            (vec![("CODEX_API_KEY", "secret")], "CODEX_API_KEY", VENDOR),
            (vec![("OPENAI_API_KEY", "secret"), (BASE_URL, "")], "OPENAI_API_KEY", VENDOR),
            (vec![("CODEX_API_KEY", "secret"), (BASE_URL, gateway)], "CODEX_API_KEY", gateway),
            (
                vec![(BASE_URL, "http://a\"\n[features]\nplugins = true")],
                "CODEX_API_KEY",
                "http://a\"\n[features]\nplugins = true",
            ),
        ] {
            let env = env.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            let text = config(&env, false);
            assert!(!text.contains("secret"), "{text}");
            let config: toml::Table = text.parse().expect("TOML");
            let provider = &config["model_providers"]["practicum"];
            assert_eq!((provider["env_key"].as_str(), provider["base_url"].as_str()), (Some(key), Some(url)));
            assert_eq!(config["features"]["plugins"].as_bool(), Some(false));
        }
    }
}
