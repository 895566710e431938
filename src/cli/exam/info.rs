//! What a run's record says of it before its first trial.

use std::collections::HashMap;
use std::path::PathBuf;

use serde_json::Value;

use crate::dialects;
use crate::model::{Digest, SkillRef, Suite};
use crate::plan::{Plan, Planned};
use crate::store::{PlannedTrial, RunDir, RunInfo, RunSetting, RunSkill, RunSuite};
use crate::versions::Contents;

pub fn info(plan: &Plan, run_dir: &RunDir, scripted: bool, notices: Vec<String>) -> RunInfo {
    let mut digests = Digests::default();
    let suites = plan.suites.iter().map(|planned| {
        let (origin, suite) = (planned.suite.origin.clone(), native_suite(planned));
        RunSuite { origin, suite, skill: digests.under_test(&planned.suite) }
    });
    let settings = plan.suites.iter().map(|planned| {
        let rows = planned.settings.explain().into_iter();
        rows.map(|(name, value, from)| (name.to_owned(), RunSetting { value, from: from.to_string() }))
            .collect()
    });
    let trials = plan.trials.iter().map(|trial| {
        let (planned, case) = plan.case(trial);
        PlannedTrial {
            id: trial.id.clone(),
            suite: planned.suite.name.clone(),
            case: case.id.clone(),
            condition: trial.condition.clone(),
            attempt: trial.attempt,
        }
    });
    RunInfo {
        schema_version: 1,
        run: run_dir.id().to_owned(),
        started: jiff::Timestamp::now().to_string(),
        practicum: env!("CARGO_PKG_VERSION").to_owned(),
        suites: suites.collect(),
        settings: settings.collect(),
        trials: trials.collect(),
        scripted,
        command: std::env::args().skip(1).collect(),
        folder: std::env::current_dir().unwrap_or_default(),
        project: run_dir.project().unwrap_or_default(),
        notices,
        graded_from: None,
        earlier_skill: None,
        not_in_history: None,
        replayed: false,
        gates: Vec::new(),
    }
}

/// A suite in the native format, as a run's record keeps it.
pub fn native_suite(planned: &Planned) -> Value {
    let folder = planned.suite.origin.path.parent().map(PathBuf::from).unwrap_or_default();
    dialects::to_native(&planned.suite, &folder)
}

/// What skills hold. Many suites may be about one.
#[derive(Default)]
struct Digests(HashMap<PathBuf, Option<Digest>>);

impl Digests {
    /// `None` where there is no skill, or not one, or it is no folder.
    fn under_test(&mut self, suite: &Suite) -> Option<RunSkill> {
        let [SkillRef { path: Some(path), .. }] = suite.skills.as_slice() else { return None };
        let held = || Contents::of(path).and_then(|contents| contents.digest()).ok();
        let digest = self.0.entry(path.clone()).or_insert_with(held).clone()?;
        Some(RunSkill { path: path.clone(), digest })
    }
}
