//! The events and figures of a run, and its end in the record.

use std::sync::Arc;
use std::time::Instant;

use super::{new_tally, suite_gates};
use crate::plan::Plan;
use crate::store::{RunDir, StoreError};
use practicum_core::aggregate::{RunCompletion, RunTally};
use practicum_core::event::{EventSinks, RunEvent};
use practicum_core::model::{Baseline, Noise, Ratio, Summary};

/// The recorder of a run or of a regrading: the receivers of its events, and the sum of its results.
pub struct RunRecorder {
    pub sinks: EventSinks,
    pub tally: RunTally,
    started: Instant,
}

impl RunRecorder {
    /// Reports the start of a run. Its `run.json` has to be written before.
    pub fn start(plan: &Plan, run_dir: &RunDir, sinks: EventSinks) -> Self {
        let mut recorder = Self { sinks, tally: new_tally(plan), started: Instant::now() };
        // Known before the first trial: what replayed answers had cost is not spent now.
        if let Ok(info) = run_dir.info() {
            recorder.tally.set_stand_ins(info.scripted, info.replayed);
        }
        recorder.send_event(&RunEvent::RunStarted {
            schema_version: 1,
            run: run_dir.id().to_owned(),
            at: jiff::Timestamp::now().to_string(),
            trials: plan.trials.len(),
        });
        recorder
    }

    pub fn send_event(&mut self, event: &RunEvent) {
        self.sinks.send_and_report(event);
    }

    /// Writes the summary of the run, and reports its end.
    pub fn finish(
        self,
        plan: &Plan,
        run_dir: &RunDir,
        rules: CompletionRules<'_>,
        completion: RunCompletion,
    ) -> Result<Summary, StoreError> {
        let Self { mut sinks, mut tally, started } = self;
        tally.allow_unscored(rules.allow_unscored);
        if let Some(noise) = rules.noise {
            tally.set_known_noise(noise);
        }
        tally.set_baseline(rules.baseline.cloned());
        let seconds = started.elapsed().as_secs_f64();
        let summary = Arc::new(tally.summary(run_dir.id(), &suite_gates(plan), seconds, completion));
        run_dir.write_summary(&summary)?;
        sinks.send_and_report(&RunEvent::RunFinished { summary: Arc::clone(&summary) });
        match sinks.lost_record() {
            Some(why) => Err(StoreError::at_path(run_dir.path())(std::io::Error::other(why.to_owned()))),
            None => Ok(Arc::unwrap_or_clone(summary)),
        }
    }
}

/// What a run may lack and still pass.
pub struct CompletionRules<'r> {
    /// The share of trials that may stay unscored.
    pub allow_unscored: Ratio,
    /// The known variation of the cases between equal runs.
    pub noise: Option<&'r Noise>,
    /// The stored results that it must not fall behind.
    pub baseline: Option<&'r Baseline>,
}
