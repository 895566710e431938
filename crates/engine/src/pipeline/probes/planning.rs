//! Decides which probes run before the trials.

use std::collections::BTreeSet;
use std::path::Path;

use super::diagnosis::probe_prompt;
use crate::pipeline::{ReusableResults, ReusableTrial};
use crate::plan::{Plan, PlannedSuite};
use practicum_core::model::{
    ActivationCheck, ActivationExpectation, ActivationSource, Arm, Case, CasePrompt, Check, CheckKind,
    CheckNeed, CheckTarget, CheckWeight, PassRule, ProbeRecord, SkillRef, Trial, TrialId, WorkspaceSpec,
};

/// Chooses the probes that run before the trials of a plan: those whose results are not known yet, of suites in which
/// somebody can answer a probe.
pub(crate) fn choose_probes<E>(
    plan: &Plan,
    prior: &mut ReusableResults,
    mut can_answer: impl FnMut(&PlannedSuite) -> Result<bool, E>,
) -> Result<Plan, E> {
    let mut stored: Vec<ProbeRecord> = Vec::new();
    let mut probes = probe_plan(plan, |trial, skill| {
        let is_kept = matches!(prior.trials.get(&trial.id), Some(ReusableTrial::FromThisRun(_)));
        if is_kept || plan.why_not_started(trial).is_some() {
            return false;
        }
        let of_reused = prior.probe_of_reused(trial, skill);
        stored.extend(of_reused.cloned());
        of_reused.is_none()
    });
    let asked: BTreeSet<usize> = probes.trials.iter().map(|trial| trial.suite).collect();
    let mut answered = BTreeSet::new();
    for index in asked {
        if can_answer(&plan.suites[index])? {
            answered.insert(index);
        }
    }
    let is_known = |trial: &Trial| prior.probes.iter().any(|probe| probe.trial == trial.id);
    probes.trials.retain(|trial| answered.contains(&trial.suite) && !is_known(trial));
    // A stored probe is reported unless it is made again.
    for probe in stored {
        let is_told = prior.probes.iter().any(|known| known.trial == probe.trial);
        if !is_told && probes.trials.iter().all(|trial| trial.id != probe.trial) {
            prior.probes.push(probe);
        }
    }
    Ok(probes)
}

/// Plans one probe for each agent, model and skill whose activation a trial measures, if that trial needs a probe. The
/// result is a plan with the same suites.
fn probe_plan(plan: &Plan, mut needs_probe: impl FnMut(&Trial, &SkillRef) -> bool) -> Plan {
    let silent = |planned: &PlannedSuite| {
        let mut planned = planned.clone();
        planned.suite.cases.clear();
        planned.suite.gates.clear();
        planned
    };
    let mut probes = Plan { suites: plan.suites.iter().map(silent).collect(), ..Plan::default() };
    // The script is part of the key: its answers show nothing about a real model.
    let mut known: BTreeSet<(&str, Option<&str>, &Path, Option<&Path>)> = BTreeSet::new();
    for trial in &plan.trials {
        let (planned, case) = plan.suite_and_case(trial);
        for skill in measured_skills(planned, case, trial.condition.arm) {
            let Some(path) = skill.path.as_deref() else { continue };
            let condition = &trial.condition;
            let (model, script) = (condition.model.as_deref(), planned.script.as_deref());
            if needs_probe(trial, skill) && known.insert((&condition.agent, model, path, script)) {
                add_probe(&mut probes, trial, probe_case(case, skill));
            }
        }
    }
    probes
}

/// Gives the skill that a probe of a plan is about.
pub(crate) fn probed_skill<'p>(probes: &'p Plan, probe: &Trial) -> Option<&'p SkillRef> {
    let (planned, case) = probes.suite_and_case(probe);
    measured_skills(planned, case, probe.condition.arm).next()
}

fn add_probe(probes: &mut Plan, like: &Trial, case: Case) {
    let suite = &mut probes.suites[like.suite].suite;
    // Attempts of cases start at 1, so this id is unique.
    let id = TrialId::new(&suite.name, &case.id, &like.condition, 0);
    let (case_index, condition) = (suite.cases.len(), like.condition.clone());
    suite.cases.push(case);
    probes.trials.push(Trial { id, suite: like.suite, case: case_index, condition, attempt: 0 });
}

/// Gives the skills whose activation a trial measures.
fn measured_skills<'p>(
    planned: &'p PlannedSuite,
    case: &'p Case,
    arm: Arm,
) -> impl Iterator<Item = &'p SkillRef> {
    // Without the skill there is no activation, and a command leaves nothing to measure.
    let measures = arm.has_skill() && matches!(case.prompt, CasePrompt::Turns(_));
    let asked = |skill: &&SkillRef| {
        case.checks.iter().any(|check| match &check.kind {
            CheckKind::Activation(of) => {
                of.source == ActivationSource::Observed && of.skills.contains(&skill.name)
            }
            CheckKind::Rule(_) | CheckKind::Judged(_) | CheckKind::Sections(_) => false,
        })
    };
    // A command file needs no probe if its activation is optional, because some agents do not offer commands to
    // their model.
    let must_be_seen = |skill: &&SkillRef| {
        let is_open = case.checks.iter().all(|check| match &check.kind {
            CheckKind::Activation(of) => of.expect == ActivationExpectation::Either,
            CheckKind::Rule(_) | CheckKind::Judged(_) | CheckKind::Sections(_) => true,
        });
        !(is_open && is_command(skill))
    };
    planned.suite.skills.iter().filter(move |_| measures).filter(asked).filter(must_be_seen)
}

/// Says whether a skill is a command file rather than a folder with a SKILL.md.
fn is_command(skill: &SkillRef) -> bool {
    let path = skill.path.as_deref();
    path.is_some_and(|path| {
        path.extension().is_some_and(|ending| ending == "md") && !path.ends_with("SKILL.md")
    })
}

/// Makes the case of a probe: the workspace of the given case, without its own files and scripts.
fn probe_case(case: &Case, skill: &SkillRef) -> Case {
    let room = WorkspaceSpec {
        files: Vec::new(),
        inline_files: Vec::new(),
        setup: None,
        teardown: None,
        ..case.workspace.clone()
    };
    let activation = ActivationCheck {
        skills: vec![skill.name.clone()],
        expect: ActivationExpectation::Must,
        source: ActivationSource::Observed,
    };
    Case {
        id: format!("probe-{}", skill.name),
        group: None,
        note: None,
        prompt: CasePrompt::Turns(vec![probe_prompt(&skill.name)]),
        user: None,
        workspace: room,
        mocks: Default::default(),
        checks: vec![Check {
            id: "activation".to_owned(),
            name: None,
            need: CheckNeed::Required,
            weight: CheckWeight::ONE,
            target: CheckTarget::WholeRun,
            kind: CheckKind::Activation(activation),
        }],
        context: None,
        timeout: None,
        repeat: None,
        pass_rule: PassRule::EveryRequiredCheck,
        known_good_output: None,
        unsupported: None,
        meta: Default::default(),
    }
}
