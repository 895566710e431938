//! Suites in the records of runs. They are native documents whose paths are relative to the folder of the eval file.

use std::path::PathBuf;

use serde_json::Value;

use super::super::{EvalFileLocation, EvalRegistry};
use super::decode::{DocumentSource, decode_suite};
use super::encode_suite;
use practicum_core::model::{
    CheckEvidence, CheckFinding, Diagnostics, NotScoredReason, Origin, Rule, Severity, Span, Suite,
};
use practicum_core::tree::{SourceFile, TreeNode};

/// Writes a suite for the record of a run, without its origin.
pub fn encode_stored_suite(suite: &Suite) -> Value {
    encode_suite(suite, &folder_of(&suite.origin))
}

/// Reads a suite from the record of a run, without looking at the files that it names. Checks that are not in the
/// registry are kept as they were written. The error says in a sentence why the suite cannot be read.
pub fn decode_stored_suite(
    document: &Value,
    origin: Origin,
    registry: &EvalRegistry,
) -> Result<Suite, String> {
    let folder = folder_of(&origin);
    let place = EvalFileLocation::new(folder.clone(), folder).with_registry(registry.clone());
    let root = TreeNode::from_value(document, Span::new(0, 0));
    let source = SourceFile { path: origin.path.clone(), text: String::new(), root };
    let mut diagnostics = Diagnostics::default();
    let suite = decode_suite(&source, &place, DocumentSource::RunRecord, &mut diagnostics);
    let error = diagnostics.iter().find(|found| found.severity == Severity::Error);
    match (error, suite) {
        (None, Some(suite)) => Ok(Suite { origin, ..suite }),
        (error, _) => Err(format!(
            "the suite of {} cannot be read from the record: {}",
            origin.path.display(),
            error.map_or("it is not a suite", |error| error.message.as_str())
        )),
    }
}

fn folder_of(origin: &Origin) -> PathBuf {
    origin.path.parent().map(PathBuf::from).unwrap_or_default()
}

/// A check in the record of a run that this program does not know. It is kept as it was written and decides nothing.
#[derive(Debug)]
pub struct UnreadRule {
    pub key: String,
    pub value: Value,
}

impl Rule for UnreadRule {
    fn key(&self) -> &str {
        &self.key
    }

    fn value(&self) -> Value {
        self.value.clone()
    }

    fn check(&self, _evidence: &CheckEvidence<'_>) -> CheckFinding {
        let why = format!("this program does not know the check \"{}\"", self.key);
        CheckFinding::not_scored(NotScoredReason::CheckFailed(why))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::dialects::testing::suites;
    use practicum_core::model::{CheckKind, Digest};

    fn origin() -> Origin {
        let path = Path::new(suites::FOLDER).join("evals.yaml");
        Origin { dialect: "skillet".to_owned(), path, digest: Digest::of_bytes(b"") }
    }

    proptest! {
        #[test]
        fn a_stored_suite_reads_back_the_same(suite in suites::suite()) {
            let suite = Suite { origin: origin(), ..suite };
            prop_assert_eq!(decode_stored_suite(&encode_stored_suite(&suite), origin(), &EvalRegistry::default()), Ok(suite));
        }
    }

    #[test]
    fn what_this_program_does_not_know_or_find_is_kept() {
        let document = json!({
            "practicum": 1,
            "name": "gone",
            "skill": {"name": "gone", "path": "skills/gone"},
            "cases": [{
                "id": "one",
                "prompt": "Go.",
                "files": ["not-there.txt"],
                "checks": [{"sounds_like": {"word": "a"}, "id": "sound", "on": "run"}, {"sounds_like": 1, "id": "b"}],
            }],
        });
        let suite = decode_stored_suite(&document, origin(), &EvalRegistry::default()).expect("a suite");
        assert_eq!(encode_stored_suite(&suite), document);
        let CheckKind::Rule(rule) = &suite.cases[0].checks[0].kind else { panic!("a rule") };
        assert_eq!((rule.key(), rule.value()), ("sounds_like", json!({"word": "a"})));
    }

    #[test]
    fn a_record_that_is_no_suite_is_an_error_with_a_sentence() {
        for (document, expected) in [
            (json!("text"), "must be"),
            (json!({"practicum": 2, "name": "a", "cases": []}), "version"),
            (json!({"practicum": 1, "name": "a", "cases": [{"id": "a", "checks": []}]}), "prompt"),
            (
                json!({"practicum": 1, "name": "a", "cases": [{"id": "a", "prompt": "p", "checks": [{"regex": 7, "id": "b"}]}]}),
                "regex",
            ),
        ] {
            let error =
                decode_stored_suite(&document, origin(), &EvalRegistry::default()).expect_err("an error");
            assert!(
                error.contains("evals.yaml cannot be read from the record") && error.contains(expected),
                "{error}"
            );
        }
    }
}
