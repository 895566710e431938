//! The stored results of a run, from which reports are made.

use std::collections::HashMap;
use std::path::PathBuf;

use serde_json::Value;

use super::terminal_safe;
use practicum_core::model::{
    CaseStatus, CaseSummary, DecidingRate, Summary, TrialRecord, TrialTotals, Verdict,
};
use practicum_engine::store::{RunDir, RunInfo, StoredTrials};

/// A stored run, from which reports are made. Its trials are read when they are needed.
pub struct RunResults {
    pub run: RunDir,
    pub info: RunInfo,
    pub summary: Summary,
    trials: StoredTrials,
    /// Reports that were already written, to which the closing summary points.
    pub written_reports: Vec<PathBuf>,
}

impl RunResults {
    pub fn open(run: RunDir) -> Result<Self, String> {
        let info = run.info()?;
        let summary = run.summary().ok_or_else(|| {
            format!("run {} did not come to its end; {}", run.id(), terminal_safe(&info.resume_hint()))
        })?;
        let trials = StoredTrials::open(run.path())
            .map_err(|error| format!("{}: {error}", run.path().join("events.jsonl").display()))?;
        Ok(Self { run, info, summary, trials, written_reports: Vec::new() })
    }

    /// Reads the trials of a case, in the order of their attempts.
    pub fn trials(&self, case: &CaseSummary) -> impl Iterator<Item = std::io::Result<TrialRecord>> {
        self.trials.trials_of_case(case)
    }

    /// Reads every trial, case by case.
    pub fn all_trials(&self) -> impl Iterator<Item = std::io::Result<TrialRecord>> {
        self.summary.cases.iter().flat_map(|case| self.trials(case))
    }

    /// Gives the failures: trials that should have passed, or a case as a whole if a rate decides it. Trials
    /// without the skill do not have to pass, but are listed if they have no verdict.
    pub fn failures(&self) -> impl Iterator<Item = std::io::Result<ReportedFailure<'_>>> {
        self.summary.cases.iter().filter(|case| case.needs_attention()).flat_map(|case| {
            let has_to_pass = self.summary.has_to_pass(case);
            let rate = case.deciding_rate();
            let is_decided_by_rate = rate.is_some();
            let failed = rate.filter(|_| has_to_pass && case.status() == CaseStatus::Failed);
            let trials = self.trials(case).filter(move |trial| match trial.as_ref().map(|of| &of.verdict) {
                Ok(Verdict::Pass) => false,
                Ok(Verdict::Fail) => has_to_pass && !is_decided_by_rate,
                Ok(Verdict::NotScored(_)) | Err(_) => true,
            });
            let whole = failed.map(|rate| Ok(ReportedFailure::Case(case, rate)));
            let trials = trials.map(|trial| trial.map(|record| ReportedFailure::Trial(Box::new(record))));
            let not_run = (case.not_run > 0).then_some(Ok(ReportedFailure::NotRun(case)));
            whole.into_iter().chain(trials).chain(not_run)
        })
    }

    /// Gives the totals of the trials that have to pass, and of those without the skill that they are compared
    /// with.
    pub fn totals(&self) -> (TrialTotals, TrialTotals) {
        (self.summary.totals_under_test(), self.summary.totals_compared_with())
    }

    /// Gives the folder with a trial's files.
    pub fn trial_folder(&self, record: &TrialRecord) -> PathBuf {
        self.run.path().join("trials").join(record.trial.as_str())
    }

    /// Gives the texts of the cases as they were run, in the native format.
    pub fn case_texts(&self) -> CaseTexts<'_> {
        let mut cases = HashMap::new();
        for asked in &self.info.suites {
            let suite = asked.suite["name"].as_str().unwrap_or_default();
            for case in asked.suite["cases"].as_array().into_iter().flatten() {
                cases.insert((suite, case["id"].as_str().unwrap_or_default()), case);
            }
        }
        CaseTexts { cases }
    }

    /// Gives the names of the suites, each once.
    pub fn suite_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for case in &self.summary.cases {
            if !names.contains(&case.suite.as_str()) {
                names.push(&case.suite);
            }
        }
        names
    }
}

/// Something that should have passed and did not.
pub enum ReportedFailure<'r> {
    Case(&'r CaseSummary, DecidingRate),
    Trial(Box<TrialRecord>),
    /// Planned trials of a case that were not run.
    NotRun(&'r CaseSummary),
}

/// The texts of the cases of a run.
pub struct CaseTexts<'r> {
    cases: HashMap<(&'r str, &'r str), &'r Value>,
}

impl<'r> CaseTexts<'r> {
    fn case(&self, suite: &str, id: &str) -> Option<&'r Value> {
        self.cases.get(&(suite, id)).copied()
    }

    /// Gives the user's messages, turn by turn. Empty if a skill is invoked by its command alone.
    pub fn prompts(&self, suite: &str, id: &str) -> Vec<&'r str> {
        let Some(case) = self.case(suite, id) else { return Vec::new() };
        match case.get("prompt").or_else(|| case.get("command")) {
            Some(Value::Array(turns)) => turns.iter().filter_map(Value::as_str).collect(),
            Some(Value::String(one)) => vec![one.as_str()],
            Some(_) | None => Vec::new(),
        }
    }

    /// Gives the note that says why the case exists.
    pub fn note(&self, suite: &str, id: &str) -> Option<&'r str> {
        self.case(suite, id)?.get("note")?.as_str()
    }

    /// Gives the wording of a check: the judged statement, else its name. `None` if only its id is known.
    pub fn check_wording(&self, suite: &str, id: &str, check: &str) -> Option<&'r str> {
        let checks = self.case(suite, id)?.get("checks")?.as_array()?;
        let found = checks.iter().find(|found| found["id"] == *check)?;
        let judged = found.get("judge");
        let statement = judged.and_then(|judged| judged.as_str().or_else(|| judged["statement"].as_str()));
        statement.or_else(|| found.get("name")?.as_str())
    }
}
