//! MCP servers that a model plays, called by the real Claude Code and the real Codex.

use serde_json::{Value, json};

use super::mocks::{TestedAgent, agents, facts, run};
use crate::common::Project;

/// The server of a suite of `claude plugin eval`, as such suites are written.
const SERVER: &str = "\
---
type: agent
tools: [list_agents, update_agent]
abort_when: The caller deletes something.
---

You are the server of the test account acme. It has one agent, Store support. update_agent changes it.
";

/// The model that plays the server. The first scenario whose text is in the question answers.
const MODEL: &str = "
  - { to: mock, when: tone=rude, steps: [{ tools: [{ name: answer_call, input: { verdict: mistake, content: it deletes politeness } }] }] }
  - { to: mock, when: { regex: '(?s)Earlier call.*update_agent.*The call:[^{]*list_agents' }, steps: [{ tools: [{ name: answer_call, input: { verdict: result, content: '[{\"name\": \"Store support\", \"tone\": \"brief\"}]' } }] }] }
  - { to: mock, when: tone=brief, steps: [{ tools: [{ name: answer_call, input: { verdict: result, content: '{\"updated\": true}' } }] }] }
  - { to: mock, when: tone=broken, steps: [I am not a server., I am not a server., I am not a server.] }
";

#[test]
fn a_model_plays_the_server_of_a_suite_of_claude_plugin_eval() {
    for TestedAgent { name: agent, program, separator, .. } in agents() {
        let tool = |name: &str| format!("mcp__plugin_desk_desk{separator}{name}");
        let (update, list) = (tool("update_agent"), tool("list_agents"));
        let script = format!(
            "practicum_script: 1
scenarios:
  - when: Make it brief
    steps:
      - tools: [{{ name: {}, input: {{}} }}]
      - tools: [{{ name: {update}, input: {{ change: tone=brief }} }}]
      - tools: [{{ name: {list}, input: {{}} }}]
      - text: Done.
  - when: Make it rude
    steps: [{{ tools: [{{ name: {update}, input: {{ change: tone=rude }} }}] }}, Done.]
  - when: Break it
    steps: [{{ tools: [{{ name: {update}, input: {{ change: tone=broken }} }}] }}, Done.]
{MODEL}",
            tool("whoami"),
        );
        let done = "---\ntype: regex\npattern: Done\n---\n";
        let mut files = vec![
            (".claude-plugin/plugin.json".to_owned(), r#"{"name": "desk"}"#.to_owned()),
            (
                "skills/desk/SKILL.md".to_owned(),
                "---\nname: desk\ndescription: Runs a desk.\n---\nDo it.\n".to_owned(),
            ),
            ("evals/mocks/desk/_server.md".to_owned(), SERVER.to_owned()),
            ("evals/mocks/desk/whoami.md".to_owned(), "{\"account\": \"acme\"}\n".to_owned()),
            (
                "evals/brief/graders/calls.md".to_owned(),
                "---\ntype: regex\ntarget: mock_calls\npattern: tone=brief\n---\n".to_owned(),
            ),
            ("script.yaml".to_owned(), script),
        ];
        for (case, prompt) in
            [("brief", "Make it brief."), ("rude", "Make it rude."), ("broken", "Break it.")]
        {
            files.push((format!("evals/{case}/prompt.md"), format!("---\nruns: 1\n---\n\n{prompt}\n")));
            files.push((format!("evals/{case}/graders/done.md"), done.to_owned()));
        }
        let files: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let project = Project::new(&files);
        let ran = run(&project, agent, &program, &[]);
        let about = format!("{agent}:\n{}\n{}", ran.stderr, ran.stdout);
        let summary = ran.json();
        let case = |id: &str| {
            let cases = summary["cases"].as_array().expect("cases");
            let case = cases.iter().find(|case| case["id"] == id).unwrap_or_else(|| panic!("{id}: {about}"));
            [&case["passed"], &case["failed"], &case["not_scored"]].map(Value::clone)
        };
        assert_eq!(case("brief"), [json!(1), json!(0), json!(0)], "{about}");
        // A call that the server calls a mistake is one of the agent.
        assert_eq!(case("rude"), [json!(0), json!(1), json!(0)], "{about}");
        // A server that does not answer says nothing about the agent.
        assert_eq!(case("broken"), [json!(0), json!(0), json!(1)], "{about}");
        let calls = &facts(&project, "brief")["mock_calls"];
        assert_eq!(calls[0]["answer"], "{\"account\": \"acme\"}", "{about}");
        // The model is told of earlier calls, so that its answers agree with them.
        assert_eq!(calls[2]["answer"], "[{\"name\": \"Store support\", \"tone\": \"brief\"}]", "{about}");
        let shown = project.run(&["show", "latest", "broken"]).stdout;
        assert!(shown.contains("the model that plays a mocked server gave no answer"), "{shown}");
    }
}
