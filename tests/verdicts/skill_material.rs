//! Files of a skill or a project that look a little like evals are staged, and whatever is not staged is named.

use super::common::Project;

/// Lists its workspace and says nothing else.
const AGENT: &str = r#"
echo "{\"type\":\"start\",\"schema_version\":1,\"skills\":[\"brief\"]}"
list=$(find . -type f -printf '[%P]\n' | sort | tr -d '\n')
echo "{\"type\":\"text\",\"text\":\"$list\"}"
echo '{"type":"end","ending":"finished"}'
"#;

const EVALS: &str = r#"{"skill_name": "brief", "evals": [
    {"id": "A1", "prompt": "Write a product brief", "expectations": ["brief.md exists"]}
]}"#;

/// Evals that have nothing in common with those that are run.
const OTHER_SKILLET: &str =
    "timestamp: 2025-01-15T10:30:00Z\nname: n\nprompt: Greet me\nexpected: Says hello\n";
const OTHER_JSON: &str = r#"{"evals": [{"id": 1, "prompt": "Greet me", "expectations": ["It says hello"]}]}"#;

fn project(files: &[(&str, &str)]) -> Project {
    let skill = "---\nname: brief\ndescription: Writes briefs. Use for briefs.\n---\nDo.\n";
    let project = Project::new(&[
        ("skills/brief/SKILL.md", skill),
        ("agent.sh", AGENT),
        ("evals/brief/evals.json", EVALS),
    ]);
    let path = project.path().join("agent.sh");
    project.write(
        "practicum.toml",
        &format!(
            "sandbox = \"off\"\n[agents.own]\ncommand = [\"/bin/bash\", \"{}\", \"{{prompt}}\"]\ndecoder = \"practicum-jsonl\"\n",
            path.display()
        ),
    );
    // An overlay, so that the format gives agents a copy of the project.
    project.write("evals/brief/setup/base.txt", "base\n");
    for (path, text) in files {
        project.write(path, text);
    }
    project
}

/// Runs without a judge; gives what was said and the files in the workspace of the first trial.
fn staged(project: &Project) -> (String, String) {
    let ran = project.run(&["run", "skills/brief", "--agent", "own", "--no-judge", "--no-cache"]);
    assert!([0, 1, 3].contains(&ran.code), "{}{}", ran.stdout, ran.stderr);
    let runs = std::fs::read_dir(project.path().join(".practicum/runs")).expect("runs");
    let latest = runs.flatten().map(|entry| entry.path()).max().expect("a run");
    let mut trials = std::fs::read_dir(latest.join("trials")).expect("trials").flatten();
    let trial = trials.next().expect("a trial").path();
    (ran.stderr + &ran.stdout, std::fs::read_to_string(trial.join("output.txt")).unwrap_or_default())
}

/// All these are staged, the files of the skill under test where agents look for skills.
#[track_caller]
fn are_staged(files: &[(&str, &str)]) {
    let (said, staged) = staged(&project(files));
    for (path, _) in files {
        let place = path.strip_prefix("skills/").unwrap_or(path);
        assert!(staged.contains(&format!("{place}]")), "{path}: {staged}");
    }
    assert!(!said.contains("not staged"), "{said}");
}

#[test]
fn a_file_that_says_what_a_case_asks_and_expects_does_not_vanish() {
    are_staged(&[
        (
            "skills/brief/references/flow.md",
            "When the user says \"Write a product brief\", write. Finish when brief.md exists.\n",
        ),
        (
            "skills/brief/scripts/make.py",
            "\"\"\"Write a product brief.\n\nDone when brief.md exists.\"\"\"\n",
        ),
        ("skills/brief/README.md", "Write a product brief, and brief.md exists.\n"),
        ("skills/brief/references/quote.md", "prompt: Write a product brief\n"),
        ("README.md", "Say: Write a product brief. Afterwards brief.md exists.\n"),
        ("CHANGELOG.md", "- Write a product brief\n- brief.md exists\n"),
        ("src/app.py", "# Write a product brief; brief.md exists afterwards\n"),
    ]);
}

#[test]
fn the_templates_of_a_skill_about_evals_do_not_vanish() {
    let fenced = format!("Say \"Write a product brief\", then:\n\n```yaml\n{OTHER_SKILLET}```\n");
    are_staged(&[
        ("skills/brief/references/example.yaml", OTHER_SKILLET),
        ("skills/brief/references/how.md", &fenced),
        ("skills/brief/assets/template.json", OTHER_JSON),
        ("skills/brief/assets/evals.json", OTHER_JSON),
        ("skills/brief/assets/native.practicum.yaml", "practicum: 1\nskill: s\ncases: []\n"),
        (
            "skills/brief/assets/grading.json",
            r#"{"expectations": [{"text": "t", "passed": true, "evidence": "e"}], "summary": {}}"#,
        ),
    ]);
}

