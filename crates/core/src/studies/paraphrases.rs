//! Paraphrases: whether activation and result hold if the user says the same in other words.
//!
//! Each case runs with its own wording and with rewordings of it. A wording is a cluster of runs, and the interval of a
//! case is one over its rewordings: it says what to expect of a wording that nobody tried.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::{ActivationExpectation, Estimate, Outcome, TrialRecord, Verdict};
use crate::stats::{ALPHA, Cluster, clustered_rate};

/// A case as it is run in a study of paraphrases: with its own wording, or with another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WordedCase {
    /// The id of the original case.
    pub case: String,
    /// The number of the rewording, from 1; `None` for the wording of the case itself.
    pub rewording: Option<usize>,
    /// The first message of the user.
    pub prompt: String,
}

/// The result of a study of paraphrases as a document: the output of `practicum paraphrase --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "How results hold over rewordings (paraphrase --json)")]
pub struct ParaphraseDocument {
    /// The version of this document's form.
    #[schemars(extend("const" = 1))]
    pub schema_version: u32,
    /// The cases, each with one agent and model.
    pub cases: Vec<ParaphrasedCase>,
}

/// One case with one agent and model, over its rewordings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ParaphrasedCase {
    /// The name of the suite.
    pub suite: String,
    /// The id of the case.
    pub case: String,
    /// The name of the agent.
    pub agent: String,
    /// The requested model; `None` if the agent chose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The share of runs that pass, as a mean over the rewordings, with its interval over rewordings.
    pub result: Estimate,
    /// The share of runs whose activation is right, in the same way; undefined if no run shows it.
    pub activation: Estimate,
    /// The wording of the case itself.
    pub original: WordingResult,
    /// The rewordings, in the order of their file.
    pub rewordings: Vec<WordingResult>,
}

/// The runs of one wording.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WordingResult {
    /// The first message of the user.
    pub prompt: String,
    /// The runs with a verdict.
    pub runs: u64,
    /// Those of them that pass.
    pub passed: u64,
    /// The runs without a verdict.
    pub not_scored: u64,
    /// The runs that show whether the skill was activated.
    pub activation_runs: u64,
    /// Those of them whose activation is right: as the case expects it, or else as with its own wording.
    pub activation_right: u64,
    /// What holds with the wording of the case and not with this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub broke: Vec<BrokenPart>,
}

impl WordingResult {
    /// Gives the number of runs in which a part held, and of all runs that show it.
    pub fn counts_of(&self, part: BrokenPart) -> (u64, u64) {
        match part {
            BrokenPart::Result => (self.passed, self.runs),
            BrokenPart::Activation => (self.activation_right, self.activation_runs),
        }
    }
}

/// What a rewording can break.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BrokenPart {
    /// Most runs pass with the wording of the case, and not with this one.
    Result,
    /// The activation is right in most runs with the wording of the case, and not with this one.
    Activation,
}

impl BrokenPart {
    /// Gives the word for documents and people.
    pub fn name(self) -> &'static str {
        match self {
            BrokenPart::Result => "result",
            BrokenPart::Activation => "activation",
        }
    }
}

