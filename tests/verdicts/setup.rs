//! Setup and teardown scripts: what they leave unmeasured is never a pass.

use std::process::Command;

use serde_json::json;

use crate::common::{Project, Ran};

/// One case that passes, and others whose setup needs a tool that may be missing.
const EVALS: &str = "\
practicum: 1
workspace: empty
run: { agents: [own] }
cases:
  - { id: plain, prompt: p, checks: [{ contains: done }] }
  - { id: first, prompt: p, setup: 'tool', checks: [{ contains: done }] }
  - { id: second, prompt: p, setup: 'tool', checks: [{ contains: done }] }
";

fn project(evals: &str) -> Project {
    let project = Project::new(&[("evals/e.practicum.yaml", evals)]);
    let agent = "[agents.own]\ncommand = [\"/bin/bash\", \"-c\", \"echo done\"]\n";
    project.write("practicum.toml", &format!("sandbox = \"off\"\n{agent}"));
    project
}

/// Runs practicum with a terminal of its own, at which somebody answers its question.
fn answered(project: &Project, answer: &str, args: &[&str]) -> Ran {
    const AT_A_TERMINAL: &str = "
import os, pty, sys
answer, program = sys.argv[1], sys.argv[2:]
child, terminal = pty.fork()
if child == 0:
    os.execv(program[0], program)
shown, asked = b'', False
while True:
    try:
        more = os.read(terminal, 4096)
    except OSError:
        break
    if not more:
        break
    shown += more
    if not asked and b'[y = yes' in shown and shown.endswith(b'] '):
        os.write(terminal, answer.encode() + b'\\n')
        asked = True
sys.stdout.buffer.write(shown)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
";
    let mut command = Command::new("python3");
    command.args(["-c", AT_A_TERMINAL, answer, env!("CARGO_BIN_EXE_practicum")]).args(args);
    command.current_dir(project.path()).env("HOME", project.path()).env("CI", "true");
    command.env("PRACTICUM_TRUST", "settings");
    Ran::of(command.output().expect("python3 starts"))
}

/// A run in which most setups failed said `PASS 1 of 20 trials passed, 19 not scored`.
#[test]
fn a_skipped_setup_is_not_a_pass() {
    let project = project(EVALS);
    let reports = ["junit", "md", "html", "github", "github-comment", "csv", "json", "text"];
    let mut args = vec!["run", "evals", "--trust"];
    let orders: Vec<String> = reports.iter().map(|name| format!("{name}=out.{name}")).collect();
    orders.iter().for_each(|order| args.extend(["--report", order]));
    let ran = project.run(&args).exits(3);
    assert!(ran.stdout.contains("INCOMPLETE  1 of 3 trials passed, 2 not scored"), "{}", ran.stdout);
    let why = "tool: command not found";
    assert!(ran.stdout.contains(why), "why a setup failed: {}", ran.stdout);
    assert!(ran.stdout.contains("practicum run --resume 2"), "how to go on: {}", ran.stdout);
    for report in reports {
        let text = std::fs::read_to_string(project.path().join(format!("out.{report}"))).expect("a report");
        assert!(text.contains(why), "{report}: {text}");
        assert!(!text.contains('✅') && !text.contains("PASS"), "{report}: {text}");
    }
    let junit = std::fs::read_to_string(project.path().join("out.junit")).expect("a report");
    assert!(junit.contains("errors=\"2\"") && junit.contains("skipped=\"0\""), "{junit}");
    let summary: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(project.path().join("out.json")).expect("a report"))
            .expect("JSON");
    assert_eq!((&summary["ok"], &summary["exit"]), (&false.into(), &3.into()));
    assert_eq!(summary["gates"][0]["ok"], false);

    let shown = project.run(&["show", "latest", "first"]).exits(0).stdout;
    assert!(shown.contains(why), "{shown}");
    let badge = project.run(&["badge"]).exits(0).stdout;
    assert!(badge.contains("incomplete") && !badge.contains("#2e7d32"), "{badge}");
    let graded = project.run(&["grade", "latest"]).exits(3).stdout;
    assert!(graded.contains("INCOMPLETE"), "{graded}");
    let allowed = project.run(&["run", "evals", "--trust", "--allow-unscored", "0.7", "-q"]).exits(0).stdout;
    assert!(allowed.contains("PASS"), "the user may allow it: {allowed}");
}

