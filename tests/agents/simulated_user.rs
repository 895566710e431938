//! A simulated user answers real agents, and its own failures never make a trial pass.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::common::{Project, Ran, claude, codex, path_with};

const SKILL: &str =
    "---\nname: trips\ndescription: Plans trips. Use when someone wants a trip.\n---\n\nAsk first.\n";

/// An agent that asks two questions and then writes the plan.
const AGENT: &str = "
  - when: Plan a trip
    steps: [Which city should it be?, How many days do you have?, 'Lisbon: three days.']
";

/// A model that plays the user. Each question has the whole conversation in it.
const USER: &str = "
  - { to: user, when: 'Lisbon: three days', steps: [{ tools: [{ name: reply_as_user, input: { verdict: done, message: '', reason: r } }] }] }
  - { to: user, when: How many days, steps: [{ tools: [{ name: reply_as_user, input: { verdict: answer, message: Three., reason: r } }] }] }
  - { to: user, when: Which city, steps: [{ tools: [{ name: reply_as_user, input: { verdict: answer, message: To Lisbon., reason: r } }] }] }
";

fn project(cases: &str, scenarios: &str) -> Project {
    let eval = format!("practicum: 1\nskill: ../trips\nworkspace: empty\ncases:\n{cases}");
    let script = format!("practicum_script: 1\nscenarios:\n{scenarios}");
    Project::new(&[("trips/SKILL.md", SKILL), ("evals/t.practicum.yaml", &eval), ("script.yaml", &script)])
}

fn run(project: &Project, agent: &str, program: Option<&Path>, more: &[&str]) -> Ran {
    let usual = ["run", "evals", "--agent", agent, "--script", "script.yaml", "--timeout", "5m", "--json"];
    let mut command = project.practicum(&[&usual, more].concat());
    if let Some(program) = program {
        command.env("PATH", path_with(program));
    }
    Ran::of(command.output().expect("practicum starts"))
}

/// The folders of the trials of the only run, by case.
fn trial_of(project: &Project, case: &str) -> PathBuf {
    let trials = std::fs::read_dir(project.only_run().join("trials")).expect("trials").flatten();
    let mut folders = trials.map(|trial| trial.path());
    let named = |path: &PathBuf| read(path, "checks.json")["case"] == case;
    folders.find(named).expect("a trial of the case")
}

fn read(trial: &Path, name: &str) -> Value {
    let text = std::fs::read_to_string(trial.join(name)).expect(name);
    serde_json::from_str(&text).expect("JSON")
}

/// Runs one case with each kind of user, through turns of one session.
fn answers_reach(agent: &str, program: &Path) {
    let cases = "
  - id: answers
    prompt: Plan a trip, please.
    user: { answers: [{ say: To Lisbon., when: agent_asks, matches: '(?i)city' }, Three.] }
    checks: [{ contains: 'Lisbon: three days.' }]
  - id: rules
    prompt: Plan a trip for two.
    user: { rules: [{ matches: city, say: To Lisbon. }, { matches: days, say: Three. }] }
    checks: [{ contains: 'Lisbon: three days.' }]
  - id: model
    prompt: Plan a trip for a nurse.
    user: { persona: A nurse., facts: [She wants to see Lisbon., She has three days.], max_turns: 3 }
    checks: [{ contains: 'Lisbon: three days.' }]
";
    let project = project(cases, &format!("{AGENT}{USER}"));
    let summary = run(&project, agent, Some(program), &[]).exits(0).json();
    assert_eq!(summary["totals"]["passed"], 3, "{summary:#}");
    for (case, ended) in [("answers", "answers_used"), ("rules", "agent_did_not_ask"), ("model", "done")] {
        let trial = trial_of(&project, case);
        let user = &read(&trial, "checks.json")["user"];
        assert_eq!((&user["replies"], &user["ended"]), (&json!(2), &json!(ended)), "{case}: {user}");
        let turns = &read(&trial, "facts.json")["turns"];
        let said: Vec<(&str, bool)> = turns
            .as_array()
            .expect("turns")
            .iter()
            .map(|turn| (turn["prompt"].as_str().expect("text"), turn["by_simulated_user"] == true))
            .collect();
        assert!(!said[0].1 && said[0].0.starts_with("Plan a trip"), "{case}: {turns}");
        assert_eq!(said[1..], [("To Lisbon.", true), ("Three.", true)], "{case}: {turns}");
    }
}

#[test]
fn a_simulated_user_answers_claude_code() {
    answers_reach("claude", &claude());
}

#[test]
fn a_simulated_user_answers_codex() {
    answers_reach("codex", &codex());
}

/// One user, how the trial ends, and a part of the reason.
struct Row {
    user: &'static str,
    scenarios: &'static str,
    ended: &'static str,
    user_ended: &'static str,
    reason: &'static str,
}

