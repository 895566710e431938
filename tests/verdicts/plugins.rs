//! Plugins, whose commands, agents and hooks decide with their skills which of them is activated.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::common::{Project, Ran, claude, path_with};

const GREETER: &str = "---\nname: greeter\ndescription: Greets people.\n---\n\nSay ahoy.\n";
const PARROT: &str = "---\nname: parrot\ndescription: Repeats what was said.\n---\n\nRepeat.\n";

const SCRIPT: &str = "\
practicum_script: 1
scenarios:
  - when: Greet Alice
    steps:
      - tools: [{ name: Skill, input: { skill: '{{skill}}' } }]
      - text: Ahoy, Alice!
";

fn hooks(word: &str) -> Value {
    json!({"SessionStart": [{"hooks": [{"type": "command", "command": format!("echo {word}")}]}]})
}

/// A plugin with everything that a plugin can bring.
fn sea() -> Project {
    let manifest = json!({"name": "sea", "hooks": hooks("INLINE-HOOK-RAN")}).to_string();
    let hooks = json!({"hooks": hooks("HOOK-FILE-RAN")}).to_string();
    Project::new(&[
        ("plugins/sea/.claude-plugin/plugin.json", &manifest),
        ("plugins/sea/skills/greeter/SKILL.md", GREETER),
        ("plugins/sea/commands/wave.md", "---\ndescription: Waves\n---\nWave.\n"),
        ("plugins/sea/agents/sailor.md", "---\nname: sailor\ndescription: Sails\n---\nYou sail.\n"),
        ("plugins/sea/hooks/hooks.json", &hooks),
        ("plugins/bird/skills/SKILL.md", PARROT),
        ("plugins/fish/skills/greeter/SKILL.md", GREETER),
        ("evals/suite.json", &suite(&[("greeter", "sea", "Greet Alice.")])),
        ("script.yaml", SCRIPT),
    ])
}

fn suite(skills: &[(&str, &str, &str)]) -> String {
    let skill = |(name, plugin, prompt): &(&str, &str, &str)| {
        let case = json!({"prompt": prompt, "expectation": "must_activate"});
        json!({"name": name, "plugin": plugin, "test_cases": [case]})
    };
    let skills: Vec<Value> = skills.iter().map(skill).collect();
    json!({"name": "s", "runs_per_case": 1, "skills": skills}).to_string()
}

fn with_claude(project: &Project, args: &[&str]) -> Ran {
    let mut command = project.practicum(args);
    command.env("PATH", path_with(&claude()));
    Ran::of(command.output().expect("practicum starts"))
}

/// The transcripts of the newest run's trials, each with its arm.
fn transcripts(project: &Project) -> Vec<(String, String)> {
    let runs = std::fs::read_dir(project.path().join(".practicum/runs")).expect("runs").flatten();
    let newest: PathBuf = runs.map(|run| run.path()).max().expect("a run");
    let read = |path: PathBuf| std::fs::read_to_string(path).expect("a text");
    let info: Value = serde_json::from_str(&read(newest.join("run.json"))).expect("JSON");
    let of_trial = |trial: &Value| {
        let folder = newest.join("trials").join(trial["id"].as_str().expect("an id"));
        let arm = trial["condition"]["arm"].as_str().expect("an arm").to_owned();
        (arm, read(folder.join("transcript.jsonl")))
    };
    info["trials"].as_array().expect("trials").iter().map(of_trial).collect()
}

const RUN: [&str; 6] = ["run", "evals", "--agent", "claude", "--script", "script.yaml"];

