//! Whether skills fired where they should.

use std::collections::{BTreeMap, BTreeSet};

use super::CaseKey;
use super::case::CaseTally;
use crate::model::{
    ActivationPart, ActivationRates, ActivationSummary, Arm, Expect, PredictedActivation, Routed, TrialRecord,
};
use crate::stats::{ALPHA, Confusion, rates};

/// What the runs of a case say about activation.
#[derive(Debug, Default)]
pub struct Activity {
    pub expect: Option<Expect>,
    pub all: Outcomes,
    /// The same for each skill that the case is about.
    skills: BTreeMap<String, Outcomes>,
    /// The skill that was wanted and one that was taken up.
    routes: BTreeMap<(Option<String>, Option<String>), u64>,
    invoked: u64,
}

/// Runs, by what they say.
#[derive(Debug, Clone, Copy, Default)]
pub struct Outcomes {
    pub seen: Confusion,
    acceptable: u64,
    /// Runs that cannot tell, by what was wanted of them.
    pub unknown_must: u64,
    pub unknown_must_not: u64,
    unknown_either: u64,
}

impl Outcomes {
    fn add(&mut self, expect: Expect, fired: Option<bool>) {
        let count = match (expect, fired) {
            (Expect::Must, Some(true)) => &mut self.seen.tp,
            (Expect::Must, Some(false)) => &mut self.seen.fn_,
            (Expect::Must, None) => &mut self.unknown_must,
            (Expect::MustNot, Some(true)) => &mut self.seen.fp,
            (Expect::MustNot, Some(false)) => &mut self.seen.tn,
            (Expect::MustNot, None) => &mut self.unknown_must_not,
            (Expect::Either, Some(_)) => &mut self.acceptable,
            (Expect::Either, None) => &mut self.unknown_either,
        };
        *count += 1;
    }

    fn unknown(&self) -> u64 {
        self.unknown_must + self.unknown_must_not + self.unknown_either
    }

    /// What would have been seen had every run that cannot tell gone wrong.
    pub fn worst(&self) -> Confusion {
        let wrong = Confusion { fn_: self.unknown_must, fp: self.unknown_must_not, ..Confusion::default() };
        self.seen.plus(wrong)
    }
}

impl Activity {
    pub fn add(&mut self, record: &TrialRecord) {
        // Without the skill, nothing can fire.
        let Some(expect) = record.expect.filter(|_| record.condition.arm != Arm::WithoutSkill) else {
            return;
        };
        self.expect = Some(expect);
        if record.activation().is_none() {
            self.invoked += 1;
            return;
        }
        let fired = record.observed_firing();
        self.count(
            expect,
            fired,
            &record.skills.about,
            &record.skills.activated,
            record.ended.can_be_marked(),
        );
        if fired.is_some() && !record.skills.about.is_empty() {
            self.route(record, expect);
        }
    }

    /// The same of what was guessed, for those who keep guesses apart.
    pub fn add_predicted(&mut self, record: &TrialRecord) {
        let with_skill = record.condition.arm != Arm::WithoutSkill;
        let Some(guess) = record.predicted.as_ref().filter(|_| with_skill) else { return };
        self.expect = Some(guess.expect);
        let chosen = guess.chosen.as_deref().unwrap_or_default();
        self.count(guess.expect, guess.fires(), &guess.about, chosen, true);
    }

    /// Counts a run. In one that did not finish, a skill that was not activated might have been later.
    fn count(
        &mut self,
        expect: Expect,
        fired: Option<bool>,
        about: &[String],
        activated: &[String],
        finished: bool,
    ) {
        self.all.add(expect, fired);
        for skill in about {
            let own = fired.map(|_| activated.contains(skill)).filter(|activated| *activated || finished);
            self.skills.entry(skill.clone()).or_default().add(expect, own);
        }
    }

    fn route(&mut self, record: &TrialRecord, expect: Expect) {
        let expected = match expect {
            Expect::Must => record.skills.about.first().cloned(),
            Expect::MustNot => None,
            Expect::Either => return,
        };
        let activated = &record.skills.activated;
        if activated.is_empty() {
            *self.routes.entry((expected, None)).or_default() += 1;
            return;
        }
        for skill in activated {
            *self.routes.entry((expected.clone(), Some(skill.clone()))).or_default() += 1;
        }
    }

