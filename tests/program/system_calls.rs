//! What the program asks of the system: counted with strace, because times say little on a busy machine.

use std::collections::BTreeMap;
use std::process::Command;

use crate::common::Project;

/// Runs the program under strace, and gives the calls of all its threads and processes, each with its process. `None`
/// where strace is not installed or may not look at processes.
fn trace(project: &Project, args: &[&str]) -> Option<Vec<(String, String)>> {
    let log = project.path().join("calls.txt");
    let program = project.practicum(args);
    let mut command = Command::new("strace");
    command.args(["-f", "-y", "-s", "8", "-o"]).arg(&log).arg(program.get_program()).args(program.get_args());
    command.env_clear().envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ran = command.current_dir(project.path()).output();
    let Some(ran) = ran.ok().filter(|_| log.is_file()) else {
        eprintln!("skipped: strace is not installed");
        return None;
    };
    let stderr = String::from_utf8_lossy(&ran.stderr);
    if stderr.contains("strace: ") {
        eprintln!("skipped: {stderr}");
        return None;
    }
    assert!(ran.status.success(), "{stderr}");
    let text = std::fs::read_to_string(log).expect("the calls");
    let is_call = |line: &&str| !line.contains(" resumed>") && !line.contains("+++") && !line.contains("---");
    let calls = text.lines().filter(is_call).filter_map(|line| line.split_once(' '));
    // Only builds with debug assertions look at each file descriptor before they close it.
    let calls = calls.filter(|(_, call)| !call.contains("F_GETFD"));
    Some(calls.map(|(process, call)| (process.to_owned(), call.trim().to_owned())).collect())
}

fn fewest(counts: BTreeMap<&str, usize>) -> usize {
    counts.into_values().min().unwrap_or_default()
}

/// Gives the names of folders that stand after a part of a path.
fn names_after<'c>(call: &'c str, part: &str) -> Option<&'c str> {
    let rest = &call[call.find(part)? + part.len()..];
    rest.split(['/', '"', '>']).next().filter(|name| !name.is_empty())
}

#[test]
fn a_trial_costs_more_system_calls_than_it_needs() {
    let cases: String = (0..30)
        .map(|n| {
            format!("  - {{id: case-{n}, prompt: p, checks: [{{contains: done}}, {{max_length: 99}}]}}\n")
        })
        .collect();
    let suite = format!("practicum: 1\nworkspace: empty\nrun: {{agents: [echo]}}\ncases:\n{cases}");
    let project = Project::new(&[("e.practicum.yaml", &suite)]);
    project.write("practicum.toml", "[agents.echo]\ncommand = [\"/bin/echo\", \"done\"]\n");
    let args = ["run", ".", "-j", "1", "--sandbox", "off", "--no-cache", "--no-probe", "--json"];
    let Some(calls) = trace(&project, &args) else { return };
    // The calls of the agent are its own, and so are those of the process that becomes the agent.
    let agents: Vec<&str> = calls
        .iter()
        .filter(|(_, call)| call.starts_with("setpgid(0"))
        .map(|(process, _)| process.as_str())
        .collect();
    assert_eq!(agents.len(), 30);
    let own: Vec<&str> = calls
        .iter()
        .filter(|(process, _)| !agents.contains(&process.as_str()))
        .map(|(_, call)| call.as_str())
        .collect();
    let mut in_record: BTreeMap<&str, usize> = BTreeMap::new();
    let mut in_workspace: BTreeMap<&str, usize> = BTreeMap::new();
    let run = project.only_run();
    let run = run.file_name().and_then(|name| name.to_str()).expect("an id");
    for call in &own {
        if let Some(trial) = names_after(call, &format!("{run}/trials/")) {
            *in_record.entry(trial).or_default() += 1;
        } else if let Some(shelf) = names_after(call, &format!("practicum-{run}/"))
            && let Some(workspace) = names_after(call, &format!("practicum-{run}/{shelf}/"))
        {
            *in_workspace.entry(workspace).or_default() += 1;
        }
    }
    assert_eq!((in_record.len(), in_workspace.len()), (30, 30));
    // A slow machine looks more often at what a trial uses, so the cheapest trial counts.
    let (record, workspace) = (fewest(in_record), fewest(in_workspace));
    println!(
        "of a trial: {record} calls for its record, {workspace} for its workspace; {} in all",
        own.len() / 30
    );
    assert!(record <= MOST_CALLS_FOR_A_RECORD, "{record}");
    assert!(workspace <= MOST_CALLS_FOR_A_WORKSPACE, "{workspace}");
}

/// The most calls that name a file of the trial's record. 49 were counted when this was written.
const MOST_CALLS_FOR_A_RECORD: usize = 55;

/// The most calls that name the trial's workspace. 47 were counted when this was written, and a look at the disk while the
/// agent runs takes 20 more.
const MOST_CALLS_FOR_A_WORKSPACE: usize = 70;

#[test]
fn check_reads_a_skill_for_each_of_its_questions() {
    let project = Project::new(&[]);
    for n in 0..5 {
        let folder = format!("skills/skill-{n}");
        let skill = format!(
            "---\nname: skill-{n}\ndescription: Plans. Use when asked for a plan.\n---\n\nPlan it.\n"
        );
        project.write(&format!("{folder}/SKILL.md"), &skill);
        let evals = format!(
            r#"{{"skill_name": "skill-{n}", "evals": [{{"id": 1, "prompt": "Plan {n}.", "expectations": ["Names a step"]}}]}}"#
        );
        project.write(&format!("{folder}/evals/evals.json"), &evals);
    }
    let Some(calls) = trace(&project, &["check", "--json"]) else { return };
    for n in 0..5 {
        let opened = |name: &str| {
            let path = format!("skills/skill-{n}/{name}\"");
            calls.iter().filter(|(_, call)| call.starts_with("openat(") && call.contains(&path)).count()
        };
        assert_eq!((opened("SKILL.md"), opened("evals/evals.json")), (1, 1), "skill-{n}");
    }
}
