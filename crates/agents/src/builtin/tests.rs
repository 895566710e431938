//! Tests of the builtin agent with the scripted gateway.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::events::ActivationMeans;
use super::*;
use crate::gateway::{Gateway, GatewayScope, ModelScript, ScopeKind};
use crate::llm::{ApiRetryPolicy, ModelApi};
use practicum_core::model::Diagnostics;
use practicum_core::tree::{SourceFile, SourceSyntax};

const SCRIPT: &str = r#"
practicum_script: 1
scenarios:
  - when: release notes
    steps:
      - text: I'll use the skill.
        tools: [{ name: Skill, input: { skill: "plugin:release-notes", args: v2 } }]
      - tools:
          - { name: Write, input: { file_path: "{{workspace}}/out/NOTES.md", content: "one" } }
          - { name: Edit, input: { file_path: out/NOTES.md, old_string: one, new_string: two } }
      - tools: [{ name: Bash, input: { command: cat out/NOTES.md } }]
      - Done.
  - { when: busy, steps: [{ error: 529 }] }
  - { when: limited, steps: [{ error: 429, headers: { retry-after: 0 }, times: 1 }, fine] }
  - { when: no more, steps: [{ error: 429, headers: { retry-after: 100 } }] }
  - { when: locked, steps: [{ error: 401, message: invalid x-api-key }] }
  - when: escape
    steps:
      - tools:
          - { name: Write, input: { file_path: ../escaped, content: x } }
          - { name: Read, input: { file_path: /etc/passwd } }
          - { name: Read, input: { path: x } }
          - { name: Skill, input: { skill: reserved } }
          - { name: Skill, input: { skill: unknown } }
          - { name: Fly }
          - { name: Bash, input: { command: exit 2 } }
      - All refused.
  - { when: endless, steps: [{ tools: [{ name: Bash, input: { command: "true" } }] }, { tools: [{ name: Bash, input: { command: "true" } }] }, never] }
  - { when: cut off, steps: [{ text: half, stop: max_tokens }] }
  - { when: first, steps: [one] }
  - { when: second, steps: [two] }
  - { when: /reserved, steps: [invoked] }
"#;

struct Room {
    folder: tempfile::TempDir,
    scope: GatewayScope,
    _gateway: Gateway,
}

async fn room() -> Room {
    let mut diagnostics = Diagnostics::default();
    let source =
        SourceFile::parse(Path::new("s.yaml"), SCRIPT.to_owned(), SourceSyntax::Yaml, &mut diagnostics);
    let script = source.and_then(|source| ModelScript::from_source(&source, &mut diagnostics));
    let gateway = Gateway::start(Arc::new(script.expect("a script"))).await.expect("a gateway");
    let folder = tempfile::tempdir().expect("a folder");
    let skills = folder.path().join("work/.claude/skills");
    for (name, front) in [("release-notes", ""), ("reserved", "disable-model-invocation: true\n")] {
        fs::create_dir_all(skills.join(name)).expect("a folder");
        let text = format!("---\nname: {name}\ndescription: About {name}\n{front}---\nDo {name}.\n");
        fs::write(skills.join(name).join("SKILL.md"), text).expect("written");
    }
    let workspace = folder.path().join("work").display().to_string();
    let vars = BTreeMap::from([("workspace".to_owned(), workspace)]);
    let scope = gateway.register("trial", ScopeKind::Agent, vars);
    Room { folder, scope, _gateway: gateway }
}

impl Room {
    fn options(&self, prompt: &str) -> BuiltinOptions {
        let workspace = self.folder.path().join("work");
        BuiltinOptions {
            prompt: prompt.to_owned(),
            skills_dir: workspace.join(".claude/skills"),
            workspace,
            model: None,
            endpoint: Endpoint {
                api: ModelApi::AnthropicMessages,
                base_url: self.scope.base_url().to_owned(),
                credential: None,
            },
            session_file: None,
            append_system: None,
            tools: None,
            max_turns: 10,
        }
    }

    async fn run(&self, options: &BuiltinOptions) -> (i32, Vec<JsonlEvent>) {
        let retry = ApiRetryPolicy {
            max_attempts: 3,
            first_wait: Duration::from_millis(1),
            longest_wait: Duration::from_millis(50),
        };
        let client = ModelClient::new(options.endpoint.clone()).map(|client| client.with_retry_policy(retry));
        let mut out = Vec::new();
        let code = run_with_client(options, client, &mut out).await;
        let text = String::from_utf8(out).expect("UTF-8");
        (code, text.lines().map(|line| serde_json::from_str(line).expect("an event")).collect())
    }
}

fn ending(events: &[JsonlEvent]) -> (JsonlEnding, u64, String) {
    match events.last() {
        Some(JsonlEvent::End { ending, turns, message }) => {
            (*ending, *turns, message.clone().unwrap_or_default())
        }
        other => panic!("the last event is {other:?}"),
    }
}

fn said(events: &[JsonlEvent]) -> Vec<&str> {
    let mut said = Vec::new();
    for event in events {
        if let JsonlEvent::Text { text } = event {
            said.push(text.as_str());
        }
    }
    said
}

fn results(events: &[JsonlEvent]) -> Vec<(bool, &str)> {
    let mut results = Vec::new();
    for event in events {
        if let JsonlEvent::ToolResult { ok, content, .. } = event {
            results.push((*ok, content.as_str()));
        }
    }
    results
}

