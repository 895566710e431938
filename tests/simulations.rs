//! What the statistics promise, tried out with seeded dice.

use practicum::improve::{CaseSplit, VersionPair, confirm_candidate, decide_candidate};
use practicum::model::{ComparisonVerdict, SkillUse, TokenUsage, TrialRecord, Verdict};
use practicum::stats::{
    ALPHA, ComparisonDesign, DEFAULT_MARGIN, ImprovementDesign, MOST_ROUNDS_WITHOUT_CANDIDATE, SeededRandom,
    compare_pairs, fewest_cases, simulate_pairs, simulated_power,
};
use serde_json::json;

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

/// The rates of 20 cases whose runs are correlated by 0.3, spread evenly around a half.
fn case_rates(random: &mut SeededRandom) -> Vec<f64> {
    (0..20).map(|_| 0.5 + (random.fraction() - 0.5) * 0.9_f64.sqrt()).collect()
}

/// Records of three runs of each case at these rates.
fn simulated_run(sample: &TrialRecord, rates: &[f64], random: &mut SeededRandom) -> Vec<TrialRecord> {
    let mut records = Vec::new();
    for (case, rate) in rates.iter().enumerate() {
        for attempt in 1..=3 {
            let verdict = if random.happens(*rate) { Verdict::Pass } else { Verdict::Fail };
            records.push(TrialRecord { case: format!("c{case}"), attempt, verdict, ..sample.clone() });
        }
    }
    records
}

fn sample_record() -> TrialRecord {
    let condition = json!({"agent": "a", "model": null, "arm": "with", "mode": "baseline"});
    serde_json::from_value(json!({
        "trial": "t1", "suite": "s", "case": "c", "condition": condition, "attempt": 1,
        "ended": "finished", "ended_because": null, "verdict": "pass", "checks": [], "fired": null,
        "skills": SkillUse::default(), "usage": TokenUsage::default(), "cost_usd": 0.0, "model": null,
        "seconds": 1.0,
    }))
    .expect("a record")
}

/// One loop of `improve` by the program's own decisions, in which every proposal has this effect. Says whether a
/// version replaced the skill.
fn replaces(effect: f64, rounds: u32, sample: &TrialRecord, random: &mut SeededRandom) -> bool {
    let before = case_rates(random);
    let after: Vec<f64> = before.iter().map(|rate| (rate + effect).min(1.0)).collect();
    let mut best = simulated_run(sample, &before, random);
    let split = CaseSplit::from_records(&best, 1);
    let (mut confirmations, mut flat) = (0, 0);
    for _ in 0..rounds {
        let tried = simulated_run(sample, &after, random);
        let looked = decide_candidate(VersionPair { best: &best, candidate: &tried }, &split, None);
        if !looked.accepted {
            flat += 1;
            if flat == MOST_ROUNDS_WITHOUT_CANDIDATE {
                return false;
            }
            continue;
        }
        (confirmations, flat) = (confirmations + 1, 0);
        best = simulated_run(sample, &before, random);
        let fresh = simulated_run(sample, &after, random);
        let pair = VersionPair { best: &best, candidate: &fresh };
        if confirm_candidate(pair, &split, None, confirmations).accepted {
            return true;
        }
    }
    false
}

/// Edits without an effect rarely replace a skill.
#[track_caller]
fn assert_rarely_replaced(rounds: u32, seed: u64) {
    let (sample, mut random) = (sample_record(), SeededRandom::new(seed));
    let replaced = (0..500).filter(|_| replaces(0.0, rounds, &sample, &mut random)).count();
    println!("{replaced} of 500 loops without an effect replaced the skill in {rounds} rounds");
    assert!(replaced <= 25, "{replaced} of 500 loops of {rounds} rounds");
}

#[test]
fn a_short_loop_of_edits_without_an_effect_replaces_nothing() {
    assert_rarely_replaced(5, 11);
}

#[test]
fn a_long_loop_of_edits_without_an_effect_replaces_nothing() {
    assert_rarely_replaced(20, 11);
}

/// Proposals that help are found, and as often as the plan says.
#[test]
fn a_loop_of_edits_that_help_finds_one() {
    let (sample, mut random) = (sample_record(), SeededRandom::new(12));
    let found = (0..200).filter(|_| replaces(0.2, 5, &sample, &mut random)).count();
    let announced = ImprovementDesign::with_usual_cases(20, 3, 5).chance_of_finding(0.2, 500, 13);
    println!("{found} of 200 loops found an improvement of 0.2; the plan announced {announced}");
    assert!(found >= 160, "{found} of 200 loops");
    assert!((found as f64 / 200.0 - announced).abs() <= 0.1, "{found} of 200 loops, announced {announced}");
}
