//! The statistics of blind comparisons.

use super::document::{BlindCase, ComparedSide, OutcomeConfidence, PairOutcome};
use practicum_core::model::{ComparisonVerdict, Estimate};
use practicum_core::stats::{ALPHA, DEFAULT_MARGIN, clopper_pearson, mcnemar};

/// Gives the outcome of a pair: there is a winner only if both orders agree.
pub fn pair_outcome(winners: &[Option<ComparedSide>]) -> (PairOutcome, Option<OutcomeConfidence>) {
    match winners {
        [Some(ComparedSide::First), Some(ComparedSide::First)] => {
            (PairOutcome::First, Some(OutcomeConfidence::High))
        }
        [Some(ComparedSide::Second), Some(ComparedSide::Second)] => {
            (PairOutcome::Second, Some(OutcomeConfidence::High))
        }
        [Some(_), Some(_)] => (PairOutcome::Tie, Some(OutcomeConfidence::Low)),
        _ => (PairOutcome::NotCompared, None),
    }
}

/// The counts over all cases, from the second side's view.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BlindTally {
    pub wins: u64,
    pub losses: u64,
    pub ties: u64,
    pub not_compared: u64,
    pub win_rate: Estimate,
    pub chance: f64,
    pub verdict: ComparisonVerdict,
}

/// Counts the outcomes of all cases and gives the verdict.
pub fn tally_cases(cases: &[BlindCase]) -> BlindTally {
    let count = |outcome: PairOutcome| cases.iter().filter(|case| case.outcome == outcome).count() as u64;
    let (wins, losses, ties) =
        (count(PairOutcome::Second), count(PairOutcome::First), count(PairOutcome::Tie));
    let decided = wins + losses;
    let rate = (decided > 0).then(|| wins as f64 / decided as f64);
    let interval = clopper_pearson(wins, decided, ALPHA).map(|at| (at.low, at.high));
    // A two-sided sign test, because neither side was expected to win.
    let chance = mcnemar(wins, losses);
    let verdict = match chance <= ALPHA {
        true if wins > losses => ComparisonVerdict::Better,
        true => ComparisonVerdict::Worse,
        // A judge that contradicts itself in every case follows the order and not the outputs.
        false if decided == 0 => ComparisonVerdict::Inconclusive,
        false if is_equivalent(wins, losses, decided + ties) => ComparisonVerdict::Equivalent,
        false => ComparisonVerdict::Inconclusive,
    };
    let not_compared = count(PairOutcome::NotCompared);
    BlindTally {
        wins,
        losses,
        ties,
        not_compared,
        win_rate: Estimate::new(rate, interval, decided),
        chance,
        verdict,
    }
}

/// Says whether the sides are equivalent: the difference between the shares of won and lost cases stays within the
/// margin even if both shares are at the far ends of their intervals.
fn is_equivalent(wins: u64, losses: u64, cases: u64) -> bool {
    let ends = clopper_pearson(wins, cases, ALPHA).zip(clopper_pearson(losses, cases, ALPHA));
    ends.is_some_and(|(won, lost)| {
        won.high - lost.low <= DEFAULT_MARGIN && lost.high - won.low <= DEFAULT_MARGIN
    })
}
