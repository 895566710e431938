//! The readers of everything that comes from outside, each as a function of one file.

use std::collections::BTreeMap;
use std::path::Path;

use practicum::agents::{AgentRegistry, DECODERS, skills_read_in, unanswered_calls_in};
use practicum::checks::pictures::decode_picture;
use practicum::dialects::{EvalFileLocation, EvalRegistry, load_eval_file, load_text};
use practicum::gateway::{Cassette, ModelScript, PriceTable};
use practicum::lint::lint_skill_file;
use practicum::llm::{ModelApi, SseEvent, SseReader};
use practicum::model::{Diagnostics, Step, ToolCall};
use practicum::plan::settings::{SettingLayers, Settings, own_agents, resource_limits};
use practicum::rewordings::read_rewordings;
use practicum::routing_prompts::read_routing_prompts;
use practicum::skill::{Skill, read_frontmatter, remove_key, split_frontmatter};
use practicum::store::reload_trial::reload_trial;
use practicum::store::transcript::read_steps;
use practicum::store::{
    HumanLabel, RecordKey, RunDir, RunLock, Scrubber, StoredTrials, TrialDigest, TrialFacts, read_baseline,
    read_noise, read_probes, read_records, read_skill_judgements,
};
use practicum::tree::{SourceFile, SourceSyntax, to_yaml};
use practicum::versions::SkillParagraphs;

use crate::seeds::{Seed, copy_of_repository, of_repository, put, record_of_run, with_found};

/// A reader: where its inputs come from, and how it reads one.
pub struct Reader {
    pub name: &'static str,
    /// Gives the inputs to begin with. Files that the reader needs beside them are written into the folder.
    pub seeds: fn(&Path) -> Vec<Seed>,
    /// Reads an input. The folder is the same for all inputs; the path is that of the seed.
    pub read: fn(&Path, &Path, &[u8]),
}

/// All readers. A new one is a function and a line here.
pub static READERS: &[Reader] = &[
    Reader {
        name: "trees",
        seeds: |_| with_found("trees", of_repository(&["json", "yaml", "jsonl"])),
        read: trees,
    },
    Reader {
        name: "eval-files",
        seeds: |_| with_found("eval-files", of_repository(&["json", "yaml", "jsonl", "md", "toml"])),
        read: eval_files,
    },
    Reader {
        name: "eval-folders",
        seeds: |scratch| with_found("eval-folders", copy_of_repository(scratch)),
        read: eval_folders,
    },
    Reader { name: "skills", seeds: |_| with_found("skills", of_repository(&["md"])), read: skills },
    Reader {
        name: "streams",
        seeds: |_| with_found("streams", of_repository(&["jsonl", "txt"])),
        read: streams,
    },
    Reader { name: "shell", seeds: |_| with_found("shell", shell_seeds()), read: shell },
    Reader {
        name: "model-messages",
        seeds: |_| with_found("model-messages", message_seeds()),
        read: model_messages,
    },
    Reader {
        name: "gateway-files",
        seeds: |_| with_found("gateway-files", gateway_seeds()),
        read: gateway_files,
    },
    Reader { name: "records", seeds: |scratch| with_found("records", record_of_run(scratch)), read: records },
    Reader { name: "settings", seeds: |_| with_found("settings", setting_seeds()), read: settings },
    Reader {
        name: "routing-prompts",
        seeds: |_| with_found("routing-prompts", of_repository(&["json", "yaml", "jsonl"])),
        read: routing_prompts,
    },
    Reader { name: "pictures", seeds: |_| with_found("pictures", of_repository(&["png"])), read: pictures },
    Reader { name: "secrets", seeds: |_| with_found("secrets", shell_seeds()), read: secrets },
];

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Writes an input beside nothing else. Gives its path.
fn put_alone(scratch: &Path, seed: &Path, bytes: &[u8]) -> std::path::PathBuf {
    let path = scratch.join("alone").join(seed.file_name().unwrap_or_default());
    put(scratch, path.strip_prefix(scratch).expect("below"), bytes);
    path
}

