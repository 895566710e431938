//! `practicum paraphrase`: a model writes rewordings, and they are measured.

use crate::common::Project;

const SKILL: &str = "---\nname: greeter\ndescription: Greets people.\n---\n\nSay Ahoy.\n";

const EVAL: &str = "\
practicum: 1
skill: ../greeter
workspace: empty
run: { agents: [builtin] }
cases:
  - { id: greets, prompt: Greet Alice., checks: [{ contains: Ahoy }] }
";

const SCRIPT: &str = "\
practicum_script: 1
scenarios:
  - to: judge
    steps:
      - tools: [{ name: write_rewordings, input: { rewordings: [Say hi to Alice., Greet Alice., Use greeter for Alice.] } }]
  - { when: Alice, steps: ['Ahoy, Alice!'] }
";

fn project() -> Project {
    Project::new(&[("greeter/SKILL.md", SKILL), ("evals/g.practicum.yaml", EVAL), ("script.yaml", SCRIPT)])
}

#[test]
fn rewordings_are_written_for_review_and_then_measured() {
    let project = project();
    let how = ["paraphrase", "evals", "--rewordings", "evals/g.rewordings.yaml", "--script", "script.yaml"];
    let missing = project.run(&how).exits(2);
    assert!(missing.stderr.contains("g.rewordings.yaml"), "{}", missing.stderr);
    let generate = [&how[..], &["--generate", "3"]].concat();
    let written = project.run(&generate).exits(0).stdout;
    assert!(written.contains("1 rewording written to"), "{written}");
    let file = std::fs::read_to_string(project.path().join("evals/g.rewordings.yaml")).expect("a file");
    assert!(file.starts_with("# Written by a model. Review") && file.contains("Say hi to Alice."), "{file}");
    assert!(!file.contains("Use greeter"), "a prompt that names the skill measures nothing: {file}");
    let again = project.run(&generate).exits(2);
    assert!(again.stderr.contains("never overwrites"), "{}", again.stderr);

    let found = project.run(&[&how[..], &["--json", "--no-probe"]].concat()).exits(0).json();
    assert_eq!(found["cases"][0]["rewordings"][0]["passed"], 1, "{found:#}");
    let shown = project.run(&[&how[..], &["--no-probe"]].concat()).exits(0).stdout;
    assert!(shown.contains("no rewording of 1 broke anything"), "{shown}");
}

#[test]
fn rewordings_of_no_case_are_refused() {
    let project = project();
    project.write("r.yaml", "- { case: greet, rewordings: [Hello.] }\n");
    let refused =
        project.run(&["paraphrase", "evals", "--rewordings", "r.yaml", "--script", "script.yaml"]).exits(2);
    assert!(refused.stderr.contains("there is no case greet"), "{}", refused.stderr);
}
