//! Files and folders that cannot be read to their end, where the tests of `odd_files.rs` have none.

use std::path::Path;
use std::process::Command;

use crate::{link, project, run_bounded};

const COMMANDS: [&[&str]; 6] =
    [&["check"], &["list"], &["lint"], &["doctor"], &["runs"], &["run", "evals", "--no-probe"]];

/// Makes 16,000 folders inside each other.
fn make_deep(at: &Path) {
    std::fs::create_dir_all(at).expect("create");
    let made = Command::new("perl")
        .args(["-e", "for (1..16000) { mkdir 'd'; chdir 'd' or die }"])
        .current_dir(at)
        .status()
        .expect("perl");
    assert!(made.success());
}

#[test]
fn a_deep_folder_of_a_project_overflows_the_stack() {
    for place in ["evals/deep", "skills/gull/deep"] {
        let project = project();
        make_deep(&project.path().join(place));
        for args in COMMANDS {
            run_bounded(&project, args);
        }
        // The library that removes the project's folder at the end recurses.
        let removed = Command::new("rm").arg("-rf").arg(project.path().join(place)).status();
        assert!(removed.expect("rm").success());
    }
}

#[test]
fn a_deep_folder_of_a_skill_overflows_the_stack_of_its_versions() {
    let project = project();
    make_deep(&project.path().join("skills/gull/deep"));
    for args in [&["snapshot", "skills/gull"][..], &["snapshot", "skills/gull", "--list"]] {
        let ran = run_bounded(&project, args);
        assert!(!ran.stderr.contains("overflow"), "{}", ran.stderr);
    }
    let _ = Command::new("rm").arg("-rf").arg(project.path().join("skills/gull/deep")).status();
}

#[test]
fn a_huge_file_takes_the_memory() {
    for path in [
        "skills/gull/SKILL.md",
        "evals/e.practicum.yaml",
        "practicum.toml",
        "skills/gull/references/notes.md",
    ] {
        let project = project();
        // The file has only a hole. Its size is what counts.
        let file = std::fs::File::create(project.path().join(path)).expect("a file");
        file.set_len(20 * 1024 * 1024 * 1024).expect("a hole");
        for args in COMMANDS {
            run_bounded(&project, args);
        }
    }
}

#[test]
fn a_socket_or_an_endless_link_hangs_a_command() {
    for path in ["skills/gull/SKILL.md", "evals/e.practicum.yaml", "practicum.toml", "evals/given.txt"] {
        let project = project();
        let at = project.path().join(path);
        std::fs::remove_file(&at).expect("removed");
        let _socket = std::os::unix::net::UnixListener::bind(&at).expect("a socket");
        for args in COMMANDS {
            run_bounded(&project, args);
        }
        std::fs::remove_file(&at).expect("removed");
        link(at.file_name().expect("a name"), &at);
        for args in COMMANDS {
            run_bounded(&project, args);
        }
    }
}
