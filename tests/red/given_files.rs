//! Files that evals give to agents, and files that are written for a skill.

use std::path::Path;

use crate::common::Project;
use crate::{EVALS, link, project};

/// Checks and runs evals with one more key in their case, and gives what the program said against it.
#[track_caller]
fn refused(project: &Project, key: &str) -> String {
    let case = format!("\n  - {{ id: evil, prompt: speak, {key}, checks: [{{ contains: kee-ow }}] }}\n");
    project.write("evals/e.practicum.yaml", &format!("{}{case}", EVALS.trim_end()));
    project.run(&["run", "evals"]).exits(2);
    let ran = project.run(&["check", "evals"]).exits(2);
    format!("{}{}", ran.stdout, ran.stderr)
}

#[test]
fn a_case_gives_the_environment_or_files_of_the_machine_to_an_agent() {
    let project = project();
    let outside = tempfile::tempdir().expect("a folder");
    std::fs::write(outside.path().join("secret.txt"), "a secret").expect("write");
    std::fs::create_dir(project.path().join("evals/inner")).expect("create");
    link(outside.path(), project.path().join("evals/out"));
    let up = "../".repeat(40);
    let file = outside.path().join("secret.txt");
    for path in [
        "/proc/self/environ".to_owned(),
        "/dev/zero".to_owned(),
        file.display().to_string(),
        format!("{up}{}", file.display()),
        format!("inner/{up}etc/passwd"),
        format!("{up}nowhere/at/all"),
    ] {
        let said = refused(&project, &format!("files: [{{ from: {path}, to: a }}]"));
        assert!(said.contains("is not a relative path inside the project"), "{path}: {said}");
        let said = refused(&project, &format!("overlays: [{path}]"));
        assert!(said.contains("is not a relative path inside the project"), "{path}: {said}");
    }
    for path in ["out", "out/secret.txt"] {
        for key in [format!("files: [{{ from: {path}, to: a }}]"), format!("overlays: [{path}]")] {
            let said = refused(&project, &key);
            assert!(said.contains("is a link that leads out of the project"), "{key}: {said}");
        }
    }
}

#[test]
fn a_pipe_or_device_given_to_an_agent_makes_the_run_wait() {
    let project = project();
    let made = std::process::Command::new("mkfifo").arg(project.path().join("evals/pipe")).status();
    assert!(made.expect("mkfifo").success());
    for key in ["files: [{ from: pipe, to: a }]", "overlays: [pipe]"] {
        let said = refused(&project, key);
        assert!(said.contains("is neither a regular file nor a folder"), "{said}");
    }
}

#[test]
fn files_elsewhere_in_the_project_can_still_be_given() {
    let project = project();
    project.write("data/a.txt", "a\n");
    let case = "  - { id: y, prompt: speak, files: [{ from: ../data/a.txt, to: a }], overlays: [../data], \
                checks: [{ contains: kee-ow }] }\n";
    project.write("evals/e.practicum.yaml", &format!("{EVALS}{case}"));
    project.run(&["run", "evals"]).exits(0);
}

#[test]
fn an_overlay_of_bmad_copies_a_folder_of_the_machine() {
    let outside = tempfile::tempdir().expect("a folder");
    std::fs::write(outside.path().join("letter.txt"), "a secret").expect("write");
    let evals = r#"{"skill_name": "gull", "evals": [{"id": "A1", "prompt": "speak", "expectations": ["It speaks."]}]}"#;
    for at in ["evals/gull/setup", "evals/setup", "evals/gull/A1/setup"] {
        let project = project();
        std::fs::remove_file(project.path().join("evals/e.practicum.yaml")).expect("removed");
        project.write("evals/gull/evals.json", evals);
        project.write("evals/gull/triggers.json", r#"[{"query": "speak", "should_trigger": true}]"#);
        std::fs::create_dir_all(project.path().join("evals/gull/A1")).expect("create");
        link(outside.path(), project.path().join(at));
        let args = ["run", "evals", "--no-judge", "--no-probe", "--agent", "own", "--keep-workspaces"];
        let ran = project.run(&args);
        let kept = Path::new(
            ran.stderr
                .split("/tmp/practicum-")
                .nth(1)
                .map_or("", |rest| rest.split_whitespace().next().unwrap_or("")),
        )
        .to_owned();
        let folder = Path::new("/tmp").join(format!("practicum-{}", kept.display()));
        let find = std::process::Command::new("find").arg(&folder).output().expect("find");
        let found = String::from_utf8_lossy(&find.stdout).into_owned();
        let _ = std::fs::remove_dir_all(&folder);
        assert!(found.contains("SKILL.md"), "workspaces were kept: {found}\n{}\n{}", ran.stdout, ran.stderr);
        assert!(!found.contains("letter.txt"), "{at}: {found}");
    }
}

/// Lists all files below a folder.
fn files_below(folder: &Path) -> Vec<String> {
    let output = std::process::Command::new("find").arg(folder).arg("-type").arg("f").output();
    let text = String::from_utf8_lossy(&output.expect("find").stdout).into_owned();
    let mut files: Vec<String> = text.lines().map(str::to_owned).collect();
    files.sort();
    files
}

#[test]
fn init_writes_where_the_name_of_a_skill_leads() {
    for dialect in ["native", "clauditor", "skill-creator", "bmad", "writing-skills", "skill-test", "skillet"]
    {
        for name in ["../../../escaped", "/tmp/practicum-escaped", "a/b/c", ".."] {
            let project = Project::new(&[]);
            let text = format!("---\nname: {name}\ndescription: Speaks.\n---\n\nkee-ow\n");
            project.write("a/b/skills/gull/SKILL.md", &text);
            project.run(&["init", "a/b/skills/gull", "--dialect", dialect]);
            let inside = ["a/b/skills/gull/", "a/b/skills/gull-workspace/", "practicum.toml", ".practicum/"];
            for file in files_below(project.path()) {
                let below = file.strip_prefix(project.path().to_str().expect("text")).expect("below");
                let is_inside = inside.iter().any(|known| below.trim_start_matches('/').starts_with(known));
                assert!(is_inside, "{dialect} {name}: {file}");
                assert!(!below.contains("/b/c"), "{dialect} {name}: {file}");
            }
            assert!(!Path::new("/tmp/practicum-escaped.practicum.yaml").exists());
        }
    }
}

#[test]
fn init_writes_through_a_link_of_the_skill() {
    for dialect in ["native", "skill-creator", "writing-skills", "skill-test"] {
        let project = project();
        let outside = tempfile::tempdir().expect("a folder");
        link(outside.path(), project.path().join("skills/gull/evals"));
        let ran = project.run(&["init", "skills/gull", "--dialect", dialect]).exits(2);
        assert!(ran.stderr.contains("leads out of"), "{}", ran.stderr);
        assert_eq!(std::fs::read_dir(outside.path()).expect("a folder").count(), 0, "{dialect}");
    }
}
