//! The flags of `run` that choose what runs and what counts.

use crate::common::{Project, Ran};
use serde_json::Value;

/// Says what it was told and what it can see; fails or never ends on demand.
const AGENT: &str = "\
case \"$1\" in
  *hang*) sleep 60 ;;
  *crash*) exit 3 ;;
esac
echo \"told: $1\"
echo \"SEEN=$SEEN\"
";

fn project(cases: &str) -> Project {
    let project = Project::new(&[("agent.sh", AGENT)]);
    project.write(
        "evals/e.practicum.yaml",
        &format!("practicum: 1\nworkspace: empty\nrun: {{agents: [shell]}}\ncases:\n{cases}"),
    );
    let path = project.path().join("agent.sh");
    let toml = format!(
        "[modes]\ngentle = \"Perhaps a skill would help.\"\n[agents.shell]\ncommand = [\"/bin/bash\", \"{}\", \"{{prompt}}\"]\n",
        path.display()
    );
    project.write("practicum.toml", &toml);
    project
}

fn cases(count: usize) -> String {
    (0..count)
        .map(|n| format!("  - {{id: case-{n}, prompt: 'p{n}', checks: [{{contains: 'p{n}'}}]}}\n"))
        .collect()
}

fn ids(summary: &Value) -> Vec<String> {
    let cases = summary["cases"].as_array().expect("cases");
    cases.iter().map(|case| case["id"].as_str().expect("an id").to_owned()).collect()
}

#[test]
fn shards_are_the_whole_without_overlap() {
    let project = project(&cases(12));
    let mut all = Vec::new();
    for part in ["1/3", "2/3", "3/3"] {
        all.extend(ids(&project.run(&["run", "evals", "--shard", part, "--json"]).exits(0).json()));
    }
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 12);
    project.run(&["run", "evals", "--shard", "4/3"]).exits(2);
}

#[test]
fn case_globs_choose_and_nothing_chosen_is_an_error() {
    let project = project(&cases(12));
    let summary = project.run(&["run", "evals", "--case", "case-1*", "--json"]).exits(0).json();
    assert_eq!(ids(&summary), ["case-1", "case-10", "case-11"]);
    let ran = project.run(&["run", "evals", "--case", "nothing"]).exits(2);
    assert!(ran.stderr.contains("--case nothing matches no case"), "{}", ran.stderr);
}

#[test]
fn fail_fast_starts_no_more() {
    let project =
        project(&format!("  - {{id: bad, prompt: x, checks: [{{contains: never}}]}}\n{}", cases(20)));
    let summary = project.run(&["run", "evals", "--fail-fast", "-j", "1", "--json"]).exits(1).json();
    assert_eq!(summary["totals"]["trials"], 1);
}

/// Such as the tests of a server, which want the port that the next agent's wants.
#[test]
fn what_checks_run_has_the_place_of_an_agent() {
    let project = project("");
    let place = project.path().join("place").display().to_string();
    let alone = format!("mkdir {place} && sleep 0.05 && rmdir {place}");
    project.write("agent.sh", &format!("{alone} && echo alone\n"));
    let case = |n: usize| {
        format!("  - {{id: c{n}, prompt: p, checks: [{{contains: alone}}, {{command: '{alone}'}}]}}\n")
    };
    let cases: String = (0..8).map(case).collect();
    project.write(
        "evals/e.practicum.yaml",
        &format!("practicum: 1\nworkspace: empty\nrun: {{agents: [shell]}}\ncases:\n{cases}"),
    );
    let args = ["run", "evals", "-j", "1", "--sandbox", "off", "--trust", "--json"];
    assert_eq!(project.run(&args).exits(0).json()["totals"]["passed"], 8);
}

#[test]
fn unscored_trials_are_forgiven_only_as_far_as_allowed() {
    let project =
        project(&format!("  - {{id: broken, prompt: crash, checks: [{{contains: x}}]}}\n{}", cases(3)));
    project.run(&["run", "evals"]).exits(3);
    project.run(&["run", "evals", "--allow-unscored", "0.2"]).exits(3);
    let summary = project.run(&["run", "evals", "--allow-unscored", "0.25", "--json"]).exits(0).json();
    assert_eq!(summary["totals"]["not_scored"], 1, "and they are still counted");
}