#[test]
fn what_was_skipped_runs_once_its_tool_is_there() {
    let project = project(
        &EVALS.replace("'tool'", "'cat \"$TOOL_FILE\" || cat /PLACE/tool'").replace("/PLACE", "ROOT"),
    );
    let root = project.path().display().to_string();
    let evals = std::fs::read_to_string(project.path().join("evals/e.practicum.yaml")).expect("evals");
    project.write("evals/e.practicum.yaml", &evals.replace("ROOT", &root));
    project.run(&["run", "evals", "--trust", "-q"]).exits(3);
    project.write("tool", "here");
    let ran = project.run(&["run", "--resume", "-q"]).exits(0);
    assert!(ran.stdout.contains("PASS  3 of 3 trials passed"), "{}", ran.stdout);
}

/// Also where a rate over several runs decides the case.
#[test]
fn a_query_of_which_no_run_began_is_not_a_pass() {
    let evals = "\
practicum: 1
skill: ../gull
workspace: empty
run: { agents: [own], repeat: 3 }
cases:
  - { id: plain, prompt: p, checks: [{ contains: done }] }
  - { id: query, prompt: p, setup: 'tool', activation: must_not, pass_when: { fire_rate: 0.5 } }
";
    let project = project(evals);
    project.write("gull/SKILL.md", "---\nname: gull\ndescription: Speaks.\n---\nkee-ow\n");
    let ran = project.run(&["run", "evals", "--trust", "--no-probe", "-q"]).exits(3);
    assert!(ran.stdout.contains("? query"), "{}", ran.stdout);
}

#[test]
fn declined_trust_runs_nothing() {
    let project = project(EVALS);
    for answer in ["n", "", "what?"] {
        let ran = answered(&project, answer, &["run", "evals", "-q"]).exits(2);
        assert!(ran.stdout.contains("nothing was run") && !ran.stdout.contains("PASS"), "{}", ran.stdout);
    }
    assert!(!project.path().join(".practicum/runs").exists(), "nothing was started");
}

#[test]
fn the_rest_without_its_scripts_is_incomplete() {
    let project = project(EVALS);
    let ran = answered(&project, "s", &["run", "evals", "-q"]).exits(3);
    assert!(
        ran.stdout.contains("INCOMPLETE") && ran.stdout.contains("1 of 3 trials passed"),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.contains("its scripts were not trusted"), "{}", ran.stdout);
    answered(&project, "y", &["run", "evals", "-q"]).exits(3);
}

#[test]
fn trust_is_asked_only_for_selected_cases() {
    let project = project(EVALS);
    project.run(&["run", "evals", "--case", "plain", "-q"]).exits(0);
    let refused = project.run(&["run", "evals", "--case", "first", "-q"]).exits(2).stderr;
    assert!(refused.contains("hold 1 script that"), "{refused}");
}

#[test]
fn a_failed_teardown_is_told_in_the_run() {
    let evals = EVALS.replace("setup: 'tool'", "teardown: 'echo it broke >&2; exit 4'");
    let project = project(&evals);
    let ran = project.run(&["run", "evals", "--trust"]).exits(0);
    assert!(ran.stderr.contains("note: first #1: teardown failed: it exited with code 4"), "{}", ran.stderr);
    assert!(ran.stdout.contains("the teardown script failed in 2 trials: first of e"), "{}", ran.stdout);
    let shown = project.run(&["show", "latest", "first"]).exits(0).stdout;
    assert!(shown.contains("it broke"), "{shown}");
}

