//! Values that a model reads out of a text, beyond those that fit into a number of a computer.

use serde_json::json;

use crate::common::Project;

/// A project in which the agent says a text, and the model that reads it reports this JSON for the field `number`.
fn project(said: &str, reported: &str) -> Project {
    let spec = json!({"test_args": "", "sections": [{"name": "Orders", "tiers": [{
        "label": "all", "min_entries": 1,
        "fields": [{"id": "name", "name": "name"}, {"id": "number", "name": "number", "format": "-?\\d{20,}"}],
    }]}]});
    let script = r#"{"practicum_script": 1, "scenarios": [
        {"steps": ["SAID"]},
        {"to": "judge", "steps": [{"tools": [{"name": "report_entries", "input":
            {"Orders": {"all": [{"name": "Park", "number": REPORTED}]}}}]}, {"tools": [{"name": "report_entries",
            "input": {"Orders": {"all": [{"name": "Park", "number": REPORTED}]}}}]}]}
    ]}"#;
    Project::new(&[
        (".claude/skills/orders/SKILL.md", "---\nname: orders\ndescription: Lists orders.\n---\nList.\n"),
        (".claude/skills/orders/SKILL.eval.json", &spec.to_string()),
        ("script.json", &script.replace("SAID", said).replace("REPORTED", reported)),
    ])
}

#[test]
fn a_number_of_more_than_64_bits_is_not_called_absent() {
    for (said, reported, exit) in [
        ("Park 18446744073709551617", "18446744073709551617", 0),
        ("Park 123456789012345678901234567890", "123456789012345678901234567890", 0),
        ("Park -123456789012345678901234567890", "-123456789012345678901234567890", 0),
        ("Park 123456789012345678901234567890", "\"123456789012345678901234567890\"", 0),
        // A number that is nowhere in the text is not found in it.
        ("Park 5", "123456789012345678901234567890", 1),
        ("Park 123456789012345678901234567890", "999999999999999999999999999999", 1),
    ] {
        let project = project(said, reported);
        let ran = project.run(&["run", "--agent", "builtin", "--script", "script.json"]);
        assert_eq!(ran.code, exit, "{said} {reported}: {}{}", ran.stdout, ran.stderr);
    }
}
