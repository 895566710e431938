//! Finds out how the evals and skills of a resumed run differ from those that it began with.

use std::collections::BTreeSet;

use serde_json::Value;

use super::SessionError;
use super::record::Digests;
use crate::plan::Plan;
use crate::store::{RunDir, RunInfo};
use practicum_core::model::{Arm, Suite, count_with_noun};
use practicum_evals::dialects::{case_to_native, encode_stored_suite};

/// The most changes that are named.
const MOST_NAMED: usize = 5;

/// Refuses to resume a run whose evals or skill have changed: its record would mix the results of two sets of
/// evals, a removed case would vanish from it, and results of one version of the skill would count as those of
/// another. The content of a fixture may change; such trials run again.
pub fn refuse_changed_evals(run: &RunDir, plan: &Plan) -> Result<(), SessionError> {
    let then = run.info().map_err(SessionError::Refused)?;
    let skills = changed_skills(&then, plan);
    if !skills.is_empty() {
        return Err(SessionError::Refused(format!(
            "run {} cannot be resumed, because the skill has changed since: {}; its results would be those of two \
             versions; put the skill back as it was, or start a new run",
            run.id(),
            skills.into_iter().collect::<Vec<String>>().join(", ")
        )));
    }
    let mut changes = changes(&then, plan);
    if changes.is_empty() {
        return Ok(());
    }
    let more = changes.split_off(changes.len().min(MOST_NAMED)).len();
    if more > 0 {
        changes.push(count_with_noun(more, "more change"));
    }
    Err(SessionError::Refused(format!(
        "run {} cannot be resumed, because the evals have changed since: {}; start a new run",
        run.id(),
        changes.join(", ")
    )))
}

/// Describes how the evals, the skills and the given files of a finished run differ from those of a plan. Gates are
/// not compared: those that the cases of a part cannot measure are left out of its record.
pub fn describe_changes(then: &RunInfo, plan: &Plan) -> Vec<String> {
    let is_about_gates = |change: &String| change.starts_with("\"gates\" of ");
    let mut found = changes(then, plan);
    found.retain(|change| !is_about_gates(change));
    found.extend(changed_skills(then, plan).into_iter().map(|path| format!("the skill {path} is another")));
    let mut digests = Digests::default();
    let run: BTreeSet<(&str, &str)> =
        then.trials.iter().map(|trial| (trial.suite.as_str(), trial.case.as_str())).collect();
    for planned in &plan.suites {
        let name = planned.suite.name.as_str();
        let Some(before) = then.suite(name).map(|kept| &kept.given_files) else { continue };
        let after = digests.given_files(&planned.suite);
        let cases = run.iter().filter(|(suite, _)| *suite == name).map(|(_, case)| *case);
        let changed = cases.filter(|case| before.get(*case) != after.get(*case));
        found.extend(changed.map(|case| format!("case {case} of {name} was given other files")));
    }
    found
}

/// Gives the paths of skills under test that differ from those that the run began with. A suite whose trials are
/// all without the skill does not depend on it.
fn changed_skills(then: &RunInfo, now: &Plan) -> BTreeSet<String> {
    let mut digests = Digests::default();
    let uses_skill = |index: usize| {
        let mut trials = now.trials.iter().filter(|trial| trial.suite == index);
        trials.any(|trial| trial.condition.arm != Arm::WithoutSkill)
    };
    let tested = now.suites.iter().enumerate().filter(|(index, _)| uses_skill(*index));
    let changed = tested.filter_map(|(_, planned)| {
        let before = then.suite(&planned.suite.name)?.skill.as_ref()?;
        let after = digests.under_test(&planned.suite);
        let is_same = after.is_some_and(|after| after.digest == before.digest);
        (!is_same).then(|| before.path.display().to_string())
    });
    changed.collect()
}

fn changes(then: &RunInfo, now: &Plan) -> Vec<String> {
    let planned_then: BTreeSet<(&str, &str)> =
        then.trials.iter().map(|trial| (trial.suite.as_str(), trial.case.as_str())).collect();
    let planned_now: BTreeSet<(&str, &str)> = now
        .trials
        .iter()
        .map(|trial| now.suite_and_case(trial))
        .map(|(planned, case)| (planned.suite.name.as_str(), case.id.as_str()))
        .collect();
    let gone =
        planned_then.difference(&planned_now).map(|(suite, case)| format!("case {case} of {suite} is gone"));
    let new =
        planned_now.difference(&planned_then).map(|(suite, case)| format!("case {case} of {suite} is new"));
    let mut changes: Vec<String> = gone.chain(new).collect();
    for planned in &now.suites {
        let after = &planned.suite;
        let name = after.name.as_str();
        let Some(before) = then.suite(name).map(|kept| &kept.suite) else { continue };
        for (suite, id) in planned_then.intersection(&planned_now).filter(|(suite, _)| *suite == name) {
            if written_case(before, id) != written_case(after, id) {
                changes.push(format!("case {id} of {suite} was changed"));
            }
        }
        let is_run = planned_now.iter().any(|(suite, _)| *suite == name);
        let changed = changed_keys(before, after).into_iter().filter(|_| is_run);
        changes.extend(changed.map(|key| format!("\"{key}\" of {name} was changed")));
    }
    let ids_then: BTreeSet<&str> = then.trials.iter().map(|trial| trial.id.as_str()).collect();
    let ids_now: BTreeSet<&str> = now.trials.iter().map(|trial| trial.id.as_str()).collect();
    if changes.is_empty() && ids_then != ids_now {
        let (before, after) =
            (count_with_noun(ids_then.len(), "trial"), count_with_noun(ids_now.len(), "trial"));
        changes.push(format!("{before} were planned and now {after} are, under other settings"));
    }
    changes
}

/// Gives a case as a record has it. Comparing what is written leaves out differences that no record keeps, such as
/// parts of a millisecond.
fn written_case(suite: &Suite, id: &str) -> Option<Value> {
    let names: Vec<String> = suite.skills.iter().map(|skill| skill.name.clone()).collect();
    Some(case_to_native(suite.case(id)?, &names, suite.origin.path.parent()?))
}

/// Gives the keys of a native file whose values differ between two suites, apart from their cases.
fn changed_keys(before: &Suite, after: &Suite) -> BTreeSet<String> {
    let document = |suite: &Suite| encode_stored_suite(&Suite { cases: Vec::new(), ..suite.clone() });
    let (before, after) = (document(before), document(after));
    let keys = [&before, &after].into_iter().filter_map(Value::as_object).flat_map(|suite| suite.keys());
    keys.filter(|key| before.get(key) != after.get(key)).cloned().collect()
}
