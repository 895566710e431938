//! One case of a comparison: its trials on each side, and its known noise.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use super::{CaseHistory, Dimension, RunCounts};
use crate::model::{Digest, Noise, NoisyCase, TrialRecord, Verdict};
use crate::stats::{ALPHA, Cluster, clopper_pearson};

/// What makes a case the same case on both sides.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct CaseIdentity {
    /// The name of the suite.
    pub suite: String,
    /// The id of the case.
    pub id: String,
    /// `None`, like the others below, where it is what is compared.
    pub agent: Option<String>,
    /// `None` is also the agent's own choice.
    pub model: Option<String>,
    /// The name of the arm; `None` if arms are compared.
    pub arm: Option<String>,
    /// The name of the mode; `None` if modes are compared.
    pub mode: Option<String>,
}

/// The trials of one case on one side.
#[derive(Debug, Default)]
pub struct ComparedCaseRuns {
    pub cluster: Cluster,
    not_scored: u64,
    reused: u64,
    seconds: Vec<f64>,
    costs: Vec<Option<f64>>,
    /// The digests of the case, and of the setups that its runs are repeats of. Normally there is one of each.
    contents: BTreeSet<Digest>,
    setups: BTreeSet<Digest>,
}

impl ComparedCaseRuns {
    fn add(&mut self, record: &TrialRecord) {
        let Cluster { passed, runs } = self.cluster;
        match &record.verdict {
            Verdict::Pass => self.cluster = Cluster::new(passed + 1, runs + 1),
            Verdict::Fail => self.cluster = Cluster::new(passed, runs + 1),
            Verdict::NotScored(_) => self.not_scored += 1,
        }
        self.reused += u64::from(record.is_reused());
        self.seconds.push(record.seconds);
        self.costs.push(record.cost_usd);
        if let Some(repeats) = &record.repeats {
            self.contents.insert(repeats.case.clone());
            self.setups.insert(repeats.setup.clone());
        }
    }

    pub fn counts(&self) -> RunCounts {
        let Cluster { passed, runs } = self.cluster;
        RunCounts { passed, runs, not_scored: self.not_scored, reused: self.reused }
    }

    /// Gives the digest of the case, if all runs were of the same one.
    pub fn content(&self) -> Option<&Digest> {
        self.contents.first().filter(|_| self.contents.len() == 1)
    }

    /// Adds up the known results of the setups that these runs are repeats of.
    pub fn known_results(&self, history: &CaseHistory) -> Cluster {
        let known = self.setups.iter().filter_map(|setup| history.get(setup));
        known.fold(Cluster::default(), |sum, more| {
            Cluster::new(sum.passed + more.passed, sum.runs + more.runs)
        })
    }

    pub fn mean_seconds(&self) -> Option<f64> {
        mean(&self.seconds)
    }

    /// Gives the mean cost of a trial. `None` if the cost of any trial is unknown.
    pub fn mean_cost(&self) -> Option<f64> {
        mean(&self.costs.iter().copied().collect::<Option<Vec<f64>>>()?)
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Groups the records by case, without the dimensions in which the sides differ.
pub fn group_runs_by_case(
    records: &[&TrialRecord],
    dropped: &[Dimension],
) -> BTreeMap<CaseIdentity, ComparedCaseRuns> {
    let mut cases: BTreeMap<CaseIdentity, ComparedCaseRuns> = BTreeMap::new();
    for record in records {
        let kept = |dimension: Dimension| (!dropped.contains(&dimension)).then(|| dimension.value_in(record));
        let name = CaseIdentity {
            suite: record.suite.clone(),
            id: record.case.clone(),
            agent: kept(Dimension::Agent),
            model: record.condition.model.clone().filter(|_| !dropped.contains(&Dimension::Model)),
            arm: kept(Dimension::Arm),
            mode: kept(Dimension::Mode),
        };
        cases.entry(name).or_default().add(record);
    }
    cases
}

/// The fewest trials from which the noise of a case is known well enough.
const MIN_NOISE_RUNS: u64 = 5;

/// Gives the pass rate of a case when nothing is changed. Of the rates that its trials allow, this is the one
/// nearest to one half: it makes two sides differ by chance most often, so that a change is claimed only with good
/// reason.
pub fn known_pass_rate(noise: &Noise, name: &CaseIdentity, runs: &ComparedCaseRuns) -> Option<f64> {
    let known = find_known_noise(noise, name, runs.content()).filter(|case| case.runs >= MIN_NOISE_RUNS)?;
    let at = clopper_pearson(known.passed, known.runs, ALPHA)?;
    Some(0.5f64.clamp(at.low, at.high))
}

pub fn known_flip_rate(noise: &Noise, name: &CaseIdentity, runs: &ComparedCaseRuns) -> Option<f64> {
    find_known_noise(noise, name, runs.content())?.flip_rate
}

/// Finds the known noise of exactly this case: the noise of one agent says nothing about another agent.
fn find_known_noise<'n>(
    noise: &'n Noise,
    name: &CaseIdentity,
    content: Option<&Digest>,
) -> Option<&'n NoisyCase> {
    noise.cases.iter().find(|case| {
        case.is_about_case(content, &name.suite, &name.id)
            && case.model == name.model
            && [(&name.agent, &case.agent), (&name.arm, &case.arm), (&name.mode, &case.mode)]
                .iter()
                .all(|(wanted, known)| wanted.as_ref() == Some(*known))
    })
}
