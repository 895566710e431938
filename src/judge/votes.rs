//! Several answers to one question: the majority decides, and how clear it was is told.

use super::Mark;
use crate::model::{Finding, Verdict, Why};

/// One mark for each statement from as many rounds as there were votes, all in the same order.
/// Without a majority of all votes there is no answer.
pub fn majority(rounds: Vec<Vec<Mark>>) -> Vec<Mark> {
    let votes = rounds.len();
    let Some((first, rest)) = rounds.split_first() else { return Vec::new() };
    if rest.is_empty() {
        return first.clone();
    }
    let ballots = first.iter().map(|mark| {
        rounds.iter().filter_map(|round| round.iter().find(|vote| vote.id == mark.id)).collect::<Vec<&Mark>>()
    });
    ballots.filter_map(|ballot| decided(&ballot, votes)).collect()
}

fn decided(ballot: &[&Mark], votes: usize) -> Option<Mark> {
    let of = |wanted: &Verdict| ballot.iter().filter(|vote| vote.finding.verdict == *wanted).count();
    let (passed, failed) = (of(&Verdict::Pass), of(&Verdict::Fail));
    let told = format!("votes: {passed} pass, {failed} fail, {} without an answer", votes - passed - failed);
    let winner = match (2 * passed > votes, 2 * failed > votes) {
        (true, _) => Verdict::Pass,
        (_, true) => Verdict::Fail,
        (false, false) => {
            let finding = Finding::not_scored(Why::JudgeFailed(format!("no majority; {told}")));
            return ballot.first().map(|vote| Mark { id: vote.id.clone(), finding, flags: Vec::new() });
        }
    };
    let mark = ballot.iter().find(|vote| vote.finding.verdict == winner)?;
    let mut mark = (*mark).clone();
    mark.flags.push(told);
    Some(mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(word: &str) -> Vec<Mark> {
        let finding = match word {
            "pass" => Finding::new(true, "r"),
            "fail" => Finding::new(false, "r"),
            _ => Finding::not_scored(Why::JudgeFailed("x".into())),
        };
        vec![Mark { id: "a".into(), finding, flags: Vec::new() }]
    }

    #[test]
    fn the_majority_decides_and_no_majority_is_no_answer() {
        for (votes, expected) in [
            (vec!["pass"], "pass"),
            (vec!["pass", "fail", "pass"], "pass"),
            (vec!["fail", "fail", "pass"], "fail"),
            (vec!["pass", "none", "fail"], "not_scored"),
            (vec!["none", "none", "pass"], "not_scored"),
            (vec!["pass", "pass", "none"], "pass"),
        ] {
            let marks = majority(votes.iter().map(|vote| round(vote)).collect());
            assert_eq!(marks[0].finding.verdict.name(), expected, "{votes:?}");
        }
    }
}
