//! Every example, as its README runs it: checked, listed and run with the real program.

use std::process::Command;

use crate::common::{Project, Ran, claude, path_with};
use serde_json::Value;

/// An example: what is said beside the usual arguments, and how many files, cases and trials it has.
pub struct Example {
    pub name: &'static str,
    more: &'static [&'static str],
    files: usize,
    cases: usize,
    trials: usize,
    /// Those that fail on purpose.
    failing: usize,
}

pub const EXAMPLES: [Example; 18] = [
    Example { name: "release-notes", more: &[], files: 1, cases: 3, trials: 3, failing: 0 },
    Example {
        name: "skillet",
        more: &["--skill", "examples/skillet/skills/incident-update"],
        files: 3,
        cases: 3,
        trials: 9,
        failing: 0,
    },
    Example { name: "skill-test", more: &[], files: 1, cases: 8, trials: 16, failing: 0 },
    Example { name: "bmad", more: &[], files: 2, cases: 6, trials: 14, failing: 0 },
    Example { name: "clauditor", more: &[], files: 1, cases: 5, trials: 6, failing: 0 },
    Example { name: "writing-skills", more: &[], files: 1, cases: 2, trials: 2, failing: 0 },
    Example { name: "skill-creator", more: &[], files: 2, cases: 6, trials: 16, failing: 0 },
    Example { name: "claude-plugin-eval", more: &["--trust"], files: 2, cases: 2, trials: 4, failing: 0 },
    Example { name: "waza", more: &[], files: 1, cases: 2, trials: 4, failing: 0 },
    Example { name: "tessl", more: &[], files: 1, cases: 1, trials: 2, failing: 0 },
    Example { name: "vally", more: &[], files: 1, cases: 2, trials: 2, failing: 0 },
    Example { name: "skillgrade", more: &["--trust"], files: 1, cases: 1, trials: 2, failing: 0 },
    Example { name: "promptfoo", more: &["--trust"], files: 1, cases: 5, trials: 10, failing: 0 },
    Example { name: "skill-up", more: &[], files: 1, cases: 1, trials: 2, failing: 0 },
    Example { name: "interview", more: &[], files: 1, cases: 3, trials: 3, failing: 0 },
    Example { name: "mocks", more: &[], files: 1, cases: 2, trials: 2, failing: 0 },
    Example { name: "pictures", more: &[], files: 1, cases: 1, trials: 1, failing: 0 },
    Example { name: "improving", more: &[], files: 1, cases: 6, trials: 6, failing: 4 },
];

/// Examples of commands that make a study of several runs, or grade without one. Their pages run them.
const STUDIES: [&str; 4] = ["ablation", "catalogue", "paraphrases", "sessions"];

/// A copy of the examples, so that no record is left in this checkout.
pub fn copy() -> Project {
    let project = Project::new(&[]);
    let root = env!("CARGO_MANIFEST_DIR");
    let copied = Command::new("cp").arg("-r").arg(format!("{root}/examples")).arg(project.path()).status();
    assert!(copied.expect("cp").success());
    project
}

impl Example {
    pub fn folder(&self) -> String {
        format!("examples/{}", self.name)
    }

    pub fn script(&self) -> String {
        // The native format names its script itself, so that it lies among the evals.
        let place = match self.name {
            "release-notes" => "evals/",
            "improving" => "skills/ferry-notice/evals/",
            _ => "",
        };
        format!("{}/{place}script.yaml", self.folder())
    }

    /// How a run ends, and its trials: passed, failed, not scored.
    fn expected(&self) -> (i32, [u64; 3]) {
        let (trials, failing) = (self.trials as u64, self.failing as u64);
        (i32::from(failing > 0), [trials - failing, failing, 0])
    }

    pub fn run(&self, project: &Project, script: &str, more: &[&str]) -> Ran {
        let folder = self.folder();
        let usual = ["run", folder.as_str(), "--agent", "builtin", "--script", script, "--json"];
        project.run(&[&usual, self.more, more].concat())
    }
}

fn numbers(document: &Value, key: &str) -> Vec<u64> {
    ["passed", "failed", "not_scored"].map(|part| document[key][part].as_u64().expect("a number")).to_vec()
}

