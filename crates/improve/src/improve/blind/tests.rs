//! Tests of blind comparisons.

use super::document::OutcomeConfidence;
use super::*;
use practicum_core::model::ComparisonVerdict;
use practicum_core::stats::SeededRandom;

fn other_side(side: ComparedSide) -> ComparedSide {
    match side {
        ComparedSide::First => ComparedSide::Second,
        ComparedSide::Second => ComparedSide::First,
    }
}

/// Makes a case with the side that was labelled A in the first order, and the winners of both orders.
fn case(at: usize, (a, winners): (ComparedSide, [ComparedSide; 2])) -> BlindCase {
    let (outcome, confidence) = pair_outcome(&winners.map(Some));
    let order = |a, winner| BlindOrder { a, winner: Some(winner), quote: None, why: None };
    BlindCase {
        suite: String::new(),
        case: at.to_string(),
        outcome,
        confidence,
        orders: vec![order(a, winners[0]), order(other_side(a), winners[1])],
        files: Vec::new(),
    }
}

/// Gives a judge's two choices as sides. `say` gives the labels; the key turns them into sides.
fn looks(at: usize, seed: u64, mut say: impl FnMut() -> OutputLabel) -> (ComparedSide, [ComparedSide; 2]) {
    let a = if first_is_a(seed, "s", &at.to_string()) { ComparedSide::First } else { ComparedSide::Second };
    (a, [a.side_with_label(say()), other_side(a).side_with_label(say())])
}

#[test]
fn a_judge_that_prefers_a_position_decides_nothing() {
    for always in [OutputLabel::A, OutputLabel::B] {
        let cases: Vec<BlindCase> = (0..200).map(|at| case(at, looks(at, 7, || always))).collect();
        assert!(cases.iter().all(|case| case.outcome == PairOutcome::Tie));
        assert!(cases.iter().all(|case| case.confidence == Some(OutcomeConfidence::Low)));
        let tallied = tally_cases(&cases);
        assert_eq!((tallied.wins, tallied.losses, tallied.win_rate.value), (0, 0, None));
        assert_eq!(tallied.verdict, ComparisonVerdict::Inconclusive, "such a judge is broken");
        assert_eq!(tallied.follows, Some(always));
        // One pair of cases that it decided does not mend it.
        let mut mostly = cases;
        mostly[0] = case(0, (ComparedSide::First, [ComparedSide::First; 2]));
        mostly[1] = case(1, (ComparedSide::First, [ComparedSide::Second; 2]));
        let tallied = tally_cases(&mostly);
        assert_eq!((tallied.verdict, tallied.follows), (ComparisonVerdict::Inconclusive, Some(always)));
    }
}

#[test]
fn equal_versions_are_rarely_called_better() {
    let mut random = SeededRandom::new(20_261_116);
    for (cases, prefers_a) in [(5, 0.5), (20, 0.5), (20, 0.8), (100, 0.6)] {
        let mut better = 0;
        for seed in 0..1000 {
            let judged: Vec<BlindCase> = (0..cases)
                .map(|at| {
                    let say = || if random.happens(prefers_a) { OutputLabel::A } else { OutputLabel::B };
                    case(at, looks(at, seed, say))
                })
                .collect();
            better += u32::from(tally_cases(&judged).verdict == ComparisonVerdict::Better);
        }
        assert!(better <= 65, "{better} of 1000 with {cases} cases");
    }
}

#[test]
fn labels_are_dealt_anew_for_each_case_and_the_same_for_one_seed() {
    let dealt = |seed: u64| (0..1000).filter(|at| first_is_a(seed, "s", &at.to_string())).count();
    for seed in 0..5 {
        assert!((400..600).contains(&dealt(seed)), "{}", dealt(seed));
        assert_eq!(dealt(seed), dealt(seed));
    }
}

#[test]
fn cases_together_end_in_a_word() {
    use ComparedSide::{First, Second};
    let of = |wins: usize, losses: usize, ties: usize| {
        let all = std::iter::repeat_n([Second, Second], wins)
            .chain(std::iter::repeat_n([First, First], losses))
            .chain([[First, Second], [Second, First]].into_iter().cycle().take(ties));
        let cases: Vec<BlindCase> = all.enumerate().map(|(at, winners)| case(at, (First, winners))).collect();
        tally_cases(&cases).verdict
    };
    for (wins, losses, ties, expected) in [
        (5, 0, 0, ComparisonVerdict::Inconclusive),
        (6, 0, 0, ComparisonVerdict::Better),
        (6, 0, 50, ComparisonVerdict::Better),
        (0, 6, 0, ComparisonVerdict::Worse),
        (3, 3, 3, ComparisonVerdict::Inconclusive),
        (0, 0, 3, ComparisonVerdict::Inconclusive),
        (0, 0, 60, ComparisonVerdict::Inconclusive),
        (1, 1, 90, ComparisonVerdict::Equivalent),
        (0, 0, 0, ComparisonVerdict::Inconclusive),
    ] {
        assert_eq!(of(wins, losses, ties), expected, "{wins} {losses} {ties}");
    }
    assert_eq!(pair_outcome(&[Some(First), None]), (PairOutcome::NotCompared, None));
}

#[test]
fn an_answer_outside_the_form_is_none() {
    let pairing = OutputPair {
        suite: String::new(),
        case: "c".into(),
        request: "Write a haiku.".into(),
        criteria: documented_criteria(),
        first: "one".into(),
        second: "two".into(),
    };
    let scores: Value = DOCUMENTED_DIMENSIONS
        .iter()
        .map(|(id, _)| ((*id).to_owned(), json!({"A": 8, "B": 6})))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let good = json!({"winner": "A", "reasoning": "r", "quote": "One", "scores": scores});
    let (comparison, _) = read(&good, &pairing).expect("an answer");
    let document = serde_json::to_value(&comparison).expect("JSON");
    let keys: Vec<&String> = document.as_object().expect("an object").keys().collect();
    assert_eq!(keys, ["eval_prompt", "winner", "reasoning", "scores"]);
    for (at, wrong) in [
        ("/winner", json!("tie")),
        ("/scores/token_efficiency/A", json!(11)),
        ("/scores/token_efficiency/B", json!("7")),
        ("/scores/content_value", Value::Null),
        ("/reasoning", json!(1)),
        ("/quote", json!("")),
        ("/quote", json!("three")),
        ("/quote", json!("Write a haiku.")),
    ] {
        let mut answer = good.clone();
        *answer.pointer_mut(at).expect("there") = wrong;
        assert!(read(&answer, &pairing).is_err(), "{at}");
    }
}

/// Tests that nothing but the outputs themselves shows which side made them.
#[test]
fn the_judge_is_not_told_whose_output_it_reads() {
    let pairing = OutputPair {
        suite: "suite-v1".into(),
        case: "case-v1".into(),
        request: "Write a haiku.".into(),
        criteria: documented_criteria(),
        first: "one".into(),
        second: "two".into(),
    };
    let (ab, ba) = (comparison_question(&pairing, true), comparison_question(&pairing, false));
    let shown = |inquiry: &StructuredQuestion, at: usize| inquiry.exhibits[at].1.clone();
    assert_eq!((shown(&ab, 1), shown(&ab, 2)), ("one".to_owned(), "two".to_owned()));
    assert_eq!((shown(&ba, 1), shown(&ba, 2)), ("two".to_owned(), "one".to_owned()));
    let all = format!("{ab:?}");
    assert!(!all.contains("v1") && !all.contains("First"), "{all}");
}
