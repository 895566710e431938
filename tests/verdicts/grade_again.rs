//! What is taken from an earlier run, or graded again, says what a fresh run would say.

use serde_json::json;

use crate::common::{Project, Ran};

const SCRIPT: &str = "practicum_script: 1\nscenarios:\n  - { to: agent, steps: [kee-ow] }\n  - { to: judge, steps: [{ tools: [{ name: report_marks, input: { results: [{ id: loud, verdict: pass, weak: null, evidence: [kee-ow], reasoning: It is. }] } }] }] }\n";

fn judged() -> Project {
    let eval = "practicum: 1\nworkspace: empty\nrun: { agents: [builtin], script: script.yaml }\njudge: { model: claude-haiku-4-5 }\ncases:\n  - { id: a, prompt: One., checks: [{ contains: kee }, { id: loud, judge: It is loud. }] }\n";
    Project::new(&[("evals/e.practicum.yaml", eval), ("evals/script.yaml", SCRIPT)])
}

#[test]
fn what_an_earlier_judge_said_is_no_pass_of_a_run_without_a_judge() {
    let project = judged();
    let run = |more: &[&str]| project.run(&[&["run", "evals", "--sandbox", "off", "--json"], more].concat());
    run(&[]).exits(0);
    assert!(run(&[]).exits(0).stderr.contains("1 reuse, 0 run"));
    for more in [&["--no-judge"][..], &["--no-judge", "--no-cache"]] {
        let ran = run(more).exits(3);
        assert!(ran.stdout.contains("--no-judge was given"), "{more:?}\n{}", ran.stdout);
    }
    // Another number of votes is another question.
    assert!(!run(&["--judge-votes", "3"]).stderr.contains("1 reuse"));
    assert!(run(&[]).exits(0).stderr.contains("1 reuse, 0 run"));
}

/// Never activates a skill.
const LAZY: &str = r#"
echo '{"type":"start","schema_version":1,"skills":["gull"]}'
case "$1" in *kee*) echo '{"type":"skill","name":"gull"}' ;; esac
echo '{"type":"text","text":"Done."}'
echo '{"type":"end","ending":"finished"}'
"#;

/// Activates its skill when it is told to.
fn willing() -> String {
    LAZY.replace("*kee*)", "*kee* | *'Use the skill'*)")
}

fn birds(agent: &str) -> Project {
    let suite = json!({"name": "birds", "runs_per_case": 2, "skills": [{"name": "gull", "plugin": "birds",
        "test_cases": [{"prompt": "boats", "expectation": "should_not_activate"}]}]});
    let project = Project::new(&[
        (
            "plugins/birds/skills/gull/SKILL.md",
            "---\nname: gull\ndescription: Speaks like a gull. Use it for gulls.\n---\n\nkee-ow\n",
        ),
        ("suites/birds.json", &suite.to_string()),
        ("agent.sh", agent),
    ]);
    let agent = project.path().join("agent.sh");
    project.write(
        "practicum.toml",
        &format!(
            "sandbox = \"off\"\n[agents.own]\ncommand = [\"/bin/bash\", \"{}\", \"{{prompt}}\"]\ndecoder = \"practicum-jsonl\"\n",
            agent.display()
        ),
    );
    project
}

#[test]
fn a_run_without_a_probe_does_not_spare_later_runs_the_probe() {
    let project = birds(LAZY);
    let run = |more: &[&str]| {
        let args = ["run", "suites/birds.json", "--agent", "own", "--json"];
        project.run(&[&args[..], more].concat())
    };
    run(&[]).exits(3);
    run(&["--no-probe"]).exits(0);
    for _ in 0..2 {
        let ran = run(&[]).exits(3);
        assert_eq!(ran.json()["probes"][0]["fired"], false, "{}", ran.stdout);
        assert_eq!(ran.json()["totals"]["passed"], 0);
    }
    assert!(run(&["--no-probe"]).exits(0).stderr.contains("2 reuse, 0 run"));
}

