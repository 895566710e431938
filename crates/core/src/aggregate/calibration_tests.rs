//! Tests of the calibration of judges.

use super::calibration::{JudgedOutput, VerdictPair, calibrate, count_drift};
use crate::model::{Arm, Digest};

/// Outputs of as many cases: first `judge`, then what a person says.
fn outputs(rows: &[(bool, Option<bool>)]) -> Vec<JudgedOutput> {
    let output = |at: usize, (judge_passed, person_passed): (bool, Option<bool>)| JudgedOutput {
        judge: "judge-1".to_owned(),
        suite: "s".to_owned(),
        case: format!("c{at}"),
        check: "polite".to_owned(),
        arm: Arm::WithSkill,
        judge_passed,
        person_passed,
        order: Digest::of_bytes(format!("{at}").as_bytes()),
        answer_bytes: Some(at as u64),
    };
    rows.iter().enumerate().map(|(at, row)| output(at, *row)).collect()
}

/// 100 labelled bad outputs of which 85 fail, 100 good ones of which 90 pass, and 800 outputs without a label, so that
/// the judge passes 700 of 1000.
fn golden() -> Vec<JudgedOutput> {
    let rows = |judge: bool, person: Option<bool>, times: usize| vec![(judge, person); times];
    outputs(
        &[
            rows(false, Some(false), 85),
            rows(true, Some(false), 15),
            rows(true, Some(true), 90),
            rows(false, Some(true), 10),
            rows(true, None, 595),
            rows(false, None, 205),
        ]
        .concat(),
    )
}

#[test]
fn golden_rate_from_labels() {
    let row = calibrate(&golden(), false).remove(0);
    assert_eq!((row.table.both_passed, row.table.only_judge_passed), (90, 15));
    let rate = &row.rates[0];
    assert!((rate.by_judge.value.expect("a rate") - 0.70).abs() < 1e-9);
    assert!((rate.corrected.value.expect("a rate") - 0.7333).abs() < 5e-5);
    assert_eq!(rate.not_corrected, None);
    let why = rate.not_prediction_powered.as_deref().expect("a reason");
    assert_eq!(why, "the labels are not known to be a random sample");
    let rate = &calibrate(&golden(), true)[0].rates[0];
    // Of those that the judge passed 90 of 105 pass, of the others 10 of 95.
    let expected = 0.7 * 90.0 / 105.0 + 0.3 * 10.0 / 95.0;
    assert!((rate.prediction_powered.value.expect("a rate") - expected).abs() < 1e-9);
}

#[test]
fn labels_that_come_first_in_the_random_order_are_a_sample() {
    let mut all = outputs(&[(true, None); 40]);
    all.sort_by(|a, b| a.order.cmp(&b.order));
    for (at, output) in all.iter_mut().enumerate().take(12) {
        output.person_passed = Some(at % 4 != 0);
    }
    let of = |all: &[JudgedOutput]| calibrate(all, false)[0].rates[0].prediction_powered;
    assert!((of(&all).value.expect("a rate") - 0.75).abs() < 1e-9);
    // A single gap, and nobody knows why it was left out.
    all[3].person_passed = None;
    assert_eq!(of(&all).value, None);
}

#[test]
fn too_few_labels_and_judges_that_guess_correct_nothing() {
    let rows = |rows: [(bool, bool, usize); 4]| {
        let rows = rows.iter().flat_map(|(judge, person, times)| vec![(*judge, Some(*person)); *times]);
        calibrate(&outputs(&rows.collect::<Vec<_>>()), false).remove(0).rates.remove(0)
    };
    for (labels, part) in [
        ([(true, true, 9), (false, true, 1), (true, false, 1), (false, false, 3)], "too few labels"),
        ([(true, true, 5), (false, true, 5), (true, false, 5), (false, false, 5)], "no better than chance"),
    ] {
        let rate = rows(labels);
        assert_eq!((rate.corrected.value, rate.corrected.low), (None, None));
        let why = rate.not_corrected.expect("a reason");
        assert!(why.contains(part), "{why}");
    }
}

#[test]
fn a_judge_that_passes_what_is_long_is_noticed() {
    let half = |long: bool| (0..10).map(move |at| (long || at == 0, Some(false)));
    let all = outputs(&half(false).chain(half(true)).collect::<Vec<_>>());
    let length = calibrate(&all, false)[0].length.expect("lengths");
    assert_eq!((length.people_failed.shorter_passed, length.people_failed.longer_passed), (1, 10));
    assert!(length.chance < 0.001 && length.prefers_longer == Some(true), "{length:?}");
    // The same verdicts in another order of lengths.
    let mixed = outputs(&(0..20).map(|at| (at % 2 == 0, Some(false))).collect::<Vec<_>>());
    assert_eq!(calibrate(&mixed, false)[0].length.expect("lengths").prefers_longer, None);
}

#[test]
fn changes_between_two_judges_are_counted_with_an_exact_test() {
    let before = outputs(&[(true, Some(false)); 8]);
    let mut after = before.clone();
    after.iter_mut().take(6).for_each(|output| output.judge_passed = false);
    let pairs: Vec<VerdictPair<'_>> =
        before.iter().zip(&after).map(|(before, after)| VerdictPair { before, after }).collect();
    let rows = count_drift(&pairs);
    assert_eq!((rows.len(), rows[0].now_failed, rows[0].corrected, rows[0].made_wrong), (1, 6, 6, 0));
    assert!((rows[0].chance - 0.03125).abs() < 1e-9);
}
