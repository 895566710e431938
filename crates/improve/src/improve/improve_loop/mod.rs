//! The improvement loop: propose edits, run them, compare, decide, confirm; until the skill is good enough or
//! nothing helps.
//!
//! The skill itself is changed once, at the end, and only if fresh runs confirmed a version. Every step is written to a
//! journal before the next begins, so that the loop can continue after being killed at any point.

mod confirmation;
mod document;
mod loop_services;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Instant;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use document::{ImproveReport, ImproveRound, LoopEnd};
pub use loop_services::{
    BlindOpinions, EditProposal, LoopServices, LoopStop, RemainingBudget, StepAnalysis, TestedVersion,
};

use super::journal::{LoopJournal, StepResult};
use super::version_decision::{
    ImproveGoal, VersionDecision, VersionPair, confirm_candidate, decide_candidate,
};
use super::{
    CaseSplit, SkillContents, SkillEditDraft, SkillVersions, VersionScore, VersionsError, atomic_files,
    diff_versions, skill_creator,
};
use practicum_core::model::{Estimate, Noise, TrialRecord, count_with_noun};
use practicum_core::stats::MOST_ROUNDS_WITHOUT_CANDIDATE;
use practicum_engine::grade::judge::shorten_text;
use practicum_engine::store::RunDir;

/// The goal of a loop, and when to stop.
#[derive(Debug, Clone)]
pub struct LoopOptions {
    pub goal: ImproveGoal,
    pub seed: u64,
    pub rounds: u32,
    /// The pass rate that is good enough.
    pub target: f64,
    /// Whether to continue even if the baseline passes everything.
    pub force: bool,
    pub max_seconds: Option<f64>,
    pub max_usd: Option<f64>,
    pub noise: Option<Noise>,
}

/// The reason why a candidate is not accepted while its fresh runs are not finished.
const NOT_CONFIRMED: &str = "not confirmed by fresh runs";

/// The step that runs the unchanged skill.
const BASELINE_STEP: &str = "examine 0";

/// A loop over one skill, with its versions, its journal and its services.
pub struct ImproveLoop<'l> {
    pub versions: &'l SkillVersions,
    pub journal: LoopJournal,
    pub options: &'l LoopOptions,
    pub services: &'l mut dyn LoopServices,
    state: LoopState,
}

/// The measurements of the loop so far.
#[derive(Default)]
struct LoopState {
    baseline: Option<MeasuredVersion>,
    best: Option<MeasuredVersion>,
    split: CaseSplit,
    rounds: Vec<ImproveRound>,
    /// The number of candidates that were tested on fresh runs.
    confirmations: u32,
}

/// A version with the results of its run.
#[derive(Clone)]
struct MeasuredVersion {
    tested: TestedVersion,
    records: Vec<TrialRecord>,
    pass_rate: Option<f64>,
}

impl<'l> ImproveLoop<'l> {
    pub fn new(
        versions: &'l SkillVersions,
        journal: LoopJournal,
        options: &'l LoopOptions,
        means: &'l mut dyn LoopServices,
    ) -> Self {
        Self { versions, journal, options, services: means, state: LoopState::default() }
    }

    /// Runs rounds until something ends the loop, then puts the best version in the skill's place.
    pub fn run(mut self) -> std::io::Result<ImproveReport> {
        let (mut stopped, mut failed) = match self.run_rounds() {
            Ok(stopped) => (stopped, None),
            Err(LoopStop::Interrupted) => (LoopEnd::Interrupted, None),
            Err(LoopStop::OutOfTime) => (LoopEnd::Time, None),
            Err(LoopStop::OutOfMoney) => (LoopEnd::Cost, None),
            Err(LoopStop::Failed(why)) => (LoopEnd::Failed, Some(why)),
        };
        let applied = self.apply_best().unwrap_or_else(|error| {
            (stopped, failed) = (LoopEnd::Failed, Some(format!("the best version is not in place: {error}")));
            false
        });
        let diff = self.diff();
        let LoopState { baseline, best, split, rounds, .. } = self.state;
        let number = |tried: &Option<MeasuredVersion>| tried.as_ref().map(|tried| tried.tested.version);
        let rate = |tried: &Option<MeasuredVersion>| tried.as_ref().and_then(|tried| tried.pass_rate);
        let improved = ImproveReport {
            schema_version: 1,
            skill: self.versions.skill().to_owned(),
            goal: self.options.goal,
            stopped,
            failed,
            baseline: number(&baseline),
            best: number(&best),
            baseline_pass_rate: rate(&baseline),
            best_pass_rate: rate(&best),
            applied,
            diff,
            split,
            rounds,
            cost_usd: self.journal.cost_usd,
            seconds: self.journal.seconds,
        };
        atomic_files::write_json(&self.versions.folder().join("improve.json"), &improved)?;
        if stopped.is_final() {
            self.journal.finish()?;
        }
        Ok(improved)
    }

