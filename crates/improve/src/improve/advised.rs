//! The parts of the loop that a model is asked for.

use std::path::Path;

use super::analysis::{Analysed as Answer, Compared as Versus, analyse};
use super::blind::{self, Blind, Outcome, Outputs, Side};
use super::description::suggest_description;
use super::failures::Failures;
use super::rounds::{Analysed, Examined, Halt, Looks, Proposal};
use super::suggest::{Suggested, suggest};
use super::{Adviser, Contents, Draft, Goal, Refused, Spent, Split, StoredRun, difference};
use practicum_engine::judge::cut;

/// Reasons of judges beyond this add nothing.
const LONGEST_REASONS: usize = 30_000;

/// Edits to a version for what it failed on the tuning cases. Nothing failed, nothing is proposed.
pub async fn propose(
    adviser: &Adviser,
    goal: Goal,
    best: &Examined,
    run: &StoredRun,
    split: &Split,
    round: u32,
) -> Result<Spent<Proposal>, Halt> {
    let failures = Failures::of(run, &|suite, case| split.is_tuning(suite, case));
    if failures.is_empty() {
        return Ok(Spent { value: Proposal::default(), cost_usd: Some(0.0) });
    }
    let contents = Contents::of(&best.files).map_err(Halt::failed)?;
    match goal {
        Goal::Skill => {
            let advice = suggest(adviser, &contents, &failures, Vec::new(), round).await;
            let advice = advice.map_err(Halt::failed)?;
            let Suggested { followed, refused, .. } = advice.answer.map_err(Halt::Failed)?;
            let edits = followed.into_iter().map(|followed| followed.suggestion).collect();
            Ok(Spent { value: Proposal { edits, refused }, cost_usd: advice.cost_usd })
        }
        Goal::Description => {
            let main = contents.main().clone();
            let text = std::fs::read_to_string(main.under(contents.folder())).map_err(Halt::failed)?;
            let advice = suggest_description(adviser, &text, &failures, round).await;
            let suggestion = advice.answer.map_err(Halt::Failed)?;
            let mut draft = Draft::of(&contents).map_err(Halt::failed)?;
            let mut proposal = Proposal::default();
            match draft.follow(&suggestion, Some(main.as_str())) {
                Ok(()) => proposal.edits.push(suggestion),
                Err(why) => proposal.refused.push(Refused { suggestion, why }),
            }
            Ok(Spent { value: proposal, cost_usd: advice.cost_usd })
        }
    }
}

/// Blind judges on the tuning cases. Where there is no output to look at, nothing is said.
pub async fn look(
    adviser: &Adviser,
    (best, best_run): (&Examined, &StoredRun),
    (candidate, candidate_run): (&Examined, &StoredRun),
    split: &Split,
    seed: u64,
    folder: &Path,
) -> Result<Spent<Looks>, Halt> {
    let only = |suite: &str, case: &str| split.is_tuning(suite, case);
    let first = Outputs::of_run(best_run, &only).map_err(Halt::failed)?;
    let second = Outputs::of_run(candidate_run, &only).map_err(Halt::failed)?;
    let (pairings, unpaired) = blind::pair(&first, &second);
    if pairings.is_empty() {
        let nothing = Looks { verdict: None, reasons: String::new() };
        return Ok(Spent { value: nothing, cost_usd: Some(0.0) });
    }
    let judged = blind::judge_all(adviser, &pairings, seed).await;
    let (best, candidate) = (format!("v{}", best.version), format!("v{}", candidate.version));
    let mut reasons = String::new();
    for judged in &judged {
        for (order, comparison) in judged.case.orders.iter().zip(&judged.comparisons) {
            let Some(comparison) = comparison else { continue };
            let (a, b) = match order.a {
                Side::First => (&best, &candidate),
                Side::Second => (&candidate, &best),
            };
            let reason = &comparison.reasoning;
            reasons.push_str(&format!("case {}; A was {a}, B was {b}: {reason}\n", judged.case.case));
        }
        let outcome = match judged.case.outcome {
            Outcome::First => format!("{best} is better"),
            Outcome::Second => format!("{candidate} is better"),
            Outcome::Tie => "neither is better: the orders contradict each other".to_owned(),
            Outcome::NotCompared => "not compared".to_owned(),
        };
        reasons.push_str(&format!("case {}: {outcome}\n", judged.case.case));
    }
    let blind = Blind::of(&best, &candidate, seed, judged, unpaired, folder).map_err(Halt::failed)?;
    let looks = Looks { verdict: Some(blind.verdict), reasons: cut(&reasons, LONGEST_REASONS) };
    Ok(Spent { value: looks, cost_usd: blind.cost_usd })
}

/// Why one did better, and why that was not analysed where it was to be. A description is short enough to speak for
/// itself.
pub async fn explain(
    adviser: &Adviser,
    goal: Goal,
    (winner, winner_run): (&Examined, &StoredRun),
    loser: &Examined,
    looks: &Looks,
    split: &Split,
    round: u32,
) -> Result<(Spent<Option<Analysed>>, Option<String>), Halt> {
    if goal == Goal::Description {
        return Ok((Spent { value: None, cost_usd: Some(0.0) }, None));
    }
    let contents = Contents::of(&winner.files).map_err(Halt::failed)?;
    let (earlier, later) = if winner.version < loser.version { (winner, loser) } else { (loser, winner) };
    let changed = difference(&earlier.files, &later.files).map_err(Halt::failed)?;
    let versus = Versus {
        winner: winner.version,
        loser: loser.version,
        contents: &contents,
        diff: &changed,
        reasons: &looks.reasons,
    };
    let failures = Failures::of(winner_run, &|suite, case| split.is_tuning(suite, case));
    let advice = analyse(adviser, &versus, &failures, round).await.map_err(Halt::failed)?;
    let (value, why_not) = match advice.answer {
        Ok(Answer { analysis, refused, .. }) => (Some(Analysed { analysis, refused }), None),
        Err(why) => (None, Some(why)),
    };
    Ok((Spent { value, cost_usd: advice.cost_usd }, why_not))
}
