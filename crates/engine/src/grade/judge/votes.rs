//! Combines several answers to one question: the majority decides, and the single votes are reported.

use super::JudgeVerdict;
use practicum_core::model::{CheckFinding, JudgeVote, NotScoredReason, Verdict};

/// Gives one verdict for each statement from as many rounds as there were votes. All rounds have the same order.
/// Without a majority of all votes, the statement is not scored.
pub fn majority(rounds: Vec<Vec<JudgeVerdict>>) -> Vec<JudgeVerdict> {
    let votes = rounds.len();
    let Some((first, rest)) = rounds.split_first() else { return Vec::new() };
    if rest.is_empty() {
        return first.clone();
    }
    let ballots = first.iter().map(|judge_verdict| {
        rounds
            .iter()
            .filter_map(|round| round.iter().find(|vote| vote.id == judge_verdict.id))
            .collect::<Vec<&JudgeVerdict>>()
    });
    ballots.filter_map(|ballot| majority_verdict(&ballot, votes)).collect()
}

fn majority_verdict(ballot: &[&JudgeVerdict], votes: usize) -> Option<JudgeVerdict> {
    let of = |wanted: &Verdict| ballot.iter().filter(|vote| vote.finding.verdict == *wanted).count();
    let (passed, failed) = (of(&Verdict::Pass), of(&Verdict::Fail));
    let kept = ballot.iter().map(|judge_verdict| JudgeVote {
        verdict: judge_verdict.finding.verdict.clone(),
        score: judge_verdict.finding.score,
        rationale: judge_verdict.finding.rationale.clone(),
    });
    let kept: Vec<JudgeVote> = kept.collect();
    let winner = match (2 * passed > votes, 2 * failed > votes) {
        (true, _) => Verdict::Pass,
        (_, true) => Verdict::Fail,
        (false, false) => {
            let agreement = JudgeVote::describe_agreement(&kept).unwrap_or_default();
            let finding =
                CheckFinding::not_scored(NotScoredReason::JudgeFailed(format!("no majority; {agreement}")));
            let first = ballot.first()?;
            return Some(JudgeVerdict { votes: kept, ..JudgeVerdict::new(&first.check, &first.id, finding) });
        }
    };
    let judge_verdict = ballot.iter().find(|vote| vote.finding.verdict == winner)?;
    let mut judge_verdict = (*judge_verdict).clone();
    judge_verdict.votes = kept;
    Some(judge_verdict)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(word: &str) -> Vec<JudgeVerdict> {
        let finding = match word {
            "pass" => CheckFinding::new(true, "r"),
            "fail" => CheckFinding::new(false, "r"),
            _ => CheckFinding::not_scored(NotScoredReason::JudgeFailed("x".into())),
        };
        vec![JudgeVerdict::new("a", "a", finding)]
    }

    #[test]
    fn the_majority_decides_and_no_majority_is_no_answer() {
        for (votes, expected, agreed) in [
            (vec!["pass"], "pass", ""),
            (vec!["pass", "fail", "pass"], "pass", "2 of 3 votes agree"),
            (vec!["fail", "fail", "pass"], "fail", "2 of 3 votes agree"),
            (vec!["pass", "none", "fail"], "not_scored", "1 of 3 votes agree"),
            (vec!["none", "none", "pass"], "not_scored", "2 of 3 votes agree"),
            (vec!["pass", "pass", "none"], "pass", "2 of 3 votes agree"),
        ] {
            let judge_verdicts = majority(votes.iter().map(|vote| round(vote)).collect());
            let judge_verdict = &judge_verdicts[0];
            assert_eq!(judge_verdict.finding.verdict.name(), expected, "{votes:?}");
            let agreement = JudgeVote::describe_agreement(&judge_verdict.votes).unwrap_or_default();
            assert!(agreement.contains(agreed), "{agreement}");
            let kept = if votes.len() == 1 { 0 } else { votes.len() };
            assert_eq!(judge_verdict.votes.len(), kept, "every vote is kept");
        }
    }
}
