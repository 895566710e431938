//! Tests of the search for eval files.

use super::*;

const SUITE: &str = "practicum: 1\n";
const EVAL: &str = "timestamp: x\nname: n\nprompt: p\nexpected: e\n";

/// Gives the files found for `ask` in a tree, relative to it, or the kind of error.
fn check(files: &[(&str, &str)], ask: &str, evals: Option<&str>) -> Result<Vec<String>, &'static str> {
    let tree = tempfile::tempdir().expect("a folder");
    let root = tree.path().canonicalize().expect("real");
    for (path, content) in files {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("create");
        std::fs::write(path, content).expect("write");
    }
    let search = EvalSearch {
        paths: vec![if ask == "bare" { ask.into() } else { root.join(ask) }],
        evals: evals.map(|evals| root.join(evals)),
        skillet: Some(root.join("home/.skillet")),
        registry: EvalRegistry::default(),
    };
    let relative = |path: &Path| path.strip_prefix(&root).expect("below").display().to_string();
    match discover(&search, &|_| root.clone()) {
        Ok(found) => Ok(found
            .files
            .iter()
            .map(|found| format!("{} @{}", relative(&found.file), relative(&found.root)))
            .collect()),
        Err(DiscoverError::Missing(_) | DiscoverError::MissingInSkillet { .. }) => Err("missing"),
        Err(DiscoverError::NoEvals { .. }) => Err("nothing"),
        Err(DiscoverError::AllSkipped { .. }) => Err("ignored"),
        Err(DiscoverError::SeveralSkills(_) | DiscoverError::EvalsOfAnotherSkill { .. }) => {
            Err("several skills")
        }
        Err(DiscoverError::Ambiguous { .. }) => Err("ambiguous"),
    }
}

