//! Shows the preparation and the progress of a run in the terminal.

use super::plan_view::{progress, show_estimate, show_plan};
use super::trust_question::ask_for_trust;
use super::{environment, has_colour, interrupts, print_to_stderr};
use crate::dialects::{AMBIGUOUS_FORMAT, LoadedFile};
use crate::event::EventSink;
use crate::model::Severity;
use crate::pipeline::StopSignal;
use crate::plan::{CaseFilter, Plan};
use crate::report::{display_path, render_diagnostics, terminal_safe};
use crate::session::run_setup::EvalFiles;
use crate::session::{PlannedRun, RunObserver, SessionError, TrustAnswer, TrustRequest};

/// An observer that writes to standard error what a user at a terminal or in a CI log should see.
pub struct TerminalObserver {
    /// Whether to show neither the plan nor the progress.
    pub quiet: bool,
    /// Whether to show only the plan.
    pub dry_run: bool,
}

impl RunObserver for TerminalObserver {
    fn on_notice(&mut self, text: &str) {
        say!("note: {}", terminal_safe(text));
    }

    fn on_case_not_run(&mut self, text: &str) {
        say!("not run: {}", terminal_safe(text));
    }

    fn on_eval_files(&mut self, reading: &EvalFiles, filter: &CaseFilter) {
        let is_wanted = |file: &&LoadedFile| match &file.lowered.suite {
            Some(suite) => filter.wants_some_of(suite),
            None => reading.case_id_of_file(file).is_none_or(|id| filter.wants_id(&id)),
        };
        // Notices are shown only by `check`, but the format decides how the evals are run.
        for file in reading.files.iter().filter(is_wanted) {
            let diagnostics = &file.lowered.diagnostics;
            if diagnostics.iter().any(|problem| problem.severity != Severity::Notice) {
                print_to_stderr(&render_diagnostics(diagnostics, &file.path, &file.text, has_colour()));
                continue;
            }
            for choice in diagnostics.iter().filter(|problem| problem.code == AMBIGUOUS_FORMAT) {
                let path = display_path(&file.path);
                say!("note: {}", terminal_safe(&format!("{path}: {}", choice.message)));
            }
        }
    }

    fn on_plan(&mut self, planned: &PlannedRun<'_>) {
        if !self.quiet || self.dry_run {
            show_plan(planned.plan, planned.reused.count(), planned.probes.trials.len());
            show_estimate(planned);
        }
    }

    fn approve(&mut self, request: &TrustRequest<'_>) -> Result<TrustAnswer, SessionError> {
        ask_for_trust(request)
    }

    fn event_sinks(&mut self, plan: &Plan) -> Vec<Box<dyn EventSink>> {
        progress(self.quiet, plan.suites.len(), &environment()).into_iter().collect()
    }

    fn on_start(&mut self, stop: &StopSignal) {
        tokio::spawn(interrupts::stop_on_requests(stop.clone()));
    }
}
