//! What users of Skillet do, with its own files.

use serde_json::{Value, json};

use super::command_files::advisers;
use super::common::{Project, Ran};

const SKILL: &str = "---\nname: ferry\ndescription: Plans ferry trips.\n---\n\nHarbour: unsaid.\n";

fn eval(prompt: &str, more: &str) -> String {
    format!(
        "timestamp: 2025-01-15T10:30:00Z\nname: ferry\nprompt: {prompt}\nexpected: Names the harbour\n\
         assertions: [{{type: contains, value: the harbour is named}}]\n{more}"
    )
}

/// An agent that says what its skill says, and advisers.
fn script() -> String {
    let checks: Vec<String> = ["one", "two", "three"]
        .iter()
        .flat_map(|id| [format!("{id}/contains-1"), format!("evals/{id}/contains-1")])
        .collect();
    let edit = json!({
        "file": null, "area": "harbour", "before": "Harbour: unsaid.", "after": "Harbour: named.",
        "reasoning": "It has to be named.", "checks": checks,
    });
    let draft = json!({"description": "Plans ferry trips and names the harbour.", "body": "# Ferry\n\nHarbour: named."});
    let mut scenarios = vec![
        json!({"name": "told", "to": "agent", "when": "Harbour: named", "steps": ["the harbour is named"]}),
        json!({"name": "untold", "to": "agent", "when": "ferry", "steps": ["no harbour"]}),
        json!({"name": "edits", "to": "judge", "when": "Propose edits", "steps": [
            {"tools": [{"name": "propose_edits", "input": {"edits": [edit]}}]}
        ]}),
        json!({"name": "draft", "to": "judge", "when": "Draft the skill", "steps": [
            {"tools": [{"name": "draft_skill", "input": draft}]}
        ]}),
    ];
    scenarios.extend(advisers());
    json!({"practicum_script": 1, "scenarios": scenarios}).to_string()
}

const EVALS: [(&str, &str); 3] = [("one", "/ferry one"), ("two", "/ferry two"), ("three", "/ferry three")];

fn project(folder: &str) -> Project {
    let project = Project::new(&[("skills/ferry/SKILL.md", SKILL), ("script.yaml", &script())]);
    for (id, prompt) in EVALS {
        project.write(&format!("{folder}/{id}.yaml"), &eval(prompt, ""));
    }
    project
}

const AGENT: [&str; 6] = ["--agent", "builtin", "--script", "script.yaml", "--sandbox", "off"];

#[test]
fn the_loop_does_not_refuse_evals_of_skillet() {
    for (folder, evals) in [
        ("evals/ferry", &["--evals", "evals/ferry"][..]),
        ("skills/ferry/evals", &[]),
        (".skillet/evals/trips", &["--evals", "trips"]),
    ] {
        let project = project(folder);
        let loop_once = ["improve", "skills/ferry", "--repeat", "2", "--rounds", "1", "--json"];
        let improved = project.run(&[&loop_once[..], evals, &AGENT].concat()).exits(0).json();
        assert_eq!(improved["stopped"], "target", "{folder}: {improved:#}");
        let text = std::fs::read_to_string(project.path().join("skills/ferry/SKILL.md")).expect("the skill");
        assert_eq!(text, SKILL.replace("unsaid", "named"), "{folder}");
    }
}

#[test]
fn a_skill_given_beside_its_evals_is_compared_with_its_earlier_self() {
    for (folder, what) in [
        ("evals/ferry", &["evals/ferry", "--skill", "skills/ferry"][..]),
        ("evals/ferry", &["skills/ferry", "--evals", "evals/ferry"]),
        ("skills/ferry/evals", &["skills/ferry"]),
    ] {
        let project = project(folder);
        let git = |args: &[&str]| {
            let own = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"];
            let done =
                std::process::Command::new("git").arg("-C").arg(project.path()).args(own).args(args).output();
            assert!(done.expect("git").status.success(), "{args:?}");
        };
        git(&["init", "-q"]);
        git(&["add", "."]);
        git(&["commit", "-qm", "one"]);
        project.write("skills/ferry/SKILL.md", &SKILL.replace("unsaid", "named"));
        let args =
            [&["compare"][..], what, &["--against", "HEAD", "--repeat", "1", "--json"], &AGENT].concat();
        project.run(&args).exits(0);
        let run = project.run(&["show", "latest"]).exits(0).stdout;
        assert!(run.contains("3 of 3"), "{what:?}: {run}");
    }
}

#[test]
fn the_evals_in_a_skill_that_is_named_are_not_run_without_it() {
    let project = project("skills/ferry/evals");
    let ran = project.run(&[&["run", "skills/ferry", "--repeat", "1"][..], &AGENT].concat()).exits(1);
    assert!(!ran.stderr.contains("names no skill"), "{}", ran.stderr);
}