    /// Adds the cost of a killed run to the total. Its finished trials are not run again, so their cost must be
    /// counted here.
    fn account_for_killed_run(&mut self) -> Result<(), LoopStop> {
        let Some(run) = self.journal.unaccounted_run().map(str::to_owned) else { return Ok(()) };
        let StepResult { value: seconds, cost_usd } = self.services.cost_of_killed_run(&run);
        self.journal.record_lost_cost(cost_usd, seconds).map_err(LoopStop::failed)
    }

    fn run_rounds(&mut self) -> Result<LoopEnd, LoopStop> {
        self.account_for_killed_run()?;
        let baseline = self.run_baseline()?;
        self.state.best = Some(baseline.clone());
        self.state.baseline = Some(baseline.clone());
        let all_pass =
            baseline.pass_rate == Some(1.0) && !baseline.records.iter().any(|record| !record.is_conclusive());
        match self.options.force {
            false if all_pass => return Ok(LoopEnd::TooEasy),
            false if self.is_good_enough(&baseline) => return Ok(LoopEnd::Target),
            true | false => {}
        }
        // With `force`, a baseline that already reaches the target leaves no target to reach.
        let may_reach_target = !self.is_good_enough(&baseline);
        let seed = self.options.seed;
        let records = baseline.records.clone();
        self.state.split = self.do_step_once("split", |_| {
            Ok(StepResult { value: CaseSplit::from_records(&records, seed), cost_usd: Some(0.0) })
        })?;
        if self.state.split.held_out.is_empty() {
            self.services.show_message(
                "too few cases to hold any out, so nothing shows whether an edit only fits these cases",
            );
        }
        let mut tried = BTreeSet::from([baseline.tested.version]);
        let mut best = baseline;
        let mut next: Option<EditProposal> = None;
        let mut flat = 0;
        for round in 1..=self.options.rounds {
            let mut proposal = next.take().unwrap_or_default();
            if proposal.edits.is_empty() {
                let asked: EditProposal = self.do_step_once(&format!("suggest {round}"), |this| {
                    this.services.propose_edits(&best.tested, &this.state.split, round)
                })?;
                proposal.edits = asked.edits;
                proposal.refused.extend(asked.refused);
            }
            let candidate =
                self.make_candidate(&best, &proposal, round)?.filter(|version| tried.insert(*version));
            let Some(version) = candidate else {
                self.add_round(round, None, &nothing_tried_decision(&proposal), None, proposal);
                flat += 1;
                if flat == MOST_ROUNDS_WITHOUT_CANDIDATE {
                    return Ok(LoopEnd::Flat);
                }
                continue;
            };
            let mut candidate = self.run_version_step(version, &format!("examine {round}"), None)?;
            let looks = self.compare_step(&best, &candidate, round)?;
            let mut decision = self.decide_step(&best, &candidate, round)?;
            flat = if decision.accepted { 0 } else { flat + 1 };
            if decision.accepted {
                let confirmed = self.confirm_step(&best, &candidate, round)?;
                (best, candidate, decision) = (confirmed.best, confirmed.candidate, confirmed.decision);
            }
            let (winner, loser) = match decision.accepted {
                true => (candidate.clone(), best.clone()),
                false => (best.clone(), candidate.clone()),
            };
            self.add_round(round, Some(&candidate), &decision, looks.verdict, proposal);
            best = winner.clone();
            self.state.best = Some(winner.clone());
            let stopped = match () {
                () if decision.accepted && may_reach_target && self.is_good_enough(&best) => {
                    Some(LoopEnd::Target)
                }
                () if flat == MOST_ROUNDS_WITHOUT_CANDIDATE => Some(LoopEnd::Flat),
                () if round == self.options.rounds => Some(LoopEnd::Rounds),
                () => None,
            };
            match (stopped, self.analyse_step(&winner, &loser, &looks, round)) {
                (None, analysed) => next = analysed?,
                // The analysis is useful, but its failure must not change a result that was reached without it.
                (
                    Some(stopped),
                    Ok(_) | Err(LoopStop::Interrupted | LoopStop::OutOfTime | LoopStop::OutOfMoney),
                ) => {
                    return Ok(stopped);
                }
                (Some(_), Err(failed @ LoopStop::Failed(_))) => return Err(failed),
            }
        }
        Ok(LoopEnd::Rounds)
    }

