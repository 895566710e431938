//! Which skill of a catalogue is activated for which prompt, with the built-in agent and a scripted model.

use crate::common::{Project, Ran, claude, codex, path_with};
use serde_json::{Value, json};

fn skill(name: &str, description: &str) -> (String, String) {
    let text = format!(
        "---\nname: {name}\ndescription: {description}\n---\nThis is how {name} is done, step by step and slowly.\n"
    );
    (format!("skills/{name}/SKILL.md"), text)
}

/// A script that activates a skill, or none, for each prompt.
fn script(answers: &[(&str, &str)]) -> String {
    let mut out = "practicum_script: 1\nscenarios:\n".to_owned();
    for (prompt, skill) in answers {
        let steps = match *skill {
            "" => "[Nothing to do.]".to_owned(),
            skill => format!("[{{ tools: [{{ name: Skill, input: {{ skill: {skill} }} }}] }}, Done.]"),
        };
        out.push_str(&format!("  - {{ when: \"{prompt}\", steps: {steps} }}\n"));
    }
    out
}

fn project(answers: &[(&str, &str)], prompts: &str) -> Project {
    let project = Project::new(&[("prompts.yaml", prompts), ("script.yaml", &script(answers))]);
    for (path, text) in [
        skill("bread", "Bakes bread with a sourdough starter"),
        skill("knives", "Sharpens kitchen knives on a whetstone"),
        skill("soil", "Turns garden waste into compost"),
        skill("tides", &format!("Reads tide tables. {}", "Long words about water. ".repeat(100))),
    ] {
        project.write(&path, &text);
    }
    project
}

const PROMPTS: &str = "\
- { id: b1, prompt: the starter doubled, expected: bread }
- { id: b2, prompt: the loaf is flat, expected: bread }
- { id: k1, prompt: the blade is dull, expected: knives }
- { id: s1, prompt: coffee grounds, expected: soil }
- { id: st, prompt: water and soil, expected: [soil, tides] }
- { id: n1, prompt: what is the time, expected: null }
";

/// The loaf goes to the wrong skill; all else is right.
const ANSWERS: [(&str, &str); 6] = [
    ("the starter doubled", "bread"),
    ("the loaf is flat", "knives"),
    ("the blade is dull", "knives"),
    ("coffee grounds", "soil"),
    ("water and soil", "tides"),
    ("what is the time", ""),
];

const ROUTE: [&str; 10] = [
    "route",
    "skills",
    "--prompts",
    "prompts.yaml",
    "--agent",
    "builtin",
    "--script",
    "script.yaml",
    "--sandbox",
    "off",
];

fn row<'d>(document: &'d Value, expected: &[&str]) -> &'d Value {
    let rows = document["agents"][0]["rows"].as_array().expect("rows");
    rows.iter().find(|row| row["expected"] == json!(expected)).expect("a row")
}

#[test]
fn a_known_confusion_is_found_and_only_suspects_run_again() {
    let project = project(&ANSWERS, PROMPTS);
    let found = project.run(&[&ROUTE[..], &["--json", "--repeat", "4"]].concat()).exits(0).json();
    let schema = practicum::schema::schema("route").expect("a schema");
    assert!(jsonschema::draft202012::validate(schema, &found).is_ok());
    let bread = row(&found, &["bread"]);
    assert_eq!(
        (&bread["right"]["value"], &bread["rounds"], &bread["prompts"]),
        (&json!(0.5), &json!(4), &json!(2))
    );
    // The skill that was activated wrongly is suspect too. The others ran once.
    for (expected, rounds) in [(&["knives"][..], 4), (&["soil"], 1), (&["soil", "tides"], 1), (&[], 1)] {
        let row = row(&found, expected);
        assert_eq!((&row["right"]["value"], &row["rounds"]), (&json!(1.0), &json!(rounds)), "{expected:?}");
    }
    let collisions = found["agents"][0]["collisions"].as_array().expect("collisions");
    assert_eq!(collisions.len(), 1, "{collisions:?}");
    let of = &collisions[0];
    assert_eq!(
        (&of["expected"], &of["activated"], &of["runs"]),
        (&json!(["bread"]), &json!("knives"), &json!(4))
    );
    assert_eq!(of["prompts"], json!(["b2"]));
    assert_eq!(found["agents"][0]["right_at_first"]["n"], json!(6));
    // The built-in agent tells its model 1500 characters of a description at most.
    let listing = &found["agents"][0]["listing"]["measured"]["listing"];
    assert_eq!((&listing["skills"], &listing["whole"]), (&json!(4), &json!(3)), "{listing}");
    assert_eq!(listing["cut"][0]["skill"], "tides");

    // The same command runs nothing again, and its last run has every trial.
    let again = project.run(&[&ROUTE[..], &["--json", "--repeat", "4"]].concat()).exits(0).json();
    assert_eq!(again["agents"], found["agents"]);
    let summary = project.run(&["report", "latest", "--format", "json"]).exits(0).json();
    assert_eq!((&summary["totals"]["trials"], &summary["totals"]["reused"]), (&json!(15), &json!(15)));

    let page = project.path().join("route.html").display().to_string();
    project.run(&["report", "latest", "--format", "html", "-o", &page]).exits(0);
    let html = std::fs::read_to_string(&page).expect("the page");
    assert!(html.contains("bread → knives: 0.50") && html.contains("class=\"heat\""), "{page}");
}

#[test]
fn a_row_that_is_surely_below_the_goal_fails() {
    let mut answers = ANSWERS;
    answers[0].1 = "knives";
    let project = project(&answers, PROMPTS);
    let words = project.run(&[&ROUTE[..], &["--repeat", "8"]].concat()).exits(1);
    assert!(words.stdout.contains("bread → knives: 1.00"), "{}", words.stdout);
    assert!(words.stdout.contains("below 0.80: bread 0.00"), "{}", words.stdout);
    // Two runs show too little for that.
    project.run(&[&ROUTE[..], &["--repeat", "1", "--no-cache"]].concat()).exits(0);
}

