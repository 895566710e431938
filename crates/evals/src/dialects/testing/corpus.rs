//! Tests with real files of users, in the folder that `PRACTICUM_CORPUS` names: one folder for each format.

use std::collections::BTreeMap;
use std::path::Path;

use super::schemas;
use crate::dialects::{EvalFileLocation, LoadedFile, find_dialect, load_eval_file};
use practicum_core::model::{Diagnostic, Diagnostics, Severity};
use practicum_core::tree::{SourceFile, SourceSyntax};

#[test]
fn every_file_is_recognised_and_has_no_error() {
    let Some(corpus) = std::env::var_os("PRACTICUM_CORPUS") else {
        println!("skipped: PRACTICUM_CORPUS names no folder");
        return;
    };
    let mut wrong = Vec::new();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for entry in std::fs::read_dir(&corpus).expect("a folder").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if find_dialect(&name).is_none() {
            println!("no dialect is called {name}");
            continue;
        }
        for file in ignore::Walk::new(entry.path()).flatten() {
            let path = file.path();
            let evals =
                path.extension().is_some_and(|ending| ["json", "yaml", "yml"].iter().any(|e| ending == *e));
            if !evals {
                continue;
            }
            *seen.entry(name.clone()).or_default() += 1;
            let loaded = load_eval_file(path, &location_of(path, &entry.path()), None);
            wrong.extend(schema_mismatch(&loaded).map(|problem| format!("{}: {problem}", path.display())));
            let count = loaded.lowered.suite.as_ref().map_or(0, |suite| suite.cases.len());
            println!("{} {:?} {count} cases", path.display(), loaded.dialect);
            for Diagnostic { severity, code, message, .. } in loaded.lowered.diagnostics.iter() {
                println!("    {severity:?} {code}: {message}");
                if *severity == Severity::Error {
                    wrong.push(format!("{}: {message}", path.display()));
                }
            }
            if loaded.dialect != Some(name.as_str()) || count == 0 {
                wrong.push(format!("{}: {:?}, {count} cases", path.display(), loaded.dialect));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(!seen.is_empty(), "the corpus is empty");
    println!("{seen:?}");
}

/// Gives what the schema refuses in a file that the reader accepts.
fn schema_mismatch(loaded: &LoadedFile) -> Option<String> {
    let dialect = loaded.dialect.filter(|_| loaded.lowered.suite.is_some())?;
    let syntax = SourceSyntax::detect(&loaded.path, &loaded.text);
    let source = SourceFile::parse(&loaded.path, loaded.text.clone(), syntax, &mut Diagnostics::default())?;
    let document = source.root.to_value();
    let problems = schemas::schema_errors(schemas::schema_of(dialect, &document), &document);
    (!problems.is_empty()).then(|| problems.join("; "))
}

fn location_of(path: &Path, project: &Path) -> EvalFileLocation {
    EvalFileLocation::new(path.parent().expect("a folder").to_owned(), project.to_owned())
}
