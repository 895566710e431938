//! Command files: what they are called, and what can be done with them.

use serde_json::{Value, json};

use super::common::{Project, Ran, claude, path_with};

const COMMAND: &str =
    "---\nname: ignored\ndescription: Says when a ferry leaves.\n---\n\nHarbour: unsaid. $ARGUMENTS\n";

/// The builtin agent repeats what the command told it.
const SCRIPT: &str = "\
practicum_script: 1
scenarios:
  - {name: told, when: 'Harbour: named', steps: ['the harbour is named']}
  - {name: untold, when: 'Harbour: unsaid', steps: ['the command body arrived']}
  - {name: unknown, when: {regex: '.'}, steps: ['no command with that name']}
";

fn suite(prompt: &str) -> String {
    let case = json!({"id": "c", "prompt": prompt, "checks": [{"contains": "the command body arrived"}]});
    json!({"practicum": 1, "workspace": "empty", "run": {"agents": ["builtin"]}, "cases": [case]}).to_string()
}

const RUN: [&str; 8] =
    ["run", "e.practicum.yaml", "--script", "script.yaml", "--sandbox", "off", "--no-cache", "--skill"];

#[test]
fn a_command_in_a_folder_is_not_called_by_its_file_name_alone() {
    for (file, prompt) in [
        (".claude/commands/skillet/add.md", "/skillet:add now"),
        (".claude/commands/a/b/c.md", "/a:b:c"),
        (".claude/commands/add.md", "/add"),
        ("plugin/commands/git/add.md", "/git:add"),
    ] {
        let project =
            Project::new(&[(file, COMMAND), ("e.practicum.yaml", &suite(prompt)), ("script.yaml", SCRIPT)]);
        let ran = project.run(&[&RUN[..], &[file]].concat()).exits(0);
        assert!(!ran.stderr.contains("unknown-command"), "{prompt}: {}", ran.stderr);
    }
    // The name in its frontmatter, and the bare name of a file in a folder, call nothing.
    for prompt in ["/ignored", "/add"] {
        let file = ".claude/commands/skillet/add.md";
        let project =
            Project::new(&[(file, COMMAND), ("e.practicum.yaml", &suite(prompt)), ("script.yaml", SCRIPT)]);
        let ran = project.run(&[&RUN[..], &[file]].concat()).exits(1);
        assert!(ran.stderr.contains("unknown-command"), "{prompt}: {}", ran.stderr);
    }
}

#[test]
fn the_real_agent_knows_a_command_by_its_folders() {
    let project = Project::new(&[
        (".claude/commands/skillet/add.md", COMMAND),
        ("e.practicum.yaml", &suite("/skillet:add")),
        ("script.yaml", SCRIPT),
    ]);
    let mut command =
        project.practicum(&[&RUN[..], &[".claude/commands/skillet/add.md", "--agent", "claude"]].concat());
    command.env("PATH", path_with(&claude()));
    Ran::of(command.output().expect("practicum starts")).exits(0);
}

#[test]
fn a_command_that_nobody_stages_is_not_passed_over_in_silence() {
    let eval = |prompt: &str| {
        format!("timestamp: 2025-01-15\nname: n\nprompt: {prompt}\nexpected: Names the harbour\n")
    };
    for (prompt, warned) in [
        ("/skillet:add", true),
        ("[hello, '/skillet:add']", true),
        ("/help", false),
        ("/compact", false),
        ("/etc/hosts is wrong", false),
        ("/tmp is full", false),
        ("what is /skillet:add", false),
    ] {
        let project = Project::new(&[("evals/1.yaml", &eval(prompt)), ("evals/2.yaml", &eval(prompt))]);
        let ran = project.run(&["check", "evals", "--json"]).exits(0).json();
        let codes: Vec<&Value> = ran["files"]
            .as_array()
            .expect("files")
            .iter()
            .flat_map(|file| file["problems"].as_array().expect("problems"))
            .filter(|problem| problem["code"] == "unknown-command")
            .collect();
        assert_eq!(codes.len(), usize::from(warned), "{prompt}: {codes:?}");
        let said = project.run(&["run", "evals", "--dry-run", "--agent", "builtin"]).stderr;
        assert_eq!(said.contains("unknown-command"), warned, "{prompt}: {said}");
    }
    // Staged, in the project that is copied, or a skill: then it is there.
    let project = Project::new(&[
        (".claude/commands/skillet/add.md", COMMAND),
        ("evals/1.yaml", &eval("/skillet:add")),
        (
            "p.practicum.yaml",
            "practicum: 1\ncases:\n  - {id: c, prompt: /skillet:add, checks: [{contains: x}]}\n",
        ),
        ("greeter/SKILL.md", "---\nname: greeter\ndescription: Greets.\n---\nHi\n"),
        ("evals2/1.yaml", &eval("/greeter hello")),
    ]);
    for args in [
        &["check", "evals", "--skill", ".claude/commands/skillet/add.md"][..],
        &["check", "p.practicum.yaml"],
        &["check", "evals2", "--skill", "greeter"],
    ] {
        let said = project.run(args).exits(0).stdout;
        assert!(!said.contains("unknown-command"), "{args:?}: {said}");
    }
}