impl ParaphraseDocument {
    /// Analyses the records of a run. `cases` says, for each suite and case id of the run, which wording it has.
    pub fn from_records(records: &[TrialRecord], cases: &BTreeMap<(String, String), WordedCase>) -> Self {
        let mut groups: BTreeMap<(&str, &str, &str, Option<&str>), CaseRuns<'_>> = BTreeMap::new();
        for record in records {
            let Some(worded) = cases.get(&(record.suite.clone(), record.case.clone())) else { continue };
            let condition = &record.condition;
            let key = (
                record.suite.as_str(),
                worded.case.as_str(),
                condition.agent.as_str(),
                condition.model.as_deref(),
            );
            groups.entry(key).or_default().entry(worded.rewording).or_default().push((worded, record));
        }
        let cases = groups.into_iter().filter_map(|((suite, case, agent, model), runs)| {
            let (original, rewordings) = analyse_case(&runs)?;
            let clusters = |of: fn(&WordingResult) -> (u64, u64)| -> Estimate {
                let counts = rewordings.iter().map(of).filter(|(_, runs)| *runs > 0);
                let clusters: Vec<Cluster> = counts.map(|(good, runs)| Cluster::new(good, runs)).collect();
                let runs = clusters.iter().map(|cluster| cluster.runs).sum();
                let (value, interval) = clustered_rate(&clusters, ALPHA).unzip();
                Estimate::new(value, interval.map(|of| (of.low, of.high)), runs)
            };
            Some(ParaphrasedCase {
                suite: suite.to_owned(),
                case: case.to_owned(),
                agent: agent.to_owned(),
                model: model.map(str::to_owned),
                result: clusters(|of| (of.passed, of.runs)),
                activation: clusters(|of| (of.activation_right, of.activation_runs)),
                original,
                rewordings,
            })
        });
        Self { schema_version: 1, cases: cases.collect() }
    }

    /// Gives the outcome: a wording that broke something is a failure, a missing verdict leaves the study incomplete.
    pub fn outcome(&self) -> Outcome {
        let wordings = || self.cases.iter().flat_map(|case| case.rewordings.iter().chain([&case.original]));
        if wordings().any(|wording| !wording.broke.is_empty()) {
            Outcome::Failed
        } else if self.cases.is_empty()
            || wordings().any(|wording| wording.runs == 0 || wording.not_scored > 0)
        {
            Outcome::Incomplete
        } else {
            Outcome::Passed
        }
    }
}

/// The runs of a case by the number of the rewording.
type CaseRuns<'r> = BTreeMap<Option<usize>, Vec<(&'r WordedCase, &'r TrialRecord)>>;

fn analyse_case(runs: &CaseRuns<'_>) -> Option<(WordingResult, Vec<WordingResult>)> {
    let own = runs.get(&None)?;
    let expected = expected_activation(own);
    let count = |runs: &[(&WordedCase, &TrialRecord)]| {
        let mut result = WordingResult {
            prompt: runs.first().map(|(worded, _)| worded.prompt.clone()).unwrap_or_default(),
            ..WordingResult::default()
        };
        for (_, record) in runs {
            match record.verdict {
                Verdict::Pass => (result.runs, result.passed) = (result.runs + 1, result.passed + 1),
                Verdict::Fail => result.runs += 1,
                Verdict::NotScored(_) => result.not_scored += 1,
            }
            if let (Some(expected), Some(activated)) = (expected, record.was_activated()) {
                result.activation_runs += 1;
                result.activation_right += u64::from(activated == expected);
            }
        }
        result
    };
    let original = count(own);
    let rewordings = runs.iter().filter(|(number, _)| number.is_some()).map(|(_, runs)| {
        let mut result = count(runs);
        let is_broken = |part: &BrokenPart| {
            holds_mostly(original.counts_of(*part)) == Some(true)
                && holds_mostly(result.counts_of(*part)) == Some(false)
        };
        result.broke = [BrokenPart::Result, BrokenPart::Activation].into_iter().filter(is_broken).collect();
        result
    });
    let rewordings = rewordings.collect();
    Some((original, rewordings))
}

/// Says whether something is so in more than half of the runs; `None` without runs.
fn holds_mostly((good, runs): (u64, u64)) -> Option<bool> {
    (runs > 0).then_some(good * 2 > runs)
}

