//! Cases that say in their `metadata` whether the skill must be activated.

use serde_json::{Value, json};

use crate::common::Project;

const SKILL: &str =
    "---\nname: dock\ndescription: Use when a Dockerfile is wanted.\n---\n\nWrite FROM first.\n";

/// A project with one case of skill-creator, and an agent that activates the skill or does not.
fn project(evals: &Value, activates: bool) -> Project {
    let call = json!({"tools": [{"name": "Skill", "input": {"skill": "{{skill}}"}}]});
    let steps = if activates { json!([call, "FROM alpine"]) } else { json!(["FROM alpine"]) };
    let mark = json!({"id": "base", "score": 5, "evidence": ["FROM alpine"], "reasoning": "r"});
    let judge = json!({"tools": [{"name": "report_marks", "input": {"results": [mark]}}]});
    let script = json!({"practicum_script": 1, "scenarios": [
        {"steps": steps}, {"to": "judge", "steps": [judge, judge]},
    ]});
    Project::new(&[
        ("dock/SKILL.md", SKILL),
        ("dock/evals/evals.json", &evals.to_string()),
        ("script.json", &script.to_string()),
    ])
}

const RUN: [&str; 10] =
    ["run", "dock", "--arm", "with", "--repeat", "1", "--agent", "builtin", "--script", "script.json"];

#[test]
fn a_case_whose_metadata_forbids_the_skill_does_not_pass_when_it_is_activated() {
    let case = |metadata: Value| {
        json!({"skill_name": "dock", "evals": [
            {"id": 1, "prompt": "Make it", "assertions": [{"type": "contains", "value": "FROM"}], "metadata": metadata},
        ]})
    };
    for (metadata, activates, exit) in [
        (json!({"should_trigger": false}), true, 1),
        (json!({"should_trigger": false}), false, 0),
        (json!({"should_trigger": true}), false, 1),
        (json!({"expected_skill": null}), true, 1),
        (json!({"shouldTrigger": true}), true, 0),
        // Metadata about other things says nothing about activation.
        (json!({"author": "me", "negative": "image"}), true, 0),
        (json!("should_trigger"), true, 0),
    ] {
        let ran = project(&case(metadata.clone()), activates).run(&RUN);
        assert_eq!(ran.code, exit, "{metadata} {activates}: {}{}", ran.stdout, ran.stderr);
    }
}

#[test]
fn metadata_that_contradicts_its_case_is_not_passed_over() {
    let evals = json!({"skill_name": "dock", "evals": [
        {"id": 1, "prompt": "Make it", "should_trigger": true, "metadata": {"should_trigger": false}},
    ]});
    let ran = project(&evals, true).run(&RUN).exits(2);
    assert!(ran.stderr.contains("contradict each other"), "{}", ran.stderr);
}

/// The same key in a file of another format.
#[test]
fn metadata_of_a_writing_skills_case_is_not_passed_over() {
    let evals = json!({"version": "1.0", "skill": "dock", "cases": [{
        "id": "base-image", "prompt": "Make it", "metadata": {"should_trigger": false},
        "expectations": [{"criterion": "base", "description": "Begins with FROM", "required": true}],
    }]});
    project(&evals, true).run(&RUN).exits(1);
    project(&evals, false).run(&RUN).exits(0);
}