    fn run_baseline(&mut self) -> Result<MeasuredVersion, LoopStop> {
        let version = self.do_step_once("baseline", |this| {
            let taken = this.versions.snapshot("baseline").map_err(LoopStop::failed)?;
            Ok(StepResult { value: taken.version, cost_usd: Some(0.0) })
        })?;
        let tried = self.run_version_step(version, BASELINE_STEP, None)?;
        self.store_score(&tried, None)?;
        Ok(tried)
    }

    /// Applies the edits to a copy of the best version and stores it as a new version. Gives `None` if there is
    /// nothing to apply.
    fn make_candidate(
        &mut self,
        best: &MeasuredVersion,
        proposal: &EditProposal,
        round: u32,
    ) -> Result<Option<u32>, LoopStop> {
        if proposal.edits.is_empty() {
            return Ok(None);
        }
        self.do_step_once(&format!("snapshot {round}"), |this| {
            let aside = tempfile::tempdir().map_err(LoopStop::failed)?;
            let files = SkillContents::scan(&best.tested.files).map_err(LoopStop::failed)?;
            let copied = files.copy_to(aside.path()).map_err(LoopStop::failed)?;
            let copy = SkillContents::scan(&copied).map_err(LoopStop::failed)?;
            let mut draft = SkillEditDraft::from_contents(&copy).map_err(LoopStop::failed)?;
            // The edits were checked when they were proposed, in this order and on the same text.
            let made =
                proposal.edits.iter().filter(|edit| draft.apply_suggestion(edit, None).is_ok()).count();
            if made == 0 || !draft.is_changed() {
                return Ok(StepResult { value: None, cost_usd: Some(0.0) });
            }
            draft.write_to(aside.path()).map_err(LoopStop::failed)?;
            let areas: Vec<&str> = proposal.edits.iter().map(|edit| edit.area.as_str()).collect();
            let description = format!("round {round}: {}", areas.join(", "));
            let taken = this.versions.snapshot_from(&copied, &description).map_err(LoopStop::failed)?;
            Ok(StepResult { value: Some(taken.version), cost_usd: Some(0.0) })
        })
    }

    /// Runs every case with a version. With the name of a sample, no trials of other samples are reused.
    fn run_version_step(
        &mut self,
        version: u32,
        step: &str,
        sample: Option<&str>,
    ) -> Result<MeasuredVersion, LoopStop> {
        let files = self.versions.version_files(version).map_err(LoopStop::failed)?;
        let run: String = self.do_step_once(step, |this| {
            this.services.show_message(&format!("v{version}: every case is run"));
            let left = RemainingBudget { usd: this.usd_left(), seconds: this.seconds_left() };
            let began = Instant::now();
            let run = RunDir::new_id(jiff::Timestamp::now());
            this.journal.begin_run(&run).map_err(LoopStop::failed)?;
            let StepResult { value, cost_usd } = this.services.run_version(&files, &run, sample, left)?;
            let run = value.and_then(|()| this.require_answers(version, run, step == BASELINE_STEP));
            if run.is_err() {
                // Finished trials are not run again, so their cost is recorded now and counts next time.
                this.journal
                    .record_lost_cost(cost_usd, began.elapsed().as_secs_f64())
                    .map_err(LoopStop::failed)?;
            }
            run.map(|value| StepResult { value, cost_usd })
        })?;
        let records = self.services.records(&run)?;
        let pass_rate = VersionScore::from_records(&run, &records).pass_rate;
        Ok(MeasuredVersion { tested: TestedVersion { version, files, run }, records, pass_rate })
    }