/// The judge's missing key was reported only after every agent had run and been paid for.
#[test]
fn a_missing_judge_is_told_before_any_agent_runs() {
    let judged = EVALS.replace("{ contains: done }", "{ judge: It says that it is done. }");
    let judged = judged.replace("setup: 'tool', ", "");
    let project = project(&judged);
    for extra in [&[][..], &["--max-cost", "5"], &["--transport", "cli"], &["--judge-model", "gpt-5.4"]] {
        let ran = project.run(&[&["run", "evals", "-q"], extra].concat()).exits(2);
        assert!(ran.stderr.contains("nothing was started"), "{extra:?}: {}", ran.stderr);
    }
    assert!(!project.path().join(".practicum/runs").exists(), "no agent was run");
    // What no model decides needs no key.
    project.run(&["run", "evals", "-q", "--no-judge"]).exits(3);
    let graded = project.run(&["grade", "latest"]).exits(2);
    assert!(graded.stderr.contains("nothing was started"), "{}", graded.stderr);
    project.run(&["grade", "latest", "--no-judge"]).exits(3);
}

/// Half of the cases that run fail, and a gate that half is enough for.
const HALF: &str = "\
practicum: 1
workspace: empty
run: { agents: [own] }
gates: { pass_rate: 0.4 }
cases:
  - { id: first, prompt: one, checks: [{ contains: done }] }
  - { id: second, prompt: two, checks: [{ contains: missing }] }
  - { id: third, prompt: three, checks: [{ contains: done }] }
  - { id: fourth, prompt: four, checks: [{ contains: missing }] }
";

/// `--fail-fast` said `PASS 1 of 2 trials passed`, `gate pass_rate holds`, although half of the cases had not run.
#[test]
fn a_gate_does_not_hold_over_trials_that_were_not_run() {
    let project = project(HALF);
    let reports = ["junit", "md", "html", "github-comment", "csv", "text"];
    let orders: Vec<String> = reports.iter().map(|name| format!("{name}=out.{name}")).collect();
    let mut args = vec!["run", "evals", "--fail-fast", "-j", "1", "-q"];
    args.extend(orders.iter().flat_map(|order| ["--report", order.as_str()]));
    let ran = project.run(&args).exits(3).stdout;
    assert!(ran.contains("INCOMPLETE  1 of 2 trials passed, 1 failed, 2 not run"), "{ran}");
    assert!(ran.contains("2 trials not run (needs 0.40) open"), "{ran}");
    for name in reports {
        let report = std::fs::read_to_string(project.path().join(format!("out.{name}"))).expect("a report");
        assert!(report.contains("not run") || report.contains("not_run"), "{name}: {report}");
        assert!(!report.contains("every gate holds") && !report.contains(" holds"), "{name}: {report}");
    }
    let graded = project.run(&["grade", "latest"]).exits(3).stdout;
    assert!(graded.contains("INCOMPLETE  1 of 2 trials passed, 1 failed, 2 not run"), "{graded}");
    let summary = project.run(&[&args[..6], &["--json", "--allow-unscored", "1"]].concat()).exits(3).json();
    assert_eq!((&summary["ok"], &summary["totals"]["not_run"]), (&false.into(), &2.into()), "{summary}");
    assert_eq!((&summary["gates"][0]["ok"], &summary["gates"][0]["not_run"]), (&false.into(), &2.into()));
    // A gate that what has run does not reach has failed all the same.
    let ran = project.run(&[&args[..6], &["--gate", "pass_rate=0.9"]].concat()).exits(1).stdout;
    assert!(ran.contains("FAIL  1 of 2 trials passed, 1 failed, 2 not run"), "{ran}");
    // With nothing left out, the same gate holds.
    let ran = project.run(&["run", "evals", "-q"]).exits(0).stdout;
    assert!(ran.contains("PASS  2 of 4 trials passed, 2 failed") && ran.contains(" holds"), "{ran}");
}

