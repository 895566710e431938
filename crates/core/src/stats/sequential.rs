//! Wald's sequential test, and estimates that hold although it decided how often a case ran.

use super::proportion::Interval;

/// A test whose result may be looked at after every run (Wald's SPRT): is the pass rate of a case low or high?
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sprt {
    accept: f64,
    reject: f64,
    pass: f64,
    fail: f64,
}

/// The decision of a sequential test so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SprtDecision {
    /// The rate is the high one.
    Accept,
    /// The rate is the low one.
    Reject,
    /// More runs are needed.
    Undecided,
}

impl Sprt {
    /// Makes a test that distinguishes a rate of `low` from one of `high`. `alpha` and `beta` limit how often it is wrong
    /// if the rate is low and if it is high. `None` if these rates cannot be distinguished.
    pub fn new(low: f64, high: f64, alpha: f64, beta: f64) -> Option<Self> {
        let inside = |share: f64| share > 0.0 && share < 1.0;
        let sound = inside(low) && inside(high) && low < high && inside(alpha) && inside(beta);
        (sound && alpha + beta < 1.0).then(|| Self {
            accept: ((1.0 - beta) / alpha).ln(),
            reject: (beta / (1.0 - alpha)).ln(),
            pass: (high / low).ln(),
            fail: ((1.0 - high) / (1.0 - low)).ln(),
        })
    }

    /// Decides by the numbers of runs that passed and failed so far.
    pub fn decide(&self, passed: u64, failed: u64) -> SprtDecision {
        let evidence = passed as f64 * self.pass + failed as f64 * self.fail;
        match evidence {
            _ if evidence >= self.accept => SprtDecision::Accept,
            _ if evidence <= self.reject => SprtDecision::Reject,
            _ => SprtDecision::Undecided,
        }
    }
}

/// What the runs of a case show if a sequential test decided when they stop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StoppedCase {
    /// The estimate of the pass rate. Its mean over many such cases is their pass rate. The plain share of passes has
    /// another mean, because runs that begin well stop at a different number than runs that begin badly.
    pub pass_rate: f64,
    /// The estimate of the chance that two runs both pass. `None` after a single run.
    pub both_of_two: Option<f64>,
    /// The estimate of the chance that at least one of two runs passes. `None` after a single run.
    pub any_of_two: Option<f64>,
    /// The number of runs that counted: those up to the decision.
    pub runs: u64,
}

/// Evaluates the runs of a case in the order in which they were planned, true for a pass. Runs after the decision do not
/// count. `None` without runs.
///
/// The estimates are those of Girshick, Mosteller and Savage: of all orders of passes and failures that the test does
/// not stop earlier, the share of those that begin with a pass, with two, or not with two failures.
pub fn evaluate_stopped_case(test: &Sprt, outcomes: impl IntoIterator<Item = bool>) -> Option<StoppedCase> {
    let (mut passed, mut failed) = (0, 0);
    for outcome in outcomes {
        if outcome {
            passed += 1
        } else {
            failed += 1
        }
        if test.decide(passed, failed) != SprtDecision::Undecided {
            break;
        }
    }
    let all = count_orders(test, (0, 0), (passed, failed));
    if passed + failed == 0 || all <= 0.0 {
        return None;
    }
    let share = |begin: (u64, u64)| count_orders(test, begin, (passed, failed)) / all;
    let is_longer = passed + failed > 1;
    Some(StoppedCase {
        pass_rate: share((1, 0)),
        both_of_two: is_longer.then(|| share((2, 0))),
        any_of_two: is_longer.then(|| 1.0 - share((0, 2))),
        runs: passed + failed,
    })
}

/// Counts the orders of passes and failures that lead from one count to another without a decision on the way.
fn count_orders(test: &Sprt, from: (u64, u64), to: (u64, u64)) -> f64 {
    if from.0 > to.0 || from.1 > to.1 {
        return 0.0;
    }
    let (width, height) = ((to.0 - from.0) as usize + 1, (to.1 - from.1) as usize + 1);
    let mut orders = vec![vec![0.0; height]; width];
    for x in 0..width {
        for y in 0..height {
            let at = (from.0 + x as u64, from.1 + y as u64);
            let came = match (x, y) {
                (0, 0) => 1.0,
                _ => {
                    let from_pass = if x > 0 { orders[x - 1][y] } else { 0.0 };
                    let from_failure: f64 = if y > 0 { orders[x][y - 1] } else { 0.0 };
                    from_pass + from_failure
                }
            };
            // The runs end where the test decides, so no order goes on from there.
            let goes_on = at == to || test.decide(at.0, at.1) == SprtDecision::Undecided;
            orders[x][y] = if goes_on { came } else { 0.0 };
        }
    }
    orders[width - 1][height - 1]
}

/// Gives an interval of a pass rate that holds at every number of runs at once, so it may be looked at after each run
/// and the runs may stop at any time. A rate is in it while the chance of these runs at that rate is more than `alpha`
/// times their chance if any rate is equally likely. `None` without runs.
pub fn confidence_sequence(passed: u64, runs: u64, alpha: f64) -> Option<Interval> {
    let failed = runs.checked_sub(passed)?;
    if runs == 0 {
        return None;
    }
    let bound = log_chance_at_any_rate(passed, failed) + alpha.ln();
    let log_chance = |rate: f64| log_chance_at_rate(passed, failed, rate);
    let share = passed as f64 / runs as f64;
    let end = |outer: f64| {
        let (mut outside, mut inside) = (outer, share);
        if log_chance(outside) >= bound {
            return outside;
        }
        for _ in 0..50 {
            let middle = (outside + inside) / 2.0;
            if log_chance(middle) >= bound { inside = middle } else { outside = middle }
        }
        inside
    };
    Some(Interval { low: end(0.0), high: end(1.0) })
}

