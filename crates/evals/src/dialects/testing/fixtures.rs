//! Snapshot tests: example files of every format, and the suites they become.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::describe_diagnostics;
use crate::dialects::{self, EvalFileLocation, load_eval_file};
use practicum_core::model::Severity;
use practicum_core::tree::{SourceFile, SourceSyntax};

pub fn fixtures_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures").canonicalize().expect("the fixtures")
}

/// Loads a file as from a user's project, and gives the suite and the diagnostics.
fn load_fixture(project: &str, file: &str) -> (Option<&'static str>, Value) {
    let project = fixtures_folder().join(project);
    let path = project.join(file);
    let root = path.parent().expect("a folder").to_owned();
    let loaded = load_eval_file(&path, &EvalFileLocation::new(root.clone(), project), None);
    let mut diagnostics = practicum_core::model::Diagnostics::default();
    let source = SourceFile::parse(
        &path,
        loaded.text.clone(),
        SourceSyntax::detect(&path, &loaded.text),
        &mut diagnostics,
    );
    let source = source.expect("a tree");
    let codes = describe_diagnostics(&loaded.lowered.diagnostics, &source, Severity::Notice);
    let messages = loaded.lowered.diagnostics.iter().map(|diagnostic| diagnostic.message.as_str());
    let said: Vec<String> =
        codes.iter().zip(messages).map(|(code, text)| format!("{code}: {text}")).collect();
    let suite = loaded.lowered.suite.as_ref().map(|suite| dialects::to_native(suite, &root));
    let shown = json!({"said": said, "suite": suite}).to_string();
    let here = fixtures_folder().to_string_lossy().into_owned();
    (loaded.dialect, serde_json::from_str(&shown.replace(&here, "")).expect("the same JSON"))
}

#[test]
fn lowered() {
    for (dialect, project, file) in [
        ("bmad", "bmad", "evals/invoice-writer/evals.json"),
        ("bmad", "bmad", "evals/invoice-writer/triggers.json"),
        ("bmad", "bmad", "evals/invoice-writer/cases.json"),
        ("clauditor", "clauditor", ".claude/commands/standup.eval.json"),
        ("clauditor", "clauditor", ".claude/skills/recipe-scaler/SKILL.eval.json"),
        ("clauditor", "clauditor", ".claude/skills/price-scout/assets/price-scout.eval.json"),
        ("skill-creator", "skill-creator", "csv-report/evals/evals.json"),
        ("skill-creator", "skill-creator", "csv-report/evals/trigger-set.json"),
        ("writing-skills", "writing-skills", "skills/reply/evals/evals.json"),
        ("skill-test", "skill-test", "suites/outdoors.json"),
        ("skill-test", "skill-test", "suites/flat.json"),
        ("skill-test", "skill-test", "suites/routing.json"),
    ] {
        let (found, shown) = load_fixture(project, file);
        assert_eq!(found, Some(dialect), "{project}/{file}");
        let name = format!("{dialect}-{}", Path::new(file).file_stem().expect("a name").to_string_lossy());
        insta::assert_yaml_snapshot!(name, shown);
    }
}

/// Exports one suite that uses everything in every format: the files, and the losses.
#[test]
fn raised() {
    let path = fixtures_folder().join("native/everything.json");
    let root = fixtures_folder().join("native");
    let place = EvalFileLocation::new(root.clone(), root.clone());
    let suite = load_eval_file(&path, &place, None).lowered.suite.expect("a suite");
    for dialect in dialects::DIALECTS {
        let raised = dialect.export_suite(&suite, &root);
        let files: Vec<Value> =
            raised.files.iter().map(|file| json!({"name": file.name, "document": file.document})).collect();
        insta::assert_yaml_snapshot!(
            format!("raised-{}", dialect.name()),
            json!({"losses": raised.losses, "files": files})
        );
    }
}
