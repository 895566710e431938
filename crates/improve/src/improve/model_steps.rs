//! The steps of the loop that ask a model.

use std::path::Path;

use super::analysis::{CheckedAnalysis, RankedVersions, analyse_versions};
use super::blind::{self, BlindReport, ComparedSide, PairOutcome, SideOutputs};
use super::description::suggest_description;
use super::edit_suggestions::{SuggestedEdits, suggest_edits};
use super::failures::FailedChecks;
use super::improve_loop::{BlindOpinions, EditProposal, LoopStop, StepAnalysis, TestedVersion};
use super::{
    Adviser, CaseSplit, ImproveGoal, RefusedSuggestion, SkillContents, SkillEditDraft, StepResult, StoredRun,
    diff_versions,
};
use practicum_core::tree::read_regular_text;
use practicum_engine::grade::judge::shorten_text;

/// The longest text of judges' reasons; more adds nothing.
const LONGEST_REASONS: usize = 30_000;

/// Asks for edits to a version, for the tuning cases that it failed. If nothing failed, gives none.
pub async fn propose_edits(
    adviser: &Adviser,
    goal: ImproveGoal,
    best: &TestedVersion,
    run: &StoredRun,
    split: &CaseSplit,
    round: u32,
) -> Result<StepResult<EditProposal>, LoopStop> {
    let failures = FailedChecks::from_run(run, &|suite, case| split.is_tuning(suite, case));
    if failures.is_empty() {
        return Ok(StepResult { value: EditProposal::default(), cost_usd: Some(0.0) });
    }
    let contents = SkillContents::scan(&best.files).map_err(LoopStop::failed)?;
    match goal {
        ImproveGoal::Skill => {
            let advice = suggest_edits(adviser, &contents, &failures, Vec::new(), round).await;
            let advice = advice.map_err(LoopStop::failed)?;
            let SuggestedEdits { accepted: followed, refused, .. } =
                advice.answer.map_err(LoopStop::Failed)?;
            let edits = followed.into_iter().map(|followed| followed.suggestion).collect();
            Ok(StepResult { value: EditProposal { edits, refused }, cost_usd: advice.cost_usd })
        }
        ImproveGoal::Description => {
            let main = contents.main_file().clone();
            let text = read_regular_text(main.join_to(contents.folder())).map_err(LoopStop::failed)?;
            let advice = suggest_description(adviser, &text, &failures, round).await;
            let suggestion = advice.answer.map_err(LoopStop::Failed)?;
            let mut draft = SkillEditDraft::from_contents(&contents).map_err(LoopStop::failed)?;
            let mut proposal = EditProposal::default();
            match draft.apply_suggestion(&suggestion, Some(main.as_str())) {
                Ok(()) => proposal.edits.push(suggestion),
                Err(why) => proposal.refused.push(RefusedSuggestion { suggestion, why }),
            }
            Ok(StepResult { value: proposal, cost_usd: advice.cost_usd })
        }
    }
}

/// Has blind judges compare the outputs of the tuning cases. Without outputs, gives no verdict.
pub async fn compare_blindly(
    adviser: &Adviser,
    (best, best_run): (&TestedVersion, &StoredRun),
    (candidate, candidate_run): (&TestedVersion, &StoredRun),
    split: &CaseSplit,
    seed: u64,
    folder: &Path,
) -> Result<StepResult<BlindOpinions>, LoopStop> {
    let only = |suite: &str, case: &str| split.is_tuning(suite, case);
    let first = SideOutputs::from_run(best_run, &only).map_err(LoopStop::failed)?;
    let second = SideOutputs::from_run(candidate_run, &only).map_err(LoopStop::failed)?;
    let (pairings, unpaired) = blind::pair_outputs(&first, &second);
    if pairings.is_empty() {
        let nothing = BlindOpinions { verdict: None, reasons: String::new() };
        return Ok(StepResult { value: nothing, cost_usd: Some(0.0) });
    }
    let judged = blind::judge_pairs(adviser, &pairings, seed).await;
    let (best, candidate) = (format!("v{}", best.version), format!("v{}", candidate.version));
    let mut reasons = String::new();
    for judged in &judged {
        for (order, comparison) in judged.case.orders.iter().zip(&judged.comparisons) {
            let Some(comparison) = comparison else { continue };
            let (a, b) = match order.a {
                ComparedSide::First => (&best, &candidate),
                ComparedSide::Second => (&candidate, &best),
            };
            let reason = &comparison.reasoning;
            reasons.push_str(&format!("case {}; A was {a}, B was {b}: {reason}\n", judged.case.case));
        }
        let outcome = match judged.case.outcome {
            PairOutcome::First => format!("{best} is better"),
            PairOutcome::Second => format!("{candidate} is better"),
            PairOutcome::Tie => "neither is better: the orders contradict each other".to_owned(),
            PairOutcome::Identical => "neither is better: the outputs are identical".to_owned(),
            PairOutcome::NotCompared => "not compared".to_owned(),
        };
        reasons.push_str(&format!("case {}: {outcome}\n", judged.case.case));
    }
    let blind = BlindReport::write_new(&best, &candidate, seed, judged, unpaired, folder)
        .map_err(LoopStop::failed)?;
    let looks =
        BlindOpinions { verdict: Some(blind.verdict), reasons: shorten_text(&reasons, LONGEST_REASONS) };
    Ok(StepResult { value: looks, cost_usd: blind.cost_usd })
}

/// Asks why one version did better. Also says why there is no analysis, if one was wanted. A new description needs
/// no analysis, because it is short.
pub async fn explain_winner(
    adviser: &Adviser,
    goal: ImproveGoal,
    (winner, winner_run): (&TestedVersion, &StoredRun),
    loser: &TestedVersion,
    looks: &BlindOpinions,
    split: &CaseSplit,
    round: u32,
) -> Result<(StepResult<Option<StepAnalysis>>, Option<String>), LoopStop> {
    if goal == ImproveGoal::Description {
        return Ok((StepResult { value: None, cost_usd: Some(0.0) }, None));
    }
    let contents = SkillContents::scan(&winner.files).map_err(LoopStop::failed)?;
    let (earlier, later) = if winner.version < loser.version { (winner, loser) } else { (loser, winner) };
    let changed = diff_versions(&earlier.files, &later.files).map_err(LoopStop::failed)?;
    let versions = RankedVersions {
        winner: winner.version,
        loser: loser.version,
        contents: &contents,
        diff: &changed,
        judge_reasons: &looks.reasons,
    };
    let failures = FailedChecks::from_run(winner_run, &|suite, case| split.is_tuning(suite, case));
    let advice = analyse_versions(adviser, &versions, &failures, round).await.map_err(LoopStop::failed)?;
    let (value, why_not) = match advice.answer {
        Ok(CheckedAnalysis { analysis, refused_suggestions: refused, .. }) => {
            (Some(StepAnalysis { analysis, refused }), None)
        }
        Err(why) => (None, Some(why)),
    };
    Ok((StepResult { value, cost_usd: advice.cost_usd }, why_not))
}
