//! Power analysis: how many runs are needed, computed before they are paid for.

use super::clustered::Cluster;
use super::direction::direction_chances;
use super::paired::{CasePair, verdict_of_direction};
use super::{SeededRandom, quantile};
use crate::model::ComparisonVerdict;

/// The sources of variance in a comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Variances {
    /// The variance of the true differences between cases (ω²).
    pub between_cases: f64,
    /// The variance of the runs of one case (σ²) and their number (K), for the first version.
    pub before: (f64, u64),
    /// The variance of the runs of one case and their number, for the second version.
    pub after: (f64, u64),
}

impl Variances {
    fn variance_per_case(self) -> f64 {
        let share = |(variance, runs): (f64, u64)| variance / runs.max(1) as f64;
        self.between_cases + share(self.before) + share(self.after)
    }
}

/// Gives the number of cases needed to show a difference of this size with this power. `None` for no difference.
///
/// ```
/// use practicum_core::stats::{Variances, needed_cases};
///
/// let variances = Variances { between_cases: 0.05, before: (0.2, 3), after: (0.2, 3) };
/// let few = needed_cases(0.3, variances, 0.05, 0.8).expect("a difference");
/// let many = needed_cases(0.1, variances, 0.05, 0.8).expect("a difference");
/// assert!(few < many, "a small difference needs more cases");
/// assert_eq!(needed_cases(0.0, variances, 0.05, 0.8), None);
/// ```
pub fn needed_cases(difference: f64, variances: Variances, alpha: f64, power: f64) -> Option<u64> {
    let needed = quantile_sum(alpha, power).powi(2) * variances.variance_per_case() / difference.powi(2);
    needed.is_finite().then(|| needed.ceil() as u64)
}

fn quantile_sum(alpha: f64, power: f64) -> f64 {
    quantile::normal(1.0 - alpha / 2.0) + quantile::normal(power)
}

/// The design of a planned comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ComparisonDesign {
    /// The pass rate before.
    pub baseline: f64,
    /// The expected change of the pass rate; negative for a loss.
    pub effect: f64,
    /// The number of cases.
    pub cases: u64,
    /// The number of runs of each case on each side.
    pub repeat: u64,
    /// The standard deviation of the change between cases.
    pub spread: f64,
    /// The chance of a false alarm that is allowed.
    pub alpha: f64,
    /// The chance to find the difference that is wanted.
    pub power: f64,
}

impl ComparisonDesign {
    /// Gives the variances that the design implies.
    pub(crate) fn variances(&self) -> Variances {
        let of = |rate: f64| rate * (1.0 - rate);
        let (one, other, chance) = self.rates_after();
        let within_after = chance * of(one) + (1.0 - chance) * of(other);
        let between_cases = chance * (1.0 - chance) * (one - other).powi(2);
        Variances {
            between_cases,
            before: (of(self.baseline), self.repeat),
            after: (within_after, self.repeat),
        }
    }

    /// Gives the number of runs of both versions together.
    pub fn runs(&self) -> u64 {
        self.cases.saturating_mul(self.repeat).saturating_mul(2)
    }

    fn power_by_formula(&self) -> f64 {
        let error = (self.variances().variance_per_case() / self.cases.max(1) as f64).sqrt();
        let beyond = self.effect.abs() / error - quantile::normal(1.0 - self.alpha / 2.0);
        quantile::normal_share_below(beyond)
    }

    /// Gives the chance that the comparison will show the effect. Only large designs are left to a formula, because none
    /// predicts what an exact test, or the spread of a few cases, will give.
    pub fn actual_power(&self) -> f64 {
        self.power_of_rounds(SIMULATION_ROUNDS)
    }

    fn power_of_rounds(&self, rounds: usize) -> f64 {
        match self.cases > MANY_CASES || self.runs() > MANY_RUNS {
            true => self.power_by_formula(),
            false => simulated_power(self, rounds, SEED),
        }
    }

    /// Gives the two pass rates after, and the chance of the first: they have the mean and the spread of the design, as
    /// far as a rate between 0 and 1 can have them.
    fn rates_after(&self) -> (f64, f64, f64) {
        let mean = (self.baseline + self.effect).clamp(0.0, 1.0);
        let spread = self.spread.min((mean * (1.0 - mean)).sqrt());
        let room = |distance: f64| spread.powi(2) / (spread.powi(2) + distance.powi(2));
        match () {
            () if spread <= 0.0 => (mean, mean, 0.5),
            () if mean + spread > 1.0 => {
                let chance = room(1.0 - mean);
                (1.0, 1.0 - (1.0 - mean) / (1.0 - chance), chance)
            }
            () if mean - spread < 0.0 => {
                let chance = room(mean);
                (0.0, mean / (1.0 - chance), chance)
            }
            () => (mean + spread, mean - spread, 0.5),
        }
    }
}

/// The number of cases, and of runs, above which a design is left to a formula.
const MANY_CASES: u64 = 250;
const MANY_RUNS: u64 = 6000;

