//! What the statistics promise, tried out with seeded dice.

use practicum::model::ComparisonVerdict;
use practicum::stats::{
    ALPHA, ComparisonDesign, DEFAULT_MARGIN, SeededRandom, compare_pairs, fewest_cases, simulate_pairs,
    simulated_power,
};

fn design(baseline: f64, effect: f64, cases: u64, repeat: u64) -> ComparisonDesign {
    ComparisonDesign { baseline, effect, cases, repeat, spread: 0.0, alpha: ALPHA, power: 0.8 }
}

/// Nothing changed, so every verdict of better or worse is a false alarm.
#[test]
fn comparing_the_same_with_itself_rarely_alarms() {
    for rate in [0.3, 0.6, 0.9] {
        for (cases, repeat) in [(10, 1), (10, 3), (20, 5), (5, 10), (1, 20), (250, 1)] {
            let design = design(rate, 0.0, cases, repeat);
            let mut random = SeededRandom::new(6);
            let alarms = (0..1000)
                .filter(|_| {
                    let verdict =
                        compare_pairs(&simulate_pairs(&design, &mut random), DEFAULT_MARGIN, ALPHA).verdict;
                    matches!(verdict, ComparisonVerdict::Better | ComparisonVerdict::Worse)
                })
                .count();
            assert!(alarms <= 65, "{alarms} of 1000 at {rate} with {cases} cases run {repeat} times");
        }
    }
}

/// Other dice than those with which the promise was made.
#[test]
fn true_effects_are_found_as_often_as_promised() {
    for (baseline, effect, repeat) in [(0.6, 0.2, 3), (0.5, 0.3, 1), (0.9, -0.2, 5), (0.3, 0.15, 10)] {
        let planned = design(baseline, effect, 1, repeat);
        let cases = fewest_cases(planned).expect("a number");
        let planned = ComparisonDesign { cases, ..planned };
        let (promised, found) = (planned.actual_power(), simulated_power(&planned, 1000, 99));
        assert!((promised - found).abs() <= 0.05, "{planned:?} promised {promised}, gave {found}");
        assert!(found >= planned.power - 0.05, "{planned:?} gave {found}");
    }
}

/// Also where cases differ in how much they gain, and where a formula is all there is.
#[test]
fn large_designs_keep_the_promise_of_the_formula() {
    for (effect, repeat, spread) in [(0.1, 2, 0.0), (0.1, 4, 0.2)] {
        let planned = ComparisonDesign { spread, ..design(0.5, effect, 1, repeat) };
        let planned = ComparisonDesign { cases: fewest_cases(planned).expect("a number"), ..planned };
        assert!(planned.runs() >= 400, "{planned:?}");
        let (promised, found) = (planned.actual_power(), simulated_power(&planned, 500, 5));
        assert!((promised - found).abs() <= 0.05, "{planned:?} promised {promised}, gave {found}");
    }
}
