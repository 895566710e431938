//! Budgets, cassettes and the gateway alone, with real processes. The model behind is a script
//! that a gateway of its own plays.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Project, Ran, claude, path_with};
use serde_json::Value;

const SKILL: &str = "---\nname: greeter\ndescription: Greets people by name. Use when asked to greet someone.\n---\n\nSay ahoy.\n";

const EVAL: &str = "\
practicum: 1
skill: ../greeter
workspace: empty
run: { agents: [builtin], timeout: 60s }
cases:
  - id: greets
    prompt: Greet Alice and write it to hello.txt.
    activation: must
    checks:
      - contains: Ahoy
      - file: { path: hello.txt, matches: '^Ahoy, Alice' }
      - id: friendly
        judge: The greeting is friendly.
";

/// There is no `{{workspace}}` at the model: it knows only what its requests contain.
const MODEL: &str = "\
practicum_script: 1
scenarios:
  - when: The record of the run
    steps:
      - tools:
          - name: report_marks
            input:
              results: [{ id: friendly, verdict: pass, evidence: ['Ahoy, Alice!'], reasoning: It says ahoy. }]
  - when: Use the skill greeter
    steps: [{ tools: [{ name: Skill, input: { skill: greeter } }] }, ready]
  - when: Greet Alice
    steps:
      - text: I will use the skill, as somebody with my-own-password would.
        tools: [{ name: Skill, input: { skill: greeter } }]
      - tools: [{ name: Bash, input: { command: \"echo 'Ahoy, Alice!' > hello.txt; echo key=$ANTHROPIC_API_KEY > key.txt; pwd; date\" } }]
      - text: Ahoy, Alice!
";

const KEY: &str = "sk-ant-of-the-user";

fn project() -> Project {
    Project::new(&[("greeter/SKILL.md", SKILL), ("evals/g.practicum.yaml", EVAL), ("model.yaml", MODEL)])
}

/// `practicum gateway` as a process of its own.
struct Served {
    process: Child,
    urls: Vec<Value>,
}

impl Served {
    fn start(mut command: Command, lines: usize) -> Self {
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let out = BufReader::new(process.stdout.take().expect("its output"));
        let urls: Vec<Value> = out
            .lines()
            .take(lines)
            .map(|line| serde_json::from_str(&line.expect("a line")).expect("JSON"))
            .collect();
        assert_eq!(urls.len(), lines);
        Self { process, urls }
    }

    fn url(&self, api: &str) -> String {
        let line = self.urls.iter().find(|line| line["api"] == api).expect("the API");
        line["base_url"].as_str().expect("a URL").to_owned()
    }

    /// Interrupts it, and gives its exit code and what it logged.
    fn interrupt(mut self) -> (Option<i32>, String) {
        let pid = self.process.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().expect("kill").success());
        let status = self.process.wait().expect("an end");
        let mut log = String::new();
        self.process.stderr.take().expect("a log").read_to_string(&mut log).expect("text");
        (status.code(), log)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn model(project: &Project) -> Served {
    Served::start(project.practicum(&["gateway", "--script", "model.yaml"]), 3)
}

fn run(project: &Project, model: Option<&Served>, args: &[&str]) -> Ran {
    message(project, model, &[&["run", "evals", "--json"], args].concat())
}

/// A command that gets the model's address and a key for it.
fn message(project: &Project, model: Option<&Served>, args: &[&str]) -> Ran {
    let mut command = project.practicum(args);
    if args.contains(&"claude") {
        command.env("PATH", path_with(&claude()));
    }
    // A run without the model has neither an address nor a key.
    if let Some(model) = model {
        command.env("ANTHROPIC_BASE_URL", model.url("anthropic-messages")).env("ANTHROPIC_API_KEY", KEY);
    }
    command.env("MY_PASSWORD", "my-own-password");
    Ran::of(command.output().expect("practicum starts"))
}

/// The body of an answer to one request, and its status behind it.
fn ask(url: String, text: &str) -> String {
    let messages = serde_json::json!([{"role": "user", "content": text}]);
    let body = serde_json::json!({"model": "claude-sonnet-4-6", "messages": messages}).to_string();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let client = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().expect("a client");
        let response = client.post(format!("{url}/v1/messages")).body(body).send().await.expect("an answer");
        let status = response.status().as_u16();
        format!("{}\n{status}", response.text().await.expect("a body"))
    })
}

/// A summary without what no two runs share.
fn comparable(mut summary: Value) -> Value {
    for key in ["run", "seconds", "replayed", "cost_usd", "tokens", "judging", "saved"] {
        summary[key] = Value::Null;
    }
    for probe in summary["probes"].as_array_mut().into_iter().flatten() {
        probe["seconds"] = Value::Null;
    }
    summary
}

fn record_and_replay(agent: &str) {
    let project = project();
    let model = model(&project);
    let how = ["--agent", agent, "--repeat", "3", "-j", "3"];
    let recorded =
        run(&project, Some(&model), &[&how[..], &["--record", "tape.jsonl"]].concat()).exits(0).json();
    let case = &recorded["cases"][0];
    assert_eq!((&case["passed"], &case["fired"]["yes"]), (&3.into(), &3.into()), "{recorded}");
    assert!(recorded["cost_usd"].as_f64().is_some_and(|cost| cost > 0.0), "{recorded}");
    assert!(recorded["tokens"]["output"].as_u64().is_some_and(|tokens| tokens > 0), "{recorded}");
    drop(model);

    let trials = std::fs::read_dir(project.only_run().join("trials")).expect("trials").flatten();
    for trial in trials {
        let seen = std::fs::read_to_string(trial.path().join("files/key.txt")).expect("what the agent saw");
        assert!(["key=gateway\n", "key=\n"].contains(&seen.as_str()), "at most a placeholder: {seen}");
    }
    let tape = std::fs::read_to_string(project.path().join("tape.jsonl")).expect("a cassette");
    for secret in [KEY, "my-own-password", "/practicum-"] {
        let found = tape.lines().find(|line| line.contains(secret));
        assert!(found.is_none(), "{secret} in {found:?}");
    }
    for kind in ["agent", "judge", "probe"] {
        assert!(tape.contains(&format!("\"kind\":\"{kind}\"")), "{kind}");
    }
    assert_eq!(recorded["probes"][0]["fired"], true);

    let replayed = run(&project, None, &[&how[..], &["--replay", "tape.jsonl"]].concat());
    assert!(!replayed.stderr.contains("replay:"), "{}", replayed.stderr);
    let replayed = replayed.exits(0).json();
    assert_eq!((&replayed["replayed"], &recorded["replayed"]), (&true.into(), &false.into()));
    // Nothing is spent now: what the answers had cost is said apart.
    assert_eq!((&replayed["cost_usd"], &replayed["judging"]), (&0.0.into(), &Value::Null), "{replayed}");
    assert_eq!(replayed["tokens"]["output"], 0, "{replayed}");
    for key in ["cost_usd", "tokens", "judging"] {
        assert_eq!(replayed["saved"][key], recorded[key], "{key}");
    }
    assert_eq!(comparable(replayed), comparable(recorded));

    project.write("greeter/SKILL.md", &SKILL.replace("Say ahoy.", "Say hello."));
    let drifted = run(&project, None, &[&how[..], &["--replay", "tape.jsonl"]].concat()).exits(3);
    let summary = drifted.json();
    assert_eq!(summary["cases"][0]["endings"]["api_failed"], 3, "{summary}");
    let runs = std::fs::read_dir(project.path().join(".practicum/runs")).expect("runs").flatten();
    let notes: String = runs
        .map(|run| std::fs::read_to_string(run.path().join("events.jsonl")).expect("events"))
        .filter(|events| events.contains("replay: "))
        .collect();
    assert!(notes.contains("is not the one on the cassette") && notes.contains("Say hello."), "{notes}");
}

#[test]
fn the_builtin_agent_is_replayed_with_the_same_summary_and_drift_is_told() {
    record_and_replay("builtin");
}

#[test]
fn the_real_claude_code_is_replayed_with_the_same_summary_and_drift_is_told() {
    record_and_replay("claude");
}

#[test]
fn every_api_is_metered_with_a_real_process() {
    for (api, url, name, key) in [
        ("anthropic", "anthropic-messages", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"),
        ("openai-responses", "openai-responses", "OPENAI_BASE_URL", "OPENAI_API_KEY"),
        ("openai-chat", "openai-chat", "OPENAI_BASE_URL", "OPENAI_API_KEY"),
    ] {
        let project = project();
        let model = model(&project);
        let args = ["run", "evals", "--json", "--no-judge", "--max-cost", "5", "--model", "gpt-5.4"];
        let mut command = project.practicum(&[&args[..], &["--no-probe"]].concat());
        command.env(name, model.url(url)).env(key, KEY).env("PRACTICUM_BUILTIN_API", api);
        let ran = Ran::of(command.output().expect("practicum starts"));
        let summary = ran.json();
        assert_eq!(summary["cases"][0]["endings"]["finished"], 1, "{api}: {summary}");
        assert!(summary["cost_usd"].as_f64().is_some_and(|cost| cost > 0.0), "{api}: {summary}");
        let (_, log) = model.interrupt();
        assert_eq!(log.matches(&format!("{url} gpt-5.4 200")).count(), 3, "{log}");
    }
}

/// Goes on for as long as it is let.
const ENDLESS: &str = "\
practicum_script: 1
scenarios:
  - when: Greet Alice
    steps: [
      { tools: [{ name: Bash, input: { command: 'sleep 0.2' } }], usage: { input: 1000, output: 10 } },
      { tools: [{ name: Bash, input: { command: 'sleep 0.2' } }], usage: { input: 1000, output: 10 } },
      { tools: [{ name: Bash, input: { command: 'sleep 0.2' } }], usage: { input: 1000, output: 10 } },
      { tools: [{ name: Bash, input: { command: 'sleep 0.2' } }], usage: { input: 1000, output: 10 } },
      { text: 'Ahoy, Alice!', usage: { input: 1000, output: 10 } }]
";

#[test]
fn a_budget_ends_a_run_in_its_middle() {
    for (agent, limit) in [
        ("builtin", ["--max-tokens", "2000"]),
        ("builtin", ["--max-cost", "0.005"]),
        ("claude", ["--max-tokens", "2000"]),
    ] {
        let project = project();
        project.write("model.yaml", ENDLESS);
        let model = model(&project);
        let more =
            ["--agent", agent, "--repeat", "3", "-j", "1", "--no-judge", "--model", "claude-sonnet-4-6"];
        let began = Instant::now();
        let ran = run(&project, Some(&model), &[&more[..], &limit, &["--no-probe"]].concat()).exits(4);
        assert!(began.elapsed() < Duration::from_secs(30), "{agent} took {:?}", began.elapsed());
        let summary = ran.json();
        assert_eq!(summary["cases"][0]["endings"]["over_budget"], 1, "{agent}: {summary}");
        assert_eq!(summary["totals"]["trials"], 1, "no trial starts when the budget is used up: {summary}");
        assert_eq!(summary["totals"]["failed"], 0, "over budget is not failed");
        assert!(ran.stderr.contains("the budget is used up"), "{}", ran.stderr);
    }
}

#[test]
fn a_run_that_was_stopped_by_its_budget_goes_on_with_more() {
    let project = project();
    project.write("model.yaml", ENDLESS);
    let model = model(&project);
    let begun = ["--repeat", "2", "-j", "1", "--no-judge", "--no-probe", "--model", "claude-sonnet-4-6"];
    let limit = ["--max-cost", "0.005", "--gate", "all_cases_pass=0"];
    let summary = run(&project, Some(&model), &[&begun[..], &limit].concat()).exits(4).json();
    assert_eq!(summary["totals"]["trials"], 1, "{summary}");

    let resume = |more: &[&str]| message(&project, Some(&model), &[&["run", "--resume"], more].concat());
    for (more, named) in [
        (&["--repeat", "5"][..], "so --repeat cannot be given with it"),
        (&["--case", "zzz", "--max-cost", "5"], "so --case cannot"),
        (&["--agent", "codex"], "so --agent cannot"),
        (&["--no-judge"], "so --no-judge cannot"),
    ] {
        let refused = resume(more).exits(2);
        assert!(refused.stderr.contains(named), "{}", refused.stderr);
    }
    let shown = resume(&["--dry-run", "--max-cost", "7"]).exits(0);
    assert!(shown.stderr.contains("at most $7,"), "{}", shown.stderr);
    let ran = resume(&["--max-cost", "5", "--json", "--report", "md=after.md"]).exits(0);
    assert!(ran.stderr.contains("at most $5,"), "{}", ran.stderr);
    let case = &ran.json()["cases"][0];
    assert_eq!(case["endings"], serde_json::json!({"finished": 2}), "{case}");
    assert!(project.path().join("after.md").exists());
    project.only_run();
}

#[test]
fn a_judge_spends_from_the_same_purse() {
    let project = project();
    let usage = "usage: { input: 90, output: 10 }";
    project.write("model.yaml", &format!(
        "practicum_script: 1\nscenarios:\n  - when: Greet Alice\n    steps:\n      - {{ text: 'Ahoy, Alice!', {usage} }}\n"
    ));
    let model = model(&project);
    let summary = run(&project, Some(&model), &["--max-tokens", "100", "--no-probe"]).exits(4).json();
    let case = &summary["cases"][0];
    assert_eq!(case["endings"]["finished"], 1, "{summary}");
    let judged = case["checks"].as_array().expect("checks").iter().find(|check| check["id"] == "friendly");
    assert_eq!(judged.expect("the check")["not_scored"], 1, "{summary}");
    let (_, log) = model.interrupt();
    assert_eq!(log.lines().count(), 1, "the judge never got through: {log}");
}

#[test]
fn what_may_not_begin_leaves_no_record() {
    let project = project();
    project.write("bad.yaml", "practicum_script: 1\nscenarios: 7\n");
    project.write("bad.toml", "models = 7\n");
    for wrong in [
        ["--script", "bad.yaml"],
        ["--script", "nowhere.yaml"],
        ["--replay", "nowhere.jsonl"],
        ["--record", "/no/folder/x.jsonl"],
        ["--prices", "bad.toml"],
    ] {
        run(&project, None, &wrong).exits(2);
        assert!(!project.path().join(".practicum/runs").exists(), "{wrong:?}");
    }
}

#[test]
fn all_runs_of_a_comparison_spend_from_one_purse() {
    let project = project();
    project.write(
        "model.yaml",
        "practicum_script: 1\nscenarios:\n  - steps: [{ text: 'Ahoy, Alice!', usage: { input: 90, output: 10 } }]\n",
    );
    let model = model(&project);
    let compare = |tokens: &str| {
        let args = ["--modes", "baseline", "smart", "--no-cache", "--no-judge", "--no-probe", "--max-tokens"];
        let mut command =
            project.practicum(&[&["compare", "evals", "--json"], &args[..], &[tokens]].concat());
        command.env("ANTHROPIC_BASE_URL", model.url("anthropic-messages")).env("ANTHROPIC_API_KEY", KEY);
        Ran::of(command.output().expect("practicum starts"))
    };
    // Each mode takes a hundred.
    let found = compare("201").exits(0).json();
    assert_eq!(found["comparisons"][0]["after"]["name"], "smart", "{found}");
    let stopped = compare("100").exits(4);
    assert!(stopped.stderr.contains("mode smart"), "the first run is whole: {}", stopped.stderr);
    assert!(stopped.stderr.contains("100 of 100 tokens are used; 1 trial not started"), "{}", stopped.stderr);
}

#[test]
fn what_a_simulated_user_costs_is_told_apart() {
    let eval = "practicum: 1\nskill: ../greeter\nworkspace: empty\nrun: { agents: [builtin] }\ncases:
  - { id: greets, prompt: Greet Alice., user: { goal: A greeting. }, checks: [{ contains: Ahoy }] }\n";
    let project = Project::new(&[("greeter/SKILL.md", SKILL), ("evals/g.practicum.yaml", eval)]);
    let script = "practicum_script: 1\nscenarios:
  - when: The agent said
    steps:
      - usage: { input: 2000000, output: 1000000 }
        tools: [{ name: reply_as_user, input: { verdict: done, message: '', reason: r } }]
  - { when: Greet Alice, steps: ['Ahoy, Alice!'] }\n";
    project.write("model.yaml", script);
    project.write("prices.toml", "date = \"2026-01-01\"\n[models]\n\"claude-sonnet-4-6\" = { input = 1, output = 5, cache_read = 0, cache_write = 0 }\n");
    let model = model(&project);
    let how = ["--prices", "prices.toml", "--model", "nobody-knows", "--no-probe"];
    let summary = run(&project, Some(&model), &how).exits(0).json();
    assert_eq!(summary["simulated_users"]["cost_usd"], 7.0, "{summary}");
    assert_eq!(summary["judging"], Value::Null, "{summary}");
    assert!(summary["tokens"]["output"].as_u64().is_some_and(|tokens| tokens < 1000), "{summary}");
    let report = Ran::of(project.practicum(&["report", "--format", "md"]).output().expect("it starts"));
    assert!(report.exits(0).stdout.contains("simulated user \\$7.0000"), "in words too");

    // Another goal is another case, and its trial is not reused. The same one is.
    let again = run(&project, Some(&model), &how).exits(0).json();
    assert_eq!(again["totals"]["reused"], 1, "{again}");
    project.write("evals/g.practicum.yaml", &eval.replace("A greeting.", "A warm greeting."));
    let other = run(&project, Some(&model), &how).exits(0).json();
    assert_eq!(other["totals"]["reused"], Value::Null, "{other}");
}

#[test]
fn what_a_judge_costs_is_told_apart() {
    let project = project();
    project.write(
        "model.yaml",
        &MODEL.replace(
            "- tools:\n          - name: report_marks",
            "- usage: { input: 2000000, output: 1000000 }\n        tools:\n          - name: report_marks",
        ),
    );
    project.write("prices.toml", "date = \"2026-01-01\"\n[models]\n\"claude-sonnet-4-6\" = { input = 1, output = 5, cache_read = 0, cache_write = 0 }\n");
    let model = model(&project);
    let message =
        run(&project, Some(&model), &["--prices", "prices.toml", "--model", "nobody-knows", "--no-probe"])
            .exits(0);
    let summary = message.json();
    assert_eq!(summary["judging"]["cost_usd"], 7.0, "{summary}");
    assert_eq!(summary["judging"]["tokens"]["output"], 1_000_000, "{summary}");
    assert!(summary["tokens"]["output"].as_u64().is_some_and(|tokens| tokens < 1000), "{summary}");
    let report = Ran::of(project.practicum(&["report", "--format", "md"]).output().expect("it starts"));
    assert!(report.exits(0).stdout.contains("judge \\$7.0000"), "in words too");

    // An answer that is there already costs nothing: a judge sees what is stored, and no secrets.
    let mut grade = project.practicum(&["grade", "latest", "--json"]);
    let grade =
        grade.env("ANTHROPIC_BASE_URL", model.url("anthropic-messages")).env("ANTHROPIC_API_KEY", KEY);
    let again = Ran::of(grade.output().expect("practicum starts")).exits(0).json();
    assert_eq!(again["summary"]["totals"]["passed"], 1, "{again}");
    assert_eq!(again["summary"]["judging"], Value::Null, "{again}");
    let (_, log) = model.interrupt();
    assert_eq!(log.lines().count(), 4, "three times by the agent and once by the judge: {log}");
}

#[test]
fn a_skill_is_judged_once_and_marking_again_asks_nothing_new() {
    let project = project();
    let about = "about_skill: [{ id: short, statement: The skill is short. }]\ncases:";
    project.write("evals/g.practicum.yaml", &EVAL.replace("cases:", about));
    let said = "  - when: The text of the skill
    steps:
      - usage: { input: 1000000, output: 0 }
        tools:
          - name: report_marks
            input: { results: [{ id: short, verdict: pass, evidence: [Say ahoy.], reasoning: One line. }] }
  - when: Use the skill greeter
";
    project.write("model.yaml", &MODEL.replace("  - when: Use the skill greeter\n", said));
    project.write("prices.toml", "date = \"2026-01-01\"\n[models]\n\"claude-sonnet-4-6\" = { input = 1, output = 0, cache_read = 0, cache_write = 0 }\n");
    let model = model(&project);
    let args = ["--prices", "prices.toml", "--model", "nobody-knows", "--no-probe", "--repeat", "2"];
    let summary = run(&project, Some(&model), &args).exits(0).json();
    let judged = summary["skills_judged"].as_array().expect("a list");
    assert_eq!(judged.len(), 1, "{summary}");
    let (check, cost) = (&judged[0]["checks"][0], &judged[0]["judging"]["cost_usd"]);
    assert_eq!((&check["verdict"], &check["evidence"][0]), (&"pass".into(), &"Say ahoy.".into()));
    assert_eq!((&check["required"], cost), (&false.into(), &1.0.into()), "{judged:?}");
    assert!(summary["judging"]["cost_usd"].as_f64().is_some_and(|all| all > 1.0), "{}", summary["judging"]);

    let grade = || {
        let mut grade = project.practicum(&["grade", "latest", "--json"]);
        let grade =
            grade.env("ANTHROPIC_BASE_URL", model.url("anthropic-messages")).env("ANTHROPIC_API_KEY", KEY);
        Ran::of(grade.output().expect("practicum starts")).exits(0).json()["summary"].clone()
    };
    let again = grade();
    assert_eq!(again["judging"], Value::Null, "{again}");
    assert_eq!(again["skills_judged"][0]["checks"], judged[0]["checks"]);
    // What ran is not what is there now, so what was said of it then is all that can be said.
    project.write("greeter/SKILL.md", &format!("{SKILL}\nAnd wave.\n"));
    let changed = grade();
    assert_eq!(changed["skills_judged"][0]["checks"], judged[0]["checks"]);
    assert_eq!(changed["skills_judged"][0]["text"], judged[0]["text"]);
    assert_ne!(changed["skills_judged"][0]["notes"], Value::Null, "{changed}");
    let (_, log) = model.interrupt();
    assert_eq!(log.lines().count(), 9, "six by agents, two by judges of trials, one about the skill: {log}");
}

#[test]
fn a_budget_holds_between_trials_of_an_agent_that_cannot_be_metered() {
    let project = project();
    project.write(
        "practicum.toml",
        "[agents.mine]\ncommand = [\"./mine\", \"{prompt}\"]\ndecoder = \"practicum-jsonl\"\n",
    );
    let stream = [
        r#"{"type":"start","schema_version":1,"model":"gpt-5.4"}"#,
        r#"{"type":"usage","input":1000000,"output":0,"cache_read":0,"cache_write":0}"#,
        r#"{"type":"text","text":"Ahoy"}"#,
        r#"{"type":"end","ending":"finished","turns":1}"#,
    ];
    let mine = project.path().join("mine");
    std::fs::write(&mine, format!("#!/bin/sh\ncat <<'END'\n{}\nEND\n", stream.join("\n"))).expect("written");
    assert!(Command::new("chmod").arg("+x").arg(&mine).status().expect("chmod").success());
    project.write(
        "practicum.toml",
        &format!(
            "[agents.mine]\ncommand = [\"{}\", \"{{prompt}}\"]\ndecoder = \"practicum-jsonl\"\n",
            mine.display()
        ),
    );
    let args = ["--agent", "mine", "--repeat", "5", "-j", "1", "--no-judge", "--max-cost", "5", "--no-probe"];
    let summary = run(&project, None, &args).exits(4).json();
    assert_eq!(summary["totals"]["trials"], 2, "two of them cost $2.50 each: {summary}");
}

#[test]
fn a_limit_in_money_is_not_kept_blindly() {
    let project = project();
    let model = model(&project);
    let args = ["--no-judge", "--model", "nobody-knows", "--max-cost", "5", "--no-probe"];
    let ran = run(&project, Some(&model), &args).exits(3);
    assert_eq!(ran.json()["cases"][0]["endings"]["api_failed"], 1, "{}", ran.stdout);
    let row = "{ input = 1.0, output = 1.0, cache_read = 1.0, cache_write = 1.0 }";
    project.write("prices.toml", &format!("date = \"2030-01-01\"\n[models]\nnobody-knows = {row}\n"));
    let ran = run(&project, Some(&model), &[&args[..], &["--prices", "prices.toml"]].concat());
    assert_eq!(ran.json()["cases"][0]["endings"]["finished"], 1, "{}", ran.stdout);
    assert!(ran.stderr.contains("prices of 2030-01-01"), "{}", ran.stderr);
}

#[test]
fn ways_to_answer_exclude_each_other_and_bad_ones_are_named() {
    let project = project();
    project.write("bad.jsonl", "{}\n");
    for (args, code, part) in [
        (&["--record", "a", "--replay", "b"][..], 2, "cannot be used with"),
        (&["--record", "a", "--script", "b"], 2, "cannot be used with"),
        (&["--replay", "a", "--script", "b"], 2, "cannot be used with"),
        (&["--replay", "none.jsonl"], 2, "none.jsonl cannot be used"),
        (&["--replay", "bad.jsonl"], 2, "line 1"),
        (&["--record", "bad.jsonl"], 2, "bad.jsonl cannot be used"),
        (&["--max-cost", "0"], 2, "amount of USD"),
        (&["--max-tokens", "many"], 2, "whole number"),
        (&["--prices", "none.toml"], 2, "none.toml cannot be used"),
    ] {
        let ran = run(&project, None, args).exits(code);
        assert!(ran.stderr.contains(part), "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn a_gateway_alone_records_and_replays_and_logs() {
    let project = project();
    let model = model(&project);
    let upstream = model.url("anthropic-messages");
    let mut recorder = project.practicum(&["gateway", "--record", "tape.jsonl", "--upstream", &upstream]);
    recorder.env("ANTHROPIC_API_KEY", KEY);
    let recorder = Served::start(recorder, 3);
    let first = ask(recorder.url("anthropic-messages"), "Greet Alice");
    assert!(first.ends_with("\n200") && first.contains("I will use the skill"), "{first}");
    let (code, log) = recorder.interrupt();
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("1 anthropic-messages claude-sonnet-4-6 200"), "{log}");
    drop(model);

    let replay = Served::start(project.practicum(&["gateway", "--replay", "tape.jsonl"]), 3);
    let again = ask(replay.url("anthropic-messages"), "Greet Alice");
    assert_eq!(again, first);
    let other = ask(replay.url("anthropic-messages"), "Greet Bob");
    assert!(other.ends_with("\n409") && other.contains("not on the cassette"), "{other}");
    let (_, log) = replay.interrupt();
    assert!(log.contains("409") && log.contains("note: request 2"), "{log}");
}
