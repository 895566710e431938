//! Reused trials count as the trials of the current plan.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use practicum::report::{REPORTS, ReportOutput};
use proptest::prelude::*;
use regex::Regex;
use serde_json::Value;

use crate::common::Project;

/// Lists the skills that it finds, activates the first if the prompt says fire, and says the prompt back.
const AGENT: &str = r#"
skill=$(ls .agents/skills 2>/dev/null | head -1)
if [ -n "$skill" ]; then seen="\"$skill\""; fi
echo "{\"type\":\"start\",\"schema_version\":1,\"skills\":[$seen]}"
case "$1" in
  *fire*) if [ -n "$skill" ]; then echo "{\"type\":\"skill\",\"name\":\"$skill\"}"; fi ;;
esac
echo "{\"type\":\"text\",\"text\":\"You said: $1\"}"
echo '{"type":"end","ending":"finished"}'
"#;

const SKILL: &str = "---\nname: gull\ndescription: Speaks.\n---\n\nkee-ow\n";

fn project(files: &[(&str, &str)]) -> Project {
    let project = Project::new(files);
    project.write("agent.sh", AGENT);
    project.write("gull/SKILL.md", SKILL);
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

/// A native suite with these cases, each three times.
fn suite(cases: &[&str]) -> String {
    let cases: String = cases.iter().map(|case| format!("  - {case}\n")).collect();
    format!(
        "practicum: 1\nskill: gull\nworkspace: empty\nrun: {{ agents: [own], repeat: 3 }}\n\
         gates: {{ pass_rate: 0.9 }}\ncases:\n{cases}"
    )
}

const X: &str = "{ id: x, prompt: hello, checks: [{ contains: nothing like it }] }";
const Y: &str = "{ id: y, prompt: good day, checks: [{ contains: good }] }";

#[test]
fn a_case_of_another_suite_is_not_counted_instead_of_its_own() {
    let project = project(&[("a.practicum.yaml", &suite(&[X])), ("b.practicum.yaml", &suite(&[X, Y]))]);
    project.run(&["run", "a.practicum.yaml"]).exits(1);
    let ran = project.run(&["run", "b.practicum.yaml", "--json"]).exits(1);
    assert!(ran.stderr.contains("3 reuse, 3 run"), "{}", ran.stderr);
    let summary = ran.json();
    let cases = summary["cases"].as_array().expect("cases");
    let names: Vec<_> = cases.iter().map(|case| (&case["suite"], &case["id"], &case["runs"])).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(cases.iter().all(|case| case["suite"] == "b"), "{names:?}");
    assert_eq!((&summary["gates"][0]["suite"], &summary["gates"][0]["value"]), (&"b".into(), &0.5.into()));
    // Everything that reads the record, and not the summary, knows the same.
    let rows = project.run(&["export", "latest"]).exits(0).stdout;
    assert_eq!((rows.lines().count(), rows.matches("\"suite\":\"b\"").count()), (6, 6), "{rows}");
    assert!(
        project.run(&["show", "latest", "x"]).exits(0).stdout.contains("taken over from run"),
        "x is shown as reused"
    );
    project.run(&["grade", "latest"]).exits(1);
    let parts = ["1/2", "2/2"].map(|part| {
        let ran = project.run(&["run", "b.practicum.yaml", "--shard", part, "--json"]);
        if ran.stdout.is_empty() { 0 } else { ran.json()["totals"]["trials"].as_u64().expect("trials") }
    });
    assert_eq!(parts.iter().sum::<u64>(), 6);
}

#[test]
fn a_renamed_suite_is_not_incomplete_for_ever() {
    let evals = |of: &str, name: &str| {
        (
            format!("{of}/{name}.yaml"),
            format!(
                "timestamp: 2026-03-02T09:15:00Z\nname: gull\nprompt: say {name}\nexpected: Says it.\nassertions:\n  - {{ type: contains, value: {name} }}\n"
            ),
        )
    };
    let (path, text) = evals("first", "one");
    let project = project(&[(&path, &text)]);
    let run = |folder: &str| project.run(&["run", folder, "--skill", "gull", "--agent", "own", "--json"]);
    assert_eq!(run("first").exits(0).json()["totals"]["passed"], 3);
    std::fs::rename(project.path().join("first"), project.path().join("second")).expect("renamed");
    for _ in 0..2 {
        let ran = run("second").exits(0);
        assert!(ran.stderr.contains("3 reuse, 0 run"), "{}", ran.stderr);
        let summary = ran.json();
        assert_eq!(
            (&summary["totals"]["passed"], &summary["cases"][0]["suite"]),
            (&3.into(), &"second".into())
        );
    }
}

#[test]
fn one_stored_trial_is_not_counted_as_two() {
    let project = project(&[("a.practicum.yaml", &suite(&[X])), ("b.practicum.yaml", &suite(&[X]))]);
    project.run(&["run", "a.practicum.yaml"]).exits(1);
    let both = ["run", "a.practicum.yaml", "b.practicum.yaml"];
    let ran = project.run(&both).exits(1);
    assert!(ran.stderr.contains("3 reuse, 3 run"), "{}", ran.stderr);
    let ran = project.run(&both).exits(1);
    assert!(ran.stderr.contains("6 reuse, 0 run"), "{}", ran.stderr);
}

#[test]
fn a_skill_without_a_name_is_not_the_one_that_lies_elsewhere() {
    let about = |skill: &str| {
        format!(
            "practicum: 1\nskill: {skill}\nworkspace: empty\ncases:\n  - {{ id: x, prompt: fire, activation: must }}\n"
        )
    };
    let text = "---\ndescription: Speaks.\n---\n\nkee-ow\n";
    let project =
        project(&[("tern/SKILL.md", text), ("auk/SKILL.md", text), ("e.practicum.yaml", &about("tern"))]);
    project.run(&["run", "e.practicum.yaml", "--agent", "own", "--no-probe"]).exits(0);
    project.write("e.practicum.yaml", &about("auk"));
    let ran = project.run(&["run", "e.practicum.yaml", "--agent", "own", "--no-probe"]).exits(0);
    assert!(!ran.stderr.contains("reuse"), "{}", ran.stderr);
}

#[test]
fn what_was_not_asked_for_then_is_not_missing_now() {
    let links = "{ id: x, prompt: \"see http://127.0.0.1/a\", checks: [{ contains: see }, { urls_reachable: 1, required: false }] }";
    let project = project(&[("e.practicum.yaml", &suite(&[links]))]);
    project.run(&["run", "e.practicum.yaml"]).exits(0);
    assert!(project.run(&["run", "e.practicum.yaml"]).exits(0).stderr.contains("3 reuse, 0 run"));
    let ran = project.run(&["run", "e.practicum.yaml", "--allow-network"]).exits(0);
    assert!(!ran.stderr.contains("reuse"), "{}", ran.stderr);
}

#[test]
fn a_reused_failure_ends_a_run_that_ends_with_the_first() {
    let project = project(&[("a.practicum.yaml", &suite(&[X, Y]))]);
    project.run(&["run", "a.practicum.yaml"]).exits(1);
    let trials = |more: &[&str]| {
        let ran =
            project.run(&[&["run", "a.practicum.yaml", "--fail-fast", "-j", "1", "--json"], more].concat());
        ran.json()["totals"].clone()
    };
    let mut reused = trials(&[]);
    let marked = reused.as_object_mut().expect("totals").remove("reused");
    assert_eq!((reused, marked), (trials(&["--no-cache"]), Some(1.into())));
}

/// What can stand in two suites, and be changed between them.
const CASES: [&str; 7] = [
    X,
    Y,
    "{ id: z, group: g, prompt: speak and fire, activation: must, checks: [{ contains: speak }] }",
    "{ id: quiet, prompt: say nothing, activation: must_not }",
    "{ id: rate, prompt: wake up, activation: must, pass_when: { fire_rate: 0.5 } }",
    "{ id: extra, prompt: hello again, checks: [{ contains: hello }, { contains: bye, required: false, name: polite }] }",
    "{ id: tally, prompt: fire, activation: either, pass_when: tally, checks: [{ contains: fire }] }",
];

fn some_cases() -> impl Strategy<Value = Vec<usize>> {
    proptest::sample::subsequence((0..CASES.len()).collect::<Vec<usize>>(), 1..=4)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_run_from_the_cache_says_what_a_fresh_one_says(first in some_cases(), second in some_cases(), both in any::<bool>()) {
        let of = |cases: &[usize]| suite(&cases.iter().map(|case| CASES[*case]).collect::<Vec<&str>>());
        let project = project(&[("a.practicum.yaml", &of(&first)), ("b.practicum.yaml", &of(&second))]);
        project.run(&["run", "a.practicum.yaml", "--no-probe", "-j", "4"]);
        let mut args = vec!["run", "b.practicum.yaml", "--no-probe", "-j", "4", "--arm", "with"];
        if both {
            args.insert(1, "a.practicum.yaml");
        }
        let reused = Outcome::of(&project, &args);
        let fresh = Outcome::of(&project, &[&args[..], &["--no-cache"]].concat());
        prop_assert!(fresh.reused.is_none());
        prop_assert!(reused.reused.is_some() == (both || first.iter().any(|case| second.contains(case))));
        prop_assert_eq!(reused.code, fresh.code);
        prop_assert_eq!(reused.reports.keys().collect::<Vec<_>>(), fresh.reports.keys().collect::<Vec<_>>());
        for (name, text) in &fresh.reports {
            prop_assert_eq!(&reused.reports[name], text, "{}", name);
        }
        for name in ["text", "json", "md", "html", "junit", "csv", "github-comment"] {
            let is_marked = reused.reused.is_some() && !second.is_empty();
            prop_assert!(reused.marked.contains(name) == is_marked, "{} {:?}", name, reused.marked);
            prop_assert!(!fresh.marked.contains(name), "{}", name);
        }
        for format in ["skill-creator", "agentskills"] {
            let is_benchmark = |name: &&String| name.starts_with(format) && name.ends_with("benchmark.json");
            let written = reused.reports.keys().filter(is_benchmark).count();
            prop_assert!(!fresh.marked.iter().any(|name| is_benchmark(&name)));
            let is_marked = reused.marked.iter().any(|name| is_benchmark(&name));
            prop_assert!(is_marked == (written > 0 && reused.reused.is_some()), "{} {:?}", format, reused.marked);
        }
    }
}

/// What a run came to, by its exit code and every file of every report.
struct Outcome {
    code: i32,
    reused: Option<String>,
    /// The reports without what a clock says, and without the marks of reused trials.
    reports: BTreeMap<String, String>,
    /// The reports that mark reused trials.
    marked: BTreeSet<String>,
}

impl Outcome {
    fn of(project: &Project, args: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let orders: Vec<String> = REPORTS
            .iter()
            .map(|report| format!("{}={}", report.name, folder.path().join(report.name).display()))
            .collect();
        let mut args = args.to_vec();
        orders.iter().for_each(|order| args.extend(["--report", order]));
        let ran = project.run(&args);
        let (mut reports, mut marked) = (BTreeMap::new(), BTreeSet::new());
        let words = [
            r"[1-9]\d* reused",
            r#""reused": [1-9]"#,
            "reused from",
            r"\d{8}-\d{9}-[0-9a-f]{6},(true|false),(true|false)",
            r"(?m)^\| (with the skill|all) .*\| [1-9]\d* \|$",
        ];
        let mark = Regex::new(&words.join("|")).expect("a pattern");
        for report in REPORTS {
            let path = folder.path().join(report.name);
            let files = match report.output {
                ReportOutput::File(_) => vec![path],
                ReportOutput::Folder(_) => files_below(&path),
            };
            for file in files {
                let name = file.strip_prefix(folder.path()).expect("below").display().to_string();
                let text = std::fs::read_to_string(&file)
                    .unwrap_or_else(|error| panic!("{name}: {error}\n{}", ran.stderr));
                if mark.is_match(&text) {
                    marked.insert(name.clone());
                }
                reports.insert(name, without_times(&text, folder.path()));
            }
        }
        let reused = ran.stderr.lines().find(|line| line.contains(" reuse, ")).map(str::to_owned);
        Self { code: ran.code, reused, reports, marked }
    }
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let walk = ignore::WalkBuilder::new(folder).standard_filters(false).build().flatten();
    let files = walk.filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    files.map(ignore::DirEntry::into_path).collect()
}

/// A report without the ids of runs, whatever a clock says, and what marks reused trials.
fn without_times(text: &str, folder: &Path) -> String {
    if let Ok(mut document) = serde_json::from_str::<Value>(text) {
        clear(&mut document);
        return format!("{document:#}");
    }
    let mut text = text.replace(&folder.display().to_string(), "FOLDER");
    for (pattern, with) in [
        (r"\d{8}-\d{9}-[0-9a-f]{6}", "RUN"),
        (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?", "WHEN"),
        (r"\d+(\.\d+)?(e-\d+)?(\u{2009}|&nbsp;| |\u{202f})?(s|ms)\b", "TIME"),
        (r#"time="[\d.]+""#, "TIME"),
        (r"(?m)^((?:[^,\n]*,){12})[\d.e-]+,", "${1}TIME,"),
        // What marks reused trials.
        (r"(, | · )\d+ reused( from earlier runs)?", ""),
        (r" · reused from RUN", ""),
        (r" <small>\d+ reused</small>", ""),
        (r#"<p class="notice">[^<]*reused from earlier runs[^<]*</p>"#, ""),
        (r"\s*<system-out>note: reused from run RUN</system-out>", ""),
        (r"TIME>\s*</testcase>", "TIME/>"),
        (r"note: reused from run RUN\n|\nnote: reused from run RUN", ""),
        (r#"practicum.reused" value="\d+""#, "practicum.reused\" value=\"N\""),
        (r"(?m),(RUN)?,(true|false),(true|false)(\r?)$", ",,$2,$3$4"),
        (r"(?m)^(\|[^|\n]*(?:\| \d+ ){5})\| \d+ \|$", "${1}| N |"),
        (r" \(reused from RUN\)", ""),
        (r"; saved by reuse: \d+ tokens, cost unknown", ""),
        (r"\\?\$0\.0000", "cost unknown"),
        (r#"(<p class="value">)(–|\$0.00)(</p>)"#, "${1}COST$3"),
    ] {
        text = Regex::new(pattern).expect("a pattern").replace_all(&text, with).into_owned();
    }
    text
}

fn clear(value: &mut Value) {
    match value {
        Value::Object(map) => {
            // What marks reused trials, and what they cost now.
            map.retain(|key, _| !["reused", "reused_from", "saved", "cost_usd"].contains(&key.as_str()));
            let notes = map.get_mut("notes").and_then(Value::as_array_mut);
            if notes.is_some_and(|notes| {
                notes.retain(|note| !is_reuse_note(note));
                notes.is_empty()
            }) {
                map.remove("notes");
            }
            for (key, value) in map {
                let of_clock =
                    ["seconds", "duration", "time", "start", "_end"].iter().any(|word| key.contains(word));
                match of_clock || key == "run" || key == "trials_of" {
                    true => *value = Value::Null,
                    false => clear(value),
                }
            }
        }
        Value::Array(values) => {
            values.retain(|value| !is_reuse_note(value));
            values.iter_mut().for_each(clear);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn is_reuse_note(value: &Value) -> bool {
    value.as_str().is_some_and(|note| {
        note.starts_with("reused from run ") || note.contains(" reused from earlier runs, with the time")
    })
}

#[test]
fn a_script_that_can_no_longer_be_run_is_not_the_same_skill() {
    let agent = "[agents.own]\ncommand = [\"/bin/bash\", \"-c\", \".agents/skills/gull/say.sh || true\"]\nskills_dir = \".agents/skills\"\n";
    let project = Project::new(&[
        ("gull/SKILL.md", "---\nname: gull\ndescription: Says it.\n---\nRun say.sh.\n"),
        ("gull/say.sh", "#!/bin/bash\necho kee-ow\n"),
        (
            "evals/e.practicum.yaml",
            "practicum: 1\nskill: ../gull\nworkspace: empty\nrun: {agents: [own]}\ncases:\n  - {id: a, prompt: p, checks: [{contains: kee-ow}]}\n",
        ),
    ]);
    project.write("practicum.toml", &format!("sandbox = \"off\"\n{agent}"));
    let mode = |bits: u32| {
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(bits);
        std::fs::set_permissions(project.path().join("gull/say.sh"), permissions).expect("a mode");
    };
    let run = || project.run(&["run", "evals", "--no-probe"]);
    mode(0o755);
    run().exits(0);
    mode(0o644);
    run().exits(1);
}

#[test]
fn a_check_whose_script_has_changed_is_asked_again() {
    let project = Project::new(&[("check.sh", "exit 0\n")]);
    let script = project.path().join("check.sh");
    let eval = format!(
        "practicum: 1\nworkspace: empty\nrun: {{agents: [own]}}\ncases:\n  - {{id: a, prompt: p, checks: [{{command: \"bash {}\"}}]}}\n",
        script.display()
    );
    project.write("evals/e.practicum.yaml", &eval);
    project.write("practicum.toml", "sandbox = \"off\"\n[agents.own]\ncommand = [\"/bin/echo\", \"done\"]\n");
    project.run(&["run", "evals", "--trust"]).exits(0);
    project.write("check.sh", "exit 1 # now\n");
    project.run(&["run", "evals", "--trust"]).exits(1);
}

/// A run that counted flaky cases failed, and grading it again passed without them.
#[test]
fn grading_again_does_not_forget_that_flaky_cases_count() {
    let agent = "\
case \"$1\" in *steady*) echo good; exit ;; esac
echo x >>\"$COUNT\"
n=$(wc -l <\"$COUNT\")
[ $((n % 2)) = 0 ] && echo good || echo bad
";
    let evals = "practicum: 1\nworkspace: empty\nrun: { agents: [own] }\ncases: [{ id: c, prompt: p, checks: [{ contains: good }] }, { id: s, prompt: steady, checks: [{ contains: good }] }]\n";
    let project = Project::new(&[("flaky.sh", agent), ("e.practicum.yaml", evals)]);
    let at = |name: &str| project.path().join(name).display().to_string();
    let (script, count) = (at("flaky.sh"), at("count"));
    project.write(
        "practicum.toml",
        &format!(
            "sandbox = \"off\"\n[agents.own]\ncommand = [\"/bin/bash\", \"{script}\", \"{{prompt}}\"]\nenv = {{ COUNT = \"{count}\" }}\n"
        ),
    );
    project.run(&["noise", ".", "-j", "1", "--json"]).exits(0);
    let run = ["run", ".", "--repeat", "4", "--no-cache", "-j", "1", "--json"];
    project.run(&run).exits(0);
    project.run(&["grade", "latest", "--json"]).exits(0);
    project.run(&[&run[..], &["--count-flaky"]].concat()).exits(1);
    project.run(&["grade", "latest", "--json"]).exits(1);
    // And again: the new grading is graded as the run was.
    project.run(&["grade", "latest", "--json"]).exits(1);
}

#[test]
fn a_copied_project_is_not_run_again_for_the_times_of_its_files() {
    let native = suite(&[
        "{ id: y, prompt: good day, overlays: [over], files: [{ from: given, to: given }], checks: [{ contains: good }] }",
    ]);
    let native = native.replace("workspace: empty", "workspace: project");
    let project = project(&[
        ("e.practicum.yaml", &native),
        ("over/o.md", "o"),
        ("given/g.md", "g"),
        ("docs/a.md", "a"),
        ("evals/brief/evals.json", "{}"),
    ]);
    project.run(&["run", "e.practicum.yaml"]).exits(0);
    let copy = tempfile::tempdir().expect("a folder");
    let root = copy.path().join("copy");
    let copied = std::process::Command::new("cp").arg("-r").arg(project.path()).arg(&root).status();
    assert!(copied.expect("cp").success());
    let run = || {
        let mut command = project.practicum(&["run", "e.practicum.yaml"]);
        crate::common::Ran::of(command.current_dir(&root).output().expect("practicum")).exits(0).stderr
    };
    for file in files_below(&root).iter().filter(|file| !file.starts_with(root.join(".practicum"))) {
        let file = std::fs::File::options().append(true).open(file).expect("opened");
        file.set_modified(std::time::SystemTime::UNIX_EPOCH).expect("an older time");
    }
    assert!(run().contains("3 reuse, 0 run"), "a copy with other times");
    // Content of the same length and time decides.
    for changed in ["docs/a.md", "over/o.md", "given/g.md"] {
        std::fs::write(root.join(changed), "b").expect("written");
        let file = std::fs::File::options().append(true).open(root.join(changed)).expect("opened");
        file.set_modified(std::time::SystemTime::UNIX_EPOCH).expect("the same time");
        assert!(!run().contains("reuse"), "{changed}");
        assert!(run().contains("3 reuse, 0 run"), "{changed}");
    }
}

/// Words for people were a part of a trial's key, so that the agent was paid again for a new name of a group.
#[test]
fn an_agent_is_not_run_again_for_words_that_decide_nothing() {
    let skillet = "timestamp: 2026-03-02T09:15:00Z\nname: gull\nprompt: say it\nexpected: Says it.\n\
                   actual: Nothing.\nassertions:\n  - { type: contains, value: one }\n";
    let native = "practicum: 1\nname: n\nworkspace: empty\nrun: { agents: [builtin] }\ncases:\n  \
                  - { id: a, group: gull, note: Why not., repeat: 1, prompt: say it, checks: [{ contains: one }] }\n";
    let script = "practicum_script: 1\nscenarios:\n  - { to: agent, steps: [one] }\n";
    for (file, text, same, other) in [
        (
            "evals/a.yaml",
            skillet,
            &[("gull", "tern"), ("Says it", "Says it at once"), ("09:15", "10:15"), ("Nothing", "Something")]
                [..],
            ("say it", "say that"),
        ),
        (
            "evals/a.practicum.yaml",
            native,
            &[("gull", "tern"), ("Why not", "Because")],
            ("contains: one", "contains: on"),
        ),
    ] {
        let project = Project::new(&[(file, text), ("script.yaml", script)]);
        let run = ["run", "evals", "--agent", "builtin", "--script", "script.yaml", "--sandbox", "off"];
        let run = || project.run(&[&run[..], &["--repeat", "1"]].concat()).exits(0).stderr;
        run();
        for (from, to) in same {
            project.write(file, &text.replace(from, to));
            let message = run();
            assert!(message.contains("1 reuse, 0 run"), "{file} {to}: {message}");
        }
        // What is asked and what is checked decides.
        project.write(file, &text.replace(other.0, other.1));
        let message = run();
        assert!(!message.contains("reuse"), "{file}: {message}");
    }
}