const SIMULATION_ROUNDS: usize = 1000;
const SEED: u64 = 1;

/// Gives the share of simulated comparisons that find the effect.
pub fn simulated_power(design: &ComparisonDesign, rounds: usize, seed: u64) -> f64 {
    let wanted = if design.effect < 0.0 { ComparisonVerdict::Worse } else { ComparisonVerdict::Better };
    let mut random = SeededRandom::new(seed);
    let found = (0..rounds)
        .filter(|_| {
            let chances = direction_chances(&simulate_pairs(design, &mut random));
            verdict_of_direction(chances, design.alpha) == Some(wanted)
        })
        .count();
    found as f64 / rounds as f64
}

/// Simulates the results of one comparison.
pub fn simulate_pairs(design: &ComparisonDesign, random: &mut SeededRandom) -> Vec<CasePair> {
    let side = |rate: f64, random: &mut SeededRandom| {
        Cluster::new(random.successes(design.repeat, rate.clamp(0.0, 1.0)), design.repeat)
    };
    let (one, other, chance) = design.rates_after();
    let pair = |_| {
        let after = if random.happens(chance) { one } else { other };
        CasePair { before: side(design.baseline, random), after: side(after, random) }
    };
    (0..design.cases).map(pair).collect()
}

/// The largest number of cases or repeats that the search considers.
const MAX_SEARCHED: u64 = 100_000;

/// Finds the fewest cases with which the design has its power. `None` if no number of cases is enough.
pub fn fewest_cases(design: ComparisonDesign) -> Option<u64> {
    let first =
        needed_cases(design.effect, design.variances(), design.alpha, design.power)?.clamp(1, MAX_SEARCHED);
    search_upwards(first, |cases| ComparisonDesign { cases, ..design })
}

/// Finds the fewest repeats with which this many cases have the power. `None` if the cases differ too much among
/// themselves for repeats to help.
pub(crate) fn fewest_repeats(design: ComparisonDesign) -> Option<u64> {
    let once = ComparisonDesign { repeat: 1, ..design }.variances();
    let within = once.before.0 + once.after.0;
    let room = design.cases as f64 * (design.effect / quantile_sum(design.alpha, design.power)).powi(2)
        - once.between_cases;
    if room <= 0.0 {
        return None;
    }
    let first = (within / room).ceil().clamp(1.0, MAX_SEARCHED as f64) as u64;
    search_upwards(first, |repeat| ComparisonDesign { repeat, ..design })
}

/// Finds the first number from `first` on, in growing steps, whose design has its power.
fn search_upwards(first: u64, design: impl Fn(u64) -> ComparisonDesign) -> Option<u64> {
    let mut number = first;
    for _ in 0..100 {
        let planned = design(number);
        if planned.actual_power() >= planned.power {
            return Some(number);
        }
        number = (number + (number / 20).max(1)).min(MAX_SEARCHED);
    }
    None
}

/// Finds the smallest gain, in steps of one percentage point, that the design shows with its power. `None` if it
/// shows none.
pub(crate) fn detectable_effect(design: ComparisonDesign) -> Option<f64> {
    let gains = (1..=100).map(|points| f64::from(points) / 100.0);
    let possible = gains.take_while(|gain| design.baseline + gain <= 1.0 + 1e-9);
    // Simulation is slow, and hardly ever finds more power than the formula. So gains far below by the formula are
    // skipped.
    let hopeful = possible
        .map(|effect| ComparisonDesign { effect, ..design })
        .filter(|design| design.power_by_formula() >= design.power - 0.05);
    hopeful.into_iter().find(|design| design.actual_power() >= design.power).map(|design| design.effect)
}

/// The number of simulations for each loss that `detectable_loss` tries.
const SEARCH_ROUNDS: usize = 300;

/// Finds the smallest loss, in steps of one percentage point, that the design shows with its power. `None` if it shows
/// none.
pub fn detectable_loss(design: ComparisonDesign) -> Option<f64> {
    let shows = |points: u32| {
        let planned = ComparisonDesign { effect: -f64::from(points) / 100.0, ..design };
        planned.power_of_rounds(SEARCH_ROUNDS) >= design.power
    };
    let most = (design.baseline * 100.0).floor() as u32;
    if most == 0 || !shows(most) {
        return None;
    }
    // A greater loss is shown more often, so the smallest can be found by halving.
    let (mut hidden, mut shown) = (0, most);
    while shown - hidden > 1 {
        let middle = (hidden + shown) / 2;
        if shows(middle) { shown = middle } else { hidden = middle }
    }
    Some(f64::from(shown) / 100.0)
}

