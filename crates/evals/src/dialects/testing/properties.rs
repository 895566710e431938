//! Properties that hold for every dialect and every document.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use serde_json::Value;

use super::mutate::{apply, changes};
use super::{fixtures, lower_source, parse_source, suites};
use crate::dialects::native::round_trip::through_native;
use crate::dialects::{
    DIALECTS, Dialect, EvalFileLocation, EvalRegistry, ExportedSuite, find_dialect, load_eval_file,
};
use practicum_core::model::{Diagnostics, RelPath, Suite};
use practicum_core::tree::{SourceFile, SourceSyntax};

/// Reads what a dialect wrote, and tests that this dialect recognises and reads it without errors.
fn read_exported(dialect: &dyn Dialect, raised: &ExportedSuite, place: &EvalFileLocation) -> Vec<Suite> {
    if FORMATS_OF_SEVERAL_FILES.contains(&dialect.name()) {
        // Writing and searching a folder takes most of the time of these tests.
        static WRITTEN: AtomicUsize = AtomicUsize::new(0);
        let is_read = WRITTEN.fetch_add(1, Ordering::Relaxed).is_multiple_of(ONE_FOLDER_IN);
        return if is_read { read_exported_folder(dialect, raised, &place.root) } else { Vec::new() };
    }
    let mut suites = Vec::new();
    for file in &raised.files {
        assert!(RelPath::new(&file.name).is_some(), "{}", file.name);
        let path = place.root.join(&file.name);
        let text = file.document.to_string();
        let source =
            SourceFile::parse(&path, text, SourceSyntax::Json, &mut Diagnostics::default()).expect("a tree");
        let decision = EvalRegistry::default().decide_format(&source);
        let chosen = decision.chosen().map(|best| best.format.name());
        assert_eq!((chosen, decision.rivals().len()), (Some(dialect.name()), 0), "{}", source.text);
        let (suite, diagnostics) = lower_source(dialect, &source, place);
        assert!(!diagnostics.has_errors(), "{} {diagnostics:#?}\n{}", dialect.name(), source.text);
        let suite = suite.expect("a suite");
        assert!(!suite.cases.is_empty(), "{}", source.text);
        suites.push(suite);
    }
    suites
}

/// One of so many suites that were written as a folder is read again. The number of formats is no multiple of it.
const ONE_FOLDER_IN: usize = 25;

/// The formats whose suites are several files, which are read from a folder.
const FORMATS_OF_SEVERAL_FILES: [&str; 4] = ["claude-plugin-eval", "skill-up", "tessl", "waza"];

/// Writes what a dialect wrote to a folder, and reads it from there.
fn read_exported_folder(dialect: &dyn Dialect, raised: &ExportedSuite, written_for: &Path) -> Vec<Suite> {
    let around = tempfile::tempdir().expect("a folder");
    // In skill-up, paths depend on the name of the folder.
    let folder = around.path().join(written_for.file_name().expect("a name"));
    let mut entries = BTreeSet::new();
    for file in &raised.files {
        let path = RelPath::new(&file.name).expect("a relative name").join_to(&folder);
        let parent = path.parent().expect("a parent").to_owned();
        std::fs::create_dir_all(&parent).expect("create");
        std::fs::write(&path, file.text()).expect("write");
        entries.extend(dialect.folder_is_suite().then_some(parent));
        entries.extend((file.name == "eval.yaml").then_some(path));
    }
    // Paths of the suite lead anywhere. The skill is named, so that it is not looked for.
    let place = EvalFileLocation { skill: Some(some_skill()), ..EvalFileLocation::new(&folder, "/") };
    let read = |path: &PathBuf| {
        let loaded = load_eval_file(path, &place, None);
        let problems = &loaded.lowered.diagnostics;
        assert_eq!(loaded.dialect, Some(dialect.name()), "{problems:#?}");
        assert!(!problems.has_errors(), "{} {problems:#?}\n{:#?}", dialect.name(), raised.files);
        loaded.lowered.suite.expect("a suite")
    };
    entries.iter().map(read).collect()
}

fn some_skill() -> PathBuf {
    fixtures::fixtures_folder().join("skill-creator/csv-report")
}

/// Valid documents: the project of each, and its path there.
pub const EXAMPLES: [(&str, &str); 15] = [
    ("bmad", "evals/invoice-writer/evals.json"),
    ("bmad", "evals/invoice-writer/triggers.json"),
    ("bmad", "evals/invoice-writer/cases.json"),
    ("skill-creator", "csv-report/evals/evals.json"),
    ("skill-creator", "csv-report/evals/trigger-set.json"),
    ("writing-skills", "skills/reply/evals/evals.json"),
    ("skill-test", "suites/outdoors.json"),
    ("skill-test", "suites/flat.json"),
    ("skill-test", "suites/routing.json"),
    ("clauditor", ".claude/commands/standup.eval.json"),
    ("clauditor", ".claude/skills/recipe-scaler/SKILL.eval.json"),
    ("clauditor", ".claude/skills/price-scout/assets/price-scout.eval.json"),
    ("skillet", "evals/turns.json"),
    ("skillet", "evals/assertions.json"),
    ("native", "everything.json"),
];