fn trees(_: &Path, seed: &Path, bytes: &[u8]) {
    for syntax in [SourceSyntax::Json, SourceSyntax::JsonLines, SourceSyntax::Yaml] {
        let mut diagnostics = Diagnostics::default();
        if let Some(source) = SourceFile::parse(seed, text_of(bytes), syntax, &mut diagnostics) {
            to_yaml(&source.root.to_value());
        }
    }
}

fn eval_files(scratch: &Path, seed: &Path, bytes: &[u8]) {
    let place = EvalFileLocation::new(scratch, scratch);
    load_text(seed, text_of(bytes), &place);
    // Each input is also read as if the user had named one of the formats.
    let path = put_alone(scratch, seed, bytes);
    let registry = EvalRegistry::default();
    let sum: usize = bytes.iter().map(|byte| usize::from(*byte)).sum();
    let format = registry.formats()[sum % registry.formats().len()];
    load_eval_file(&path, &place, Some(format));
    std::fs::remove_file(path).expect("removed");
}

fn eval_folders(scratch: &Path, seed: &Path, bytes: &[u8]) {
    let path = scratch.join(seed);
    let before = std::fs::read(&path).ok();
    put(scratch, seed, bytes);
    let place = EvalFileLocation::new(scratch, scratch);
    for folder in path.ancestors().skip(1).take_while(|folder| *folder != scratch).take(3) {
        load_eval_file(folder, &place, None);
    }
    load_eval_file(&path, &place, None);
    match before {
        Some(before) => std::fs::write(&path, before).expect("written"),
        None => std::fs::remove_file(&path).expect("removed"),
    }
}

fn skills(scratch: &Path, seed: &Path, bytes: &[u8]) {
    let text = text_of(bytes);
    let (front, _) = split_frontmatter(&text);
    let front = front.unwrap_or(&text);
    read_frontmatter(seed, front, &mut Diagnostics::default());
    remove_key(front, "name");
    remove_key(front, "allowed-tools");
    put(scratch, Path::new("skill/SKILL.md"), bytes);
    let _ = Skill::read(&scratch.join("skill"));
    lint_skill_file(&scratch.join("skill/SKILL.md"));
    let paragraphs = SkillParagraphs::new(&text);
    assert_eq!(paragraphs.without(&[]), text);
    paragraphs.without(&(0..paragraphs.count()).collect::<Vec<_>>());
}

fn routing_prompts(scratch: &Path, seed: &Path, bytes: &[u8]) {
    let path = put_alone(scratch, seed, bytes);
    read_routing_prompts(&path, &mut Diagnostics::default());
    read_rewordings(&path, &mut Diagnostics::default());
    let table = put_alone(scratch, &seed.with_extension("csv"), bytes);
    read_routing_prompts(&table, &mut Diagnostics::default());
}

fn streams(_: &Path, _: &Path, bytes: &[u8]) {
    let text = text_of(bytes);
    for kind in DECODERS {
        let mut decoder = (kind.new_decoder)();
        if decoder.wants_bytes() {
            decoder.expect_bytes(bytes.len() as u64);
            bytes.chunks(1000).for_each(|part| decoder.read_bytes(part));
        } else {
            for line in text.lines() {
                decoder.read_line(line);
            }
        }
        let transcript = decoder.finish();
        skills_read_in(&transcript.steps);
        unanswered_calls_in(&transcript.steps);
    }
}

/// Commands as agents write them, and the scripts of the examples.
fn shell_seeds() -> Vec<Seed> {
    let commands = [
        "cat .claude/skills/gull/SKILL.md",
        "bash -lc \"cd .claude/skills && sed -n '1,40p' gull/SKILL.md | head -n 3\"",
        "for f in $(ls skills); do cat \"skills/$f/SKILL.md\"; done",
        "cat <<'EOF' > x\n$(cat skills/a/SKILL.md)\nEOF\n",
        "X=$(cat skills/a/SKILL.md) && echo \"${X:-none}\" || grep -r 'x y' {a,b}/SKILL.md 2>&1",
        "if [ -f a ]; then (cd b; cat ./SKILL.md); else echo $'a\\n' `cat c/SKILL.md`; fi",
    ];
    let commands = commands.iter().map(|text| (Path::new("command.sh").to_owned(), text.as_bytes().to_vec()));
    commands.chain(of_repository(&["sh", "md"])).collect()
}

