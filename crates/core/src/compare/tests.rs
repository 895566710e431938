//! Tests of comparisons.

use super::*;
use crate::model::{AgentEnding, Arm, ComparisonVerdict, NoisyCase, NotScoredReason, Verdict, testing};

fn record(case: &str, attempt: u32, passed: bool) -> TrialRecord {
    let verdict = if passed { Verdict::Pass } else { Verdict::Fail };
    TrialRecord { cost_usd: Some(0.1), ..testing::record(case, attempt, verdict) }
}

/// Makes the records of a run. Each case comes with how many of its five trials pass.
fn run(cases: &[(&str, u32)]) -> Vec<TrialRecord> {
    cases
        .iter()
        .flat_map(|(case, passes)| (1..=5).map(|attempt| record(case, attempt, attempt <= *passes)))
        .collect()
}

const RULES: ComparisonRules<'static> =
    ComparisonRules { margin: 0.1, count_every_loss: false, allow_missing: false, noise: None };

fn compared(
    before: &[TrialRecord],
    after: &[TrialRecord],
    rules: &ComparisonRules<'_>,
) -> ComparisonDocument {
    let side = |name: &str, records: &[TrialRecord]| -> (String, Vec<TrialRecord>) {
        (name.to_owned(), records.to_vec())
    };
    let (a, b) = (side("A", before), side("B", after));
    let sides =
        [&a, &b].map(|(name, records)| SideRecords { name: name.clone(), records: records.iter().collect() });
    compare(&sides, rules)
}

fn changes(of: &ComparisonDocument) -> Vec<(&str, CaseChange)> {
    of.comparisons[0].cases.iter().map(|case| (case.name.id.as_str(), case.change)).collect()
}

#[test]
fn losses_gains_and_what_may_be_noise() {
    let before = run(&[("gone bad", 5), ("got good", 0), ("same", 5), ("wavers", 3)]);
    let after = run(&[("gone bad", 0), ("got good", 5), ("same", 5), ("wavers", 2)]);
    let found = compared(&before, &after, &RULES);
    assert_eq!(
        changes(&found),
        [
            ("gone bad", CaseChange::Regression),
            ("got good", CaseChange::Fix),
            ("same", CaseChange::Same),
            ("wavers", CaseChange::Flip)
        ]
    );
    assert_eq!(u8::from(found.exit), 1, "one loss is a loss, whatever else got better");
    assert_eq!(found.comparisons[0].verdict, Some(ComparisonVerdict::Inconclusive));
}

#[test]
fn a_delta_never_has_its_sign_reversed() {
    let (low, high) = (run(&[("a", 0), ("b", 1), ("c", 0)]), run(&[("a", 5), ("b", 5), ("c", 4)]));
    let slower: Vec<TrialRecord> = high
        .iter()
        .map(|record| TrialRecord { seconds: 5.0, cost_usd: Some(0.3), ..record.clone() })
        .collect();
    let up = compared(&low, &slower, &RULES);
    let down = compared(&slower, &low, &RULES);
    assert_eq!((u8::from(up.exit), u8::from(down.exit)), (0, 1));
    let (up, down) = (&up.comparisons[0], &down.comparisons[0]);
    assert_eq!((up.verdict, down.verdict), (Some(ComparisonVerdict::Better), Some(ComparisonVerdict::Worse)));
    for (more, less) in [
        (up.difference.value, down.difference.value),
        (up.seconds.difference.value, down.seconds.difference.value),
        (up.cost_usd.difference.value, down.cost_usd.difference.value),
    ] {
        let (more, less) = (more.expect("more"), less.expect("less"));
        assert!(more > 0.0 && less < 0.0 && (more + less).abs() < 1e-9, "{more} {less}");
    }
    assert!(up.cases.iter().all(|case| case.difference.is_some_and(|difference| difference > 0.0)));
    assert_eq!((up.before.name.as_str(), up.after.name.as_str()), ("A", "B"));
}

#[test]
fn a_renamed_id_never_hides_a_regression() {
    let (before, after) = (run(&[("kept", 5), ("old name", 5)]), run(&[("kept", 5), ("new name", 0)]));
    let found = compared(&before, &after, &RULES);
    assert_eq!(u8::from(found.exit), 1);
    let ids = |names: &[CaseIdentity]| names.iter().map(|name| name.id.clone()).collect::<Vec<_>>();
    let one = &found.comparisons[0];
    assert_eq!((ids(&one.missing), ids(&one.new)), (vec!["old name".into()], vec!["new name".into()]));
    let allowed = compared(&before, &after, &ComparisonRules { allow_missing: true, ..RULES });
    assert_eq!(
        (u8::from(allowed.exit), allowed.comparisons[0].missing.len()),
        (0, 1),
        "and it is still reported"
    );
    // Two long ids that begin alike are different cases.
    let long = "x".repeat(200);
    let (one, other) = (run(&[(&format!("{long}1"), 5)]), run(&[(&format!("{long}2"), 5)]));
    assert_eq!(compared(&one, &other, &RULES).comparisons[0].missing.len(), 1);
}

