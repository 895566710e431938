//! Gemini CLI, driven by `gemini --prompt` and its stream of JSON lines.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{
    Agent, Credentials, Decoder, DecoderKind, ModelAddress, Program, Said, Transcript, refused_by_tool,
    skill_read_in, skills_read_by,
};
use practicum_core::model::{Activated, ActivationEvidence, RelPath, Step, ToolCall, Usage};

pub static STREAM: DecoderKind =
    DecoderKind { name: "gemini-stream-json", shows_skills: true, start: || Box::new(Gemini::default()) };

pub fn agent() -> Agent {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
    let always = words(&["--output-format", "stream-json", "--approval-mode", "yolo"]);
    let model = words(&["--model", "{model}"]);
    // With the equals sign, a prompt that begins with a dash is still the prompt.
    let prompt = words(&["--prompt={prompt}"]);
    Agent {
        name: "gemini".to_owned(),
        program: Program::OnPath("gemini".to_owned()),
        first: vec![always.clone(), model.clone(), prompt.clone()],
        // The home is the trial's own, so that its latest session is the trial's.
        later: vec![always, words(&["--resume", "latest"]), model, prompt],
        decoder: &STREAM,
        skills_dir: RelPath::new(".gemini/skills").expect("a relative path"),
        env: Vec::new(),
        pass_env: words(&["GOOGLE_GEMINI_BASE_URL", "GEMINI_MODEL"]),
        credentials: Credentials::of(words(&["GEMINI_API_KEY", "GOOGLE_API_KEY"])),
        // The gateway does not speak Google's API.
        route: None,
        models: vec![ModelAddress::vendor(
            "GOOGLE_GEMINI_BASE_URL",
            "https://generativelanguage.googleapis.com",
        )],
        skill_command: None,
        home_files: Some(|_, _| {
            let path = RelPath::new(".gemini/settings.json").expect("a relative path");
            vec![(path, settings())]
        }),
        own_skills: &[],
        auto: false,
    }
}

/// A folder that is not trusted has no skills, and a home that is new has to be told how to log in.
fn settings() -> String {
    let settings = json!({
        "general": {"enableAutoUpdate": false},
        "privacy": {"usageStatisticsEnabled": false},
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false}},
    });
    settings.to_string()
}

#[derive(Default)]
struct Gemini {
    out: Transcript,
    /// Tool calls whose result has not come yet, by the id the stream gives them.
    pending: HashMap<String, usize>,
    /// Whether the last event was a piece of the same message.
    speaking: bool,
    messages: u32,
}

impl Decoder for Gemini {
    fn event(&mut self, event: Value) {
        let text = |key: &str| event[key].as_str().unwrap_or_default();
        match (text("type"), text("role")) {
            ("message", "assistant") => {
                self.said(text("content"), event["delta"] == true);
                return;
            }
            ("init", _) => {
                self.out.session = event["session_id"].as_str().map(str::to_owned);
                self.out.model = event["model"].as_str().map(str::to_owned);
            }
            ("tool_use", _) => {
                self.pending.insert(text("tool_id").to_owned(), self.out.steps.len());
                let (name, input) = (text("tool_name").to_owned(), event["parameters"].clone());
                self.out.steps.push(Step::Tool(ToolCall { name, input, result: None, ok: None }));
            }
            ("tool_result", _) => self.result_of_tool(&event),
            ("result", _) => self.result(&event),
            // An `error` is a warning: what ends the run comes with the result.
            _ => {}
        }
        self.speaking = false;
    }

    fn finish(self: Box<Self>) -> Transcript {
        self.out
    }
}

impl Gemini {
    /// A message comes in pieces.
    fn said(&mut self, content: &str, piece: bool) {
        match self.out.steps.last_mut() {
            Some(Step::Text(text)) if self.speaking && piece => {
                text.push_str(content);
                self.out.output.push_str(content);
            }
            _ => {
                self.messages += 1;
                self.out.output = content.to_owned();
                self.out.steps.push(Step::Text(content.to_owned()));
            }
        }
        self.speaking = true;
    }

    fn result_of_tool(&mut self, event: &Value) {
        let at = event["tool_id"].as_str().and_then(|id| self.pending.remove(id));
        let Some(Step::Tool(call)) = at.and_then(|at| self.out.steps.get_mut(at)) else { return };
        let ok = event["status"] == "success";
        call.ok = Some(ok);
        let output = event["output"].as_str().or_else(|| event["error"]["message"].as_str());
        call.result = output.map(str::to_owned);
        let call = call.clone();
        if !ok && call.name == "activate_skill" {
            self.out.refused.extend(refused_by_tool(&call, "name"));
        }
        self.out.activated.extend(activated(&call, ok));
    }

