use super::document::{BlindCase, Confidence, Outcome, Side};
use practicum_core::model::{Compared, Estimate};
use practicum_core::stats::{ALPHA, MARGIN, clopper_pearson, mcnemar, wilson};

/// What the looks at one pair come to: a winner only if both orders agree.
pub fn settle(winners: &[Option<Side>]) -> (Outcome, Option<Confidence>) {
    match winners {
        [Some(Side::First), Some(Side::First)] => (Outcome::First, Some(Confidence::High)),
        [Some(Side::Second), Some(Side::Second)] => (Outcome::Second, Some(Confidence::High)),
        [Some(_), Some(_)] => (Outcome::Tie, Some(Confidence::Low)),
        _ => (Outcome::NotCompared, None),
    }
}

/// All cases together, seen from the second side.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tallied {
    pub wins: u64,
    pub losses: u64,
    pub ties: u64,
    pub not_compared: u64,
    pub win_rate: Estimate,
    pub chance: f64,
    pub verdict: Compared,
}

pub fn tally(cases: &[BlindCase]) -> Tallied {
    let count = |outcome: Outcome| cases.iter().filter(|case| case.outcome == outcome).count() as u64;
    let (wins, losses, ties) = (count(Outcome::Second), count(Outcome::First), count(Outcome::Tie));
    let decided = wins + losses;
    let rate = (decided > 0).then(|| wins as f64 / decided as f64);
    let interval = wilson(wins, decided, ALPHA).map(|at| (at.low, at.high));
    // The sign test, asked both ways: neither side was expected to win.
    let chance = mcnemar(wins, losses);
    let verdict = match chance <= ALPHA {
        true if wins > losses => Compared::Better,
        true => Compared::Worse,
        false if is_same(wins, losses, decided + ties) => Compared::Equivalent,
        false => Compared::Inconclusive,
    };
    let not_compared = count(Outcome::NotCompared);
    Tallied {
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
fn is_same(wins: u64, losses: u64, cases: u64) -> bool {
    let ends = clopper_pearson(wins, cases, ALPHA).zip(clopper_pearson(losses, cases, ALPHA));
    ends.is_some_and(|(won, lost)| won.high - lost.low <= MARGIN && lost.high - won.low <= MARGIN)
}