fn shell(_: &Path, _: &Path, bytes: &[u8]) {
    let command = text_of(bytes);
    for name in ["Bash", "shell", "command_execution"] {
        let input = serde_json::json!({"command": command});
        let result = Some("---\nname: gull\n---\n".to_owned());
        let call = ToolCall { name: name.to_owned(), input, result, ok: Some(true) };
        skills_read_in(&[Step::Tool(call.clone())]);
        unanswered_calls_in(&[Step::Tool(ToolCall { result: None, ok: None, ..call })]);
    }
}

fn pictures(_: &Path, _: &Path, bytes: &[u8]) {
    let _ = decode_picture(bytes);
}

const APIS: [ModelApi; 3] = [ModelApi::AnthropicMessages, ModelApi::OpenAiResponses, ModelApi::OpenAiChat];

/// Requests, replies and streams of each API.
fn message_seeds() -> Vec<Seed> {
    let texts = [
        r#"{"model":"m","max_tokens":10,"stream":true,"system":[{"type":"text","text":"s"}],"tools":[{"name":"t","description":"d","input_schema":{"type":"object"}}],"tool_choice":{"type":"tool","name":"t"},"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"t","input":{"a":[1]}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"r"}],"is_error":false}]}]}"#,
        r#"{"id":"m","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"x"},{"type":"tool_use","id":"1","name":"t","input":{}}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":2,"cache_read_input_tokens":3}}"#,
        r#"{"model":"m","stream":true,"messages":[{"role":"system","content":"s"},{"role":"user","content":[{"type":"text","text":"hi"}]},{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"t","arguments":"{\"a\":1}"}}]},{"role":"tool","tool_call_id":"1","content":"r"}],"tools":[{"type":"function","function":{"name":"t","parameters":{}}}]}"#,
        r#"{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"x","tool_calls":null}}],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#,
        r#"{"model":"m","instructions":"s","stream":true,"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]},{"type":"function_call","call_id":"1","name":"t","arguments":"{}"},{"type":"function_call_output","call_id":"1","output":"r"}],"tools":[{"type":"function","name":"t","parameters":{}}]}"#,
        r#"{"id":"r","object":"response","status":"completed","model":"m","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"x"}]},{"type":"function_call","call_id":"1","name":"t","arguments":"{}"}],"usage":{"input_tokens":1,"output_tokens":2}}"#,
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"m\",\"usage\":{\"input_tokens\":1}}}\n\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"x\"}}\n\ndata: [DONE]\n\n",
    ];
    texts.iter().map(|text| (Path::new("message.json").to_owned(), text.as_bytes().to_vec())).collect()
}

fn model_messages(_: &Path, _: &Path, bytes: &[u8]) {
    SseEvent::read_all(bytes);
    let mut reader = SseReader::default();
    bytes.chunks(7).for_each(|part| drop(reader.feed(part)));
    reader.finish();
    let Ok(json) = serde_json::from_slice(bytes) else { return };
    for api in APIS {
        let format = api.wire_format();
        if let Ok(request) = format.request_from_json(&json) {
            APIS.iter().for_each(|other| drop(other.wire_format().request_to_json(&request)));
        }
        if let Ok(reply) = format.reply_from_json(&json) {
            APIS.iter().for_each(|other| drop(other.wire_format().reply_to_events(&reply)));
        }
        let mut counts = practicum::llm::ReplyCounts::default();
        counts.add_json(api, &json);
    }
}

/// Scripts, prices, and a cassette.
fn gateway_seeds() -> Vec<Seed> {
    let cassette = "{\"cassette\":{\"schema_version\":1}}\n{\"text\":{\"digest\":\"x\",\"text\":\"y\"}}\n";
    let prices =
        "date = \"2026-01-01\"\n[models.m]\ninput = 1.0\noutput = 2.0\ncache_read = 0.1\ncache_write = 1.2\n";
    let own = [("cassette.jsonl", cassette), ("prices.toml", prices)];
    let own = own.map(|(name, text)| (Path::new(name).to_owned(), text.as_bytes().to_vec()));
    let scripts = of_repository(&["yaml"]);
    let scripts = scripts.into_iter().filter(|(path, _)| path.ends_with("script.yaml"));
    own.into_iter().chain(scripts).collect()
}