/// Gives the activation that is right: what the case expects, or else what most runs with its own wording do.
fn expected_activation(own: &[(&WordedCase, &TrialRecord)]) -> Option<bool> {
    match own.first()?.1.expect {
        Some(ActivationExpectation::Must) => Some(true),
        Some(ActivationExpectation::MustNot) => Some(false),
        Some(ActivationExpectation::Either) | None => {
            let seen: Vec<bool> = own.iter().filter_map(|(_, record)| record.was_activated()).collect();
            let activated = seen.iter().filter(|activated| **activated).count();
            holds_mostly((activated as u64, seen.len() as u64))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{NotScoredReason, testing};

    fn run(case: &str, verdict: Verdict, fired: Option<bool>) -> TrialRecord {
        TrialRecord {
            suite: "s".to_owned(),
            case: case.to_owned(),
            verdict,
            fired,
            expect: Some(ActivationExpectation::Must),
            ..testing::record(case, 1, Verdict::Pass)
        }
    }

    fn analyse(records: &[TrialRecord]) -> ParaphraseDocument {
        let wording = |id: &str, rewording| {
            let worded = WordedCase { case: "greets".to_owned(), rewording, prompt: format!("Say {id}.") };
            (("s".to_owned(), id.to_owned()), worded)
        };
        let cases = [wording("greets", None), wording("one", Some(1)), wording("two", Some(2))];
        ParaphraseDocument::from_records(records, &cases.into())
    }

    #[test]
    fn a_wording_that_breaks_the_result_or_the_activation_is_named() {
        use Verdict::{Fail, Pass};
        let own = [run("greets", Pass, Some(true)), run("greets", Pass, Some(true))];
        let rows: [(&str, Vec<TrialRecord>, &[BrokenPart], Outcome); 4] = [
            ("holds", vec![run("one", Pass, Some(true)), run("two", Pass, Some(true))], &[], Outcome::Passed),
            (
                "not found",
                vec![run("one", Pass, Some(true)), run("two", Fail, Some(false))],
                &[BrokenPart::Result, BrokenPart::Activation],
                Outcome::Failed,
            ),
            (
                "most runs hold",
                vec![
                    run("one", Pass, Some(true)),
                    run("two", Pass, None),
                    run("two", Pass, Some(true)),
                    run("two", Fail, Some(true)),
                ],
                &[],
                Outcome::Passed,
            ),
            (
                "no verdict",
                vec![
                    run("one", Pass, Some(true)),
                    run("two", Verdict::NotScored(NotScoredReason::NothingDone), None),
                ],
                &[],
                Outcome::Incomplete,
            ),
        ];
        for (name, others, broke, outcome) in rows {
            let found = analyse(&[&own[..], &others].concat());
            let [case] = found.cases.as_slice() else { panic!("{name}: {found:?}") };
            assert_eq!(case.rewordings[1].broke, broke, "{name}");
            assert_eq!((case.rewordings[0].broke.len(), found.outcome()), (0, outcome), "{name}");
            assert_eq!(case.original.prompt, "Say greets.", "{name}");
        }
    }

    #[test]
    fn the_interval_is_over_the_rewordings_and_not_over_their_runs() {
        let of = |repeats: usize| {
            let mut records = vec![run("greets", Verdict::Pass, Some(true))];
            for _ in 0..repeats {
                records.push(run("one", Verdict::Pass, Some(true)));
                records.push(run("two", Verdict::Fail, Some(true)));
            }
            analyse(&records).cases[0].result
        };
        let (few, many) = (of(1), of(50));
        assert_eq!((few.value, many.value), (Some(0.5), Some(0.5)));
        let width = |of: Estimate| of.high.zip(of.low).map(|(high, low)| high - low).expect("an interval");
        // Two wordings stay two wordings, however often they run.
        assert!(width(many) > 0.8 * width(few), "{few:?} {many:?}");
    }

    #[test]
    fn a_case_that_fails_anyway_breaks_nothing() {
        let records = [
            run("greets", Verdict::Fail, Some(true)),
            run("one", Verdict::Fail, Some(true)),
            run("two", Verdict::Pass, Some(true)),
        ];
        let found = analyse(&records);
        assert!(found.cases[0].rewordings.iter().all(|wording| wording.broke.is_empty()), "{found:?}");
    }
}