#[test]
fn a_skill_of_a_plugin_is_not_measured_without_its_plugin() {
    let project = sea();
    std::os::unix::fs::symlink("/etc", project.path().join("plugins/sea/out")).expect("a link");
    let ran = with_claude(&project, &[&RUN[..], &["--keep-workspaces", "--json"]].concat()).exits(0);
    assert_eq!(ran.json()["cases"][0]["fired"]["yes"], 1, "{}", ran.stderr);
    let staged = "plugin sea: 1 skill, 1 command, 1 agent, 2 hooks (not staged: needs --trust)\n";
    assert!(ran.stderr.contains(staged), "{}", ran.stderr);
    assert!(ran.stderr.contains("plugin bird: 1 skill\n"), "{}", ran.stderr);
    // Another skill of that name would be taken for the one under test.
    assert!(ran.stderr.contains("plugin fish: 0 skills (1 not staged)\n"), "{}", ran.stderr);
    let (_, transcript) = transcripts(&project).remove(0);
    assert!(!transcript.contains("fish:greeter"), "{transcript}");
    for listed in ["\"sea:greeter\"", "\"sea:wave\"", "\"sea:sailor\"", "\"bird:parrot\""] {
        assert!(transcript.contains(listed), "{listed} is not in {transcript}");
    }
    assert!(!transcript.contains("HOOK"), "code that nobody trusts ran: {transcript}");
    let kept = ran.stderr.split("workspaces kept in ").nth(1).expect("a folder").trim().to_owned();
    let copies = found(Path::new(&kept), "sea");
    let [copy] = copies.as_slice() else { panic!("{copies:?}") };
    assert!(copy.join("skills/greeter/SKILL.md").is_file());
    assert!(std::fs::symlink_metadata(copy.join("out")).is_err(), "a link leads out of the plugin");
    std::fs::remove_dir_all(&kept).expect("removed");

    let again = with_claude(&project, &[&RUN[..], &["--dry-run"]].concat()).exits(0);
    assert!(again.stderr.contains("1 reuse, 0 run"), "{}", again.stderr);
    let trusted = with_claude(&project, &[&RUN[..], &["--trust"]].concat()).exits(0);
    assert!(
        trusted.stderr.contains("plugin sea: 1 skill, 1 command, 1 agent, 2 hooks\n"),
        "{}",
        trusted.stderr
    );
    let (_, transcript) = transcripts(&project).remove(0);
    assert!(transcript.contains("INLINE-HOOK-RAN") && transcript.contains("HOOK-FILE-RAN"), "{transcript}");
    project.write("plugins/sea/commands/wave.md", "Wave twice.\n");
    let changed = with_claude(&project, &[&RUN[..], &["--dry-run"]].concat()).exits(0);
    assert!(!changed.stderr.contains("reuse"), "the plugin is another: {}", changed.stderr);
}

/// A plugin without a name of its own is called after its folder, and the agent sees its skills by that name.
#[test]
fn a_plugin_in_a_renamed_folder_is_not_the_one_that_was_measured() {
    let project = Project::new(&[
        ("plugins/sea/skills/greeter/SKILL.md", GREETER),
        ("evals/suite.json", &suite(&[("greeter", "sea", "Greet Alice.")])),
        ("script.yaml", &SCRIPT.replace("{{skill}}", "sea:greeter")),
    ]);
    let first = with_claude(&project, &[&RUN[..], &["--json"]].concat()).exits(0).json();
    assert_eq!(first["activation"]["tp"], 1, "{first:#}");
    let folder = |name: &str| project.path().join("plugins").join(name);
    std::fs::rename(folder("sea"), folder("lake")).expect("renamed");
    project.write("evals/suite.json", &suite(&[("greeter", "lake", "Greet Alice.")]));
    let second = with_claude(&project, &[&RUN[..], &["--json"]].concat()).exits(0).json();
    assert_eq!(second["activation"]["fn"], 1, "there is no sea:greeter any more: {second:#}");
}

/// Claude Code brings skills along, and one of a plugin may have the same name.
#[test]
fn a_skill_of_the_agent_is_not_taken_for_its_namesake_in_a_plugin() {
    let own = "plugin-authoring";
    let run = |called: &str| {
        let project = Project::new(&[
            ("plugins/sea/skills/plugin-authoring/SKILL.md", &GREETER.replace("greeter", own)),
            ("evals/suite.json", &suite(&[(own, "sea", "Greet Alice.")])),
            ("script.yaml", &SCRIPT.replace("{{skill}}", called)),
        ]);
        let ran = with_claude(&project, &[&RUN[..], &["--json"]].concat()).exits(0);
        let found = |name: &str| ran.json()["activation"][name].clone();
        ((found("tp"), found("fn")), project.run(&["show"]).exits(0).stdout)
    };
    assert_eq!(run("sea:plugin-authoring").0, (json!(1), json!(0)));
    let (counts, shown) = run(own);
    assert_eq!(counts, (json!(0), json!(1)), "{shown}");
    assert!(shown.contains("plugin-authoring (the agent's own) was activated instead"), "{shown}");
}