#[tokio::test]
async fn a_skill_is_taken_up_and_a_file_written() {
    for api in ModelApi::ALL {
        let room = room().await;
        let mut options = room.options("Please write release notes");
        options.endpoint.api = api;
        options.endpoint.base_url = room.scope.base_url_for(api);
        let (code, events) = room.run(&options).await;
        assert_eq!(
            (code, ending(&events)),
            (0, (JsonlEnding::Finished, 4, String::new())),
            "{api:?} {events:?}"
        );
        assert_eq!(said(&events), ["I'll use the skill.", "Done."]);
        let file = room.folder.path().join("work/out/NOTES.md");
        assert_eq!(fs::read_to_string(file).expect("written"), "two");
        let skill = JsonlEvent::Skill { name: "release-notes".to_owned(), via: ActivationMeans::Tool };
        assert_eq!(events.iter().filter(|event| **event == skill).count(), 1);
        let results = results(&events);
        assert!(results.iter().all(|(ok, _)| *ok), "{results:?}");
        assert!(results[0].1.starts_with("Base directory for this skill: "), "{results:?}");
        assert!(results[0].1.ends_with("Do release-notes.\n\nARGUMENTS: v2"), "{results:?}");
        assert_eq!(results[3].1, "two");
        let Some(JsonlEvent::Start { skills: Some(skills), session: Some(_), .. }) = events.first() else {
            panic!("{events:?}");
        };
        assert_eq!(skills, &["release-notes", "reserved"]);
        assert_eq!(room.scope.requests(), 4);
    }
}

#[tokio::test]
async fn endings_have_names() {
    for (prompt, code, expected, turns, requests, part) in [
        ("busy", 1, JsonlEnding::ApiFailed, 1, 3, "529"),
        ("limited", 0, JsonlEnding::Finished, 1, 2, ""),
        ("no more", 1, JsonlEnding::RateLimited, 1, 1, "100 s"),
        ("locked", 1, JsonlEnding::AuthFailed, 1, 1, "invalid x-api-key"),
        ("nobody wrote this", 1, JsonlEnding::ApiFailed, 1, 1, "no scenario"),
        ("endless", 1, JsonlEnding::OverBudget, 2, 2, "2 turns"),
        ("cut off", 1, JsonlEnding::OverBudget, 1, 1, "cut off"),
    ] {
        let room = room().await;
        let options = BuiltinOptions { max_turns: 2, ..room.options(prompt) };
        let (found, events) = room.run(&options).await;
        let (ending, took, message) = ending(&events);
        assert_eq!((found, ending, took), (code, expected, turns), "{prompt}: {message}");
        assert!(message.contains(part), "{prompt}: {message}");
        assert_eq!(room.scope.requests(), requests, "{prompt}");
    }
}

#[tokio::test]
async fn what_tools_refuse_is_told_and_the_run_goes_on() {
    let room = room().await;
    let (code, events) = room.run(&room.options("escape")).await;
    assert_eq!(code, 0);
    assert_eq!(said(&events), ["All refused."]);
    let found = results(&events);
    for ((ok, content), part) in found.iter().zip([
        "outside the workspace",
        "outside the workspace",
        "file_path",
        "only the user",
        "Unknown skill",
        "no tool \"Fly\"",
        "exit status: 2",
    ]) {
        assert!(!ok && content.contains(part), "{content}: expected {part}");
    }
    assert_eq!(found.len(), 7);
    assert!(!room.folder.path().join("escaped").exists());
    assert!(!events.iter().any(|event| matches!(event, JsonlEvent::Skill { .. })));
}

#[tokio::test]
async fn a_session_goes_on_in_the_next_run() {
    let room = room().await;
    let file = room.folder.path().join("session.json");
    let options = |prompt| BuiltinOptions { session_file: Some(file.clone()), ..room.options(prompt) };
    let (_, first) = room.run(&options("first")).await;
    let (_, second) = room.run(&options("second")).await;
    assert_eq!((said(&first), said(&second)), (vec!["one"], vec!["two"]));
    let session = |events: &[JsonlEvent]| match events.first() {
        Some(JsonlEvent::Start { session, .. }) => session.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(session(&first), session(&second));
    let saved = session::BuiltinSession::load(&file).expect("a session");
    assert_eq!(saved.messages.len(), 4);
    fs::write(&file, "not a session").expect("written");
    assert_eq!(room.run(&options("first")).await, (1, vec![]));
}

#[tokio::test]
async fn a_command_for_a_skill_is_no_activation() {
    let room = room().await;
    let file = room.folder.path().join("session.json");
    let options = BuiltinOptions { session_file: Some(file.clone()), ..room.options("/reserved now") };
    let (code, events) = room.run(&options).await;
    assert_eq!((code, said(&events)), (0, vec!["invoked"]));
    assert!(!events.iter().any(|event| matches!(event, JsonlEvent::Skill { .. })));
    let saved = fs::read_to_string(&file).expect("a session");
    assert!(saved.contains("Do reserved.") && saved.contains("ARGUMENTS: now"), "{saved}");
}

#[tokio::test]
async fn without_a_server_the_stream_still_ends() {
    let room = room().await;
    let mut options = room.options("first");
    options.endpoint.base_url = "not a URL".to_owned();
    let (code, events) = room.run(&options).await;
    assert_eq!((code, ending(&events).0), (1, JsonlEnding::ApiFailed));
    assert_eq!(events.len(), 2);
}