/// Trials that `--stop-early` leaves out are decided, not missing; grading the run again knows it too.
#[test]
fn trials_that_are_decided_are_not_missing() {
    let project = project(&HALF.replace("missing", "done"));
    let ran =
        project.run(&["run", "evals", "--stop-early", "--repeat", "30", "-q", "--json"]).exits(0).json();
    assert!(ran["left_out"].as_u64().is_some_and(|count| count > 0), "{ran}");
    assert!(ran["totals"].get("not_run").is_none(), "{ran}");
    let graded = project.run(&["grade", "latest", "--json"]).exits(0).json();
    assert_eq!(graded["summary"]["left_out"], ran["left_out"], "{graded}");
}

/// A run failed by its `--gate`, and `grade latest` said NO GATE or PASS.
#[test]
fn grading_again_does_not_forget_the_gates_of_the_command_line() {
    let project = project(HALF);
    project.run(&["run", "evals", "-q", "--gate", "pass_rate=0.99"]).exits(1);
    for _ in 0..2 {
        let graded = project.run(&["grade", "latest"]).exits(1).stdout;
        assert!(graded.contains("(needs 0.99) fails"), "{graded}");
    }
    let graded = project.run(&["grade", "latest", "--gate", "pass_rate=0.3"]).exits(0).stdout;
    assert!(graded.contains("(needs 0.30) holds"), "{graded}");
}

/// Going on with a finished run after its failed case was deleted made it green.
#[test]
fn a_failed_case_does_not_vanish_from_a_run_that_is_resumed() {
    let project = project(&HALF.replace("0.4", "1"));
    project.run(&["run", "evals", "-q"]).exits(1);
    let record = project.only_run().join("summary.json");
    let before = std::fs::read_to_string(&record).expect("a summary");
    project.run(&["run", "--resume", "-q"]).exits(1);
    let write = |evals: &str| project.write("evals/e.practicum.yaml", evals);
    let evals = HALF.replace("0.4", "1");
    let without: String =
        evals.lines().filter(|line| !line.contains("second")).map(|line| format!("{line}\n")).collect();
    for (changed, named) in [
        (without, "case second of e is gone"),
        (evals.replace("contains: missing", "contains: done"), "case second of e was changed"),
        (HALF.replace("0.4", "0.5"), "\"gates\" of e was changed"),
        (
            format!("{evals}  - {{ id: fifth, prompt: five, checks: [{{ contains: done }}] }}\n"),
            "case fifth of e is new",
        ),
    ] {
        write(&changed);
        let refused = project.run(&["run", "--resume", "-q"]).exits(2).stderr;
        assert!(refused.contains("the evals have changed since") && refused.contains(named), "{refused}");
        assert!(refused.contains("start a new run"), "{refused}");
    }
    let after = std::fs::read_to_string(&record).expect("a summary");
    let totals =
        |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON")["totals"].clone();
    assert_eq!(totals(&before), totals(&after));
    write(&evals);
    project.run(&["run", "--resume", "-q"]).exits(1);
}

#[test]
fn a_run_without_a_gate_does_not_say_that_every_gate_holds() {
    let project = project(&HALF.replace("missing", "done"));
    let args =
        ["run", "evals", "-q", "--gate", "pass_rate=0", "--gate", "all_cases_pass=0", "--report", "md=o.md"];
    project.run(&args).exits(0);
    let report = std::fs::read_to_string(project.path().join("o.md")).expect("a report");
    assert!(report.contains("**Passed; no gate was set.**"), "{report}");
}