/// The logarithm of the chance of these runs, in their order, if any rate is equally likely.
fn log_chance_at_any_rate(passed: u64, failed: u64) -> f64 {
    let logs = super::exact::log_factorials(passed + failed + 1);
    logs[passed as usize] + logs[failed as usize] - logs[(passed + failed) as usize + 1]
}

/// The logarithm of the chance of these runs, in their order, at one rate.
fn log_chance_at_rate(passed: u64, failed: u64, rate: f64) -> f64 {
    let part = |count: u64, rate: f64| if count == 0 { 0.0 } else { count as f64 * rate.ln() };
    part(passed, rate) + part(failed, 1.0 - rate)
}

/// Gives the evidence (an e-value) that a rate is lower than `goal`: how much more likely these runs are if any rate is
/// equally likely than at the rate from `goal` up that fits them best. If the rate is `goal` or higher, its mean is at
/// most 1, whenever the runs stop. Without runs it is 1.
pub fn evidence_of_lower_rate(passed: u64, runs: u64, goal: f64) -> f64 {
    let failed = runs.saturating_sub(passed);
    if runs == 0 {
        return 1.0;
    }
    let best = (passed as f64 / runs as f64).max(goal);
    (log_chance_at_any_rate(passed, failed) - log_chance_at_rate(passed, failed, best)).exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{SeededRandom, testing::assert_near};

    fn golden() -> Sprt {
        Sprt::new(0.6, 0.9, 0.05, 0.2).expect("sound")
    }

    #[test]
    fn golden_bounds_and_steps() {
        let Sprt { accept, reject, pass, fail } = golden();
        assert_near(accept, 2.77259);
        assert_near(reject, -1.55814);
        assert_near(pass, 0.40547);
        assert_near(fail, -1.38629);
    }

    #[test]
    fn seven_passes_accept_and_two_failures_reject() {
        for (passed, failed, expected) in [
            (0, 0, SprtDecision::Undecided),
            (6, 0, SprtDecision::Undecided),
            (7, 0, SprtDecision::Accept),
            (0, 1, SprtDecision::Undecided),
            (0, 2, SprtDecision::Reject),
            (7, 1, SprtDecision::Undecided),
        ] {
            assert_eq!(golden().decide(passed, failed), expected, "{passed} {failed}");
        }
    }

    #[test]
    fn rates_that_cannot_be_distinguished_have_no_test() {
        for (low, high, alpha, beta) in
            [(0.9, 0.6, 0.05, 0.2), (0.6, 1.0, 0.05, 0.2), (0.0, 0.5, 0.05, 0.2), (0.6, 0.9, 0.6, 0.5)]
        {
            assert_eq!(Sprt::new(low, high, alpha, beta), None);
        }
    }

    /// Every possible series of results of a case, with its chance: the estimates have the right means.
    #[test]
    fn estimates_of_stopped_cases_have_no_bias() {
        for rate in [0.1, 0.5, 0.65, 0.95f64] {
            let (mut mean, mut both, mut any) = (0.0, 0.0, 0.0);
            for outcome_bits in 0u32..1 << 9 {
                let outcomes: Vec<bool> = (0..9).map(|at| outcome_bits >> at & 1 == 1).collect();
                let passes = outcomes.iter().filter(|passed| **passed).count() as i32;
                let chance = rate.powi(passes) * (1.0 - rate).powi(9 - passes);
                let found = evaluate_stopped_case(&golden(), outcomes).expect("runs");
                mean += chance * found.pass_rate;
                both += chance * found.both_of_two.expect("two runs");
                any += chance * found.any_of_two.expect("two runs");
            }
            assert_near(mean, rate);
            assert_near(both, rate * rate);
            assert_near(any, 1.0 - (1.0 - rate).powi(2));
        }
        let found = evaluate_stopped_case(&golden(), [true; 9]).expect("runs");
        assert_eq!((found.pass_rate, found.runs), (1.0, 7));
        assert_eq!(evaluate_stopped_case(&golden(), []), None);
    }

    /// The rate leaves the interval at any of 60 looks in at most 5 % of the courses.
    #[test]
    fn an_interval_that_may_be_looked_at_after_every_run() {
        let mut random = SeededRandom::new(4);
        for rate in [0.5, 0.9, 0.98] {
            let mut left = 0;
            for _ in 0..2000 {
                let mut passed = 0;
                let is_out =
                    |passed, runs| !confidence_sequence(passed, runs, 0.05).expect("runs").contains(rate);
                left += usize::from((1..=60).any(|runs| {
                    passed += u64::from(random.happens(rate));
                    is_out(passed, runs)
                }));
            }
            assert!(left <= 110, "{rate}: {left} of 2000");
        }
    }

    /// A look after every run is allowed: the error rates stay within their limits.
    #[test]
    fn peeking_does_not_raise_the_error() {
        let mut random = SeededRandom::new(11);
        for (rate, wrong, most) in [(0.6, SprtDecision::Accept, 0.05), (0.9, SprtDecision::Reject, 0.2)] {
            let mut errors = 0;
            for _ in 0..4000 {
                let (mut passed, mut failed) = (0, 0);
                while golden().decide(passed, failed) == SprtDecision::Undecided {
                    if random.happens(rate) { passed += 1 } else { failed += 1 }
                }
                errors += usize::from(golden().decide(passed, failed) == wrong);
            }
            let share = errors as f64 / 4000.0;
            assert!(share <= most + 0.01, "{rate}: {share}");
        }
    }
}
