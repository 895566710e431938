//! Power analysis: how many runs are needed, computed before they are paid for.

use super::clustered::Cluster;
use super::paired::{CasePair, DEFAULT_MARGIN, MANY_RUNS, compare_pairs};
use super::{SeededRandom, quantile};
use crate::model::ComparisonVerdict;

/// The sources of variance in a comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Variances {
    /// The variance of the true differences between cases (ω²).
    pub between_cases: f64,
    /// The variance of the runs of one case (σ²) and their number (K), on each side.
    pub before: (f64, u64),
    pub after: (f64, u64),
}

impl Variances {
    fn variance_per_case(self) -> f64 {
        let share = |(variance, runs): (f64, u64)| variance / runs.max(1) as f64;
        self.between_cases + share(self.before) + share(self.after)
    }
}

/// Gives the number of cases needed to show a difference of this size with this power. `None` for no difference.
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
    pub cases: u64,
    /// The number of runs of each case on each side.
    pub repeat: u64,
    /// The standard deviation of the change between cases.
    pub spread: f64,
    pub alpha: f64,
    pub power: f64,
}

impl ComparisonDesign {
    pub fn variances(&self) -> Variances {
        let after = (self.baseline + self.effect).clamp(0.0, 1.0);
        let of = |rate: f64| (rate * (1.0 - rate), self.repeat);
        Variances { between_cases: self.spread.powi(2), before: of(self.baseline), after: of(after) }
    }

    pub fn runs(&self) -> u64 {
        self.cases.saturating_mul(self.repeat).saturating_mul(2)
    }

    fn power_by_formula(&self) -> f64 {
        let error = (self.variances().variance_per_case() / self.cases.max(1) as f64).sqrt();
        let beyond = self.effect.abs() / error - quantile::normal(1.0 - self.alpha / 2.0);
        normal_share(beyond)
    }

    /// Gives the chance that the comparison will show the effect. Small designs are simulated, because no formula
    /// predicts what an exact test, or the spread of a few cases, will give for them.
    pub fn actual_power(&self) -> f64 {
        match self.runs() >= MANY_RUNS && self.cases >= MANY_CASES {
            true => self.power_by_formula(),
            false => simulated_power(self, SIMULATION_ROUNDS, SEED),
        }
    }
}

/// The number of cases from which their spread is known well enough for a formula.
const MANY_CASES: u64 = 100;

fn normal_share(below: f64) -> f64 {
    use statrs::distribution::{ContinuousCDF, Normal};
    if below.is_nan() { 0.0 } else { Normal::standard().cdf(below) }
}

const SIMULATION_ROUNDS: usize = 1000;
const SEED: u64 = 1;

/// Gives the share of simulated comparisons that find the effect.
pub fn simulated_power(design: &ComparisonDesign, rounds: usize, seed: u64) -> f64 {
    let wanted = if design.effect < 0.0 { ComparisonVerdict::Worse } else { ComparisonVerdict::Better };
    let mut random = SeededRandom::new(seed);
    let found = (0..rounds)
        .filter(|_| {
            compare_pairs(&simulate_pairs(design, &mut random), DEFAULT_MARGIN, design.alpha).verdict
                == wanted
        })
        .count();
    found as f64 / rounds as f64
}

/// Simulates the results of one comparison.
pub fn simulate_pairs(design: &ComparisonDesign, random: &mut SeededRandom) -> Vec<CasePair> {
    let side = |rate: f64, random: &mut SeededRandom| {
        Cluster::new(random.successes(design.repeat, rate.clamp(0.0, 1.0)), design.repeat)
    };
    let pair = |_| {
        let sway = if random.happens(0.5) { design.spread } else { -design.spread };
        let before = side(design.baseline, random);
        CasePair { before, after: side(design.baseline + design.effect + sway, random) }
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
pub fn fewest_repeats(design: ComparisonDesign) -> Option<u64> {
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
pub fn detectable_effect(design: ComparisonDesign) -> Option<f64> {
    let gains = (1..=100).map(|points| f64::from(points) / 100.0);
    let possible = gains.take_while(|gain| design.baseline + gain <= 1.0 + 1e-9);
    // Simulation is slow, and hardly ever finds more power than the formula. So gains far below by the formula are
    // skipped.
    let hopeful = possible
        .map(|effect| ComparisonDesign { effect, ..design })
        .filter(|design| design.power_by_formula() >= design.power - 0.05);
    hopeful.into_iter().find(|design| design.actual_power() >= design.power).map(|design| design.effect)
}

/// A question about a planned comparison. The first of effect, cases and repeat that is `None`
/// is searched for, else the power.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PowerQuestion {
    pub baseline: f64,
    pub effect: Option<f64>,
    pub cases: Option<u64>,
    pub repeat: Option<u64>,
    pub spread: f64,
    pub alpha: f64,
    pub power: f64,
}

/// The part of the design that was searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PowerUnknown {
    Cases,
    Repeat,
    Effect,
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
}
