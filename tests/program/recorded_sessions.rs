//! Recorded sessions of the real CLIs, and files that are none.

use std::path::{Path, PathBuf};

use practicum::agents::{
    RecordedSession, RecordedTurn, StreamEnd, StreamTranscript, read_session, skills_read_in,
    unanswered_calls_in,
};
use practicum::model::Step;
use serde_json::{Value, json};

fn fixture(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/sessions");
    folder.join(format!("{name}.jsonl"))
}

fn read(name: &str) -> RecordedSession {
    read_session(&fixture(name)).expect(name)
}

/// Reads a session from lines.
fn read_lines(lines: &[String]) -> Result<RecordedSession, String> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("session.jsonl");
    std::fs::write(&path, lines.join("\n")).expect("write");
    read_session(&path)
}

/// Describes the tool calls, each with the first text of its input and its result.
fn describe_tool_calls(seen: &StreamTranscript) -> String {
    let calls = seen.steps.iter().filter_map(|step| match step {
        Step::Tool(call) => {
            let about =
                ["command", "path"].iter().find_map(|key| call.input[key].as_str()).unwrap_or_default();
            let end = call.ok.map_or("open", |ok| if ok { "ok" } else { "failed" });
            Some(format!("{} {about} = {end}: {}", call.name, call.result.as_deref().unwrap_or_default()))
        }
        Step::User(_) | Step::Text(_) => None,
    });
    calls.collect::<Vec<String>>().join(", ")
}

fn prompts(session: &RecordedSession) -> Vec<&str> {
    session.turns.iter().map(|turn| turn.prompt.as_str()).collect()
}

/// The activated skills of all turns: called with a tool, or read as files.
fn activated(session: &RecordedSession) -> Vec<String> {
    let of_turn = |turn: &RecordedTurn| {
        let read = skills_read_in(&turn.transcript.steps);
        turn.transcript.activations.iter().chain(&read).map(|one| one.skill.clone()).collect::<Vec<String>>()
    };
    session.turns.iter().flat_map(of_turn).collect()
}

#[test]
fn recorded_sessions_say_what_was_asked_done_and_activated() {
    let api_error = |why: &str| StreamEnd::ApiFailed(why.to_owned());
    let codex_error = "{\"type\": \"error\", \"error\": {\"type\": \"invalid_request_error\", \"message\": \
                       \"scripted\", \"code\": \"invalid_request_error\"}}";
    let rejected = "[Request interrupted by user for tool use]";
    for (name, asked, output, skills, end) in [
        (
            "claude-two-turns-compacted",
            &["Greet Alice.", "And Bob."][..],
            "Ahoy, Bob!",
            &["greeter"][..],
            StreamEnd::Done,
        ),
        ("claude-subagent", &["Delegate this."], "SUBAGENT RESULT: ok", &["greeter"], StreamEnd::Done),
        ("claude-api-error", &["Fail now."], "", &[], api_error("API Error: 400 scripted")),
        ("claude-command", &["/greeter Alice"], "MOCK-DEFAULT-REPLY", &[], StreamEnd::Done),
        ("claude-interrupted", &["Wait."], "", &[], StreamEnd::Interrupted(rejected.into())),
        (
            "codex-two-turns-compacted",
            &["Rollout greet Alice.", "Codex bob."],
            "Ahoy, Bob!",
            &["greeter"],
            StreamEnd::Done,
        ),
        ("codex-patch", &["Patch it."], "Patched.", &[], StreamEnd::Done),
        ("codex-parallel", &["Both now."], "Both.", &[], StreamEnd::Done),
        ("codex-api-error", &["Fail now."], "", &[], api_error(codex_error)),
        ("codex-interrupted", &["Hang on."], "", &[], StreamEnd::Interrupted("interrupted".into())),
    ] {
        let session = read(name);
        let last = &session.turns.last().expect("a turn").transcript;
        assert_eq!(prompts(&session), asked, "{name}");
        assert_eq!((last.output.as_str(), &last.end), (output, &end), "{name}");
        assert_eq!(activated(&session), skills, "{name}");
        assert!(last.version.is_some() && last.unread_reason.is_none() && !last.hides_tools, "{name}");
        assert!(session.id.is_some(), "{name}");
    }
}

