//! Arms that are compared, or left out.

use crate::common::Project;

const SKILL: &str = "---\nname: gull\ndescription: Speaks. Use when asked to.\n---\n\nSay kee-ow.\n";

/// Says kee-ow where the prompt says so, and else nothing of it.
const SCRIPT: &str = "\
practicum_script: 1
scenarios:
  - { when: speak up, steps: [kee-ow] }
  - { when: stay calm, steps: [Nothing.] }
";

const EVALS: &str = "\
practicum: 1
skill: ../skills/gull
workspace: empty
gates: { pass_rate: 1 }
cases:
  - { id: right, prompt: speak up, checks: [{ contains: kee-ow }] }
  - { id: wrong, prompt: stay calm, checks: [{ contains: kee-ow }] }
  - { id: wakes, prompt: speak up, activation: must }
";

fn project() -> Project {
    Project::new(&[
        ("skills/gull/SKILL.md", SKILL),
        ("evals/gull.practicum.yaml", EVALS),
        ("script.yaml", SCRIPT),
    ])
}

fn scripted<'a>(args: &[&'a str]) -> Vec<&'a str> {
    [args, &["--agent", "builtin", "--script", "script.yaml"]].concat()
}

#[test]
fn a_baseline_alone_is_not_incomplete_and_has_a_pass_rate() {
    let project = project();
    let args = scripted(&["run", "evals", "--arm", "without"]);
    let ran = project.run(&args).exits(0);
    assert!(ran.stdout.contains("NO GATE  1 of 2 trials passed, 1 failed"), "{}", ran.stdout);
    assert!(ran.stdout.contains("pass rate 0.50"), "{}", ran.stdout);
    assert!(ran.stdout.contains("so this is a baseline"), "{}", ran.stdout);
    assert!(ran.stderr.contains("1 case only about whether the skill is activated"), "{}", ran.stderr);

    let summary = project.run(&[&args[..], &["--json"]].concat()).exits(0).json();
    assert_eq!(summary["pass_rate"]["value"], 0.5, "{summary}");
    assert_eq!(summary["gates"], serde_json::json!([]), "{summary}");
    let again = project.run(&["grade", "latest", "--json"]).exits(0).json();
    assert_eq!(again["summary"]["pass_rate"]["value"], 0.5, "{again}");
}

/// A baseline in which everything passes has passed nothing that it had to pass.
#[test]
fn a_baseline_without_a_gate_does_not_say_pass() {
    let project = project();
    let ran = project.run(&scripted(&["run", "evals", "--arm", "without", "--case", "right"])).exits(0);
    assert!(ran.stdout.contains("NO GATE  1 of 1 trial passed"), "{}", ran.stdout);
}

#[test]
fn a_gate_that_the_user_asks_of_a_baseline_is_not_passed_over() {
    let project = project();
    let args = scripted(&["run", "evals", "--arm", "without", "--report", "junit=j.xml"]);
    let ran = project.run(&[&args[..], &["--gate", "pass_rate=0.8"]].concat()).exits(1);
    assert!(ran.stdout.contains("FAIL"), "{}", ran.stdout);
    let junit = std::fs::read_to_string(project.path().join("j.xml")).expect("a report");
    assert!(junit.contains("failures=\"1\""), "{junit}");
    let ran = project.run(&[&args[..], &["--gate", "pass_rate=0.5"]].concat()).exits(0);
    assert!(ran.stdout.contains("PASS"), "{}", ran.stdout);
    // With the skill beside it, the arm without it has no gate, whatever it comes to.
    let args = scripted(&["run", "evals", "--arm", "with", "--arm", "without", "--case", "right", "--json"]);
    assert_eq!(project.run(&args).exits(0).json()["gates"][0]["value"], 1.0);
}

