use super::document::{BlindCase, ComparedSide, OutcomeConfidence, PairOutcome};
use practicum_core::model::{ComparisonVerdict, Estimate};
use practicum_core::stats::{ALPHA, DEFAULT_MARGIN, clopper_pearson, mcnemar, wilson};

/// What the looks at one pair come to: a winner only if both orders agree.
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

/// All cases together, seen from the second side.
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

pub fn tally_cases(cases: &[BlindCase]) -> BlindTally {
    let count = |outcome: PairOutcome| cases.iter().filter(|case| case.outcome == outcome).count() as u64;
    let (wins, losses, ties) =
        (count(PairOutcome::Second), count(PairOutcome::First), count(PairOutcome::Tie));
    let decided = wins + losses;
    let rate = (decided > 0).then(|| wins as f64 / decided as f64);
    let interval = wilson(wins, decided, ALPHA).map(|at| (at.low, at.high));
    // The sign test, asked both ways: neither side was expected to win.
    let chance = mcnemar(wins, losses);
    let verdict = match chance <= ALPHA {
        true if wins > losses => ComparisonVerdict::Better,
        true => ComparisonVerdict::Worse,
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

/// Whether, of all cases like these, so few more are won than lost that it does not matter, even if the
/// shares of both lie at the far ends of their intervals.
fn is_equivalent(wins: u64, losses: u64, cases: u64) -> bool {
    let ends = clopper_pearson(wins, cases, ALPHA).zip(clopper_pearson(losses, cases, ALPHA));
    ends.is_some_and(|(won, lost)| {
        won.high - lost.low <= DEFAULT_MARGIN && lost.high - won.low <= DEFAULT_MARGIN
    })
}