#[test]
fn the_command_under_test_is_not_there_in_the_arm_without_it() {
    let project = Project::new(&[
        (".claude/commands/skillet/add.md", COMMAND),
        ("e.practicum.yaml", &suite("/skillet:add").replace("empty", "project")),
        ("script.yaml", SCRIPT),
    ]);
    let args =
        [&RUN[..], &[".claude/commands/skillet/add.md", "--arm", "without", "--arm", "with", "--json"]]
            .concat();
    let summary = project.run(&args).json();
    let passed = |arm: &str| {
        let cases = summary["cases"].as_array().expect("cases");
        cases.iter().find(|case| case["arm"] == arm).map(|case| case["passed"].clone())
    };
    assert_eq!((passed("with"), passed("without")), (Some(json!(1)), Some(json!(0))), "{summary:#}");
}

/// Those who compare versions in the loop.
pub fn advisers() -> [Value; 2] {
    let dimensions = [
        "description_quality",
        "convention_compliance",
        "type_specific_quality",
        "token_efficiency",
        "content_value",
    ];
    let scores: serde_json::Map<String, Value> =
        dimensions.iter().map(|name| ((*name).to_owned(), json!({"A": 6, "B": 5}))).collect();
    let comparison = json!({"winner": "A", "reasoning": "It reads better.", "quote": "the harbour is named", "scores": scores});
    let analysis = json!({"strengths": ["It names it."], "weaknesses": ["It did not."], "suggestions": []});
    [
        json!({"name": "blind", "to": "judge", "when": "Which of the two outputs", "steps": [
            {"tools": [{"name": "report_comparison", "input": comparison}]}
        ]}),
        json!({"name": "why", "to": "judge", "when": "Analyse why", "steps": [
            {"tools": [{"name": "report_analysis", "input": analysis}]}
        ]}),
    ]
}

/// A spec of clauditor beside its command file.
fn ferry(answers: &Value) -> Project {
    let spec = json!({
        "skill_name": "ferry",
        "test_args": "to the island",
        "user_prompt": "When does the ferry leave?",
        "assertions": [{"id": "named", "type": "contains", "needle": "the harbour is named"}],
    });
    let mut scenarios = vec![
        json!({"name": "told", "when": "Harbour: named", "steps": ["the harbour is named"]}),
        json!({"name": "untold", "when": "Harbour: unsaid", "to": "agent", "steps": ["the command body arrived"]}),
    ];
    scenarios.extend(answers.as_array().expect("scenarios").iter().cloned());
    scenarios.extend(advisers());
    let script = json!({"practicum_script": 1, "scenarios": scenarios});
    Project::new(&[
        (".claude/commands/travel/ferry.md", COMMAND),
        (".claude/commands/travel/other.md", "Another command.\n"),
        (".claude/commands/travel/ferry.eval.json", &spec.to_string()),
        ("script.yaml", &script.to_string()),
    ])
}

const FERRY: &str = ".claude/commands/travel/ferry.md";

fn edit() -> Value {
    json!([{"name": "edits", "to": "judge", "when": "Propose edits", "steps": [{"tools": [{"name": "propose_edits", "input": {"edits": [{
        "file": null, "area": "harbour", "before": "Harbour: unsaid.", "after": "Harbour: named.",
        "reasoning": "It has to be named.", "checks": ["ferry/named"],
    }]}}]}]}])
}

fn text(project: &Project) -> String {
    std::fs::read_to_string(project.path().join(FERRY)).expect("the command")
}

