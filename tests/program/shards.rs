//! Seven parts of a run, put together, are the whole run: for every example, and for suites that are made at random. This
//! takes minutes, so only `scripts/test --all` runs it; `merge` has a small suite that is always run.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::{Project, Ran};
use crate::examples::{EXAMPLES, copy};
use crate::merge::comparable;

const PARTS: usize = 7;

/// Lists the files of the trials of a run, with their content. Ids and times are removed.
fn trials_of(run: &Path) -> Vec<(PathBuf, Value)> {
    let mut files = Vec::new();
    let mut folders: Vec<PathBuf> =
        ["trials", "probes"].map(|name| run.join(name)).into_iter().filter(|path| path.is_dir()).collect();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder").flatten() {
            match entry.file_type().expect("a kind").is_dir() {
                true => folders.push(entry.path()),
                false => files.push(entry.path()),
            }
        }
    }
    files.sort();
    let run_id = regex::Regex::new(r"\d{8}-\d{9}-[0-9a-f]{6}").expect("a pattern");
    let read = |path: PathBuf| {
        let text = String::from_utf8_lossy(&std::fs::read(&path).expect("a file")).into_owned();
        // Evidence may have a path in the workspace of its run.
        let text = run_id.replace_all(&text, "RUN").into_owned();
        let name = path.strip_prefix(run).expect("below").to_owned();
        let is = |name: &str| path.file_name().is_some_and(|file| file == name);
        let content = match is("checks.json") {
            true => serde_json::from_str(&text).expect("JSON"),
            // Other files tell what happened when, so only these are compared by their text.
            false if is("output.txt") => Value::String(text),
            false => Value::Null,
        };
        (name, comparable(content))
    };
    files.into_iter().map(read).collect()
}

/// Runs a project whole and in parts, and compares. `run` gets more arguments; `project` is its folder.
fn compare(name: &str, project: &Project, folder: &str, run: impl Fn(&[&str]) -> Ran) -> usize {
    let whole = run(&["--no-cache"]);
    assert!(whole.code < 2, "{name}: {}", whole.stderr);
    let records = [project.path().join(folder).join(".practicum"), project.path().join(".practicum")];
    let record = || records.iter().find(|path| path.is_dir()).expect("a record").clone();
    let id = |ran: &Ran| ran.json()["run"].as_str().expect("an id").to_owned();
    let trials = trials_of(&record().join("runs").join(id(&whole)));
    let whole_record = record();
    std::fs::remove_dir_all(&whole_record).expect("removed");
    for part in 1..=PARTS {
        run(&["--no-cache", "--shard", &format!("{part}/{PARTS}")]);
    }
    let runs = record().join("runs").display().to_string();
    let merged = project.run(&["merge", &runs, "--project", folder, "--json"]);
    assert_eq!(merged.code, whole.code, "{name}: {}", merged.stderr);
    assert_eq!(comparable(merged.json()), comparable(whole.json()), "{name}");
    let merged_trials = trials_of(&record().join("runs").join(id(&merged)));
    let names = |trials: &[(PathBuf, Value)]| trials.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>();
    assert_eq!(names(&merged_trials), names(&trials), "{name}");
    for ((path, merged), (_, whole)) in merged_trials.iter().zip(&trials) {
        assert_eq!(merged, whole, "{name}: {}", path.display());
    }
    std::fs::remove_dir_all(record()).expect("removed");
    trials.iter().filter(|(path, _)| path.ends_with("checks.json")).count()
}

#[test]
#[ignore = "takes minutes"]
fn seven_parts_of_every_example_are_the_whole_run() {
    let project = copy();
    for example in &EXAMPLES {
        let script = example.script();
        let trials =
            compare(example.name, &project, &example.folder(), |more| example.run(&project, &script, more));
        println!("{}: {trials} trials in one part and in {PARTS}: equal", example.name);
    }
}

/// Numbers that only look random.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Makes a project with up to three suites of up to twelve cases, some of which fail.
fn random_project(seed: u64) -> Project {
    let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let project = Project::new(&[
        ("gull/SKILL.md", "---\nname: gull\ndescription: Speaks like a gull.\n---\n\nSay kee-ow.\n"),
        (
            "gull/evals/script.yaml",
            "practicum_script: 1\nscenarios:\n  - { name: dog, when: bark, steps: [{ text: woof }] }\ndefault: kee-ow\n",
        ),
    ]);
    for suite in 0..=dice.below(3) {
        let mut evals = format!(
            "practicum: 1\nskill: ..\nrun: {{ agents: [builtin], script: script.yaml, repeat: {} }}\n",
            1 + dice.below(3)
        );
        if dice.below(2) == 0 {
            evals += "gates: { pass_rate: 0.5 }\n";
        }
        evals += "cases:\n";
        for case in 0..=dice.below(12) {
            let prompt = if dice.below(4) == 0 { "bark" } else { "speak" };
            let check = if dice.below(3) == 0 { "regex: kee" } else { "contains: kee-ow" };
            evals += &format!(
                "  - {{ id: case-{suite}-{case}, prompt: {prompt} {case}, checks: [{{ {check} }}] }}\n"
            );
        }
        project.write(&format!("gull/evals/{suite}.practicum.yaml"), &evals);
    }
    project
}

#[test]
#[ignore = "takes minutes"]
fn seven_parts_of_random_suites_are_the_whole_run() {
    for seed in 1..=10 {
        let project = random_project(seed);
        let run =
            |more: &[&str]| project.run(&[&["run", "gull", "--sandbox", "off", "--json"], more].concat());
        let trials = compare(&format!("seed {seed}"), &project, "gull", run);
        println!("seed {seed}: {trials} trials in one part and in {PARTS}: equal");
    }
}
