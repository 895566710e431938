//! Runs, parts of runs, modes and versions, compared.

use std::process::Command;

use crate::common::Project;
use serde_json::{Value, json};

/// Says what its skill says, and activates it if the prompt asks for it or for looking at skills.
const AGENT: &str = r#"
case "$1" in *"EVALUATE each skill"* | *"Use the skill"*) fires=yes ;; esac
skill=$(ls .agents/skills 2>/dev/null | head -1)
if [ -n "$skill" ]; then said=$(tail -1 ".agents/skills/$skill/SKILL.md"); seen="\"$skill\""; fi
echo "{\"type\":\"start\",\"schema_version\":1,\"skills\":[$seen]}"
if [ -n "$fires" ]; then echo "{\"type\":\"skill\",\"name\":\"$skill\"}"; fi
echo "{\"type\":\"text\",\"text\":\"$said\"}"
echo '{"type":"end","ending":"finished"}'
"#;

fn skill(says: &str) -> String {
    format!("---\nname: gull\ndescription: Speaks.\n---\n\n{says}\n")
}

fn evals(ids: &[&str]) -> String {
    let cases: String = ids
        .iter()
        .map(|id| format!("  - {{ id: {id}, prompt: speak, checks: [{{ contains: kee-ow }}] }}\n"))
        .collect();
    format!(
        "practicum: 1\nskill: ../gull\nworkspace: empty\nrun: {{ agents: [own], repeat: 5 }}\ngates: {{ pass_rate: 0 }}\ncases:\n{cases}"
    )
}

fn project() -> Project {
    let project = Project::new(&[
        ("gull/SKILL.md", &skill("kee-ow")),
        ("evals/e.practicum.yaml", &evals(&["one", "two"])),
        ("agent.sh", AGENT),
    ]);
    let path = project.path().join("agent.sh");
    let agent = |name: &str| {
        format!(
            "[agents.{name}]\ncommand = [\"/bin/bash\", \"{}\", \"{{prompt}}\"]\ndecoder = \"practicum-jsonl\"\n",
            path.display()
        )
    };
    project.write("practicum.toml", &format!("{}{}", agent("own"), agent("other")));
    project
}

fn run(project: &Project, more: &[&str]) -> String {
    let args = ["run", "evals", "--json", "--sandbox", "off"];
    let summary = project.run(&[&args[..], more].concat()).exits(0).json();
    summary["run"].as_str().expect("an id").to_owned()
}

#[test]
fn a_loss_between_two_runs_is_found_and_a_gain_is_not_a_loss() {
    let project = project();
    let good = run(&project, &[]);
    project.write("gull/SKILL.md", &skill("hello"));
    let bad = run(&project, &[]);
    let found = project.run(&["compare", &good, "latest", "--json"]).exits(1).json();
    let one = &found["comparisons"][0];
    assert_eq!((&one["verdict"], &one["difference"]["value"]), (&json!("worse"), &json!(-1.0)));
    assert_eq!(one["cases"][0]["change"], "regression");
    assert_eq!((&one["before"]["name"], &one["after"]["name"]), (&json!(good), &json!(bad)));
    let ran = project.run(&["compare", &bad, &good]).exits(0);
    assert!(ran.stdout.contains("fixes:") && ran.stdout.contains("+1.00"), "{}", ran.stdout);
    let folder = format!(".practicum/runs/{good}");
    project.run(&["compare", &folder, &good]).exits(0);
    let ran = project.run(&["compare", "nowhere", &good]).exits(2);
    assert!(ran.stderr.contains("there is no run"), "{}", ran.stderr);
    project.run(&["compare", &good]).exits(2);
}

#[test]
fn a_renamed_id_never_hides_a_regression() {
    let project = project();
    let before = run(&project, &[]);
    project.write("evals/e.practicum.yaml", &evals(&["one", "renamed"]));
    let after = run(&project, &[]);
    let ran = project.run(&["compare", &before, &after]).exits(1);
    assert!(ran.stdout.contains("missing after") && ran.stdout.contains("two of e"), "{}", ran.stdout);
    assert!(ran.stdout.contains("renamed of e"), "{}", ran.stdout);
    project.run(&["compare", &before, &after, "--allow-missing"]).exits(0);
}

