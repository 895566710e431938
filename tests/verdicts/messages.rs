//! Messages that said something else than what was so.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};

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
    assert!(
        text.contains("no difference seen; cannot tell: the smallest loss that this design finds is")
            && text.contains("to settle it, "),
        "{text}"
    );
    let found = project.run(&["compare", before, "latest", "--json"]).exits(0).json();
    let one = &found["comparisons"][0];
    assert_eq!(one["sought"], 0.1, "{one}");
    assert!(one["more_runs"].as_u64().is_some_and(|runs| runs < 2000), "{one}");
    // Neither where the two are arms of one run.
    let skill = "---\nname: gull\ndescription: Speaks. Use when asked to.\n---\n\nkee-ow\n";
    project.write("gull/SKILL.md", skill);
    project.write("e.practicum.yaml", &EVALS.replace("workspace:", "skill: gull\nworkspace:"));
    let ran = project.run(&["run", ".", "--no-cache", "--arm", "with", "--arm", "without"]);
    let line = ran.stdout.lines().find(|line| line.contains("with against without")).unwrap_or_default();
    assert!(
        line.contains("no difference seen; cannot tell: ") && line.contains("to settle it, "),
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

/// A run that cannot come to its end had the advice to resume it.
#[test]
fn resuming_is_not_advised_where_it_cannot_help() {
    let project = project(
        "practicum: 1\nworkspace: empty\nrun: { agents: [echo] }\ncases: [{ id: c, prompt: p, checks: [{ contains: p, required: false }] }]\n",
    );
    let ran = project.run(&["run", "."]).exits(3);
    assert!(ran.stdout.contains("case c cannot be scored: it has no required check"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("--resume"), "{}", ran.stdout);
    // Nor where the file asks for something that this version does not do.
    let project = self::project("");
    project.write("skills/gull/SKILL.md", "---\nname: gull\ndescription: Speaks.\n---\n\nkee-ow\n");
    project.write("waza/gull/eval.yaml", "name: g\nskill: gull\nversion: '1.0'\nconfig: { trials_per_task: 1, executor: mock }\nhooks: { before_task: [{ command: 'true' }] }\ntasks: ['tasks/*.yaml']\n");
    project.write(
        "waza/gull/tasks/a.yaml",
        "id: a\nname: A\ninputs: { prompt: hello }\nexpected: { output_contains: [hello] }\n",
    );
    let ran = project.run(&["run", "waza", "--skill", "skills/gull", "--agent", "echo"]).exits(3);
    assert!(
        ran.stdout.contains("case a cannot be scored: its eval file asks for something"),
        "{}",
        ran.stdout
    );
    assert!(!ran.stdout.contains("--resume"), "{}", ran.stdout);
}

/// The summary showed a failed check, and not that the agent never saw the skill.
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
    let message = "the arm is not valid: the agent could not see the skill gull";
    assert!(ran.stdout.contains(message), "{}", ran.stdout);
    // Running the same again cannot make the skill visible.
    assert!(!ran.stdout.contains("--resume"), "{}", ran.stdout);
    let report = std::fs::read_to_string(project.path().join("report.md")).expect("a report");
    assert!(report.contains(message), "{report}");
}

/// Without a judge, a text passed although nobody had answered the checks for a judge.
#[test]
fn a_text_whose_judged_checks_nobody_answered_does_not_pass() {
    let native = "practicum: 1\ncases: [{ id: a, prompt: p, checks: [{ id: word, contains: one }, { id: kind, judge: It is kind. }] }]\n";
    let clauditor = r#"{"skill_name": "x", "assertions": [{"id": "word", "type": "contains", "needle": "one"}],
        "grading_criteria": [{"id": "kind", "criterion": "It is kind."}]}"#;
    let project =
        Project::new(&[("n.practicum.yaml", native), ("c.eval.json", clauditor), ("out.txt", "one\n")]);
    for spec in ["n.practicum.yaml", "c.eval.json"] {
        let grade = ["grade", "--output", "out.txt", "--spec", spec];
        let ran = project.run(&grade).exits(3);
        assert!(ran.stdout.starts_with("INCOMPLETE"), "{}", ran.stdout);
        assert!(ran.stdout.contains("no answer for 1 check: kind"), "{}", ran.stdout);
        let found = project.run(&[&grade[..], &["--json"]].concat()).exits(3).json();
        assert_eq!(found["ok"], false, "{found}");
        assert!(found["notes"][0].as_str().is_some_and(|note| note.contains("check: kind")), "{found}");
        project.run(&[&grade[..], &["--allow-unscored", "1"]].concat()).exits(0);
        project.write("wrong.txt", "two\n");
        project.run(&["grade", "--output", "wrong.txt", "--spec", spec]).exits(1);
    }
    // A check that decides nothing may stay without an answer.
    project.write("n.practicum.yaml", &native.replace("It is kind.", "It is kind., required: false"));
    project.run(&["grade", "--output", "out.txt", "--spec", "n.practicum.yaml"]).exits(0);
}