    /// Gives a run back if it has any results. A run without results says nothing against the version: the model
    /// or the machine failed, and the next start tries again. The baseline needs a result for every case, because
    /// nothing can be shown to be better than something unmeasured.
    fn require_answers(
        &mut self,
        version: u32,
        run: String,
        needs_every_case: bool,
    ) -> Result<String, LoopStop> {
        let mut answers: BTreeMap<(String, String), bool> = BTreeMap::new();
        for record in self.services.records(&run)? {
            let is_scored = record.is_conclusive();
            *answers.entry((record.suite, record.case)).or_default() |= is_scored;
        }
        let silent: Vec<&str> =
            answers.iter().filter(|(_, answered)| !**answered).map(|((_, case), _)| case.as_str()).collect();
        let what = match silent.len() {
            none if none == answers.len() => format!("no run of v{version} gave an answer"),
            0 => return Ok(run),
            _ if !needs_every_case => return Ok(run),
            count => format!(
                "{} of v{version} have no answer ({}), so nothing could be shown to be better",
                count_with_noun(count, "case"),
                shorten_text(&silent.join(", "), 200)
            ),
        };
        Err(LoopStop::failed(format!("{what}; see practicum show {run}")))
    }

    fn compare_step(
        &mut self,
        best: &MeasuredVersion,
        candidate: &MeasuredVersion,
        round: u32,
    ) -> Result<BlindOpinions, LoopStop> {
        let folder = self.folder(round);
        self.do_step_once(&format!("compare {round}"), |this| {
            this.services.compare_blindly(&best.tested, &candidate.tested, &this.state.split, &folder)
        })
    }

    fn decide_step(
        &mut self,
        best: &MeasuredVersion,
        candidate: &MeasuredVersion,
        round: u32,
    ) -> Result<VersionDecision, LoopStop> {
        let decision = self.do_step_once(&format!("decide {round}"), |this| {
            let LoopOptions { noise, .. } = this.options;
            let pair = VersionPair { best: &best.records, candidate: &candidate.records };
            let value = decide_candidate(pair, &this.state.split, noise.as_ref());
            Ok(StepResult { value, cost_usd: Some(0.0) })
        })?;
        // Until fresh runs confirm it, a candidate is not accepted either.
        let rejected = if decision.accepted { NOT_CONFIRMED.to_owned() } else { decision.why.clone() };
        self.store_score(candidate, Some(rejected))?;
        Ok(decision)
    }

    /// Asks why one version did better, writes the documented analysis files, and gives what to try next.
    fn analyse_step(
        &mut self,
        winner: &MeasuredVersion,
        loser: &MeasuredVersion,
        looks: &BlindOpinions,
        round: u32,
    ) -> Result<Option<EditProposal>, LoopStop> {
        let analysed = self.do_step_once(&format!("analyse {round}"), |this| {
            this.services.explain_winner(&winner.tested, &loser.tested, looks, &this.state.split, round)
        })?;
        let Some(StepAnalysis { analysis, refused }) = analysed else { return Ok(None) };
        let folder = self.folder(round);
        let written = std::fs::create_dir_all(&folder)
            .and_then(|()| atomic_files::write_json(&folder.join("analysis.json"), &analysis));
        let theirs = folder.join(skill_creator::SKILL_CREATOR_FOLDER);
        let (winner, loser) = (&winner.tested.files, &loser.tested.files);
        let document = skill_creator::analysis_document(&analysis, winner, loser, &looks.reasons);
        let written = written
            .and_then(|()| std::fs::create_dir_all(&theirs))
            .and_then(|()| atomic_files::write_json(&theirs.join("analysis.json"), &document));
        written.map_err(LoopStop::failed)?;
        Ok(Some(EditProposal { edits: analysis.suggestions, refused }))
    }

    fn store_score(&mut self, tried: &MeasuredVersion, rejected: Option<String>) -> Result<(), LoopStop> {
        let score =
            VersionScore { rejected, ..VersionScore::from_records(&tried.tested.run, &tried.records) };
        self.services.write_gradings(&tried.tested, &tried.records, self.versions.folder())?;
        self.versions.record_score(tried.tested.version, &score).map_err(LoopStop::failed)
    }

