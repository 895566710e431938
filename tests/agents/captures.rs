//! Every recorded stream of the real CLIs, and what is right to say of it.
//!
//! A recording is what one real process wrote to standard output; an empty one wrote only to standard
//! error. `PRACTICUM_CAPTURES` names a folder of recordings, and a test that then holds it against
//! this table: a new recording needs a row.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use practicum::agents::{StreamTranscript, find_decoder};
use practicum::model::ActivationEvidence::{Canary, ReadSkillFile, SkillTool, TextReached};
use practicum::model::AgentEnding::{
    ApiFailed, AuthFailed, Cancelled, Crashed, Finished, OverBudget, RateLimited, TimedOut as TookTooLong,
};
use practicum::model::{AgentEnding, Observation, ObservedActivation, TokenUsage};
use practicum::workspace::observe::ProcessEnd::{Exited, Signalled, TimedOut};
use practicum::workspace::observe::{ProcessEnd, RawRun, RawTurn, observe};

/// Whether a skill fired, and what shows it.
#[derive(Debug, Clone, Copy)]
enum Shown {
    /// Called by the tool for skills.
    Tool(&'static str),
    /// Its SKILL.md was read with another tool.
    Read(&'static str),
    No,
    Unknown,
}
use Shown::{No, Read, Tool, Unknown};

/// Recording, what became of the process, how the run ended, tokens in and out, activation.
type Row = (&'static str, ProcessEnd, AgentEnding, [u64; 2], Shown);

const ROWS: &[Row] = &[
    ("claude-a-plain", Exited(0), Finished, [11_686, 12], No),
    ("claude-b-skill", Exited(0), Finished, [23_524, 24], Tool("greeter")),
    // The model called a skill that is not there.
    ("claude-b2-skill-missing", Exited(0), Finished, [23_444, 24], No),
    ("claude-c-read", Exited(0), Finished, [35_468, 36], Read("greeter")),
    ("claude-d0-write-noperm", Exited(0), Finished, [47_406, 48], No),
    // It refused its arguments on standard error, and its stream is empty.
    ("claude-d1-write-skipperm", Exited(1), Crashed, [0, 0], Unknown),
    ("claude-d2-write-skipperm-sandbox", Exited(0), Finished, [47_964, 48], No),
    ("claude-d3-write-acceptEdits", Exited(0), Finished, [47_412, 48], No),
    ("claude-d4-write-allowed", Exited(0), Finished, [47_770, 48], No),
    ("claude-d5-write-dontAsk", Exited(0), Finished, [47_712, 48], No),
    ("claude-d6-write-bypassmode", Exited(1), Crashed, [0, 0], Unknown),
    ("claude-e1-turn1", Exited(0), Finished, [11_685, 12], No),
    // Totals are those of the session, so also of the process before.
    ("claude-e2-resume", Exited(0), Finished, [23_403, 24], No),
    ("claude-e3-continue", Exited(0), Finished, [35_156, 36], No),
    ("claude-e4-fork", Exited(0), Finished, [46_958, 48], No),
    ("claude-e5-resume-othercwd", Exited(0), Finished, [47_123, 48], No),
    ("claude-e6-streamin", Exited(0), Finished, [47_209, 48], Tool("greeter")),
    ("claude-e7-streamin-partial", Exited(0), Finished, [11_687, 12], No),
    // A subagent's tokens are in the totals by model and nowhere else.
    ("claude-f-agent", Exited(0), Finished, [50_921, 60], No),
    ("claude-f2-agent-fg", Exited(0), Finished, [40_072, 48], No),
    ("claude-f3-agent-nobg", Exited(0), Finished, [38_712, 48], No),
    ("claude-f4-task-name", Exited(0), Finished, [38_711, 48], No),
    ("claude-g-authfail", Exited(1), AuthFailed, [0, 0], Unknown),
    ("claude-g-e400", Exited(1), ApiFailed, [0, 0], Unknown),
    ("claude-g-e401", Exited(1), AuthFailed, [0, 0], Unknown),
    ("claude-g-e403", Exited(1), AuthFailed, [0, 0], Unknown),
    ("claude-g-e429", Exited(1), RateLimited, [0, 0], Unknown),
    ("claude-g-e429once", Exited(0), Finished, [11_684, 12], No),
    ("claude-g-e500", Exited(1), ApiFailed, [0, 0], Unknown),
    ("claude-g-e500-defaultretries", Exited(1), ApiFailed, [0, 0], Unknown),
    ("claude-g-e529", Exited(1), ApiFailed, [0, 0], Unknown),
    ("claude-g-e529x2", Exited(0), Finished, [11_684, 12], No),
    // Someone stopped it, and it says so. Of the other signals it says nothing.
    ("claude-g-hang-SIGINT", Exited(0), Cancelled, [0, 0], Unknown),
    ("claude-g-hang-SIGKILL", Signalled(9), Crashed, [0, 0], Unknown),
    ("claude-g-hang-SIGTERM", Exited(143), Crashed, [0, 0], Unknown),
    // A limit from outside ended these; two watched the stream in vain.
    ("claude-g-hang-apitimeout", TimedOut, TookTooLong, [0, 0], Unknown),
    // The stream fell silent, and the turn ended without a word of the model. Nobody stopped it.
    ("claude-g-hang-bytewatchdog", Exited(1), ApiFailed, [23_398, 24], Unknown),
    ("claude-g-hang-default", TimedOut, TookTooLong, [0, 0], Unknown),
    ("claude-g-hang-watchdog", TimedOut, TookTooLong, [0, 0], Unknown),
    ("claude-g-hang0-apitimeout", Exited(1), ApiFailed, [0, 0], Unknown),
    ("claude-g-nokey", Exited(1), AuthFailed, [0, 0], Unknown),
    // So did this one, whose stream reported an error.
    ("claude-g-sseerr", Exited(1), ApiFailed, [93_600, 30], Unknown),
    // It asked again, and got the rest.
    ("claude-g-trunc", Exited(0), Finished, [23_368, 13], No),
    // Without the skill, or without the tool for skills, the call is an error.
    ("claude-h-bare", Exited(0), Finished, [2_261, 24], No),
    ("claude-h-budget", Exited(1), OverBudget, [500_000, 50_000], Unknown),
    ("claude-h-homeskill", Exited(0), Finished, [14_432, 12], No),
    ("claude-h-homeskill2", Exited(0), Finished, [14_425, 12], No),
    ("claude-h-hooks", Exited(0), Finished, [23_515, 24], Tool("greeter")),
    ("claude-h-maxturns", Exited(1), OverBudget, [23_523, 24], Unknown),
    ("claude-h-model-claude-haiku-4-5-20251001", Exited(0), Finished, [48_173, 24], Tool("greeter")),
    ("claude-h-model-claude-opus-4-6", Exited(0), Finished, [48_165, 24], Tool("greeter")),
    ("claude-h-model-claude-sonnet-4-5", Exited(0), Finished, [48_165, 24], Tool("greeter")),
    ("claude-h-model-my-weird-model", Exited(0), Finished, [28_808, 24], Tool("greeter")),
    ("claude-h-nobundled", Exited(0), Finished, [29_004, 24], Tool("greeter")),
    ("claude-h-nosettings", Exited(0), Finished, [23_196, 24], No),
    ("claude-h-noslash", Exited(0), Finished, [27_748, 24], No),
    ("claude-h-plugin", Exited(0), Finished, [28_977, 24], Tool("evalplug:plugskill")),
    ("claude-h-safemode", Exited(0), Finished, [10_994, 12], No),
    ("claude-h-schema", Exited(0), Finished, [11_773, 12], No),
    ("claude-h-schemabad", Exited(0), Finished, [23_633, 24], No),
    ("claude-h-schemanone", Exited(0), Finished, [23_586, 24], No),
    ("claude-h-settings-project", Exited(0), Finished, [23_520, 24], Tool("greeter")),
    // The prompt is the skill's command: it leaves no trace, and is no activation.
    ("claude-h-slash", Exited(0), Finished, [14_533, 12], No),
    ("claude-h-sysprompt", Exited(0), Finished, [12_970, 12], No),
    ("claude-h-tools", Exited(0), Finished, [11_882, 24], Tool("greeter")),
    // The skill fired, but a result alone does not show it.
    ("claude-i-json", Exited(0), Finished, [29_004, 24], Unknown),
    ("claude-i-noverbose", Exited(1), Crashed, [0, 0], Unknown),
    // Plain text shows less still.
    ("claude-i-text", Exited(0), Finished, [0, 0], Unknown),
    ("claude-i-text-err", Exited(1), Crashed, [0, 0], Unknown),
    ("claude-j-forky", Exited(0), Finished, [41_080, 48], Tool("forky")),
    // Called, and refused: not for the model to invoke, not allowed.
    ("claude-j-hidden", Exited(0), Finished, [28_330, 24], No),
    ("claude-j-tooly", Exited(0), Finished, [42_611, 36], No),
    // Interrupted first, and then asked something else.
    ("claude-k-control", Exited(0), Finished, [63_390, 48], No),
    ("claude-l-det1", Exited(0), Finished, [28_710, 24], Tool("greeter")),
    ("claude-l-det2", Exited(0), Finished, [28_710, 24], Tool("greeter")),
    ("claude-l-det3", Exited(0), Finished, [28_710, 24], Tool("greeter")),
    ("claude-l-tmpdir", Exited(0), Finished, [41_773, 48], No),
    ("claude-n-netns", Exited(0), Finished, [23_520, 24], Tool("greeter")),
    ("codex-a-plain", Exited(0), Finished, [10_078, 12], No),
    ("codex-b-think", Exited(0), Finished, [10_076, 12], No),
    ("codex-b-xbadtool", Exited(0), Finished, [20_231, 24], No),
    ("codex-b-xfail", Exited(0), Finished, [20_259, 24], No),
    ("codex-b-xpar", Exited(0), Finished, [20_361, 24], No),
    ("codex-b-xpatchsh", Exited(0), Finished, [20_287, 24], No),
    ("codex-b-xplan", Exited(0), Finished, [20_261, 24], No),
    ("codex-b-xskill", Exited(0), Finished, [30_770, 36], Read("greeter")),
    ("codex-b-xwrite", Exited(0), Finished, [41_631, 48], No),
    ("codex-c-codemode", Exited(0), Finished, [27_268, 24], Read("greeter")),
    // The prompt names the skill: it leaves no trace, and is no activation.
    ("codex-c-mention", Exited(0), Finished, [9_904, 12], No),
    ("codex-c-patch", Exited(0), Finished, [29_685, 36], No),
    ("codex-d-nobundled", Exited(0), Finished, [9_373, 12], No),
    ("codex-d-skilldirs", Exited(0), Finished, [9_878, 12], No),
    ("codex-e1-turn1", Exited(0), Finished, [29_864, 36], Read("greeter")),
    // Totals are those of the thread.
    ("codex-e2-resume", Exited(0), Finished, [40_046, 48], No),
    ("codex-e3-resumelast", Exited(0), Finished, [57_263, 60], No),
    ("codex-e4-resume-missing", Exited(1), Crashed, [0, 0], Unknown),
    ("codex-f-agent", Exited(0), Finished, [20_264, 24], Unknown),
    ("codex-f-sbx-bypass", Exited(0), Finished, [19_367, 24], No),
    ("codex-f-sbx-danger-full-access", Exited(0), Finished, [19_367, 24], No),
    ("codex-f-sbx-read-only", Exited(0), Finished, [19_431, 24], No),
    ("codex-f-sbx-workspace-write", Exited(0), Finished, [19_747, 24], No),
    ("codex-f-sbx-ws-net", Exited(0), Finished, [19_733, 24], No),
    ("codex-g-authfail", Exited(1), AuthFailed, [0, 0], Unknown),
    ("codex-g-e400", Exited(1), ApiFailed, [0, 0], Unknown),
    ("codex-g-e401", Exited(1), AuthFailed, [0, 0], Unknown),
    ("codex-g-e429", Exited(1), RateLimited, [0, 0], Unknown),
    ("codex-g-e429once", Exited(0), Finished, [9_779, 12], No),
    ("codex-g-e500", Exited(1), ApiFailed, [0, 0], Unknown),
    ("codex-g-e529", Exited(1), ApiFailed, [0, 0], Unknown),
    ("codex-g-hang", Exited(1), ApiFailed, [0, 0], Unknown),
    // Its stream says nothing of signals.
    ("codex-g-hang-SIGINT", Exited(1), Crashed, [0, 0], Unknown),
    ("codex-g-hang-SIGKILL", Signalled(9), Crashed, [0, 0], Unknown),
    ("codex-g-hang-SIGTERM", Signalled(15), Crashed, [0, 0], Unknown),
    ("codex-g-nokey", Exited(1), AuthFailed, [0, 0], Unknown),
    ("codex-g-sseerr", Exited(1), ApiFailed, [0, 0], Unknown),
    ("codex-g-trunc", Exited(1), ApiFailed, [0, 0], Unknown),
    // Refused on standard error.
    ("codex-h-noskipgit", Exited(1), Crashed, [0, 0], Unknown),
    ("codex-h-schema", Exited(0), Finished, [9_837, 12], No),
    ("codex-m-gpt-5.5", Exited(0), Finished, [9_778, 12], No),
    ("codex-m-gpt-5.6-sol", Exited(0), Finished, [12_312, 12], No),
    ("codex-m-gpt-6-sol", Exited(0), Finished, [13_502, 12], No),
    ("codex-m-gpt-6.1-terra", Exited(0), Finished, [14_149, 12], No),
    ("codex-m-mock-model", Exited(0), Finished, [10_075, 12], No),
    ("codex-n-netns", Exited(0), Finished, [28_661, 36], Read("greeter")),
    ("gemini-e401", Exited(1), AuthFailed, [0, 0], Unknown),
    ("gemini-plain", Exited(0), Finished, [7_890, 12], No),
    ("gemini-skill", Exited(0), Finished, [23_840, 24], Tool("greeter")),
    ("opencode-e401", Exited(1), AuthFailed, [0, 0], Unknown),
    ("opencode-e429", Exited(1), RateLimited, [0, 0], Unknown),
    ("opencode-e429once", Exited(0), Finished, [100, 10], No),
    ("opencode-e529", Exited(1), ApiFailed, [0, 0], Unknown),
    // A skill that there is not.
    ("opencode-missing", Exited(0), Finished, [200, 20], No),
    // A model that there is not.
    ("opencode-nomodel", Exited(1), ApiFailed, [0, 0], Unknown),
    // Without ripgrep its skill tool fails; the SKILL.md was read after that.
    ("opencode-norg", Exited(0), Finished, [400, 40], Read("greeter")),
    ("opencode-plain", Exited(0), Finished, [7_766, 12], No),
    ("opencode-skill", Exited(0), Finished, [23_742, 36], Tool("greeter")),
    ("opencode-sseerr", Exited(1), ApiFailed, [0, 0], Unknown),
    // What its subagent did, here with the skill, its stream does not say.
    ("opencode-subagent", Exited(0), Finished, [200, 20], Unknown),
    ("opencode-trunc", Exited(1), ApiFailed, [0, 0], Unknown),
    // One turn of each agent over the Agent Client Protocol; what a loaded session repeats is not counted again.
    ("acp-cancel-claude", Exited(0), Cancelled, [0, 0], Unknown),
    ("acp-claude", Exited(0), Finished, [28_795, 24], Tool("greeter")),
    ("acp-cline", Exited(0), AuthFailed, [0, 0], Unknown),
    ("acp-codex", Exited(0), Finished, [31_618, 36], Read("greeter")),
    ("acp-copilot", Exited(0), Finished, [21_500, 24], Tool("greeter")),
    ("acp-droid", Exited(0), Finished, [0, 0], Tool("greeter")),
    ("acp-e401-codex", Exited(0), AuthFailed, [0, 0], Unknown),
    ("acp-e401-droid", Exited(0), AuthFailed, [0, 0], Unknown),
    ("acp-e401-kimi", Exited(0), AuthFailed, [0, 0], Unknown),
    ("acp-e401-qwen", Exited(0), AuthFailed, [0, 0], Unknown),
    ("acp-gemini", Exited(0), Finished, [24_803, 24], Tool("greeter")),
    ("acp-goose", Exited(0), Finished, [4_255, 12], Tool("greeter")),
    ("acp-kilo", Exited(0), Finished, [13_101, 12], Tool("greeter")),
    ("acp-kimi", Exited(0), Finished, [0, 0], Tool("greeter")),
    ("acp-load-claude", Exited(0), Finished, [14_592, 12], No),
    ("acp-load-copilot", Exited(0), Finished, [10_959, 12], No),
    // It repeats the earlier turn only after the session is open.
    ("acp-load-gemini", Exited(0), Finished, [12_665, 12], Tool("greeter")),
    ("acp-load-goose", Exited(0), Finished, [4_294, 12], No),
    ("acp-load-kimi", Exited(0), Finished, [0, 0], No),
    ("acp-opencode", Exited(0), Finished, [8_083, 12], Tool("greeter")),
    ("acp-qwen", Exited(0), Finished, [41_715, 24], Tool("greeter")),
    ("acp-refused-claude", Exited(0), Finished, [43_307, 36], No),
    ("acp-write-claude", Exited(0), Finished, [43_361, 36], Read("greeter")),
    ("acp-write-copilot", Exited(0), Finished, [32_304, 36], Read("greeter")),
    ("acp-write-gemini", Exited(0), Finished, [37_330, 36], Unknown),
    ("acp-write-goose", Exited(0), Finished, [4_405, 12], Read("greeter")),
    ("acp-write-opencode", Exited(0), Finished, [8_100, 12], Read("greeter")),
    ("acp-yolo-gemini", Exited(0), Finished, [25_226, 24], Tool("greeter")),
    ("acp-yolo-qwen", Exited(0), Finished, [38_436, 24], Tool("greeter")),
    ("copilot-anthropic", Exited(0), Finished, [0, 0], Tool("greeter")),
    ("copilot-badskill", Exited(0), Finished, [0, 0], No),
    ("copilot-e400", Exited(1), ApiFailed, [0, 0], Unknown),
    ("copilot-e401", Exited(1), AuthFailed, [0, 0], Unknown),
    ("copilot-e500", Exited(1), ApiFailed, [0, 0], Unknown),
    ("copilot-noallow", Exited(0), Finished, [0, 0], No),
    ("copilot-plain", Exited(0), Finished, [0, 0], No),
    ("copilot-responses", Exited(0), Finished, [0, 0], Tool("greeter")),
    ("copilot-skill-resume", Exited(0), Finished, [0, 0], No),
    ("copilot-skill", Exited(0), Finished, [0, 0], Tool("greeter")),
    ("copilot-slash", Exited(0), Finished, [0, 0], No),
    ("goose-badskill", Exited(0), Finished, [8_166, 24], No),
    ("goose-e401", Exited(0), AuthFailed, [0, 0], Unknown),
    ("goose-e500", Exited(0), ApiFailed, [0, 0], Unknown),
    ("goose-plain", Exited(0), Finished, [4_046, 12], No),
    ("goose-skill-resume", Exited(0), Finished, [12_577, 36], No),
    ("goose-skill", Exited(0), Finished, [8_304, 24], Tool("greeter")),
    ("qwen-badskill", Exited(0), Finished, [36_431, 24], No),
    ("qwen-e401", Exited(1), AuthFailed, [0, 0], Unknown),
    ("qwen-nomem", Exited(0), Finished, [18_146, 12], No),
    ("qwen-noyolo", Exited(0), Finished, [33_943, 36], No),
    ("qwen-plain", Exited(0), Finished, [30_842, 24], No),
    ("qwen-skill-resume", Exited(0), Finished, [70_041, 48], No),
    ("qwen-skill", Exited(0), Finished, [38_860, 24], Tool("greeter")),
    ("qwen-slash", Exited(0), Finished, [18_335, 12], No),
];

/// Every skill that one of the recordings is about.
const SKILLS: [&str; 7] = ["greeter", "forky", "hidden", "tooly", "plugskill", "homeskill", "no-such-skill"];

#[test]
fn every_recorded_stream_tells_ending_usage_and_activation() {
    for (name, process, ended, [input, output], shown) in ROWS {
        let seen = seen(vec![(name, process.clone())]);
        assert_eq!(seen.ended, *ended, "{name}: {:?}", seen.ended_because);
        let usage = TokenUsage { input: *input, output: *output, ..TokenUsage::default() };
        assert_eq!(seen.usage, usage, "{name}");
        assert_eq!(activation(&seen), wanted(*shown), "{name}");
        for skill in SKILLS {
            let fired = match seen.activation_of(skill) {
                ObservedActivation::Yes(_) => "yes",
                ObservedActivation::No => "no",
                ObservedActivation::Unknown(_) => "unknown",
            };
            let expected = match shown {
                Tool(which) | Read(which) if which.rsplit(':').next() == Some(skill) => "yes",
                Tool(_) | Read(_) | No => "no",
                Unknown => "unknown",
            };
            assert_eq!(fired, expected, "{name}: {skill}");
        }
    }
}

#[test]
fn a_session_of_several_processes_is_counted_once() {
    for (turns, input, output, cost) in [
        (["claude-e1-turn1", "claude-e2-resume", "claude-e3-continue"], 35_156, 36, Some(0.141_344)),
        (["codex-e1-turn1", "codex-e2-resume", "codex-e3-resumelast"], 57_263, 60, None),
    ] {
        let seen = seen(turns.iter().map(|name| (*name, Exited(0))).collect());
        assert_eq!((seen.usage.input, seen.usage.output), (input, output), "{turns:?}");
        let near = |cost: f64| (seen.cost_usd.expect("a cost") - cost).abs() < 1e-9;
        assert!(cost.map_or(seen.cost_usd.is_none(), near), "{turns:?}: {:?}", seen.cost_usd);
    }
}

#[test]
fn every_recording_has_one_row() {
    let rows: Vec<&str> = ROWS.iter().map(|(name, ..)| *name).collect();
    let names: BTreeSet<String> = rows.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(rows.len(), names.len(), "no recording has two rows");
    assert_eq!(recordings(&streams(), "jsonl"), names);
}

#[test]
fn every_capture_elsewhere_has_a_row_and_is_what_is_tested_here() {
    let Some(folder) = std::env::var_os("PRACTICUM_CAPTURES").map(PathBuf::from) else {
        eprintln!("skipped: PRACTICUM_CAPTURES names no folder of captures");
        return;
    };
    let mut names = recordings(&folder, "jsonl");
    names.extend(recordings(&folder, "meta"));
    assert!(!names.is_empty(), "{} has no captures", folder.display());
    for name in names {
        let row = ROWS.iter().find(|(row, ..)| *row == name);
        let (_, process, ..) = row.unwrap_or_else(|| panic!("{name} has no row in {}", file!()));
        // A process that wrote nothing has no file there, and an empty one here.
        let captured = std::fs::read(folder.join(format!("{name}.jsonl"))).unwrap_or_default();
        assert_eq!(stream(&name).as_bytes(), captured, "{name}: the fixture is another recording");
        let message = std::fs::read_to_string(folder.join(format!("{name}.meta"))).unwrap_or_default();
        if let Some((_, code)) = message.trim_end().rsplit_once("rc=") {
            // 124 is what timeout(1) says when its limit has come.
            let end = if code == "124" { TimedOut } else { Exited(code.parse().expect("an exit code")) };
            assert_eq!(*process, end, "{name}");
        }
    }
}

fn seen(turns: Vec<(&str, ProcessEnd)>) -> Observation {
    let turns = turns.into_iter().map(|(name, process)| RawTurn {
        prompt: String::new(),
        transcript: decoded(name),
        bytes: 0,
        process,
    });
    observe(RawRun { turns: turns.collect(), seconds: 0.0 }, Vec::new(), true)
}

fn decoded(name: &str) -> StreamTranscript {
    let format = match name.split_once('-') {
        _ if name.starts_with("claude-i-text") => "text",
        Some(("claude", _)) => "claude-stream-json",
        Some(("codex", _)) => "codex-jsonl",
        Some(("gemini", _)) => "gemini-stream-json",
        Some(("opencode", _)) => "opencode-json",
        Some(("acp", _)) => "acp",
        Some(("copilot", _)) => "copilot-json",
        Some(("goose", _)) => "goose-stream-json",
        Some(("qwen", _)) => "qwen-stream-json",
        _ => panic!("{name}: no decoder"),
    };
    let mut decoder = (find_decoder(format).expect("a known decoder").new_decoder)();
    stream(name).lines().for_each(|line| assert!(decoder.read_line(line), "{name}: {line}"));
    decoder.finish()
}

/// Everything that was activated, and by what.
fn activation(seen: &Observation) -> Vec<String> {
    let named = seen.activated.iter().map(|one| {
        let skill = one.plugin.iter().map(|plugin| format!("{plugin}:")).collect::<String>() + &one.skill;
        match &one.evidence {
            SkillTool => format!("{skill} by its tool"),
            ReadSkillFile { .. } => format!("{skill} by reading it"),
            Canary { .. } | TextReached { .. } => unreachable!("no recording was made with one"),
        }
    });
    named.collect()
}

fn wanted(shown: Shown) -> Vec<String> {
    match shown {
        Tool(skill) => vec![format!("{skill} by its tool")],
        Read(skill) => vec![format!("{skill} by reading it")],
        No | Unknown => Vec::new(),
    }
}

fn streams() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/streams")
}

fn stream(name: &str) -> String {
    std::fs::read_to_string(streams().join(format!("{name}.jsonl"))).expect(name)
}

fn recordings(folder: &Path, extension: &str) -> BTreeSet<String> {
    let files =
        std::fs::read_dir(folder).expect("a folder of recordings").flatten().map(|entry| entry.path());
    files
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned()))
        .collect()
}