fn gateway_files(scratch: &Path, seed: &Path, bytes: &[u8]) {
    let path = put_alone(scratch, seed, bytes);
    ModelScript::read(&path, &mut Diagnostics::default());
    let _ = Cassette::read(&path);
    if let Ok(prices) = PriceTable::with_user_file(&path) {
        prices.price_of("m-20260101");
    }
}

fn records(scratch: &Path, seed: &Path, bytes: &[u8]) {
    let path = scratch.join(seed);
    let before = std::fs::read(&path).ok();
    put(scratch, seed, bytes);
    for run in RunDir::all(scratch) {
        let _ = run.info();
        run.summary();
        run.run_duration();
        let folder = run.path();
        let known = AgentRegistry::default();
        let trials = read_records(folder).unwrap_or_default();
        for record in trials.values() {
            read_steps(&run.trial_folder(&record.trial), record, 100_000, &known);
        }
        for trial in std::fs::read_dir(folder.join("trials")).into_iter().flatten().flatten() {
            let _ = reload_trial(&trial.path(), &known);
            let _ = TrialFacts::read(&trial.path());
            TrialDigest::origin(&trial.path(), &RecordKey::temporary());
        }
        let _ = (read_probes(folder), read_skill_judgements(folder), HumanLabel::read_all(folder));
        let _ = StoredTrials::open(folder);
        RunLock::read(folder);
    }
    put(scratch, Path::new(".practicum/noise.json"), bytes);
    put(scratch, Path::new(".practicum/baseline.json"), bytes);
    let _ = read_noise(scratch, &RecordKey::temporary());
    let _ = read_baseline(scratch, Some(".practicum/baseline.json"));
    match before {
        Some(before) => std::fs::write(&path, before).expect("written"),
        None => std::fs::remove_file(&path).expect("removed"),
    }
}

/// Settings of the examples, and one file with most keys.
fn setting_seeds() -> Vec<Seed> {
    let all = "agent = [\"claude\", \"own\"]\nmodel = \"m\"\nrepeat = 3\ntimeout = \"5m\"\nsandbox = \"strict\"\n[limits]\nmemory = \"1GB\"\nprocesses = 64\ncpu = \"1h\"\n[agents.own]\ncommand = [\"sh\", \"-c\", \"{prompt}\"]\ndecoder = \"text\"\nenv = { A = \"b\" }\ncredentials = [\"K\"]\n";
    let mut seeds = of_repository(&["toml"]);
    seeds.push((Path::new("practicum.toml").to_owned(), all.as_bytes().to_vec()));
    seeds
}

fn settings(scratch: &Path, _: &Path, bytes: &[u8]) {
    put(scratch, Path::new("practicum.toml"), bytes);
    let home = [("HOME".to_owned(), scratch.display().to_string())];
    let Ok(layers) = SettingLayers::without_flags(BTreeMap::from(home), scratch) else { return };
    let _ = own_agents(&layers, &AgentRegistry::default());
    let _ = resource_limits(&layers);
    let place = EvalFileLocation::new(scratch, scratch);
    let evals = "practicum: 1\ncases:\n  - { id: a, prompt: p, checks: [{ contains: x }] }\n";
    let loaded = load_text(&scratch.join("e.practicum.yaml"), evals.to_owned(), &place);
    if let Some(suite) = &loaded.lowered.suite {
        let _ = Settings::resolve(&layers, suite);
    }
}

fn secrets(_: &Path, _: &Path, bytes: &[u8]) {
    let (secret, text) = bytes.split_at(bytes.len().min(200) / 2);
    let environment =
        [("API_TOKEN".to_owned(), text_of(secret)), ("B_KEY".to_owned(), text_of(&text[..text.len() / 2]))];
    let scrubber = Scrubber::new(&BTreeMap::from(environment));
    scrubber.scrub_bytes(text);
    let mut stream = scrubber.stream();
    let mut clean = Vec::new();
    bytes.chunks(11).for_each(|part| stream.push(part, &mut clean));
    stream.finish(&mut clean);
}
