//! Tests of comparisons.

use super::*;
use crate::model::{
    AgentEnding, Arm, ComparisonVerdict, NoisyCase, NotScoredReason, RepeatDigests, Verdict, testing,
};

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

const RULES: ComparisonRules<'static> = ComparisonRules {
    margin: 0.1,
    count_every_loss: false,
    allow_missing: false,
    noise: None,
    history: None,
};

fn compared(
    before: &[TrialRecord],
    after: &[TrialRecord],
    rules: &ComparisonRules<'_>,
) -> ComparisonDocument {
    let side = |name: &str, records: &[TrialRecord]| -> (String, Vec<TrialRecord>) {
        (name.to_owned(), records.to_vec())
    };
    let (a, b) = (side("A", before), side("B", after));
    let sides = [&a, &b].map(|(name, records)| SideRecords::new(name.clone(), records.iter().collect()));
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
        content: None,
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

/// Adds the digests of a case and of its setup.
fn with_digests(records: Vec<TrialRecord>, setup: &str) -> Vec<TrialRecord> {
    let digest = |text: String| Digest::of_bytes(text.as_bytes());
    let digests = |case: &str| RepeatDigests {
        case: digest(case.to_owned()),
        setup: digest(format!("{case} {setup}")),
    };
    records.into_iter().map(|record| TrialRecord { repeats: Some(digests(&record.case)), ..record }).collect()
}

fn three(case: &str, passed: bool) -> Vec<TrialRecord> {
    (1..=3).map(|attempt| record(case, attempt, passed)).collect()
}

#[test]
fn what_is_known_of_a_setup_from_other_runs_counts() {
    let before = with_digests([three("dead", true), three("same", true)].concat(), "v1");
    let after = with_digests([three("dead", false), three("same", true)].concat(), "v2");
    let alone = compared(&before, &after, &RULES);
    assert_eq!(changes(&alone), [("dead", CaseChange::Flip), ("same", CaseChange::Same)]);
    let case = &alone.comparisons[0].cases[0];
    assert_eq!((case.could_tell, case.smallest_loss), (false, None), "three runs cannot show any loss");
    let setup = |of: &[TrialRecord]| of[0].repeats.clone().expect("digests").setup;
    for (key, known, expected) in [
        (setup(&before), Cluster::new(20, 20), CaseChange::Regression),
        // A case that always wavered is not worse.
        (setup(&before), Cluster::new(8, 20), CaseChange::Flip),
        // What is known of another setup does not count.
        (Digest::of_bytes(b"dead v0"), Cluster::new(20, 20), CaseChange::Flip),
    ] {
        let history = CaseHistory::from([(key, known)]);
        let found = compared(&before, &after, &ComparisonRules { history: Some(&history), ..RULES });
        assert_eq!(changes(&found)[0], ("dead", expected), "{known:?}");
    }
}

#[test]
fn noise_belongs_to_the_content_of_a_case() {
    let before = with_digests(three("dead", true), "v1");
    let after = with_digests(three("dead", false), "v2");
    let noise = |content: &str, id: &str| Noise {
        schema_version: 1,
        cases: vec![NoisyCase {
            suite: "other".into(),
            id: id.into(),
            agent: "a".into(),
            model: None,
            mode: "baseline".into(),
            arm: "with".into(),
            content: Some(Digest::of_bytes(content.as_bytes())),
            runs: 20,
            passed: 20,
            flip_rate: Some(0.0),
        }],
    };
    for (noise, expected) in [
        (noise("dead", "renamed"), CaseChange::Regression),
        (noise("what it was before", "dead"), CaseChange::Flip),
    ] {
        let found = compared(&before, &after, &ComparisonRules { noise: Some(&noise), ..RULES });
        assert_eq!(changes(&found), [("dead", expected)]);
    }
}

#[test]
fn a_suspicious_case_is_confirmed_by_fresh_runs_alone() {
    let all = |passed: &dyn Fn(usize) -> bool| -> Vec<TrialRecord> {
        (0..20).flat_map(|at| three(&format!("c{at:02}"), passed(at))).collect()
    };
    let (before, after) = (all(&|_| true), all(&|at| at != 7));
    let found = compared(&before, &after, &RULES);
    assert_eq!((u8::from(found.exit), found.ok), (3, false), "three runs cannot tell");
    let mut described = found.clone();
    described.ignore_losses();
    assert_eq!(u8::from(described.exit), 0, "where nothing is to be lost, nothing is open");
    assert_eq!(u8::from(compared(&after, &before, &RULES).exit), 0, "a case that rose is no loss");
    let plan = plan_confirmation(&found, 100);
    let named: Vec<&str> = plan.cases.iter().map(|case| case.id.as_str()).collect();
    assert_eq!((named, plan.repeat, plan.left_out), (vec!["c07"], 6, 0));
    assert_eq!(
        plan_confirmation(&found, 11),
        ConfirmationPlan { repeat: 6, left_out: 1, ..Default::default() }
    );
    // Fresh runs without a verdict settle nothing.
    let mut unsettled = found.clone();
    let unscored = Verdict::NotScored(NotScoredReason::NotTrusted);
    let unscored: Vec<TrialRecord> =
        (1..=6).map(|at| TrialRecord { verdict: unscored.clone(), ..record("c07", at, true) }).collect();
    let fresh = || SideRecords::new("A", unscored.iter().collect());
    confirm_losses(&mut unsettled, &fresh(), &fresh());
    assert_eq!(u8::from(unsettled.exit), 3);
    for (after_passes, exit, change) in [(0, 1, CaseChange::Regression), (5, 0, CaseChange::Flip)] {
        let fresh = |passes: u32| -> Vec<TrialRecord> {
            (1..=6).map(|attempt| record("c07", attempt, attempt <= passes)).collect()
        };
        let (old, new) = (fresh(6), fresh(after_passes));
        let mut confirmed = found.clone();
        let side = |name: &str, of| SideRecords::new(name, of);
        confirm_losses(&mut confirmed, &side("A", old.iter().collect()), &side("B", new.iter().collect()));
        let case = &confirmed.comparisons[0].cases[7];
        assert_eq!((u8::from(confirmed.exit), case.change), (exit, change));
        let confirmation = case.confirmation.expect("fresh runs");
        assert_eq!(
            (confirmation.is_confirmed, confirmation.after.passed),
            (exit == 1, u64::from(after_passes))
        );
    }
}

/// Compares single cases and nothing else, which takes much less time.
fn only_cases(before: &[TrialRecord], after: &[TrialRecord]) -> SideComparison {
    let group = |records: &[TrialRecord]| group_runs_by_case(&records.iter().collect::<Vec<_>>(), &[]);
    let (old, new) = (group(before), group(after));
    let both: Vec<_> = old.iter().filter_map(|(name, runs)| Some((name, runs, new.get(name)?))).collect();
    let pairs: Vec<CasePair> =
        both.iter().map(|(_, old, new)| CasePair { before: old.cluster, after: new.cluster }).collect();
    SideComparison { cases: compared_cases(&both, &pairs, &RULES), ..SideComparison::default() }
}

/// Twenty cases that did not change, three runs of each side, and every suspicious case confirmed: false alarms of both
/// steps together stay below 5 %. A dead case is found.
#[test]
fn confirmed_losses_are_rarely_false_and_a_dead_case_is_found() {
    let mut random = crate::stats::SeededRandom::new(11);
    let mut lost = |dead: Option<usize>| {
        let rate = |at: usize| [1.0, 0.95, 0.8, 0.5][at % 4];
        let mut runs = |at: usize, repeat: u32, rate: f64| -> Vec<TrialRecord> {
            (1..=repeat).map(|n| record(&format!("c{at:02}"), n, random.fraction() < rate)).collect()
        };
        let before: Vec<TrialRecord> = (0..20).flat_map(|at| runs(at, 3, rate(at))).collect();
        let new_rate = |at: usize| if dead == Some(at) { 0.0 } else { rate(at) };
        let after: Vec<TrialRecord> = (0..20).flat_map(|at| runs(at, 3, new_rate(at))).collect();
        let mut found = ComparisonDocument::from_comparisons(vec![only_cases(&before, &after)]);
        let plan = plan_confirmation(&found, 200);
        let repeat = u32::try_from(plan.repeat).expect("few");
        let again = |of: &dyn Fn(usize) -> f64, runs: &mut dyn FnMut(usize, u32, f64) -> Vec<TrialRecord>| {
            let places = plan.cases.iter().map(|case| case.id[1..].parse::<usize>().expect("a number"));
            places.flat_map(|at| runs(at, repeat, of(at))).collect::<Vec<TrialRecord>>()
        };
        let (old, new) = (again(&rate, &mut runs), again(&new_rate, &mut runs));
        let side = |of| SideRecords::new("x", of);
        confirm_losses(&mut found, &side(old.iter().collect()), &side(new.iter().collect()));
        found.comparisons[0].cases.iter().any(|case| case.change == CaseChange::Regression)
    };
    let alarms = (0..400).filter(|_| lost(None)).count();
    assert!(alarms <= 20, "{alarms} of 400 is more than 5 %");
    let found = (0..100).filter(|_| lost(Some(4))).count();
    assert!(found >= 95, "a dead case was found in {found} of 100");
}