#[test]
fn one_run_each_cannot_tell_unless_every_loss_counts() {
    let project = project();
    let before = run(&project, &["--repeat", "1"]);
    project.write("gull/SKILL.md", &skill("hello"));
    let after = run(&project, &["--repeat", "1"]);
    let ran = project.run(&["compare", &before, &after, "--margin", "0.2"]).exits(3);
    assert!(ran.stdout.contains("cannot tell whether a case got worse: run it more often"), "{}", ran.stdout);
    assert_eq!(project.run(&["compare", &before, &after, "--json"]).exits(3).json()["ok"], false);
    assert!(
        ran.stdout.contains("cannot tell: so few runs of a case") && ran.stdout.contains("more run"),
        "{}",
        ran.stdout
    );
    assert!(!ran.stdout.contains("within noise"), "{}", ran.stdout);
    project.run(&["compare", &before, &after, "--strict"]).exits(1);
}

#[test]
fn the_parts_of_one_run() {
    let project = project();
    let id = run(&project, &["--arm", "with", "--arm", "without", "--agent", "own", "--agent", "other"]);
    let arms = project.run(&["compare", &id, "--by", "arm", "--json"]).exits(0).json();
    let one = &arms["comparisons"][0];
    assert_eq!((&one["before"]["name"], &one["after"]["name"]), (&json!("without"), &json!("with")));
    assert_eq!((&one["verdict"], &one["difference"]["value"]), (&json!("better"), &json!(1.0)));
    let rate = |side: &str| (one[side]["pass_rate"]["value"].clone(), one[side]["pass_rate"]["n"].clone());
    assert_eq!((rate("before"), rate("after")), ((json!(0.0), json!(20)), (json!(1.0), json!(20))));
    let text = project.run(&["compare", &id, "--by", "arm"]).exits(0).stdout;
    assert!(text.contains("0.00 [0.00") && text.contains("→ 1.00 ["), "{text}");
    let agents = project.run(&["compare", &id, "--by", "agent", "--json"]).exits(0).json();
    assert_eq!(agents["comparisons"][0]["differs"], json!(["agent: other → own"]));
    assert_eq!(agents["comparisons"][0]["cases"].as_array().map(Vec::len), Some(4));
    let ran = project.run(&["compare", &id, "--by", "mode"]).exits(2);
    assert!(ran.stderr.contains("one mode only"), "{}", ran.stderr);
}

#[test]
fn a_suite_in_several_modes() {
    let suite = json!({"name": "birds", "runs_per_case": 3, "skills": [{"name": "gull", "plugin": "birds", "test_cases": [
        {"prompt": "speak | now", "expectation": "must_activate"},
        {"prompt": "be <b>quiet</b>", "expectation": "should_not_activate"},
    ]}]});
    let project = project();
    project.write("plugins/birds/skills/gull/SKILL.md", &skill("kee-ow"));
    project.write("suites/birds.json", &suite.to_string());
    let args = ["compare", "suites/birds.json", "--modes", "baseline", "smart", "forced"];
    let more = ["--output", "modes.md", "--agent", "own", "--sandbox", "off", "--json"];
    let found = project.run(&[&args[..], &more[..]].concat()).exits(0).json();
    let of = |at: usize, side: &str| found["comparisons"][at][side].clone();
    assert_eq!(
        (of(0, "before")["name"].clone(), of(1, "after")["name"].clone()),
        (json!("baseline"), json!("forced"))
    );
    assert_eq!(of(0, "before")["activation"]["recall"]["value"], 0.0);
    assert_eq!(of(1, "after")["activation"]["recall"]["value"], 1.0);
    assert_eq!(of(1, "after")["activation"]["fp"], 3);
    let report = std::fs::read_to_string(project.path().join("modes.md")).expect("a report");
    for part in ["# Modes of", "| baseline | 6 |", "| forced | 6 |", "## baseline → forced", "## Method"] {
        assert!(report.contains(part), "{part}\n{report}");
    }
    assert!(!report.contains("<b>"), "{report}");
    let dry = project.run(&[&args[..], &["--agent", "own", "--dry-run"]].concat()).exits(0);
    assert_eq!(dry.stdout, "");
}

#[test]
fn a_case_that_one_mode_could_not_measure_is_no_success() {
    let project = project();
    let breaks = r#"case "$1" in *"EVALUATE each skill"*) case "$1" in *fragile*) exit 7 ;; esac ;; esac"#;
    project.write("agent.sh", &format!("{breaks}\n{AGENT}"));
    let evals = evals(&["one", "two"]).replacen("prompt: speak", "prompt: fragile", 1);
    project.write("evals/e.practicum.yaml", &evals);
    let args = ["compare", "evals", "--modes", "baseline", "forced", "--sandbox", "off", "--no-probe"];
    let ran = project.run(&args).exits(3);
    assert!(ran.stdout.contains("not measured on both sides:\n    one of e"), "{}", ran.stdout);
}

