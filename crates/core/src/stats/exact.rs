//! Exact tests. They count possibilities instead of approximating, so they are valid for any number of runs.

use super::clustered::Cluster;

/// McNemar's test, two-sided: gives the chance that the pairs that differ are split at least so unevenly if both
/// directions are equally likely. 1 if none differ.
pub fn mcnemar(one_way: u64, other_way: u64) -> f64 {
    let (n, fewer) = (one_way + other_way, one_way.min(other_way));
    (2.0 * chance_of_at_most(fewer, n)).min(1.0)
}

/// Sign test, one-sided: gives the chance of this many wins or more if wins and losses are equally likely.
pub fn sign_test(wins: u64, losses: u64) -> f64 {
    chance_of_at_most(losses, wins + losses)
}

/// Gives the chance of at most `k` heads in `n` tosses.
fn chance_of_at_most(k: u64, n: u64) -> f64 {
    let logs = log_factorials(n);
    let choose = |k: usize| logs[n as usize] - logs[k] - logs[n as usize - k];
    (0..=k.min(n) as usize)
        .map(|k| (choose(k) - n as f64 * std::f64::consts::LN_2).exp())
        .sum::<f64>()
        .min(1.0)
}

/// Fisher's test, two-sided: gives the chance of a table as unlikely as this one or more if both sides have the
/// same pass rate. 1 if either side has no runs.
pub fn fisher(a_passed: u64, a_runs: u64, b_passed: u64, b_runs: u64) -> f64 {
    stratified_test(&[(Cluster::new(a_passed, a_runs), Cluster::new(b_passed, b_runs))])
}

/// Fisher's test over several cases, each with its own pass rate, two-sided. With one case it is Fisher's test; with
/// cases run once on each side it is McNemar's.
pub fn stratified_test(cases: &[(Cluster, Cluster)]) -> f64 {
    let (chances, seen) = chances_of_passes(cases);
    let Some(here) = chances.get(seen).copied() else { return 1.0 };
    // Chances that are equal may differ by rounding.
    let as_unlikely = chances.iter().filter(|chance| **chance <= here * (1.0 + 1e-7));
    as_unlikely.sum::<f64>().clamp(0.0, 1.0)
}

/// The same test, one-sided: gives the chance that the first side has as many passes as it has or more, and the chance
/// that it has as many or fewer. One more failure of the first side never lowers the first, nor raises the second.
pub(crate) fn one_sided_stratified_test(cases: &[(Cluster, Cluster)]) -> (f64, f64) {
    let (chances, seen) = chances_of_passes(cases);
    if seen >= chances.len() {
        return (1.0, 1.0);
    }
    let sum = |part: &[f64]| part.iter().sum::<f64>().clamp(0.0, 1.0);
    (sum(&chances[seen..]), sum(&chances[..=seen]))
}

/// Gives the chances of the least possible number of passes of the first side, one more, and so on, and the position of
/// the number that it has.
fn chances_of_passes(cases: &[(Cluster, Cluster)]) -> (Vec<f64>, usize) {
    let mut chances = vec![1.0];
    let mut seen = 0;
    for (a, b) in cases {
        let (least, own) = hypergeometric(a.runs, b.runs, a.passed + b.passed);
        chances = convolve(&chances, &own);
        seen += a.passed.saturating_sub(least) as usize;
    }
    (chances, seen)
}

/// Gives the least number of passes that the first side can have, and the chances of that number, one more, and so
/// on, if the passes are dealt out at random.
pub(super) fn hypergeometric(a_runs: u64, b_runs: u64, passes: u64) -> (u64, Vec<f64>) {
    let passes = passes.min(a_runs + b_runs);
    let (least, most) = (passes.saturating_sub(b_runs), passes.min(a_runs));
    let logs = log_factorials(a_runs + b_runs);
    let choose = |n: u64, k: u64| logs[n as usize] - logs[k as usize] - logs[(n - k) as usize];
    let all = choose(a_runs + b_runs, passes);
    let chance = |k: u64| (choose(a_runs, k) + choose(b_runs, passes - k) - all).exp();
    (least, (least..=most).map(chance).collect())
}