/// Valid documents of formats that are not written, or not in full.
const READ_ONLY_EXAMPLES: [(&str, &str); 4] = [
    ("vally", "evals/tidy/eval.json"),
    ("skillgrade", "evals/tidy/eval.json"),
    ("waza", "evals/tidy/trigger_tests.json"),
    ("promptfoo", "evals/promptfooconfig.json"),
];

pub fn examples_of(name: &str) -> Vec<&'static str> {
    EXAMPLES
        .iter()
        .chain(&READ_ONLY_EXAMPLES)
        .filter(|(dialect, _)| *dialect == name)
        .map(|(_, path)| *path)
        .collect()
}

pub fn document(name: &str, path: &str) -> Value {
    let text = std::fs::read_to_string(fixtures::fixtures_folder().join(name).join(path)).expect("a fixture");
    serde_json::from_str(&text).expect("JSON")
}

pub fn source(name: &str, path: &str, document: &Value) -> (SourceFile, EvalFileLocation) {
    let project = fixtures::fixtures_folder().join(name);
    let source = parse_source(project.join(path), &document.to_string());
    let place = EvalFileLocation::new(source.folder().to_owned(), project);
    (source, place)
}

/// Tests a changed document: no dialect panics. If its own dialect reads it without errors, the suite is the same
/// after a round trip through the native format, and can be exported to every format.
fn survives(name: &str, path: &str, document: &Value) {
    let (source, place) = source(name, path, document);
    for dialect in DIALECTS {
        dialect.recognise(&source);
        let (suite, diagnostics) = lower_source(*dialect, &source, &place);
        if let Some(suite) = suite.filter(|_| dialect.name() == name && !diagnostics.has_errors()) {
            assert_eq!(through_native(&suite, &place.root), suite);
            for other in DIALECTS {
                let raised = other.export_suite(&suite, &place.root);
                let again = read_exported(*other, &raised, &place);
                if other.name() == name && ROUND_TRIP_FORMATS.contains(&name) {
                    assert_eq!(raised.losses, [""; 0], "{name} {path}");
                    let again =
                        again.into_iter().map(|again| Suite { origin: suite.origin.clone(), ..again });
                    assert_eq!(again.collect::<Vec<_>>(), std::slice::from_ref(&suite), "{name} {path}");
                }
            }
        }
    }
}

/// The formats whose own files come back unchanged, however odd they are.
const ROUND_TRIP_FORMATS: [&str; 1] = ["clauditor"];

#[test]
fn a_suite_in_its_own_format_stays_what_it_is() {
    for (name, path) in EXAMPLES {
        let document = document(name, path);
        survives(name, path, &document);
        let (source, place) = source(name, path, &document);
        let dialect = find_dialect(name).expect("a dialect");
        let suite = lower_source(dialect, &source, &place).0.expect("a suite");
        let raised = dialect.export_suite(&suite, &place.root);
        let again = read_exported(dialect, &raised, &place);
        let [again] = again.as_slice() else { panic!("{name} {path}: {} suites", again.len()) };
        assert_eq!(again.cases, suite.cases, "{name} {path}");
        assert_eq!(
            (&again.run_policy, &again.format_defaults),
            (&suite.run_policy, &suite.format_defaults),
            "{name} {path}"
        );
        assert_eq!((&again.meta, &again.gates), (&suite.meta, &suite.gates), "{name} {path}");
        assert_eq!(again.skill_statements, suite.skill_statements, "{name} {path}");
        assert_eq!(
            (&again.judge_policy, &again.description),
            (&suite.judge_policy, &suite.description),
            "{name} {path}"
        );
        // A suite without plugins gets them, because the format requires them.
        if !raised.losses.iter().any(|loss| loss.contains("in no plugin")) {
            assert_eq!(raised.losses, Vec::<String>::new(), "{name} {path}");
            assert_eq!(again.skills, suite.skills, "{name} {path}");
        }
    }
}

/// One test for each dialect, so that a failure names the dialect.
macro_rules! unbroken {
    ($($test:ident: $name:literal),* $(,)?) => {
        proptest! {
            $(
                #[test]
                fn $test(path in prop::sample::select(examples_of($name)), changes in changes()) {
                    let mut document = document($name, path);
                    apply(&mut document, &changes);
                    survives($name, path, &document);
                }
            )*
        }
    };
}

unbroken! {
    no_change_breaks_bmad: "bmad",
    no_change_breaks_clauditor: "clauditor",
    no_change_breaks_skill_creator: "skill-creator",
    no_change_breaks_writing_skills: "writing-skills",
    no_change_breaks_skill_test: "skill-test",
    no_change_breaks_skillet: "skillet",
    no_change_breaks_native: "native",
    no_change_breaks_vally: "vally",
    no_change_breaks_skillgrade: "skillgrade",
    no_change_breaks_waza: "waza",
    no_change_breaks_promptfoo: "promptfoo",
}

proptest! {
    #[test]
    fn what_a_dialect_writes_it_can_read(suite in suites::suite()) {
        let skill = Some(some_skill());
        let place = EvalFileLocation { skill, ..EvalFileLocation::new(suites::FOLDER, "/") };
        for dialect in DIALECTS {
            read_exported(*dialect, &dialect.export_suite(&suite, Path::new(suites::FOLDER)), &place);
        }
    }
}