#[test]
fn a_variable_reaches_the_agent_only_by_name() {
    let project = project("  - {id: sees, prompt: p, checks: [{contains: SEEN=yes}]}\n");
    let run = |more: &[&str]| {
        let mut command = project.practicum(&[&["run", "evals", "--no-cache"], more].concat());
        Ran::of(command.env("SEEN", "yes").output().expect("starts"))
    };
    run(&[]).exits(1);
    run(&["--env", "SEEN"]).exits(0);
}

#[test]
fn modes_are_said_before_the_prompt_where_there_is_no_system_prompt() {
    let project = project("  - {id: m, prompt: hello, checks: [{contains: EVALUATE each skill}]}\n");
    project.run(&["run", "evals"]).exits(1);
    project.run(&["run", "evals", "--mode", "forced"]).exits(0);
    let ran = project.run(&["run", "evals", "--mode", "nope"]).exits(2);
    assert!(ran.stderr.contains("gentle"), "{}", ran.stderr);
    project.write("evals/e.practicum.yaml", "practicum: 1\nworkspace: empty\nrun: {agents: [shell], mode: gentle}\ncases:\n  - {id: m, prompt: hello, checks: [{contains: Perhaps}]}\n");
    let summary = project.run(&["run", "evals", "--json"]).exits(0).json();
    assert_eq!(summary["cases"][0]["mode"], "gentle");
}

#[test]
fn only_one_kind_of_case() {
    let project = project(
        "  - {id: work, prompt: p, checks: [{contains: told}]}\n  - {id: quiet, prompt: q, activation: must_not}\n",
    );
    project.write("s/SKILL.md", "---\nname: s\ndescription: d\n---\n");
    let eval = std::fs::read_to_string(project.path().join("evals/e.practicum.yaml")).expect("evals");
    project
        .write("evals/e.practicum.yaml", &eval.replace("workspace: empty", "workspace: empty\nskill: ../s"));
    // Plain text does not show activations, so it cannot show that there was none.
    for (only, code, expected) in [("artifact", 0, "work"), ("activation", 3, "quiet")] {
        let summary = project.run(&["run", "evals", "--only", only, "--json"]).exits(code).json();
        assert_eq!(ids(&summary), [expected]);
    }
}

#[test]
fn a_gate_about_what_was_left_out_is_not_asked() {
    let cases = "  - {id: work, prompt: p, checks: [{contains: told}]}\n  - {id: rated, prompt: p, checks: [{judge: It is kind.}]}\n";
    let names = |summary: &Value| {
        let gates = summary["gates"].as_array().expect("gates").iter();
        gates.map(|gate| gate["name"].as_str().expect("a name").to_owned()).collect::<Vec<_>>()
    };
    for (gates, more, code, expected) in [
        ("mean_score: 0.5, pass_rate: 1", &[][..], 0, &["pass_rate"][..]),
        ("mean_score: 0.5", &[], 0, &["all_cases_pass"]),
        // The user's own word is asked, and has no answer.
        ("pass_rate: 1", &["--gate", "mean_score=0.5"], 3, &["pass_rate", "mean_score"]),
        // What no case of the file could ever measure was not left out by the user.
        ("pass_rate: 1, recall: 1", &[], 3, &["pass_rate", "recall"]),
    ] {
        let project = project(cases);
        let eval = std::fs::read_to_string(project.path().join("evals/e.practicum.yaml")).expect("evals");
        let gated = eval.replace("workspace: empty", &format!("workspace: empty\ngates: {{{gates}}}"));
        project.write("evals/e.practicum.yaml", &gated);
        let usual = ["run", "evals", "--case", "work", "--json"];
        let summary = project.run(&[&usual, more].concat()).exits(code).json();
        assert_eq!(names(&summary), expected, "{gates}");
    }
}