/// Only a part of the cases was run, and only standard error said so.
#[test]
fn a_sample_is_not_taken_for_all_cases() {
    for (how, message) in [
        (["--max-evals", "2"], "sample of 2 of 3 cases (--max-evals 2)"),
        (["--shard", "2/3"], "sample of 2 of 3 cases (--shard 2/3)"),
        (["--case", "br*"], "sample of 2 of 3 cases (--case br*)"),
    ] {
        let project = project(EVALS);
        let args = ["run", ".", "--report", "md=r.md", "--report", "html=r.html", "--report", "junit=r.xml"];
        let args = [&args[..], &["--report", "github=r.txt"], &how].concat();
        let ran = project.run(&args).exits(0);
        assert!(ran.stdout.contains(message), "{}", ran.stdout);
        for report in ["r.md", "r.html", "r.xml", "r.txt"] {
            let text = std::fs::read_to_string(project.path().join(report)).expect("a report");
            assert!(text.replace('\\', "").contains(message), "{report}\n{text}");
        }
        assert!(project.run(&["show"]).exits(0).stdout.contains(message));
        let badge = project.run(&["badge", "--format", "shields"]).exits(0).json();
        assert!(badge["message"].as_str().is_some_and(|message| message.contains(message)), "{badge}");
        let summary = project.run(&["report", "--format", "json"]).exits(0).json();
        assert_eq!(summary["sample"]["of"], 3, "{summary}");
        let again = project.run(&["grade", "latest", "--json"]).exits(0).json();
        assert_eq!(again["summary"]["sample"], summary["sample"], "{again}");
    }
    // All cases are no sample.
    let whole = project(EVALS).run(&["run", ".", "--max-evals", "3", "--json"]).exits(0).json();
    assert_eq!(whole["sample"], Value::Null, "{whole}");
}

/// 0.996 was shown as 1.00 beside a limit of 1.00 that it fails.
#[test]
fn a_rate_that_misses_its_gate_is_not_shown_as_if_it_reached_it() {
    let project = project(
        "practicum: 1\nworkspace: empty\nrun: { agents: [echo], repeat: 300 }\ngates: { pass_rate: 1 }\ncases: [{ id: c, prompt: p, checks: [{ contains: p }] }]\n",
    );
    let once = project.path().join("once");
    let agent = format!("mkdir {} 2>/dev/null && echo no || echo p", once.display());
    project.write(
        "practicum.toml",
        &format!("sandbox = \"off\"\n[agents.echo]\ncommand = [\"/bin/sh\", \"-c\", \"{agent}\"]\n"),
    );
    let ran = project.run(&["run", ".", "-q", "--report", "md=r.md"]).exits(1);
    assert!(ran.stdout.contains("gate pass_rate of e: 0.997 ["), "{}", ran.stdout);
    assert!(ran.stdout.contains("(needs 1.000) fails"), "{}", ran.stdout);
    let report = std::fs::read_to_string(project.path().join("r.md")).expect("a report");
    assert!(report.contains("0.997"), "{report}");
}

/// Trials that were planned and not run had no annotation.
#[test]
fn github_is_not_silent_about_trials_that_were_not_run() {
    let project = project(&EVALS.replace("[{ contains: alpha }]", "[{ contains: omega }]"));
    let ran = project.run(&["run", ".", "-q", "-j", "1", "--fail-fast", "--report", "github=r.txt"]);
    assert_ne!(ran.code, 0, "{}", ran.stdout);
    let report = std::fs::read_to_string(project.path().join("r.txt")).expect("a report");
    let message = |case: &str| {
        let mut lines = report.lines();
        lines.any(|line| line.contains(&format!("title={case} of e")) && line.contains("not run: "))
    };
    assert!(message("bread") && message("broth"), "{report}");
}

/// Files that were found and not read were in no JSON document.
#[test]
fn skipped_files_are_not_left_out_of_json() {
    let project = project(EVALS);
    project.write("local/mine.practicum.yaml", EVALS);
    project.write(".gitignore", "local/\n");
    let checked = project.run(&["check", ".", "--json"]).exits(0);
    let is_named = |found: &Value| {
        let skipped = found["skipped"].as_array().into_iter().flatten();
        skipped.filter_map(Value::as_str).any(|path| path.ends_with("local/mine.practicum.yaml"))
    };
    assert!(is_named(&checked.json()), "{}\n{}", checked.stdout, checked.stderr);
    let ran = project.run(&["run", ".", "--json"]).exits(0);
    assert!(is_named(&ran.json()), "{}\n{}", ran.stdout, ran.stderr);
}

