//! What a run's record says of it before its first trial.

use std::path::PathBuf;

use crate::dialects;
use crate::plan::Plan;
use crate::store::{PlannedTrial, RunDir, RunInfo, RunSetting, RunSuite};

pub fn info(plan: &Plan, run_dir: &RunDir, scripted: bool, notices: Vec<String>) -> RunInfo {
    let suites = plan.suites.iter().map(|planned| {
        let folder = planned.suite.origin.path.parent().map(PathBuf::from).unwrap_or_default();
        let suite = dialects::to_native(&planned.suite, &folder);
        RunSuite { origin: planned.suite.origin.clone(), suite }
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
        notices,
        graded_from: None,
        replayed: false,
    }
}
