//! The example runs as it is shown: its own format is read, its own check grades, its own agent runs as a process, and
//! its own report is written.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Copies the example's skill, so that tests do not share a record.
fn copied_skill(folder: &Path) -> PathBuf {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("answers");
    let to = folder.join("answers");
    std::fs::create_dir_all(to.join("evals")).expect("create");
    for file in ["SKILL.md", "practicum.toml", "evals/first.questions.yaml", "evals/second.practicum.yaml"] {
        std::fs::copy(from.join(file), to.join(file)).expect("copy");
    }
    to
}

fn run(skill: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_extend-example")).arg(skill).output().expect("the example")
}

#[test]
fn all_four_additions_work_together() {
    let folder = tempfile::tempdir().expect("a folder");
    let skill = copied_skill(folder.path());
    let ran = run(&skill);
    let (out, errors) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{out}{errors}");
    for line in [
        "questions capital: 1 of 1",
        "questions poem: 1 of 1",
        "second sum: 1 of 1",
        "second too-long: 0 of 1",
    ] {
        assert!(out.lines().any(|found| found == line), "{line} is not in\n{out}");
    }
    let runs = std::fs::read_dir(skill.join(".practicum/runs")).expect("runs").flatten();
    let reports = runs.filter(|run| run.path().join("lines.txt").is_file());
    assert_eq!(reports.count(), 1, "the report is a file");
}

#[test]
fn a_mistake_in_a_file_of_the_added_format_or_check_stops_the_run() {
    for (file, text) in [
        ("evals/first.questions.yaml", "questions:\n  - { id: a, ask: A?, line: 1 }\n"),
        (
            "evals/second.practicum.yaml",
            "practicum: 1\nskill: ..\ncases:\n  - { id: a, prompt: A?, checks: [{ line_count: no }] }\n",
        ),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let skill = copied_skill(folder.path());
        std::fs::write(skill.join(file), text).expect("write");
        let ran = run(&skill);
        let errors = String::from_utf8_lossy(&ran.stderr);
        assert!(!ran.status.success(), "{file}");
        assert!(errors.contains("cannot be understood"), "{file}: {errors}");
    }
}
