//! Runs that were interrupted, and what was said of them.

use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::common::{Project, Ran};

/// Says that it runs, and goes on when it may.
const AGENT: &str = "touch 'PROJECT/started'\nwhile [ ! -e 'PROJECT/go' ]; do sleep 0.1; done\necho kee-ow\n";

const EVALS: &str = "
practicum: 1
workspace: empty
run: { agents: [own] }
cases:
  - { id: gull, prompt: Speak, checks: [{ contains: kee }] }
";

/// The only trial was running when the user stopped the run, and ended by itself.
#[test]
fn a_run_whose_trials_all_ended_is_not_said_to_have_some_left() {
    let project = Project::new(&[("e.practicum.yaml", EVALS)]);
    let folder = project.path().display().to_string();
    project.write("agent.sh", &AGENT.replace("PROJECT", &folder));
    project.write(
        "practicum.toml",
        &format!(
            "sandbox = \"off\"\n[agents.own]\ncommand = [\"/bin/bash\", \"{folder}/agent.sh\", \"{{prompt}}\"]\n"
        ),
    );
    let mut started = project.practicum(&["run", "."]);
    let child = started.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("practicum starts");
    let begin = Instant::now();
    while !project.path().join("started").exists() {
        assert!(begin.elapsed() < Duration::from_secs(300), "the agent did not start");
        std::thread::sleep(Duration::from_millis(50));
    }
    kill_process(Pid::from_child(&child), Signal::INT).expect("a signal");
    // The program is told before the agent goes on.
    std::thread::sleep(Duration::from_secs(2));
    project.write("go", "");
    let ran = Ran::of(child.wait_with_output().expect("it ends")).exits(130);
    assert!(ran.stdout.contains("INTERRUPTED  1 of 1 trial passed"), "{}{}", ran.stdout, ran.stderr);
    assert!(!ran.stdout.contains("continues it"), "{}", ran.stdout);
    assert!(ran.stdout.contains("every trial has a result; practicum run --resume"), "{}", ran.stdout);
    // What it says is so: nothing is run, and the verdict is there.
    std::fs::remove_file(project.path().join("started")).expect("removed");
    let ran = project.run(&["run", "--resume"]).exits(0);
    assert!(ran.stdout.contains("PASS  1 of 1 trial passed"), "{}", ran.stdout);
    assert!(!project.path().join("started").exists(), "the agent was started again");
}
