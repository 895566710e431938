//! Conversion between all formats: what the target cannot express is listed, and the native format expresses all.

use serde_json::{Value, json};

use crate::common::Project;

const SKILL: &str = "---\nname: dock\ndescription: Use when a report is wanted.\n---\n\nWrite it.\n";

/// One file for each format, with an exact check, a negative one and a judged one where the format has them.
fn sources() -> Vec<(&'static str, &'static str, String)> {
    let creator = json!({"skill_name": "dock", "evals": [{"id": "one", "prompt": "Write the report.", "assertions": [
        {"name": "says-total", "type": "contains", "value": "total-77"},
        {"name": "no-draft", "type": "not_contains", "value": "draft-88"}, "It is sober-99."]}]});
    let bmad = json!({"_design_notes": "n", "evals": [{"id": "one", "prompt": "Write the report.", "timeout": 60,
        "expectations": ["It says total-77.", "It does not say draft-88.", "It is sober-99."]}]});
    let writing = json!({"version": "1.0", "skill": "dock", "cases": [{"id": "one", "prompt": "Write the report.",
        "expectations": [{"criterion": "total", "description": "It says total-77 and not draft-88", "required": true},
            {"criterion": "tone", "description": "It is sober-99", "required": true}]}]});
    let clauditor = json!({"skill_name": "dock", "test_args": "report", "assertions": [
        {"id": "a", "type": "contains", "needle": "total-77"}, {"id": "b", "type": "not_contains", "needle": "draft-88"}],
        "grading_criteria": [{"id": "c", "criterion": "It is sober-99"}]});
    let test = json!({"name": "dock", "skills": [{"name": "dock", "plugin": "p", "test_cases": [
        {"prompt": "total-77", "expectation": "must_activate"},
        {"prompt": "draft-88", "expectation": "should_not_activate"}]}]});
    let skillet = "timestamp: 2026-01-15\nname: dock\nprompt: Write the report.\nexpected: It is sober-99.\nassertions:\n  \
                   - { type: contains, value: total-77 }\n  - { type: not_contains, value: draft-88 }\n";
    let native = "practicum: 1\nskill: ../dock\nworkspace: empty\ncases:\n  - id: one\n    prompt: Write the report.\n    \
                  activation: must\n    checks: [{ contains: total-77 }, { not_contains: draft-88 }, { judge: It is sober-99. }]\n";
    let promptfoo = json!({"prompts": ["Write the {{what}}."], "providers": [
        {"id": "anthropic:claude-agent-sdk", "config": {"setting_sources": ["project"], "skills": ["dock"]}}],
        "tests": [{"description": "one", "vars": {"what": "report"}, "assert": [
            {"type": "contains", "value": "total-77"}, {"type": "not-contains", "value": "draft-88"},
            {"type": "llm-rubric", "value": "It is sober-99."}]}]});
    let vally = json!({"name": "dock", "tags": {"skill": "dock"}, "stimuli": [{"name": "one", "prompt": "Write the report.",
        "graders": [{"type": "output-contains", "config": {"substring": "total-77"}},
            {"type": "output-not-contains", "config": {"substring": "draft-88"}},
            {"type": "prompt", "config": {"prompt": "It is sober-99."}}]}]});
    let skillgrade = json!({"version": "1", "skill": "../dock", "tasks": [{"name": "one", "instruction": "Write the report.",
        "graders": [{"type": "deterministic", "run": "grep total-77 out.md && ! grep draft-88 out.md"},
            {"type": "llm_rubric", "rubric": "It is sober-99."}]}]});
    vec![
        ("promptfoo", "evals/promptfooconfig.yaml", promptfoo.to_string()),
        ("vally", "evals/eval.yaml", vally.to_string()),
        ("skillgrade", "evals/eval.yaml", skillgrade.to_string()),
        ("skill-creator", "dock/evals/evals.json", creator.to_string()),
        ("bmad", "evals/dock/evals.json", bmad.to_string()),
        ("writing-skills", "dock/evals/evals.json", writing.to_string()),
        ("clauditor", "dock/SKILL.eval.json", clauditor.to_string()),
        ("skill-test", "suites/dock.json", test.to_string()),
        ("skillet", "sk/one.yaml", skillet.to_owned()),
        ("native", "evals/dock.practicum.yaml", native.to_owned()),
    ]
}

fn creator_source() -> String {
    let found = sources().into_iter().find(|(format, _, _)| *format == "skill-creator");
    found.map(|(_, _, text)| text).expect("a source")
}

/// The texts that a check or a case of a source has. A conversion may lose one only if it says so.
const OPERANDS: [&str; 3] = ["total-77", "draft-88", "sober-99"];

#[test]
fn an_operand_or_a_negative_is_never_lost_in_silence() {
    for (from, path, text) in sources() {
        for to in practicum::dialects::dialect_names() {
            let project = Project::new(&[
                ("dock/SKILL.md", SKILL),
                ("plugins/p/skills/dock/SKILL.md", SKILL),
                (path, &text),
            ]);
            let ran = project.run(&["convert", path, "--to", to]);
            let is_written = ran.code == 0;
            assert!(
                is_written || ran.stderr.contains("nothing is written"),
                "{from} to {to}: {}",
                ran.stderr
            );
            let lost = ran.stderr.contains("lost: ") || !is_written;
            for operand in OPERANDS.iter().filter(|operand| text.contains(**operand)) {
                assert!(
                    ran.stdout.contains(operand) || lost,
                    "{from} to {to}: {operand}\n{}{}",
                    ran.stdout,
                    ran.stderr
                );
            }
            // What must not be there is not written as something that must.
            if !["skill-test", "skillgrade"].contains(&from) && is_written && ran.stdout.contains("draft-88")
            {
                let line = ran.stdout.lines().position(|line| line.contains("draft-88")).expect("a line");
                let lines: Vec<&str> = ran.stdout.lines().collect();
                let around =
                    lines[line.saturating_sub(4)..(line + 2).min(lines.len())].join(" ").to_lowercase();
                assert!(around.contains("not"), "{from} to {to}: {around}");
            }
            if to == "native" {
                assert!(!ran.stderr.contains("lost: "), "{from}: {}", ran.stderr);
            }
        }
    }
}