#[test]
fn a_sample_is_not_the_whole_and_says_so() {
    let project = project("evals/ferry");
    let args = [
        &["run", "evals/ferry", "--skill", "skills/ferry", "--repeat", "1", "--max-evals", "2", "--json"][..],
        &AGENT,
    ]
    .concat();
    let ran = project.run(&args).exits(1);
    assert!(ran.stderr.contains("2 of 3 cases are run, a sample"), "{}", ran.stderr);
    let ids = |summary: &Value| -> Vec<String> {
        let cases = summary["cases"].as_array().expect("cases");
        cases.iter().map(|case| case["id"].as_str().expect("an id").to_owned()).collect()
    };
    let first = ids(&ran.json());
    assert_eq!(first.len(), 2);
    assert_eq!(ids(&project.run(&args).json()), first, "the same command draws the same cases");
}

#[test]
fn tools_that_are_not_allowed_are_not_there() {
    let bash = json!({"practicum_script": 1, "scenarios": [{"name": "agent", "when": "ferry", "steps": [
        {"tools": [{"name": "Bash", "input": {"command": "touch made"}}]},
        "done",
    ]}]});
    let transcript = |tools: &str| {
        let project = Project::new(&[
            ("evals/a.yaml", &eval("Plan a ferry", "").replace("value: the harbour is named", "value: done")),
            ("script.yaml", &bash.to_string()),
        ]);
        project.run(&[&["run", "evals", "--repeat", "1", "--tools", tools][..], &AGENT].concat()).exits(0);
        let trials = std::fs::read_dir(project.only_run().join("trials")).expect("trials").flatten();
        let texts = trials.map(|trial| std::fs::read_to_string(trial.path().join("transcript.jsonl")));
        texts.map(|text| text.expect("a transcript")).collect::<String>()
    };
    assert!(transcript("Read,Write").contains("may not be used"));
    assert!(!transcript("Read,Bash").contains("may not be used"));
}

#[test]
fn the_folder_that_the_user_gives_is_where_names_are_looked_for() {
    let project = project("elsewhere/evals/trips");
    let mut command = project.practicum(&["check", "trips"]);
    command.env("SKILLET_DIR", project.path().join("elsewhere"));
    let ran = Ran::of(command.output().expect("practicum starts")).exits(0);
    assert!(ran.stdout.contains("3 cases"), "{}", ran.stdout);
    project.run(&["check", "trips"]).exits(2);
    // The folder of the skill has the same name, and no evals.
    project.write("trips/SKILL.md", "---\nname: trips\ndescription: Plans trips.\n---\n\nPlan.\n");
    let mut command = project.practicum(&["list", "trips", "--json"]);
    command.env("SKILLET_DIR", project.path().join("elsewhere"));
    let listed = Ran::of(command.output().expect("practicum starts")).exits(0);
    assert!(
        listed.stdout.contains("trips/SKILL.md") || listed.stdout.contains("\"trips\""),
        "{}",
        listed.stdout
    );
}

#[test]
fn a_workspace_of_the_project_is_not_an_empty_one() {
    let setup = eval("Plan a ferry", "setup: test -f timetable.txt\n")
        .replace("value: the harbour is named", "value: harbour");
    let project = Project::new(&[
        ("evals/a.yaml", &setup),
        ("timetable.txt", "10:30"),
        ("skills/ferry/SKILL.md", SKILL),
        ("script.yaml", &script()),
    ]);
    let run = |more: &[&str]| {
        let args = [
            &["run", "evals", "--skill", "skills/ferry", "--repeat", "1", "--trust", "--json"][..],
            more,
            &AGENT,
        ]
        .concat();
        project.run(&args).json()["cases"][0]["endings"].clone()
    };
    assert_eq!(run(&[]), json!({"setup_failed": 1}));
    assert_eq!(run(&["--workspace", "project"]), json!({"finished": 1}));
    project.write("practicum.toml", "workspace = \"project\"\n");
    assert_eq!(run(&["--no-cache"]), json!({"finished": 1}));
}

#[test]
fn a_skill_is_drafted_from_evals_and_never_overwritten() {
    let project = project("evals/ferry");
    let create = ["create", "evals/ferry", "--script", "script.yaml"];
    project.run(&create).exits(0);
    let file = project.path().join(".claude/skills/ferry/SKILL.md");
    let text = std::fs::read_to_string(&file).expect("a skill");
    assert!(text.contains("name: \"ferry\"") && text.contains("Harbour: named."), "{text}");
    project
        .run(
            &[&["run", "evals/ferry", "--skill", ".claude/skills/ferry", "--repeat", "1"][..], &AGENT]
                .concat(),
        )
        .exits(0);
    project.run(&create).exits(2);
    assert_eq!(std::fs::read_to_string(&file).expect("the same"), text);
    project.run(&["create", "nowhere", "--script", "script.yaml"]).exits(2);
}

