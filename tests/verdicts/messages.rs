//! Messages that said something else than what was so.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::Value;

use super::common::Project;

const EVALS: &str = "
practicum: 1
workspace: empty
run: { agents: [echo], repeat: 2 }
cases:
  - { id: a, prompt: alpha, checks: [{ contains: alpha }] }
  - { id: bread, prompt: bread, checks: [{ contains: bread }] }
  - { id: broth, prompt: broth, checks: [{ contains: broth }] }
";

/// A project whose agent repeats what it is told.
fn project(evals: &str) -> Project {
    let project = Project::new(&[("e.practicum.yaml", evals)]);
    project.write(
        "practicum.toml",
        "sandbox = \"off\"\n[agents.echo]\ncommand = [\"/bin/echo\", \"{prompt}\"]\n",
    );
    project
}

/// The ids of the trials of the only run.
fn trials(project: &Project) -> Vec<String> {
    let folders = std::fs::read_dir(project.only_run().join("trials")).expect("trials").flatten();
    let mut ids: Vec<String> =
        folders.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    ids.sort();
    ids
}

#[test]
fn show_a_is_the_case_a_and_not_every_trial_with_an_a_in_its_hash() {
    let project = project(EVALS);
    project.run(&["run", ".", "--json"]).exits(0);
    let cases = |wanted: &str| -> Vec<String> {
        let shown = project.run(&["show", "latest", wanted]).exits(0).stdout;
        let lines = shown.lines().filter_map(|line| line.trim().strip_prefix("case "));
        lines.map(|line| line.split(' ').next().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(cases("a"), ["a", "a"]);
    assert_eq!(cases("bread"), ["bread", "bread"]);
    assert_eq!(cases("rot"), ["broth", "broth"], "a part of one case's id");
    let ids = trials(&project);
    let hash = ids[0].rsplit('-').next().expect("a hash");
    for wanted in [&ids[0], hash, &hash[..5]] {
        assert_eq!(cases(wanted), ["a"], "{wanted}");
    }
    for (wanted, parts) in [
        ("br", ["2 cases fit \"br\": bread, broth", "name one of them"]),
        ("zzz", ["no case or trial fits \"zzz\"", "its cases are a, bread, broth"]),
    ] {
        let ran = project.run(&["show", "latest", wanted]).exits(2);
        assert!(parts.iter().all(|part| ran.stderr.contains(part)), "{}", ran.stderr);
    }
}

#[test]
fn show_says_no_less_of_a_crash_than_the_summary() {
    let project = project(
        "practicum: 1\nworkspace: empty\nrun: { agents: [echo] }\ncases: [{ id: c, prompt: p, checks: [{ contains: p }] }]\n",
    );
    project.write(
        "practicum.toml",
        "sandbox = \"off\"\nretries = 0\n[agents.echo]\ncommand = [\"/bin/sh\", \"-c\", \"echo broken >&2; exit 7\"]\n",
    );
    let ran = project.run(&["run", "."]).exits(3);
    let summary = ran.stdout.lines().find_map(|line| line.trim().strip_prefix("not scored: "));
    let (ending, code) =
        summary.and_then(|line| line.split_once(": ")).expect("the summary says how it ended");
    assert!(code.contains('7'), "{code}");
    let shown = project.run(&["show", "latest", "c"]).exits(0).stdout;
    assert!(shown.contains(&format!("ended: {ending}: ")) && shown.contains(code), "{shown}");
}

#[test]
fn no_number_of_runs_is_advised_to_find_a_difference_that_is_not_there() {
    let project = project(EVALS);
    let first = project.run(&["run", ".", "--json", "--no-cache"]).exits(0).json();
    project.run(&["run", ".", "--json", "--no-cache"]).exits(0);
    let before = first["run"].as_str().expect("an id");
    let text = project.run(&["compare", before, "latest"]).exits(0).stdout;
    assert!(text.contains("no difference seen; to find one of 0.10, about "), "{text}");
    let found = project.run(&["compare", before, "latest", "--json"]).exits(0).json();
    let one = &found["comparisons"][0];
    assert_eq!(one["sought"], 0.1, "{one}");
    assert!(one["more_runs"].as_u64().is_some_and(|runs| runs < 300), "{one}");
    // Neither where the two are arms of one run.
    let skill = "---\nname: gull\ndescription: Speaks. Use when asked to.\n---\n\nkee-ow\n";
    project.write("gull/SKILL.md", skill);
    project.write("e.practicum.yaml", &EVALS.replace("workspace:", "skill: gull\nworkspace:"));
    let ran = project.run(&["run", ".", "--no-cache", "--arm", "with", "--arm", "without"]);
    let line = ran.stdout.lines().find(|line| line.contains("with against without")).unwrap_or_default();
    assert!(
        line.contains("no difference seen; to find one of 0.10, about "),
        "{}\n{}",
        ran.stdout,
        ran.stderr
    );
}

#[test]
fn an_address_of_the_viewer_takes_the_same_short_id_as_show() {
    let project = project(EVALS);
    let run = project.run(&["run", ".", "--json"]).exits(0).json()["run"].as_str().expect("an id").to_owned();
    let mut child =
        project.practicum(&["view", "--port", "0"]).stdout(Stdio::piped()).spawn().expect("starts");
    let mut url = String::new();
    BufReader::new(child.stdout.take().expect("its output")).read_line(&mut url).expect("a line");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let get = |trial: &str, more: &str| -> (u16, Value) {
        let address = format!("{}api/run/{run}/trial/{trial}{more}", url.trim());
        runtime.block_on(async {
            let response = reqwest::get(&address).await.expect("an answer");
            let status = response.status().as_u16();
            (status, serde_json::from_str(&response.text().await.expect("text")).expect("JSON"))
        })
    };
    let ids = trials(&project);
    let hash = ids[3].rsplit('-').next().expect("a hash");
    let answers: Vec<(String, (u16, Value))> =
        [&ids[3], hash, &hash[..6]].iter().map(|id| ((*id).to_owned(), get(id, ""))).collect();
    let steps = get(&hash[..6], "/steps");
    let several = get("bread", "");
    let unknown = get("zzz", "");
    child.kill().expect("killed");
    child.wait().expect("ended");
    for (id, (status, document)) in answers {
        assert_eq!((status, document["record"]["trial"].as_str()), (200, Some(ids[3].as_str())), "{id}");
    }
    assert_eq!(steps.0, 200);
    assert_eq!(several.0, 404);
    assert!(
        several.1["error"].as_str().is_some_and(|why| why.starts_with("2 trials fit: bread-")),
        "{several:?}"
    );
    assert_eq!(unknown.0, 404);
}

#[test]
fn check_does_not_say_ok_of_a_file_with_an_error() {
    let project = project(EVALS);
    let ran = project.run(&["check", "."]).exits(0);
    assert!(ran.stdout.contains("ok e.practicum.yaml"), "{}", ran.stdout);
    project.write(
        "gull/evals/evals.json",
        r#"{"skill_name": "gull", "evals": [{"id": 1, "prompt": "p", "assertions": ["a"], "files": ["no.txt"]}]}"#,
    );
    let ran = project.run(&["check", "gull"]).exits(2);
    assert!(ran.stdout.contains("error["), "{}", ran.stdout);
    assert!(!ran.stdout.lines().any(|line| line.starts_with("ok ")), "{}", ran.stdout);
    assert!(ran.stdout.contains("evals.json (skill-creator, 1 case): "), "{}", ran.stdout);
}

/// A run that cannot come to its end was told to be resumed.
#[test]
fn resuming_is_not_advised_where_it_cannot_help() {
    let project = project(
        "practicum: 1\nworkspace: empty\nrun: { agents: [echo] }\ncases: [{ id: c, prompt: p, checks: [{ contains: p, required: false }] }]\n",
    );
    let ran = project.run(&["run", "."]).exits(3);
    assert!(ran.stdout.contains("case c cannot be scored: it has no required check"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("--resume"), "{}", ran.stdout);
}

/// The summary told a failed check, and not that the agent never saw the skill.
#[test]
fn a_failed_check_does_not_hide_that_the_arm_is_not_valid() {
    let project = project(
        "practicum: 1\nskill: gull\nworkspace: empty\nrun: { agents: [own] }\ncases: [{ id: c, prompt: p, checks: [{ contains: no }] }]\n",
    );
    project
        .write("gull/SKILL.md", "---\nname: gull\ndescription: Speaks. Use when asked to.\n---\n\nkee-ow\n");
    let lines = [
        r#"{"type":"start","schema_version":1,"skills":["other"]}"#,
        r#"{"type":"text","text":"Done."}"#,
        r#"{"type":"end","ending":"finished"}"#,
    ];
    project.write("said.jsonl", &format!("{}\n", lines.join("\n")));
    let said = project.path().join("said.jsonl");
    project.write(
        "practicum.toml",
        &format!(
            "sandbox = \"off\"\n[agents.own]\ncommand = [\"/bin/cat\", \"{}\"]\ndecoder = \"practicum-jsonl\"\n",
            said.display()
        ),
    );
    let ran = project.run(&["run", ".", "--no-probe", "--report", "md=report.md"]).exits(3);
    let told = "the arm is not valid: the agent could not see the skill gull";
    assert!(ran.stdout.contains(told), "{}", ran.stdout);
    let report = std::fs::read_to_string(project.path().join("report.md")).expect("a report");
    assert!(report.contains(told), "{report}");
}
