//! How likely a gate on the pass rate holds, before anything is run.

use super::clustered::{Cluster, clustered_rate};
use super::{ALPHA, SeededRandom};

/// How alike the runs of one case are taken to be (the intraclass correlation) while nothing is known of them.
const USUAL_LIKENESS: f64 = 0.3;

const ROUNDS: usize = 1000;
const SEED: u64 = 1;

/// Gives the chance that a gate on the pass rate holds for a skill with this true rate. `confidence` is how sure the gate
/// must be; `None` if the value itself decides.
pub fn chance_to_pass_gate(
    rate: f64,
    threshold: f64,
    confidence: Option<f64>,
    cases: u64,
    repeat: u64,
) -> f64 {
    let mut random = SeededRandom::new(SEED);
    let holds = |random: &mut SeededRandom| {
        let clusters: Vec<Cluster> = (0..cases)
            .map(|_| {
                let own = draw_rate(rate, random);
                Cluster::new(random.successes(repeat, own), repeat)
            })
            .collect();
        let alpha = confidence.map_or(ALPHA, |sure| 2.0 * (1.0 - sure));
        let found = clustered_rate(&clusters, alpha);
        let decides = found.map(|(value, at)| if confidence.is_some() { at.low } else { value });
        decides.is_some_and(|value| value >= threshold)
    };
    let held = (0..ROUNDS).filter(|_| holds(&mut random)).count();
    held as f64 / ROUNDS as f64
}

/// Draws the pass rate of one case.
fn draw_rate(mean: f64, random: &mut SeededRandom) -> f64 {
    if mean <= 0.0 || mean >= 1.0 {
        return mean;
    }
    let sum = 1.0 / USUAL_LIKENESS - 1.0;
    let (a, b) = (random.log_gamma(mean * sum), random.log_gamma((1.0 - mean) * sum));
    1.0 / (1.0 + (b - a).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skill_at_the_value_rarely_passes_a_gate_that_must_be_sure() {
        for (cases, repeat) in [(20, 1), (20, 5), (60, 3)] {
            let at_value = chance_to_pass_gate(0.8, 0.8, Some(0.9), cases, repeat);
            let above = chance_to_pass_gate(0.97, 0.8, Some(0.9), cases, repeat);
            assert!(at_value <= 0.11 && above > 0.6, "{cases} × {repeat}: {at_value} {above}");
            let by_value = chance_to_pass_gate(0.8, 0.8, None, cases, repeat);
            assert!((0.35..0.75).contains(&by_value), "{by_value}");
        }
    }

    #[test]
    fn some_gates_cannot_hold() {
        assert_eq!(chance_to_pass_gate(1.0, 0.8, Some(0.9), 10, 1), 0.0);
        assert_eq!(chance_to_pass_gate(1.0, 0.8, Some(0.9), 11, 1), 1.0);
        assert_eq!(chance_to_pass_gate(1.0, 0.8, None, 1, 1), 1.0);
    }
}