#[test]
fn a_run_without_an_answer_is_neither_right_nor_wrong() {
    let project = project(&ANSWERS[..5], PROMPTS);
    let found =
        project.run(&[&ROUTE[..], &["--json", "--repeat", "1", "--retries", "0"]].concat()).exits(3).json();
    let none = row(&found, &[]);
    assert_eq!(
        (&none["right"]["value"], &none["unknown"], &none["standing"]),
        (&Value::Null, &json!(1), &json!("open"))
    );
    project
        .run(
            &[&ROUTE[..], &["--json", "--repeat", "1", "--retries", "0", "--allow-unscored", "0.5"]].concat(),
        )
        .exits(0);
}

#[test]
fn what_cannot_be_routed_is_refused_before_anything_runs() {
    let project = project(&ANSWERS, PROMPTS);
    project.write("unknown.yaml", "- { prompt: the starter doubled, expected: bred }\n");
    project.write("silent.yaml", "- { prompt: the starter doubled }\n");
    project.write("copies/bread/SKILL.md", "---\nname: bread\ndescription: Another\n---\nText.\n");
    for (args, reason) in [
        (&["skills", "--prompts", "unknown.yaml"][..], "did you mean \"bread\""),
        (&["skills", "--prompts", "silent.yaml"], "expected"),
        (&["skills", "--prompts", "missing.yaml"], "cannot read"),
        (&["skills", "copies", "--prompts", "prompts.yaml"], "both called bread"),
        (&["copies", "--prompts", "prompts.yaml"], "only one skill"),
        (&["nowhere", "--prompts", "prompts.yaml"], "nowhere"),
        (&["skills", "--prompts", "prompts.yaml", "--gate", "f1=1"], "--goal"),
        (&["skills", "--prompts", "prompts.yaml", "--stop-early"], "--stop-early"),
        (&["skills", "--prompts", "prompts.yaml", "--repeat", "0"], "--repeat"),
        (&["skills", "--prompts", "prompts.yaml", "--goal", "1"], "between 0 and 1"),
    ] {
        let ran = project.run(&[&["route"], args].concat()).exits(2);
        assert!(ran.stderr.contains(reason), "{args:?}: {}", ran.stderr);
    }
    assert!(!project.path().join(".practicum/runs").exists(), "nothing was run");
}

#[test]
fn generated_prompts_are_written_for_review_and_never_over_others() {
    let project = project(&ANSWERS, PROMPTS);
    // The same answer for each skill. One of the prompts names a skill.
    project.write(
        "writer.yaml",
        "practicum_script: 1\nscenarios:\n  - to: judge\n    steps:\n      - tools: [{ name: write_prompts, input: { prompts: \
         [\"The jar is full.\", \"Use bread, knives, soil or tides!\", \"The moon is full.\"] } }]\n",
    );
    let args = ["route", "skills", "--prompts", "new.yaml", "--generate", "2", "--script", "writer.yaml"];
    let ran = project.run(&args).exits(0);
    assert!(ran.stdout.contains("8 prompts written to new.yaml"), "{}", ran.stdout);
    let text = std::fs::read_to_string(project.path().join("new.yaml")).expect("the prompts");
    assert_eq!(
        (text.matches("The jar is full.").count(), text.matches("expected: tides").count()),
        (4, 2),
        "{text}"
    );
    assert!(!text.contains("Use bread"), "{text}");
    assert!(project.run(&args).exits(2).stderr.contains("exists"));
}

/// Claude Code and Codex tell their models only a part of a long description, each as much as it thinks right.
#[test]
fn real_agents_are_routed_and_their_listings_measured() {
    let read = |skill: &str| {
        format!("{{ name: exec_command, input: {{ cmd: cat .agents/skills/{skill}/SKILL.md }} }}")
    };
    let call = |skill: &str| format!("{{ name: Skill, input: {{ skill: {skill} }} }}");
    for (agent, program, step) in
        [("claude", claude(), &call as &dyn Fn(&str) -> String), ("codex", codex(), &read)]
    {
        let project = project(
            &[],
            "- { id: b, prompt: the starter doubled, expected: bread }\n- { id: k, prompt: the blade is dull, expected: knives }\n",
        );
        let answer = |when: &str| {
            format!("  - {{ when: {when}, steps: [{{ tools: [{}] }}, Done.] }}\n", step("knives"))
        };
        let script =
            format!("practicum_script: 1\nscenarios:\n{}{}", answer("the starter"), answer("the blade"));
        project.write("script.yaml", &script);
        let args = [
            "route",
            "skills",
            "--prompts",
            "prompts.yaml",
            "--agent",
            agent,
            "--script",
            "script.yaml",
            "--repeat",
            "1",
            "--json",
        ];
        let output = project.practicum(&args).env("PATH", path_with(&program)).output();
        let found = Ran::of(output.expect("practicum starts")).exits(0).json();
        let part = &found["agents"][0];
        assert_eq!(row(&found, &["knives"])["right"]["value"], json!(1.0), "{agent}: {found:#}");
        assert_eq!(
            (&part["collisions"][0]["expected"], &part["collisions"][0]["activated"]),
            (&json!(["bread"]), &json!("knives"))
        );
        let listing = &part["listing"]["measured"]["listing"];
        assert_eq!(
            (&listing["skills"], &listing["whole"], &listing["cut"][0]["skill"]),
            (&json!(4), &json!(3), &json!("tides")),
            "{agent}: {listing}"
        );
    }
}
