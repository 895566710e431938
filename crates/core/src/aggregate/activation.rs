//! Counts of whether skills were activated where they should be, and the rates made from them.

use std::collections::{BTreeMap, BTreeSet};

use super::CaseKey;
use super::case::CaseTally;
use crate::model::{
    ActivationExpectation, ActivationRates, ActivationSummary, Arm, NamedActivationRates,
    PredictedActivation, SkillRouteCount, TrialRecord,
};
use crate::stats::{ALPHA, Confusion, rates};

/// The counts of one case's trials by whether they activated skills.
#[derive(Debug, Default)]
pub struct CaseActivationTally {
    pub expect: Option<ActivationExpectation>,
    pub all_runs: ActivationOutcomeCounts,
    /// Counts for each skill that the case is about.
    skills: BTreeMap<String, ActivationOutcomeCounts>,
    /// How often each activated skill occurs for each expected skill. `None` stands for no skill.
    skill_routes: BTreeMap<(Option<String>, Option<String>), u64>,
    invoked_by_user: u64,
}

/// The number of trials with each activation outcome.
#[derive(Debug, Clone, Copy, Default)]
pub struct ActivationOutcomeCounts {
    pub confusion: Confusion,
    either_accepted: u64,
    /// Trials that do not show whether the skill was activated, by what the case expects.
    pub unknown_must: u64,
    pub unknown_must_not: u64,
    unknown_either: u64,
}

impl ActivationOutcomeCounts {
    fn add(&mut self, expect: ActivationExpectation, fired: Option<bool>) {
        let count = match (expect, fired) {
            (ActivationExpectation::Must, Some(true)) => &mut self.confusion.tp,
            (ActivationExpectation::Must, Some(false)) => &mut self.confusion.fn_,
            (ActivationExpectation::Must, None) => &mut self.unknown_must,
            (ActivationExpectation::MustNot, Some(true)) => &mut self.confusion.fp,
            (ActivationExpectation::MustNot, Some(false)) => &mut self.confusion.tn,
            (ActivationExpectation::MustNot, None) => &mut self.unknown_must_not,
            (ActivationExpectation::Either, Some(_)) => &mut self.either_accepted,
            (ActivationExpectation::Either, None) => &mut self.unknown_either,
        };
        *count += 1;
    }

    pub fn unknown_runs(&self) -> u64 {
        self.unknown_must + self.unknown_must_not + self.unknown_either
    }

    /// Gives the confusion if every inconclusive trial had been wrong.
    pub fn worst_case_confusion(&self) -> Confusion {
        let wrong = Confusion { fn_: self.unknown_must, fp: self.unknown_must_not, ..Confusion::default() };
        self.confusion.plus(wrong)
    }
}

impl CaseActivationTally {
    pub fn add(&mut self, record: &TrialRecord) {
        // Without the skill, nothing can be activated.
        let Some(expect) = record.expect.filter(|_| record.condition.arm != Arm::WithoutSkill) else {
            return;
        };
        self.expect = Some(expect);
        if record.activation_outcome().is_none() {
            self.invoked_by_user += 1;
            return;
        }
        let fired = record.was_activated();
        self.count_run(
            expect,
            fired,
            &record.skills.about,
            &record.skills.activated,
            record.ended.can_be_graded(),
        );
        if fired.is_some() && !record.skills.about.is_empty() {
            self.count_route(record, expect);
        }
    }

    /// Adds the activation that a model predicted. Predictions are counted apart from observations.
    pub fn add_predicted(&mut self, record: &TrialRecord) {
        let with_skill = record.condition.arm != Arm::WithoutSkill;
        let Some(guess) = record.predicted.as_ref().filter(|_| with_skill) else { return };
        self.expect = Some(guess.expect);
        let chosen = guess.chosen.as_deref().unwrap_or_default();
        self.count_run(guess.expect, guess.is_activated(), &guess.about, chosen, true);
    }

    /// Counts a trial. In a trial that did not finish, a skill that was not activated might still have been later.
    fn count_run(
        &mut self,
        expect: ActivationExpectation,
        fired: Option<bool>,
        about: &[String],
        activated: &[String],
        finished: bool,
    ) {
        self.all_runs.add(expect, fired);
        for skill in about {
            let own = fired.map(|_| activated.contains(skill)).filter(|activated| *activated || finished);
            self.skills.entry(skill.clone()).or_default().add(expect, own);
        }
    }

    fn count_route(&mut self, record: &TrialRecord, expect: ActivationExpectation) {
        let expected = match expect {
            ActivationExpectation::Must => record.skills.about.first().cloned(),
            ActivationExpectation::MustNot => None,
            ActivationExpectation::Either => return,
        };
        let activated = &record.skills.activated;
        if activated.is_empty() {
            *self.skill_routes.entry((expected, None)).or_default() += 1;
            return;
        }
        for skill in activated {
            *self.skill_routes.entry((expected.clone(), Some(skill.clone()))).or_default() += 1;
        }
    }

