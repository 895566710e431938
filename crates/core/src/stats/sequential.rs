//! Wald's sequential test.

/// A test whose result may be looked at after every run (Wald's SPRT): is the pass rate of a case low or high?
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sprt {
    accept: f64,
    reject: f64,
    pass: f64,
    fail: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SprtDecision {
    /// The rate is the high one.
    Accept,
    /// The rate is the low one.
    Reject,
    Undecided,
}

impl Sprt {
    /// Makes a test that tells a rate of `low` from one of `high`. `alpha` and `beta` limit how often it is wrong
    /// if the rate is low and if it is high. `None` if these rates cannot be told apart.
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

    pub fn decide(&self, passed: u64, failed: u64) -> SprtDecision {
        let evidence = passed as f64 * self.pass + failed as f64 * self.fail;
        match evidence {
            _ if evidence >= self.accept => SprtDecision::Accept,
            _ if evidence <= self.reject => SprtDecision::Reject,
            _ => SprtDecision::Undecided,
        }
    }
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
    fn rates_that_cannot_be_told_apart_have_no_test() {
        for (low, high, alpha, beta) in
            [(0.9, 0.6, 0.05, 0.2), (0.6, 1.0, 0.05, 0.2), (0.0, 0.5, 0.05, 0.2), (0.6, 0.9, 0.6, 0.5)]
        {
            assert_eq!(Sprt::new(low, high, alpha, beta), None);
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
