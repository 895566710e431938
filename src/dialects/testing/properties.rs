//! What holds for every dialect and every document.

use std::path::Path;

use proptest::prelude::*;
use serde_json::Value;

use super::mutate::{apply, changes};
use super::{fixtures, lower, parse, place, suites};
use crate::dialects::{DIALECTS, Dialect, Fit, Raised, dialect, to_native};
use crate::model::{RelPath, Suite};
use crate::tree::{Source, Syntax};

/// Written as native and read back from there.
fn through_native(suite: &Suite, folder: &Path) -> Suite {
    let text = to_native(suite, folder).to_string();
    let source = parse(folder.join("a.practicum.json"), &text);
    let native = dialect("native").expect("the native dialect");
    let (read, diagnostics) = lower(native, &source, &place(folder));
    assert!(!diagnostics.has_errors(), "{diagnostics:#?}\n{text}");
    Suite { origin: suite.origin.clone(), ..read.expect("a suite") }
}

/// What a dialect wrote is its own, and it reads it without complaint.
fn read_back(dialect: &dyn Dialect, raised: &Raised, folder: &Path) {
    for file in &raised.files {
        assert!(RelPath::new(&file.name).is_some(), "{}", file.name);
        let mut diagnostics = crate::model::Diagnostics::default();
        let path = folder.join(&file.name);
        let source = Source::parse(&path, file.document.to_string(), Syntax::Json, &mut diagnostics);
        let source = source.expect("a tree");
        assert_eq!(dialect.recognise(&source), Fit::Sure, "{} {}", dialect.name(), source.text);
        let (suite, diagnostics) = lower(dialect, &source, &place(folder));
        assert!(!diagnostics.has_errors(), "{} {diagnostics:#?}\n{}", dialect.name(), source.text);
        assert!(suite.is_some_and(|suite| !suite.cases.is_empty()), "{}", source.text);
    }
}

/// A document that is right, where it stands, and whose it is.
fn examples() -> Vec<(&'static str, &'static str, &'static str)> {
    vec![
        ("bmad", "bmad/evals/invoice-writer/evals.json", "bmad"),
        ("bmad", "bmad/evals/invoice-writer/triggers.json", "bmad"),
        ("bmad", "bmad/evals/invoice-writer/cases.json", "bmad"),
        ("skill-creator", "skill-creator/csv-report/evals/evals.json", "skill-creator"),
        ("skill-creator", "skill-creator/csv-report/evals/trigger-set.json", "skill-creator"),
        ("writing-skills", "writing-skills/skills/reply/evals/evals.json", "writing-skills"),
        ("skill-test", "skill-test/suites/outdoors.json", "skill-test"),
        ("skill-test", "skill-test/suites/flat.json", "skill-test"),
        ("skill-test", "skill-test/suites/routing.json", "skill-test"),
        ("skillet", "skillet/evals/turns.json", "skillet"),
        ("skillet", "skillet/evals/assertions.json", "skillet"),
        ("native", "native/everything.json", "native"),
    ]
}

/// Whatever stands in a file: no dialect panics over it, and what one can read without an error
/// says the same after a way through native, and can be written in every format.
fn survives(name: &str, path: &str, project: &str, document: &Value) {
    let path = fixtures::folder().join(path);
    let source = parse(path.clone(), &document.to_string());
    let folder = source.folder().to_owned();
    let place = crate::dialects::Place {
        root: folder.clone(),
        project: fixtures::folder().join(project),
        plugins: None,
    };
    for dialect in DIALECTS {
        dialect.recognise(&source);
        if dialect.name() != name {
            let _ = lower(*dialect, &source, &place);
        }
    }
    let (suite, diagnostics) = lower(dialect(name).expect("a dialect"), &source, &place);
    if let Some(suite) = suite.filter(|_| !diagnostics.has_errors()) {
        assert_eq!(through_native(&suite, &folder), suite);
        for dialect in DIALECTS {
            read_back(*dialect, &dialect.raise(&suite, &folder), &folder);
        }
    }
}

fn document(path: &str) -> Value {
    let text = std::fs::read_to_string(fixtures::folder().join(path)).expect("a fixture");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn examples_survive() {
    for (name, path, project) in examples() {
        survives(name, path, project, &document(path));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_suite_written_as_native_reads_back_the_same(suite in suites::suite()) {
        prop_assert_eq!(through_native(&suite, Path::new(suites::FOLDER)), suite);
    }

    #[test]
    fn what_a_dialect_writes_it_can_read(suite in suites::suite()) {
        let folder = Path::new(suites::FOLDER);
        for dialect in DIALECTS {
            read_back(*dialect, &dialect.raise(&suite, folder), folder);
        }
    }

    #[test]
    fn no_document_makes_a_dialect_panic(
        example in prop::sample::select(examples()),
        changes in changes(),
    ) {
        let (name, path, project) = example;
        let mut document = document(path);
        apply(&mut document, &changes);
        survives(name, path, project, &document);
    }
}