    /// Runs in which it fired.
    pub fn fired(&self) -> u64 {
        self.all.seen.tp + self.all.seen.fp
    }

    /// Runs that can tell.
    pub fn told(&self) -> u64 {
        self.all.seen.runs()
    }
}

/// `None` if nobody was to guess.
pub fn predicted(cases: &BTreeMap<CaseKey, CaseTally>) -> Option<PredictedActivation> {
    let asked: Vec<&Activity> =
        cases.values().map(|case| &case.predicted).filter(|guesses| guesses.expect.is_some()).collect();
    let all = || rates_of(asked.iter().map(|guesses| &guesses.all));
    (!asked.is_empty()).then(|| PredictedActivation { all: all(), skills: of_skills(&asked) })
}

/// Each skill alone.
fn of_skills(asked: &[&Activity]) -> Vec<ActivationPart> {
    let names: BTreeSet<&String> = asked.iter().flat_map(|activity| activity.skills.keys()).collect();
    let one = |name: &&String| part(name, asked.iter().filter_map(|activity| activity.skills.get(*name)));
    names.iter().map(one).collect()
}

/// `None` if no case asks about activation.
pub fn summary(cases: &BTreeMap<CaseKey, CaseTally>) -> Option<ActivationSummary> {
    let asked: Vec<(&CaseKey, &Activity)> = cases
        .iter()
        .map(|(key, case)| (key, &case.activity))
        .filter(|(_, activity)| activity.expect.is_some())
        .collect();
    if asked.is_empty() {
        return None;
    }
    let parts = |of: fn(&CaseKey) -> &str| {
        let names: BTreeSet<&str> = asked.iter().map(|(key, _)| of(key)).collect();
        let one = |name: &&str| {
            part(name, asked.iter().filter(|(key, _)| of(key) == *name).map(|(_, activity)| &activity.all))
        };
        names.iter().map(one).collect()
    };
    let unmeasured = asked.iter().filter(|(_, activity)| {
        let silent = activity.all.seen.runs() + activity.all.acceptable == 0;
        silent && activity.all.unknown() > 0
    });
    Some(ActivationSummary {
        all: rates_of(asked.iter().map(|(_, activity)| &activity.all)),
        skills: of_skills(&asked.iter().map(|(_, activity)| *activity).collect::<Vec<_>>()),
        modes: parts(|key| &key.mode),
        agents: parts(|key| &key.agent),
        routing: routing(asked.iter().map(|(_, activity)| *activity)),
        unmeasured: unmeasured.count() as u64,
        invoked: asked.iter().map(|(_, activity)| activity.invoked).sum(),
    })
}

fn part<'o>(name: &str, outcomes: impl Iterator<Item = &'o Outcomes>) -> ActivationPart {
    ActivationPart { name: name.to_owned(), rates: rates_of(outcomes) }
}

fn rates_of<'o>(outcomes: impl Iterator<Item = &'o Outcomes>) -> ActivationRates {
    let outcomes: Vec<&Outcomes> = outcomes.collect();
    let cases: Vec<Confusion> = outcomes.iter().map(|of| of.seen).collect();
    let Confusion { tp, fp, tn, fn_ } = cases.iter().copied().fold(Confusion::default(), Confusion::plus);
    let found = rates(&cases, ALPHA);
    ActivationRates {
        tp,
        fp,
        tn,
        fn_,
        acceptable: outcomes.iter().map(|of| of.acceptable).sum(),
        error: outcomes.iter().map(|of| of.unknown()).sum(),
        precision: found.precision,
        recall: found.recall,
        f1: found.f1,
        accuracy: found.accuracy,
    }
}

fn routing<'a>(activities: impl Iterator<Item = &'a Activity>) -> Vec<Routed> {
    let mut all: BTreeMap<&(Option<String>, Option<String>), u64> = BTreeMap::new();
    for (route, runs) in activities.flat_map(|activity| &activity.routes) {
        *all.entry(route).or_default() += runs;
    }
    all.into_iter()
        .map(|((expected, fired), runs)| Routed { expected: expected.clone(), fired: fired.clone(), runs })
        .collect()
}
