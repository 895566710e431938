//! An eval format: a YAML file with a list of questions, each with the number of lines that its answer must have.

use std::path::Path;
use std::sync::Arc;

use practicum::dialects::{Dialect, EvalFileLocation, ExportedSuite, FormatMatch};
use practicum::model::{Case, Check, Diagnostics, Gate, Origin, SkillRef, Suite};
use practicum::tree::{ObjectReader, SourceFile, TreeNode};
use serde_json::{Value, json};

use crate::check::LineCount;

/// The format of files called `*.questions.yaml`.
pub struct Questions;

impl Dialect for Questions {
    fn name(&self) -> &'static str {
        "questions"
    }

    fn file_names(&self) -> &'static [&'static str] {
        &["*.questions.yaml"]
    }

    fn recognise(&self, source: &SourceFile) -> FormatMatch {
        match source.root.has("questions") {
            true => FormatMatch::sure("it has the key \"questions\""),
            false => FormatMatch::NO,
        }
    }

    fn lower(
        &self,
        source: &SourceFile,
        place: &EvalFileLocation,
        diagnostics: &mut Diagnostics,
    ) -> Option<Suite> {
        let mut file = ObjectReader::new(&source.root, "the file", diagnostics)?;
        let questions = file.list("questions", diagnostics).unwrap_or_default();
        file.reject_unknown_keys("the file", diagnostics);
        let origin =
            Origin { dialect: self.name().to_owned(), path: source.path.clone(), digest: source.digest() };
        // The evals are about the skill whose folder they lie in, unless the user names another one.
        let skill = place.skill.clone().unwrap_or_else(|| place.root.clone());
        let name = skill.file_name()?.to_string_lossy().into_owned();
        Some(Suite {
            skills: vec![SkillRef { name, path: Some(skill), plugin: None }],
            cases: questions.iter().filter_map(|node| read_case(node, diagnostics)).collect(),
            gates: vec![Gate::ALL_CASES_PASS],
            ..Suite::empty("questions", origin)
        })
    }

    fn schema(&self) -> Value {
        json!({"type": "object", "required": ["questions"]})
    }

    fn export_suite(&self, suite: &Suite, _folder: &Path) -> ExportedSuite {
        let lost_cases = suite.cases.iter().map(|case| case.id.clone()).collect();
        ExportedSuite { files: Vec::new(), losses: Vec::new(), lost_cases }
    }
}

fn read_case(node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<Case> {
    let mut question = ObjectReader::new(node, "a question", diagnostics)?;
    let id = question.required_text("id", diagnostics);
    let ask = question.required_text("ask", diagnostics);
    let lines = question.int("lines", 1, 1_000, diagnostics);
    question.reject_unknown_keys("a question", diagnostics);
    let check = Check::by_rule("lines", Arc::new(LineCount(lines.unwrap_or(1))));
    Some(Case { checks: vec![check], ..Case::new(id?, ask?) })
}