    fn add_round(
        &mut self,
        round: u32,
        candidate: Option<&MeasuredVersion>,
        decision: &VersionDecision,
        blind: Option<practicum_core::model::ComparisonVerdict>,
        proposal: EditProposal,
    ) {
        let word = if decision.accepted { "accepted" } else { "not accepted" };
        let version = candidate.map(|tried| tried.tested.version);
        let tried = version.map_or_else(|| "nothing new to try".to_owned(), |version| format!("v{version}"));
        let score = VersionScore::from_records("", candidate.map_or(&[][..], |tried| &tried.records));
        for refused in &proposal.refused {
            self.services.show_message(&format!("refused, {}: {}", refused.suggestion.area, refused.why));
        }
        self.services.show_message(&format!("round {round}: {tried}, {word}: {}", decision.why));
        self.state.rounds.push(ImproveRound {
            round,
            version,
            accepted: decision.accepted,
            why: decision.why.clone(),
            pass_rate: score.pass_rate,
            passed: score.passed,
            failed: score.failed,
            not_scored: score.not_scored,
            unanswered: decision.unanswered,
            tuning: decision.tuning,
            held_out: decision.held_out,
            confirmation: decision.confirmation.clone(),
            blind,
            refused: proposal.refused,
        });
    }

    /// Does a step, unless the journal says that it was done.
    fn do_step_once<T: Serialize + DeserializeOwned>(
        &mut self,
        step: &str,
        work: impl FnOnce(&mut Self) -> Result<StepResult<T>, LoopStop>,
    ) -> Result<T, LoopStop> {
        if let Some(known) = self.journal.find(step) {
            return Ok(known);
        }
        self.require_may_continue()?;
        let began = Instant::now();
        let spent = work(self)?;
        self.journal.record_step(step, &spent, began.elapsed().as_secs_f64()).map_err(LoopStop::failed)?;
        Ok(spent.value)
    }

    fn require_may_continue(&self) -> Result<(), LoopStop> {
        match () {
            () if self.services.is_stopped() => Err(LoopStop::Interrupted),
            () if self.seconds_left().is_some_and(|left| left <= 0.0) => Err(LoopStop::OutOfTime),
            () if self.usd_left().is_some_and(|left| left <= 0.0) => Err(LoopStop::OutOfMoney),
            () => Ok(()),
        }
    }

    /// Gives the money that is left. A cost that is not known is not subtracted.
    fn usd_left(&self) -> Option<f64> {
        self.options.max_usd.map(|most| most - self.journal.cost_usd.unwrap_or(0.0))
    }

    fn seconds_left(&self) -> Option<f64> {
        self.options.max_seconds.map(|most| most - self.journal.seconds)
    }

    /// Says whether a version reaches the target. A version with trials that have no result does not: they may
    /// fail.
    fn is_good_enough(&self, tried: &MeasuredVersion) -> bool {
        let is_whole = tried.records.iter().all(TrialRecord::is_conclusive);
        is_whole && tried.pass_rate.is_some_and(|rate| rate >= self.options.target)
    }

    fn folder(&self, round: u32) -> PathBuf {
        self.versions.folder().join(format!("rounds/{round}"))
    }

    /// Puts the best version in the skill's place, unless the user has changed the skill in the meantime.
    fn apply_best(&self) -> Result<bool, VersionsError> {
        match (&self.state.best, self.versions.current_version()?) {
            (Some(best), Some(_)) => self.versions.restore(best.tested.version).map(|_| true),
            (Some(_), None) | (None, _) => Ok(false),
        }
    }

    /// Gives the changes of the best version as a diff for the user.
    fn diff(&self) -> String {
        let files = |tried: &Option<MeasuredVersion>| tried.as_ref().map(|tried| tried.tested.files.clone());
        let ends = files(&self.state.baseline).zip(files(&self.state.best));
        ends.and_then(|(from, to)| diff_versions(&from, &to).ok()).unwrap_or_default()
    }
}

/// Gives the decision about a round in which nothing could be tried.
fn nothing_tried_decision(proposal: &EditProposal) -> VersionDecision {
    let why = match (proposal.edits.is_empty(), proposal.refused.is_empty()) {
        (true, true) => "nothing was proposed",
        (true, false) => "no proposal can be followed",
        (false, _) => "what was proposed was tried before",
    };
    let none = Estimate::undefined(0);
    VersionDecision {
        accepted: false,
        why: why.to_owned(),
        unanswered: false,
        tuning: none,
        held_out: none,
        confirmation: None,
    }
}

#[cfg(test)]
mod tests;
