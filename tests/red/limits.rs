//! Agents and checks that use up the machine: each ends with the ending *over limit*, and its neighbours go on.
//!
//! The limits of these tests are small, so that a mistake here does not take the machine down.

use serde_json::Value;

use crate::common::{Project, Ran, sandbox_means};

const EVALS: &str = "\
practicum: 1
workspace: empty
run: { agents: [own], timeout: 60s }
cases:
  - { id: calm, prompt: calm, checks: [{ contains: done }] }
  - { id: hog, prompt: hog, checks: [{ contains: done }] }
";

/// Small limits on everything that an agent could use up.
const SMALL: [&str; 10] = [
    "--limit",
    "memory=256MB",
    "--limit",
    "processes=64",
    "--limit",
    "disk=64MB",
    "--limit",
    "files=2000",
    "--limit",
    "cpu=5s",
];

/// Makes a project in which the agent of the case `hog` executes these commands, and the one of `calm` does not.
fn project(evals: &str, commands: &str) -> Project {
    let project = Project::new(&[("evals/e.practicum.yaml", evals)]);
    let script = format!("if [ \"$1\" = hog ]; then :\n{commands}\nelse sleep 0.3; fi\necho done\n");
    project.write("agent.sh", &script);
    let path = project.path().join("agent.sh");
    let command = format!("command = [\"/bin/bash\", \"{}\", \"{{prompt}}\"]\n", path.display());
    project.write("practicum.toml", &format!("[agents.own]\n{command}"));
    project
}

/// Runs the evals with small limits in a sandbox, or without one.
fn run(project: &Project, means: &str, more: &[&str]) -> Ran {
    let sandbox: &[&str] = match means {
        "strict" => &["--sandbox", "strict"],
        "none" => &["--sandbox", "off"],
        _ => &["--sandbox", "auto"],
    };
    let args =
        [&["run", "evals", "--json", "--no-probe", "--no-cache", "-j", "2"], &SMALL[..], sandbox, more];
    let mut command = project.practicum(&args.concat());
    if ["bubblewrap", "landlock"].contains(&means) {
        command.env("PRACTICUM_SANDBOX_MEANS", means);
    }
    let ran = Ran::of(command.output().expect("practicum starts"));
    assert!((0..=3).contains(&ran.code), "{means}: {}\n{}\n{}", ran.code, ran.stdout, ran.stderr);
    ran
}

/// The sandboxes of this machine, and none.
fn all_means() -> Vec<&'static str> {
    let mut means = sandbox_means();
    if means.contains(&"bubblewrap") {
        means.push("strict");
    }
    means.push("none");
    means
}

fn case<'s>(summary: &'s Value, id: &str) -> &'s Value {
    let cases = summary["cases"].as_array().expect("cases");
    cases.iter().find(|case| case["id"] == id).unwrap_or_else(|| panic!("no case {id}: {summary}"))
}

/// Says why the only trial of a case ended.
fn ended_because(project: &Project, id: &str) -> String {
    let trials = std::fs::read_dir(project.only_run().join("trials")).expect("trials").flatten();
    let mut trial = trials.filter(|trial| trial.file_name().to_string_lossy().starts_with(id));
    let checks = std::fs::read_to_string(trial.next().expect("a trial").path().join("checks.json"));
    let checks: Value = serde_json::from_str(&checks.expect("checks")).expect("JSON");
    checks["ended_because"].as_str().unwrap_or_default().to_owned()
}

#[track_caller]
fn goes_over(limit: &str, commands: &str) {
    for means in all_means() {
        let project = project(EVALS, commands);
        let ran = run(&project, means, &[]);
        let summary = ran.json();
        assert_eq!(case(&summary, "hog")["endings"]["over_limit"], 1, "{means}: {summary:#}\n{}", ran.stderr);
        assert_eq!(case(&summary, "hog")["failed"], 0, "{means}: a limit says nothing about a skill");
        assert_eq!(case(&summary, "calm")["passed"], 1, "{means}: {summary:#}\n{}", ran.stderr);
        let why = ended_because(&project, "hog");
        assert!(why.contains(limit), "{means}: {why}");
        assert_eq!(project.processes(), [""; 0], "{means}: nothing is left running");
    }
}

/// Takes memory step by step, so that a broken limit is not noticed by the kernel's killer but by the time limit.
const MEMORY_HOG: &str = "perl -e 'my @kept; for (1..60) { push @kept, \"x\" x (50 * 1024 * 1024); select(undef, undef, undef, 0.1) }'";

/// Waits until no other test of this file runs. Each uses up a limit of the machine, which another one would meet.
fn wait_for_turn() -> std::sync::MutexGuard<'static, ()> {
    static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());
    TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[test]
fn a_memory_hog_takes_the_machine() {
    let _alone = wait_for_turn();
    goes_over("256 MB of memory", MEMORY_HOG);
}

#[test]
fn many_processes_take_the_memory_that_one_may_not() {
    let _alone = wait_for_turn();
    let hog =
        "for i in 1 2 3 4 5 6 7 8; do perl -e 'my $kept = \"x\" x (40 * 1024 * 1024); sleep 20' & done; wait";
    goes_over("256 MB of memory", hog);
}

#[test]
fn a_fork_bomb_takes_the_machine() {
    let _alone = wait_for_turn();
    // It ends by itself after a while, should nothing else end it.
    let bomb = "bomb() { [ $1 -lt 9 ] && { bomb $(($1 + 1)) & bomb $(($1 + 1)) & }; sleep 15; }; bomb 0";
    goes_over("64 processes", bomb);
}

