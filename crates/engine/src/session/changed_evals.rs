//! How the evals of a run that is resumed differ from those that it began with.

use std::collections::BTreeSet;

use serde_json::Value;

use super::SessionError;
use super::record::native_suite;
use crate::plan::Plan;
use crate::store::{RunDir, RunInfo};
use practicum_core::model::counted;

/// How many changes are named.
const MOST_NAMED: usize = 5;

/// Refuses to resume a run whose evals have changed: its record would mix the results of two sets of evals, and a
/// case that was removed would vanish from it. What a skill or a fixture holds may change; such trials run again.
pub fn refuse_changed_evals(run: &RunDir, plan: &Plan) -> Result<(), SessionError> {
    let mut changes = changes(&run.info().map_err(SessionError::Refused)?, plan);
    if changes.is_empty() {
        return Ok(());
    }
    let more = changes.split_off(changes.len().min(MOST_NAMED)).len();
    if more > 0 {
        changes.push(counted(more, "more change"));
    }
    Err(SessionError::Refused(format!(
        "run {} cannot be resumed, because the evals have changed since: {}; start a new run",
        run.id(),
        changes.join(", ")
    )))
}

fn changes(then: &RunInfo, now: &Plan) -> Vec<String> {
    let planned_then: BTreeSet<(&str, &str)> =
        then.trials.iter().map(|trial| (trial.suite.as_str(), trial.case.as_str())).collect();
    let planned_now: BTreeSet<(&str, &str)> = now
        .trials
        .iter()
        .map(|trial| now.case(trial))
        .map(|(planned, case)| (planned.suite.name.as_str(), case.id.as_str()))
        .collect();
    let gone =
        planned_then.difference(&planned_now).map(|(suite, case)| format!("case {case} of {suite} is gone"));
    let new =
        planned_now.difference(&planned_then).map(|(suite, case)| format!("case {case} of {suite} is new"));
    let mut changes: Vec<String> = gone.chain(new).collect();
    for planned in &now.suites {
        let name = planned.suite.name.as_str();
        let after = native_suite(planned);
        let Some(before) = then.suites.iter().map(|kept| &kept.suite).find(|suite| suite["name"] == name)
        else {
            continue;
        };
        for (suite, id) in planned_then.intersection(&planned_now).filter(|(suite, _)| *suite == name) {
            if case_of(before, id) != case_of(&after, id) {
                changes.push(format!("case {id} of {suite} was changed"));
            }
        }
        let is_run = planned_now.iter().any(|(suite, _)| *suite == name);
        let keys: BTreeSet<&String> = [before, &after]
            .into_iter()
            .filter_map(Value::as_object)
            .flat_map(|suite| suite.keys())
            .collect();
        let changed = keys.into_iter().filter(|key| *key != "cases" && before.get(*key) != after.get(*key));
        changes.extend(changed.filter(|_| is_run).map(|key| format!("\"{key}\" of {name} was changed")));
    }
    let ids_then: BTreeSet<&str> = then.trials.iter().map(|trial| trial.id.as_str()).collect();
    let ids_now: BTreeSet<&str> = now.trials.iter().map(|trial| trial.id.as_str()).collect();
    if changes.is_empty() && ids_then != ids_now {
        let (before, after) = (counted(ids_then.len(), "trial"), counted(ids_now.len(), "trial"));
        changes.push(format!("{before} were planned and now {after} are, under other settings"));
    }
    changes
}

fn case_of<'s>(suite: &'s Value, id: &str) -> Option<&'s Value> {
    suite["cases"].as_array()?.iter().find(|case| case["id"] == id)
}