#[test]
fn the_native_format_keeps_everything() {
    for (from, path, text) in sources() {
        let project = Project::new(&[
            ("dock/SKILL.md", SKILL),
            ("plugins/p/skills/dock/SKILL.md", SKILL),
            (path, &text),
        ]);
        let out = format!("{}.practicum.yaml", path.trim_end_matches(".practicum.yaml"));
        let first: Value = project.run(&["convert", path, "--to", "native", "--json"]).exits(0).json();
        project.run(&["convert", path, "--to", "native", "-o", &out, "--force"]).exits(0);
        let again: Value = project.run(&["convert", &out, "--to", "native", "--json"]).exits(0).json();
        assert_eq!(first["files"][0]["document"], again["files"][0]["document"], "{from}");
    }
}

#[test]
fn a_whole_repository_is_converted_in_one_command() {
    let project = Project::new(&[
        ("skills/dock/SKILL.md", SKILL),
        ("skills/ship/SKILL.md", &SKILL.replace("dock", "ship")),
        ("skills/dock/evals/evals.json", &creator_source()),
        ("skills/dock/evals/trigger-eval.json", r#"[{"query": "q", "should_trigger": true}]"#),
        ("skills/ship/evals/evals.json", &creator_source().replace("dock", "ship")),
    ]);
    let ran = project.run(&["convert", "--to", "native", "skills", "-o", "out/"]).exits(0);
    for file in [
        "dock/evals/dock.practicum.yaml",
        "dock/evals/dock-trigger-eval.practicum.yaml",
        "ship/evals/ship.practicum.yaml",
    ] {
        assert!(project.path().join("out").join(file).is_file(), "{file}: {}", ran.stderr);
    }
    project.run(&["check", "out"]).exits(0);
    let told = project.run(&["convert", "--to", "native", "skills"]).exits(2).stderr;
    assert!(told.contains("-o FOLDER/"), "{told}");
    // A file that cannot be understood is named, and the others are written.
    project.write("skills/ship/evals/evals.json", "{\"evals\": [");
    let ran = project.run(&["convert", "--to", "native", "skills", "-o", "again/"]).exits(2);
    assert!(
        ran.stderr.contains("not converted: ") && ran.stderr.contains("ship/evals/evals.json"),
        "{}",
        ran.stderr
    );
    assert!(project.path().join("again/dock.practicum.yaml").is_file(), "{}", ran.stderr);
}

/// A repository as it grows: several formats, several suites with the same names in one folder, a broken file, and
/// folders that are one eval.
fn mixed_repository() -> Project {
    let text = |format: &str| {
        let found = sources().into_iter().find(|(name, _, _)| *name == format);
        found.map(|(_, _, text)| text).expect("a source")
    };
    let task = "Write the report.\n";
    let criteria = r#"{"type": "weighted_checklist", "checklist": [
        {"name": "Total", "description": "The file names total-77.", "max_score": 60},
        {"name": "Tone", "description": "It is sober-99.", "max_score": 40}]}"#;
    let grader = "---\ntype: regex\npattern: draft-88\nmatch: not_contains\n---\n";
    Project::new(&[
        ("dock/SKILL.md", SKILL),
        ("dock/evals/evals.json", &creator_source()),
        ("dock/evals/trigger-eval.json", r#"[{"query": "Report, please.", "should_trigger": true}]"#),
        ("dock/evals/more.json", &creator_source()),
        ("evals/vally/eval.yaml", &text("vally")),
        ("evals/skillgrade/eval.yaml", &text("skillgrade").replace("../dock", "../../dock")),
        ("evals/tessl/one/task.md", task),
        ("evals/tessl/one/criteria.json", criteria),
        ("evals/plugin/one/prompt.md", task),
        ("evals/plugin/one/graders/no-draft.md", grader),
        ("evals/broken/evals.json", "{\"evals\": ["),
    ])
}

#[test]
fn a_mixed_repository_is_converted_to_every_format_in_one_command() {
    for to in ["native", "vally", "waza", "claude-plugin-eval", "skill-creator", "skill-up"] {
        let project = mixed_repository();
        let ran = project.run(&["convert", "--to", to, ".", "-o", "out/"]).exits(2);
        assert!(ran.stderr.contains("not converted: "), "{to}: {}", ran.stderr);
        assert!(ran.stderr.contains("broken/evals.json"), "{to}: {}", ran.stderr);
        let written = ran.stderr.lines().filter(|line| line.starts_with("wrote ")).count();
        assert!(written >= 6, "{to}: {}", ran.stderr);
        // Nothing was written over something else, and all of it is read again.
        let paths: std::collections::BTreeSet<&str> =
            ran.stderr.lines().filter_map(|line| line.strip_prefix("wrote ")).collect();
        assert_eq!(paths.len(), written, "{to}: {}", ran.stderr);
        project.run(&["check", "out", "--skill", "dock"]).exits(0);
        let again = project.run(&["convert", "out", "--to", "native", "--json"]).exits(0).json();
        let count = |key: &str| again["files"].to_string().matches(key).count();
        // Each suite has a case; skill-up cannot say that of the trigger set.
        assert!(count("\"prompt\":") >= 6, "{to}: {again:#}");
    }
}
