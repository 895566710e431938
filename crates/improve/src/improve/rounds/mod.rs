//! The loop: propose, try, compare, decide, until it is good enough or nothing helps.
//!
//! The skill itself is touched once, at the end, and only if a version was accepted. Every step is
//! written to a journal before the next begins, so that the loop goes on from there after any kill.

mod document;
mod means;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use document::{Improved, Round, Stopped};
pub use means::{Analysed, Examined, Halt, Left, Looks, Means, Proposal};

use super::decide::{Decision, Goal, Standing, decide};
use super::journal::{Journal, Spent};
use super::{
    Contents, Draft, Score, Split, Versions, VersionsError, difference, files, gradings, skill_creator,
};
use practicum_core::model::{Estimate, Noise, TrialRecord, counted};
use practicum_engine::judge::cut;
use practicum_engine::store::RunDir;
use practicum_skills::skill::Skill;

/// When to stop, and what to go for.
#[derive(Debug, Clone)]
pub struct Options {
    pub goal: Goal,
    pub seed: u64,
    pub rounds: u32,
    /// The pass rate that is good enough.
    pub target: f64,
    /// Goes on even if the baseline passes everything.
    pub force: bool,
    pub max_seconds: Option<f64>,
    pub max_usd: Option<f64>,
    pub noise: Option<Noise>,
}

/// So many rounds in a row without anything better are enough.
const MOST_FLAT: u32 = 2;

/// The step in which the skill runs as it was found.
const BASELINE_RUN: &str = "examine 0";

pub struct Loop<'l> {
    pub versions: &'l Versions,
    pub journal: Journal,
    pub options: &'l Options,
    pub means: &'l mut dyn Means,
    state: State,
}

/// What is known so far.
#[derive(Default)]
struct State {
    baseline: Option<Tried>,
    best: Option<Tried>,
    split: Split,
    rounds: Vec<Round>,
}

/// A version with what its run showed.
#[derive(Clone)]
struct Tried {
    examined: Examined,
    records: Vec<TrialRecord>,
    pass_rate: Option<f64>,
    described_in: usize,
}

impl Tried {
    fn standing(&self) -> Standing<'_> {
        Standing { records: &self.records, described_in: self.described_in }
    }
}

impl<'l> Loop<'l> {
    pub fn new(
        versions: &'l Versions,
        journal: Journal,
        options: &'l Options,
        means: &'l mut dyn Means,
    ) -> Self {
        Self { versions, journal, options, means, state: State::default() }
    }