/// Skillet has no words for whether a skill is activated; such cases must not be gone.
#[test]
fn a_case_that_the_format_cannot_say_is_not_lost() {
    let project = Project::new(&[("skills/ferry/SKILL.md", SKILL)]);
    let message = project.run(&["init", "skills/ferry", "--dialect", "skillet"]).exits(0).stderr;
    let note = "skillet cannot say what cases must-activate, must-not-activate expect; they are written to a native file";
    assert!(message.contains(note), "{message}");
    assert!(!message.contains("the whole case"), "{message}");
    let checked = project.run(&["check", "skills/ferry"]).exits(0).stdout;
    assert!(checked.contains("does-its-work.yaml"), "{checked}");
    let native = std::fs::read_to_string(project.path().join("skills/ferry/evals/ferry.practicum.yaml"));
    let native = native.expect("a native file");
    assert!(native.contains("must-activate") && native.contains("must-not-activate"), "{native}");
    assert!(!native.contains("does-its-work"), "{native}");
}

#[test]
fn a_proposal_that_the_format_cannot_say_is_not_lost() {
    let case = |id: &str, kind: &str, activation: Option<&str>, statements: &[&str]| {
        json!({
            "id": id, "kind": kind, "prompt": format!("Please plan trip {id}."), "activation": activation,
            "contains": [], "files": [], "statements": statements, "why": "Users ask that.",
        })
    };
    let cases = [
        case("fires", "positive", Some("must"), &[]),
        case("odd", "edge", None, &["The answer names the harbour that the request leaves out."]),
    ];
    let steps = json!([{"tools": [{"name": "propose_cases", "input": {"cases": cases}}]}]);
    let script = json!({"practicum_script": 1, "scenarios": [{"name": "p", "to": "judge", "steps": steps}]});
    let project = Project::new(&[("skills/ferry/SKILL.md", SKILL), ("script.yaml", &script.to_string())]);
    let args = ["propose", "skills/ferry", "--dialect", "skillet", "--script", "script.yaml"];
    let message = project.run(&args).exits(0).stderr;
    assert!(message.contains("skillet cannot say what case fires expect"), "{message}");
    let folder = project.path().join("skills/ferry/evals");
    let mut texts: Vec<String> = std::fs::read_dir(folder)
        .expect("evals")
        .flatten()
        .map(|entry| std::fs::read_to_string(entry.path()).expect("a file"))
        .collect();
    texts.sort();
    assert_eq!(texts.len(), 2, "{texts:?}");
    assert!(texts.iter().any(|text| text.contains("practicum: 1") && text.contains("fires")), "{texts:?}");
    assert!(texts.iter().any(|text| text.contains("expected:") && text.contains("harbour")), "{texts:?}");
}

#[test]
fn an_empty_command_file_is_not_without_problems() {
    for text in ["", " \n\t\n"] {
        let project = Project::new(&[(".claude/commands/x.md", text), (".claude/commands/y.md", "Do it.\n")]);
        let found = project.run(&["lint"]).exits(2).stdout;
        assert!(found.contains("error[command-empty]") && found.contains("x.md"), "{found}");
        assert_eq!(found.matches("error[").count(), 1, "{found}");
        project.run(&["lint", ".claude/commands/x.md"]).exits(2);
        assert_eq!(project.run(&["lint", "--json"]).exits(2).json()["ok"], false);
    }
}

/// The agent says something, calls a tool and says something else.
#[test]
fn what_was_said_before_a_tool_call_is_not_overlooked() {
    let turn = |when: &str, first: &str| {
        json!({"to": "agent", "when": when, "steps": [
            {"text": first, "tools": [{"name": "Bash", "input": {"command": "true"}}]}, "All done."
        ]})
    };
    let script = json!({"practicum_script": 1, "scenarios": [turn("second", "Second part"), turn("first", "The secret is 7")]});
    let text = "timestamp: 2025-01-15T10:30:00Z\nname: n\nexpected: x\nprompt: PROMPT\nassertions: [{type: KIND, value: 'VALUE'}]\n";
    for (prompt, kind, value, code) in [
        ("say first", "not_contains", "secret", 1),
        ("say first", "contains", "SECRET", 0),
        ("say first", "regex", "The secret[^.]*All", 0),
        ("say first", "starts_with", "the secret", 0),
        ("say first", "ends_with", "done.", 0),
        // Only the last turn counts.
        ("[say first, say second]", "not_contains", "secret", 0),
        ("[say first, say second]", "contains", "second part", 0),
    ] {
        let eval = text.replace("PROMPT", prompt).replace("KIND", kind).replace("VALUE", value);
        let project = Project::new(&[("e/one.yaml", &eval), ("script.yaml", &script.to_string())]);
        let args = ["run", "e", "--repeat", "1"];
        let ran = project.run(&[&args[..], &AGENT].concat());
        assert_eq!(ran.code, code, "{prompt} {kind} {value}: {}\n{}", ran.stdout, ran.stderr);
        let again = project.run(&["grade", "latest"]);
        assert_eq!(again.code, code, "{prompt} {kind} {value}: {}", again.stdout);
    }
}