#[test]
fn places() {
    let skill = ("skills/s/SKILL.md", "x");
    let ok = |paths: &[&str]| {
        Ok::<Vec<String>, &'static str>(paths.iter().map(|path| (*path).to_owned()).collect())
    };
    for (files, ask, evals, expected) in [
        (vec![("a/x.practicum.yaml", SUITE)], "a", None, ok(&["a/x.practicum.yaml @a"])),
        (vec![("a/odd.txt", SUITE)], "a/odd.txt", None, ok(&["a/odd.txt @a"])),
        (
            vec![("a/1.yaml", EVAL), ("a/b/2.yml", EVAL), ("a/other.yaml", "x: 1")],
            "a",
            None,
            ok(&["a/1.yaml @a", "a/b/2.yml @a"]),
        ),
        (
            vec![skill, ("skills/s/evals/evals.json", "{}"), ("evals/s/evals.json", "{}")],
            "skills/s",
            None,
            ok(&["skills/s/evals/evals.json @skills/s"]),
        ),
        (
            vec![skill, ("evals/s/evals.json", "{}")],
            "skills/s/SKILL.md",
            None,
            ok(&["evals/s/evals.json @evals/s"]),
        ),
        // An example that a skill shows does not replace its evals.
        (
            vec![skill, ("skills/s/assets/evals.json", "{}"), ("evals/s/evals.json", "{}")],
            "skills/s",
            None,
            ok(&["evals/s/evals.json @evals/s"]),
        ),
        (
            vec![skill, ("skills/s/assets/evals.json", "{}"), ("skills/s/evals/evals.json", "{}")],
            "skills/s",
            None,
            ok(&["skills/s/evals/evals.json @skills/s"]),
        ),
        (
            vec![skill, ("skills/s/assets/evals.json", "{}")],
            "skills/s",
            None,
            ok(&["skills/s/assets/evals.json @skills/s"]),
        ),
        (
            vec![("deep/skills/s/SKILL.md", "x"), ("evals/s/triggers.json", "[]")],
            "deep/skills/s",
            None,
            ok(&["evals/s/triggers.json @evals/s"]),
        ),
        (
            vec![skill, ("evals/group/s/evals.json", "{}")],
            "skills/s",
            None,
            ok(&["evals/group/s/evals.json @evals/group/s"]),
        ),
        (
            vec![skill, ("evals/g/s/evals.json", "{}"), ("evals/h/s/evals.json", "{}")],
            "skills/s",
            None,
            Err("ambiguous"),
        ),
        (
            vec![skill, ("other/evals.json", "{}"), ("evals/s/evals.json", "{}")],
            "skills/s",
            Some("other"),
            ok(&["other/evals.json @other"]),
        ),
        (
            vec![("home/.skillet/evals/bare/1.yaml", EVAL)],
            "bare",
            None,
            ok(&["home/.skillet/evals/bare/1.yaml @home/.skillet/evals/bare"]),
        ),
        (
            vec![
                ("a/.gitignore", "x.eval.json"),
                ("a/x.eval.json", "{}"),
                ("a/node_modules/evals.json", "{}"),
            ],
            "a",
            None,
            Err("ignored"),
        ),
        (
            vec![("a/s.json", "{\"test_cases\": []}"), ("a/package.json", "{}")],
            "a",
            None,
            ok(&["a/s.json @a"]),
        ),
        (
            vec![
                ("a/1.yaml", "timestamp: x\nname: n\npromt: p\nexpected: e\n"),
                ("a/2.yaml", "timestamp: x\nname: n\nprompt: p\nexpcted: e\n"),
                ("a/3.yaml", "\u{feff}timestamp: x\nprompt: p\n"),
                ("a/other.yaml", "name: n\nprompt: p\n"),
            ],
            "a",
            None,
            ok(&["a/1.yaml @a", "a/2.yaml @a", "a/3.yaml @a", "a/other.yaml @a"]),
        ),
        (
            vec![
                ("a/1.yaml", "\"prompt\": p\n'expected' : e\n"),
                ("a/2.yaml", "x:\n  prompt: p\n  expected: e\n"),
            ],
            "a",
            None,
            ok(&["a/1.yaml @a"]),
        ),
        (
            vec![
                ("a/1.json", r#"{"evals": [{"prompt": "p", "assertions": []}]}"#),
                ("a/2.json", r#"[{"input": "p", "rubric": []}]"#),
                ("a/3.json", r#"{"input": "p"}"#),
            ],
            "a",
            None,
            ok(&["a/1.json @a", "a/2.json @a"]),
        ),
        (
            vec![("commands/c.md", "x"), ("commands/c.eval.json", "{}"), ("commands/d.eval.json", "{}")],
            "commands/c.md",
            None,
            ok(&["commands/c.eval.json @commands"]),
        ),
        (vec![("commands/c.md", "x")], "commands/c.md", None, Err("nothing")),
        (
            vec![skill, ("deep/in/s/evals.json", "{}")],
            "skills/s",
            Some("deep/in/s/evals.json"),
            ok(&["deep/in/s/evals.json @deep/in/s"]),
        ),
        (vec![], "nowhere", None, Err("missing")),
    ] {
        assert_eq!(check(&files, ask, evals), expected, "{files:?} {ask}");
    }
}

#[test]
fn a_file_is_found_once() {
    let tree = tempfile::tempdir().expect("a folder");
    let root = tree.path().canonicalize().expect("real");
    for folder in ["elsewhere", "evals/inner"] {
        std::fs::create_dir_all(root.join(folder)).expect("create");
    }
    for file in ["elsewhere/far.yaml", "evals/inner/near.yaml"] {
        std::fs::write(root.join(file), EVAL).expect("write");
    }
    for (target, link) in [
        ("../elsewhere/far.yaml", "evals/linked.yaml"),
        ("../elsewhere/far.yaml", "evals/twice.yaml"),
        ("inner/near.yaml", "evals/a.yaml"),
        ("../elsewhere", "evals/folder"),
        ("nowhere.yaml", "evals/broken.yaml"),
    ] {
        std::os::unix::fs::symlink(target, root.join(link)).expect("link");
    }
    let evals = root.join("evals");
    let search = EvalSearch { paths: vec![evals.join("inner"), evals.clone()], ..EvalSearch::default() };
    let found = discover(&search, &|path| path.to_owned()).expect("found");
    let places: Vec<(PathBuf, PathBuf)> =
        found.files.into_iter().map(|found| (found.file, found.root)).collect();
    // A broken link counts as an eval that cannot be read.
    let expected =
        ["broken.yaml", "inner/near.yaml", "linked.yaml"].map(|file| (evals.join(file), evals.clone()));
    assert_eq!(places, expected);
}

#[test]
fn the_skill_is_known_for_whose_sake_files_were_found() {
    let tree = tempfile::tempdir().expect("a folder");
    let root = tree.path().canonicalize().expect("real");
    for file in ["x/skills/s/SKILL.md", "evals/s/evals.json", "other/t.json"] {
        let file = root.join(file);
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("create");
        std::fs::write(file, "{}").expect("write");
    }
    let skill = root.join("x/skills/s");
    let search = EvalSearch { paths: vec![skill.clone()], ..EvalSearch::default() };
    let found = discover(&search, &|_| root.clone()).expect("found");
    assert_eq!(found.files.iter().map(|found| found.skill.as_ref()).collect::<Vec<_>>(), [Some(&skill)]);
    assert_eq!(search.skill_of_evals(), None);
    let elsewhere = EvalSearch { evals: Some(root.join("other")), ..search };
    assert_eq!(elsewhere.skill_of_evals(), Some(skill));
}

#[test]
fn a_circle_of_links_ends() {
    let tree = tempfile::tempdir().expect("a folder");
    std::os::unix::fs::symlink(tree.path(), tree.path().join("again")).expect("link");
    std::fs::write(tree.path().join("x.practicum.yaml"), SUITE).expect("write");
    let search = EvalSearch { paths: vec![tree.path().to_owned()], ..EvalSearch::default() };
    assert_eq!(discover(&search, &|path| path.to_owned()).expect("found").files.len(), 1);
}