#[test]
fn both_arms_without_a_skill_do_not_pass() {
    let evals = EVALS
        .replace("skill: ../skills/gull\n", "")
        .replace("  - { id: wakes, prompt: speak up, activation: must }\n", "");
    let project = Project::new(&[("evals/gull.practicum.yaml", &evals), ("script.yaml", SCRIPT)]);
    let ran = project.run(&scripted(&["run", "evals", "--arm", "with", "--arm", "without"])).exits(2);
    assert!(ran.stderr.contains("names no skill"), "{}", ran.stderr);
    assert!(ran.stderr.contains("--skill") && ran.stderr.contains("--arm without"), "{}", ran.stderr);
    assert!(!project.path().join(".practicum/runs").exists(), "nothing was begun");
    project.run(&scripted(&["run", "evals", "--arm", "without"])).exits(0);
}

const COMMAND: &str = "---\ndescription: Speaks.\n---\n\nSay kee-ow to $ARGUMENTS.\n";

fn command(spec: &str) -> Project {
    let script = "\
practicum_script: 1
scenarios:
  - { when: /gull the, steps: [a command that nobody staged] }
  - { when: Who is at the harbour, steps: [nobody asked in words] }
  - { when: the harbour, steps: [kee-ow] }
";
    Project::new(&[
        (".claude/commands/gull.md", COMMAND),
        (".claude/commands/gull.eval.json", spec),
        ("script.yaml", script),
    ])
}