    /// Goes round until something ends it, then puts the best version in the skill's place.
    pub fn run(mut self) -> std::io::Result<Improved> {
        let (mut stopped, mut failed) = match self.rounds() {
            Ok(stopped) => (stopped, None),
            Err(Halt::Interrupted) => (Stopped::Interrupted, None),
            Err(Halt::OutOfTime) => (Stopped::Time, None),
            Err(Halt::OutOfMoney) => (Stopped::Cost, None),
            Err(Halt::Failed(why)) => (Stopped::Failed, Some(why)),
        };
        let applied = self.apply_best().unwrap_or_else(|error| {
            (stopped, failed) = (Stopped::Failed, Some(format!("the best version is not in place: {error}")));
            false
        });
        let diff = self.diff();
        let State { baseline, best, split, rounds } = self.state;
        let number = |tried: &Option<Tried>| tried.as_ref().map(|tried| tried.examined.version);
        let rate = |tried: &Option<Tried>| tried.as_ref().and_then(|tried| tried.pass_rate);
        let improved = Improved {
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
        files::write_json(&self.versions.workspace().join("improve.json"), &improved)?;
        if stopped.is_end() {
            self.journal.finish()?;
        }
        Ok(improved)
    }

    /// What finished in a run before it was killed is not run again, and so must not be free.
    fn settle(&mut self) -> Result<(), Halt> {
        let Some(run) = self.journal.unsettled().map(str::to_owned) else { return Ok(()) };
        let Spent { value: seconds, cost_usd } = self.means.lost_in(&run);
        self.journal.lose(cost_usd, seconds).map_err(Halt::failed)
    }

    fn rounds(&mut self) -> Result<Stopped, Halt> {
        self.settle()?;
        let baseline = self.baseline()?;
        self.state.best = Some(baseline.clone());
        self.state.baseline = Some(baseline.clone());
        let all_pass =
            baseline.pass_rate == Some(1.0) && !baseline.records.iter().any(|record| !record.is_conclusive());
        match self.options.force {
            false if all_pass => return Ok(Stopped::TooEasy),
            false if self.is_good_enough(&baseline) => return Ok(Stopped::Target),
            true | false => {}
        }
        // Who goes on from there by force has no target left to reach.
        let may_reach_target = !self.is_good_enough(&baseline);
        let seed = self.options.seed;
        let records = baseline.records.clone();
        self.state.split =
            self.once("split", |_| Ok(Spent { value: Split::deal(&records, seed), cost_usd: Some(0.0) }))?;
        if self.state.split.held_out.is_empty() {
            self.means.tell(
                "so few cases that none is held out: nothing shows whether an edit only learnt them by heart",
            );
        }
        let mut tried = BTreeSet::from([baseline.examined.version]);
        let mut best = baseline;
        let mut next: Option<Proposal> = None;
        let mut flat = 0;
        for round in 1..=self.options.rounds {
            let mut proposal = next.take().unwrap_or_default();
            if proposal.edits.is_empty() {
                let asked: Proposal = self.once(&format!("suggest {round}"), |this| {
                    this.means.suggest(&best.examined, &this.state.split, round)
                })?;
                proposal.edits = asked.edits;
                proposal.refused.extend(asked.refused);
            }
            let candidate = self.candidate(&best, &proposal, round)?.filter(|version| tried.insert(*version));
            let Some(version) = candidate else {
                self.report(round, None, &untried(&proposal), None, proposal);
                flat += 1;
                if flat == MOST_FLAT {
                    return Ok(Stopped::Flat);
                }
                continue;
            };
            let candidate = self.examined(version, &format!("examine {round}"))?;
            let looks = self.compared(&best, &candidate, round)?;
            let decision = self.decided(&best, &candidate, round)?;
            let (winner, loser) = match decision.accepted {
                true => (candidate.clone(), best.clone()),
                false => (best.clone(), candidate.clone()),
            };
            flat = if decision.accepted { 0 } else { flat + 1 };
            self.report(round, Some(&candidate), &decision, looks.verdict, proposal);
            best = winner.clone();
            self.state.best = Some(winner.clone());
            let stopped = match () {
                () if may_reach_target && self.is_good_enough(&best) => Some(Stopped::Target),
                () if flat == MOST_FLAT => Some(Stopped::Flat),
                () if round == self.options.rounds => Some(Stopped::Rounds),
                () => None,
            };
            match (stopped, self.analysed(&winner, &loser, &looks, round)) {
                (None, analysed) => next = analysed?,
                // Why one is better is worth knowing, and takes nothing from what was reached without it.
                (Some(stopped), Ok(_) | Err(Halt::Interrupted | Halt::OutOfTime | Halt::OutOfMoney)) => {
                    return Ok(stopped);
                }
                (Some(_), Err(failed @ Halt::Failed(_))) => return Err(failed),
            }
        }
        Ok(Stopped::Rounds)
    }

    fn baseline(&mut self) -> Result<Tried, Halt> {
        let version = self.once("baseline", |this| {
            let taken = this.versions.snapshot("baseline").map_err(Halt::failed)?;
            Ok(Spent { value: taken.version, cost_usd: Some(0.0) })
        })?;
        let tried = self.examined(version, BASELINE_RUN)?;
        self.keep_score(&tried, None)?;
        Ok(tried)
    }

    /// Makes the edits on a copy of the best version, and keeps that as a new one. `None` if there is
    /// nothing to make.
    fn candidate(&mut self, best: &Tried, proposal: &Proposal, round: u32) -> Result<Option<u32>, Halt> {
        if proposal.edits.is_empty() {
            return Ok(None);
        }
        self.once(&format!("snapshot {round}"), |this| {
            let aside = tempfile::tempdir().map_err(Halt::failed)?;
            let files = Contents::of(&best.examined.files).map_err(Halt::failed)?;
            let copied = files.copy_to(aside.path()).map_err(Halt::failed)?;
            let copy = Contents::of(&copied).map_err(Halt::failed)?;
            let mut draft = Draft::of(&copy).map_err(Halt::failed)?;
            // They were checked when they were proposed, one after the other, on the same text.
            let made = proposal.edits.iter().filter(|edit| draft.follow(edit, None).is_ok()).count();
            if made == 0 || !draft.is_changed() {
                return Ok(Spent { value: None, cost_usd: Some(0.0) });
            }
            draft.write_to(aside.path()).map_err(Halt::failed)?;
            let areas: Vec<&str> = proposal.edits.iter().map(|edit| edit.area.as_str()).collect();
            let description = format!("round {round}: {}", areas.join(", "));
            let taken = this.versions.take_from(&copied, &description).map_err(Halt::failed)?;
            Ok(Spent { value: Some(taken.version), cost_usd: Some(0.0) })
        })
    }

    fn examined(&mut self, version: u32, step: &str) -> Result<Tried, Halt> {
        let files = self.versions.files(version).map_err(Halt::failed)?;
        let run: String = self.once(step, |this| {
            this.means.tell(&format!("v{version}: every case is run"));
            let left = Left { usd: this.usd_left(), seconds: this.seconds_left() };
            let began = Instant::now();
            let run = RunDir::new_id(jiff::Timestamp::now());
            this.journal.begin(&run).map_err(Halt::failed)?;
            let Spent { value, cost_usd } = this.means.examine(&files, &run, left)?;
            let run = value.and_then(|()| this.answered(version, run, step == BASELINE_RUN));
            if run.is_err() {
                // What finished is not run again, and so must not be free the next time.
                this.journal.lose(cost_usd, began.elapsed().as_secs_f64()).map_err(Halt::failed)?;
            }
            run.map(|value| Spent { value, cost_usd })
        })?;
        let records = self.means.records(&run)?;
        let pass_rate = Score::of(&run, &records).pass_rate;
        let described_in = described_in(&files);
        Ok(Tried { examined: Examined { version, files, run }, records, pass_rate, described_in })
    }

    /// A run, if it says anything at all. One that does not says nothing against the version either: the
    /// model or the machine failed, and the next start tries again. The baseline needs an answer for every
    /// case: nothing could be shown to be better than what was not measured.
    fn answered(&mut self, version: u32, run: String, needs_every_case: bool) -> Result<String, Halt> {
        let mut answers: BTreeMap<(String, String), bool> = BTreeMap::new();
        for record in self.means.records(&run)? {
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
                counted(count, "case"),
                cut(&silent.join(", "), 200)
            ),
        };
        Err(Halt::failed(format!("{what}; see practicum show {run}")))
    }

