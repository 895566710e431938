//! Tests of the linter.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::*;

mod hostile;

/// A project folder that is removed when the test ends.
struct Scratch(tempfile::TempDir);

impl Scratch {
    fn new(files: &[(&str, &str)]) -> Self {
        let scratch = Self(tempfile::tempdir().expect("a folder"));
        for (path, content) in files {
            scratch.write(path, content.as_bytes());
        }
        scratch
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn write(&self, path: &str, content: &[u8]) -> PathBuf {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("create");
        std::fs::write(&path, content).expect("write");
        path
    }
}

/// Gives the codes found in a skill called `good`, with some files beside its SKILL.md.
fn codes(text: &str, files: &[(&str, &str)]) -> Vec<&'static str> {
    let scratch = Scratch::new(&[]);
    for (path, content) in files {
        let path = scratch.write(&format!("good/{path}"), content.as_bytes());
        #[cfg(unix)]
        if content.starts_with("#!") {
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("chmod");
        }
    }
    let linted = lint_skill_file(&scratch.write("good/SKILL.md", text.as_bytes()));
    let codes: BTreeSet<&str> = linted.diagnostics.iter().map(|problem| problem.code).collect();
    codes.into_iter().collect()
}

const DESCRIPTION: &str = "Writes release notes from commits. Use when asked for a changelog.";

/// Makes a skill that is correct except for its body.
fn with_body(body: &str) -> String {
    format!("---\nname: good\ndescription: {DESCRIPTION}\n---\n\n{body}\n")
}

/// Makes a skill that is correct except for its frontmatter.
fn with_front(front: &str) -> String {
    format!("---\n{front}\n---\n\n# Good\n\nDo it well.\n")
}

fn with_description(description: &str) -> String {
    with_front(&format!("name: good\ndescription: {description}"))
}

fn with_name(name: &str) -> String {
    with_front(&format!("name: {name}\ndescription: {DESCRIPTION}"))
}

struct Row {
    text: String,
    files: Vec<(&'static str, &'static str)>,
    codes: Vec<&'static str>,
}