#[test]
fn calls_have_the_names_and_results_of_the_stream() {
    let shown = "---\nname: greeter\ndescription: Greets people in the style of a harbour. Use when asked to greet \
                 somebody.\n---\n\nLook the person up in the crew list first.\nAnswer with a hearty ahoy and the \
                 name.\nClose with the state of the tide.\n";
    for (name, expected) in [
        (
            "codex-parallel",
            "command_execution echo A = ok: A\n, command_execution echo B = ok: B\n".to_owned(),
        ),
        (
            "codex-two-turns-compacted",
            format!(
                "command_execution cat .agents/skills/greeter/SKILL.md = ok: {shown}, command_execution echo \
                 oops >&2; exit 3 = failed: oops\n, file_change new.txt = open: "
            ),
        ),
    ] {
        assert_eq!(describe_tool_calls(&read(name).turns[0].transcript), expected, "{name}");
    }
    let patch = &read("codex-patch").turns[0].transcript;
    let names = |steps: &[Step]| -> Vec<(String, Option<bool>)> {
        let calls = steps.iter().filter_map(|step| match step {
            Step::Tool(call) => Some((call.name.clone(), call.ok)),
            Step::User(_) | Step::Text(_) => None,
        });
        calls.collect()
    };
    let expected = [("file_change", true), ("update_plan", false), ("nonesuch", false)];
    assert_eq!(names(&patch.steps), expected.map(|(name, ok)| (name.to_owned(), Some(ok))));
    let claude = &read("claude-two-turns-compacted").turns[0].transcript;
    let expected = [("Skill", true), ("Write", true), ("Bash", false)];
    assert_eq!(names(&claude.steps), expected.map(|(name, ok)| (name.to_owned(), Some(ok))));
}

#[test]
fn tokens_cost_and_time_are_those_of_the_session() {
    for (name, input, output, cost, calls, has_time) in [
        ("claude-two-turns-compacted", 90_946, 72, Some(0.365_224), Some(1), true),
        ("codex-two-turns-compacted", 56_646, 72, None, None, true),
        ("claude-api-error", 0, 0, None, Some(0), false),
    ] {
        let session = read(name);
        let last = &session.turns.last().expect("a turn").transcript;
        assert_eq!((last.usage.input, last.usage.output, last.cost_usd), (input, output, cost), "{name}");
        assert_eq!((last.api_calls, session.seconds.is_some()), (calls, has_time), "{name}");
        assert!(last.totals_of_session || cost.is_none(), "{name}");
    }
    assert_eq!(read("claude-two-turns-compacted").turns[0].transcript.api_calls, Some(3));
    let listed = read("claude-subagent").turns[0].transcript.skills_listed.clone();
    assert_eq!(listed.expect("a listing").first().map(String::as_str), Some("greeter"));
}

#[test]
fn a_compacted_session_says_so() {
    for name in ["claude-two-turns-compacted", "codex-two-turns-compacted"] {
        let session = read(name);
        assert!(
            session.notes.iter().any(|note| note.contains("compacted 1 time")),
            "{name}: {:?}",
            session.notes
        );
        let is_summary = |step: &Step| matches!(step, Step::Text(text) if text.contains("END-OF-SCRIPT"));
        assert!(!session.turns.iter().any(|turn| turn.transcript.steps.iter().any(is_summary)), "{name}");
    }
}

#[test]
fn a_subagent_without_its_log_leaves_activation_open() {
    let folder = tempfile::tempdir().expect("a folder");
    let alone = folder.path().join("alone.jsonl");
    std::fs::copy(fixture("claude-subagent"), &alone).expect("copy");
    let open =
        |session: &RecordedSession| session.turns.iter().any(|turn| !turn.transcript.uncertain.is_empty());
    assert!(open(&read_session(&alone).expect("a session")));
    assert!(!open(&read("claude-subagent")), "the log of the subagent is beside the session");
    // A link in place of the log is not followed.
    let subagents = folder.path().join("alone/subagents");
    std::fs::create_dir_all(&subagents).expect("create");
    let log = fixture("claude-subagent/subagents/agent-ae1939701aee3c206");
    std::os::unix::fs::symlink(log, subagents.join("agent-ae1939701aee3c206.jsonl")).expect("link");
    assert!(open(&read_session(&alone).expect("a session")));
}