#[test]
fn a_run_from_the_cache_does_not_hide_its_probe() {
    let project = birds(&willing());
    let run = |more: &[&str]| {
        let args = ["run", "suites/birds.json", "--agent", "own", "--report", "md=r.md", "--json"];
        project.run(&[&args[..], more].concat())
    };
    run(&["--no-probe"]).exits(0);
    // The stored trials have no probe, so that one is made; after that it is stored too.
    let made = run(&[]).exits(0);
    assert!(made.stderr.contains("2 reuse, 0 run") && made.stderr.contains("1 probe"), "{}", made.stderr);
    for _ in 0..2 {
        let again = run(&[]).exits(0);
        assert!(
            again.stderr.contains("2 reuse, 0 run") && !again.stderr.contains("1 probe"),
            "{}",
            again.stderr
        );
        assert_eq!(again.json()["probes"][0]["fired"], true, "{}", again.stdout);
        let page = std::fs::read_to_string(project.path().join("r.md")).expect("a report");
        assert!(page.contains("probe of gull with own: it can be activated"), "{page}");
    }
    assert!(run(&["--no-probe"]).exits(0).json()["probes"].is_null());
}

fn two_cases() -> Project {
    let project = Project::new(&[]);
    for (id, word) in [("a", "one"), ("b", "nothing like it")] {
        project.write(&format!("evals/{id}.yaml"), &skillet_eval(id, word));
    }
    project.write("script.yaml", "practicum_script: 1\nscenarios:\n  - { to: agent, steps: [one] }\n");
    project
}

fn skillet_eval(prompt: &str, word: &str) -> String {
    format!(
        "timestamp: 2026-03-02T09:15:00Z\nname: gull\nprompt: say {prompt}\nexpected: Says it.\n\
         assertions:\n  - {{ type: contains, value: {word} }}\n"
    )
}

const BUILTIN: [&str; 8] =
    ["run", "evals", "--agent", "builtin", "--script", "script.yaml", "--sandbox", "off"];

#[test]
fn a_failing_eval_that_was_removed_does_not_leave_a_pass() {
    let project = two_cases();
    project.run(&[&BUILTIN[..], &["--json"]].concat()).exits(1);
    for removed in ["renamed", "gone"] {
        let file = project.path().join("evals/b.yaml");
        match removed {
            "renamed" => std::fs::rename(&file, project.path().join("evals/c.yaml")).expect("renamed"),
            _ => std::fs::remove_file(project.path().join("evals/c.yaml")).expect("removed"),
        }
        let ran = project.run(&["grade", "latest"]).exits(1);
        assert!(
            ran.stderr.contains("b is no longer in the evals, so its checks are those of the run"),
            "{}",
            ran.stderr
        );
        assert_eq!(
            ran.stderr.contains("came into the evals after this run"),
            removed == "renamed",
            "{}",
            ran.stderr
        );
        assert!(ran.stdout.contains("no verdict changed"), "{}", ran.stdout);
    }
}

#[test]
fn an_answer_to_another_question_is_not_scored() {
    let project = two_cases();
    project.run(&BUILTIN).exits(1);
    project.write("evals/a.yaml", &skillet_eval("something else", "one"));
    let ran = project.run(&["grade", "latest", "--json"]).exits(1);
    let document = ran.json();
    assert_eq!(document["summary"]["totals"]["not_scored"], 3, "{document:#}");
    assert!(ran.stdout.contains("the prompt changed since; run it again"), "{}", ran.stdout);
    // Where nothing fails, the result is open.
    std::fs::remove_file(project.path().join("evals/b.yaml")).expect("removed");
    project.run(&[&BUILTIN[..], &["--json"]].concat()).exits(0);
    project.write("evals/a.yaml", &skillet_eval("a third thing", "one"));
    project.run(&["grade", "latest", "--json"]).exits(3);
}

