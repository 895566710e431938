//! Which paragraphs of a skill its results depend on, with an agent that does what the staged text says.

use crate::common::Project;
use serde_json::{Value, json};

/// Reads the staged skill, and passes only what its text asks for.
const AGENT: &str = r#"
text=$(cat .claude/skills/*/SKILL.md .agents/skills/*/SKILL.md 2>/dev/null)
out=""
case "$text" in *"say alpha"*) out="$out alpha" ;; esac
case "$text" in *"say beta"*) out="$out beta" ;; esac
echo "$out"
"#;

/// Two of six paragraphs are needed.
const SKILL: &str = "---\nname: words\ndescription: Says words\n---\n# Words\n\nBe polite to everybody.\n\nFirst you say alpha, always.\n\n- Never shout at people.\n- Then you say beta, always.\n- Smile while you write.\n\nThe end of the text.\n";

fn project() -> Project {
    let cases: String = (0..12)
        .map(|n| format!("  - {{ id: case-{n}, prompt: \"words {n}\", checks: [{{ contains: alpha }}, {{ contains: beta }}] }}\n"))
        .collect();
    let project = Project::new(&[
        ("agent.sh", AGENT),
        ("skills/words/SKILL.md", SKILL),
        ("skills/words/evals/e.practicum.yaml", &format!("practicum: 1\nworkspace: empty\ncases:\n{cases}")),
    ]);
    let agent = project.path().join("agent.sh").display().to_string();
    project.write(
        "practicum.toml",
        &format!("[agents.own]\ncommand = [\"/bin/bash\", \"{agent}\", \"{{prompt}}\"]\n"),
    );
    project
}

/// Twelve cases rule out a loss of 0.3, not one of 0.1.
const ABLATE: [&str; 12] = [
    "ablate",
    "skills/words",
    "--agent",
    "own",
    "--sandbox",
    "off",
    "--repeat",
    "2",
    "--no-probe",
    "-q",
    "--margin",
    "0.3",
];

fn roles(found: &Value) -> Vec<String> {
    let paragraphs = found["paragraphs"].as_array().expect("paragraphs");
    paragraphs.iter().map(|of| of["role"].as_str().expect("a role").to_owned()).collect()
}

#[test]
fn needed_paragraphs_are_found_and_the_rest_is_proposed_to_be_cut() {
    let project = project();
    let page = project.path().join("page.html").display().to_string();
    let shorter = project.path().join("shorter.md").display().to_string();
    let more = ["--json", "--output", &page, "--write", &shorter];
    let found = project.run(&[&ABLATE[..], &more].concat()).exits(0).json();
    let schema = practicum::schema::schema("ablate").expect("a schema");
    assert!(jsonschema::draft202012::validate(schema, &found).is_ok());
    let (no, yes) = ("without_effect", "needed");
    assert_eq!(roles(&found), [no, yes, no, yes, no, no], "{found:#}");
    assert_eq!(found["runs"], json!(12 * 2 * 8), "the whole, six without one, one without all that can go");
    let proposal = &found["proposal"];
    assert_eq!((&proposal["cut"], &proposal["verdict"]), (&json!([0, 2, 4, 5]), &json!("equivalent")));
    let text = std::fs::read_to_string(&shorter).expect("the shorter text");
    assert!(text.contains("say alpha") && text.contains("say beta") && !text.contains("polite"), "{text}");
    assert!(text.contains("name: words") && text.contains("# Words"), "{text}");
    assert_eq!(
        std::fs::read_to_string(project.path().join("skills/words/SKILL.md")).expect("the skill"),
        SKILL
    );
    let html = std::fs::read_to_string(&page).expect("the page");
    assert!(html.contains("without effect") && html.contains("say alpha"), "{html}");

    // What ran is not run again. A smaller limit makes groups of two, and splits those that are needed.
    let grouped = project.run(&[&ABLATE[..], &["--json", "--max-runs", "168"]].concat()).exits(0).json();
    assert_eq!(roles(&grouped)[1], yes);
    assert!(grouped["runs"].as_u64().expect("runs") <= 168, "{grouped:#}");
    let words = project.run(&ABLATE).exits(0).stdout;
    assert!(words.contains("can be cut: 1, 3, 5, 6") && words.contains("needed"), "{words}");
}

/// Two paragraphs that say the same are each without effect, and cannot be cut together.
#[test]
fn what_replaces_each_other_is_not_cut_together() {
    let project = project();
    project.write(
        "skills/words/SKILL.md",
        "---\nname: words\ndescription: Says words\n---\nYou say alpha and you say beta.\n\nAgain: you say alpha and you say beta.\n",
    );
    let found = project.run(&[&ABLATE[..], &["--json"]].concat()).exits(0).json();
    assert_eq!(roles(&found), ["without_effect", "without_effect"]);
    assert_eq!(found["proposal"]["verdict"], "worse", "{found:#}");
}

#[test]
fn what_cannot_be_studied_is_refused() {
    let project = project();
    for (args, reason) in
        [(&["--arm", "without"][..], "--arm without"), (&["--max-runs", "30"], "--max-runs must be 72")]
    {
        let ran = project.run(&[&ABLATE[..], args].concat()).exits(2);
        assert!(ran.stderr.contains(reason), "{args:?}: {}", ran.stderr);
    }
    let ran = project.run(&["ablate", "skills/words", "--margin", "2"]).exits(2);
    assert!(ran.stderr.contains("between 0 and 1"), "{}", ran.stderr);
    project.write("skills/words/SKILL.md", "---\nname: words\ndescription: Says words\n---\nOnly one.\n");
    let ran = project.run(&ABLATE).exits(2);
    assert!(ran.stderr.contains("1 paragraph"), "{}", ran.stderr);
}