#[test]
fn a_session_that_cannot_be_read_in_full_is_not_taken_for_whole() {
    for name in ["claude-two-turns-compacted", "codex-parallel"] {
        let text = std::fs::read_to_string(fixture(name)).expect("a session");
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let unread = |lines: &[String]| {
            let session = read_lines(lines).expect("a session");
            session.turns.last().and_then(|turn| turn.transcript.unread_reason.clone())
        };
        assert_eq!(unread(&lines), None, "{name}");
        let mut garbled = lines.clone();
        garbled.insert(3, "\u{1}garbage {\"".to_owned());
        assert!(unread(&garbled).is_some_and(|why| why.starts_with("line 4 ")), "{name}");
        let last = lines.last().expect("a line");
        let cut: Vec<String> = [&lines[..lines.len() - 1], &[last[..last.len() / 2].to_owned()]].concat();
        assert!(unread(&cut).is_some(), "{name}");
    }
    // Without its last lines, the last turn is not over.
    for (name, lines) in [("claude-interrupted", 8), ("codex-parallel", 9)] {
        let text = std::fs::read_to_string(fixture(name)).expect("a session");
        let begun: Vec<String> = text.lines().take(lines).map(str::to_owned).collect();
        let session = read_lines(&begun).expect("a session");
        assert_eq!(
            session.turns.last().map(|turn| &turn.transcript.end),
            Some(&StreamEnd::BrokenOff),
            "{name}"
        );
    }
}

#[test]
fn other_files_are_no_sessions() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("file");
    for (content, expected) in [
        ("", "neither a session log"),
        ("Just a text.\n", "neither a session log"),
        ("{\"a\": 1}\n[1]\n", "neither a session log"),
        ("{\n  \"a\": 1\n}\n", "neither a session log"),
        ("\u{0}\u{1}\u{2}", "neither a session log"),
        ("{\"type\":\"session_meta\",\"payload\":{\"id\":\"x\"}}\n", "no message"),
        ("{\"type\":\"last-prompt\",\"sessionId\":\"x\"}\n", "no message"),
        ("{\"schema_version\":\"ATIF-v2.0\",\"steps\":[{}]}", "only ATIF-v1"),
        ("{\"schema_version\":\"ATIF-v1.8\",\"steps\":[]}", "without steps"),
    ] {
        std::fs::write(&path, content).expect("write");
        let why = read_session(&path).expect_err(content);
        assert!(why.contains(expected), "{content:?}: {why}");
    }
    assert_eq!(read_session(folder.path()).expect_err("a folder"), "it is a folder");
    assert!(read_session(&folder.path().join("none")).is_err());
}

#[test]
fn parts_of_unknown_versions_leave_tool_calls_open() {
    let claude = json!({"type": "assistant", "sessionId": "s", "version": "9.0.0", "message": {"id": "m", "model": "x",
        "content": [{"type": "tool_use_v2", "id": "t"}, {"type": "text", "text": "Done."}]}});
    let asked = json!({"type": "user", "sessionId": "s", "message": {"content": "Go."}});
    let item = |payload: Value| json!({"type": "response_item", "payload": payload}).to_string();
    let user =
        item(json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go."}]}));
    let said = item(
        json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}),
    );
    let known = read_lines(&[user.clone(), said.clone()]).expect("a session");
    assert_eq!(known.turns[0].transcript.end, StreamEnd::Done, "older versions have no events about turns");
    assert!(!known.turns[0].transcript.hides_tools && known.seconds.is_none());
    for lines in
        [vec![asked.to_string(), claude.to_string()], vec![user, item(json!({"type": "tool_use_v2"})), said]]
    {
        let session = read_lines(&lines).expect("a session");
        assert!(session.turns[0].transcript.hides_tools, "{lines:?}");
        assert!(session.notes[0].contains("tool_use_v2"), "{:?}", session.notes);
    }
}

