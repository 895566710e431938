//! Rewordings of prompts, with the real goose and the real Codex.

use serde_json::json;

use crate::common::{Project, Ran, codex, goose, path_with};

const SKILL: &str =
    "---\nname: greeter\ndescription: Greets people. Use when asked to greet.\n---\n\nSay Ahoy.\n";

const EVAL: &str = "\
practicum: 1
skill: ../greeter
workspace: empty
run: { timeout: 120s }
cases:
  - { id: greets, prompt: Greet Alice., checks: [{ contains: Ahoy }] }
  - { id: other, prompt: Count to ten., activation: must_not }
";

const REWORDINGS: &str = "\
- case: greets
  rewordings: [Say hello to Alice., Alice is here. You know what to do., A warm welcome for Alice.]
";

#[test]
fn the_rewording_that_breaks_a_case_is_named() {
    let agents = [
        ("goose", goose(), "{ name: load_skill, input: { name: greeter } }"),
        ("codex", codex(), "{ name: exec_command, input: { cmd: cat .agents/skills/greeter/SKILL.md } }"),
    ];
    for (agent, program, activation) in agents {
        let script = format!(
            "practicum_script: 1
scenarios:
  - {{ when: You know what to do, steps: [I do not.] }}
  - {{ when: A warm welcome, steps: [Ahoy] }}
  - {{ when: Alice, steps: [{{ tools: [{activation}] }}, 'Ahoy, Alice!'] }}
"
        );
        let project = Project::new(&[
            ("greeter/SKILL.md", SKILL),
            ("evals/g.practicum.yaml", EVAL),
            ("evals/g.rewordings.yaml", REWORDINGS),
            ("script.yaml", &script),
        ]);
        let how = ["--rewordings", "evals/g.rewordings.yaml", "--agent", agent, "--script", "script.yaml"];
        let run = |more: &[&str]| {
            let mut command =
                project.practicum(&[&["paraphrase", "evals", "--no-probe"], &how[..], more].concat());
            command.env("PATH", path_with(&program)).env("OPENAI_API_KEY", "sk-of-the-user");
            Ran::of(command.output().expect("practicum starts"))
        };
        let found = run(&["--json"]).exits(1).json();
        let [case] = found["cases"].as_array().expect("cases").as_slice() else {
            panic!("{agent}: {found:#}")
        };
        assert_eq!((&case["case"], &case["agent"]), (&json!("greets"), &json!(agent)), "{found:#}");
        let broke: Vec<_> =
            case["rewordings"].as_array().expect("wordings").iter().map(|of| of["broke"].clone()).collect();
        assert_eq!(
            broke,
            [json!(null), json!(["result", "activation"]), json!(["activation"])],
            "{agent}: {found:#}"
        );
        let share = |key: &str| (case[key]["value"].as_f64().expect("a share") * 3.0).round();
        assert_eq!((share("result"), share("activation")), (2.0, 1.0), "{agent}: {found:#}");
        assert!(case["result"]["low"].as_f64() > Some(0.0), "{agent}: {found:#}");

        // The trials are reused.
        let shown = run(&[]).exits(1).stdout;
        assert!(
            shown.contains("broke result and activation: Alice is here. You know what to do."),
            "{shown}"
        );
        assert!(shown.contains("own wording 1 of 1; held in 2 of 3 rewordings"), "{shown}");
        // A run of the evals does not take the rewordings for evals.
        let listed = project.run(&["list", "evals"]).exits(0).stdout;
        assert!(listed.contains("greets") && !listed.contains("reworded"), "{listed}");
    }
}
