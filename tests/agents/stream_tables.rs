//! The same scenarios as the streams of several agents: what each decoder says about activation and ending.
//!
//! A scenario is a list of events. Each agent has a function that writes an event as its CLI does. A live run of thirty
//! scenarios with each of these CLIs would take minutes.

use practicum::agents::find_decoder;
use practicum::model::{AgentEnding, ObservedActivation};
use practicum::workspace::observe::{ProcessEnd, RawRun, RawTurn, observe};
use serde_json::{Value, json};

/// An event of a run, whichever agent writes it.
#[derive(Debug, Clone, Copy)]
enum Event {
    Text(&'static str),
    /// A call of the tool for skills, and whether it succeeded; `None` without a result.
    Skill(&'static str, Option<bool>),
    /// A file that is read, with its text; `None` without a result.
    Read(&'static str, Option<(bool, &'static str)>),
    /// A shell command, with its output; `None` without a result.
    Shell(&'static str, Option<(bool, &'static str)>),
    /// A file that is written.
    Write(&'static str),
    /// Work that is given to another agent.
    Subagent,
    /// The ordinary end.
    End,
    /// An error of the model's API with this status, which ends the run.
    ApiError(u16),
}
use Event::{ApiError, End, Read, Shell, Skill, Subagent, Text, Write};

const FILE: &str = "/w/.agents/skills/greeter/SKILL.md";
const OTHER: &str = "/w/.agents/skills/other/SKILL.md";
const BODY: Option<(bool, &str)> = Some((true, "Say ahoy."));
const HEAD: Option<(bool, &str)> = Some((true, "---\nname: greeter\ndescription: d\n---\nSay ahoy."));
const FAILS: Option<(bool, &str)> = Some((false, "No such file"));

/// A name, the events, how the run ended, and whether the skill "greeter" was activated.
type Row = (&'static str, &'static [Event], AgentEnding, &'static str);

const ROWS: &[Row] = &[
    ("an answer", &[Text("Ahoy."), End], AgentEnding::Finished, "no"),
    ("the skill's tool", &[Skill("greeter", Some(true)), Text("Ahoy."), End], AgentEnding::Finished, "yes"),
    (
        "a skill that is not there",
        &[Skill("greeter", Some(false)), Text("No."), End],
        AgentEnding::Finished,
        "no",
    ),
    ("another skill", &[Skill("other", Some(true)), Text("Ok."), End], AgentEnding::Finished, "no"),
    (
        "another skill before",
        &[Skill("other", Some(true)), Skill("greeter", Some(true)), Text("Ok."), End],
        AgentEnding::Finished,
        "yes",
    ),
    (
        "twice",
        &[Skill("greeter", Some(true)), Skill("greeter", Some(true)), Text("Ok."), End],
        AgentEnding::Finished,
        "yes",
    ),
    (
        "refused, then loaded",
        &[Skill("greeter", Some(false)), Skill("greeter", Some(true)), Text("Ok."), End],
        AgentEnding::Finished,
        "yes",
    ),
    ("as a command", &[Skill("/greeter", Some(true)), Text("Ok."), End], AgentEnding::Finished, "yes"),
    (
        "no result of the skill's tool",
        &[Skill("greeter", None), Text("Ok."), End],
        AgentEnding::Finished,
        "unknown",
    ),
    ("no result for another skill", &[Skill("other", None), Text("Ok."), End], AgentEnding::Finished, "no"),
    ("only a skill", &[Skill("greeter", Some(true)), End], AgentEnding::Finished, "yes"),
    ("read", &[Read(FILE, BODY), Text("Ahoy."), End], AgentEnding::Finished, "yes"),
    ("read in vain", &[Read(FILE, FAILS), Text("No."), End], AgentEnding::Finished, "no"),
    ("another skill is read", &[Read(OTHER, BODY), Text("Ok."), End], AgentEnding::Finished, "no"),
    (
        "a file of the skill is read",
        &[Read("/w/.agents/skills/greeter/references/x.md", BODY), Text("Ok."), End],
        AgentEnding::Finished,
        "no",
    ),
    ("another file is read", &[Read("/w/notes.md", BODY), Text("Ok."), End], AgentEnding::Finished, "no"),
    ("read without a result", &[Read(FILE, None), Text("Ok."), End], AgentEnding::Finished, "unknown"),
    (
        "printed",
        &[Shell("cat .agents/skills/greeter/SKILL.md", BODY), Text("Ahoy."), End],
        AgentEnding::Finished,
        "yes",
    ),
    (
        "printed in vain",
        &[Shell("cat .agents/skills/greeter/SKILL.md", FAILS), Text("No."), End],
        AgentEnding::Finished,
        "no",
    ),
    (
        "printed in another folder",
        &[Shell("cd .agents/skills/greeter && cat SKILL.md", BODY), Text("Ok."), End],
        AgentEnding::Finished,
        "yes",
    ),
    (
        "printed among others",
        &[Shell("cat .agents/skills/greeter/SKILL.md; echo done", HEAD), Text("Ok."), End],
        AgentEnding::Finished,
        "yes",
    ),
    (
        "printed by another shell",
        &[Shell("bash -lc 'cat /w/.agents/skills/greeter/SKILL.md'", BODY), Text("Ok."), End],
        AgentEnding::Finished,
        "yes",
    ),
    (
        "printed without a result",
        &[Shell("cat .agents/skills/greeter/SKILL.md", None), Text("Ok."), End],
        AgentEnding::Finished,
        "unknown",
    ),
    ("listed", &[Shell("ls .agents/skills/greeter", BODY), Text("Ok."), End], AgentEnding::Finished, "no"),
    (
        "searched",
        &[Shell("rg -l hello .agents/skills/greeter/SKILL.md", BODY), Text("Ok."), End],
        AgentEnding::Finished,
        "no",
    ),
    (
        "mentioned by a command",
        &[Shell("echo 'cat .agents/skills/greeter/SKILL.md'", BODY), Text("Ok."), End],
        AgentEnding::Finished,
        "no",
    ),
    ("written", &[Write(FILE), Text("Ok."), End], AgentEnding::Finished, "no"),
    ("mentioned in the answer", &[Text("Skill **greeter** activated."), End], AgentEnding::Finished, "no"),
    ("by a subagent, perhaps", &[Subagent, Text("Ok."), End], AgentEnding::Finished, "unknown"),
    (
        "before a subagent",
        &[Skill("greeter", Some(true)), Subagent, Text("Ok."), End],
        AgentEnding::Finished,
        "yes",
    ),
    // It may still activate the skill after an answer.
    ("a question", &[Text("Whom shall I greet?"), End], AgentEnding::AskedUser, "unknown"),
    (
        "a question after work",
        &[Skill("greeter", Some(true)), Text("Whom shall I greet?"), End],
        AgentEnding::Finished,
        "yes",
    ),
    ("broken off", &[Text("Ah")], AgentEnding::Crashed, "unknown"),
    ("broken off after the skill", &[Skill("greeter", Some(true)), Text("Ah")], AgentEnding::Crashed, "yes"),
    ("a refused login", &[ApiError(401)], AgentEnding::AuthFailed, "unknown"),
    ("a rate limit", &[ApiError(429)], AgentEnding::RateLimited, "unknown"),
    ("a failing API", &[ApiError(500)], AgentEnding::ApiFailed, "unknown"),
    (
        "a failing API after the skill",
        &[Skill("greeter", Some(true)), ApiError(500)],
        AgentEnding::ApiFailed,
        "yes",
    ),
];

/// Runs every scenario through the decoder of an agent. The function writes an event, given its place and the last text of
/// the scenario, as lines of the stream.
fn check_all(decoder: &str, first: &[Value], write: fn(Event, usize, &str) -> Vec<Value>) {
    for (name, events, ended, fired) in ROWS {
        let mut kind = (find_decoder(decoder).expect("a decoder").new_decoder)();
        let mut texts = events.iter().filter_map(|event| match event {
            Text(text) => Some(*text),
            _ => None,
        });
        let last_text = texts.next_back().unwrap_or_default();
        let lines = events.iter().enumerate().flat_map(|(at, event)| write(*event, at, last_text));
        for line in first.iter().cloned().chain(lines) {
            assert!(kind.read_line(&line.to_string()), "{decoder}, {name}: {line}");
        }
        let transcript = kind.finish();
        // Whatever the exit code says: some of these CLIs end with 0 after an error.
        let turn = RawTurn { prompt: "Greet.".into(), transcript, bytes: 0, process: ProcessEnd::Exited(0) };
        let seen = observe(RawRun { turns: vec![turn], seconds: 0.0 }, Vec::new(), true);
        assert_eq!(seen.ended, *ended, "{decoder}, {name}: {:?}", seen.ended_because);
        let found = match seen.activation_of("greeter") {
            ObservedActivation::Yes(_) => "yes",
            ObservedActivation::No => "no",
            ObservedActivation::Unknown(_) => "unknown",
        };
        assert_eq!(found, *fired, "{decoder}, {name}: {:?} {:?}", seen.activated, seen.uncertain);
    }
}

/// A call with the names that an agent gives its tools: the tool, its input, and its result.
type Call = (&'static str, Value, Option<(bool, String)>);

fn call_of(event: Event, tools: [&'static str; 5], skill_key: &str, path_key: &str) -> Option<Call> {
    let [skill_tool, read_tool, shell_tool, write_tool, subagent_tool] = tools;
    let owned = |result: Option<(bool, &str)>| result.map(|(ok, text)| (ok, text.to_owned()));
    Some(match event {
        Skill(name, ok) => (skill_tool, json!({skill_key: name}), ok.map(|ok| (ok, "Skill".to_owned()))),
        // An agent without a tool for reading prints files.
        Read(path, result) if read_tool == shell_tool => {
            (shell_tool, json!({"command": format!("cat {path}")}), owned(result))
        }
        Read(path, result) => (read_tool, json!({path_key: path}), owned(result)),
        Shell(command, result) => (shell_tool, json!({"command": command}), owned(result)),
        Write(path) => {
            (write_tool, json!({path_key: path, "content": "x"}), Some((true, "Written".to_owned())))
        }
        Subagent => (subagent_tool, json!({"prompt": "Greet."}), Some((true, "Greeted.".to_owned()))),
        Text(_) | End | ApiError(_) => return None,
    })
}

#[test]
fn goose_shows_activation_and_ending() {
    fn message(id: Value, role: &str, block: Value) -> Value {
        json!({"type": "message", "message": {"id": id, "role": role, "content": [block]}})
    }
    fn write(event: Event, at: usize, _: &str) -> Vec<Value> {
        let tools = ["load_skill", "shell", "shell", "write", "delegate"];
        if let Some((name, input, result)) = call_of(event, tools, "name", "path") {
            let id = format!("call_{at}");
            let value = json!({"name": name, "arguments": input});
            let block =
                json!({"type": "toolRequest", "id": id, "toolCall": {"status": "success", "value": value}});
            let mut lines = vec![message(json!("chatcmpl-1"), "assistant", block)];
            lines.extend(result.map(|(ok, text)| {
                // A failed call is a success outside, and an error inside.
                let value = json!({"content": [{"type": "text", "text": text}], "isError": !ok});
                let result = json!({"status": "success", "value": value});
                message(
                    json!("msg_1"),
                    "user",
                    json!({"type": "toolResponse", "id": id, "toolResult": result}),
                )
            }));
            return lines;
        }
        let done = json!({"type": "complete", "total_tokens": 12, "input_tokens": 10, "output_tokens": 2});
        match event {
            Text(text) => {
                // A message comes in pieces.
                let (first, rest) = text.split_at(1);
                [first, rest]
                    .map(|piece| {
                        message(json!("chatcmpl-2"), "assistant", json!({"type": "text", "text": piece}))
                    })
                    .to_vec()
            }
            ApiError(status) => {
                let text = match at {
                    0 => {
                        format!("Ran into this error: Request failed: Status: {status}. Response: scripted.")
                    }
                    _ => "Network error.\n\nPlease resend your message to try again.".to_owned(),
                };
                // After an earlier answer, the tokens of that are counted.
                let end = if at == 0 { json!({"type": "complete", "total_tokens": null}) } else { done };
                vec![message(Value::Null, "assistant", json!({"type": "text", "text": text})), end]
            }
            _ => vec![done],
        }
    }
    check_all("goose-stream-json", &[], write);
}

#[test]
fn copilot_shows_activation_and_ending() {
    fn write(event: Event, at: usize, _: &str) -> Vec<Value> {
        let tools = ["skill", "view", "bash", "create", "task"];
        if let Some((name, input, result)) = call_of(event, tools, "skill", "path") {
            let id = format!("call_{at}");
            let data = json!({"toolCallId": id, "toolName": name, "arguments": input});
            let mut lines = vec![json!({"type": "tool.execution_start", "data": data})];
            lines.extend(result.map(|(ok, text)| {
                // A command that fails is a success of the tool.
                let data = match (ok, name) {
                    (false, "bash") => {
                        let text = format!("{text}\n<shellId: 0 completed with exit code 1>");
                        json!({"toolCallId": id, "success": true, "result": {"content": text}})
                    }
                    (false, _) => {
                        json!({"toolCallId": id, "success": false, "error": {"message": text, "code": "failure"}})
                    }
                    (true, _) => json!({"toolCallId": id, "success": true, "result": {"content": text}}),
                };
                json!({"type": "tool.execution_complete", "data": data})
            }));
            return lines;
        }
        let result = |code: i32| json!({"type": "result", "sessionId": "s", "exitCode": code, "usage": {}});
        match event {
            Text(text) => vec![json!({"type": "assistant.message", "data": {"content": text, "model": "m"}})],
            ApiError(status) => {
                let data = json!({"errorType": "query", "message": "scripted", "statusCode": status});
                vec![json!({"type": "session.error", "data": data}), result(1)]
            }
            _ => vec![result(0)],
        }
    }
    let skills = json!([{"name": "greeter", "enabled": true}]);
    check_all("copilot-json", &[json!({"type": "session.skills_loaded", "data": {"skills": skills}})], write);
}

#[test]
fn qwen_shows_activation_and_ending() {
    fn write(event: Event, at: usize, last_text: &str) -> Vec<Value> {
        let tools = ["skill", "read_file", "run_shell_command", "write_file", "agent"];
        let assistant = |id: usize, block: Value| json!({"type": "assistant", "message": {"id": format!("m{id}"), "content": [block]}});
        if let Some((name, input, result)) = call_of(event, tools, "skill", "file_path") {
            let id = format!("call_{at}");
            let block = json!({"type": "tool_use", "id": id, "name": name, "input": input});
            let mut lines = vec![assistant(at, block)];
            lines.extend(result.map(|(ok, text)| {
                let block =
                    json!({"type": "tool_result", "tool_use_id": id, "is_error": !ok, "content": text});
                json!({"type": "user", "message": {"content": [block]}})
            }));
            return lines;
        }
        let usage = json!({"input_tokens": 10, "output_tokens": 2});
        match event {
            Text(text) => vec![assistant(at, json!({"type": "text", "text": text}))],
            ApiError(status) => {
                let error = json!({"message": format!("[API Error: {status} scripted]")});
                vec![json!({"type": "result", "subtype": "error_during_execution", "is_error": true,
                    "usage": usage, "error": error})]
            }
            _ => {
                vec![json!({"type": "result", "subtype": "success", "is_error": false, "result": last_text,
                    "usage": usage})]
            }
        }
    }
    let init = json!({"type": "system", "subtype": "init", "session_id": "s", "slash_commands": ["greeter"]});
    check_all("qwen-stream-json", &[init], write);
}

#[test]
fn an_agent_over_the_protocol_shows_activation_and_ending() {
    fn update(update: Value) -> Value {
        json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}})
    }
    fn write(event: Event, at: usize, _: &str) -> Vec<Value> {
        let tools = ["skill", "read_file", "run_command", "write_file", "task"];
        if let Some((name, input, result)) = call_of(event, tools, "skill", "path") {
            let id = format!("call_{at}");
            let kind = match event {
                Read(..) => "read",
                Shell(..) => "execute",
                Write(_) => "edit",
                _ => "other",
            };
            // The name comes first, then the input, then the result.
            let begun = json!({"sessionUpdate": "tool_call", "toolCallId": id, "kind": kind, "title": "Works",
                "rawInput": {}, "_meta": {"toolName": name}});
            let described = json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "kind": kind,
                "rawInput": input});
            let mut lines = vec![update(begun), update(described)];
            lines.extend(result.map(|(ok, text)| {
                let status = if ok { "completed" } else { "failed" };
                let content = json!([{"type": "content", "content": {"type": "text", "text": text}}]);
                update(json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": status,
                    "content": content}))
            }));
            return lines;
        }
        match event {
            Text(text) => {
                let (first, rest) = text.split_at(1);
                [first, rest]
                    .map(|piece| {
                        let content = json!({"type": "text", "text": piece});
                        update(json!({"sessionUpdate": "agent_message_chunk", "content": content}))
                    })
                    .to_vec()
            }
            ApiError(status) => {
                let error = json!({"code": -32603, "message": "Internal error", "data": format!("{status} scripted")});
                vec![json!({"jsonrpc": "2.0", "id": 3, "error": error})]
            }
            _ => vec![json!({"jsonrpc": "2.0", "id": 3, "result": {"stopReason": "end_turn"}})],
        }
    }
    let opened = json!({"jsonrpc": "2.0", "id": 2, "result": {"sessionId": "s"}});
    check_all("acp", &[opened], write);
}
