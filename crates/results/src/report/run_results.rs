//! The stored results of a run, from which reports are made.

use std::collections::HashMap;
use std::path::PathBuf;

use super::terminal_safe;
use practicum_agents::agents::AgentRegistry;
use practicum_core::model::{
    Case, CasePrompt, CaseStatus, CaseSummary, CheckKind, DecidingRate, Summary, TrialRecord, TrialTotals,
    Verdict,
};
use practicum_engine::store::{RunDir, RunInfo, StoredTrials};

/// A stored run, from which reports are made. Its trials are read when they are needed.
pub struct RunResults {
    /// The folder of the run.
    pub run: RunDir,
    /// How the run was made.
    pub info: RunInfo,
    /// The results of the run.
    pub summary: Summary,
    trials: StoredTrials,
    /// Reports that were already written, to which the closing summary points.
    pub written_reports: Vec<PathBuf>,
    /// The decoders of the agents' streams.
    pub(crate) agents: AgentRegistry,
}

impl RunResults {
    /// Opens a stored run. Fails if the run did not come to its end.
    pub fn open(run: RunDir) -> Result<Self, String> {
        let info = run.info()?;
        let summary = run.summary().ok_or_else(|| {
            format!("run {} did not finish; {}", run.id(), terminal_safe(&info.resume_hint()))
        })?;
        let trials = StoredTrials::open(run.path())
            .map_err(|error| format!("{}: {error}", run.path().join("events.jsonl").display()))?;
        Ok(Self { run, info, summary, trials, written_reports: Vec::new(), agents: AgentRegistry::default() })
    }

    /// Replaces the agents whose streams can be read, to add some from outside.
    #[must_use]
    pub fn with_agents(self, agents: AgentRegistry) -> Self {
        Self { agents, ..self }
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

    /// Gives the texts of the cases as they were run.
    pub fn case_texts(&self) -> CaseTexts<'_> {
        let suites = self.info.suites.iter().map(|of| &of.suite);
        let cases = suites.flat_map(|suite| suite.cases.iter().map(|case| (suite.name.as_str(), case)));
        CaseTexts { cases: cases.map(|(suite, case)| ((suite, case.id.as_str()), case)).collect() }
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
    cases: HashMap<(&'r str, &'r str), &'r Case>,
}

impl<'r> CaseTexts<'r> {
    fn case(&self, suite: &str, id: &str) -> Option<&'r Case> {
        self.cases.get(&(suite, id)).copied()
    }

    /// Gives the user's messages, turn by turn. Empty if a skill is invoked by its command alone.
    pub fn prompts(&self, suite: &str, id: &str) -> Vec<&'r str> {
        match self.case(suite, id).map(|case| &case.prompt) {
            Some(CasePrompt::Turns(turns)) => turns.iter().map(String::as_str).collect(),
            Some(CasePrompt::SkillCommand { args }) => vec![args],
            None => Vec::new(),
        }
    }

    /// Gives the note that says why the case exists.
    pub fn note(&self, suite: &str, id: &str) -> Option<&'r str> {
        self.case(suite, id)?.note.as_deref()
    }

    /// Gives the wording of a check: the judged statement, else its name. `None` if only its id is known.
    pub fn check_wording(&self, suite: &str, id: &str, check: &str) -> Option<&'r str> {
        let found = self.case(suite, id)?.checks.iter().find(|found| found.id == check)?;
        match &found.kind {
            CheckKind::Judged(judged) => Some(&judged.statement),
            CheckKind::Rule(_) | CheckKind::Sections(_) | CheckKind::Activation(_) => found.name.as_deref(),
        }
    }
}
