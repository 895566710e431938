//! Grades texts in your own Rust tests.
//!
//! In: an eval file in any format, and a text that a program or an agent wrote. Out: a `GradedText`, for
//! assertions. Only deterministic checks decide; what needs a judge or a run is not scored. Never: runs an agent;
//! asks a judge; reads the environment.
//!
//! ```
//! use practicum::testing::Spec;
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("greeting.practicum.yaml");
//! # std::fs::write(&path, "practicum: 1\nname: greeting\ncases:\n  - id: hello\n    prompt: Greet Alice.\n    checks:\n      - contains: Alice\n")?;
//! let spec = Spec::load(&path)?;
//! spec.grade("Good morning, Alice!")?.assert_passes();
//! assert!(!spec.grade("Good morning!")?.passes());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use crate::dialects::EvalRegistry;
use crate::grade::captured_output::CapturedOutput;
use crate::grade::grade_text::{TextToGrade, keep_answerable_gates};
use crate::model::{CheckResult, GateResult, Outcome, Ratio, Severity, Verdict};
use crate::plan::settings::{SettingLayers, project_root};
use crate::plan::{CaseGlob, PlannedSuite};
use crate::report::{CheckFlip, GradedVerdict, render_diagnostics, render_graded};
use crate::session::RunInputs;
use crate::session::run_setup::{self, EvalFiles, RunSetupError};
use crate::workspace::run::CancelToken;

/// An eval file, read once; a test can grade any number of texts with it.
pub struct Spec {
    path: PathBuf,
    suites: Vec<PlannedSuite>,
    cases: Vec<CaseGlob>,
}

/// An error: nothing could be graded. `Debug` shows the full message too, because a test that ends with an error
/// prints that.
#[derive(thiserror::Error)]
pub enum SpecError {
    /// The eval file cannot be found, or the settings of its project cannot be read.
    #[error(transparent)]
    RunSetup(#[from] RunSetupError),
    /// The eval file has errors: these.
    #[error("the eval file cannot be understood\n{0}")]
    Invalid(String),
    /// A pattern of case ids that cannot be used.
    #[error("\"{0}\" is no pattern of case ids")]
    Pattern(String),
    /// No case of this file can be graded by a text alone.
    #[error("{} has no case that this text could answer", .0.display())]
    NothingToGrade(PathBuf),
}

impl std::fmt::Debug for SpecError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

impl Spec {
    /// Reads an eval file and recognises its format. The skill that it is about need not exist.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, SpecError> {
        let path = path.as_ref().to_owned();
        let environment = BTreeMap::new();
        let ask = RunInputs { paths: vec![path.clone()], ..RunInputs::default() };
        let reading = run_setup::read_eval_files(&ask, &environment, &EvalRegistry::default())?;
        if reading.has_errors() {
            return Err(SpecError::Invalid(errors(&reading)));
        }
        let project = project_root(&std::path::absolute(&path).unwrap_or_else(|_| path.clone()));
        let layers = SettingLayers::without_flags(environment, &project).map_err(RunSetupError::from)?;
        let mut suites = run_setup::outline_eval_files(reading, &layers)?;
        keep_answerable_gates(&mut suites, false);
        Ok(Self { path, suites, cases: Vec::new() })
    }

    /// Keeps only cases whose id matches (`*` and `?` are wildcards). Further calls add the cases that match their
    /// pattern.
    pub fn case(mut self, glob: &str) -> Result<Self, SpecError> {
        let glob = CaseGlob::new(glob).ok_or_else(|| SpecError::Pattern(glob.to_owned()))?;
        self.cases.push(glob);
        Ok(self)
    }

    /// Grades a text with every deterministic check that needs only a text.
    pub fn grade(&self, text: &str) -> Result<GradedText, SpecError> {
        let captured = TextToGrade {
            network: None,
            output: CapturedOutput::Text(text.to_owned()),
            suites: &self.suites,
            services: None,
            checks_only: true,
            cancel: &CancelToken::default(),
            case_globs: &self.cases,
            allow_unscored: Ratio::ZERO,
        };
        // Only a judge would have to wait, and there is none. So a test needs no runtime, but may have one.
        let Poll::Ready(graded) = pin!(captured.grade()).poll(&mut Context::from_waker(Waker::noop())) else {
            unreachable!("without a judge nothing waits")
        };
        let graded = graded.ok_or_else(|| SpecError::NothingToGrade(self.path.clone()))?;
        let (outcome, gates) = (graded.exit, graded.gates.clone());
        Ok(GradedText { outcome, gates, checks: graded.into_results() })
    }
}

fn errors(reading: &EvalFiles) -> String {
    let shown = reading.files.iter().map(|file| {
        render_diagnostics(
            &file.lowered.diagnostics.with_severity(Severity::Error),
            &file.path,
            &file.text,
            false,
        )
    });
    shown.collect()
}

/// The results of grading a text.
#[derive(Debug, Clone)]
pub struct GradedText {
    outcome: Outcome,
    checks: Vec<(String, CheckResult)>,
    gates: Vec<GateResult>,
}

