//! What will be run.
//!
//! In: suites with their settings. Out: `Plan`, trials in the order they start. Never: touches
//! the disk.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::options::CaseKind;
use crate::settings::Settings;
use practicum_core::model::{
    Arm, Case, CasePrompt, CaseSample, Check, CheckKind, Condition, Digest, Gate, Suite, Trial, TrialId,
};

mod probes;

/// A suite and how it is run.
#[derive(Debug, Clone)]
pub struct PlannedSuite {
    pub suite: Suite,
    pub settings: Settings,
    /// The agents by name, `auto` resolved.
    pub agents: Vec<String>,
    /// The project its files belong to.
    pub project: std::path::PathBuf,
    /// The script that stands in for the model, if one does.
    pub script: Option<std::path::PathBuf>,
    /// What its mode adds to the agent's system prompt.
    pub mode_text: Option<String>,
    /// Stands in for a skill command where an agent has none and the suite says nothing itself.
    pub derived_system: Option<String>,
    pub missing: MissingRequirements,
}

/// What a suite names and this machine does not have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MissingRequirements {
    /// Skills under test, a sentence each. Without them no case of the suite can run.
    pub skills: Vec<String>,
    /// Files and folders of single cases, by the ids of the cases.
    pub files: BTreeMap<String, Vec<String>>,
}

impl MissingRequirements {
    pub fn is_empty(&self) -> bool {
        self.skills.is_empty() && self.files.is_empty()
    }
}

/// Why a case without checks is not run.
const NO_CHECK: &str = "it has no check, so no run of it could be scored";

impl PlannedSuite {
    /// Why a case cannot run on this machine, or why running it would tell nothing; `None` if it can.
    pub fn why_not_started(&self, case: &Case) -> Option<String> {
        let files = self.missing.files.get(&case.id).map(Vec::as_slice).unwrap_or_default();
        let mut reasons = [self.missing.skills.as_slice(), files].concat();
        // The agent would be paid for a trial that can never be scored.
        if case.checks.is_empty() {
            reasons.push(NO_CHECK.to_owned());
        }
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }

    /// How long an agent may work on a case. A case knows best how much there is to do in it.
    pub fn time_limit(&self, case: &Case) -> Duration {
        case.timeout.unwrap_or(self.settings.timeout.value)
    }
}

#[derive(Debug, Clone, Default)]
pub struct Plan {
    pub suites: Vec<PlannedSuite>,
    pub trials: Vec<Trial>,
    /// The part of the cases that is run, where a part was asked for and is not all of them.
    pub sample: Option<CaseSample>,
    /// Files that were found and not read as evals.
    pub skipped: Vec<std::path::PathBuf>,
}

/// Which of the planned cases are wanted.
#[derive(Debug, Clone, Default)]
pub struct CaseFilter {
    /// Globs over case ids; empty means all.
    pub cases: Vec<glob::CaseGlob>,
    pub only: Option<CaseKind>,
    /// Part `.0` of `.1`, from 1. All trials of a case are in one part.
    pub shard: Option<(u32, u32)>,
    /// The cases of a sample, by suite and id; `None` means all.
    pub sample: Option<BTreeSet<(String, String)>>,
}

impl CaseFilter {
    /// Whether it asks for a part of something.
    pub fn is_part_of(&self, suites: &[PlannedSuite]) -> bool {
        self.shard.is_some() && suites.iter().any(|planned| self.wants_some_of(&planned.suite))
    }

    /// Whether it selects some cases by their ids or their kind.
    pub fn is_selective(&self) -> bool {
        !self.cases.is_empty() || self.only.is_some()
    }