#[test]
fn versions_of_a_command_file_are_kept_and_restored() {
    let project = ferry(&json!([]));
    project.run(&["snapshot", FERRY, "-m", "first"]).exits(0);
    project.write(FERRY, "changed\n");
    let listed = project.run(&["versions", FERRY, "--json"]).exits(0).json();
    assert_eq!((&listed["changed"], &listed["versions"][0]["path"]), (&json!(true), &json!("v0/skill")));
    // An agent takes every Markdown file in the folder of commands for a command.
    let kept = project.path().join(".claude/commands-workspace/travel/ferry/v0/skill/ferry.md");
    assert_eq!(std::fs::read_to_string(kept).expect("the version"), COMMAND);
    project.run(&["restore", FERRY, "v0"]).exits(0);
    assert_eq!(text(&project), COMMAND);
    let other = std::fs::read_to_string(project.path().join(".claude/commands/travel/other.md"));
    assert_eq!(other.expect("untouched"), "Another command.\n");
    project.run(&["restore", FERRY, "v1"]).exits(0);
    assert_eq!(text(&project), "changed\n");
}

#[test]
fn a_command_file_is_mended_captured_and_improved() {
    let project = ferry(&edit());
    let run = ["run", FERRY, "--agent", "builtin", "--script", "script.yaml", "--sandbox", "off"];
    project.run(&run).exits(1);
    let captured = project.run(&["capture", FERRY]).exits(0).stdout;
    assert!(captured.contains("evals/captured/ferry/"), "{captured}");
    let edits = project.run(&["suggest", FERRY, "--script", "script.yaml", "--json"]).json();
    let check = edits["failed"][0].as_str().expect("a failed check").to_owned();
    let script = std::fs::read_to_string(project.path().join("script.yaml")).expect("a script");
    project.write("script.yaml", &script.replace("ferry/named", &check));
    project.run(&["suggest", FERRY, "--script", "script.yaml", "--apply"]).exits(0);
    assert_eq!(text(&project), COMMAND.replace("unsaid", "named"));
    project.run(&run).exits(0);

    project.write(FERRY, COMMAND);
    let improve = [
        "improve",
        FERRY,
        "--agent",
        "builtin",
        "--script",
        "script.yaml",
        "--sandbox",
        "off",
        "--repeat",
        "4",
        "--rounds",
        "1",
        "--json",
    ];
    let improved = project.run(&improve).exits(0).json();
    assert_eq!(improved["stopped"], "target", "{improved:#}");
    assert_eq!(text(&project), COMMAND.replace("unsaid", "named"));
}

#[test]
fn a_command_is_compared_with_its_earlier_self_under_its_own_name() {
    let project = ferry(&json!([]));
    let git = |args: &[&str]| {
        let own = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"];
        let done =
            std::process::Command::new("git").arg("-C").arg(project.path()).args(own).args(args).output();
        assert!(done.expect("git").status.success(), "{args:?}");
    };
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-qm", "one"]);
    project.write(FERRY, &COMMAND.replace("unsaid", "named"));
    let args = [
        "compare",
        FERRY,
        "--against",
        "HEAD",
        "--agent",
        "builtin",
        "--script",
        "script.yaml",
        "--sandbox",
        "off",
        "--json",
    ];
    let compared = project.run(&args).exits(0).json();
    assert!(compared.to_string().contains("HEAD"), "{compared:#}");
    let runs = std::fs::read_dir(project.path().join(".practicum/runs")).expect("runs").count();
    assert_eq!(runs, 2);
}

#[test]
fn a_command_file_is_not_linted_as_if_it_were_a_skill() {
    let project = Project::new(&[
        (".claude/commands/git/add.md", "Add what changed: $ARGUMENTS\n"),
        (".claude/commands/broken.md", "---\ndescription: \"a\" b\n---\nbody\n"),
        (".claude/commands/odd.md", "---\nargument-hint: [x] [y]\n---\nbody\n"),
    ]);
    let linted = project.run(&["lint", ".claude/commands/git/add.md", "--strict", "--json"]).exits(0).json();
    assert!(linted.to_string().contains("git:add"), "{linted:#}");
    let said = project.run(&["lint", ".claude/commands/broken.md", "--strict"]).exits(2).stdout;
    assert!(said.contains("frontmatter-yaml"), "{said}");
    let said = project.run(&["lint", ".claude/commands/odd.md"]).exits(0).stdout;
    assert!(said.contains("frontmatter-not-yaml"), "{said}");
    project.run(&["lint", "."]).exits(2);
}