/// The folders of a name below a folder.
fn found(folder: &Path, name: &str) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for path in std::fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path()) {
        if path.is_dir() && !path.is_symlink() {
            all.extend(found(&path, name));
            all.extend(path.ends_with(name).then_some(path));
        }
    }
    all
}

#[test]
fn a_run_without_the_skill_has_nothing_of_its_plugin() {
    let project = sea();
    let eval = "\
practicum: 1
skill: ../plugins/sea/skills/greeter
workspace: empty
run: { timeout: 60s, arms: [with, without] }
cases:
  - { id: greets, prompt: Greet Alice., checks: [{ contains: Alice }] }
";
    project.write("native/g.practicum.yaml", eval);
    project.write("say.yaml", "practicum_script: 1\nscenarios: [{ steps: [{ text: Alice }] }]\n");
    let run = ["run", "native", "--agent", "claude", "--script", "say.yaml", "--plugin", "plugins/sea"];
    with_claude(&project, &run).exits(0);
    for (arm, transcript) in transcripts(&project) {
        for listed in ["\"sea:greeter\"", "\"sea:wave\"", "\"sea:sailor\""] {
            assert_eq!(transcript.contains(listed), arm == "with", "{listed} {arm}: {transcript}");
        }
    }
}

#[test]
fn skills_of_plugins_are_found_in_every_layout() {
    let named = |name: &str| GREETER.replace("greeter", name);
    let manifest = json!({"name": "custom", "skills": ["./own"]}).to_string();
    let marketplace = json!({"plugins": [{"name": "market", "source": "./packs/m"}]}).to_string();
    let script = ["one", "two", "three", "four"].map(|name| {
        format!(
            "  - {{ when: prompt {name}, steps: [{{ tools: [{{ name: Skill, input: {{ skill: {name} }} }}] }}, {{ text: ok }}] }}\n"
        )
    });
    let project = Project::new(&[
        ("plugins/a/skills/SKILL.md", &named("one")),
        ("plugins/b/SKILL.md", &named("two")),
        ("plugins/c/.claude-plugin/plugin.json", &manifest),
        ("plugins/c/own/three/SKILL.md", &named("three")),
        ("market/.claude-plugin/marketplace.json", &marketplace),
        ("market/packs/m/skills/four/SKILL.md", &named("four")),
        ("script.yaml", &format!("practicum_script: 1\nscenarios:\n{}", script.concat())),
        (
            "evals/s.json",
            &suite(&[
                ("one", "a", "prompt one"),
                ("two", "b", "prompt two"),
                ("three", "custom", "prompt three"),
            ]),
        ),
        ("more/t.json", &suite(&[("four", "market", "prompt four")])),
    ]);
    let run = |evals: &str, plugins: Option<&str>| {
        let mut command =
            project.practicum(&["run", evals, "--agent", "builtin", "--script", "script.yaml", "--json"]);
        command.envs(plugins.map(|plugins| ("CLAUDE_1337_PLUGINS", plugins)));
        let ran = Ran::of(command.output().expect("practicum starts")).exits(0);
        let cases = ran.json()["cases"].as_array().expect("cases").clone();
        (cases.iter().filter(|case| case["fired"]["yes"] == 1).count(), ran.stderr)
    };
    let (fired, message) = run("evals", None);
    assert_eq!(fired, 3, "{message}");
    assert!(
        message.contains("plugin custom: 1 skill, staged as plain skills, because builtin loads no plugins"),
        "{message}"
    );
    assert_eq!(run("more", Some("../market")).0, 1);
}