    /// The cases of a suite that it wants, whichever part of the whole they fall into.
    pub fn wanted_cases<'s>(&self, suite: &'s Suite) -> Vec<&'s Case> {
        let whole = CaseFilter { shard: None, ..self.clone() };
        suite.cases.iter().filter(|case| whole.wants(suite, case)).collect()
    }

    /// Whether it wants any case of a suite, whichever part of the whole that case falls into.
    pub fn wants_some_of(&self, suite: &Suite) -> bool {
        !self.wanted_cases(suite).is_empty()
    }

    /// Whether a case of this id may be wanted.
    pub fn wants_id(&self, id: &str) -> bool {
        self.cases.is_empty() || self.cases.iter().any(|glob| glob.matches(id))
    }

    /// The same with at most so many cases. Which ones is drawn by their names, so that the same cases are
    /// drawn again by the same command and when a run is resumed.
    #[must_use]
    pub fn with_at_most(self, most: usize, suites: &[PlannedSuite]) -> Self {
        let cases = suites
            .iter()
            .flat_map(|planned| planned.suite.cases.iter().map(move |case| (&planned.suite, case)));
        let wanted = cases.filter(|(suite, case)| self.wants(suite, case));
        let named = wanted.map(|(suite, case)| (suite.name.clone(), case.id.clone()));
        let mut drawn: Vec<(Digest, (String, String))> = named
            .map(|name| (Digest::of_parts(["sample".as_bytes(), name.0.as_bytes(), name.1.as_bytes()]), name))
            .collect();
        drawn.sort_by(|(one, _), (other, _)| one.as_str().cmp(other.as_str()));
        Self { sample: Some(drawn.into_iter().take(most).map(|(_, name)| name).collect()), ..self }
    }

    /// The part of the wanted cases that a sample or a shard leaves; `None` where that is all of them.
    fn sample_of(&self, suites: &[PlannedSuite]) -> Option<CaseSample> {
        let count = |filter: &CaseFilter| -> u64 {
            let suites = suites.iter().map(|planned| &planned.suite);
            suites
                .map(|suite| suite.cases.iter().filter(|case| filter.wants(suite, case)).count() as u64)
                .sum()
        };
        let (cases, of) = (count(self), count(&CaseFilter { shard: None, sample: None, ..self.clone() }));
        let shard = self.shard.map(|(part, parts)| format!("--shard {part}/{parts}"));
        let drawn = self.sample.as_ref().map(|sample| format!("--max-evals {}", sample.len()));
        let by = shard.into_iter().chain(drawn).collect::<Vec<String>>().join(" ");
        (cases < of).then_some(CaseSample { cases, of, by })
    }

    fn wants(&self, suite: &Suite, case: &Case) -> bool {
        let named = self.wants_id(&case.id);
        let of_kind = match self.only {
            None => true,
            Some(CaseKind::Activation) => is_activation(case),
            Some(CaseKind::Artifact) => !is_activation(case),
        };
        let drawn = || {
            let is_it = |sample: &BTreeSet<_>| sample.contains(&(suite.name.clone(), case.id.clone()));
            self.sample.as_ref().is_none_or(is_it)
        };
        named
            && of_kind
            && drawn()
            && self.shard.is_none_or(|(part, parts)| shard_of(suite, case, parts) == part)
    }
}

/// By name and not by position, so that a new case moves no other to another shard.
fn shard_of(suite: &Suite, case: &Case, parts: u32) -> u32 {
    let digest = Digest::of_parts([suite.name.as_bytes(), case.id.as_bytes()]);
    let number = digest.as_str().get(..8).and_then(|hex| u32::from_str_radix(hex, 16).ok()).unwrap_or(0);
    number % parts.max(1) + 1
}

/// Whether a case asks only whether skills are activated.
pub fn is_activation(case: &Case) -> bool {
    !case.checks.is_empty() && case.checks.iter().all(|check| matches!(check.kind, CheckKind::Activation(_)))
}

mod glob {
    /// A shell-like pattern with `*` and `?`, over a whole id.
    #[derive(Debug, Clone)]
    pub struct CaseGlob {
        regex: regex::Regex,
        /// Whether it fits only the one id that it spells out.
        pub is_literal: bool,
    }

    impl CaseGlob {
        pub fn new(text: &str) -> Option<Self> {
            let escaped = regex::escape(text).replace(r"\*", ".*").replace(r"\?", ".");
            let regex = regex::Regex::new(&format!("(?s)^(?:{escaped})$")).ok()?;
            Some(Self { regex, is_literal: !text.contains(['*', '?']) })
        }

        pub fn matches(&self, id: &str) -> bool {
            self.regex.is_match(id)
        }
    }
}

pub use glob::CaseGlob;

impl Plan {
    pub fn suite_and_case(&self, trial: &Trial) -> (&PlannedSuite, &Case) {
        let planned = &self.suites[trial.suite];
        (planned, &planned.suite.cases[trial.case])
    }

    /// Why a trial cannot run on this machine; `None` if it can.
    pub fn why_not_started(&self, trial: &Trial) -> Option<String> {
        let (planned, case) = self.suite_and_case(trial);
        planned.why_not_started(case)
    }
}

/// Lays out the trials. Attempts are outermost, so that the arms of a case run close together in
/// time and a broken run still has something of every case.
pub fn build_plan(mut suites: Vec<PlannedSuite>, filter: &CaseFilter) -> Plan {
    let most_attempts = suites
        .iter()
        .flat_map(|planned| planned.suite.cases.iter().map(|case| attempts(planned, case)))
        .max()
        .unwrap_or(0);
    let mut trials = Vec::new();
    for attempt in 1..=most_attempts {
        for (suite_index, planned) in suites.iter().enumerate() {
            for (case_index, case) in planned.suite.cases.iter().enumerate() {
                if !filter.wants(&planned.suite, case) || attempt > attempts(planned, case) {
                    continue;
                }
                for condition in conditions(planned, case) {
                    let id = TrialId::new(&planned.suite.name, &case.id, &condition, attempt);
                    trials.push(Trial { id, suite: suite_index, case: case_index, condition, attempt });
                }
            }
        }
    }
    leave_out_unmeasured_gates(&mut suites, &trials);
    let sample = filter.sample_of(&suites);
    Plan { suites, trials, sample, skipped: Vec::new() }
}