/// A question about a planned comparison. The first of effect, cases and repeat that is `None`
/// is searched for, else the power.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PowerQuestion {
    /// The pass rate of the first version.
    pub baseline: f64,
    /// The difference between the pass rates; `None` if it is asked for.
    pub effect: Option<f64>,
    /// The number of cases; `None` if it is asked for.
    pub cases: Option<u64>,
    /// The number of runs of each case; `None` if it is asked for.
    pub repeat: Option<u64>,
    /// How much the cases differ in difficulty.
    pub spread: f64,
    /// The chance of a false alarm that is allowed.
    pub alpha: f64,
    /// The chance to find the difference that is wanted.
    pub power: f64,
}

/// The part of the design that was searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PowerUnknown {
    /// The number of cases.
    Cases,
    /// The number of runs of each case.
    Repeat,
    /// The difference that can be found.
    Effect,
    /// The chance to find the difference.
    Power,
}

/// Finds the design that answers the question, with the power it really has. `None` if there is none.
pub fn answer_power_question(question: &PowerQuestion) -> (PowerUnknown, Option<ComparisonDesign>) {
    let PowerQuestion { baseline, effect, cases, repeat, spread, alpha, power } = *question;
    let design = ComparisonDesign {
        baseline,
        effect: effect.unwrap_or_default(),
        cases: cases.unwrap_or(1),
        repeat: repeat.unwrap_or(1),
        spread,
        alpha,
        power,
    };
    let (sought, found) = match (effect, cases, repeat) {
        (None, ..) => (
            PowerUnknown::Effect,
            detectable_effect(design).map(|effect| ComparisonDesign { effect, ..design }),
        ),
        (Some(_), None, _) => {
            (PowerUnknown::Cases, fewest_cases(design).map(|cases| ComparisonDesign { cases, ..design }))
        }
        (Some(_), Some(_), None) => {
            (PowerUnknown::Repeat, fewest_repeats(design).map(|repeat| ComparisonDesign { repeat, ..design }))
        }
        (Some(_), Some(_), Some(_)) => (PowerUnknown::Power, Some(design)),
    };
    (sought, found.map(|design| ComparisonDesign { power: design.actual_power(), ..design }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_sample_sizes() {
        let of = |within: f64, runs| Variances {
            between_cases: 1.0 / 9.0,
            before: (within, runs),
            after: (within, runs),
        };
        for (variances, expected) in [(of(0.0, 1), 969), (of(1.0 / 6.0, 1), 3876), (of(1.0 / 6.0, 10), 1260)]
        {
            assert_eq!(needed_cases(0.03, variances, 0.05, 0.8), Some(expected));
        }
        assert_eq!(needed_cases(0.0, of(0.1, 1), 0.05, 0.8), None);
    }

    #[test]
    fn whatever_is_left_out_is_looked_for() {
        let all = PowerQuestion {
            baseline: 0.6,
            effect: Some(0.2),
            cases: Some(30),
            repeat: Some(5),
            spread: 0.0,
            alpha: 0.05,
            power: 0.8,
        };
        let (sought, design) = answer_power_question(&all);
        let given = design.expect("an answer").power;
        assert!(sought == PowerUnknown::Power && given > 0.85, "{given}");
        let (sought, design) = answer_power_question(&PowerQuestion { cases: None, ..all });
        let design = design.expect("an answer");
        assert!(sought == PowerUnknown::Cases && design.cases < 30 && design.power >= 0.8, "{design:?}");
        let (sought, design) = answer_power_question(&PowerQuestion { repeat: None, ..all });
        let design = design.expect("an answer");
        assert!(sought == PowerUnknown::Repeat && design.repeat <= 5 && design.power >= 0.8, "{design:?}");
        let (sought, design) = answer_power_question(&PowerQuestion { effect: None, ..all });
        let design = design.expect("an answer");
        assert!(sought == PowerUnknown::Effect && design.effect <= 0.2 && design.power >= 0.8, "{design:?}");
    }

    #[test]
    fn what_no_number_of_runs_can_show_has_no_answer() {
        let none = PowerQuestion {
            baseline: 0.5,
            effect: Some(0.05),
            cases: Some(10),
            repeat: None,
            spread: 0.4,
            alpha: 0.05,
            power: 0.8,
        };
        assert_eq!(answer_power_question(&none), (PowerUnknown::Repeat, None));
        assert_eq!(
            answer_power_question(&PowerQuestion { effect: Some(0.0), cases: None, ..none }),
            (PowerUnknown::Cases, None)
        );
    }

    /// The example that showed the fault: power jumped where the formula took over.
    #[test]
    fn power_does_not_jump_with_one_more_case() {
        for (baseline, effect, spread) in [(0.9, 0.05, 0.2), (0.5, 0.1, 0.3), (0.95, -0.1, 0.25)] {
            for cases in [99, MANY_CASES] {
                let design = |cases| ComparisonDesign {
                    baseline,
                    effect,
                    cases,
                    repeat: 1,
                    spread,
                    alpha: 0.05,
                    power: 0.8,
                };
                let (fewer, more) = (design(cases).actual_power(), design(cases + 1).actual_power());
                assert!((fewer - more).abs() < 0.08, "{baseline} {effect} {cases}: {fewer} {more}");
            }
        }
    }
}