#[test]
fn a_skill_can_be_tried_by_its_name_among_the_others() {
    let project = sea();
    for (name, beside) in
        [("parrot", "beside greeter"), ("sea:greeter", "beside parrot"), ("plugins/sea/skills/greeter", "")]
    {
        let run = ["try", "Greet Alice.", "--skill", name, "--agent", "builtin", "--script", "script.yaml"];
        let ran = project.run(&run).exits(0);
        assert!(ran.stderr.contains(beside), "{name}: {}", ran.stderr);
        assert_eq!(ran.stderr.contains("beside"), !beside.is_empty(), "{name}: {}", ran.stderr);
    }
    for (name, message) in [("nobody", "none of that name"), ("greeter", "say fish:greeter or sea:greeter")] {
        let ran = project.run(&["try", "Greet Alice.", "--skill", name, "--agent", "builtin"]).exits(2);
        assert!(ran.stderr.contains(message), "{name}: {}", ran.stderr);
    }
}

/// A plugin whose skill has another name in its frontmatter than its folder has.
fn kit(script: &str) -> Project {
    let case = json!({"prompt": "Greet Alice.", "expectation": "should_not_activate"});
    let skills = json!([{"name": "inner", "plugin": "kit", "test_cases": [case]}]);
    let suite = json!({"name": "s", "runs_per_case": 1, "skills": skills}).to_string();
    Project::new(&[
        ("plugins/kit/.claude-plugin/plugin.json", r#"{"name": "kit"}"#),
        ("plugins/kit/skills/dirname/SKILL.md", &GREETER.replace("name: greeter", "name: inner")),
        ("evals/suite.json", &suite),
        ("script.yaml", script),
    ])
}

#[test]
fn a_skill_called_by_its_other_name_is_not_left_alone() {
    for called in ["kit:inner", "kit:dirname"] {
        let project = kit(&SCRIPT.replace("{{skill}}", called));
        let ran = with_claude(&project, &[&RUN[..], &["--no-probe", "--json"]].concat());
        assert_eq!(ran.json()["cases"][0]["fired"]["yes"], 1, "{called}: {}", ran.stderr);
        assert_eq!(ran.json()["totals"]["passed"], 0, "{called}: {}", ran.stdout);
        let graded = project.run(&["grade", "latest", "--json"]);
        assert_eq!(graded.json()["summary"]["cases"][0]["fired"]["yes"], 1, "{called}: {}", graded.stderr);
        let checked = project.run(&["check", "evals"]).exits(0).stdout;
        assert!(checked.contains("name-folder") && checked.contains("\"dirname\""), "{checked}");
    }
}

#[test]
fn a_prompt_that_begins_with_a_dash_is_not_an_option() {
    let project = Project::new(&[
        ("skills/greeter/SKILL.md", GREETER),
        (
            "evals/g.practicum.yaml",
            "practicum: 1\nskill: ../skills/greeter\nworkspace: empty\ncases:\n  - { id: a, prompt: '- do A1 bullet', checks: [{ contains: done }] }\n  - { id: b, prompt: '--help', checks: [{ contains: done }] }\n",
        ),
        ("script.yaml", "practicum_script: 1\nscenarios: [{ steps: [{ text: done }] }]\n"),
    ]);
    let ran = with_claude(&project, &[&RUN[..], &["--json"]].concat()).exits(0);
    assert_eq!(ran.json()["totals"]["passed"], ran.json()["totals"]["trials"], "{}", ran.stdout);
}

#[test]
fn a_crash_is_not_told_without_its_last_words() {
    let project = Project::new(&[
        ("skills/greeter/SKILL.md", GREETER),
        (
            "evals/g.practicum.yaml",
            "practicum: 1\nskill: ../skills/greeter\nworkspace: empty\ncases:\n  - { id: a, prompt: p, checks: [{ contains: done }] }\n",
        ),
        (
            "practicum.toml",
            "sandbox = \"off\"\n[agents.own]\ncommand = [\"/bin/sh\", \"-c\", \"echo unknown option >&2; exit 7\"]\ndecoder = \"practicum-jsonl\"\n",
        ),
    ]);
    project.run(&["run", "evals", "--agent", "own"]);
    let shown = project.run(&["show", "latest", "a"]).exits(0).stdout;
    assert!(shown.contains("it exited with code 7: unknown option"), "{shown}");
}

#[test]
fn a_skill_that_no_model_can_activate_does_not_pass_in_silence() {
    let hidden = GREETER.replace("---\n\n", "disable-model-invocation: true\n---\n\n");
    let project = Project::new(&[
        ("skills/greeter/SKILL.md", &hidden),
        (
            "evals/g.practicum.yaml",
            "practicum: 1\nskill: ../skills/greeter\nworkspace: empty\ncases:\n  - { id: a, prompt: p, activation: must_not }\n",
        ),
        ("script.yaml", "practicum_script: 1\nscenarios: [{ steps: [{ text: done }] }]\n"),
    ]);
    let message = "so no model can activate the skill greeter";
    let checked = project.run(&["check", "evals"]).exits(0).stdout;
    assert!(checked.contains(message), "{checked}");
    let ran = project.run(&["run", "evals", "--agent", "builtin", "--script", "script.yaml"]);
    assert!(ran.stderr.contains(message), "{}", ran.stderr);
}

/// An MCP server with one tool, which says who it is.
const SERVER: &str = r#"import json, os, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    answer = {}
    if asked["method"] == "initialize":
        version = asked["params"]["protocolVersion"]
        answer = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    elif asked["method"] == "tools/list":
        answer = {"tools": [{"name": "wave", "description": "Waves", "inputSchema": {"type": "object", "properties": {}}}]}
    elif asked["method"] == "tools/call":
        root = os.path.basename(os.environ.get("CLAUDE_PLUGIN_ROOT", "nowhere"))
        answer = {"content": [{"type": "text", "text": "WAVED " + sys.argv[1] + " in " + root}]}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answer}), flush=True)
