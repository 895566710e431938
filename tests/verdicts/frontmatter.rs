//! Frontmatter that is not valid YAML, and that agents read all the same.

use crate::common::{Project, Ran, claude, path_with};

const COLON: &str = "---\nname: greeter\ndescription: Use when: somebody is greeted\nargument-hint: [name] [tone]\n---\n\nSay ahoy.\n";
const BROKEN: &str = "---\nname: other\ndescription: \"Quoted\" then more\n---\n\nSay nothing.\n";

const EVAL: &str = "\
practicum: 1
skill: ../skills/greeter
workspace: empty
run: { agents: [builtin], script: ../script.yaml, timeout: 60s }
cases:
  - id: greets
    prompt: Greet Alice.
    activation: must
    checks: [{ contains: Ahoy }]
";

const SCRIPT: &str = "\
practicum_script: 1
scenarios:
  - when: Greet Alice
    steps:
      - tools: [{ name: Skill, input: { skill: greeter } }]
      - text: Ahoy, Alice!
";

fn project(skill: &str, eval: &str) -> Project {
    Project::new(&[
        ("skills/greeter/SKILL.md", skill),
        ("evals/g.practicum.yaml", eval),
        ("script.yaml", SCRIPT),
    ])
}

#[test]
fn an_unquoted_colon_does_not_stop_a_run() {
    let project = project(COLON, EVAL);
    let ran = project.run(&["run", "evals", "--json"]).exits(0);
    assert_eq!(ran.json()["cases"][0]["fired"]["yes"], 1);
    for line in ["SKILL.md, line 3: ", "SKILL.md, line 4: "] {
        assert_eq!(ran.stderr.matches(line).count(), 1, "{line}: {}", ran.stderr);
    }
    let checked = project.run(&["check", "evals", "--json"]).exits(0).json();
    let problems = checked["files"][0]["problems"].as_array().expect("problems").clone();
    let message: Vec<&str> = problems
        .iter()
        .filter(|problem| problem["code"] == "skill-frontmatter" && problem["severity"] == "warning")
        .filter_map(|problem| problem["message"].as_str())
        .collect();
    assert_eq!(message.len(), 2, "{problems:?}");
    assert!(
        message[0].contains("put it in quotes: description: \"Use when: somebody is greeted\""),
        "{message:?}"
    );
    let linted = project.run(&["lint", "skills/greeter"]).exits(0);
    assert_eq!(linted.stdout.matches("frontmatter-not-yaml").count(), 2, "{}", linted.stdout);
}

#[test]
fn a_broken_rival_does_not_void_the_trials_of_others() {
    let eval = EVAL.replace("workspace: empty", "rivals: [../skills/other]\nworkspace: empty");
    let project = project(COLON, &eval);
    project.write("skills/other/SKILL.md", BROKEN);
    let ran = project.run(&["run", "evals", "--json"]).exits(0);
    assert_eq!(ran.json()["cases"][0]["passed"], 1);
    assert_eq!(ran.stderr.matches("other is not staged beside the others").count(), 1, "{}", ran.stderr);
    let checked = project.run(&["check", "evals"]).exits(0);
    assert!(checked.stdout.contains("rival-left-out"), "{}", checked.stdout);
}

#[test]
fn a_skill_that_no_agent_reads_is_told_once_with_its_hint() {
    let project = project(&BROKEN.replace("other", "greeter"), EVAL);
    project.write("evals/h.practicum.yaml", EVAL);
    for command in ["check", "run"] {
        let ran = project.run(&[command, "evals/g.practicum.yaml"]).exits(2);
        let message = format!("{}{}", ran.stdout, ran.stderr);
        assert_eq!(message.matches("line 3: ").count(), 1, "{command}: {message}");
        assert!(message.contains("there is more after the closing quote"), "{command}: {message}");
        assert!(message.contains("write the whole text in quotes"), "{command}: {message}");
    }
    let both = project.run(&["run", "evals"]).exits(2);
    assert_eq!(both.stderr.matches("line 3: ").count(), 1, "{}", both.stderr);
}

#[test]
fn an_alias_of_a_skill_with_a_colon_keeps_its_description() {
    let project = Project::new(&[
        ("skills/greeter/SKILL.md", COLON),
        ("skills/greeter/evals/triggers.json", r#"[{"query": "Greet Alice.", "should_trigger": true}]"#),
        (
            "script.yaml",
            "practicum_script: 1\nscenarios:\n  - when: Greet Alice\n    steps:\n      - tools: [{ name: Skill, input: { skill: '{{skill}}' } }]\n      - text: Ahoy!\n",
        ),
    ]);
    let run = ["run", "skills/greeter", "--agent", "builtin", "--script", "script.yaml", "--repeat", "1"];
    let ran = project.run(&[&run[..], &["--keep-workspaces", "--json"]].concat()).exits(0);
    assert_eq!(ran.json()["cases"][0]["fired"]["yes"], 1);
    let kept = ran.stderr.split("workspaces kept in ").nth(1).expect("a folder").trim().to_owned();
    let staged = staged_skills(std::path::Path::new(&kept));
    let [text] = staged.as_slice() else { panic!("{staged:?}") };
    assert!(text.starts_with("---\nname: greeter-"), "{text}");
    assert!(text.contains("\ndescription: Use when: somebody is greeted\n"), "{text}");
    std::fs::remove_dir_all(&kept).expect("removed");
}

/// Every SKILL.md below a folder.
fn staged_skills(folder: &std::path::Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(staged_skills(&path));
        } else if path.ends_with("SKILL.md") {
            found.push(std::fs::read_to_string(path).expect("a text"));
        }
    }
    found
}

#[test]
fn the_real_claude_code_takes_up_a_skill_with_an_unquoted_colon() {
    let project = project(COLON, &EVAL.replace("agents: [builtin]", "agents: [claude]"));
    let mut command = project.practicum(&["run", "evals", "--json"]);
    command.env("PATH", path_with(&claude()));
    let summary = Ran::of(command.output().expect("practicum starts")).exits(0).json();
    assert_eq!(summary["cases"][0]["fired"]["yes"], 1, "{summary}");
    assert_eq!(summary["cases"][0]["passed"], 1, "{summary}");
}
