//! The statistics of blind comparisons.

use super::document::{BlindCase, ComparedSide, OutcomeConfidence, OutputLabel, PairOutcome};
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
    /// The cases without a better side, with those whose outputs are identical.
    pub ties: u64,
    pub identical: u64,
    pub not_compared: u64,
    pub win_rate: Estimate,
    pub chance: f64,
    pub verdict: ComparisonVerdict,
    /// The label that the judge names whatever stands under it, if it follows the order of the outputs.
    pub follows: Option<OutputLabel>,
}

/// Counts the outcomes of all cases and gives the verdict.
pub fn tally_cases(cases: &[BlindCase]) -> BlindTally {
    let count = |outcome: PairOutcome| cases.iter().filter(|case| case.outcome == outcome).count() as u64;
    let (wins, losses) = (count(PairOutcome::Second), count(PairOutcome::First));
    let identical = count(PairOutcome::Identical);
    let ties = count(PairOutcome::Tie) + identical;
    let decided = wins + losses;
    let rate = (decided > 0).then(|| wins as f64 / decided as f64);
    let interval = clopper_pearson(wins, decided, ALPHA).map(|at| (at.low, at.high));
    // A two-sided sign test, because neither side was expected to win.
    let chance = mcnemar(wins, losses);
    let follows = preferred_label(cases);
    let verdict = match chance <= ALPHA {
        true if wins > losses => ComparisonVerdict::Better,
        true => ComparisonVerdict::Worse,
        // A judge that follows the order says nothing about the outputs.
        false if decided + identical == 0 || follows.is_some() => ComparisonVerdict::Inconclusive,
        false if is_equivalent(wins, losses, decided + ties) => ComparisonVerdict::Equivalent,
        false => ComparisonVerdict::Inconclusive,
    };
    let not_compared = count(PairOutcome::NotCompared);
    BlindTally {
        wins,
        losses,
        ties,
        identical,
        not_compared,
        win_rate: Estimate::new(rate, interval, decided),
        chance,
        verdict,
        follows,
    }
}

/// Says whether so few decided cases show nothing, even if one side is better in all of them.
pub fn can_never_decide(decided: u64) -> bool {
    mcnemar(decided, 0) > ALPHA
}

/// Finds the label that the judge prefers whatever stands under it: if it contradicts itself in most cases, and names
/// the same label twice more often than chance explains. A few cases that it contradicts itself in every time are
/// enough, because a judge that reads the outputs agrees with itself now and then.
fn preferred_label(cases: &[BlindCase]) -> Option<OutputLabel> {
    let contradictions = || cases.iter().filter(|case| case.outcome == PairOutcome::Tie);
    let named_a = |case: &&BlindCase| case.orders.iter().all(|order| order.winner == Some(order.a));
    let (ties, of_a) = (contradictions().count() as u64, contradictions().filter(named_a).count() as u64);
    let decided = cases.iter().filter(|case| case.confidence == Some(OutcomeConfidence::High)).count() as u64;
    let is_every_time = decided == 0 && ties > 1 && (of_a == 0 || of_a == ties);
    let is_mostly = ties > decided && mcnemar(of_a, ties - of_a) <= ALPHA;
    (is_every_time || is_mostly).then(|| if 2 * of_a >= ties { OutputLabel::A } else { OutputLabel::B })
}

/// Says whether the sides are equivalent: the difference between the shares of won and lost cases stays within the
/// margin even if both shares are at the far ends of their intervals.
fn is_equivalent(wins: u64, losses: u64, cases: u64) -> bool {
    let ends = clopper_pearson(wins, cases, ALPHA).zip(clopper_pearson(losses, cases, ALPHA));
    ends.is_some_and(|(won, lost)| {
        won.high - lost.low <= DEFAULT_MARGIN && lost.high - won.low <= DEFAULT_MARGIN
    })
}