fn row(text: impl Into<String>, codes: &[&'static str]) -> Row {
    Row { text: text.into(), files: Vec::new(), codes: codes.to_vec() }
}

fn row_with(body: &str, files: &[(&'static str, &'static str)], codes: &[&'static str]) -> Row {
    Row { text: with_body(body), files: files.to_vec(), codes: codes.to_vec() }
}

fn check(rows: &[Row]) {
    for row in rows {
        let shown: String = row.text.chars().take(300).collect();
        assert_eq!(codes(&row.text, &row.files), row.codes, "{shown}");
    }
}

fn frontmatter_rows() -> Vec<Row> {
    vec![
        row(with_body("# Good\n\nDo it well."), &[]),
        row(format!("\u{feff}{}", with_body("Do it.")), &[]),
        row(with_body("Do it.").replace('\n', "\r\n"), &[]),
        row("# Good\n\nDo it.", &["frontmatter-missing"]),
        row("", &["frontmatter-missing"]),
        row(format!("\n{}", with_body("Do it.")), &["frontmatter-missing"]),
        row("---\nname: good\n\n# Good", &["frontmatter-unclosed"]),
        row(with_front("name: \"good"), &["frontmatter-yaml"]),
        row(with_front("name: good\n\tdescription: x"), &["frontmatter-yaml"]),
        row(with_description("Use when asked: a changelog"), &["frontmatter-not-yaml"]),
        row(with_front("- name\n- description"), &["frontmatter-yaml"]),
        row(with_front("just text"), &["frontmatter-yaml"]),
        row(with_front("name: good\nname: good"), &["description-missing", "frontmatter-not-yaml"]),
        row(with_front(""), &["description-missing", "name-missing"]),
        row(with_front("# only a comment"), &["description-missing", "name-missing"]),
        row(with_front(&format!("description: {DESCRIPTION}")), &["name-missing"]),
        row(with_front(&format!("name:\ndescription: {DESCRIPTION}")), &["name-missing"]),
        row(with_front(&format!("name: '  '\ndescription: {DESCRIPTION}")), &["name-missing"]),
        row(with_front("name: good"), &["description-missing"]),
        row(with_description("\"\""), &["description-missing"]),
        row(with_description("''"), &["description-missing"]),
        row(with_description(&format!("{DESCRIPTION}\nlicence: MIT")), &["unknown-key"]),
        row(with_description(&format!("{DESCRIPTION}\nauthor: me")), &["unknown-key"]),
        row(
            with_description(&format!(
                "{DESCRIPTION}\nlicense: MIT\nallowed-tools: [Read, Bash]\nmetadata: {{author: me}}\nversion: 1.0\nargument-hint: [file]\nuser-invocable: false\nmodel: inherit\nhooks: {{}}"
            )),
            &[],
        ),
        row(with_description("[a, b]"), &["wrong-type"]),
        row(with_description(&format!("{DESCRIPTION}\nmetadata: me")), &["wrong-type"]),
        row(with_description(&format!("{DESCRIPTION}\nallowed-tools: {{a: b}}")), &["wrong-type"]),
        row(with_description(&format!("{DESCRIPTION}\ndisable-model-invocation: 'yes'")), &["wrong-type"]),
        row(with_name("12"), &["wrong-type"]),
        row(with_description(&format!("{DESCRIPTION}\ncompatibility: ''")), &["compatibility-length"]),
        row(
            with_description(&format!("{DESCRIPTION}\ncompatibility: {}", "x".repeat(501))),
            &["compatibility-length"],
        ),
        row(with_description(&format!("{DESCRIPTION}\ncompatibility: {}", "ü".repeat(500))), &[]),
    ]
}

fn name_rows() -> Vec<Row> {
    vec![
        row(with_name("other"), &["name-folder"]),
        row(with_name(&"x".repeat(64)), &["name-folder"]),
        row(with_name(&"x".repeat(65)), &["name-folder", "name-too-long"]),
        row(with_name("Good"), &["name-characters"]),
        row(with_name("-good"), &["name-characters"]),
        row(with_name("good-"), &["name-characters"]),
        row(with_name("go--od"), &["name-characters", "name-folder"]),
        row(with_name("go_od"), &["name-characters", "name-folder"]),
        row(with_name("\"good \""), &["name-characters"]),
        row(with_name("göod"), &["name-folder", "name-not-ascii"]),
        row(with_name("claude-good"), &["name-folder", "name-reserved"]),
        row(with_name("good-anthropic"), &["name-folder", "name-reserved"]),
        row(with_name("<good>"), &["name-characters", "xml-tag"]),
    ]
}

fn description_rows() -> Vec<Row> {
    let long = |length: usize| format!("Use when asked for {}", "x".repeat(length - 19));
    vec![
        row(with_description(&long(1024)), &[]),
        row(with_description(&long(1025)), &["description-too-long"]),
        row(with_description("Renders <template> files. Use when asked for a page."), &["xml-tag"]),
        row(with_description("Compares a < b and c > d. Use when numbers are to be sorted."), &[]),
        row(with_description("Helps with PDFs."), &["description-no-trigger", "description-vague"]),
        row(
            with_description("A skill for working with documents"),
            &["description-no-trigger", "description-vague"],
        ),
        row(with_description("Handles PDF forms when one is filled in by the user of the program."), &[]),
        row(with_description("Writes release notes from a list of commits."), &["description-no-trigger"]),
        row(
            with_description("Writes release notes from a list of commits.\nwhen_to_use: for a release"),
            &[],
        ),
        row(with_description("Writes the release notes of it.\ndisable-model-invocation: true"), &[]),
        row(with_description("从提交列表中编写发行说明，适用于发布新版本。"), &[]),
        // Steps.
        row(
            with_description("Use when executing plans - dispatches subagent per task with code review"),
            &["description-workflow"],
        ),
        row(
            with_description("Use when releasing. First reads the commits, then writes the notes."),
            &["description-workflow"],
        ),
        row(
            with_description("Use when releasing. Reads the commits, then writes the notes."),
            &["description-workflow"],
        ),
        row(
            with_description("Releases a version. 1. Read the commits. 2. Write the notes. Use when asked."),
            &["description-workflow"],
        ),
        row(
            with_description("Use when planning. Runs brainstorm -> plan -> implement."),
            &["description-workflow"],
        ),
        row(with_description("Use when reviewing; works in three phases."), &["description-workflow"]),
        row(with_description("\"Use when the task is: (1) creating files, (2) editing files\""), &[]),
        row(with_description("Use when a test passes first and then fails, or fails, then passes."), &[]),
        row(with_description("Use when dispatching subagents for independent tasks."), &[]),
        row(with_description("Use when asked to \"first plan, then build\" something."), &[]),
        // Person.
        row(with_description("I can write release notes when asked."), &["description-person"]),
        row(with_description("You can use this to write release notes when asked."), &["description-person"]),
        row(with_description("Resources to help me write letters. Use when asked."), &["description-person"]),
        row(with_description("Lets you write release notes when asked."), &["description-person"]),
        row(with_description("Use when the user says \"I need a changelog\" or 'help me'."), &[]),
        row(with_description("Measures I/O of a Type I drive. Use when you need numbers."), &[]),
    ]
}

fn body_rows() -> Vec<Row> {
    let lines = |count: usize, line: &str| format!("{line}\n").repeat(count);
    let reference = ("references/x.md", "x");
    let see = "# Good\n\nSee [x](references/x.md).\n";
    vec![
        row(format!("---\nname: good\ndescription: {DESCRIPTION}\n---\n"), &["body-empty"]),
        row(with_body("  \n\n"), &["body-empty"]),
        row_with(&format!("{see}{}", lines(496, "x")), &[reference], &[]),
        row_with(&format!("{see}{}", lines(497, "x")), &[reference], &["body-too-long", "word-count"]),
        row(with_body(&"x".repeat(19_990)), &[]),
        row(with_body(&"x".repeat(20_010)), &["body-tokens"]),
        row(with_body(&"word ".repeat(500)), &[]),
        row(with_body(&"word ".repeat(501)), &["word-count"]),
        row(with_body(&lines(60, "x")), &[]),
        row(with_body(&lines(61, "x")), &["no-headings"]),
        row(with_body(&format!("# Good\n{}", lines(61, "x"))), &[]),
        row(with_body(&format!("```\n# no heading\n```\n{}", lines(61, "x"))), &["no-headings"]),
        row(with_body(&format!("# Good\n{}", lines(301, "x"))), &["no-references"]),
        row_with(&format!("{see}{}", lines(301, "x")), &[reference], &[]),
        row(with_body(&format!("```\n{}```\n", lines(50, "x"))), &[]),
        row(with_body(&format!("# G\n```\n{}```\n", lines(51, "x"))), &["large-block"]),
        row(with_body(&format!("# G\n\n|a|b|\n|-|-|\n{}", lines(30, "|1|2|"))), &[]),
        row(with_body(&format!("# G\n\n|a|b|\n|-|-|\n{}", lines(31, "|1|2|"))), &["large-block"]),
        row(with_body(&lines(5, "You MUST do it.")), &["discipline-without-counters"]),
        row(with_body(&lines(4, "You MUST do it.")), &[]),
        row(with_body(&format!("```\n{}```", lines(5, "You MUST do it."))), &[]),
        row(
            with_body(&format!(
                "{}\n\n| Excuse | Answer |\n|-|-|\n| No time | It takes a minute |",
                lines(5, "NEVER skip it.")
            )),
            &[],
        ),
    ]
}

fn file_rows() -> Vec<Row> {
    let plain = ("scripts/x.py", "print(1)");
    let runnable = ("scripts/x.py", "#!/usr/bin/env python3");
    vec![
        row_with("See [x](references/x.md).", &[("references/x.md", "")], &[]),
        row_with("See [x](references/x.md#part) and [y](#here).", &[("references/x.md", "")], &[]),
        row_with("See [x](references/x.md).", &[], &["link-broken"]),
        row_with("See [x][ref].\n\n[ref]: references/x.md", &[], &["link-broken"]),
        row_with("See ![x](assets/x.png).", &[], &["link-broken"]),
        row_with("See [x](references/X.md).", &[("references/x.md", "")], &["link-broken"]),
        row_with("See [x](https://example.com/a.md), [y](mailto:a@b.c), [z](url), [w](<a b>).", &[], &[]),
        row_with("```markdown\n[x](FORMS.md)\n```\n\n`[x](y.md)`", &[], &[]),
        row_with("See [x](../other/SKILL.md).", &[("../other/SKILL.md", "")], &["link-outside"]),
        row_with("See [x](../../etc/passwd).", &[], &["link-outside"]),
        row_with("See [x](/etc/passwd).", &[], &["link-outside"]),
        row_with(
            "See [x](references/x.md).",
            &[("references/x.md", "[y](y.md)"), ("references/y.md", "")],
            &["link-chain"],
        ),
        row_with(
            "See [x](references/x.md).",
            &[("references/x.md", "[y](../y.md)"), ("y.md", "")],
            &["link-chain"],
        ),
        row_with(
            "See [x](references/x.md), [y](references/y.md).",
            &[
                ("references/x.md", "[y](y.md) [home](../SKILL.md) [web](https://x.y)"),
                ("references/y.md", "[x](x.md)"),
            ],
            &[],
        ),
        row_with("Run `python scripts/x.py`.", &[plain], &[]),
        row_with("Run `python scripts/x.py`.", &[], &["mentioned-file-missing"]),
        row_with("```sh\npython scripts/x.py\n```", &[], &["mentioned-file-missing"]),
        row_with("Read `references/x.md`.", &[], &["mentioned-file-missing"]),
        row_with("[`scripts/x.py`](scripts/x.py)", &[], &["link-broken"]),
        row_with("For example `scripts/x.py`. Or `$PROJECT/scripts/x.py`, `scripts/*.py`.", &[], &[]),
        row_with("Run `./scripts/x.py FILE`.", &[plain], &["script-not-runnable"]),
        row_with("Run `scripts/x.py FILE`.", &[plain], &["script-not-runnable"]),
        row_with("```bash\n$ FORCE=1 scripts/x.py | head\n```", &[plain], &["script-not-runnable"]),
        row_with("```bash\npython3 scripts/x.py && cat scripts/x.py\n```", &[plain], &[]),
        row_with("The file `scripts/x.py` does it.", &[plain], &[]),
        row_with("Run `./scripts/x.py FILE`.", &[runnable], &[]),
        row_with(
            "Do it.",
            &[("evals/evals.json", r#"{"cases": [{"id": "Case 1"}, {"id": "case-2"}]}"#)],
            &["evals-ids"],
        ),
        row_with(
            "Do it.",
            &[("evals/evals.json", r#"{"evals": [{"id": "case-1"}, {"id": "case-1"}]}"#)],
            &["evals-ids"],
        ),
        row_with("Do it.", &[("evals/evals.json", r#"{"evals": [{"id": 1}, {"id": "case-2"}]}"#)], &[]),
        row_with("Do it.", &[("evals/evals.json", "not json")], &[]),
    ]
}

#[test]
fn the_frontmatter() {
    check(&frontmatter_rows());
}

#[test]
fn names() {
    check(&name_rows());
}

#[test]
fn descriptions() {
    check(&description_rows());
}

#[test]
fn bodies() {
    check(&body_rows());
}

#[test]
fn files_around() {
    check(&file_rows());
}

/// Gives findings about files, which cannot be written as text in a row.
fn file_findings() -> Vec<(&'static str, LintedSkill)> {
    let scratch = Scratch::new(&[
        ("lower/skill.md", ""),
        ("folder/SKILL.md/x", ""),
        (".claude/commands/empty.md", ""),
        (".claude/commands/blank.md", " \n\t\n"),
    ]);
    let binary = scratch.write("binary/SKILL.md", b"---\nname: binary\n---\n\x00\xff\xfe\x80");
    vec![
        ("file-name", lint_skill_file(&scratch.path("lower/skill.md"))),
        ("unreadable-file", lint_skill_file(&scratch.path("folder/SKILL.md"))),
        ("unreadable-file", lint_skill_file(&scratch.path("nowhere/SKILL.md"))),
        ("unreadable-file", lint_skill_file(&binary)),
        ("command-empty", lint_skill_file(&scratch.path(".claude/commands/empty.md"))),
        ("command-empty", lint_skill_file(&scratch.path(".claude/commands/blank.md"))),
    ]
}

#[test]
fn what_is_no_text_file_is_one_finding() {
    for (code, linted) in file_findings() {
        assert!(!linted.passes(false));
        let codes: Vec<&str> = linted.diagnostics.iter().map(|problem| problem.code).collect();
        assert!(codes.contains(&code), "{codes:?}");
        assert!(code == "file-name" || codes.len() == 1, "{codes:?}");
    }
}

#[test]
fn every_rule_has_been_seen_to_find_something() {
    let rows = [frontmatter_rows(), name_rows(), description_rows(), body_rows(), file_rows()];
    let mut seen: BTreeSet<&str> = rows.iter().flatten().flat_map(|row| row.codes.iter().copied()).collect();
    seen.extend(file_findings().iter().map(|(code, _)| *code));
    let registered: BTreeSet<&str> = RULES.iter().map(|rule| rule.code).collect();
    assert_eq!(seen, registered);
    assert_eq!(registered.len(), RULES.len(), "each code once");
}

#[test]
fn every_rule_explains_itself() {
    for rule in RULES {
        assert!(prose::is_kebab(rule.code), "{}", rule.code);
        assert!(rule.summary.ends_with('.') && rule.summary.matches(". ").count() == 0, "{}", rule.summary);
        assert!(rule.rationale.ends_with('.') && rule.rationale.len() > 60, "{}", rule.code);
        assert!(
            !rule.bad_example.is_empty()
                && !rule.good_example.is_empty()
                && rule.bad_example != rule.good_example,
            "{}",
            rule.code
        );
    }
    insta::assert_snapshot!(find_rule("description-workflow").expect("a rule").explain());
}

#[test]
fn positions_are_those_of_the_whole_file() {
    for (text, expected) in [
        (with_front("name: good\ndescription: \"x"), "frontmatter-yaml 3:14"),
        (with_description("Use when asked. Example: a changelog"), "frontmatter-not-yaml 3:37"),
        (with_front("name: gööd\ndescription: x\nlicence: MIT"), "unknown-key 4:1"),
        (with_description("Renders <b> files. Use when asked for ä page."), "xml-tag 3:22"),
        (
            with_description(">-\n  Use when asked for it.\n  Spawns an agent for the rest of it."),
            "description-workflow 5:3",
        ),
        (with_body("# Good\n\nSee [ä](y.md) and [x](x.md)."), "link-broken 8:5"),
        (with_body("Run `python scripts/x.py`."), "mentioned-file-missing 6:13"),
        (with_body(&"x\n".repeat(510)), "body-too-long 505:1"),
    ] {
        let draft = SkillFileDraft::from_text(Path::new("/nowhere/good/SKILL.md"), &text);
        let linted = lint_draft(draft);
        let found: Vec<String> = linted
            .diagnostics
            .iter()
            .filter_map(|problem| {
                let position = problem.span?.position(&linted.text);
                Some(format!("{} {}:{}", problem.code, position.line, position.column))
            })
            .collect();
        assert!(found.contains(&expected.to_owned()), "{expected} in {found:?}");
    }
}

#[test]
fn a_misspelled_key_is_told_what_was_meant() {
    let text = with_front(&format!("name: good\ndescripton: {DESCRIPTION}"));
    let linted = lint_draft(SkillFileDraft::from_text(Path::new("/nowhere/good/SKILL.md"), &text));
    let problem = linted.diagnostics.iter().find(|problem| problem.code == "unknown-key").expect("a finding");
    assert_eq!(problem.help.as_deref(), Some("did you mean \"description\"?"));
}

#[test]
fn errors_come_first_and_survive_a_flood() {
    let flood = "[x](x.md) `scripts/x.py`\n".repeat(3)
        + &(0..5000).map(|n| format!("`scripts/{n}.py`\n")).collect::<String>();
    let linted =
        lint_draft(SkillFileDraft::from_text(Path::new("/nowhere/good/SKILL.md"), &with_body(&flood)));
    assert_eq!(linted.diagnostics.iter().next().map(|problem| problem.code), Some("link-broken"));
    assert!(linted.diagnostics.dropped() > 4000);
    assert!(!linted.passes(false));
}

#[test]
fn conventions_are_reported_in_the_documented_shape() {
    let convention_results = |text: &str| {
        let draft = SkillFileDraft::from_text(Path::new("/nowhere/good/SKILL.md"), text);
        serde_json::to_value(convention_compliance(&draft)).expect("serialisable")
    };
    let passed = |text: &str| {
        let results = convention_results(text);
        let keys = [
            "frontmatter",
            "description_field",
            "token_efficiency",
            "progressive_disclosure",
            "type_alignment",
        ];
        assert_eq!(results.as_object().map(|map| map.len()), Some(keys.len()));
        keys.map(|key| results[key]["passed"].as_bool())
    };
    let (yes, no) = (Some(true), Some(false));
    let discipline = "You MUST do it.\n".repeat(5);
    for (text, expected) in [
        (with_body("# Good\n\nDo it."), [yes, yes, yes, yes, None]),
        ("no frontmatter".to_owned(), [no, no, yes, yes, None]),
        (with_front("name: good"), [no, no, yes, yes, None]),
        (with_name("other"), [no, yes, yes, yes, None]),
        (
            with_description("Use when executing plans - dispatches subagent per task"),
            [yes, no, yes, yes, None],
        ),
        (with_body(&"word ".repeat(501)), [yes, yes, no, yes, None]),
        (with_body(&"x\n".repeat(61)), [yes, yes, yes, no, None]),
        (with_body(&discipline), [yes, yes, yes, yes, no]),
        (with_body(&format!("{discipline}\nNo exceptions.")), [yes, yes, yes, yes, yes]),
    ] {
        assert_eq!(passed(&text), expected, "{:.200}", text);
    }
    let details = convention_results(&with_body("one two three"))["token_efficiency"]["details"].clone();
    assert_eq!(details, "3 words, within the target of 500");
}