"#;

/// A plugin with a server in each place where Claude Code looks for them, in a project that has one of its own.
fn with_servers() -> Project {
    let project = sea();
    let server =
        |name: &str| json!({"command": "python3", "args": ["${CLAUDE_PLUGIN_ROOT}/server.py", name]});
    let manifest = json!({"name": "sea", "mcpServers": {"held": server("held")}});
    project.write("plugins/sea/.claude-plugin/plugin.json", &manifest.to_string());
    project.write("plugins/sea/.mcp.json", &json!({"mcpServers": {"filed": server("filed")}}).to_string());
    project.write("plugins/sea/server.py", SERVER);
    let own = json!({"command": "python3", "args": [project.path().join("plugins/sea/server.py"), "own"]});
    project.write(".mcp.json", &json!({"mcpServers": {"own": own}}).to_string());
    let eval = "\
practicum: 1
skill: ../plugins/sea/skills/greeter
workspace: project
run: { timeout: 60s }
cases:
  - { id: waves, prompt: Greet Alice., checks: [{ contains: Alice }] }
";
    project.write("native/g.practicum.yaml", eval);
    let call = |server: &str| format!("{{ name: mcp__{server}__wave, input: {{}} }}");
    let calls = ["plugin_sea_held", "plugin_sea_filed", "own"].map(call).join(", ");
    let script = format!(
        "practicum_script: 1\nscenarios:\n  - steps:\n      - tools: [{calls}]\n      - text: Alice\n"
    );
    project.write("wave.yaml", &script);
    project
}

#[test]
fn a_plugin_is_not_measured_without_the_servers_that_the_user_trusts() {
    let project = with_servers();
    let run = ["run", "native", "--agent", "claude", "--script", "wave.yaml", "--plugin", "plugins/sea"];
    let untrusted = with_claude(&project, &run).exits(0);
    let message = "2 MCP servers (not staged: needs --trust)";
    assert!(untrusted.stderr.contains(message), "{}", untrusted.stderr);
    let (_, transcript) = transcripts(&project).remove(0);
    assert!(!transcript.contains("WAVED"), "code that nobody trusts ran: {transcript}");

    let trusted = with_claude(&project, &[&run[..], &["--trust"]].concat()).exits(0);
    assert!(trusted.stderr.contains("2 MCP servers\n"), "{}", trusted.stderr);
    let (_, transcript) = transcripts(&project).remove(0);
    for waved in ["WAVED held in sea", "WAVED filed in sea"] {
        assert!(transcript.contains(waved), "{waved} is not in {transcript}");
    }
    assert!(!transcript.contains("WAVED own"), "a server of the project ran: {transcript}");
}
