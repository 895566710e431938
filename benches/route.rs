//! Measures how the cost of `practicum route` grows with the catalogue, and whether a known confusion is recovered.
//!
//! Run with `cargo bench --bench route`. The agent is the built-in one, with a scripted model. Every tenth skill is
//! confused with its neighbour for a part of its prompts. A run costs in proportion to the skills that are staged, and a
//! study in proportion to its prompts, so the time divided by both should stay the same.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use serde_json::Value;

fn main() {
    for (skills, prompts) in [(106, 250), (212, 500), (423, 1000)] {
        let folder = tempfile::tempdir().expect("a folder");
        let truth = write_catalogue(folder.path(), skills, prompts);
        let started = Instant::now();
        let output = Command::new(env!("CARGO_BIN_EXE_practicum"))
            .args([
                "route",
                "skills",
                "--prompts",
                "prompts.yaml",
                "--agent",
                "builtin",
                "--script",
                "script.yaml",
            ])
            .args(["--repeat", "2", "--json", "-q", "-j", "4"])
            .current_dir(folder.path())
            .env("HOME", folder.path())
            .output()
            .expect("practicum starts");
        let seconds = started.elapsed().as_secs_f64();
        let found: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
        let runs = found["agents"][0]["runs"].as_u64().expect("runs");
        check_recovered(&found, &truth);
        println!(
            "{skills} skills, {prompts} prompts, {runs} runs: {seconds:.0} s, {:.1} ms a run, {:.3} ms a run and skill",
            seconds * 1000.0 / runs as f64,
            seconds * 1000.0 / runs as f64 / skills as f64
        );
    }
}

/// For each expected skill: how many of its prompts there are, and how many go to its neighbour.
type Truth = BTreeMap<String, (u64, u64)>;

fn write_catalogue(folder: &Path, skills: usize, prompts: usize) -> Truth {
    std::fs::write(folder.join("practicum.toml"), "").expect("write");
    for number in 0..skills {
        let path = folder.join(format!("skills/skill-{number:03}"));
        std::fs::create_dir_all(&path).expect("create");
        let text = format!(
            "---\nname: skill-{number:03}\ndescription: Handles the matters of kind{number} and topic{}\n---\n\
             How matters of kind {number} are handled, with all that belongs to it.\n",
            number * 7 + 1
        );
        std::fs::write(path.join("SKILL.md"), text).expect("write");
    }
    let mut truth = Truth::new();
    let (mut list, mut script) = (String::new(), "practicum_script: 1\nscenarios:\n".to_owned());
    for at in 0..prompts {
        let expected = at % skills;
        // Every second prompt of every tenth skill goes to its neighbour.
        let is_confused = expected.is_multiple_of(10) && at / skills % 2 == 1;
        let activated = if is_confused { (expected + 1) % skills } else { expected };
        let row = truth.entry(format!("skill-{expected:03}")).or_default();
        *row = (row.0 + 1, row.1 + u64::from(is_confused));
        list.push_str(&format!("- {{ prompt: matter p{at:04}x, expected: skill-{expected:03} }}\n"));
        script.push_str(&format!(
            "  - {{ when: p{at:04}x, steps: [{{ tools: [{{ name: Skill, input: {{ skill: skill-{activated:03} }} }}] }}, Done.] }}\n"
        ));
    }
    std::fs::write(folder.join("prompts.yaml"), list).expect("write");
    std::fs::write(folder.join("script.yaml"), script).expect("write");
    truth
}

/// Every row's interval contains its truth, and exactly the planted collisions are found.
fn check_recovered(found: &Value, truth: &Truth) {
    let part = &found["agents"][0];
    let rows = part["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), truth.len());
    for row in rows {
        let (prompts, confused) = truth[row["expected"][0].as_str().expect("a name")];
        let right = 1.0 - confused as f64 / prompts as f64;
        let end = |name: &str| row["right"][name].as_f64().expect("an interval");
        assert!(end("low") <= right && right <= end("high"), "{row}");
    }
    let planted = truth.values().filter(|(_, confused)| *confused > 0).count();
    assert_eq!(part["collisions"].as_array().map(Vec::len), Some(planted));
}
