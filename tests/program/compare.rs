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
    let ran = project.run(&["compare", &before, &after, "--margin", "0.2"]).exits(0);
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