/// One skill with a slip in its frontmatter was warned of once for each of its eval files.
#[test]
fn one_slip_in_a_frontmatter_is_not_many_warnings() {
    let evals = |name: &str| {
        format!(
            "practicum: 1\nname: {name}\nskill: gull\nworkspace: empty\ncases: [{{ id: c, prompt: p, checks: [{{ contains: p }}] }}]\n"
        )
    };
    let project = Project::new(&[
        ("gull/SKILL.md", "---\nname: gull\ndescription: Speaks: use when asked to.\n---\n\nkee-ow\n"),
        ("one.practicum.yaml", &evals("one")),
        ("two.practicum.yaml", &evals("two")),
    ]);
    let ran = project.run(&["check", "."]).exits(0);
    assert_eq!(ran.stdout.matches("warning[skill-frontmatter]").count(), 1, "{}", ran.stdout);
}

/// A file that was given as read-only and changed was reported only by `show` if the case passed.
#[test]
fn a_changed_fixture_is_not_kept_quiet_where_the_case_passes() {
    let project = project(
        "practicum: 1\nworkspace: empty\nrun: { agents: [echo] }\ncases: [{ id: c, prompt: p, files: [{ from: in.txt, to: in.txt }], checks: [{ contains: p }] }]\n",
    );
    project.write("in.txt", "given\n");
    project.write(
        "practicum.toml",
        "sandbox = \"off\"\n[agents.echo]\ncommand = [\"/bin/sh\", \"-c\", \"chmod u+w in.txt; echo changed > in.txt; echo p\"]\n",
    );
    let message = "the agent changed in.txt, which was given as read-only";
    let ran = project.run(&["run", ".", "--report", "md=r.md"]).exits(0);
    assert!(ran.stdout.contains(message), "{}\n{}", ran.stdout, ran.stderr);
    let report = std::fs::read_to_string(project.path().join("r.md")).expect("a report");
    assert!(report.replace('\\', "").contains(message), "{report}");
    let summary = project.run(&["report", "--format", "json"]).exits(0).json();
    assert_eq!(summary["cases"][0]["notes"][0], message, "{summary}");
}

/// An optional criterion to which the judge gave no score was in no list of scores.
#[test]
fn a_criterion_without_a_score_does_not_disappear() {
    let statement =
        |id: &str| json!({"id": id, "judge": {"statement": format!("It is {id}."), "scale": "1-5"}});
    let mut optional = statement("warm");
    optional["required"] = json!(false);
    let evals = json!({
        "practicum": 1, "workspace": "empty", "run": {"agents": ["builtin"]},
        "cases": [{"id": "c", "prompt": "Where to go?", "checks": [statement("near"), optional]}],
    });
    let judge_verdict = json!({"id": "near", "verdict": null, "score": 5, "evidence": ["The park"], "reasoning": "It is.", "weak": null});
    let step = json!({"tools": [{"name": "report_marks", "input": {"results": [judge_verdict]}}]});
    let script = json!({"practicum_script": 1, "scenarios": [
        {"when": "Where to go", "steps": ["The park"]},
        {"to": "judge", "steps": vec![step; 6]},
    ]});
    let project =
        Project::new(&[("e.practicum.yaml", &evals.to_string()), ("script.json", &script.to_string())]);
    let ran = project.run(&["run", ".", "--script", "script.json", "--report", "md=r.md"]).exits(0);
    assert!(ran.stdout.contains("near 5.0, warm no score ("), "{}\n{}", ran.stdout, ran.stderr);
    assert!(project.run(&["show"]).exits(0).stdout.contains("warm no score ("));
    let report = std::fs::read_to_string(project.path().join("r.md")).expect("a report");
    assert!(report.contains("no score: "), "{report}");
    let summary = project.run(&["report", "--format", "json"]).exits(0).json();
    let warm = &summary["cases"][0]["checks"][1];
    assert_eq!((warm["scale"].as_str(), &warm["mean_score"]), (Some("1-5"), &Value::Null), "{warm}");
    assert!(warm["not_scored_because"].is_string(), "{warm}");
}

#[test]
fn two_empty_outputs_are_not_called_a_tie() {
    let project = project(EVALS);
    for n in 0..5 {
        project.write(&format!("old/{n}.txt"), "");
        project.write(&format!("new/{n}.txt"), "\n");
    }
    let ran = project.run(&["compare", "old", "new", "--blind", "--request", "Speak."]).exits(3);
    assert!(ran.stdout.contains("both outputs are empty"), "{}", ran.stdout);
    assert!(ran.stdout.contains("0 ties, 5 not compared"), "{}", ran.stdout);
}