/// Leaves out the gates of the eval files that the planned trials do not ask for. A suite that runs only without its
/// skill is measured to be compared with, so that no gate of its file applies. A gate about cases that the user left
/// out neither holds nor fails; where that leaves none, every case must pass. The user can still set one.
pub fn leave_out_unmeasured_gates(suites: &mut [PlannedSuite], trials: &[Trial]) {
    for (index, PlannedSuite { suite, .. }) in suites.iter_mut().enumerate() {
        let of_suite = || trials.iter().filter(|trial| trial.suite == index);
        if of_suite().next().is_none() || suite.gates.is_empty() {
            continue;
        }
        if !of_suite().any(|trial| trial.condition.arm.has_skill()) {
            suite.gates.clear();
            continue;
        }
        let planned: BTreeSet<usize> = of_suite().map(|trial| trial.case).collect();
        let cases = || planned.iter().map(|case| &suite.cases[*case]);
        let is_asked =
            |gate: &Gate| suite.can_measure_on(gate.name, cases()) || !suite.has_checks_for(gate.name);
        let gates: Vec<Gate> = suite.gates.iter().copied().filter(is_asked).collect();
        suite.gates = if gates.is_empty() { vec![Gate::ALL_CASES_PASS] } else { gates };
    }
}

/// Sets gates by the user's word: where a suite has one of that name, else where it can be measured.
/// Where none can, all have it, so that the run says that it was not measured.
pub fn set_gates(suites: &mut [PlannedSuite], asked: &[Gate]) {
    for gate in asked {
        let fits = |suite: &Suite| {
            suite.gates.iter().any(|own| own.name == gate.name) || suite.has_checks_for(gate.name)
        };
        let any = suites.iter().any(|planned| fits(&planned.suite));
        for PlannedSuite { suite, .. } in suites.iter_mut().filter(|planned| !any || fits(&planned.suite)) {
            match suite.gates.iter_mut().find(|own| own.name == gate.name) {
                Some(own) => own.threshold = gate.threshold,
                None => suite.gates.push(*gate),
            }
        }
    }
}

/// What a flag says beats what the case says; a case beats everything less particular.
fn attempts(planned: &PlannedSuite, case: &Case) -> u32 {
    match (&planned.settings.repeat.source, case.repeat) {
        (crate::settings::SettingSource::Flag | crate::settings::SettingSource::Environment(_), _)
        | (_, None) => planned.settings.repeat.value,
        (_, Some(repeat)) => repeat,
    }
}

fn conditions(planned: &PlannedSuite, case: &Case) -> Vec<Condition> {
    let settings = &planned.settings;
    let mut conditions = Vec::new();
    for agent in &planned.agents {
        for arm in arms(planned, case) {
            let condition = Condition {
                agent: agent.clone(),
                model: settings.model.value.clone(),
                arm,
                mode: settings.mode.value.clone(),
            };
            // Said twice is not done twice: a trial is known by its condition.
            if !conditions.contains(&condition) {
                conditions.push(condition);
            }
        }
    }
    conditions
}

/// A skill that is not there cannot be activated, so a case about nothing else has no without arm; and
/// a skill's own command that is given nothing says nothing without the skill.
fn arms(planned: &PlannedSuite, case: &Case) -> Vec<Arm> {
    let needs_skill = is_activation(case) || is_bare_command(&planned.suite, case);
    let wanted = planned.settings.arms.value.iter().copied();
    wanted.filter(|arm| !(needs_skill && *arm == Arm::WithoutSkill)).collect()
}

/// Whether a case invokes the skill by its command and says nothing beside.
pub fn is_bare_command(suite: &Suite, case: &Case) -> bool {
    match &case.prompt {
        CasePrompt::SkillCommand { args } => suite.prompt_without_skill(args).is_none(),
        CasePrompt::Turns(_) => false,
    }
}

/// The checks of a case that apply under a condition: without the skill, nothing can be asked
/// about its activation.
pub fn applicable_checks<'c>(case: &'c Case, condition: &Condition) -> Vec<&'c Check> {
    let without = condition.arm == Arm::WithoutSkill;
    case.checks.iter().filter(|check| !(without && matches!(check.kind, CheckKind::Activation(_)))).collect()
}