#[test]
fn a_suite_of_which_nothing_was_wanted_fails_no_gate() {
    let project = project("  - {id: work, prompt: p, checks: [{contains: told}]}\n");
    let eval = std::fs::read_to_string(project.path().join("evals/e.practicum.yaml")).expect("evals");
    let gated = eval.replace("workspace: empty", "workspace: empty\ngates: {pass_rate: 1}");
    project.write("evals/e.practicum.yaml", &gated);
    project.write("evals/other.practicum.yaml", &gated.replace("work,", "other,"));
    let summary = project.run(&["run", "evals", "--case", "work", "--json"]).exits(0).json();
    assert_eq!(summary["gates"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_trigger_query_passes_by_its_rate() {
    let eval = "practicum: 1\nworkspace: empty\nskill: ../s\nrun: {agents: [builtin], repeat: 2}\ncases:\n  - {id: q, prompt: ask, activation: must, pass_when: fire_rate}\n";
    let script = "practicum_script: 1\nscenarios:\n  - when: ask\n    steps:\n      - tools: [{name: Skill, input: {skill: s}}]\n      - Done.\n";
    let project = Project::new(&[
        ("s/SKILL.md", "---\nname: s\ndescription: d\n---\n"),
        ("evals/e.practicum.yaml", eval),
        ("script.yaml", script),
    ]);
    let run = |threshold: &str| {
        project.run(&["run", "evals", "--script", "script.yaml", "--trigger-threshold", threshold])
    };
    run("1.0").exits(0);
    project.write(
        "script.yaml",
        "practicum_script: 1\nscenarios:\n  - when: ask\n    steps: [No skill needed.]\n",
    );
    run("0.5").exits(1);
    run("0.4").exits(1);
}

#[test]
fn doctor_tells_what_is_there_and_how_to_mend_what_is_not() {
    let project = project(&cases(1));
    let ran = project.run(&["doctor"]).exits(0);
    for part in ["sandbox: ", "limits of trials: by "] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    for part in [
        "✗ agent claude",
        "install it",
        "✓ agent builtin: practicum",
        "✓ agent shell",
        "set ANTHROPIC_API_KEY",
        "disk:",
    ] {
        assert!(ran.stdout.contains(part), "{part}\n{}", ran.stdout);
    }
}

/// One of the project's own is not started at all: it might set to work.
#[test]
fn doctor_waits_for_no_agent_and_leaves_none_running() {
    use std::os::unix::fs::PermissionsExt;
    let project = project(&cases(1));
    let log = project.path().join("log");
    for (name, script) in [
        ("agent.sh", format!("#!/bin/sh\necho own >> {}\n", log.display())),
        ("claude", format!("#!/bin/sh\nsleep 330 &\necho $$ $! >> {}\nsleep 331\n", log.display())),
    ] {
        project.write(name, &script);
        let path = project.path().join(name);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("a program");
    }
    let agent = project.path().join("agent.sh").display().to_string();
    project.write("practicum.toml", &format!("[agents.own]\ncommand = [\"{agent}\"]\n"));
    let mut command = project.practicum(&["doctor"]);
    let ran = Ran::of(
        command
            .env("PATH", crate::common::path_with(&project.path().join("claude")))
            .output()
            .expect("starts"),
    );
    let message = ran.exits(0).stdout;
    assert!(message.contains("✓ agent claude: version unknown, at "), "{message}");
    assert!(message.contains(&format!("✓ agent own: {agent}\n")), "{message}");
    let started = std::fs::read_to_string(&log).expect("one was");
    assert_eq!(started.lines().count(), 1, "{started}");
    for process in started.split_whitespace() {
        let process = process.parse().ok().and_then(rustix::process::Pid::from_raw).expect("a number");
        assert!(rustix::process::test_kill_process(process).is_err(), "{process:?} is left");
    }
}

#[test]
fn one_prompt_can_be_tried_without_an_eval_file() {
    let script = "practicum_script: 1\nscenarios:\n  - when: greet\n    steps:\n      - tools: [{name: Skill, input: {skill: s}}]\n      - Ahoy.\n  - when: sum\n    steps: ['4']\n";
    let project =
        Project::new(&[("s/SKILL.md", "---\nname: s\ndescription: d\n---\n"), ("script.yaml", script)]);
    for (prompt, expect, code) in [
        ("greet me", "must", 0),
        ("greet me", "should_not", 1),
        ("a sum", "must-not", 0),
        ("a sum", "must", 1),
        ("a sum", "acceptable", 0),
    ] {
        let args = ["try", prompt, "--skill", "s", "--expect", expect, "--runs", "2", "--agent", "builtin"];
        let ran = project.run(&[&args[..], &["--script", "script.yaml", "--json"]].concat()).exits(code);
        assert_eq!(ran.json()["totals"]["trials"], 2, "{prompt} {expect}");
    }
    project.run(&["try", "x", "--skill", "nowhere"]).exits(2);
}

#[test]
fn a_command_check_runs_only_with_trust() {
    let project = project("  - {id: c, prompt: p, checks: [{command: 'test -d .'}]}\n");
    let ran = project.run(&["run", "evals"]).exits(2);
    assert!(ran.stderr.contains("--trust"), "{}", ran.stderr);
    project.run(&["run", "evals", "--trust"]).exits(0);
}

#[test]
fn a_gate_by_name_overrides_and_adds() {
    let project =
        project(&format!("  - {{id: bad, prompt: x, checks: [{{contains: never}}]}}\n{}", cases(3)));
    let gates = |more: &[&str], code: i32| {
        let ran = project.run(&[&["run", "evals", "--json"], more].concat()).exits(code);
        let row = |gate: &Value| format!("{} {} {}", gate["name"], gate["threshold"], gate["ok"]);
        ran.json()["gates"].as_array().expect("gates").iter().map(row).collect::<Vec<String>>()
    };
    assert_eq!(gates(&[], 1), ["\"all_cases_pass\" 1.0 false"]);
    let lenient = ["--gate", "all_cases_pass=0.5", "--gate", "pass_rate=0.75"];
    assert_eq!(gates(&lenient, 0), ["\"all_cases_pass\" 0.5 true", "\"pass_rate\" 0.75 true"]);
    let strict = [&lenient[..], &["--gate", "pass_rate=0.8"]].concat();
    assert_eq!(gates(&strict, 1), ["\"all_cases_pass\" 0.5 true", "\"pass_rate\" 0.8 false"]);
    let unmeasured = ["--gate", "all_cases_pass=0", "--gate", "f1=0.5"];
    assert_eq!(gates(&unmeasured, 3), ["\"all_cases_pass\" 0.0 true", "\"f1\" 0.5 false"]);

    let ran =
        project.run(&["run", "evals", "--gate", "pass_rate=0.7", "--gate", "all_cases_pass=0"]).exits(0);
    assert!(ran.stdout.contains("gate pass_rate of e: 0.75") && ran.stdout.contains("(needs 0.70) holds"));
    assert!(ran.stdout.contains("PASS"), "{}", ran.stdout);
    // Gates that nothing could fail are none.
    for taken_back in ["all_cases_pass=0", "pass_rate=0"] {
        let gates = ["--gate", "all_cases_pass=0", "--gate", taken_back];
        let ran = project.run(&[&["run", "evals"], &gates[..]].concat()).exits(0);
        assert!(ran.stdout.contains("NO GATE") && !ran.stdout.contains("PASS"), "{}", ran.stdout);
        let comment = project.run(&["report", "--format", "github-comment"]).exits(0).stdout;
        assert!(comment.contains("no gate covers the trials that failed"), "{comment}");
        let listed = project.run(&["runs"]).exits(0).stdout;
        assert!(listed.contains("no gate"), "{listed}");
    }
    let ran = project.run(&["run", "evals", "--gate", "pas_rate=0.7"]).exits(2);
    assert!(ran.stderr.contains("did you mean \"pass_rate\"?"), "{}", ran.stderr);
    let ran = project.run(&["try", "x", "--skill", "s", "--gate", "f1=2"]).exits(2);
    assert!(ran.stderr.contains("between 0 and 1"), "{}", ran.stderr);
}

#[test]
fn a_wrong_value_is_answered_with_what_would_be_right() {
    let project = project(&cases(1));
    let rows: &[(&[&str], i32, &str)] = &[
        (&["--agent", "shel"], 2, "there is no agent \"shel\"; did you mean \"shell\"?"),
        (&["--agent", "claude"], 3, "practicum doctor shows which are installed"),
        (&["--arm", "both"], 2, "--arm both: there is no arm \"both\"; there are with and without"),
        (&["--timeout", "5min"], 2, "--timeout 5min: it must be a number of seconds, or like"),
        (&["--grading-provider", "x"], 2, "--grading-provider x: it must be one of anthropic"),
        (&["--judge-votes", "2"], 2, "--judge-votes 2: votes must be odd"),
        (&["--max-cost", "-1"], 2, "--max-cost -1: it must be an amount of USD"),
        (&["--env", "SEEN=1"], 2, "SEEN=… practicum run --env SEEN"),
        (&["--case", "zz*", "--only", "artifact"], 2, "--case zz* matches no case"),
        (&["--resume", "evals"], 2, "--resume needs a run, and evals is not one"),
    ];
    for (args, code, words) in rows {
        let ran = project.run(&[&["run", "evals"], *args].concat()).exits(*code);
        assert!(ran.stderr.contains(words), "{args:?}\n{}", ran.stderr);
    }
    // Before the plan is shown, and without running anything.
    for args in [["--sandbox", "on"], ["--retries", "x"]] {
        let ran = project.run(&[&["run", "evals"], &args[..]].concat()).exits(2);
        assert!(!ran.stderr.contains("plan:"), "{}", ran.stderr);
    }
    let mut command = project.practicum(&["run", "evals"]);
    let ran = Ran::of(command.env("PRACTICUM_REPEAT", "0").output().expect("starts")).exits(2);
    assert!(ran.stderr.contains("PRACTICUM_REPEAT=0: it must be"), "{}", ran.stderr);
}

#[test]
fn a_case_knows_best_how_long_it_takes() {
    let project = project(
        "  - {id: own, prompt: p, timeout: 30s, checks: [{contains: p}]}\n  - {id: not, prompt: p, checks: [{contains: p}]}\n",
    );
    project.write("agent.sh", "sleep 1.5\necho \"$1\"\n");
    let ran = project.run(&["run", "evals", "--timeout", "1s", "--json"]).exits(3);
    assert!(ran.stderr.contains("at most 30s each"), "{}", ran.stderr);
    let endings: Vec<Value> =
        ran.json()["cases"].as_array().expect("cases").iter().map(|case| case["endings"].clone()).collect();
    assert_eq!(endings, [serde_json::json!({"finished": 1}), serde_json::json!({"timed_out": 1})]);
    let report = project.run(&["report", "--format", "md"]).stdout;
    assert!(report.contains("at most 1s each, unless the case says otherwise"), "{report}");
}

#[test]
fn an_empty_part_of_a_whole_is_no_error() {
    let project = project(&cases(1));
    let codes: Vec<i32> =
        (1..=3).map(|part| project.run(&["run", "evals", "--shard", &format!("{part}/3")]).code).collect();
    assert_eq!(codes, [0; 3]);
    project.only_run();
    project.run(&["run", "evals", "--shard", "1/3", "--case", "zz"]).exits(2);
}

/// Each of them has its own trials, rooms and gates, also when they are graded again.
#[test]
fn suites_of_one_name_are_told_apart_by_their_folders() {
    let project = project(&cases(1));
    for (skill, wanted) in [("north", "told"), ("south", "absent")] {
        let check = format!("  - {{id: one, prompt: p, checks: [{{contains: {wanted}}}]}}\n");
        let eval =
            format!("practicum: 1\nworkspace: empty\nrun: {{agents: [shell], repeat: 2}}\ncases:\n{check}");
        project.write(&format!("{skill}/evals/basic.practicum.yaml"), &eval);
    }
    let ran = project.run(&["run", "north", "south", "--json"]).exits(1);
    assert!(ran.stderr.contains("2 suites are called basic"), "{}", ran.stderr);
    let counts = |summary: &Value| -> Vec<(String, u64, u64)> {
        let cases = summary["cases"].as_array().expect("cases");
        let count = |case: &Value, key: &str| case[key].as_u64().expect("a number");
        let row = |case: &Value| (case["suite"].to_string(), count(case, "passed"), count(case, "failed"));
        cases.iter().map(row).collect()
    };
    let expected = [("\"north/basic\"".to_owned(), 2, 0), ("\"south/basic\"".to_owned(), 0, 2)];
    assert_eq!(counts(&ran.json()), expected);
    let again = project.run(&["grade", "latest", "--json"]).exits(1).json();
    assert_eq!(counts(&again["summary"]), expected);
}