#[test]
fn first_evals_of_a_command_are_written_where_they_are_found() {
    for format in ["native", "clauditor", "skillet", "skill-creator", "writing-skills", "bmad", "skill-test"]
    {
        let project = Project::new(&[(".claude/commands/travel/ferry.md", COMMAND)]);
        let ran = project.run(&["init", FERRY, "--dialect", format]).exits(0);
        let checked = project.run(&["check", FERRY, "--json"]);
        assert_eq!(checked.code, 0, "{format}: {}\n{}\n{}", ran.stderr, checked.stdout, checked.stderr);
        let checked = checked.json();
        let files = checked["files"].as_array().expect("files");
        assert!(files.iter().any(|file| file["dialect"] == format), "{}", ran.stderr);
    }
}

#[test]
fn cases_are_proposed_in_the_format_that_is_there() {
    let case = json!({
        "id": "late", "kind": "edge", "prompt": "And after midnight?", "activation": null, "contains": ["midnight boat"],
        "files": [], "statements": [], "why": "Users ask that.",
    });
    let answer = json!([{"name": "cases", "to": "judge", "when": "Propose 2 eval cases", "steps": [
        {"tools": [{"name": "propose_cases", "input": {"cases": [case]}}]}
    ]}]);
    let project = ferry(&answer);
    let found = project.run(&["propose", FERRY, "--script", "script.yaml", "--json"]).exits(0).json();
    let file = found["file"].as_str().expect("a file");
    assert!(file.ends_with("evals/ferry.candidates.json"), "{found:#}");
    let native = project.run(&["propose", FERRY, "--script", "script.yaml", "--dialect", "native", "--json"]);
    let native = native.exits(0).json();
    assert!(native["file"].as_str().expect("a file").ends_with("evals/ferry.candidates.yaml"), "{native:#}");
    // What nobody has accepted yet is not run.
    let files = project.run(&["check", ".", "--json"]).json()["files"].as_array().expect("files").len();
    assert_eq!(files, 1);
}

#[test]
fn a_prompt_is_tried_on_a_command_file() {
    let project = ferry(&json!([]));
    let args = [
        "try",
        "/travel:ferry home",
        "--skill",
        FERRY,
        "--expect",
        "either",
        "--agent",
        "builtin",
        "--script",
        "script.yaml",
        "--sandbox",
        "off",
        "--json",
    ];
    let summary = project.run(&args).json();
    assert_eq!(summary["cases"][0]["endings"]["finished"], 1, "{summary:#}");
}