#[test]
fn older_codex_sessions_are_read() {
    let item = |payload: Value| json!({"type": "response_item", "payload": payload}).to_string();
    let text = |role: &str, text: &str| {
        item(json!({"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}))
    };
    let wrapped =
        json!({"output": "Say ahoy.", "metadata": {"exit_code": 0, "duration_seconds": 0.1}}).to_string();
    let patch = "*** Begin Patch\n*** Add File: a.txt\n+x\n*** Update File: b.txt\n*** End Patch";
    let lines = [
        json!({"type": "session_meta", "payload": {"id": "s", "cli_version": "0.46.0"}}).to_string(),
        text("user", "# AGENTS.md instructions for /w"),
        text("user", "<environment_context>\n</environment_context>"),
        text("user", "Greet Alice."),
        item(json!({"type": "function_call", "name": "shell", "call_id": "1",
            "arguments": "{\"command\":[\"bash\",\"-lc\",\"cat skills/greeter/SKILL.md\"]}"})),
        item(json!({"type": "function_call_output", "call_id": "1", "output": wrapped})),
        item(json!({"type": "custom_tool_call", "name": "apply_patch", "call_id": "2", "input": patch})),
        item(json!({"type": "custom_tool_call_output", "call_id": "2", "output": "Done!"})),
        item(json!({"type": "custom_tool_call", "name": "exec", "call_id": "3", "input": "text(1)"})),
        item(json!({"type": "custom_tool_call_output", "call_id": "3", "output": "1"})),
        item(json!({"type": "web_search_call", "status": "completed", "action": {"query": "tide"}})),
        text("assistant", "Ahoy!"),
    ];
    let session = read_lines(&lines).expect("a session");
    assert_eq!(prompts(&session), ["Greet Alice."]);
    assert_eq!(activated(&session), ["greeter"]);
    assert_eq!(
        describe_tool_calls(&session.turns[0].transcript),
        "command_execution cat skills/greeter/SKILL.md = ok: Say ahoy., file_change a.txt = ok: Done!, \
         file_change b.txt = ok: Done!, exec  = ok: 1, web_search  = ok: "
    );
}

#[test]
fn a_trajectory_of_another_program_leaves_open_what_it_does_not_say() {
    let step = |id: u64, more: Value| {
        let mut step = json!({"step_id": id});
        step.as_object_mut().expect("a mapping").extend(more.as_object().expect("a mapping").clone());
        step
    };
    let call = json!([{"tool_call_id": "c", "function_name": "Skill", "arguments": {"skill": "greeter"}}]);
    let result =
        json!({"results": [{"source_call_id": "c", "content": [{"type": "text", "text": "Launching"}]}]});
    let document = json!({
        "schema_version": "ATIF-v1.6", "session_id": "s", "agent": {"name": "terminus", "version": "2"},
        "steps": [
            step(1, json!({"source": "system", "message": "You are an agent."})),
            step(2, json!({"source": "user", "message": [{"type": "text", "text": "Greet Alice."}]})),
            step(3, json!({"source": "agent", "message": "I do.", "tool_calls": call, "observation": result})),
            step(4, json!({"source": "agent", "message": "Ahoy!"})),
        ],
        "final_metrics": {"total_prompt_tokens": 10, "total_cached_tokens": 4, "total_completion_tokens": 3},
    });
    let pretty = serde_json::to_string_pretty(&document).expect("JSON");
    for text in [document.to_string(), pretty] {
        let session = read_lines(&[text]).expect("a session");
        let transcript = &session.turns[0].transcript;
        assert_eq!((prompts(&session), transcript.output.as_str()), (vec!["Greet Alice."], "Ahoy!"));
        assert_eq!((transcript.usage.input, transcript.usage.cache_read), (6, 4));
        assert_eq!((transcript.end.clone(), session.seconds, session.ended), (StreamEnd::Done, None, None));
        assert_eq!(describe_tool_calls(transcript), "Skill  = open: Launching");
        assert!(transcript.activations.is_empty());
        let open = unanswered_calls_in(&transcript.steps);
        assert_eq!(open[0].why, "nothing says whether a call of Skill succeeded");
    }
    let two = read_lines(&[document.to_string(), document.to_string()]).expect_err("two");
    assert!(two.contains("2 trajectories"), "{two}");
}