#[test]
fn without_the_skill_a_command_file_is_not_dropped_in_silence() {
    let spec = r#"{"test_args": "the harbour", "assertions": [{"id": "a", "type": "contains", "needle": "kee-ow"}]}"#;
    let project = command(spec);
    let args = scripted(&["run", ".claude/commands/gull.md", "--arm", "without"]);
    let ran = project.run(&args).exits(0);
    assert!(ran.stdout.contains("1 of 1 trial passed"), "{}", ran.stdout);

    // What the author calls the request in words comes first.
    let spec = spec.replacen('{', r#"{"user_prompt": "Who is at the harbour?", "#, 1);
    let project = command(&spec);
    let ran = project.run(&args).exits(0);
    assert!(ran.stdout.contains("0 of 1 trial passed, 1 failed"), "{}", ran.stdout);

    let bare = r#"{"assertions": [{"id": "a", "type": "contains", "needle": "kee-ow"}]}"#;
    let ran = command(bare).run(&args).exits(2);
    assert!(ran.stderr.contains("a bare command") && ran.stderr.contains("user_prompt"), "{}", ran.stderr);
}

#[test]
fn a_skill_that_is_not_staged_is_not_improved() {
    let project = project();
    let ran = project.run(&["improve", "skills/gull", "--arm", "without"]).exits(2);
    assert!(ran.stderr.contains("nothing to improve"), "{}", ran.stderr);
}

/// With both arms the second was dropped from cases about activation without a word.
#[test]
fn an_arm_that_a_case_does_not_have_is_not_dropped_without_a_note() {
    let project = project();
    let args = scripted(&["run", "evals", "--arm", "with", "--arm", "without", "--dry-run"]);
    let ran = project.run(&args).exits(0);
    let note = "run only with the skill, of suite gull: 1 case only about whether the skill is activated";
    assert!(ran.stderr.contains(note), "{}", ran.stderr);
    let ran = project.run(&scripted(&["run", "evals", "--arm", "with", "--dry-run"])).exits(0);
    assert!(!ran.stderr.contains("only with the skill"), "{}", ran.stderr);
}

/// Two agents of which one fails everything passed a gate together.
#[test]
fn a_bad_agent_does_not_hide_behind_a_good_one() {
    let evals = "\
practicum: 1
workspace: empty
gates: { pass_rate: 0.5 }
run: { agents: [good, bad] }
cases:
  - { id: a, prompt: alpha, checks: [{ contains: alpha }] }
  - { id: b, prompt: beta, checks: [{ contains: beta }] }
";
    let project = Project::new(&[("e.practicum.yaml", evals)]);
    project.write(
        "practicum.toml",
        "sandbox = \"off\"\n[agents.good]\ncommand = [\"/bin/echo\", \"{prompt}\"]\n[agents.bad]\ncommand = [\"/bin/echo\", \"no\"]\n",
    );
    let ran = project.run(&["run", ".", "--report", "md=r.md"]).exits(1);
    assert!(ran.stdout.contains("gate pass_rate of e with bad: 0.00"), "{}", ran.stdout);
    assert!(ran.stdout.contains("gate pass_rate of e with good: 1.00"), "{}", ran.stdout);
    let report = std::fs::read_to_string(project.path().join("r.md")).expect("a report");
    assert!(report.contains("e with bad"), "{report}");
    let again = project.run(&["grade", "latest", "--json"]).exits(1).json();
    assert_eq!(again["summary"]["gates"][0]["agent"], "bad", "{again}");
    // One agent alone needs no name.
    let alone = project.run(&["run", ".", "--agent", "good", "--json"]).exits(0).json();
    assert_eq!(alone["gates"].as_array().map(Vec::len), Some(1), "{alone}");
    assert!(alone["gates"][0].get("agent").is_none(), "{alone}");
}

/// Trials without the skill that have no verdict looked like failures.
#[test]
fn an_unscored_trial_without_the_skill_is_not_a_failure() {
    let project = project();
    project.write(
        "practicum.toml",
        "sandbox = \"off\"\nretries = 0\n[agents.half]\ncommand = [\"/bin/sh\", \"-c\", \"[ -d .claude/skills ] || find . -name SKILL.md | grep -q . || exit 7; echo kee-ow\"]\n",
    );
    let args = ["run", "evals", "--case", "right", "--agent", "half", "--arm", "with", "--arm", "without"];
    let ran = project.run(&args);
    let line = ran.stdout.lines().find(|line| line.contains(" right ")).unwrap_or_default();
    assert!(line.contains("without the skill not scored: "), "{}\n{}", ran.stdout, ran.stderr);
    assert!(!ran.stdout.contains("without the skill 0/"), "{}", ran.stdout);
}

/// Trials without an answer were shown as if they had failed, and had no annotation on GitHub.
#[test]
fn trials_without_the_skill_that_have_no_verdict_do_not_read_as_failed() {
    let project = project();
    let agent = "\
[ -n \"$(find . -name SKILL.md)\" ] || exit 7
echo '{\"type\":\"start\",\"schema_version\":1,\"skills\":[\"gull\"]}'
echo '{\"type\":\"text\",\"text\":\"kee-ow\"}'
echo '{\"type\":\"end\",\"ending\":\"finished\"}'
";
    project.write("agent.sh", agent);
    let path = project.path().join("agent.sh");
    let settings = format!(
        "sandbox = \"off\"\n[agents.own]\ncommand = [\"/bin/bash\", \"{}\", \"{{prompt}}\"]\ndecoder = \"practicum-jsonl\"\n",
        path.display()
    );
    project.write("practicum.toml", &settings);
    let args = ["run", "evals", "--agent", "own", "--case", "right", "--repeat", "2"];
    project.run(&[&args[..], &["--arm", "with", "--arm", "without"]].concat()).exits(3);
    let report = |format: &str| project.run(&["report", "--format", format]).exits(0).stdout;
    let page = report("html");
    assert!(page.contains("<small>without</small> not scored") && !page.contains("0/2"), "{page}");
    let annotations = report("github");
    assert_eq!(annotations.matches("::warning").count(), 2, "{annotations}");
    assert!(annotations.contains("exited with code 7%0Arun 2 with own, without the skill"), "{annotations}");
    assert!(!report("text").contains("without the skill 0/2"));
}

/// Lists its workspace and says nothing else.
const LISTING_AGENT: &str = r#"
echo '{"type":"start","schema_version":1}'
echo "{\"type\":\"text\",\"text\":\"$(find . -type f -printf '[%P]')\"}"
echo '{"type":"end","ending":"finished"}'
"#;

#[test]
fn without_the_skill_a_project_that_is_the_skill_is_not_shown() {
    let elsewhere = tempfile::tempdir().expect("a folder");
    let agent = elsewhere.path().join("agent.sh");
    std::fs::write(&agent, LISTING_AGENT).expect("written");
    let native = "practicum: 1\nskill: ..\nrun: { agents: [own] }\ncases:\n  - { id: x, prompt: Speak up, files: [{ from: given.md, to: given.md }], checks: [{ contains: '[given.md]' }] }\n";
    let project = Project::new(&[
        ("SKILL.md", SKILL),
        ("references/sounds.md", "kee-ow"),
        ("evals/given.md", "given"),
        ("evals/e.practicum.yaml", native),
    ]);
    let (path, decoder) = (agent.display(), "decoder = \"practicum-jsonl\"");
    let config = format!(
        "sandbox = \"off\"\n[agents.own]\ncommand = [\"/bin/bash\", \"{path}\", \"{{prompt}}\"]\n{decoder}\n"
    );
    project.write("practicum.toml", &config);
    for (arm, staged) in [("without", false), ("with", true)] {
        let ran = project.run(&["run", "evals", "--arm", arm, "--no-cache"]).exits(0);
        assert!(ran.stderr.contains("is itself the skill under test"), "{arm}: {}", ran.stderr);
        let run = std::fs::read_dir(project.path().join(".practicum/runs")).expect("runs").flatten();
        let latest = run.map(|run| run.path()).max().expect("a run").join("trials");
        let trial = std::fs::read_dir(latest).expect("trials").flatten().next().expect("a trial").path();
        let said = std::fs::read_to_string(trial.join("output.txt")).expect("an output");
        assert_eq!(said.contains("[.agents/skills/gull/references/sounds.md]"), staged, "{arm}: {said}");
        assert!(!said.contains("[SKILL.md]") && !said.contains("[references/"), "{arm}: {said}");
    }
}

/// What the arm without the skill gets of its text, it gets for nothing: the trial compares nothing.
#[test]
fn an_agent_that_finds_the_text_of_the_skill_elsewhere_is_no_baseline() {
    let evals = "\
practicum: 1
skill: ../skills/gull
workspace: empty
cases:
  - { id: reads, prompt: speak up, overlays: [../notes], checks: [{ contains: kee-ow }] }
  - { id: looks, prompt: look around, overlays: [../notes], checks: [{ contains: kee-ow }] }
  - { id: writes, prompt: write it down, overlays: [../notes], checks: [{ contains: kee-ow }] }
";
    let script = "\
practicum_script: 1
scenarios:
  - { when: speak up, steps: [{ tools: [{ name: Bash, input: { command: cat copy.md } }] }, kee-ow] }
  - { when: look around, steps: [{ tools: [{ name: Bash, input: { command: ls } }] }, kee-ow] }
  - { when: write it down, steps: [{ tools: [{ name: Bash, input: { command: 'echo Say kee-ow. | tee x.md' } }] }, kee-ow] }
";
    let project = Project::new(&[
        ("skills/gull/SKILL.md", SKILL),
        ("notes/copy.md", "Heard at the harbour:\nSay kee-ow.\n"),
        ("evals/gull.practicum.yaml", evals),
        ("script.yaml", script),
    ]);
    let summary = project.run(&scripted(&["run", "evals", "--arm", "without", "--json"])).json();
    for (case, id, scored) in [(0, "reads", false), (1, "looks", true), (2, "writes", true)] {
        let case = &summary["cases"][case];
        assert_eq!((&case["id"], &case["passed"]), (&id.into(), &u64::from(scored).into()), "{case}");
        assert_eq!(case["not_scored"], u64::from(!scored), "{case}");
    }
    let again = project.run(&["grade", "latest", "--json"]).json();
    assert_eq!(again["summary"]["cases"][0]["not_scored"], 1, "graded again, it is the same: {again}");
    let told = project.run(&["report", "latest"]).stdout;
    assert!(told.contains("used the skill gull, which this arm must not have"), "{told}");
}