/// The words were "not scored" and "INCOMPLETE", although nothing is graded where a command is called.
#[test]
fn a_called_command_is_not_said_to_be_incomplete() {
    let file = ".claude/commands/add.md";
    let project = Project::new(&[(file, COMMAND), ("script.yaml", SCRIPT)]);
    let args = ["--agent", "builtin", "--script", "script.yaml", "--sandbox", "off"];
    let ran = project.run(&[&["try", "--skill", file, "--args", "x"], &args[..]].concat()).exits(0);
    assert!(ran.stderr.contains("called add (builtin"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("not scored"), "{}", ran.stderr);
    let shown = project.run(&["show", "latest"]).stdout;
    assert!(shown.contains("CALLED") && !shown.contains("INCOMPLETE"), "{shown}");
}

/// A run of a command that tells an agent nothing looked like any other.
#[test]
fn a_command_file_that_says_nothing_is_warned_of() {
    for (text, message) in [
        ("", "has no text"),
        (" \n\n", "has no text"),
        ("---\ndescription: d\n---\n", "has no text"),
        ("---\n- a\n- b\n---\nDo it.\n", "the frontmatter has no keys"),
        ("---\njust words\n---\nDo it.\n", "the frontmatter has no keys"),
        ("- one\n- two\n", ""),
    ] {
        let spec = json!({"assertions": [{"id": "a", "type": "contains", "needle": "no"}]}).to_string();
        let project = Project::new(&[
            (".claude/commands/x.md", text),
            (".claude/commands/x.eval.json", &spec),
            ("script.yaml", SCRIPT),
        ]);
        let checked = project.run(&["check"]).exits(0).stdout;
        let ran = project.run(&["run", "--agent", "builtin", "--script", "script.yaml"]).stderr;
        let linted = project.run(&["lint", ".claude/commands/x.md"]).stdout;
        assert_eq!(checked.contains("1 warning"), !message.is_empty(), "{text:?}: {checked}");
        assert!(checked.contains(message) && ran.contains(message), "{text:?}: {checked} {ran}");
        assert_eq!(linted.contains("no problems"), message.is_empty(), "{text:?}: {linted}");
    }
}

/// The command is staged where Claude Code looks for it. An agent that does not look there runs without it.
#[test]
fn an_agent_that_reads_no_commands_does_not_lack_one_in_silence() {
    let file = ".claude/commands/skillet/add.md";
    let project = Project::new(&[(file, COMMAND), ("e.practicum.yaml", &suite("/skillet:add now"))]);
    let agent = |folder: &str| format!("[agents.own]\ncommand = [\"/bin/echo\", \"{{prompt}}\"]\n{folder}");
    let run = |settings: &str| {
        project.write("practicum.toml", &agent(settings));
        let args =
            ["run", "e.practicum.yaml", "--agent", "own", "--sandbox", "off", "--no-cache", "--skill", file];
        project.run(&args).exits(1)
    };
    let message =
        "own reads no command files, so it runs without skillet:add: /skillet:add is plain text for it";
    let ran = run("");
    assert!(ran.stderr.contains(message), "{}", ran.stderr);
    assert!(
        project.run(&["report", "--format", "md"]).exits(0).stdout.contains("own reads no command files")
    );
    let ran = run("skills_dir = \".claude/skills\"\n");
    assert!(!ran.stderr.contains("reads no command files"), "{}", ran.stderr);
}

/// An agent that has no command files stays away from every command, so each query that must not activate it passed.
#[test]
fn a_command_that_an_agent_does_not_offer_does_not_pass_by_staying_inactive() {
    let spec = json!({
        "assertions": [{"id": "a", "type": "contains", "needle": "aboard"}],
        "trigger_tests": {"should_trigger": ["when is the ferry"], "should_not_trigger": ["what is the time"]},
    });
    let agent = "echo '{\"type\":\"start\",\"schema_version\":1}'
echo '{\"type\":\"text\",\"text\":\"aboard\"}'
echo '{\"type\":\"end\",\"ending\":\"finished\"}'\n";
    for (skills_dir, of_trigger, total) in [
        ("", "does not offer command files to its model", "1 of 3 trials passed, 2 not scored"),
        ("skills_dir = \".claude/skills\"\n", "", "2 of 3 trials passed, 1 failed"),
    ] {
        let project = Project::new(&[
            (".claude/commands/ferry.md", COMMAND),
            (".claude/commands/ferry.eval.json", &spec.to_string()),
            ("agent.sh", agent),
        ]);
        let path = project.path().join("agent.sh");
        let own = format!(
            "sandbox = \"off\"\n[agents.own]\ncommand = [\"/bin/bash\", \"{}\", \"{{prompt}}\"]\ndecoder = \"practicum-jsonl\"\n",
            path.display()
        );
        project.write("practicum.toml", &format!("{own}{skills_dir}"));
        let ran = project.run(&["run", "--agent", "own", "--no-probe"]);
        assert_eq!(ran.code, if of_trigger.is_empty() { 1 } else { 3 }, "{}{}", ran.stdout, ran.stderr);
        assert!(ran.stdout.contains(total), "{}", ran.stdout);
        assert!(ran.stderr.contains(of_trigger) && ran.stdout.contains(of_trigger), "{}", ran.stderr);
        // What does not ask for activation is measured all the same.
        project.run(&["run", "--agent", "own", "--only", "artifact"]).exits(0);
        // A model that predicts activation needs no agent.
        let plan = project.run(&["run", "--agent", "own", "--predicted", "--no-judge", "--dry-run"]).exits(0);
        assert!(!plan.stderr.contains("does not offer"), "{}", plan.stderr);
    }
    // The agents that have command files measure it.
    let project = Project::new(&[
        (".claude/commands/ferry.md", COMMAND),
        (".claude/commands/ferry.eval.json", &spec.to_string()),
        ("script.yaml", SCRIPT),
    ]);
    let ran = project.run(&["run", "--agent", "builtin", "--script", "script.yaml", "--only", "activation"]);
    assert!(ran.exits(1).stdout.contains("1 of 2 trials passed, 1 failed"));
}
