//! The interface between a run and its caller: notices, the plan, approval of scripts, and events.

use std::path::Path;

use super::SessionError;
use crate::pipeline::{ReusableResults, StopSignal};
use crate::plan::{CaseFilter, Plan};
use crate::session::run_setup::EvalFiles;
use practicum_core::event::EventSink;

/// The caller of a run. Every method has a default: a silent caller that approves no script.
pub trait RunObserver {
    /// Shows a message before the run: what was chosen for the user, or what was left out.
    fn on_notice(&mut self, _text: &str) {}

    /// Shows which cases cannot run on this machine, and why.
    fn on_case_not_run(&mut self, _text: &str) {}

    /// Shows the problems of the eval files that may hold a selected case.
    fn on_eval_files(&mut self, _reading: &EvalFiles, _filter: &CaseFilter) {}

    /// Shows the plan before anything is spent.
    fn on_plan(&mut self, _planned: &PlannedRun<'_>) {}

    /// Asks whether the scripts of the evals may run on this machine.
    fn approve_scripts(
        &mut self,
        scripts: &[ScriptToApprove],
        _cases_without: usize,
    ) -> Result<ScriptApproval, SessionError> {
        let number = scripts.len();
        Err(SessionError::Refused(format!(
            "the evals have {number} scripts that would run on this machine; read them, then allow them with `trust`"
        )))
    }

    /// Gives the sinks that receive the events of the run, such as a progress display.
    fn event_sinks(&mut self, _plan: &Plan) -> Vec<Box<dyn EventSink>> {
        Vec::new()
    }

    /// Is called before the first agent starts, with the signal that stops the run.
    fn on_start(&mut self, _stop: &StopSignal) {}
}

/// An observer that shows nothing and approves no script.
pub struct SilentObserver;

impl RunObserver for SilentObserver {}

/// A plan with what is known before it is executed.
pub struct PlannedRun<'r> {
    /// The plan of the run.
    pub plan: &'r Plan,
    /// The trials that only show whether each agent can use each skill at all.
    pub probes: &'r Plan,
    /// The results of earlier runs that are reused.
    pub reused: &'r ReusableResults,
    /// The project of the run.
    pub project: &'r Path,
    /// The number of agents that run at once.
    pub jobs: usize,
}

/// A script of an eval file that would run on this machine.
pub struct ScriptToApprove {
    /// The name of the suite.
    pub suite: String,
    /// The id of the case.
    pub case: String,
    /// The time when it runs: setup, teardown, or a check.
    pub purpose: String,
    /// The text of the script.
    pub text: String,
}

/// The user's decision about the scripts of the evals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScriptApproval {
    /// The scripts may run.
    Run,
    /// Only cases without scripts are run; the others stay unscored.
    SkipCases,
}
