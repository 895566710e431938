//! Conversion from every format to every other: what is written is read back as the same cases, prompts, polarity and
//! checks, apart from what is listed as lost.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use practicum::dialects::{self, Dialect, EvalRegistry, ExportedSuite, LocatedSuite};
use practicum::model::{Case, CasePrompt, Check, CheckKind, RelPath, Suite};
use practicum::session::{RunInputs, run_setup};

/// The folders below `examples/` that are read. Together they have every format.
const EXAMPLES: [&str; 16] = [
    "bmad",
    "claude-plugin-eval",
    "clauditor",
    "interview",
    "mocks",
    "promptfoo",
    "release-notes",
    "skill-creator",
    "skill-test",
    "skill-up",
    "skillet",
    "skillgrade",
    "tessl",
    "vally",
    "waza",
    "writing-skills",
];

/// The formats that are recognised and refused.
const REFUSED: [&str; 2] = ["harbor", "skill-validator"];

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("create");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        match entry.file_type().expect("a type").is_dir() {
            true => copy_folder(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).expect("copy")),
        }
    }
}

fn read_suites(path: &Path, skill: Option<PathBuf>) -> Result<Vec<LocatedSuite>, String> {
    let ask = RunInputs { paths: vec![path.to_owned()], skill, ..RunInputs::default() };
    let read = run_setup::read_eval_files(&ask, &BTreeMap::new(), &EvalRegistry::default());
    let read = read.map_err(|error| error.to_string())?;
    for file in &read.files {
        let problems = &file.lowered.diagnostics;
        if problems.has_errors() {
            return Err(format!("{}: {problems:?}\n{}", file.path.display(), file.text));
        }
    }
    read.into_suites().map_err(|error| error.to_string())
}

fn write_files(exported: &ExportedSuite, folder: &Path) {
    for file in &exported.files {
        let path = RelPath::new(&file.name).expect("a relative name").join_to(folder);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("create");
        std::fs::write(path, file.text()).expect("write");
    }
}

fn turns(case: &Case) -> Vec<String> {
    match &case.prompt {
        CasePrompt::Turns(turns) => turns.iter().map(|turn| turn.trim().to_owned()).collect(),
        CasePrompt::SkillCommand { args } => vec![args.clone()],
    }
}

/// What was lost of a suite, to compare with what is missing.
struct ListedLosses<'l> {
    sentences: &'l [String],
    what: String,
}

impl ListedLosses<'_> {
    fn say(&self, words: &[&str]) -> bool {
        self.sentences.iter().any(|loss| words.iter().any(|word| loss.contains(word)))
    }

    fn compare(&self, written: &Case, read: &Case, differences: &mut Vec<String>) {
        let what = format!("{}, case {}", self.what, written.id);
        let says_prompt = self.say(&["became one message", "command became a message"]);
        if turns(written) != turns(read) && !says_prompt {
            differences.push(format!("{what}: {:?} is read back as {:?}", turns(written), turns(read)));
        }
        for check in &written.checks {
            let is_same = |other: &Check| dialects::asks_the_same(check, other, false);
            if !read.checks.iter().any(is_same) && !self.explains(check, read) {
                let (read, losses) = (&read.checks, self.sentences);
                differences.push(format!("{what}: {check:?} is neither in {read:?} nor in {losses:?}"));
            }
        }
        if read.checks.len() > written.checks.len() && !self.says_more_checks(written) {
            differences.push(format!("{what}: {:?} is read back as {:?}", written.checks, read.checks));
        }
    }

    /// A check that several skills stay untouched becomes a check of each.
    fn says_more_checks(&self, written: &Case) -> bool {
        written.checks.iter().any(
            |check| matches!(&check.kind, CheckKind::Activation(activation) if activation.skills.len() > 1),
        )
    }

    /// Says whether the list explains that a check is not the same. Its operands must still be there, in words.
    fn explains(&self, check: &Check, read: &Case) -> bool {
        if self.say(&["the checks that are reported and do not count"]) && check.weight.get() == 0.0
            || self.say(&["every check but its activation"])
        {
            return true;
        }
        let statements: Vec<String> = read.checks.iter().map(statement_or_value).collect();
        // In words, a value may be written as JSON.
        let as_json = |text: &str| {
            let quoted = serde_json::Value::String(text.to_owned()).to_string();
            quoted[1..quoted.len() - 1].to_owned()
        };
        let has = |text: &str| {
            let either = |statement: &String| statement.contains(text) || statement.contains(&as_json(text));
            statements.iter().any(either)
        };
        match &check.kind {
            CheckKind::Activation(_) => self.say(&["its activation"]),
            CheckKind::Sections(_) => self.say(&["its sections"]),
            CheckKind::Judged(judged) => {
                let listed = self.say(&[
                    "a judge looks only at",
                    "the scale",
                    "judged one by one",
                    "judge should know",
                ]) || read.checks.iter().any(|check| matches!(check.kind, CheckKind::Judged(_)));
                listed && has(dialects::rubric_text(&judged.statement).trim())
            }
            CheckKind::Rule(rule) => {
                let listed = self.say(&[
                    "is decided by code",
                    "a command passes by its exit code",
                    "whoever made it",
                    "upper and lower case",
                ]);
                listed && operands(&rule.value()).iter().all(|operand| has(operand))
            }
        }
    }
}