    fn compared(&mut self, best: &Tried, candidate: &Tried, round: u32) -> Result<Looks, Halt> {
        let folder = self.folder(round);
        self.once(&format!("compare {round}"), |this| {
            this.means.compare(&best.examined, &candidate.examined, &this.state.split, &folder)
        })
    }

    fn decided(&mut self, best: &Tried, candidate: &Tried, round: u32) -> Result<Decision, Halt> {
        let decision = self.once(&format!("decide {round}"), |this| {
            let Options { goal, noise, .. } = this.options;
            let split = &this.state.split;
            let value = decide(*goal, best.standing(), candidate.standing(), split, noise.as_ref());
            Ok(Spent { value, cost_usd: Some(0.0) })
        })?;
        let rejected = (!decision.accepted).then(|| decision.why.clone());
        self.keep_score(candidate, rejected)?;
        Ok(decision)
    }

    /// Why one did better, kept where it is documented, and what to try next.
    fn analysed(
        &mut self,
        winner: &Tried,
        loser: &Tried,
        looks: &Looks,
        round: u32,
    ) -> Result<Option<Proposal>, Halt> {
        let analysed = self.once(&format!("analyse {round}"), |this| {
            this.means.analyse(&winner.examined, &loser.examined, looks, &this.state.split, round)
        })?;
        let Some(Analysed { analysis, refused }) = analysed else { return Ok(None) };
        let folder = self.folder(round);
        let written = std::fs::create_dir_all(&folder)
            .and_then(|()| files::write_json(&folder.join("analysis.json"), &analysis));
        let theirs = folder.join(skill_creator::FOLDER);
        let (winner, loser) = (&winner.examined.files, &loser.examined.files);
        let document = skill_creator::analysis(&analysis, winner, loser, &looks.reasons);
        let written = written
            .and_then(|()| std::fs::create_dir_all(&theirs))
            .and_then(|()| files::write_json(&theirs.join("analysis.json"), &document));
        written.map_err(Halt::failed)?;
        Ok(Some(Proposal { edits: analysis.suggestions, refused }))
    }

