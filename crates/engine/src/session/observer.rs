//! The interface between a run and its caller: notices, the plan, questions of trust, and events.

use std::path::Path;

use super::SessionError;
use super::trust::{TrustAnswer, TrustRequest};
use crate::pipeline::{ReusableResults, StopSignal};
use crate::plan::{CaseFilter, Plan};
use crate::session::run_setup::EvalFiles;
use practicum_core::event::EventSink;

/// The caller of a run. Every method has a default: a silent caller that trusts nothing.
pub trait RunObserver {
    /// Shows a message before the run: what was chosen for the user, or what was left out.
    fn on_notice(&mut self, _text: &str) {}

    /// Shows which cases cannot run on this machine, and why.
    fn on_case_not_run(&mut self, _text: &str) {}

    /// Shows the problems of the eval files that may hold a selected case.
    fn on_eval_files(&mut self, _reading: &EvalFiles, _filter: &CaseFilter) {}

    /// Shows the plan before anything is spent.
    fn on_plan(&mut self, _planned: &PlannedRun<'_>) {}

    /// Asks whether the user trusts items of the project. By default nothing is trusted: required items are refused, and
    /// the others are ignored.
    fn approve(&mut self, request: &TrustRequest<'_>) -> Result<TrustAnswer, SessionError> {
        match request.refusal() {
            Some(why) => Err(SessionError::Refused(why)),
            None => Ok(TrustAnswer::Ignore),
        }
    }

    /// Gives the sinks that receive the events of the run, such as a progress display.
    fn event_sinks(&mut self, _plan: &Plan) -> Vec<Box<dyn EventSink>> {
        Vec::new()
    }

    /// Is called before the first agent starts, with the signal that stops the run.
    fn on_start(&mut self, _stop: &StopSignal) {}
}

/// An observer that shows nothing and trusts nothing.
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
