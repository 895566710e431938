//! Qwen Code, run with `qwen`, and the decoder of its stream, which has the shape of Claude Code's.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::claude::ClaudeDecoder;
use super::{
    AgentCli, AgentCredentials, AgentProgram, Decoder, DecoderKind, GatewayRoute, ModelAddress, StreamEnd,
    StreamTranscript, classify_api_error,
};
use practicum_core::model::{RelPath, SkillRefusalSource};

pub static DECODER: DecoderKind = DecoderKind {
    name: "qwen-stream-json",
    shows_skills: true,
    new_decoder: || Box::new(QwenDecoder::default()),
    new_client: None,
};

/// The skills that Qwen Code brings along. They are switched off, because they would compete with the skill under test.
const OWN_SKILLS: &[&str] = &[
    "batch",
    "browser-use",
    "computer-use",
    "dataviz",
    "extension-creator",
    "goal-draft",
    "loop",
    "new-app",
    "qc-helper",
    "review",
    "simplify",
    "stuck",
    "workflow-authoring",
    "workflow-creator",
];

pub fn agent() -> AgentCli {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
    // Without `--yolo` the tool for skills is declined, because nobody can be asked.
    let always = words(&["--output-format", "stream-json", "--yolo", "--auth-type", "openai"]);
    let model = words(&["--model", "{model}"]);
    let append = words(&["--append-system-prompt", "{append_system}"]);
    // With the equals sign, a prompt that begins with a dash is still the prompt.
    let prompt = words(&["--prompt={prompt}"]);
    AgentCli {
        name: "qwen".to_owned(),
        program: AgentProgram::OnPath("qwen".to_owned()),
        first_turn_args: vec![always.clone(), model.clone(), append.clone(), prompt.clone()],
        later_turn_args: vec![always, words(&["--resume", "{session}"]), model, append, prompt],
        decoder: &DECODER,
        skills_dir: RelPath::new(".agents/skills").expect("a relative path"),
        env: vec![("QWEN_CODE_SUPPRESS_YOLO_WARNING".to_owned(), "1".to_owned())],
        pass_env: words(&["OPENAI_BASE_URL", "OPENAI_MODEL"]),
        credentials: AgentCredentials::from_variables(words(&["OPENAI_API_KEY"])),
        route: Some(GatewayRoute {
            base_url_variable: "OPENAI_BASE_URL".to_owned(),
            suffix: "/v1",
            key_variable: "OPENAI_API_KEY".to_owned(),
            model_prefixes: &[],
            also_set: &[("OPENAI_MODEL", "qwen3-coder-plus")],
        }),
        models: vec![ModelAddress::from_variable(
            "OPENAI_BASE_URL",
            "https://dashscope.aliyuncs.com/compatible-mode/v1",
        )],
        skill_command: None,
        home_files: Some(home_files),
        own_skills: OWN_SKILLS,
        auto: None,
    }
}

/// Writes the settings. With its memory on, a second agent with tools of its own would run after the answer.
fn home_files(_: &BTreeMap<String, String>, _: bool) -> Vec<(RelPath, String)> {
    let settings = json!({
        "general": {"enableAutoUpdate": false},
        "memory": {"enableManagedAutoMemory": false, "enableAutoSkill": false},
        "privacy": {"usageStatisticsEnabled": false},
        "security": {"auth": {"selectedType": "openai"}},
        "skills": {"disabled": OWN_SKILLS},
        "ui": {"enableFollowupSuggestions": false},
    });
    vec![(RelPath::new(".qwen/settings.json").expect("a relative path"), settings.to_string())]
}

/// A decoder that adds to Claude Code's what only Qwen Code says.
#[derive(Default)]
struct QwenDecoder {
    of_claude: ClaudeDecoder,
    /// The error that ended the run, if one did.
    error: Option<String>,
    version: Option<String>,
    /// Skills whose tool was declined, because nobody could be asked.
    denied_skills: Vec<String>,
}

impl Decoder for QwenDecoder {
    fn read_event(&mut self, event: Value) {
        if event["type"] == "result" {
            self.error = event["error"]["message"].as_str().map(str::to_owned);
            let denied = event["permission_denials"].as_array().into_iter().flatten();
            let skills = denied.filter_map(|call| call["tool_input"]["skill"].as_str());
            self.denied_skills.extend(skills.map(str::to_owned));
        }
        if event["subtype"] == "init" {
            self.version = event["qwen_code_version"].as_str().map(str::to_owned);
        }
        self.of_claude.read_event(event);
    }

    fn finish(self: Box<Self>) -> StreamTranscript {
        let mut transcript = Box::new(self.of_claude).finish();
        transcript.version = self.version.or(transcript.version);
        for refused in &mut transcript.refused_skills {
            if self.denied_skills.contains(&refused.skill) {
                refused.by = SkillRefusalSource::Permissions;
            }
        }
        if let Some(error) = self.error {
            transcript.output.clear();
            transcript.end = classify_api_error(&error);
        } else if transcript.end != StreamEnd::BrokenOff {
            // The tokens are those of the session, including the processes that it was resumed from.
            transcript.totals_of_session = true;
        }
        transcript
    }
}