    fn keep_score<'t>(&mut self, tried: &'t Tried, rejected: Option<String>) -> Result<(), Halt> {
        let score = Score { rejected, ..Score::of(&tried.examined.run, &tried.records) };
        let Examined { version, files, run } = &tried.examined;
        let found = |record: &'t TrialRecord| Ok((record, self.means.folder_of(run, &record.trial)?));
        let trials = tried.records.iter().map(found).collect::<Result<Vec<_>, Halt>>()?;
        let said = self.means.skills_judged(run)?;
        gradings::write(self.versions.workspace(), *version, files, &said, trials).map_err(Halt::failed)?;
        self.versions.keep_score(*version, &score).map_err(Halt::failed)
    }

    fn report(
        &mut self,
        round: u32,
        candidate: Option<&Tried>,
        decision: &Decision,
        blind: Option<practicum_core::model::Compared>,
        proposal: Proposal,
    ) {
        let word = if decision.accepted { "accepted" } else { "not accepted" };
        let version = candidate.map(|tried| tried.examined.version);
        let tried = version.map_or_else(|| "nothing new to try".to_owned(), |version| format!("v{version}"));
        let score = Score::of("", candidate.map_or(&[][..], |tried| &tried.records));
        for refused in &proposal.refused {
            self.means.tell(&format!("refused, {}: {}", refused.suggestion.area, refused.why));
        }
        self.means.tell(&format!("round {round}: {tried}, {word}: {}", decision.why));
        self.state.rounds.push(Round {
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
            blind,
            refused: proposal.refused,
        });
    }

    /// Does a step, unless the journal says that it was done.
    fn once<T: Serialize + DeserializeOwned>(
        &mut self,
        step: &str,
        work: impl FnOnce(&mut Self) -> Result<Spent<T>, Halt>,
    ) -> Result<T, Halt> {
        if let Some(known) = self.journal.find(step) {
            return Ok(known);
        }
        self.may_go_on()?;
        let began = Instant::now();
        let spent = work(self)?;
        self.journal.keep(step, &spent, began.elapsed().as_secs_f64()).map_err(Halt::failed)?;
        Ok(spent.value)
    }

    fn may_go_on(&self) -> Result<(), Halt> {
        match () {
            () if self.means.is_stopped() => Err(Halt::Interrupted),
            () if self.seconds_left().is_some_and(|left| left <= 0.0) => Err(Halt::OutOfTime),
            () if self.usd_left().is_some_and(|left| left <= 0.0) => Err(Halt::OutOfMoney),
            () => Ok(()),
        }
    }

    /// What may still be spent. What is not known to have been spent cannot be held against it.
    fn usd_left(&self) -> Option<f64> {
        self.options.max_usd.map(|most| most - self.journal.cost_usd.unwrap_or(0.0))
    }

    fn seconds_left(&self) -> Option<f64> {
        self.options.max_seconds.map(|most| most - self.journal.seconds)
    }

    /// Whether a version reaches the target. One of which some runs have no answer does not: they may fail.
    fn is_good_enough(&self, tried: &Tried) -> bool {
        let is_whole = tried.records.iter().all(TrialRecord::is_conclusive);
        is_whole && tried.pass_rate.is_some_and(|rate| rate >= self.options.target)
    }

    fn folder(&self, round: u32) -> PathBuf {
        self.versions.workspace().join(format!("rounds/{round}"))
    }

    /// Puts the best version in the skill's place, unless the user has changed the skill meanwhile.
    fn apply_best(&self) -> Result<bool, VersionsError> {
        match (&self.state.best, self.versions.holding()?) {
            (Some(best), Some(_)) => self.versions.restore(best.examined.version).map(|_| true),
            (Some(_), None) | (None, _) => Ok(false),
        }
    }

    /// What the best version changes, to be read by the user.
    fn diff(&self) -> String {
        let files = |tried: &Option<Tried>| tried.as_ref().map(|tried| tried.examined.files.clone());
        let ends = files(&self.state.baseline).zip(files(&self.state.best));
        ends.and_then(|(from, to)| difference(&from, &to).ok()).unwrap_or_default()
    }
}

/// The decision about a round in which nothing could be tried.
fn untried(proposal: &Proposal) -> Decision {
    let why = match (proposal.edits.is_empty(), proposal.refused.is_empty()) {
        (true, true) => "nothing was proposed",
        (true, false) => "no proposal can be followed",
        (false, _) => "what was proposed was tried before",
    };
    let none = Estimate::undefined(0);
    Decision { accepted: false, why: why.to_owned(), unanswered: false, tuning: none, held_out: none }
}

fn described_in(files: &Path) -> usize {
    let skill = Skill::read(files).ok();
    skill.and_then(|skill| skill.description).map_or(0, |description| description.chars().count())
}

#[cfg(test)]
mod tests;
