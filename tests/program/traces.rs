//! What `export` writes for viewers of traces: ATIF trajectories, and OpenTelemetry spans with verdicts.

use serde_json::{Value, json};

use crate::common::Project;

const SCRIPT: &str = "practicum_script: 1
scenarios:
  - when: Greet Alice
    steps:
      - tools: [{ name: Write, input: { file_path: hello.txt, content: Ahoy } }]
      - tools: [{ name: Read, input: { file_path: missing.txt } }]
      - Ahoy, Alice!
";

fn project() -> Project {
    let eval = "practicum: 1\nskill: ../greeter\nworkspace: empty\nrun: { agents: [builtin] }\ncases:
  - id: greets
    prompt: Greet Alice.
    checks: [{ contains: Ahoy, id: says }, { contains: Bob, id: both, required: false }]
  - id: fails
    prompt: Greet Alice, and Bob.
    checks: [{ contains: Bob, id: both }]\n";
    let skill =
        "---\nname: greeter\ndescription: Greets people. Use when asked to greet.\n---\n\nSay ahoy.\n";
    let project = Project::new(&[
        ("greeter/SKILL.md", skill),
        ("evals/g.practicum.yaml", eval),
        ("script.yaml", SCRIPT),
    ]);
    project.run(&["run", "evals", "--script", "script.yaml"]).exits(1);
    project
}

/// The documents of one run, one for each trial.
fn lines(project: &Project, more: &[&str]) -> Vec<Value> {
    let text = project.run(&[&["export", "latest"], more].concat()).exits(0).stdout;
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn a_trajectory_has_every_step_and_the_verdicts() {
    let project = project();
    let all = lines(&project, &["--format", "atif"]);
    assert_eq!(all.len(), 2);
    let [one] = &lines(&project, &["--format", "atif", "--case", "greets"])[..] else { panic!("one trial") };
    assert_eq!(one["schema_version"], "ATIF-v1.8");
    assert_eq!(one["agent"]["name"], "builtin");
    let steps = one["steps"].as_array().expect("steps");
    let numbers: Vec<u64> = steps.iter().map(|step| step["step_id"].as_u64().expect("a number")).collect();
    assert_eq!(numbers, (1..=steps.len() as u64).collect::<Vec<_>>());
    assert_eq!((&steps[0]["source"], &steps[0]["message"]), (&json!("user"), &json!("Greet Alice.")));
    let called = steps.iter().find(|step| step["tool_calls"][0]["function_name"] == "Write").expect("a call");
    assert_eq!(called["tool_calls"][0]["arguments"]["content"], "Ahoy");
    assert_eq!(
        called["observation"]["results"][0]["source_call_id"],
        called["tool_calls"][0]["tool_call_id"]
    );
    assert_eq!(steps.last().expect("a step")["message"], "Ahoy, Alice!");
    assert_eq!(one["final_metrics"]["total_steps"], steps.len());
    assert_eq!(
        (&one["extra"]["verdict"], &one["extra"]["checks"][1]["verdict"]),
        (&json!("pass"), &json!("fail"))
    );
}

#[test]
fn spans_have_the_calls_and_the_verdicts_as_evaluation_events() {
    let project = project();
    project.run(&["export", "latest", "--format", "otlp", "-o", "traces.jsonl"]).exits(0);
    let text = std::fs::read_to_string(project.path().join("traces.jsonl")).expect("a file");
    let requests: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(requests.len(), 2);
    let value = |of: &Value, key: &str| {
        let found = of["attributes"].as_array().expect("attributes").iter().find(|entry| entry["key"] == key);
        found.map_or(Value::Null, |entry| entry["value"].clone())
    };
    let mut traces = Vec::new();
    for (request, case, verdict, score) in
        [(&requests[0], "greets", "pass", 1.0), (&requests[1], "fails", "fail", 0.0)]
    {
        let spans = request["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().expect("spans");
        let agent = &spans[0];
        assert_eq!(agent["name"], "invoke_agent builtin");
        assert_eq!(value(agent, "practicum.case")["stringValue"], case);
        assert_eq!(value(agent, "gen_ai.operation.name")["stringValue"], "invoke_agent");
        assert!(
            value(agent, "gen_ai.usage.output_tokens")["intValue"].is_string(),
            "64 bits are text in JSON"
        );
        let event = &agent["events"][0];
        assert_eq!(event["name"], "gen_ai.evaluation.result");
        assert_eq!(value(event, "gen_ai.evaluation.name")["stringValue"], "trial");
        assert_eq!(value(event, "gen_ai.evaluation.score.label")["stringValue"], verdict);
        assert_eq!(value(event, "gen_ai.evaluation.score.value")["doubleValue"], score);
        let tools: Vec<&Value> = spans[1..].iter().collect();
        let names: Vec<&str> = tools.iter().filter_map(|span| span["name"].as_str()).collect();
        assert_eq!(names, ["execute_tool Write", "execute_tool Read"], "{case}");
        assert_eq!(tools[1]["status"]["code"], 2, "the file is missing");
        for span in spans {
            assert_eq!(span["traceId"].as_str().map(str::len), Some(32));
            assert_eq!(span["spanId"].as_str().map(str::len), Some(16));
            assert_eq!(span["traceId"], agent["traceId"]);
        }
        assert!(tools.iter().all(|span| span["parentSpanId"] == agent["spanId"]));
        traces.push(agent["traceId"].clone());
    }
    assert_ne!(traces[0], traces[1]);
    let again = lines(&project, &["--format", "otlp"]);
    assert_eq!(again, requests, "the same run gives the same ids");
    project.run(&["export", "--format", "otlp", "--table", "checks"]).exits(2);
}
