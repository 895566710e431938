//! Records that came with a repository, and records that were damaged.

use std::path::{Path, PathBuf};

use crate::common::{Project, Ran};
use crate::{EVALS, project, set_agent};

/// Makes a project whose agent counts its starts in a file and gives the wrong answer.
fn failing_project() -> Project {
    let project = project();
    set_agent(&project, &format!("echo started >> {}/starts", project.path().display()));
    // What the agent counts lies in the project, and must not count as a change of it.
    let evals = EVALS.replace("contains: kee-ow", "contains: woof").replace("run:", "workspace: empty\nrun:");
    project.write("evals/e.practicum.yaml", &evals);
    project
}

fn starts(project: &Project) -> usize {
    std::fs::read_to_string(project.path().join("starts")).unwrap_or_default().lines().count()
}

fn trial_folder(run: &Path) -> PathBuf {
    let mut trials = std::fs::read_dir(run.join("trials")).expect("trials").flatten();
    trials.next().expect("a trial").path()
}

fn replace_in(path: &Path, from: &str, to: &str) {
    let text = std::fs::read_to_string(path).expect("a file");
    assert!(text.contains(from), "{from} is not in {text}");
    std::fs::write(path, text.replace(from, to)).expect("write");
}

/// Turns the failure in the files of a run into a pass.
fn forge(run: &Path) {
    replace_in(&trial_folder(run).join("checks.json"), "\"fail\"", "\"pass\"");
    replace_in(&run.join("events.jsonl"), "\"fail\"", "\"pass\"");
}

#[test]
fn a_forged_verdict_in_a_record_makes_a_run_pass_without_an_agent() {
    let project = failing_project();
    project.run(&["run", "evals", "--no-probe"]).exits(1);
    let before = starts(&project);
    project.run(&["run", "evals", "--no-probe"]).exits(1);
    assert_eq!(starts(&project), before, "an honest record is reused");
    let runs: Vec<PathBuf> = std::fs::read_dir(project.path().join(".practicum/runs"))
        .expect("runs")
        .flatten()
        .map(|run| run.path())
        .collect();
    runs.iter().for_each(|run| forge(run));
    let ran = project.run(&["run", "evals", "--no-probe"]).exits(1);
    assert_eq!(starts(&project), before + 1, "{}", ran.stderr);
    assert_eq!(ran.stderr.matches("not reused").count(), 1, "one notice: {}", ran.stderr);
}

#[test]
fn records_of_another_user_are_reused() {
    let project = failing_project();
    let as_user = |name: &str, args: &[&str]| {
        let mut command = project.practicum(args);
        command.env("XDG_CONFIG_HOME", project.path().join(name));
        Ran::of(command.output().expect("starts"))
    };
    let args = ["run", "evals", "--no-probe"];
    as_user("alice", &args).exits(1);
    let before = starts(&project);
    let ran = as_user("bob", &args).exits(1);
    assert_eq!(starts(&project), before + 1, "{}", ran.stderr);
    // The digests alone, without the key, prove nothing: a forger can compute them.
    as_user("bob", &args).exits(1);
    assert_eq!(starts(&project), before + 1, "bob reuses his own");
    // Jobs that share a key reuse each other's records, and an explicit import takes over those of others.
    let with_key = |key: &str| {
        let mut command = project.practicum(&args);
        Ran::of(command.env("PRACTICUM_RECORD_KEY", key).output().expect("starts")).exits(1)
    };
    with_key("a key that two jobs share");
    with_key("a key that two jobs share");
    assert_eq!(starts(&project), before + 2);
    with_key("the key of a third job");
    assert_eq!(starts(&project), before + 3);
    as_user("carol", &["import", "latest"]).exits(0);
    as_user("carol", &args).exits(1);
    assert_eq!(starts(&project), before + 3, "carol took it over");
}

#[test]
fn a_copied_run_is_imported_only_where_it_is_whole() {
    let (from, to) = (failing_project(), failing_project());
    from.run(&["run", "evals", "--no-probe"]).exits(1);
    let run = from.only_run();
    let id = run.display().to_string();
    let said = to.run(&["import", &id]).exits(0);
    assert!(said.stdout.contains("1 result can be reused"), "{}", said.stdout);
    replace_in(&trial_folder(&run).join("checks.json"), "\"fail\"", "\"pass\"");
    let other = failing_project();
    let said = other.run(&["import", &id]).exits(0);
    assert!(said.stdout.contains("0 results") && said.stderr.contains("not taken over"), "{}", said.stderr);
}