#[test]
fn a_user_that_fails_never_makes_a_trial_pass() {
    const SAYS: &str = "  - { to: user, steps: [{ tools: [{ name: reply_as_user, input: { verdict: VERDICT, message: 'MESSAGE', reason: unsure } }] }] }\n";
    let reply = |verdict: &str, message: &str| SAYS.replace("VERDICT", verdict).replace("MESSAGE", message);
    let rows = [
        (
            Row {
                user: "{ goal: A plan. }",
                scenarios: "",
                ended: "no_reply",
                user_ended: "gave_answer_away",
                reason: "\"Lisbon\"",
            },
            reply("answer", "I expect Lisbon."),
        ),
        (
            Row {
                user: "{ goal: A plan. }",
                scenarios: "",
                ended: "no_reply",
                user_ended: "unusable_reply",
                reason: "repeats",
            },
            reply("answer", "Where you like."),
        ),
        (
            Row {
                user: "{ facts: [Lisbon], max_turns: 1 }",
                scenarios: USER,
                ended: "no_reply",
                user_ended: "never_done",
                reason: "1 reply",
            },
            String::new(),
        ),
        (
            Row {
                user: "{ goal: A plan. }",
                scenarios: "",
                ended: "no_reply",
                user_ended: "unusable_reply",
                reason: "blank",
            },
            reply("answer", " "),
        ),
        (
            Row {
                user: "{ goal: A plan. }",
                scenarios: "",
                ended: "no_reply",
                user_ended: "model_failed",
                reason: "to: user",
            },
            String::new(),
        ),
        (
            Row {
                user: "{ goal: A plan. }",
                scenarios: "",
                ended: "asked_user",
                user_ended: "no_answer",
                reason: "unsure",
            },
            reply("cannot_answer", ""),
        ),
        (
            Row {
                user: "{ rules: [{ matches: hotel, say: Any. }] }",
                scenarios: "",
                ended: "asked_user",
                user_ended: "no_answer",
                reason: "no answer",
            },
            String::new(),
        ),
        (
            Row {
                user: "{ rules: [{ matches: hotel, say: Any. }], otherwise: I do not mind., max_turns: 1 }",
                scenarios: "",
                ended: "no_reply",
                user_ended: "never_done",
                reason: "1 reply",
            },
            String::new(),
        ),
        (
            Row {
                user: "{ answers: [To Lisbon.] }",
                scenarios: "",
                ended: "finished",
                user_ended: "answers_used",
                reason: "",
            },
            String::new(),
        ),
        // The agent asks for a city, not for a hotel: the conversation ends there and is graded as it is.
        (
            Row {
                user: "{ answers: [{ say: Any., matches: hotel }] }",
                scenarios: "",
                ended: "finished",
                user_ended: "agent_did_not_match",
                reason: "",
            },
            String::new(),
        ),
    ];
    for (row, replies) in rows {
        let case = format!(
            "  - id: a\n    prompt: Plan a trip.\n    user: {}\n    checks: [{{ contains: Lisbon }}, {{ contains: '?', required: false }}]\n",
            row.user
        );
        let project = project(&case, &format!("{AGENT}{}{replies}", row.scenarios));
        let ran = run(&project, "builtin", None, &[]);
        let summary = ran.json();
        assert_eq!(summary["totals"]["passed"], 0, "{}: {summary:#}", row.user);
        let record = read(&trial_of(&project, "a"), "checks.json");
        let found = (record["ended"].as_str(), record["user"]["ended"].as_str());
        assert_eq!(found, (Some(row.ended), Some(row.user_ended)), "{}: {record:#}", row.user);
        let expected = if row.ended == "finished" { "fail" } else { "not_scored" };
        let verdict = &record["verdict"];
        let verdict = verdict.as_str().unwrap_or_else(|| verdict.as_object().map_or("", |_| "not_scored"));
        assert_eq!(verdict, expected, "{record:#}");
        let text = record.to_string();
        assert!(text.contains(&row.reason.replace('"', "\\\"")), "{}: {record:#}", row.user);
    }
}

#[test]
fn without_a_model_the_agent_is_not_started() {
    let case = "  - id: a\n    prompt: Plan a trip.\n    user: { goal: A plan. }\n    checks: [{ contains: Lisbon }]\n";
    let project = project(case, AGENT);
    let ran = run(&project, "builtin", None, &["--no-judge"]).exits(3);
    let text = format!("{}{}", ran.stdout, ran.stderr);
    assert!(text.contains("a model plays its user, and there is none"), "{text}");
}

#[test]
fn turns_and_responders_of_eval_magic_are_run() {
    let evals = json!({"skill_name": "trips", "evals": [
        {
            "id": "scripted", "prompt": "Plan a trip.", "expected_output": "A plan.",
            "turns": [
                {"prompt": "To Lisbon.", "deliver_when": "agent_asks", "agent_response_matches": "(?i)city"},
                {"prompt": "Three.", "deliver_when": "always"}
            ],
            "assertions": [{"type": "contains", "value": "three days"}]
        },
        {
            "id": "played", "prompt": "Plan a trip to Lisbon.", "expected_output": "A plan.",
            "responder": {"type": "llm", "max_turns": 2},
            "assertions": [{"type": "contains", "value": "three days"}]
        }
    ]});
    let project = project("", &format!("{AGENT}{USER}"));
    std::fs::remove_dir_all(project.path().join("evals")).expect("removed");
    project.write("trips/evals/evals.json", &evals.to_string());
    let args = ["run", "trips", "--agent", "builtin", "--script", "script.yaml", "--arm", "with", "--json"];
    let summary = project.run(&args).exits(0).json();
    assert_eq!(summary["totals"]["passed"], summary["totals"]["trials"], "{summary:#}");
    for (case, ended) in [("scripted", "answers_used"), ("played", "done")] {
        let user = &read(&trial_of(&project, case), "checks.json")["user"];
        assert_eq!((&user["replies"], &user["ended"]), (&json!(2), &json!(ended)), "{case}: {user}");
    }
}
