//! One test for each attack that was shown against the program, named after what the attacker would have reached.
//!
//! The attacker wrote the skill, the project, its `.practicum` folder or what the agent did. A test runs the program
//! as a user would and looks at what it touched.

#[path = "../common/mod.rs"]
mod common;

mod clean;
mod faults;
mod forged_records;
mod git;
mod given_files;
mod limits;
mod odd_files;
mod reads;
mod records;
mod secrets;
mod trust;
#[cfg(target_os = "linux")]
mod walls;

use std::path::Path;
use std::process::Command;

use common::{Project, Ran};

pub const SKILL: &str = "---\nname: gull\ndescription: Speaks like a gull.\n---\n\nkee-ow\n";

pub const EVALS: &str = "\
practicum: 1
skill: ../skills/gull
run: { agents: [own] }
cases:
  - { id: x, prompt: speak, files: [{ from: given.txt, to: given.txt }], checks: [{ contains: kee-ow }] }
";

/// Makes a project with a skill, its evals and an agent that says what the evals wait for.
pub fn project() -> Project {
    let project = Project::new(&[
        ("skills/gull/SKILL.md", SKILL),
        ("skills/gull/references/notes.md", "Notes.\n"),
        ("evals/e.practicum.yaml", EVALS),
        ("evals/given.txt", "given\n"),
    ]);
    set_agent(&project, "");
    project
}

/// Sets the commands that the agent of a project executes before it answers.
pub fn set_agent(project: &Project, commands: &str) {
    let agent = "echo '{\"type\":\"start\",\"schema_version\":1,\"skills\":[\"gull\"]}'\n\
        echo '{\"type\":\"text\",\"text\":\"kee-ow\"}'\necho '{\"type\":\"end\",\"ending\":\"finished\"}'\n";
    project.write("agent.sh", &format!("{commands}\n{agent}"));
    let path = project.path().join("agent.sh");
    let settings = "sandbox = \"off\"\n[agents.own]\ndecoder = \"practicum-jsonl\"\n";
    let command = format!("command = [\"/bin/bash\", \"{}\", \"{{prompt}}\"]\n", path.display());
    project.write("practicum.toml", &format!("{settings}{command}"));
}

/// Runs the program with little memory, and fails if it does not end by itself.
#[track_caller]
pub fn run_bounded(project: &Project, args: &[&str]) -> Ran {
    let program = project.practicum(args);
    let limit = "ulimit -v 4000000; exec timeout -s KILL 60 \"$0\" \"$@\"";
    let mut command = Command::new("/bin/bash");
    command.arg("-c").arg(limit).arg(program.get_program()).args(program.get_args());
    command.current_dir(project.path()).env_clear();
    command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ran = Ran::of(command.output().expect("practicum starts"));
    assert!((0..=3).contains(&ran.code), "{args:?}: {}\n{}\n{}", ran.code, ran.stdout, ran.stderr);
    ran
}

pub fn link(target: impl AsRef<Path>, at: impl AsRef<Path>) {
    std::os::unix::fs::symlink(target, at).expect("a link");
}
