//! Remarks of judges: votes, doubts about checks, and findings about the evals.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Verdict, count_with_noun};

/// Remarks of a judge beyond its answers. They change no verdict.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Remarks {
    /// Important behaviour that no statement of the case covers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncovered: Vec<String>,
    /// Claims of the agent about its own work, compared with the record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<AgentClaim>,
}

/// A claim of the agent about its own work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentClaim {
    /// The claim, in the words of the judge.
    pub claim: String,
    /// Whether the record confirms the claim.
    pub verified: bool,
    /// What in the record confirms or refutes the claim.
    pub evidence: String,
}

impl Remarks {
    /// Says whether there is no remark.
    pub fn is_empty(&self) -> bool {
        self.uncovered.is_empty() && self.claims.is_empty()
    }
}

/// One of several answers of judges to the same question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JudgeVote {
    /// The verdict of this vote.
    pub verdict: Verdict,
    /// The score of this vote; `None` without one.
    pub score: Option<f64>,
    /// The reason for this vote.
    pub rationale: String,
}

impl JudgeVote {
    /// Describes how many votes each answer has, and the share of the most frequent one; `None` without votes.
    pub fn describe_agreement(votes: &[JudgeVote]) -> Option<String> {
        let of = |wanted: &Verdict| votes.iter().filter(|vote| vote.verdict == *wanted).count();
        let (passed, failed, all) = (of(&Verdict::Pass), of(&Verdict::Fail), votes.len());
        let most = passed.max(failed).max(all - passed - failed);
        let none = all - passed - failed;
        let describe =
            || format!("{most} of {all} votes agree: {passed} pass, {failed} fail, {none} without an answer");
        (all > 0).then(describe)
    }
}

/// How much of the evidence was left out because it did not fit into the window of the judge.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ShortenedEvidence {
    /// The number of bytes that were left out.
    pub bytes_left_out: u64,
    /// The number of tool calls of the run.
    pub calls: u64,
    /// The number of tool calls that were shown as names only, without arguments and results.
    pub calls_by_name: u64,
}

impl ShortenedEvidence {
    /// Combines the counts of two judgements of the same trial.
    #[must_use]
    pub fn merge(self, other: Self) -> Self {
        Self {
            bytes_left_out: self.bytes_left_out + other.bytes_left_out,
            calls: self.calls.max(other.calls),
            calls_by_name: self.calls_by_name.max(other.calls_by_name),
        }
    }

    /// Describes in one line how much of the evidence the judge did not see.
    pub fn describe(&self) -> String {
        let Self { bytes_left_out, calls, calls_by_name } = self;
        let by_name = match calls_by_name {
            0 => String::new(),
            some => format!("; {some} of {calls} tool calls were shown as names only"),
        };
        format!("the evidence was shortened for the judge: {bytes_left_out} bytes left out{by_name}")
    }
}

/// The numbers of doubtful judgements in a run, by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GradingDoubts {
    /// Checks that an agent would also pass without useful work.
    pub weak_checks: u64,
    /// Verdicts of judges without a quote, or with a quote that is not in the record.
    pub unsupported_marks: u64,
    /// Remarks on behaviour that no check covers.
    pub uncovered: u64,
    /// Claims of agents that the record does not confirm.
    pub unverified_claims: u64,
    /// Trials whose judge got only a part of the evidence.
    #[serde(default)]
    pub shortened_evidence: u64,
}

impl GradingDoubts {
    /// Gives one phrase for each kind of doubt that occurs.
    pub fn describe(&self) -> Vec<String> {
        let Self { weak_checks, unsupported_marks, uncovered, unverified_claims, shortened_evidence } = *self;
        let counts = [
            (weak_checks, "weak check", "weak checks"),
            (unsupported_marks, "verdict without a quote", "verdicts without a quote"),
            (uncovered, "uncovered behaviour", "uncovered behaviours"),
            (unverified_claims, "unconfirmed claim", "unconfirmed claims"),
        ];
        let some = counts.into_iter().filter(|(count, ..)| *count > 0);
        let counts =
            some.map(|(count, one, many)| format!("{count} {}", if count == 1 { one } else { many }));
        let judged = |count| format!("evidence was shortened for {}", count_with_noun(count, "judged trial"));
        counts.chain((shortened_evidence > 0).then(|| judged(shortened_evidence))).collect()
    }
}

/// A remark of a judge on the evals: a check that is too easy to pass, or behaviour that no check covers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EvalFinding {
    /// The name of the suite.
    pub suite: String,
    /// The id of the case.
    pub case: String,
    /// The check that passes too easily; `None` if the remark is about behaviour that no check covers.
    pub weak_check: Option<String>,
    /// The reason, or the behaviour that no check covers.
    pub text: String,
    /// The number of trials for which a judge made this remark.
    pub trials: u64,
}

impl EvalFinding {
    /// Describes the finding in one line for people.
    pub fn describe(&self) -> String {
        let Self { suite, case, weak_check, text, trials } = self;
        let said = match weak_check {
            Some(check) => format!("weak check {check}"),
            None => "no check is about".to_owned(),
        };
        let often = if *trials > 1 { format!(" (said of {trials} trials)") } else { String::new() };
        format!("{case} of {suite}, {said}: {text}{often}")
    }
}