#[test]
fn what_is_no_longer_measured_is_neither_kept_nor_lost() {
    let before = run(&[("a", 5), ("b", 5)]);
    let after: Vec<TrialRecord> = before
        .iter()
        .map(|record| match record.case.as_str() {
            "b" => TrialRecord {
                verdict: Verdict::NotScored(NotScoredReason::Ended(AgentEnding::TimedOut)),
                ended: AgentEnding::TimedOut,
                ..record.clone()
            },
            _ => record.clone(),
        })
        .collect();
    let found = compared(&before, &after, &RULES);
    assert_eq!(u8::from(found.exit), 3);
    assert_eq!(changes(&found), [("a", CaseChange::Same), ("b", CaseChange::Unmeasured)]);
    let mut described = found.clone();
    described.ignore_losses();
    assert_eq!((u8::from(described.exit), described.ok), (3, false), "also where nothing is to be lost");
    assert_eq!(u8::from(compared(&after, &before, &RULES).exit), 3, "nobody knows what it was before");
    assert_eq!(u8::from(compared(&after, &after, &RULES).exit), 3);
    let left_out: Vec<TrialRecord> = before
        .iter()
        .map(|record| match record.case.as_str() {
            "b" => TrialRecord { verdict: Verdict::NotScored(NotScoredReason::NotTrusted), ..record.clone() },
            _ => record.clone(),
        })
        .collect();
    assert_eq!(u8::from(compared(&before, &left_out, &RULES).exit), 3);
    assert_eq!(u8::from(compared(&left_out, &left_out, &RULES).exit), 3, "also where both sides lack it");
    assert_eq!(u8::from(compared(&before, &[], &RULES).exit), 1, "an empty run has lost every case");
    assert_eq!(u8::from(compared(&[], &[], &RULES).exit), 3, "nothing compared with nothing proves nothing");
}

#[test]
fn one_run_each_proves_nothing_unless_asked_to() {
    let (before, after) = ([record("a", 1, true)], [record("a", 1, false)]);
    assert_eq!(changes(&compared(&before, &after, &RULES)), [("a", CaseChange::Flip)]);
    let strict = compared(&before, &after, &ComparisonRules { count_every_loss: true, ..RULES });
    assert_eq!((u8::from(strict.exit), changes(&strict)), (1, vec![("a", CaseChange::Regression)]));
}

#[test]
fn what_is_known_of_noise_decides_where_it_is_known() {
    let noisy = |id: &str, passed, runs| NoisyCase {
        suite: "s".into(),
        id: id.into(),
        agent: "a".into(),
        model: None,
        mode: "baseline".into(),
        arm: "with".into(),
        runs,
        passed,
        flip_rate: Some(0.1),
    };
    let three = |case: &str, passed: bool| (1..=3).map(|n| record(case, n, passed)).collect::<Vec<_>>();
    let before = [three("steady", true), three("flaky", true)].concat();
    let after = [three("steady", false), three("flaky", false)].concat();
    let noise = Noise { schema_version: 1, cases: vec![noisy("steady", 20, 20), noisy("flaky", 10, 20)] };
    let found = compared(&before, &after, &ComparisonRules { noise: Some(&noise), ..RULES });
    assert_eq!(changes(&found), [("flaky", CaseChange::Flip), ("steady", CaseChange::Regression)]);
    assert_eq!(found.comparisons[0].cases[0].flip_rate, Some(0.1));
}

#[test]
fn parts_of_one_run() {
    let mut records = run(&[("a", 5), ("b", 5)]);
    let mut without = run(&[("a", 0), ("b", 0)]);
    for record in &mut without {
        record.condition.arm = Arm::WithoutSkill;
    }
    // The third pair is void, so its partner does not count either.
    without[2].verdict =
        Verdict::NotScored(NotScoredReason::InvalidArm("the agent could see the skill".into()));
    records.extend(without);
    let all: Vec<&TrialRecord> = records.iter().collect();
    let sides = split_by_dimension(&all, Dimension::Arm);
    assert_eq!(sides.iter().map(|side| side.name.as_str()).collect::<Vec<_>>(), ["without", "with"]);
    let found = compare(&sides, &RULES);
    let one = &found.comparisons[0];
    assert_eq!((one.difference.value, one.verdict), (Some(1.0), Some(ComparisonVerdict::Better)));
    assert_eq!(one.differs, ["arm: without → with"]);
    assert_eq!((one.cases[0].before.runs, one.cases[0].after.runs), (4, 4));
}
