//! Plans a run: which trials it has, and in which order they start.
//!
//! In: suites with their settings. Out: `Plan`. Never: touches the disk.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::plan::options::CaseKind;
use crate::plan::settings::Settings;
use practicum_core::model::{
    Arm, Case, CasePrompt, CaseSample, Check, CheckKind, Condition, Digest, Gate, Suite, Trial, TrialId,
};

pub mod options;
pub mod settings;
pub mod shard_balance;
pub mod suite_quality;
pub mod system_prompt;
pub mod trial_key;

/// A suite, and how it is run.
#[derive(Debug, Clone)]
pub struct PlannedSuite {
    pub suite: Suite,
    pub settings: Settings,
    /// The agents by name, with `auto` resolved.
    pub agents: Vec<String>,
    /// The project that its files belong to.
    pub project: std::path::PathBuf,
    /// The script that answers in place of the model, if there is one.
    pub script: Option<std::path::PathBuf>,
    /// The text that its mode adds to the agent's system prompt.
    pub mode_text: Option<String>,
    /// The text that replaces a skill command if the agent has no such commands and the suite has no text of its
    /// own.
    pub derived_system: Option<String>,
    pub missing: MissingRequirements,
}

/// The things that a suite names and this machine does not have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MissingRequirements {
    /// Missing skills under test, one sentence each. Without them no case of the suite can run.
    pub skills: Vec<String>,
    /// Missing files and folders of single cases, by case id.
    pub files: BTreeMap<String, Vec<String>>,
    /// Why single cases cannot be measured with single agents, by case id and agent.
    pub for_agents: BTreeMap<(String, String), String>,
}

impl MissingRequirements {
    pub fn is_empty(&self) -> bool {
        self.skills.is_empty() && self.files.is_empty() && self.for_agents.is_empty()
    }
}

/// The reason why a case without checks is not run.
const NO_CHECK: &str = "it has no check, so no run of it could be scored";

impl PlannedSuite {
    /// Explains why a case cannot run on this machine with this agent, or why running it is useless; `None` if it can
    /// run.
    pub fn why_not_started(&self, case: &Case, agent: &str) -> Option<String> {
        let files = self.missing.files.get(&case.id).map(Vec::as_slice).unwrap_or_default();
        let mut reasons = [self.missing.skills.as_slice(), files].concat();
        reasons.extend(self.missing.for_agents.get(&(case.id.clone(), agent.to_owned())).cloned());
        reasons.extend(case.unsupported.clone());
        // The agent would cost money for a trial that can never be scored.
        if case.checks.is_empty() {
            reasons.push(NO_CHECK.to_owned());
        }
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }

    /// Gives the time limit of an agent for a case. The case's own limit wins over the setting.
    pub fn time_limit(&self, case: &Case) -> Duration {
        case.timeout.unwrap_or(self.settings.timeout.value)
    }
}

/// The trials of a run in the order in which they start.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    pub suites: Vec<PlannedSuite>,
    pub trials: Vec<Trial>,
    /// The part of the cases that is run, if it is not all of them.
    pub sample: Option<CaseSample>,
    /// Files that were found but not read as evals.
    pub skipped: Vec<std::path::PathBuf>,
}

/// How many of the patterns that chose the cases are shown in reports.
const MOST_GLOBS_SHOWN: usize = 3;

/// A filter that selects cases of the suites.
#[derive(Debug, Clone, Default)]
pub struct CaseFilter {
    /// Globs over case ids; empty means all.
    pub cases: Vec<glob::CaseGlob>,
    pub only: Option<CaseKind>,
    /// Part `.0` of `.1`, from 1. All trials of a case are in one part.
    pub shard: Option<(u32, u32)>,
    /// The part of each case, if the parts are balanced by durations; otherwise names decide.
    pub parts: Option<BTreeMap<shard_balance::CaseName, u32>>,
    /// The cases of a sample, by suite and id; `None` means all.
    pub sample: Option<BTreeSet<(String, String)>>,
}

