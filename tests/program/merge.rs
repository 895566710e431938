//! `practicum merge`: parts of a run, put together, are the run that one machine would have made.

use serde_json::Value;

use crate::common::Project;

/// Two suites with passing and failing cases, repeats, gates and activation. The builtin agent and a script decide
/// every result, so that runs can be compared.
fn project() -> Project {
    let skill = "---\nname: gull\ndescription: Speaks like a gull.\n---\n\nSay kee-ow.\n";
    let script = "practicum_script: 1\nscenarios:\n  - { name: dog, when: bark, steps: [{ text: woof }] }\ndefault: kee-ow\n";
    let mut evals = "practicum: 1\nskill: ..\nrun: { agents: [builtin], script: script.yaml, repeat: 2 }\n\
        gates: { pass_rate: 0.6 }\ncases:\n"
        .to_owned();
    for number in 1..=9 {
        let prompt = if number % 4 == 0 { "bark" } else { "speak" };
        evals += &format!(
            "  - {{ id: case-{number}, prompt: {prompt} {number}, checks: [{{ contains: kee-ow }}] }}\n"
        );
    }
    evals += "  - { id: leaves-it, prompt: speak, activation: must_not, checks: [{ contains: kee-ow }] }\n";
    let other = "practicum: 1\nskill: ..\nrun: { agents: [builtin], script: script.yaml }\ncases:\n\
        \x20 - { id: one, prompt: speak, checks: [{ contains: kee-ow }] }\n\
        \x20 - { id: two, prompt: speak, checks: [{ regex: kee }] }\n";
    Project::new(&[
        ("gull/SKILL.md", skill),
        ("gull/evals/script.yaml", script),
        ("gull/evals/a.practicum.yaml", &evals),
        ("gull/evals/b.practicum.yaml", other),
    ])
}

const RUN: [&str; 6] = ["run", "gull", "--sandbox", "off", "--no-cache", "--json"];

fn run_part(project: &Project, part: &str) {
    project.run(&[&RUN[..], &["--shard", part]].concat());
}

/// Removes what differs between two equal runs: ids and times.
fn without_times(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for key in ["run", "seconds", "started", "at", "duration", "median_seconds"] {
                fields.remove(key);
            }
            fields.values_mut().for_each(without_times);
        }
        Value::Array(items) => items.iter_mut().for_each(without_times),
        _ => {}
    }
}

pub fn comparable(mut value: Value) -> Value {
    without_times(&mut value);
    value
}

#[test]
fn parts_together_are_the_run_of_one_machine() {
    let project = project();
    let whole = project.run(&RUN);
    let (code, whole) = (whole.code, comparable(whole.json()));
    let verdicts = || {
        let report = project.run(&["report", "latest", "--format", "junit"]).exits(0).stdout;
        report.lines().filter(|line| line.contains("<failure")).count()
    };
    let failures_of_whole = verdicts();
    for parts in [1, 2, 7] {
        std::fs::remove_dir_all(project.path().join(".practicum")).expect("removed");
        for part in 1..=parts {
            run_part(&project, &format!("{part}/{parts}"));
        }
        let merged =
            project.run(&["merge", ".practicum/runs", "--json", "--report", "md=merged.md"]).exits(code);
        assert_eq!(comparable(merged.json()), whole, "{parts} parts");
        assert!(project.path().join("merged.md").is_file());
        assert_eq!(verdicts(), failures_of_whole, "{parts} parts");
        // The merged run can be looked at and graded again like any other.
        project.run(&["show", "latest", "case-1"]).exits(0);
        project.run(&["grade", "latest"]);
    }
    assert!(failures_of_whole > 0);
}