fn git(project: &Project, args: &[&str]) {
    let own = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"];
    let ran = Command::new("git").current_dir(project.path()).args(own).args(args).output().expect("git");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn a_skill_against_an_earlier_version_of_itself() {
    let project = project();
    git(&project, &["init", "-q", "-b", "main"]);
    git(&project, &["add", "gull", "evals"]);
    git(&project, &["commit", "-qm", "one"]);
    let compare = |reference: &str| {
        project.run(&["compare", "evals", "--against", reference, "--sandbox", "off", "--json"])
    };
    project.write("gull/SKILL.md", &skill("hello"));
    let found = compare("main").exits(1).json();
    let one = &found["comparisons"][0];
    assert_eq!((&one["before"]["name"], &one["verdict"]), (&json!("main"), &json!("worse")));
    assert_eq!(one["cases"][0]["before"], json!({"passed": 5, "runs": 5, "not_scored": 0}));
    let text = std::fs::read_to_string(project.path().join("gull/SKILL.md")).expect("the skill");
    assert!(text.contains("hello"), "the skill of today is untouched");
    // Which is how it goes on after it was ended: the earlier skill lies elsewhere each time.
    let again = compare("main").exits(1);
    assert_eq!(again.stderr.matches("10 reuse, 0 run").count(), 2, "{}", again.stderr);
    let ran = compare("nowhere").exits(2);
    assert!(ran.stderr.contains("git knows no commit"), "{}", ran.stderr);
}

#[test]
fn what_compare_prints_is_as_published() {
    let project = project();
    let id = run(&project, &["--arm", "with", "--arm", "without"]);
    let document: Value = project.run(&["compare", &id, "--by", "arm", "--json"]).exits(0).json();
    let schema = practicum::schema::schema("compare").expect("a schema");
    if let Err(error) = jsonschema::draft202012::validate(schema, &document) {
        panic!("{error} at {}", error.instance_path());
    }
}

/// Twenty cases, of which the new version never passes one. The agent says what its skill says, and the case decides
/// whether that is enough.
fn twenty_cases() -> Project {
    let project = project();
    let cases: String = (0..20)
        .map(|at| {
            format!("  - {{ id: c{at:02}, prompt: speak of {at:02}, checks: [{{ contains: kee-ow }}] }}\n")
        })
        .collect();
    project.write(
        "evals/e.practicum.yaml",
        &format!("practicum: 1\nskill: ../gull\nworkspace: empty\nrun: {{ agents: [own] }}\ngates: {{ pass_rate: 0 }}\ncases:\n{cases}"),
    );
    project.write(
        "agent.sh",
        &AGENT.replace(
            "echo \"{\\\"type\\\":\\\"text",
            "case \"$1\" in *\"of 07\"*) case \"$said\" in *new*) said=nothing ;; esac ;; esac\necho \"{\\\"type\\\":\\\"text",
        ),
    );
    for words in [
        &["init", "-q", "-b", "main"][..],
        &["add", "."],
        &["-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "-m", "x"],
    ] {
        let done = Command::new("git").arg("-C").arg(project.path()).args(words).status();
        assert!(done.expect("git").success());
    }
    project.write("gull/SKILL.md", &skill("kee-ow new"));
    project
}

const AGAINST: [&str; 6] = ["compare", "evals", "--against", "main", "--sandbox", "off"];

/// The line that docs/ci.md gives. Three runs cannot tell that a case is dead; fresh runs of that case can.
#[test]
fn a_dead_case_of_twenty_is_found_by_confirming_it() {
    let project = twenty_cases();
    let docs = std::fs::read_to_string("docs/ci.md").expect("docs/ci.md");
    assert!(docs.contains("--repeat 3 --confirm-losses"), "the documented line is the one that is tested");
    let ran = project.run(&[&AGAINST[..], &["--repeat", "3"]].concat()).exits(3);
    let told = "cannot tell: so few runs of a case cannot show that it changed:";
    assert!(ran.stdout.contains(told) && !ran.stdout.contains("within noise"), "{}", ran.stdout);
    assert!(ran.stdout.contains("c07 of e (own): 3/3 → 0/3"), "{}", ran.stdout);
    assert!(ran.stdout.contains("so many runs of it find no loss, however great"), "{}", ran.stdout);
    let confirm =
        |more: &[&str]| project.run(&[&AGAINST[..], &["--repeat", "3", "--confirm-losses"], more].concat());
    // A budget that is too small is said, and nothing is called noise.
    let ran = confirm(&["11"]).exits(3);
    assert!(ran.stderr.contains("1 case more may have got worse"), "{}", ran.stderr);
    assert!(!ran.stdout.contains("within noise"), "{}", ran.stdout);
    let ran = confirm(&["--json"]).exits(1);
    assert!(ran.stderr.contains("1 case may have got worse: 6 fresh runs of each"), "{}", ran.stderr);
    let case = ran.json()["comparisons"][0]["cases"][7].clone();
    let fresh = &case["confirmation"];
    assert_eq!((&case["change"], &fresh["is_confirmed"]), (&json!("regression"), &json!(true)));
    assert_eq!((&fresh["before"]["passed"], &fresh["after"]["passed"]), (&json!(6), &json!(0)));
    // From now on the fresh runs are known, and nothing needs to be run again.
    let ran = confirm(&[]).exits(1);
    let known = "(and 6/6 in earlier runs)";
    assert!(ran.stdout.contains("regressions:") && ran.stdout.contains(known), "{}", ran.stdout);
    let refused = project.run(&["compare", "latest", "latest", "--confirm-losses"]).exits(2);
    assert!(refused.stderr.contains("needs --against"), "{}", refused.stderr);
}

/// What earlier runs of the same version showed makes up for few runs now.
#[test]
fn earlier_runs_of_the_same_setup_count() {
    let project = twenty_cases();
    project.write("gull/SKILL.md", &skill("kee-ow"));
    for _ in 0..3 {
        run(&project, &["--repeat", "3", "--no-cache"]);
    }
    let good = run(&project, &["--repeat", "3", "--no-cache"]);
    project.write("gull/SKILL.md", &skill("kee-ow new"));
    run(&project, &["--repeat", "3"]);
    let ran = project.run(&["compare", &good, "latest"]).exits(1);
    assert!(ran.stdout.contains("c07 of e (own): 3/3 (and 9/9 in earlier runs) → 0/3"), "{}", ran.stdout);
}

/// The results of a run, stored and held against later runs.
#[test]
fn a_run_that_falls_behind_its_baseline_fails_the_gate() {
    let project = twenty_cases();
    project.write("gull/SKILL.md", &skill("kee-ow"));
    let gated_with = |repeat: &str, more: &[&str]| {
        let args = ["run", "evals", "--sandbox", "off", "--gate", "no_regression", "--repeat", repeat];
        project.run(&[&args[..], more].concat())
    };
    let gated = |more: &[&str]| gated_with("5", more);
    let missing = gated(&[]).exits(3);
    assert!(missing.stdout.contains("practicum baseline stores one"), "{}", missing.stdout);
    let stored = project.run(&["baseline", "--json"]).exits(0).json();
    let schema = practicum::schema::schema("baseline").expect("a schema");
    assert!(jsonschema::draft202012::validate(schema, &stored).is_ok(), "{stored}");
    assert!(gated(&[]).exits(0).stdout.contains("gate no_regression of e: 1.00 (needs 1.00) holds"));
    project.write("gull/SKILL.md", &skill("kee-ow new"));
    let lost = gated(&[]).exits(1);
    assert!(lost.stdout.contains("worse than the baseline: c07 (5/5 → 0/5) fails"), "{}", lost.stdout);
    let open = gated_with("1", &["--no-cache"]).exits(3);
    assert!(open.stdout.contains("cannot tell with so few runs: c07 (5/5 → 0/1) open"), "{}", open.stdout);
    assert!(open.stdout.contains("--repeat 5 or more would"), "{}", open.stdout);
    // A case that was changed is not the one that was measured.
    let evals = std::fs::read_to_string(project.path().join("evals/e.practicum.yaml")).expect("evals");
    project.write("evals/e.practicum.yaml", &evals.replace("speak of 07", "speak loudly of 07"));
    assert!(gated(&[]).exits(0).stdout.contains("not in the baseline: 1 case"));
    // A case that is gone is lost, unless only a part of the cases is run.
    project.write(
        "evals/e.practicum.yaml",
        &evals.replace("c03, prompt: speak of 03", "c99, prompt: speak of 99"),
    );
    project.write("gull/SKILL.md", &skill("kee-ow"));
    assert!(gated(&[]).exits(1).stdout.contains("worse than the baseline: c03 (missing)"));
    gated(&["--case", "c1*"]).exits(0);
    gated(&["--baseline", "nowhere"]).exits(2);
}