    fn result(&mut self, event: &Value) {
        let stats = &event["stats"];
        let count = |key: &str| stats[key].as_u64().unwrap_or(0);
        let cached = count("cached");
        self.out.usage = Usage {
            input: count("input_tokens").saturating_sub(cached),
            output: count("output_tokens"),
            cache_read: cached,
            cache_write: 0,
        };
        self.out.said = if event["status"] == "success" {
            let only_asked = self.messages == 1 && self.out.steps.len() == 1;
            if only_asked && self.out.output.trim_end().ends_with('?') { Said::Asked } else { Said::Done }
        } else {
            failure(&event["error"])
        };
    }
}

fn activated(call: &ToolCall, ok: bool) -> Vec<Activated> {
    let text = |key: &str| call.input[key].as_str();
    let read = || ActivationEvidence::ReadSkillFile { tool: call.name.clone() };
    let one = |skill: &str, evidence| Activated { skill: skill.to_owned(), plugin: None, evidence };
    let output = call.result.as_deref().unwrap_or_default();
    match call.name.as_str() {
        "activate_skill" if ok => {
            text("name").map(|skill| one(skill, ActivationEvidence::SkillTool)).into_iter().collect()
        }
        "read_file" if ok => {
            let path = text("file_path").or_else(|| text("absolute_path"));
            path.and_then(skill_read_in).map(|skill| one(skill, read())).into_iter().collect()
        }
        "run_shell_command" => {
            let skills = skills_read_by(text("command").unwrap_or_default(), output, ok);
            skills.iter().map(|skill| one(skill, read())).collect()
        }
        _ => Vec::new(),
    }
}

/// The program names the class of its own error, and quotes the API's with its code.
fn failure(error: &Value) -> Said {
    let message = error["message"].as_str().unwrap_or_default();
    let why = message.to_owned();
    let quoted = message.strip_prefix("[API Error: ").and_then(|rest| rest.strip_suffix(']'));
    let quoted = quoted.and_then(|text| serde_json::from_str::<Value>(text).ok()).unwrap_or_default();
    match (error["type"].as_str(), quoted["error"]["code"].as_u64()) {
        (Some("FatalAuthenticationError"), _) | (_, Some(401 | 403)) => Said::AuthFailed(why),
        (Some("FatalTurnLimitedError"), _) => Said::OverBudget(why),
        (Some("FatalCancellationError"), _) => Said::Interrupted(why),
        (_, Some(429)) => Said::RateLimited(why),
        _ => Said::ApiFailed(why),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{activations, recorded, tools};
    use super::*;

    #[test]
    fn recorded_streams() {
        let plain = "Hello from the scripted model.";
        for (name, output, activated, input, tokens_out) in
            [("plain", plain, "", 7_890, 12), ("skill", "GREETING via gemini skill", "greeter", 23_840, 24)]
        {
            let seen = recorded(&STREAM, &format!("gemini-{name}"));
            assert_eq!(
                (&seen.said, seen.output.as_str(), activations(&seen).as_str()),
                (&Said::Done, output, activated),
                "{name}"
            );
            assert_eq!((seen.usage.input, seen.usage.output), (input, tokens_out), "{name}");
            assert_eq!(seen.model.as_deref(), Some("gemini-2.5-flash"), "{name}");
            assert!(seen.session.is_some(), "{name}");
        }
        let seen = recorded(&STREAM, "gemini-skill");
        assert!(tools(&seen).starts_with("activate_skill greeter = ok: Skill **greeter** activated."));
        let refused = recorded(&STREAM, "gemini-e401").said;
        assert!(matches!(&refused, Said::AuthFailed(why) if why.contains("bad key")), "{refused:?}");
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
            (vec![said("Hello "), said("there."), success()], Said::Done, "Hello there."),
            (vec![said("Which "), said("one?"), success()], Said::Asked, "Which one?"),
            (vec![said("a"), warning, said("b"), success()], Said::Done, "b"),
            ([refused.to_vec(), vec![said("Ok?"), success()]].concat(), Said::Done, "Ok?"),
            (vec![fails("FatalAuthenticationError")], Said::AuthFailed("m".into()), ""),
            (vec![fails("FatalTurnLimitedError")], Said::OverBudget("m".into()), ""),
            (vec![fails("FatalCancellationError")], Said::Interrupted("m".into()), ""),
            (vec![fails("Error")], Said::ApiFailed("m".into()), ""),
            (vec![quotes(429)], Said::RateLimited(quoted(429)), ""),
            (vec![quotes(503)], Said::ApiFailed(quoted(503)), ""),
            (vec![said("cut off")], Said::Nothing, "cut off"),
        ] {
            let mut decoder = (STREAM.start)();
            lines.iter().for_each(|line| {
                decoder.line(line);
            });
            let seen = decoder.finish();
            assert_eq!((&seen.said, seen.output.as_str()), (&ending, output), "{lines:?}");
            assert_eq!(activations(&seen), "", "{lines:?}");
        }
    }
}