impl CaseFilter {
    /// Says whether this is a shard of suites with at least one selected case.
    pub(crate) fn is_part_of(&self, suites: &[PlannedSuite]) -> bool {
        self.shard.is_some() && suites.iter().any(|planned| self.wants_some_of(&planned.suite))
    }

    /// Says whether the filter selects cases by id or kind.
    pub fn is_selective(&self) -> bool {
        !self.cases.is_empty() || self.only.is_some()
    }

    /// Gives the selected cases of a suite in all shards.
    pub(crate) fn wanted_cases<'s>(&self, suite: &'s Suite) -> Vec<&'s Case> {
        let whole = CaseFilter { shard: None, ..self.clone() };
        suite.cases.iter().filter(|case| whole.wants(suite, case)).collect()
    }

    /// Says whether any case of a suite is selected, in whatever shard.
    pub fn wants_some_of(&self, suite: &Suite) -> bool {
        !self.wanted_cases(suite).is_empty()
    }

    /// Says whether a case with this id may be selected.
    pub fn wants_id(&self, id: &str) -> bool {
        self.cases.is_empty() || self.cases.iter().any(|glob| glob.matches(id))
    }

    /// Divides the cases into parts that take about the same time.
    #[must_use]
    pub(crate) fn balanced_by(
        self,
        durations: &std::collections::HashMap<shard_balance::CaseName, f64>,
        suites: &[PlannedSuite],
    ) -> Self {
        let Some((_, parts)) = self.shard else { return self };
        let suites = suites.iter().map(|planned| &planned.suite);
        let cases = suites.flat_map(|suite| {
            self.wanted_cases(suite).into_iter().map(move |case| (suite.name.clone(), case.id.clone()))
        });
        let parts = shard_balance::balance(cases.collect(), durations, parts);
        Self { parts: Some(parts), ..self }
    }

    /// Limits the filter to at most `most` cases. They are drawn by a digest of their names, so that the same
    /// command, or a resumed run, draws the same cases again.
    #[must_use]
    pub(crate) fn with_at_most(self, most: usize, suites: &[PlannedSuite]) -> Self {
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

    /// Describes the part of the cases that is run, and the options that chose it; `None` if it is all of them.
    fn sample_of(&self, suites: &[PlannedSuite]) -> Option<CaseSample> {
        let count = |filter: &CaseFilter| -> u64 {
            let suites = suites.iter().map(|planned| &planned.suite);
            suites
                .map(|suite| suite.cases.iter().filter(|case| filter.wants(suite, case)).count() as u64)
                .sum()
        };
        let (cases, of) = (count(self), count(&CaseFilter::default()));
        let named = self.cases.iter().take(MOST_GLOBS_SHOWN).map(|glob| format!("--case {}", glob.text));
        let more = self.cases.len().checked_sub(MOST_GLOBS_SHOWN).filter(|more| *more > 0);
        let more = more.map(|more| format!("and {more} more"));
        let only = self.only.map(|only| format!("--only {}", only.name()));
        let shard = self.shard.map(|(part, parts)| format!("--shard {part}/{parts}"));
        let drawn = self.sample.as_ref().map(|sample| format!("--max-evals {}", sample.len()));
        let by = named.chain(more).chain(only).chain(shard).chain(drawn).collect::<Vec<String>>().join(" ");
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
            && self.shard.is_none_or(|(part, parts)| self.part_of(suite, case, parts) == part)
    }
}

impl CaseFilter {
    fn part_of(&self, suite: &Suite, case: &Case, parts: u32) -> u32 {
        let balanced = self.parts.as_ref().and_then(|of| of.get(&(suite.name.clone(), case.id.clone())));
        balanced.copied().unwrap_or_else(|| shard_of(suite, case, parts))
    }
}

/// Gives the shard of a case. It depends on names and not on positions, so that a new case does not move others to
/// another shard.
fn shard_of(suite: &Suite, case: &Case, parts: u32) -> u32 {
    let digest = Digest::of_parts([suite.name.as_bytes(), case.id.as_bytes()]);
    let number = digest.as_str().get(..8).and_then(|hex| u32::from_str_radix(hex, 16).ok()).unwrap_or(0);
    number % parts.max(1) + 1
}

