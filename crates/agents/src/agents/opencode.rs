//! opencode, run with `opencode run`, and the decoder of its stream of JSON lines.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    AgentCli, AgentCredentials, AgentProgram, Decoder, DecoderKind, GatewayRoute, StreamEnd,
    StreamTranscript, hidden_subagent, is_subagent_tool, refused_skill_call,
};
use practicum_core::model::{ActivatedSkill, ActivationEvidence, RelPath, Step, TokenUsage, ToolCall};

pub static DECODER: DecoderKind = DecoderKind {
    name: "opencode-json",
    shows_skills: true,
    new_decoder: || Box::new(OpencodeDecoder::default()),
    new_client: None,
};

/// The variable with the gateway's address. opencode reads the address of a provider from a file and not from a
/// variable, so `home_files` writes it there.
const GATEWAY_VARIABLE: &str = "PRACTICUM_GATEWAY";
/// The model that is requested from a gateway if the user names none.
const DEFAULT_MODEL: &str = "anthropic/claude-sonnet-4-5";
/// A skill that opencode brings along. It is switched off, because it would compete with the skill under test.
const OWN_SKILL: &str = "customize-opencode";

pub fn agent() -> AgentCli {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
    // Some causes of failure, such as an unknown model, appear only in its log.
    let always = words(&["run", "--auto", "--format", "json", "--print-logs", "--log-level", "ERROR"]);
    let model = words(&["--model", "{model}"]);
    AgentCli {
        name: "opencode".to_owned(),
        program: AgentProgram::OnPath("opencode".to_owned()),
        // The prompt goes to standard input: as an argument it would reach the model in quotation marks, and a
        // prompt that looks like a number would crash the CLI.
        first_turn_args: vec![always.clone(), model.clone()],
        later_turn_args: vec![always, words(&["--session", "{session}"]), model],
        decoder: &DECODER,
        skills_dir: RelPath::new(".agents/skills").expect("a relative path"),
        // The CLI contains a list of models, and would otherwise fetch a newer one at each start.
        env: [("OPENCODE_DISABLE_MODELS_FETCH", "1"), ("OPENCODE_CONFIG_CONTENT", "{mcp_servers_opencode}")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec(),
        pass_env: Vec::new(),
        credentials: AgentCredentials::from_variables(words(&[
            "ANTHROPIC_API_KEY",
            "OPENAI_API_KEY",
            "GEMINI_API_KEY",
            "OPENROUTER_API_KEY",
            "OPENCODE_API_KEY",
        ])),
        route: Some(GatewayRoute {
            base_url_variable: GATEWAY_VARIABLE.to_owned(),
            suffix: "/v1",
            key_variable: "ANTHROPIC_API_KEY".to_owned(),
            model_prefixes: &["anthropic/", "openai/"],
            also_set: &[],
        }),
        models: Vec::new(),
        skill_command: None,
        home_files: Some(home_files),
        own_skills: &[OWN_SKILL],
        auto: None,
    }
}

fn home_files(env: &BTreeMap<String, String>, _: bool) -> Vec<(RelPath, String)> {
    let file = |path: &str, content: String| {
        (RelPath::new(&format!(".config/opencode/{path}")).expect("a relative path"), content)
    };
    // The CLI would install a package for plugins from a registry beside its configuration, unless it looks
    // installed.
    let installed = json!({"packages": {"": {"dependencies": {"@opencode-ai/plugin": "*"}}}});
    vec![
        file("opencode.json", config_json(env).to_string()),
        file("package-lock.json", installed.to_string()),
        file("node_modules/.package-lock.json", json!({"packages": {}}).to_string()),
    ]
}

fn config_json(env: &BTreeMap<String, String>) -> Value {
    let mut config = json!({
        "autoupdate": false,
        "share": "disabled",
        "snapshot": false,
        // Otherwise the CLI would ask another model for a title of the session during the first turn.
        "agent": {"title": {"disable": true}},
        "permission": {"skill": {OWN_SKILL: "deny"}},
    });
    if let Some(url) = env.get(GATEWAY_VARIABLE) {
        let options = json!({"options": {"baseURL": url, "apiKey": "gateway"}});
        config["model"] = json!(DEFAULT_MODEL);
        config["enabled_providers"] = json!(["anthropic", "openai"]);
        config["provider"] = json!({"anthropic": options.clone(), "openai": options});
    }
    config
}

#[derive(Default)]
struct OpencodeDecoder {
    transcript: StreamTranscript,
    step_count: u64,
}

impl Decoder for OpencodeDecoder {
    fn read_event(&mut self, event: Value) {
        if let Some(session) = event["sessionID"].as_str() {
            self.transcript.session = Some(session.to_owned());
        }
        let part = &event["part"];
        match event["type"].as_str() {
            Some("text") => {
                let text = part["text"].as_str().unwrap_or_default();
                self.transcript.output = text.to_owned();
                self.transcript.steps.push(Step::Text(text.to_owned()));
            }
            Some("tool_use") => self.record_tool_call(part),
            Some("step_finish") => self.record_step_usage(part),
            Some("error") => self.transcript.end = classify_failure(&event["error"]),
            _ => {}
        }
    }

    fn finish(mut self: Box<Self>) -> StreamTranscript {
        self.transcript.api_calls = (self.step_count > 0).then_some(self.step_count);
        self.transcript
    }
}

impl OpencodeDecoder {
    /// Adds a tool call, which comes with its result.
    fn record_tool_call(&mut self, part: &Value) {
        let state = &part["state"];
        let ok = state["status"] == "completed" && state["metadata"]["exit"].as_i64().unwrap_or(0) == 0;
        let output = state["output"].as_str().or_else(|| state["error"].as_str());
        let call = ToolCall {
            name: part["tool"].as_str().unwrap_or_default().to_owned(),
            input: state["input"].clone(),
            result: output.map(str::to_owned),
            ok: Some(ok),
        };
        if !ok && call.name == "skill" {
            self.transcript.refused_skills.extend(refused_skill_call(&call));
        }
        if let Some(skill) = call.input["name"].as_str().filter(|_| ok && call.name == "skill") {
            let (skill, evidence) = (skill.to_owned(), ActivationEvidence::SkillTool);
            self.transcript.activations.push(ActivatedSkill { skill, plugin: None, evidence });
        }
        // A subagent has a session of its own, whose events are not in this stream.
        if is_subagent_tool(&call.name) {
            self.transcript.uncertain.push(hidden_subagent());
        }
        self.transcript.steps.push(Step::Tool(call));
    }

    /// Adds the tokens of a step. Each step is one answer of the model, and counts its own tokens.
    fn record_step_usage(&mut self, part: &Value) {
        self.step_count += 1;
        let tokens = &part["tokens"];
        let count = |value: &Value| value.as_u64().unwrap_or(0);
        self.transcript.usage.add(TokenUsage {
            input: count(&tokens["input"]),
            output: count(&tokens["output"]).saturating_add(count(&tokens["reasoning"])),
            cache_read: count(&tokens["cache"]["read"]),
            cache_write: count(&tokens["cache"]["write"]),
        });
        if let Some(cost) = part["cost"].as_f64() {
            self.transcript.cost_usd = Some(self.transcript.cost_usd.unwrap_or(0.0) + cost);
        }
        // After tool calls, the model is asked again.
        if part["reason"] == "tool-calls" {
            return;
        }
        let only_asked = self.transcript.steps.len() == 1 && self.transcript.output.trim_end().ends_with('?');
        self.transcript.end = if only_asked { StreamEnd::AskedUser } else { StreamEnd::Done };
    }
}

/// Classifies a failure. An error has a class, and an API's error also has the HTTP status. An error in the middle
/// of an answer has neither; its message is the one that the API sent.
fn classify_failure(error: &Value) -> StreamEnd {
    let data = &error["data"];
    let name = error["name"].as_str().unwrap_or_default();
    let message = data["message"].as_str().unwrap_or(name);
    let written: Value = serde_json::from_str(message).unwrap_or_default();
    let why = written["message"].as_str().unwrap_or(message).to_owned();
    match (name, data["statusCode"].as_u64(), written["type"].as_str()) {
        ("ProviderAuthError", ..) | (_, Some(401 | 403), _) => StreamEnd::AuthFailed(why),
        ("MessageAbortedError", ..) => StreamEnd::Interrupted(why),
        (_, Some(429), _) | (_, None, Some("rate_limit_error")) => StreamEnd::RateLimited(why),
        _ => StreamEnd::ApiFailed(why),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{activation_names, decode_recorded, describe_tool_calls};
    use super::*;

    #[test]
    fn without_a_gateway_the_provider_is_the_users_own_affair() {
        let key = ("ANTHROPIC_API_KEY".to_owned(), "sk-1".to_owned());
        let own = config_json(&BTreeMap::from([key.clone()]));
        for decided in ["model", "provider", "enabled_providers"] {
            assert_eq!(own[decided], Value::Null, "{decided}");
        }
        let url = "http://127.0.0.1:1/t/x/v1";
        let played = config_json(&BTreeMap::from([key, (GATEWAY_VARIABLE.to_owned(), url.to_owned())]));
        for vendor in ["anthropic", "openai"] {
            assert_eq!(played["provider"][vendor]["options"], json!({"baseURL": url, "apiKey": "gateway"}));
        }
        for (path, content) in home_files(&BTreeMap::new(), false) {
            serde_json::from_str::<Value>(&content).unwrap_or_else(|error| panic!("{path}: {error}"));
        }
    }

    #[test]
    fn recorded_streams() {
        let plain = "Hello from the scripted model.";
        for (name, output, activated, input, tokens_out, calls) in [
            ("plain", plain, "", 7_766, 12, 1),
            ("skill", "GREETING via opencode skill", "greeter", 23_742, 36, 3),
        ] {
            let seen = decode_recorded(&DECODER, &format!("opencode-{name}"));
            assert_eq!(
                (&seen.end, seen.output.as_str(), activation_names(&seen).as_str()),
                (&StreamEnd::Done, output, activated),
                "{name}"
            );
            assert_eq!((seen.usage.input, seen.usage.output), (input, tokens_out), "{name}");
            assert_eq!((seen.api_calls, seen.cost_usd), (Some(calls), Some(0.0)), "{name}");
            assert!(seen.session.is_some_and(|session| session.starts_with("ses_")), "{name}");
        }
        let seen = decode_recorded(&DECODER, "opencode-skill");
        let refused = decode_recorded(&DECODER, "opencode-e401").end;
        assert!(matches!(&refused, StreamEnd::AuthFailed(why) if why.contains("bad key")), "{refused:?}");
        assert!(
            describe_tool_calls(&seen).ends_with("bash echo x > o.txt = ok: (no output)"),
            "{}",
            describe_tool_calls(&seen)
        );
    }

    #[test]
    fn other_events_of_the_program() {
        let text = |text: &str| json!({"type": "text", "part": {"text": text}}).to_string();
        let step = |reason: &str| json!({"type": "step_finish", "part": {"reason": reason}}).to_string();
        let fails = |name: &str, data: Value| {
            json!({"type": "error", "error": {"name": name, "data": data}}).to_string()
        };
        let status = |status: u16| fails("APIError", json!({"message": "m", "statusCode": status}));
        let used = |tool: &str, state: Value| {
            json!({"type": "tool_use", "part": {"tool": tool, "state": state}}).to_string()
        };
        let refused = used("skill", json!({"status": "error", "input": {"name": "x"}, "error": "no"}));
        let file = ".agents/skills/greeter/SKILL.md";
        let read =
            used("read", json!({"status": "completed", "input": {"filePath": file}, "output": "body"}));
        let cat = |exit: i64| {
            let input = json!({"command": format!("cat {file}")});
            used(
                "bash",
                json!({"status": "completed", "input": input, "output": "b", "metadata": {"exit": exit}}),
            )
        };
        for (lines, ending, activated) in [
            (vec![text("Which one?"), step("stop")], StreamEnd::AskedUser, ""),
            (vec![refused, text("Which one?"), step("stop")], StreamEnd::Done, ""),
            (vec![text("x"), step("tool-calls")], StreamEnd::BrokenOff, ""),
            (vec![read, step("stop")], StreamEnd::Done, "greeter"),
            (vec![cat(0), step("stop")], StreamEnd::Done, "greeter"),
            (vec![cat(1), step("stop")], StreamEnd::Done, ""),
            (vec![status(429)], StreamEnd::RateLimited("m".into()), ""),
            (vec![status(401)], StreamEnd::AuthFailed("m".into()), ""),
            (vec![status(529)], StreamEnd::ApiFailed("m".into()), ""),
            (
                vec![fails(
                    "UnknownError",
                    json!({"message": r#"{"type":"rate_limit_error","message":"m"}"#}),
                )],
                StreamEnd::RateLimited("m".into()),
                "",
            ),
            (
                vec![fails(
                    "UnknownError",
                    json!({"message": r#"{"type":"overloaded_error","message":"m"}"#}),
                )],
                StreamEnd::ApiFailed("m".into()),
                "",
            ),
            (
                vec![fails("ProviderAuthError", json!({}))],
                StreamEnd::AuthFailed("ProviderAuthError".into()),
                "",
            ),
            (
                vec![fails("MessageAbortedError", json!({}))],
                StreamEnd::Interrupted("MessageAbortedError".into()),
                "",
            ),
        ] {
            let mut decoder = (DECODER.new_decoder)();
            lines.iter().for_each(|line| {
                decoder.read_line(line);
            });
            let seen = decoder.finish();
            assert_eq!((&seen.end, activation_names(&seen).as_str()), (&ending, activated), "{lines:?}");
        }
    }
}