#[test]
fn parts_that_are_balanced_by_durations_are_the_same_run() {
    let project = project();
    let whole = project.run(&RUN);
    let (code, whole) = (whole.code, comparable(whole.json()));
    project.run(&["export", "latest", "-o", "durations.jsonl"]).exits(0);
    std::fs::remove_dir_all(project.path().join(".practicum")).expect("removed");
    let mut trials = Vec::new();
    for part in ["1/3", "2/3", "3/3"] {
        let ran = project.run(&[&RUN[..], &["--shard", part, "--durations", "durations.jsonl"]].concat());
        trials.push(ran.json()["totals"]["trials"].as_u64().expect("a number"));
    }
    let merged = project.run(&["merge", ".practicum/runs", "--json"]).exits(code);
    assert_eq!(comparable(merged.json()), whole);
    assert!(trials.iter().all(|count| *count > 0), "{trials:?}");
    let ran = project.run(&["run", "gull", "--shard", "1/2", "--durations", "gull/SKILL.md"]).exits(2);
    assert!(ran.stderr.contains("not a line of practicum export"), "{}", ran.stderr);
}

#[test]
fn a_missing_part_is_named_and_the_run_is_incomplete() {
    let project = project();
    for part in ["1/3", "3/3"] {
        run_part(&project, part);
    }
    let ran = project.run(&["merge", ".practicum/runs"]).exits(3);
    assert!(ran.stderr.contains("part 2/3 is missing"), "{}", ran.stderr);
    assert!(ran.stdout.contains("not run"), "{}", ran.stdout);
    // Also when what is there has passed.
    let ran = project.run(&["merge", ".practicum/runs", "--json"]);
    assert_eq!(ran.code, 2, "a merged run is not a part: {}", ran.stderr);
}

#[test]
fn parts_that_do_not_belong_together_are_refused() {
    let project = project();
    let merge = || project.run(&["merge", ".practicum/runs"]).exits(2).stderr;
    run_part(&project, "1/2");
    run_part(&project, "1/2");
    assert!(merge().contains("name only one of them"));
    std::fs::remove_dir_all(project.path().join(".practicum")).expect("removed");
    run_part(&project, "1/2");
    run_part(&project, "2/3");
    assert!(merge().contains("are not parts of one run"));
    std::fs::remove_dir_all(project.path().join(".practicum")).expect("removed");
    run_part(&project, "1/2");
    project.run(&[&RUN[..], &["--shard", "2/2", "--repeat", "3"]].concat());
    assert!(merge().contains("different options: settings"));
    std::fs::remove_dir_all(project.path().join(".practicum")).expect("removed");
    project.run(&RUN);
    assert!(merge().contains("was not made with --shard"));
}

#[test]
fn parts_of_other_evals_or_another_skill_are_refused() {
    let project = project();
    run_part(&project, "1/2");
    run_part(&project, "2/2");
    let evals = std::fs::read_to_string(project.path().join("gull/evals/a.practicum.yaml")).expect("evals");
    project.write("gull/evals/a.practicum.yaml", &evals.replace("contains: kee-ow", "contains: kee"));
    let ran = project.run(&["merge", ".practicum/runs"]).exits(2);
    assert!(ran.stderr.contains("was changed"), "{}", ran.stderr);
    project.write("gull/evals/a.practicum.yaml", &evals);
    project.write("gull/SKILL.md", "---\nname: gull\ndescription: Speaks.\n---\n\nOther.\n");
    let ran = project.run(&["merge", ".practicum/runs"]).exits(2);
    assert!(ran.stderr.contains("is another"), "{}", ran.stderr);
}

/// In CI each part comes from another machine, where the project lies elsewhere.
#[test]
fn parts_from_other_folders_are_found_below_a_folder() {
    let (first, second, here) = (project(), project(), project());
    run_part(&first, "1/2");
    run_part(&second, "2/2");
    for (part, name) in [(&first, "one"), (&second, "two")] {
        let to = here.path().join("parts").join(name);
        std::fs::create_dir_all(&to).expect("a folder");
        let copied =
            std::process::Command::new("cp").arg("-r").arg(part.path().join(".practicum")).arg(to).status();
        assert!(copied.expect("cp").success());
    }
    let merged = here.run(&["merge", "parts", "--json"]);
    let whole = here.run(&RUN);
    assert_eq!(merged.code, whole.code, "{}", merged.stderr);
    assert_eq!(comparable(merged.json()), comparable(whole.json()));
}
