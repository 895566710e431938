//! Finds what has changed since a stored run and would change its trials today. Regrading cannot show the effect.

use crate::model::{Arm, Case, Suite, WorkspaceSpec};
use crate::plan::{Plan, PlannedSuite};
use crate::session::{Digests, changed_files, skill_under_test, trusted_code};
use crate::store::RunInfo;

/// Gives a note for each skill, workspace, system prompt and script that has changed since the run. The results
/// are those of the old one.
pub fn changed_since(made: &RunInfo, then: &[Suite], plan: &Plan) -> Vec<String> {
    let mut notes = Vec::new();
    for (index, planned) in plan.suites.iter().enumerate() {
        notes.extend(changed_skill(made, plan, index));
        notes.extend(changed_system_prompt(&then[index], planned));
        notes.extend(changed_workspaces(made, &then[index], plan, index));
    }
    let code = made.trusted_code.as_ref().and_then(|then| changed_files(then, &trusted_code(plan)));
    notes.extend(code.map(|files| {
        format!("code of this run has changed since: {files}; the results are those of the old code")
    }));
    notes
}

fn changed_skill(made: &RunInfo, plan: &Plan, index: usize) -> Option<String> {
    let ran_with_skill =
        plan.trials.iter().any(|trial| trial.suite == index && trial.condition.arm != Arm::WithoutSkill);
    let suite = &plan.suites[index].suite;
    let ran = made.suite(&suite.name)?.skill.as_ref()?;
    let now = skill_under_test(suite)?;
    (ran_with_skill && now.digest != ran.digest).then(|| {
        let name = suite.skills.first().map_or("", |skill| skill.name.as_str());
        format!("skill {name} has changed since this run; the results are those of the skill as it was")
    })
}

fn changed_system_prompt(then: &Suite, planned: &PlannedSuite) -> Option<String> {
    let Suite { name, run_policy: run, .. } = &planned.suite;
    (then.run_policy.system_prompt != run.system_prompt).then(|| {
        format!(
            "the system prompt of {name} has changed since this run; the results are those of the old one"
        )
    })
}

/// A note that names the cases whose agents would find something else today: another setup, other files.
fn changed_workspaces(made: &RunInfo, then: &Suite, plan: &Plan, index: usize) -> Option<String> {
    let name = plan.suites[index].suite.name.as_str();
    let ran = made.suite(name);
    let now = Digests::default().given_files(&plan.suites[index].suite);
    let holds_other = |case: &Case| {
        let before = ran.and_then(|ran| ran.given_files.get(&case.id));
        before.is_some_and(|before| now.get(&case.id) != Some(before))
    };
    // What runs after the grading decides nothing.
    let before_agent = |room: &WorkspaceSpec| WorkspaceSpec { teardown: None, ..room.clone() };
    let is_changed = |case: &&Case| {
        let old = then.cases.iter().find(|old| old.id == case.id);
        holds_other(case)
            || old.is_some_and(|old| before_agent(&old.workspace) != before_agent(&case.workspace))
    };
    let was_run = |at: usize| plan.trials.iter().any(|trial| (trial.suite, trial.case) == (index, at));
    let cases = plan.suites[index].suite.cases.iter().enumerate().filter(|(at, _)| was_run(*at));
    let changed: Vec<&str> =
        cases.map(|(_, case)| case).filter(is_changed).map(|case| case.id.as_str()).collect();
    (!changed.is_empty()).then(|| {
        let cases = if changed.len() == 1 { "case" } else { "cases" };
        let changed = changed.join(", ");
        format!("the setup or the files of {cases} {changed} have changed since this run; the results are those of the old ones")
    })
}