#[test]
fn a_copied_run_is_resumed_with_the_options_of_a_stranger() {
    let project = failing_project();
    project.run(&["run", "evals", "--no-probe"]).exits(1);
    let run = project.only_run();
    // As a stranger would ship it: unfinished, with options that weaken.
    std::fs::remove_file(run.join("summary.json")).expect("removed");
    replace_in(&run.join("run.json"), "\"trust\": false", "\"trust\": true");
    let before = starts(&project);
    let ran = project.run(&["run", "--resume", "latest"]);
    assert!(ran.code > 1 && ran.stderr.contains("was not begun by this installation"), "{}", ran.stderr);
    assert_eq!(starts(&project), before);
    std::fs::remove_file(run.join("run.json.mark")).expect("removed");
    assert!(project.run(&["run", "--resume", "latest"]).code > 1);
    project.run(&["import", "latest"]).exits(0);
    project.run(&["run", "--resume", "latest"]).exits(1);
}

#[test]
fn a_resumed_run_takes_over_a_forged_trial() {
    let project = failing_project();
    project.run(&["run", "evals", "--no-probe"]).exits(1);
    let run = project.only_run();
    std::fs::remove_file(run.join("summary.json")).expect("removed");
    forge(&run);
    let before = starts(&project);
    project.run(&["run", "--resume", "latest", "--no-cache"]).exits(1);
    assert_eq!(starts(&project), before + 1);
}

#[test]
fn noise_that_came_with_a_repository_excuses_failures() {
    let project = failing_project();
    let noise = r#"{"schema_version":1,"cases":[{"suite":"e","id":"x","agent":"own","model":null,"mode":"baseline","arm":"with","runs":10,"passed":5,"flip_rate":0.5}]}"#;
    std::fs::create_dir_all(project.path().join(".practicum")).expect("create");
    project.write(".practicum/noise.json", noise);
    // The file is not even read as noise: a form that this program does not know is no error.
    let ran = project.run(&["run", "evals", "--no-probe"]).exits(1);
    assert!(!ran.stdout.contains("flaky"), "{}", ran.stdout);
}

#[test]
fn a_damaged_transcript_turns_a_failure_into_a_pass() {
    for (name, damage) in [("empty", ""), ("garbage", "\u{0}\u{1}garbage\n")] {
        let project = project();
        let evals = EVALS.replace("{ contains: kee-ow }", "{ not_contains: kee-ow }");
        let evals = if evals == EVALS { panic!("no check was replaced") } else { evals };
        project.write("evals/e.practicum.yaml", &evals);
        project.run(&["run", "evals", "--no-probe"]).exits(1);
        let folder = trial_folder(&project.only_run());
        for with_digest in [true, false] {
            std::fs::write(folder.join("transcript.jsonl"), damage).expect("write");
            if !with_digest {
                std::fs::remove_file(folder.join("digest.json")).expect("removed");
            }
            let id = project.path().join(".practicum/runs");
            let mut all: Vec<PathBuf> =
                std::fs::read_dir(id).expect("runs").flatten().map(|run| run.path()).collect();
            all.sort();
            let ran = project.run(&["grade", &all[0].display().to_string()]);
            assert_eq!(ran.code, 3, "{name} {with_digest}: {} {}", ran.stdout, ran.stderr);
        }
    }
}

#[test]
fn a_damaged_line_of_the_log_counts() {
    let project = failing_project();
    project.run(&["run", "evals", "--no-probe"]).exits(1);
    let run = project.only_run();
    replace_in(&run.join("events.jsonl"), "\"verdict\":\"fail\"", "\"verdict\":\"pass\"");
    let shown = project.run(&["show", "latest", "x"]);
    assert!(!shown.stdout.contains("passed"), "{}", shown.stdout);
    assert_ne!(shown.code, 0, "the trial is not known");
}

#[test]
fn a_pass_whose_files_cannot_be_stored_is_a_pass() {
    let project = project();
    // A folder in the place of the file that is to be written stands for a full disk.
    let runs = project.path().join(".practicum/runs");
    set_agent(
        &project,
        &format!("for trial in {}/*/trials/*; do mkdir $trial/output.txt; done", runs.display()),
    );
    let ran = project.run(&["run", "evals", "--no-probe"]);
    assert_eq!(ran.code, 3, "{} {}", ran.stdout, ran.stderr);
    project.run(&["run", "--resume", "latest", "--dry-run"]);
}