#[test]
fn a_fork_bomb_leaves_its_group_and_session() {
    let _alone = wait_for_turn();
    goes_over("64 processes", "for i in $(seq 300); do setsid sleep 15 & done; wait; sleep 15");
}

#[test]
fn a_busy_loop_takes_the_processors() {
    let _alone = wait_for_turn();
    goes_over("5 s of processor time", "for i in 1 2 3; do (while :; do :; done) & done; wait");
}

#[test]
fn a_large_file_fills_the_disk() {
    let _alone = wait_for_turn();
    for make in [
        "head -c 100000000 /dev/zero > big",
        "head -c 100000000 /dev/zero > \"$HOME/big\"",
        "head -c 100000000 /dev/zero > \"$TMPDIR/big\"",
        "truncate -s 150M big",
        "fallocate -l 150M big",
    ] {
        goes_over("64 MB of disk", &format!("{make}; sleep 0.1"));
    }
}

#[test]
fn many_files_fill_the_disk() {
    let _alone = wait_for_turn();
    goes_over("2000 files", "mkdir many; cd many; seq 100000 | xargs touch");
}

#[test]
fn a_deep_folder_cannot_be_read() {
    let _alone = wait_for_turn();
    goes_over("too deep", "perl -e 'for (1..16000) { mkdir \"d\"; chdir \"d\" }'");
}

#[test]
fn a_folder_in_memory_takes_the_memory() {
    let _alone = wait_for_turn();
    if !sandbox_means().contains(&"bubblewrap") {
        return;
    }
    for folder in ["/tmp", "/dev/shm"] {
        let project = project(
            EVALS,
            &format!("for i in 1 2; do head -c 150000000 /dev/zero > {folder}/$i; done; sleep 5"),
        );
        let summary = run(&project, "bubblewrap", &[]).json();
        assert_eq!(case(&summary, "hog")["endings"]["over_limit"], 1, "{folder}: {summary:#}");
        assert_eq!(case(&summary, "calm")["passed"], 1, "{folder}");
    }
}

#[test]
fn open_files_take_the_tables_of_the_system() {
    let _alone = wait_for_turn();
    let many =
        "perl -e 'my @open; while (open(my $file, \"<\", \"/dev/null\")) { push @open, $file } sleep 5'";
    for means in sandbox_means() {
        let project = project(EVALS, many);
        let summary = run(&project, means, &["--limit", "open-files=100"]).json();
        assert_eq!(case(&summary, "hog")["endings"]["over_limit"], 1, "{means}: {summary:#}");
        assert!(ended_because(&project, "hog").contains("100 open files"), "{means}");
    }
}

#[test]
fn a_setup_script_takes_the_machine() {
    let _alone = wait_for_turn();
    let setup = "id: hog, prompt: calm, setup: 'head -c 100000000 /dev/zero > big',";
    let evals = EVALS.replace("id: hog, prompt: hog,", setup);
    for means in all_means() {
        let project = project(&evals, "");
        let summary = run(&project, means, &["--trust"]).json();
        assert_eq!(case(&summary, "hog")["endings"]["over_limit"], 1, "{means}: {summary:#}");
        assert_eq!(case(&summary, "calm")["passed"], 1, "{means}");
    }
}

#[test]
fn the_command_of_a_check_takes_the_machine() {
    let _alone = wait_for_turn();
    for (command, limit) in [
        (MEMORY_HOG, "256 MB of memory"),
        ("head -c 100000000 /dev/zero > big", "64 MB of disk"),
        ("for i in $(seq 300); do sleep 15 & done; wait", "64 processes"),
    ] {
        for means in all_means() {
            let check = format!("[{{ contains: done }}, {{ command: {} }}]", Value::from(command));
            let evals = EVALS.replace(
                "id: hog, prompt: hog, checks: [{ contains: done }]",
                &format!("id: hog, prompt: calm, checks: {check}"),
            );
            let project = project(&evals, "");
            let ran = run(&project, means, &["--trust"]);
            let summary = ran.json();
            let hog = case(&summary, "hog");
            assert_eq!((&hog["failed"], &hog["not_scored"]), (&0.into(), &1.into()), "{means}: {summary:#}");
            assert_eq!(case(&summary, "calm")["passed"], 1, "{means}");
            let run =
                std::process::Command::new("grep").args(["-rl", limit]).arg(project.only_run()).output();
            assert!(!run.expect("grep").stdout.is_empty(), "{means}: {limit}\n{}", ran.stderr);
        }
    }
}

#[test]
fn limits_come_from_flags_variables_and_files() {
    let _alone = wait_for_turn();
    let project = project(EVALS, "head -c 30000000 /dev/zero > big");
    let explain = |args: &[&str], variable: Option<(&str, &str)>| {
        let mut command = project.practicum(&[&["run", "evals", "--explain"], args].concat());
        let ran = Ran::of(command.envs(variable).output().expect("starts")).exits(0);
        ran.stdout.lines().find(|line| line.contains("limits.disk")).expect("a row").to_owned()
    };
    assert!(explain(&[], None).contains("4 GB"));
    project.write("practicum.toml", "[limits]\ndisk = \"1GB\"\n[agents.own]\ncommand = [\"/bin/true\"]\n");
    assert!(explain(&[], None).contains("1 GB"));
    assert!(explain(&[], Some(("PRACTICUM_LIMIT_DISK", "2GB"))).contains("2 GB"));
    assert!(explain(&["--limit", "disk=20MB"], None).contains("20 MB"));
    for wrong in ["disk", "disk=", "disk=much", "speed=1GB", "processes=1"] {
        let ran = project.run(&["run", "evals", "--limit", wrong]).exits(2);
        assert!(ran.stderr.contains("limit"), "{wrong}: {}", ran.stderr);
    }
}
