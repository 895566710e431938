//! Confirms a candidate on fresh runs before it replaces anything.

use super::{
    BASELINE_STEP, ImproveLoop, LoopOptions, LoopStop, MeasuredVersion, StepResult, VersionDecision,
    VersionPair, confirm_candidate,
};

/// A candidate and the best version so far, both measured by fresh runs, and the decision between them.
pub(super) struct ConfirmedRound {
    pub best: MeasuredVersion,
    pub candidate: MeasuredVersion,
    pub decision: VersionDecision,
}

impl ImproveLoop<'_> {
    /// Runs every case again with both versions, and decides by these runs only. The runs that made the version a
    /// candidate cannot confirm it: it was chosen because they went well. They are not reused as results either.
    pub(super) fn confirm_step(
        &mut self,
        best: &MeasuredVersion,
        candidate: &MeasuredVersion,
        round: u32,
    ) -> Result<ConfirmedRound, LoopStop> {
        self.state.confirmations += 1;
        let number = self.state.confirmations;
        let sample = self.sample_name(round);
        let (old, new) = (best.tested.version, candidate.tested.version);
        self.services.show_message(&format!("v{new} looks better than v{old}: fresh runs of both follow"));
        let best = self.run_version_step(old, &format!("confirm {round} best"), Some(&sample))?;
        let candidate = self.run_version_step(new, &format!("confirm {round} candidate"), Some(&sample))?;
        let decision = self.do_step_once(&format!("confirm {round}"), |this| {
            let LoopOptions { noise, .. } = this.options;
            let pair = VersionPair { best: &best.records, candidate: &candidate.records };
            let value = confirm_candidate(pair, &this.state.split, noise.as_ref(), number);
            Ok(StepResult { value, cost_usd: Some(0.0) })
        })?;
        self.store_score(&best, None)?;
        let rejected = (!decision.accepted).then(|| decision.why.clone());
        self.store_score(&candidate, rejected)?;
        if self.state.baseline.as_ref().is_some_and(|baseline| baseline.tested.version == old) {
            self.state.baseline = Some(best.clone());
        }
        Ok(ConfirmedRound { best, candidate, decision })
    }

    /// Gives the name of the sample of a round's fresh runs. It is the same when a killed loop continues, so that
    /// finished trials are not run again, and another in every other loop.
    fn sample_name(&self, round: u32) -> String {
        let loop_name: String = self.journal.find(BASELINE_STEP).unwrap_or_default();
        format!("{loop_name} confirm {round}")
    }
}