    /// Gives the number of trials that activated a skill of the case.
    pub fn activated_runs(&self) -> u64 {
        self.all_runs.confusion.tp + self.all_runs.confusion.fp
    }

    /// Gives the number of trials that show whether the skill was activated.
    pub fn conclusive_runs(&self) -> u64 {
        self.all_runs.confusion.runs()
    }
}

/// Summarises predicted activation. `None` if no case has a prediction.
pub fn summarise_predicted(cases: &BTreeMap<CaseKey, CaseTally>) -> Option<PredictedActivation> {
    let asked: Vec<&CaseActivationTally> = cases
        .values()
        .map(|case| &case.predicted_activation)
        .filter(|guesses| guesses.expect.is_some())
        .collect();
    let all = || activation_rates(asked.iter().map(|guesses| &guesses.all_runs));
    (!asked.is_empty()).then(|| PredictedActivation { all: all(), skills: rates_by_skill(&asked) })
}

/// Gives the rates of each skill on its own.
fn rates_by_skill(asked: &[&CaseActivationTally]) -> Vec<NamedActivationRates> {
    let names: BTreeSet<&String> = asked.iter().flat_map(|activity| activity.skills.keys()).collect();
    let one =
        |name: &&String| named_rates(name, asked.iter().filter_map(|activity| activity.skills.get(*name)));
    names.iter().map(one).collect()
}

/// Summarises observed activation. `None` if no case asks about activation.
pub fn summarise_observed(cases: &BTreeMap<CaseKey, CaseTally>) -> Option<ActivationSummary> {
    let asked: Vec<(&CaseKey, &CaseActivationTally)> = cases
        .iter()
        .map(|(key, case)| (key, &case.activation))
        .filter(|(_, activity)| activity.expect.is_some())
        .collect();
    if asked.is_empty() {
        return None;
    }
    let parts = |of: fn(&CaseKey) -> &str| {
        let names: BTreeSet<&str> = asked.iter().map(|(key, _)| of(key)).collect();
        let one = |name: &&str| {
            named_rates(
                name,
                asked.iter().filter(|(key, _)| of(key) == *name).map(|(_, activity)| &activity.all_runs),
            )
        };
        names.iter().map(one).collect()
    };
    let unmeasured = asked.iter().filter(|(_, activity)| {
        let silent = activity.all_runs.confusion.runs() + activity.all_runs.either_accepted == 0;
        silent && activity.all_runs.unknown_runs() > 0
    });
    Some(ActivationSummary {
        all: activation_rates(asked.iter().map(|(_, activity)| &activity.all_runs)),
        skills: rates_by_skill(&asked.iter().map(|(_, activity)| *activity).collect::<Vec<_>>()),
        modes: parts(|key| &key.mode),
        agents: parts(|key| &key.agent),
        routing: summarise_routing(asked.iter().map(|(_, activity)| *activity)),
        unmeasured: unmeasured.count() as u64,
        invoked: asked.iter().map(|(_, activity)| activity.invoked_by_user).sum(),
    })
}

fn named_rates<'o>(
    name: &str,
    outcomes: impl Iterator<Item = &'o ActivationOutcomeCounts>,
) -> NamedActivationRates {
    NamedActivationRates { name: name.to_owned(), rates: activation_rates(outcomes) }
}

fn activation_rates<'o>(outcomes: impl Iterator<Item = &'o ActivationOutcomeCounts>) -> ActivationRates {
    let outcomes: Vec<&ActivationOutcomeCounts> = outcomes.collect();
    let cases: Vec<Confusion> = outcomes.iter().map(|of| of.confusion).collect();
    let Confusion { tp, fp, tn, fn_ } = cases.iter().copied().fold(Confusion::default(), Confusion::plus);
    let found = rates(&cases, ALPHA);
    ActivationRates {
        tp,
        fp,
        tn,
        fn_,
        acceptable: outcomes.iter().map(|of| of.either_accepted).sum(),
        error: outcomes.iter().map(|of| of.unknown_runs()).sum(),
        precision: found.precision,
        recall: found.recall,
        f1: found.f1,
        accuracy: found.accuracy,
    }
}

fn summarise_routing<'a>(activities: impl Iterator<Item = &'a CaseActivationTally>) -> Vec<SkillRouteCount> {
    let mut all: BTreeMap<&(Option<String>, Option<String>), u64> = BTreeMap::new();
    for (route, runs) in activities.flat_map(|activity| &activity.skill_routes) {
        *all.entry(route).or_default() += runs;
    }
    all.into_iter()
        .map(|((expected, fired), runs)| SkillRouteCount {
            expected: expected.clone(),
            fired: fired.clone(),
            runs,
        })
        .collect()
}