#[test]
fn evals_that_a_text_cannot_answer_are_not_dropped() {
    let case = |id: &str, check: &str| {
        format!("practicum: 1\ncases:\n  - {{ id: {id}, prompt: p, checks: [{check}] }}\n")
    };
    let project = Project::new(&[
        ("evals/a.practicum.yaml", &case("a", "{ contains: one }")),
        ("evals/b.practicum.yaml", &case("b", "{ tool_used: Bash }")),
        ("said.txt", "one"),
    ]);
    let grade = ["grade", "--output", "said.txt", "--spec", "evals"];
    let ran = project.run(&grade).exits(3);
    assert!(ran.stdout.contains("b/") && ran.stdout.contains("only a run can show it"), "{}", ran.stdout);
    project.run(&[&grade[..], &["--case", "a"]].concat()).exits(0);
    let ran = project.run(&[&grade[..], &["--case", "a", "--case", "nope"]].concat()).exits(2);
    assert!(ran.stderr.contains("--case nope matches no case"), "{}", ran.stderr);
}

/// The record names its eval file by its place, so that a copy of the project was graded by the original's evals.
#[test]
fn a_copied_project_is_graded_by_its_own_evals() {
    let eval = |word: &str| {
        format!("practicum: 1\ncases:\n  - id: a\n    prompt: p\n    checks: [{{contains: {word}}}]\n")
    };
    let agent = "sandbox = \"off\"\n[agents.own]\ncommand = [\"/bin/echo\", \"done\"]\n";
    let project = Project::new(&[("o/practicum.toml", agent), ("o/e.practicum.yaml", &eval("done"))]);
    let practicum = |folder: &str, args: &[&str]| {
        let mut command = project.practicum(args);
        Ran::of(command.current_dir(project.path().join(folder)).output().expect("starts"))
    };
    practicum("o", &["run", "e.practicum.yaml", "--agent", "own", "--repeat", "1"]).exits(0);
    let copied =
        std::process::Command::new("cp").args(["-r", "o", "copy"]).current_dir(project.path()).status();
    assert!(copied.expect("copied").success());
    project.write("copy/e.practicum.yaml", &eval("never"));
    practicum("copy", &["grade", "latest"]).exits(1);
    practicum("o", &["grade", "latest"]).exits(0);
}