#[test]
fn every_example_is_in_this_list() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut found: Vec<String> = std::fs::read_dir(folder)
        .expect("a folder")
        .flatten()
        // A crate has tests of its own.
        .filter(|entry| !entry.path().join("Cargo.toml").exists())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    let names = EXAMPLES.iter().map(|example| example.name).chain(STUDIES);
    let mut listed: Vec<String> = names.map(str::to_owned).collect();
    found.sort();
    listed.sort();
    assert_eq!(found, listed);
}

#[test]
fn every_example_is_without_errors_and_warnings() {
    let project = copy();
    for example in &EXAMPLES {
        let checked = project.run(&["check", &example.folder(), "--json"]).exits(0).json();
        let files = checked["files"].as_array().expect("files");
        assert_eq!(files.len(), example.files, "{}", example.name);
        for file in files {
            let problems = file["problems"].as_array().expect("problems");
            let worse = problems.iter().filter(|problem| problem["severity"] != "notice");
            assert_eq!(worse.collect::<Vec<_>>(), Vec::<&Value>::new(), "{}", example.name);
        }
        let listed = project.run(&["list", &example.folder(), "--json"]).exits(0).json();
        let suites = listed["suites"].as_array().expect("suites").iter();
        let cases: usize = suites.map(|suite| suite["cases"].as_array().map_or(0, Vec::len)).sum();
        assert_eq!(
            (cases, listed["trials"].as_u64()),
            (example.cases, Some(example.trials as u64)),
            "{}",
            example.name
        );
    }
}

#[test]
fn every_example_runs_offline_and_ends_as_it_should() {
    let project = copy();
    for example in &EXAMPLES {
        let (exit, totals) = example.expected();
        let summary = example.run(&project, &example.script(), &[]).exits(exit).json();
        assert_eq!(numbers(&summary, "totals"), totals, "{}", example.name);
        // Each quote of the scripted judge is in the record, or its verdict would have a flag.
        let runs = project.path().join(example.folder()).join(".practicum/runs");
        let runs = if runs.exists() { runs } else { project.path().join(".practicum/runs") };
        let mut records = 0;
        for run in std::fs::read_dir(runs).expect("runs").flatten() {
            for trial in std::fs::read_dir(run.path().join("trials")).expect("trials").flatten() {
                let text = std::fs::read_to_string(trial.path().join("checks.json")).expect("a record");
                assert!(!text.contains("\"flags\""), "{}: {text}", example.name);
                records += 1;
            }
        }
        assert_eq!(records, example.trials, "{}", example.name);

        // A command runs in the workspace, which is gone when a run is graded again.
        if ["skillgrade", "promptfoo"].contains(&example.name) {
            continue;
        }
        // Grading the stored run again changes nothing.
        let (folder, script) = (example.folder(), example.script());
        let again = ["grade", "latest", "--project", &folder, "--script", &script, "--json"];
        let again = project.run(&again).exits(exit).json();
        assert_eq!(again["changes"], serde_json::json!([]), "{}", example.name);
        assert_eq!(numbers(&again["summary"], "totals"), totals, "{}", example.name);
        std::fs::remove_dir_all(project.path().join(".practicum")).ok();
    }
}

/// Evals that an agent passes by doing nothing prove nothing.
#[test]
fn an_agent_that_does_nothing_passes_no_example() {
    let project = copy();
    project.write("idle.yaml", "practicum_script: 1\ndefault: I would rather not.\n");
    for example in &EXAMPLES {
        let summary = example.run(&project, "idle.yaml", &["--repeat", "1"]).json();
        let [passed, failed, not_scored] = numbers(&summary, "totals")[..] else { panic!("three numbers") };
        assert!(failed + not_scored > 0, "{}: {passed} passed", example.name);
    }
}

/// The two whose skills are staged in a special way: under an alias, and as a command file.
#[test]
fn the_real_claude_code_finds_aliases_and_command_files() {
    let project = copy();
    for example in EXAMPLES.iter().filter(|example| ["bmad", "clauditor"].contains(&example.name)) {
        let folder = example.folder();
        let args = ["run", &folder, "--agent", "claude", "--script", &example.script(), "--json"];
        let output = project.practicum(&args).env("PATH", path_with(&claude())).output();
        let summary = Ran::of(output.expect("practicum starts")).exits(0).json();
        assert_eq!(numbers(&summary, "totals"), [example.trials as u64, 0, 0], "{}", example.name);
    }
}