/// A script file that was changed after the run began was run by `--resume` on the trust of the beginning.
#[test]
fn a_script_that_changed_since_it_was_trusted_is_not_run_again_unasked() {
    let in_project = "{ id: c, prompt: p, setup: 'bash tools/setup.sh', checks: [{ contains: done }] }";
    let cases = [
        format!("practicum: 1\nworkspace: project\nrun: {{ agents: [own] }}\ncases:\n  - {in_project}\n"),
        format!(
            "practicum: 1\nworkspace: empty\nrun: {{ agents: [own] }}\ncases:\n  - {}\n",
            in_project.replace("tools/", "ROOT/tools/")
        ),
        format!(
            "practicum: 1\nworkspace: project\nrun: {{ agents: [own] }}\ncases:\n  - {}\n",
            in_project.replace("tools/setup.sh", "tools/first.sh")
        ),
    ];
    for evals in cases {
        let project = project(&evals);
        let root = project.path().display().to_string();
        project.write("evals/e.practicum.yaml", &evals.replace("ROOT", &root));
        project.write("tools/first.sh", "source \"$(dirname \"$0\")/setup.sh\"\n");
        project.write("tools/setup.sh", "exit 1\n");
        project.run(&["run", "evals", "--trust", "-q"]).exits(3);
        project.write("tools/setup.sh", &format!("touch {root}/ran\n"));
        let refused = project.run(&["run", "--resume", "-q"]).exits(2).stderr;
        assert!(refused.contains("has changed since it was trusted"), "{refused}");
        assert!(refused.contains("tools/setup.sh") && refused.contains("--trust"), "{refused}");
        assert!(!project.path().join("ran").exists(), "{evals}");
        // New trust is good for what is there now, also the next time.
        project.run(&["run", "--resume", "-q", "--trust"]).exits(0);
        project.run(&["run", "--resume", "-q"]).exits(0);
        assert!(project.path().join("ran").exists());
    }
}

/// Only files that a script names were compared, so that one that it found otherwise was run on old trust.
#[test]
fn a_script_that_is_not_named_in_full_is_not_run_again_unasked_either() {
    let (shell, python) = ("tools/s.sh", "tools/helper.py");
    for (workspace, setup, changed) in [
        ("project", "cd tools && bash s.sh", shell),
        ("project", "for f in tools/*.sh; do bash $f; done", shell),
        ("project", "make -s -f tools/Makefile", "tools/Makefile"),
        ("project", "python3 tools/first.py", python),
        ("project", "bash tools/link.sh", shell),
        ("project", "bash \"my tools/s.sh\"", "my tools/s.sh"),
        ("empty", "python3 ROOT/tools/first.py", python),
        ("empty", "cd ROOT/tools && bash s.sh", shell),
        ("empty", "bash \"ROOT/my tools/s.sh\"", "my tools/s.sh"),
    ] {
        let project = project("practicum: 1\ncases: []\n");
        let root = project.path().display().to_string();
        let case = json!({"id": "c", "prompt": "p", "setup": setup.replace("ROOT", &root), "checks": [{"contains": "done"}]});
        let evals =
            json!({"practicum": 1, "workspace": workspace, "run": {"agents": ["own"]}, "cases": [case]});
        project.write("evals/e.practicum.yaml", &evals.to_string());
        project.write("tools/first.py", "import helper\n");
        project.write("tools/Makefile", "it:\n\tfalse\n");
        for script in [shell, "my tools/s.sh"] {
            project.write(script, "exit 1\n");
        }
        project.write(python, "raise SystemExit(1)\n");
        std::os::unix::fs::symlink("s.sh", project.path().join("tools/link.sh")).expect("a link");
        project.run(&["run", "evals", "--trust", "-q"]).exits(3);
        let harmless = match changed {
            _ if changed == python => "pass\n",
            "tools/Makefile" => "it:\n\ttrue\n",
            _ => "true\n",
        };
        project.write(changed, harmless);
        let refused = project.run(&["run", "--resume", "-q"]).exits(2).stderr;
        assert!(refused.contains("has changed since it was trusted"), "{setup}: {refused}");
        project.write("notes.txt", "What is no code may change.\n");
        project.run(&["run", "--resume", "-q", "--trust"]).exits(0);
    }
}