/// The threshold that the run was decided by was forgotten, so that grading it again gave another verdict.
#[test]
fn grading_again_does_not_forget_the_threshold_of_the_command_line() {
    let agent = r#"n=$(cat "$0.n" 2>/dev/null || echo 0); echo $((n + 1)) > "$0.n"
echo '{"type":"start","schema_version":1,"skills":["x"]}'
[ "$n" = 0 ] || echo '{"type":"skill","name":"x"}'
echo '{"type":"text","text":"a"}'; echo '{"type":"end","ending":"finished"}'
"#;
    let project = Project::new(&[
        ("agent.sh", agent),
        (".claude/skills/x/SKILL.md", "---\nname: x\ndescription: All about birds.\n---\n\nBirds.\n"),
        (".claude/skills/x/SKILL.eval.json", r#"{"trigger_tests": {"should_trigger": ["want birds"]}}"#),
    ]);
    let script = project.path().join("agent.sh");
    let toml = format!(
        "sandbox = \"off\"\n[agents.own]\ncommand = [\"/bin/sh\", \"{}\", \"{{prompt}}\"]\ndecoder = \"practicum-jsonl\"\nskills_dir = \".agents/skills\"\n",
        script.display()
    );
    project.write("practicum.toml", &toml);
    let run = ["run", "--agent", "own", "--no-probe", "--repeat", "4", "-j", "1"];
    project.run(&[&run[..], &["--trigger-threshold", "0.5"]].concat()).exits(0);
    project.run(&["grade", "latest"]).exits(0);
    project.run(&["grade", "latest"]).exits(0);
}

#[test]
fn an_answer_to_another_question_is_not_scored_the_second_time_either() {
    let project = two_cases();
    let run = ["run", "evals", "--agent", "builtin", "--script", "script.yaml", "--sandbox", "off"];
    project.run(&run).exits(1);
    for id in ["a", "b"] {
        project.write(&format!("evals/{id}.yaml"), &skillet_eval("something else", "one"));
    }
    for _ in 0..3 {
        let again = project.run(&["grade", "latest"]).exits(3);
        assert!(again.stderr.contains("case a asks something else today"), "{}", again.stderr);
    }
}

/// A project in which a skill, a setup and a script that the setup runs can be changed.
fn with_setup() -> Project {
    let project = two_cases();
    project.write("skills/gull/SKILL.md", "---\nname: gull\ndescription: Speaks like a gull.\n---\n\nkee\n");
    project.write("tool.sh", "touch made\n");
    let tool = project.path().join("tool.sh");
    let eval = format!("{}setup: bash {}\nteardown: 'true'\n", skillet_eval("a", "one"), tool.display());
    project.write("evals/a.yaml", &eval);
    let eval = format!(
        "practicum: 1\nname: n\nskill: ../skills/gull\nworkspace: empty\nrun: {{ agents: [builtin], system_prompt: Be a gull. }}\n\
         cases:\n  - {{ id: c, prompt: say it, setup: bash {}, files: [given.txt], checks: [{{ contains: one }}] }}\n",
        tool.display()
    );
    project.write("native/n.practicum.yaml", &eval);
    project.write("native/given.txt", "one\n");
    project.write("native/other.txt", "one\n");
    project
}

#[test]
fn results_of_an_old_skill_or_setup_do_not_pass_for_those_of_the_new() {
    let change = |project: &Project, path: &str, from: &str, to: &str| {
        let text = std::fs::read_to_string(project.path().join(path)).expect("a text");
        assert!(text.contains(from), "{path}: {text}");
        project.write(path, &text.replace(from, to));
    };
    let skill = ("skills/gull/SKILL.md", "kee", "ow", "skill gull has changed since this run");
    let tool = ("tool.sh", "touch", "echo", "code of this run has changed since");
    let files = "the setup or the files of case";
    for (evals, path, from, to, message) in [
        ("evals", skill.0, skill.1, skill.2, skill.3),
        ("native", skill.0, skill.1, skill.2, skill.3),
        ("evals", tool.0, tool.1, tool.2, tool.3),
        ("native", tool.0, tool.1, tool.2, tool.3),
        ("evals", "evals/a.yaml", "setup: bash", "setup: echo", files),
        ("native", "native/n.practicum.yaml", "setup: bash", "setup: echo", files),
        ("native", "native/n.practicum.yaml", "given.txt", "other.txt", files),
        ("native", "native/given.txt", "one", "two", files),
        ("native", "native/n.practicum.yaml", "a gull", "a duck", "the system prompt of n has changed"),
    ] {
        let project = with_setup();
        let run = ["run", evals, "--skill", "skills/gull", "--agent", "builtin", "--script", "script.yaml"];
        let ran = project.run(&[&run[..], &["--sandbox", "off", "--trust", "--no-probe"]].concat());
        assert!(ran.code < 2, "{}\n{}", ran.stdout, ran.stderr);
        change(&project, "evals/a.yaml", "teardown: 'true'", "teardown: 'false'");
        let same = project.run(&["grade", "latest"]);
        assert!(!same.stderr.contains("changed since"), "{evals}: {}", same.stderr);
        change(&project, path, from, to);
        // What is graded from a regraded run is still of the old skill or setup.
        for _ in 0..2 {
            let again = project.run(&["grade", "latest"]);
            assert!(again.stderr.contains(message), "{evals} {path}: {}", again.stderr);
        }
    }
}
