//! A test of the differences of cases that makes no assumption about their size.

/// The chances that differences at least as extreme arise if each case were as likely to differ the other way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SignFlipChances {
    /// One-sided: the chance of such a gain.
    pub gain: f64,
    /// One-sided: the chance of such a loss.
    pub loss: f64,
}

/// The number of steps that a whole difference is divided into where the runs of cases have no small common multiple.
const FINE_STEPS: u64 = 1000;

/// Tests the differences of cases by counting all ways to swap the two sides of each case. `steps` is a number by
/// which every difference is a whole number of steps, or `None`: then differences are rounded against the result.
///
/// The runs of one case are one difference, however many there are: 12 wins and no loss over 4 cases have the chance
/// 1 / 16, as 4 wins have.
pub fn sign_flip_test(differences: &[f64], steps: Option<u64>) -> SignFlipChances {
    let steps = steps.filter(|steps| *steps <= FINE_STEPS);
    let scale = steps.unwrap_or(FINE_STEPS) as f64;
    let whole = |difference: f64, direction: f64| {
        let scaled = direction * difference * scale;
        // A whole number may differ from itself by rounding.
        if steps.is_some() { scaled.round() as i64 } else { (scaled + 1e-9).floor() as i64 }
    };
    let one_sided = |direction: f64| {
        let values: Vec<i64> = differences.iter().map(|difference| whole(*difference, direction)).collect();
        chance_of_no_gain(&values)
    };
    SignFlipChances { gain: one_sided(1.0), loss: one_sided(-1.0) }
}

/// Gives the share of all subsets whose sum is not above 0. That is the share of all choices of signs whose total is
/// at least the total seen, and it never falls if a value is lowered.
fn chance_of_no_gain(values: &[i64]) -> f64 {
    let negative: i64 = values.iter().filter(|value| **value < 0).sum();
    let positive: i64 = values.iter().filter(|value| **value > 0).sum();
    let zero = negative.unsigned_abs() as usize;
    let mut chances = vec![0.0; zero + positive as usize + 1];
    chances[zero] = 1.0;
    let (mut first, mut last) = (zero, zero);
    for value in values.iter().filter(|value| **value != 0) {
        let shift = value.unsigned_abs() as usize;
        if *value > 0 {
            for at in (first..=last).rev() {
                chances[at] *= 0.5;
                chances[at + shift] += chances[at];
            }
            last += shift;
        } else {
            for at in first..=last {
                chances[at] *= 0.5;
                chances[at - shift] += chances[at];
            }
            first -= shift;
        }
    }
    chances[..=zero].iter().sum::<f64>().clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{ProptestConfig, prop, prop_assert, proptest};

    use super::*;
    use crate::stats::{sign_test, testing::assert_near};

    #[test]
    fn golden_runs_of_one_case_count_once() {
        assert_near(sign_flip_test(&[3.0; 4], Some(1)).gain, 1.0 / 16.0);
        assert_near(sign_flip_test(&[1.0; 4], Some(1)).gain, 1.0 / 16.0);
    }

    #[test]
    fn single_runs_are_a_sign_test() {
        for (wins, losses) in [(6, 0), (9, 1), (4, 4), (0, 0), (2, 7)] {
            let values = [vec![1.0; wins], vec![-1.0; losses], vec![0.0; 3]].concat();
            let found = sign_flip_test(&values, Some(1));
            assert_near(found.gain, sign_test(wins as u64, losses as u64));
            assert_near(found.loss, sign_test(losses as u64, wins as u64));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn counting_is_trying_out_and_a_loss_never_helps(
            values in prop::collection::vec(-6i64..=6, 1..10), at in 0usize..10
        ) {
            let tried = |values: &[i64]| {
                let no_gain = (0u32..1 << values.len()).filter(|chosen| {
                    values.iter().enumerate().filter(|(at, _)| chosen >> at & 1 == 1).map(|(_, v)| v).sum::<i64>() <= 0
                });
                no_gain.count() as f64 / f64::from(1u32 << values.len())
            };
            let chance = chance_of_no_gain(&values);
            prop_assert!((chance - tried(&values)).abs() < 1e-9);
            let mut lower = values.clone();
            lower[at % values.len()] -= 1;
            prop_assert!(chance_of_no_gain(&lower) >= chance - 1e-12);
        }
    }
}
