use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::{Dimension, RunCounts};
use crate::model::{Noise, NoisyCase, TrialRecord, Verdict};
use crate::stats::{ALPHA, Cluster, wilson};

/// What makes a case the same case on both sides.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct CaseIdentity {
    pub suite: String,
    pub id: String,
    /// `None`, like the others below, where it is what is compared.
    pub agent: Option<String>,
    /// `None` is also the agent's own choice.
    pub model: Option<String>,
    pub arm: Option<String>,
    pub mode: Option<String>,
}

/// The runs of one case on one side.
#[derive(Debug, Default)]
pub struct ComparedCaseRuns {
    pub cluster: Cluster,
    not_scored: u64,
    seconds: Vec<f64>,
    costs: Vec<Option<f64>>,
}

impl ComparedCaseRuns {
    fn add(&mut self, record: &TrialRecord) {
        let Cluster { passed, runs } = self.cluster;
        match &record.verdict {
            Verdict::Pass => self.cluster = Cluster::new(passed + 1, runs + 1),
            Verdict::Fail => self.cluster = Cluster::new(passed, runs + 1),
            Verdict::NotScored(_) => self.not_scored += 1,
        }
        self.seconds.push(record.seconds);
        self.costs.push(record.cost_usd);
    }

    pub fn counts(&self) -> RunCounts {
        RunCounts { passed: self.cluster.passed, runs: self.cluster.runs, not_scored: self.not_scored }
    }

    pub fn mean_seconds(&self) -> Option<f64> {
        mean(&self.seconds)
    }

    /// `None` where the cost of any run is not known.
    pub fn mean_cost(&self) -> Option<f64> {
        mean(&self.costs.iter().copied().collect::<Option<Vec<f64>>>()?)
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The records by case, without the dimensions that are compared.
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

/// Fewer runs say too little of what a case does when nothing is changed.
const MIN_NOISE_RUNS: u64 = 5;

/// The rate at which a case passes when nothing is changed: of those that its runs allow, the one
/// that differs from itself most.
pub fn known_pass_rate(noise: &Noise, name: &CaseIdentity) -> Option<f64> {
    let known = find_known_noise(noise, name).filter(|case| case.runs >= MIN_NOISE_RUNS)?;
    let at = wilson(known.passed, known.runs, ALPHA)?;
    Some(0.5f64.clamp(at.low, at.high))
}

pub fn known_flip_rate(noise: &Noise, name: &CaseIdentity) -> Option<f64> {
    find_known_noise(noise, name)?.flip_rate
}

/// What is known of exactly this case: noise of one agent says nothing of another's.
fn find_known_noise<'n>(noise: &'n Noise, name: &CaseIdentity) -> Option<&'n NoisyCase> {
    noise.cases.iter().find(|case| {
        (&case.suite, &case.id, &case.model) == (&name.suite, &name.id, &name.model)
            && [(&name.agent, &case.agent), (&name.arm, &case.arm), (&name.mode, &case.mode)]
                .iter()
                .all(|(wanted, known)| wanted.as_ref() == Some(*known))
    })
}