impl GradedText {
    /// Says whether every gate of the file holds. A file without deterministic checks passes nothing.
    pub fn passes(&self) -> bool {
        self.outcome == Outcome::Passed
    }

    /// Gives the result of each check by its id, with the case's id before it if there are several cases.
    pub fn checks(&self) -> &[(String, CheckResult)] {
        &self.checks
    }

    /// Gives the checks whose result differs from that of another text graded by the same file, and the numbers of
    /// checks with the same result: passed, failed, not scored.
    pub fn flips_since(&self, before: &GradedText) -> (Vec<CheckFlip>, [usize; 3]) {
        let (mut flips, mut same) = (Vec::new(), [0; 3]);
        for (id, now) in &self.checks {
            let then = before.checks.iter().find(|(then, _)| then == id);
            let after = GradedVerdict::from(&now.verdict);
            let then = then.map_or(GradedVerdict::NotScored, |(_, then)| (&then.verdict).into());
            if then == after {
                same[after as usize] += 1;
            } else {
                flips.push(CheckFlip { check: id.clone(), before: then, after, why: now.rationale.clone() });
            }
        }
        (flips, same)
    }

    /// Gives the ids of the checks that failed.
    pub fn failed(&self) -> Vec<&str> {
        let failed = self.checks.iter().filter(|(_, result)| result.verdict == Verdict::Fail);
        failed.map(|(id, _)| id.as_str()).collect()
    }

    /// Panics with the result of every check, unless the text passes.
    #[track_caller]
    pub fn assert_passes(&self) {
        assert!(self.passes(), "the text does not pass\n{self}");
    }
}

impl std::fmt::Display for GradedText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = render_graded(self.outcome, &self.checks, &self.gates, &[]);
        write!(f, "{}", anstream::adapter::strip_str(&text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO_CASES: &str = "\
practicum: 1
name: greeting
cases:
  - id: hello
    prompt: Greet Alice.
    checks:
      - { id: named, contains: Alice }
      - { id: kind, judge: The greeting is kind. }
  - id: goodbye
    prompt: Take leave of Alice.
    checks:
      - { id: leave, contains: Goodbye }
";

    fn spec(text: &str) -> (tempfile::TempDir, Result<Spec, SpecError>) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("greeting.practicum.yaml");
        std::fs::write(&path, text).expect("written");
        let spec = Spec::load(&path);
        (folder, spec)
    }

    #[test]
    fn a_text_is_graded_by_the_selected_cases() {
        for (glob, text, failed) in [
            ("hello", "Hello Alice", &[][..]),
            ("hello", "Hello Bob", &["named"]),
            ("goodbye", "Hello Alice", &["leave"]),
            ("*", "Goodbye Alice", &[]),
            ("*", "Hello Alice", &["goodbye/leave"]),
        ] {
            let (_folder, spec) = spec(TWO_CASES);
            let graded = spec.and_then(|spec| spec.case(glob)).and_then(|spec| spec.grade(text));
            let graded = graded.expect("graded");
            assert_eq!((graded.failed().as_slice(), graded.passes()), (failed, failed.is_empty()), "{glob}");
        }
    }

    #[test]
    #[should_panic(expected = "✗ leave: \"Goodbye\" does not occur")]
    fn a_failed_assertion_says_which_check_failed_and_why() {
        let (_folder, spec) = spec(TWO_CASES);
        let spec = spec.and_then(|spec| spec.case("goodbye")).expect("read");
        spec.grade("See you").expect("graded").assert_passes();
    }

    #[test]
    fn what_only_a_judge_can_say_does_not_pass_in_silence() {
        let judged =
            "practicum: 1\nname: j\ncases:\n  - { id: a, prompt: Hi., checks: [{ judge: It is kind. }] }\n";
        let (_folder, spec) = spec(judged);
        let graded = spec.expect("read").grade("Hello").expect("graded");
        assert!(!graded.passes());
        assert!(graded.to_string().starts_with("INCOMPLETE"), "{graded}");
    }

    #[test]
    fn a_file_that_cannot_be_used_says_why() {
        for (text, expected) in [
            ("practicum: 1\nname: x\ncases:\n  - { id: a, prompt: Hi., chekcs: [] }\n", "chekcs"),
            (
                "practicum: 1\nname: x\ncases:\n  - { id: a, prompt: Hi., checks: [{ file: { path: a, exists: true } }] }\n",
                "no case that this text could answer",
            ),
        ] {
            let (_folder, spec) = spec(text);
            let error = spec.and_then(|spec| spec.grade("Hello")).expect_err("unusable");
            assert!(format!("{error:?}").contains(expected), "{error:?}");
        }
        let missing = Spec::load("/nowhere/at-all.yaml").err().expect("missing");
        assert!(missing.to_string().contains("there is no"), "{missing}");
    }

    #[tokio::test]
    async fn a_test_that_has_a_runtime_may_grade_too() {
        let (_folder, spec) = spec(TWO_CASES);
        let spec = spec.and_then(|spec| spec.case("hello")).expect("read");
        spec.grade("Hello Alice").expect("graded").assert_passes();
    }
}