/// Says whether a case checks only the activation of skills.
pub(crate) fn is_activation(case: &Case) -> bool {
    !case.checks.is_empty() && case.checks.iter().all(|check| matches!(check.kind, CheckKind::Activation(_)))
}

mod glob {
    /// A shell-like pattern with `*` and `?` for a whole id.
    #[derive(Debug, Clone)]
    pub struct CaseGlob {
        pub text: String,
        regex: regex::Regex,
        /// Whether the pattern has no wildcard and so matches only one id.
        pub is_literal: bool,
    }

    impl CaseGlob {
        pub fn new(text: &str) -> Option<Self> {
            let escaped = regex::escape(text).replace(r"\*", ".*").replace(r"\?", ".");
            let regex = regex::Regex::new(&format!("(?s)^(?:{escaped})$")).ok()?;
            Some(Self { text: text.to_owned(), regex, is_literal: !text.contains(['*', '?']) })
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

    /// Explains why a trial cannot run on this machine; `None` if it can.
    pub fn why_not_started(&self, trial: &Trial) -> Option<String> {
        let (planned, case) = self.suite_and_case(trial);
        planned.why_not_started(case, &trial.condition.agent)
    }
}

/// Builds the list of trials. All first attempts come before all second ones, so that the arms of a case run close
/// together in time and an interrupted run has results for every case.
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

/// Removes the gates of the eval files that the planned trials cannot measure. A suite that runs only without its
/// skill serves as a comparison, so no gate of its file applies. A gate about deselected cases neither holds nor
/// fails; if no other is left, every case must pass. The user can still set a gate.
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

/// Sets the gates that the user asks for: in suites that have a gate of that name or checks that measure it. If
/// there is no such suite, all suites get the gate, so that the run reports that it was not measured.
pub fn set_gates(suites: &mut [PlannedSuite], asked: &[Gate]) {
    for gate in asked {
        let fits = |suite: &Suite| {
            suite.gates.iter().any(|own| own.name == gate.name) || suite.has_checks_for(gate.name)
        };
        let any = suites.iter().any(|planned| fits(&planned.suite));
        for PlannedSuite { suite, .. } in suites.iter_mut().filter(|planned| !any || fits(&planned.suite)) {
            match suite.gates.iter_mut().find(|own| own.name == gate.name) {
                Some(own) => *own = *gate,
                None => suite.gates.push(*gate),
            }
        }
    }
}

/// Gives the number of attempts. A flag or an environment variable wins over the case; the case wins over
/// everything else.
fn attempts(planned: &PlannedSuite, case: &Case) -> u32 {
    match (&planned.settings.repeat.source, case.repeat) {
        (
            crate::plan::settings::SettingSource::Flag | crate::plan::settings::SettingSource::Environment(_),
            _,
        )
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
            // A duplicate is dropped: trials are identified by their condition.
            if !conditions.contains(&condition) {
                conditions.push(condition);
            }
        }
    }
    conditions
}

/// Gives the arms of a case. There is no arm without the skill if the case checks only activation, or if its
/// prompt is only the skill's command: neither means anything without the skill.
fn arms(planned: &PlannedSuite, case: &Case) -> Vec<Arm> {
    let needs_skill = is_activation(case) || is_bare_command(&planned.suite, case);
    let wanted = planned.settings.arms.value.iter().copied();
    wanted.filter(|arm| !(needs_skill && *arm == Arm::WithoutSkill)).collect()
}

/// Says whether a case's prompt is only the skill's command, without further text.
pub(crate) fn is_bare_command(suite: &Suite, case: &Case) -> bool {
    match &case.prompt {
        CasePrompt::SkillCommand { args } => suite.prompt_without_skill(args).is_none(),
        CasePrompt::Turns(_) => false,
    }
}

/// Gives the checks of a case that apply under a condition. Without the skill, activation is not checked.
pub(crate) fn applicable_checks<'c>(case: &'c Case, condition: &Condition) -> Vec<&'c Check> {
    let without = condition.arm == Arm::WithoutSkill;
    case.checks.iter().filter(|check| !(without && matches!(check.kind, CheckKind::Activation(_)))).collect()
}
