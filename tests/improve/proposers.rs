//! Proposers that cheat, attack, or would like to see more than they may.

use serde_json::{Value, json};

use super::common::{Project, Ran};
use super::ferry::{
    CASES, IMPROVE, ONCE, SKILL, analysing, diligent, edit, evals, project, proposing, read, script, skill,
    suggestion, usual_cases,
};
use super::wire::Wire;

#[test]
fn nobody_who_advises_is_shown_a_case_that_is_held_out() {
    let mut suite = evals(&usual_cases());
    suite["run"] = json!({"agents": ["builtin"]});
    let project =
        Project::new(&[("ferry/SKILL.md", SKILL), ("ferry/evals/trips.practicum.yaml", &suite.to_string())]);
    let wire = Wire::to(&project, &script(&diligent()));
    let improved = Ran::of(wire.at(project.practicum(&IMPROVE)).output().expect("it starts")).exits(0).json();
    assert_eq!(improved["best"], 2, "{improved:#}");
    let asked = wire.asked();
    let said_of = |id: &str| format!("Plan trip {id}");
    let names = |part: &str| -> Vec<String> {
        let cases = improved["split"][part].as_array().expect("cases").iter();
        cases.map(|case| case["case"].as_str().expect("an id").to_owned()).collect()
    };
    let (tuning, held_out) = (names("tuning"), names("held_out"));
    assert_eq!((tuning.len(), held_out.len()), (4, 2));
    for (question, least) in
        [("Propose edits", 1), ("Analyse why", 2), ("Which of the two outputs", 2 * 2 * tuning.len())]
    {
        let questions: Vec<&String> = asked.iter().filter(|body| body.contains(question)).collect();
        assert_eq!(questions.len(), least, "{question}");
        for id in &held_out {
            let shown = |body: &&&String| body.contains(&said_of(id)) || body.contains(id.as_str());
            assert_eq!(questions.iter().find(shown), None, "{question} shows {id}");
        }
    }
    let proposals: Vec<&String> = asked.iter().filter(|body| body.contains("Propose edits")).collect();
    let failing = tuning.iter().filter(|id| CASES.iter().any(|(case, w)| case == id && !SKILL.contains(w)));
    for id in failing {
        assert!(proposals[0].contains(&said_of(id)) && proposals[0].contains(&format!("{id}/plan")), "{id}");
    }
    for id in held_out {
        assert!(asked.iter().any(|body| body.contains(&said_of(&id))), "{id} was never run");
    }
}

#[test]
fn a_proposer_that_learns_by_heart_is_rejected() {
    let split = {
        let probe = project(&usual_cases(), &diligent());
        let improved = probe.run(&[&IMPROVE[..], &["--rounds", "1"]].concat()).exits(0).json();
        assert_eq!(improved["stopped"], "rounds");
        improved["split"].clone()
    };
    let is_held_out =
        |id: &str| split["held_out"].as_array().expect("a list").iter().any(|held| held["case"] == id);
    // What helps the cases that the proposer sees harms the one that it does not see.
    let cases: Vec<(&str, String)> = CASES
        .iter()
        .map(|(id, wanted)| match (is_held_out(id), SKILL.contains(wanted)) {
            (true, true) => (*id, "!ahoy".to_owned()),
            (true, false) => (*id, "what nobody proposes".to_owned()),
            (false, _) => (*id, (*wanted).to_owned()),
        })
        .collect();
    let by_heart = [
        proposing(
            "greet",
            "(?s)Greeting: none.*Propose edits",
            &[edit("Greeting: none.", "Greeting: ahoy.")],
        ),
        analysing("again", "Analyse why v0", &[suggestion("Greeting: none.", "Greeting: ahoy. Ahoy.")]),
    ];
    let project = project(&cases, &by_heart);
    let improved = project.run(&IMPROVE).exits(0).json();
    assert_eq!(improved["split"], split);
    assert_eq!((&improved["best"], &improved["stopped"]), (&json!(0), &json!("flat")), "{improved:#}");
    assert!(
        improved["rounds"][0]["why"].as_str().is_some_and(|why| why.contains("held-out")),
        "{improved:#}"
    );
    assert!(improved["rounds"][0]["tuning"]["value"].as_f64().is_some_and(|gain| gain > 0.0));
    assert_eq!(skill(&project), SKILL);
    let listed = project.run(&["versions", "ferry"]).exits(0).stdout;
    assert!(listed.contains("(rejected: the held-out cases got worse)"), "{listed}");
}

#[test]
fn a_malicious_proposer_changes_nothing_and_is_reported() {
    let in_file = |file: &str, before: &str| {
        let mut edit = edit(before, "Pwned.");
        edit["file"] = json!(file);
        edit
    };
    let attacks = [
        (in_file("evals/trips.practicum.yaml", "Greeting: ahoy."), "not a file of the skill"),
        (in_file("../elsewhere.md", "Greeting: none."), "not a file of the skill"),
        (in_file("evals/../../elsewhere.md", "Greeting: none."), "not a file of the skill"),
        (in_file("/etc/passwd", "root"), "not a file of the skill"),
        (in_file("linked.md", "Elsewhere."), "not a file of the skill"),
        (in_file("linked/elsewhere.md", "Elsewhere."), "not a file of the skill"),
        (edit("Elsewhere.", "Pwned."), "not in the skill"),
        (edit("Plan trip quay.", "Plan nothing."), "not in the skill"),
        (edit("---\nname: ferry\ndescription: Plans ferry trips.\n---\n", ""), "break the frontmatter"),
        (edit("description: Plans ferry trips.\n", ""), "remove \"description\""),
        (edit("name: ferry", "name: other"), "rename the skill"),
        (edit("name: ferry", "name: ferry\nallowed-tools: Bash"), "change \"allowed-tools\""),
    ];
    let edits: Vec<Value> = attacks.iter().map(|(edit, _)| edit.clone()).collect();
    let project = project(&usual_cases(), &[proposing("evil", "Propose edits", &edits)]);
    project.write("far/elsewhere.md", "Elsewhere.");
    project.write("elsewhere.md", "Greeting: none.");
    let link = |to: &str, at: &str| {
        std::os::unix::fs::symlink(project.path().join(to), project.path().join(at)).expect("linked");
    };
    link("far/elsewhere.md", "ferry/linked.md");
    link("far", "ferry/linked");
    let watched = ["ferry/SKILL.md", "ferry/evals/trips.practicum.yaml", "elsewhere.md", "far/elsewhere.md"];
    let texts = || watched.map(|path| std::fs::read_to_string(project.path().join(path)).expect("a file"));
    let before = texts();
    let ran = project.run(&ONCE).exits(0);
    let improved = ran.json();
    assert_eq!((&improved["stopped"], &improved["best"]), (&json!("flat"), &json!(0)), "{improved:#}");
    assert_eq!(texts(), before);
    assert!(!project.path().join("ferry-workspace/v1").exists());
    let refused = improved["rounds"][0]["refused"].as_array().expect("refused");
    assert_eq!(refused.len(), attacks.len(), "{refused:#?}");
    for (refused, (_, expected)) in refused.iter().zip(&attacks) {
        let why = refused["why"].as_str().expect("why");
        assert!(why.contains(expected), "{why} is not {expected}");
        assert!(ran.stderr.contains(&format!("refused, body: {why}")), "{}", ran.stderr);
    }
    assert_eq!(read(&project, "ferry-workspace/improve.json"), improved);
    let linked = project.path().join("ferry/linked.md");
    assert!(linked.symlink_metadata().expect("there").is_symlink(), "what is not the skill's stays");
}