/// Gives the texts in the value of a rule.
fn operands(value: &serde_json::Value) -> Vec<String> {
    match value {
        serde_json::Value::String(text) => vec![text.clone()],
        serde_json::Value::Array(items) => items.iter().flat_map(operands).collect(),
        // Words of the rule itself, such as the time that a command has, are no operands.
        serde_json::Value::Object(map) => {
            let values = map.iter().filter(|(key, _)| !["expect", "timeout"].contains(&key.as_str()));
            values.flat_map(|(_, value)| operands(value)).collect()
        }
        _ => Vec::new(),
    }
}

fn statement_or_value(check: &Check) -> String {
    match &check.kind {
        CheckKind::Judged(judged) => judged.statement.clone(),
        CheckKind::Rule(rule) => operands(&rule.value()).join(" "),
        CheckKind::Sections(_) | CheckKind::Activation(_) => String::new(),
    }
}

/// Writes a suite in a format, reads it back, and compares.
fn convert_and_compare(
    suite: &Suite,
    to: &dyn Dialect,
    project: &Path,
    name: &str,
    differences: &mut Vec<String>,
) {
    let what = format!("{name} to {}", to.name());
    let folder = project.join("converted").join(to.name()).join(suite.name.replace('/', "-"));
    let exported = to.export_suite(suite, &folder);
    for id in &exported.lost_cases {
        assert!(exported.losses.iter().any(|loss| loss.contains("the whole case")), "{what}: {id}");
    }
    if exported.files.is_empty() {
        assert!(!exported.losses.is_empty(), "{what}");
        return;
    }
    write_files(&exported, &folder);
    let skill = match suite.skills.as_slice() {
        [skill] => skill.path.clone(),
        _ => None,
    };
    let read = match read_suites(&folder, skill) {
        Ok(read) => read,
        Err(why) => {
            differences.push(format!("{what}: {why}"));
            return;
        }
    };
    let formats: Vec<&str> = read.iter().map(|read| read.suite.origin.dialect.as_str()).collect();
    assert!(formats.iter().all(|format| *format == to.name()), "{what}: {formats:?}");
    // A spec of clauditor is about one command, with ids and patterns of its own; its tests compare them.
    if to.name() == "clauditor" {
        return;
    }
    let losses = ListedLosses { sentences: &exported.losses, what };
    let read: Vec<&Case> = read.iter().flat_map(|read| &read.suite.cases).collect();
    let kept: Vec<&Case> =
        suite.cases.iter().filter(|case| !exported.lost_cases.contains(&case.id)).collect();
    if read.len() != kept.len() {
        differences.push(format!("{}: {} cases of {}", losses.what, read.len(), kept.len()));
    }
    for case in kept {
        let by_id = read.iter().find(|read| read.id == case.id);
        let by_prompt = || {
            read.iter()
                .find(|read| turns(read).join("\n\n") == turns(case).join("\n\n"))
                .filter(|_| losses.say(&["its id"]))
        };
        let same = by_id.or_else(by_prompt);
        match same {
            Some(same) => losses.compare(case, same, differences),
            None => differences.push(format!("{}: case {} is missing", losses.what, case.id)),
        }
    }
    if to.name() == "native" {
        assert_eq!(exported.losses, [""; 0], "{}", losses.what);
    }
}

#[test]
fn every_format_is_read_back_from_every_other() {
    let mut formats: Vec<String> = Vec::new();
    let mut differences = Vec::new();
    for example in EXAMPLES {
        let folder = tempfile::tempdir().expect("a folder");
        let project = folder.path().canonicalize().expect("a path").join(example);
        copy_folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(example), &project);
        std::fs::write(project.join("practicum.toml"), "").expect("write");
        for LocatedSuite { suite, .. } in read_suites(&project, None).expect("the example is read") {
            formats.push(suite.origin.dialect.clone());
            let name = format!("{example} ({})", suite.name);
            for to in dialects::DIALECTS.iter().filter(|to| !REFUSED.contains(&to.name())) {
                convert_and_compare(&suite, *to, &project, &name, &mut differences);
            }
        }
    }
    assert_eq!(differences, [""; 0], "{}", differences.join("\n\n"));
    let missing: Vec<&str> = dialects::dialect_names()
        .into_iter()
        .filter(|name| !REFUSED.contains(name) && !formats.iter().any(|format| format == name))
        .collect();
    assert_eq!(missing, [""; 0], "each format has an example");
}