#[test]
fn a_copy_of_the_evals_in_the_skill_is_not_staged_and_is_named() {
    let project = project(&[
        ("skills/brief/references/a.json", EVALS),
        ("skills/brief/references/b.md", &format!("# Evals\n\n```json\n{EVALS}\n```\n")),
        ("skills/brief/evals.json.bak", OTHER_JSON),
        ("skills/brief/references/d.json~", EVALS),
        ("skills/brief/references/evals/e.md", "The answer.\n"),
        ("skills/brief/assets/evals.json", EVALS),
        (
            "skills/brief/assets/grading.json",
            r#"{"expectations": [{"text": "brief.md exists", "passed": true}]}"#,
        ),
        ("skills/brief/references/keep.md", "Kept.\n"),
    ]);
    let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let with_byte_order_mark = [vec![0xff, 0xfe], utf16(EVALS)].concat();
    for (path, bytes) in [("skills/brief/assets/g.json", utf16(EVALS)), ("docs.json", with_byte_order_mark)] {
        std::fs::write(project.path().join(path), bytes).expect("written");
    }
    let (said, staged) = staged(&project);
    let skill = staged.replace("[skills/", "[");
    for left_out in ["a.json", "b.md", "evals.json", "d.json", "e.md", "grading", "g.json", "docs.json"] {
        assert!(!skill.contains(left_out), "{left_out}: {staged}");
    }
    assert!(staged.contains("references/keep.md]"), "{staged}");
    assert!(
        said.contains(
            "8 eval files beside those of this run are not staged: docs.json, skills/brief/assets/evals.json, \
             skills/brief/assets/g.json, skills/brief/evals.json.bak, skills/brief/references/a.json and 3 more"
        ),
        "{said}"
    );
    assert!(
        said.contains("1 file with results of evals is not staged: skills/brief/assets/grading.json"),
        "{said}"
    );
}

#[test]
fn a_copy_of_the_evals_that_is_no_eval_file_is_not_staged_and_is_named() {
    let (prompt, expectation) =
        ("Write a brief about the new prices of the plans", "brief.md names each plan with its price");
    let evals = EVALS.replace(
        "\n]}",
        &format!(
            ",\n{{\"id\": \"A2\", \"prompt\": \"Shorten it\", \"expectations\": [\"It has one page\"]}},\n\
             {{\"id\": \"A3\", \"prompt\": \"{prompt}\", \"expectations\": [\"{expectation}\"]}}\n]}}"
        ),
    );
    let project = project(&[
        ("evals/brief/evals.json", &evals),
        ("docs/long.md", &format!("{prompt}: {expectation}.\n")),
        ("docs/two.md", "Write a product brief: brief.md exists. Shorten it: It has one page.\n"),
        ("docs/a.patch", "+{\"prompt\": \"Shorten it\",\n+\"expectations\": [\"It has one page\"]}\n"),
        ("docs/evals.py", "E = {'prompt': 'Shorten it', 'expectations': ['It has one page']}\n"),
        // Texts of two cases, and of neither both.
        ("docs/keep.md", "Write a product brief. It has one page.\n"),
    ]);
    let (said, staged) = staged(&project);
    for left_out in ["long.md", "two.md", "a.patch", "evals.py"] {
        assert!(!staged.contains(left_out), "{left_out}: {staged}");
    }
    assert!(staged.contains("[docs/keep.md]"), "{staged}");
    let with_q = project.run(&["run", "skills/brief", "--agent", "own", "--no-judge", "-q"]).stderr;
    assert!(with_q.contains("4 eval files beside those of this run are not staged"), "{with_q}");
    let message = "4 eval files beside those of this run are not staged: docs/a.patch, docs/evals.py, docs/long.md, docs/two.md";
    assert!(said.contains(message), "{said}");
}

#[test]
fn gradings_of_a_workspace_that_is_not_beside_the_skill_are_not_staged() {
    let grading = r#"{"expectations": [{"text": "brief.md exists", "passed": true, "evidence": "e"}]}"#;
    let (said, staged) = staged(&project(&[
        ("brief-workspace/grading.json", grading),
        ("brief-workspace/transcript.md", "It wrote brief.md.\n"),
        ("old-workspace/iteration-2/eval-0/notes.md", "It wrote brief.md.\n"),
        ("results/eval-0/grading.json", grading),
        ("my-workspace/notes.md", "mine\n"),
    ]));
    for left_out in ["brief-workspace", "old-workspace", "grading.json"] {
        assert!(!staged.contains(left_out), "{left_out}: {staged}");
    }
    assert!(staged.contains("[my-workspace/notes.md]"), "{staged}");
    assert!(said.contains("2 records of runs (brief-workspace, old-workspace)"), "{said}");
    assert!(
        said.contains("1 file with results of evals is not staged: results/eval-0/grading.json"),
        "{said}"
    );
}
