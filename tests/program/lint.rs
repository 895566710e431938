//! `practicum lint` as a user runs it.

use crate::common::{Project, Ran};

const GOOD: &str = "---\nname: good\ndescription: Writes release notes from commits. Use when asked for a changelog.\n---\n\n# Good\n\nRead the commits.\n";

const WORDY: &str = "---\nname: wordy\ndescription: I can write release notes when asked.\n---\n\n# Wordy\n\nRead the commits.\n";

const BAD: &str = "---\nname: Bad\ndescripton: x\n---\n\nSee [the reference](references/missing.md).\n";

#[test]
fn problems_are_shown_with_place_excerpt_and_hint() {
    let project = Project::new(&[("skills/good/SKILL.md", GOOD), ("skills/bad/SKILL.md", BAD)]);
    let ran = project.run(&["lint"]).exits(2);
    assert_eq!(ran.stderr, "");
    insta::assert_snapshot!(ran.stdout);
}

#[test]
fn a_good_skill_is_silent_but_for_the_count() {
    let project = Project::new(&[("good/SKILL.md", GOOD)]);
    for path in [".", "good", "good/SKILL.md", "./good/"] {
        let ran = project.run(&["lint", path]).exits(0);
        assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("1 skill: no problems\n", ""), "{path}");
    }
}

#[test]
fn warnings_count_only_when_strict() {
    let project = Project::new(&[("wordy/SKILL.md", WORDY)]);
    let ran = project.run(&["lint"]).exits(0);
    assert!(ran.stdout.ends_with("1 skill: 1 warning\n"), "{}", ran.stdout);
    project.run(&["lint", "--strict"]).exits(2);
    assert_eq!(project.run(&["lint", "--json"]).exits(0).json()["ok"], true);
    assert_eq!(project.run(&["lint", "--json", "--strict"]).exits(2).json()["ok"], false);
}

#[test]
fn json_is_one_document_and_nothing_else() {
    let project = Project::new(&[("good/SKILL.md", GOOD), ("bad/SKILL.md", BAD)]);
    let ran = project.run(&["lint", "--json"]).exits(2);
    assert_eq!(ran.stderr, "");
    let document = ran.json();
    insta::assert_json_snapshot!(document);
}

#[test]
fn nothing_found_says_where_it_looked() {
    let project = Project::new(&[("notes/x.md", "x")]);
    for (args, expected) in [
        (vec!["lint"], "error: no skills found; looked for SKILL.md in and below .\n"),
        (vec!["lint", "--json", "notes"], "error: no skills found; looked for SKILL.md in and below notes\n"),
        (vec!["lint", "nowhere"], "error: there is no nowhere\n"),
        (
            vec!["lint", "notes/x.md"],
            "error: notes/x.md is not a skill: name a SKILL.md, a command file, or a folder that has one in it or below it\n",
        ),
    ] {
        let ran = project.run(&args).exits(2);
        assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", expected), "{args:?}");
    }
}

#[test]
fn rules_are_listed_and_explained() {
    let project = Project::new(&[]);
    let listed = project.run(&["lint", "--rules"]).exits(0).stdout;
    for line in listed.lines() {
        let code = line.split(' ').next().expect("a code");
        let explained = project.run(&["lint", "--explain", code]).exits(0).stdout;
        assert!(explained.starts_with(code) && explained.contains("Bad:") && explained.contains("Good:"));
    }
    let ran = project.run(&["lint", "--explain", "link-brokn"]).exits(2);
    assert_eq!(ran.stdout, "");
    assert!(ran.stderr.contains("did you mean \"link-broken\"?"), "{}", ran.stderr);
    assert!(ran.stderr.contains("description-workflow, "), "{}", ran.stderr);
}

/// Colours are forced, because without them every escape sequence is stripped, ours and theirs.
#[test]
fn a_skill_cannot_steer_the_terminal() {
    let text = "---\nname: \"\\e[32mgreen\"\ndescription: \"\\e]0;title\\a Use when asked.\"\n---\n\n[\u{1b}[2J\u{202e}](x.md)\n";
    let project = Project::new(&[("\u{1b}[3Jred/SKILL.md", text)]);
    let ran =
        Ran::of(project.practicum(&["lint"]).env("CLICOLOR_FORCE", "1").output().expect("output")).exits(2);
    assert!(ran.stdout.contains("\u{1b}["), "there are colours: {:?}", ran.stdout);
    for theirs in ["\u{1b}[32m", "\u{1b}]0", "\u{7}", "\u{1b}[2J", "\u{1b}[3J", "\u{202e}"] {
        assert!(!ran.stdout.contains(theirs), "{theirs:?} in {:?}", ran.stdout);
    }
}

#[test]
fn the_example_of_this_project_is_a_good_skill() {
    let project = Project::new(&[]);
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/release-notes");
    let ran = project.run(&["lint", "--strict", example]).exits(0);
    assert_eq!(ran.stdout, "1 skill: no problems\n");
}

/// Editors and code scanning read findings in forms of their own.
#[test]
fn findings_are_printed_for_other_programs() {
    let project = Project::new(&[
        ("broken/SKILL.md", "---\nname: Broken Name\n---\n\nSee [this](missing.md).\n"),
        (
            "evals/a.practicum.yaml",
            "practicum: 1\ncases:\n  - { id: a, promt: Hi., checks: [{ contains: x }] }\n",
        ),
    ]);
    let sarif = project.run(&["lint", "broken", "--format", "sarif"]).exits(2).json();
    assert_eq!(sarif["version"], "2.1.0");
    let results = sarif["runs"][0]["results"].as_array().expect("results");
    assert!(results.iter().any(|found| found["level"] == "error"), "{sarif}");
    let place = &results[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
    assert_eq!(place, "broken/SKILL.md");

    let ran = project.run(&["check", "evals", "--format", "github"]).exits(2);
    assert!(ran.stdout.lines().all(|line| line.starts_with("::")), "{}", ran.stdout);
    assert!(ran.stdout.contains("::error file=evals/a.practicum.yaml,line=3,"), "{}", ran.stdout);
    let sarif = project.run(&["check", "evals", "--format", "sarif"]).exits(2).json();
    assert_eq!(sarif["runs"][0]["results"][0]["level"], "error");
    // --json and --format json are the same, and only one of the two can be said.
    let json = project.run(&["check", "evals", "--format", "json"]).exits(2).json();
    assert_eq!(json, project.run(&["check", "evals", "--json"]).exits(2).json());
    project.run(&["check", "evals", "--format", "json", "--json"]).exits(2);
}