pub(super) fn convolve(a: &[f64], b: &[f64]) -> Vec<f64> {
    if let [only] = b {
        return a.iter().map(|x| x * only).collect();
    }
    let mut out = vec![0.0; a.len() + b.len() - 1];
    for (i, x) in a.iter().enumerate() {
        for (j, y) in b.iter().enumerate() {
            out[i + j] += x * y;
        }
    }
    out
}

pub(super) fn log_factorials(most: u64) -> Vec<f64> {
    let mut logs = vec![0.0; most as usize + 1];
    for n in 1..logs.len() {
        logs[n] = logs[n - 1] + (n as f64).ln();
    }
    logs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop, prop_assert, proptest};

    use super::*;
    use crate::stats::testing::assert_near;

    #[test]
    fn golden_mcnemar_and_sign() {
        for (one, other, expected) in
            [(5, 0, 0.0625), (6, 0, 0.03125), (9, 1, 0.02148), (36, 24, 0.1550), (0, 0, 1.0), (3, 3, 1.0)]
        {
            assert_near(mcnemar(one, other), expected);
            assert_near(mcnemar(other, one), expected);
        }
        assert_near(sign_test(5, 0), 0.03125);
    }

    /// The power of the one-sided sign test at 5 % if a case is won, tied and lost with these chances.
    #[test]
    fn golden_power_of_the_sign_test() {
        let (win, tie, loss): (f64, f64, f64) = (0.64, 0.32, 0.04);
        for (cases, expected) in [(5u64, 0.107), (15, 0.918)] {
            let logs = log_factorials(cases);
            let mut power = 0.0;
            for wins in 0..=cases {
                for losses in 0..=cases - wins {
                    if wins + losses > 0 && sign_test(wins, losses) <= 0.05 {
                        let ties = cases - wins - losses;
                        let ways = logs[cases as usize]
                            - logs[wins as usize]
                            - logs[losses as usize]
                            - logs[ties as usize];
                        power += ways.exp()
                            * win.powi(wins as i32)
                            * loss.powi(losses as i32)
                            * tie.powi(ties as i32);
                    }
                }
            }
            assert!((power - expected).abs() < 5e-4, "{cases}: {power}");
        }
    }

    #[test]
    fn golden_fisher() {
        for (a, a_runs, b, b_runs, expected) in [
            (3, 3, 0, 3, 0.1),
            (5, 5, 0, 5, 0.0079),
            (18, 20, 11, 20, 0.0310),
            (1, 1, 0, 1, 1.0),
            (0, 0, 3, 3, 1.0),
        ] {
            assert_near(fisher(a, a_runs, b, b_runs), expected);
            assert_near(fisher(b, b_runs, a, a_runs), expected);
        }
    }

    #[test]
    fn pairs_of_single_runs_are_mcnemar() {
        let (pass, fail) = (Cluster::new(1, 1), Cluster::new(0, 1));
        for (wins, losses, ties) in [(6, 0, 2), (9, 1, 0), (4, 3, 5)] {
            let win = std::iter::repeat_n((pass, fail), wins);
            let loss = std::iter::repeat_n((fail, pass), losses);
            let tie = std::iter::repeat_n((pass, pass), ties);
            let cases: Vec<_> = win.chain(loss).chain(tie).collect();
            assert_near(stratified_test(&cases), mcnemar(wins as u64, losses as u64));
        }
    }

    proptest! {
        #[test]
        fn chances_are_chances(of in prop::collection::vec(((0u64..6, 0u64..6), (0u64..6, 0u64..6)), 0..8)) {
            let cases: Vec<_> = of.iter().map(|((a, n), (b, m))| (Cluster::new(*a, *n), Cluster::new(*b, *m))).collect();
            let p = stratified_test(&cases);
            prop_assert!((0.0..=1.0).contains(&p), "{}", p);
            let swapped: Vec<_> = cases.iter().map(|(a, b)| (*b, *a)).collect();
            prop_assert!((stratified_test(&swapped) - p).abs() < 1e-9);
        }
    }
}
