//! Checks whether the wanted arms can be measured with what a suite has.

use crate::plan::{is_activation, is_bare_command};
use practicum_core::model::{Arm, Case, CheckKind, Suite, count_with_noun};

/// Explains why the arms would measure nothing in the selected cases of a suite. The user is told before anything is
/// spent.
pub fn problems(suite: &Suite, selected: &[&Case], arms: &[Arm]) -> Vec<String> {
    let with = arms.iter().any(|arm| arm.has_skill());
    let without = arms.contains(&Arm::WithoutSkill);
    let mut problems = Vec::new();
    if with && without && suite.skills.is_empty() {
        problems.push(format!(
            "suite {} names no skill, so with the skill and without it would be the same; name one with \
             --skill, or measure the baseline alone with --arm without",
            suite.name
        ));
    }
    let about_nothing = |kind: &CheckKind| match kind {
        CheckKind::Activation(activation) => activation.skills.is_empty(),
        CheckKind::Rule(_) | CheckKind::Judged(_) | CheckKind::Sections(_) => false,
    };
    let mut unnamed =
        selected.iter().filter(|case| case.checks.iter().any(|check| about_nothing(&check.kind)));
    if let Some(case) = unnamed.find(|_| with) {
        problems.push(format!(
            "case {} of suite {} asks whether the skill is activated, and no skill is staged; name one with \
             --skill",
            case.id, suite.name
        ));
    }
    let mut bare = selected.iter().filter(|case| is_bare_command(suite, case));
    if let Some(case) = bare.find(|_| without) {
        problems.push(format!(
            "case {} of suite {} is a bare command, which says nothing without the skill; say in \"user_prompt\" \
             what a user would ask, or leave out --arm without",
            case.id, suite.name
        ));
    }
    problems
}

/// Gives a notice if the arm without the skill is wanted and some selected cases check only activation: they have no
/// such arm.
pub fn left_out_cases_notice(suite: &Suite, selected: &[&Case], arms: &[Arm]) -> Option<String> {
    let cases = selected.iter().filter(|case| is_activation(case)).count();
    if cases == 0 || !arms.contains(&Arm::WithoutSkill) {
        return None;
    }
    let only_without = arms.iter().all(|arm| !arm.has_skill());
    let left_out = if only_without { "left out of suite" } else { "run only with the skill, of suite" };
    Some(format!(
        "{left_out} {}: {} only about whether the skill is activated, which needs the skill",
        suite.name,
        count_with_noun(cases, "case")
    ))
}
