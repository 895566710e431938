//! The verdicts of judges in a stored run, in the random order in which people label them.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::labels::LabelKey;
use super::{RunDir, RunInfo, read_records};
use practicum_core::aggregate::JudgedOutput;
use practicum_core::model::{CasePrompt, CheckKind, Digest, TrialId, Verdict};

/// A judge's verdict on one check of one trial.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgedItem {
    /// The trial.
    pub trial: TrialId,
    /// The run that the trial was reused from; `None` if it ran in this run.
    pub reused_from: Option<String>,
    /// The verdict, and what it is about.
    pub output: JudgedOutput,
}

/// The verdicts of judges in a run.
#[derive(Debug, Clone)]
pub struct JudgedRun {
    /// The id of the run.
    pub id: String,
    /// The run that made the outputs: another one, if this run only graded them again.
    pub outputs_of: String,
    /// The verdicts, in the random order in which people label them.
    pub items: Vec<JudgedItem>,
    /// The checks that the judge gave no usable answer on, by trial.
    pub not_scored: BTreeSet<(TrialId, String)>,
    info: RunInfo,
    trials: PathBuf,
}

/// The greatest number of runs that graded one another's outputs again.
const MOST_REGRADINGS: usize = 100;

impl JudgedRun {
    /// Reads the verdicts of a run.
    pub fn read(run: &RunDir) -> Result<Self, String> {
        let info = run.info()?;
        let outputs_of = find_origin(run, &info);
        let trials = run.path().join("trials");
        let records = read_records(run.path())
            .map_err(|error| format!("run {} has no record of its trials: {error}", run.id()))?;
        let (mut items, mut not_scored) = (Vec::new(), BTreeSet::new());
        for record in records.into_values() {
            let answer = trials.join(record.trial.as_str()).join("output.txt");
            let answer_bytes =
                answer.symlink_metadata().ok().filter(|file| file.is_file()).map(|file| file.len());
            let judge = record.judged_by.as_ref().map_or("unknown judge", |judge| &judge.model);
            for check in record.checks.iter().filter(|check| check.scale.is_some()) {
                let judge_passed = match check.verdict {
                    Verdict::Pass => true,
                    Verdict::Fail => false,
                    Verdict::NotScored(_) => {
                        not_scored.insert((record.trial.clone(), check.check.clone()));
                        continue;
                    }
                };
                let parts = [&outputs_of, record.trial.as_str(), &check.check].map(str::as_bytes);
                items.push(JudgedItem {
                    trial: record.trial.clone(),
                    reused_from: record.reused_from.clone(),
                    output: JudgedOutput {
                        judge: judge.to_owned(),
                        suite: record.suite.clone(),
                        case: record.case.clone(),
                        check: check.check.clone(),
                        arm: record.condition.arm,
                        judge_passed,
                        person_passed: None,
                        order: Digest::of_parts(parts),
                        answer_bytes,
                    },
                });
            }
        }
        items.sort_by(|a, b| a.output.order.cmp(&b.output.order));
        Ok(Self { id: run.id().to_owned(), outputs_of, items, not_scored, info, trials })
    }

    /// Gives what a label of this output is about.
    pub fn label_key(&self, item: &JudgedItem) -> LabelKey {
        LabelKey {
            outputs_of: self.outputs_of.clone(),
            trial: item.trial.clone(),
            check: item.output.check.clone(),
        }
    }

    /// Gives the folder of a trial.
    pub fn trial_folder(&self, trial: &TrialId) -> PathBuf {
        self.trials.join(trial.as_str())
    }

    /// Gives the statement that the judge decided; the id of the check if the run does not say.
    pub fn statement(&self, output: &JudgedOutput) -> String {
        let case = self
            .info
            .suite(&output.suite)
            .and_then(|of| of.suite.cases.iter().find(|case| case.id == output.case));
        let check = case.and_then(|case| case.checks.iter().find(|check| check.id == output.check));
        match check.map(|check| &check.kind) {
            Some(CheckKind::Judged(judged)) => judged.statement.clone(),
            Some(CheckKind::Rule(_) | CheckKind::Sections(_) | CheckKind::Activation(_)) | None => {
                output.check.clone()
            }
        }
    }

    /// Gives what the user asked the agent in a case.
    pub fn prompt(&self, output: &JudgedOutput) -> String {
        let case = self
            .info
            .suite(&output.suite)
            .and_then(|of| of.suite.cases.iter().find(|case| case.id == output.case));
        match case.map(|case| &case.prompt) {
            Some(CasePrompt::Turns(turns)) => turns.join("\n\n"),
            Some(CasePrompt::SkillCommand { args }) => args.clone(),
            None => String::new(),
        }
    }
}

/// Finds the run that made the outputs of a run, over all runs that only graded them again.
fn find_origin(run: &RunDir, info: &RunInfo) -> String {
    let mut origin = run.id().to_owned();
    let mut next = info.graded_from.clone();
    for _ in 0..MOST_REGRADINGS {
        let Some(id) = next.take() else { break };
        let project = run.project();
        let earlier =
            project.and_then(|project| RunDir::find(&project, &id).ok()).filter(|found| found.id() == id);
        next = earlier.and_then(|earlier| earlier.info().ok()).and_then(|info| info.graded_from);
        origin = id;
    }
    origin
}
