//! Tests of the summary of a run.

use super::*;
use crate::model::{
    ActivationExpectation, AgentEnding, CheckResult, Digest, Gate, GateName, NoisyCase, NotScoredReason,
    SkillUse, UserEnding, UserRecord, testing,
};

fn record(case: &str, verdict: Verdict) -> TrialRecord {
    let ended = match verdict {
        Verdict::NotScored(NotScoredReason::Ended(ended)) => ended,
        _ => AgentEnding::Finished,
    };
    TrialRecord { ended, seconds: 1.0, ..testing::record(case, 1, verdict) }
}

fn exit(verdicts: &[Verdict], outcome: RunCompletion) -> u8 {
    let mut tally = RunTally::default();
    for (index, verdict) in verdicts.iter().enumerate() {
        tally.add(&record(&format!("c{index}"), verdict.clone()));
    }
    let gate = Gate::new(GateName::AllCasesPass, Ratio::ONE);
    let all = SuiteGate { suite: "s".into(), gate };
    tally.summary("r", &[all], 1.0, outcome).exit.into()
}

#[test]
fn exit_codes() {
    let timeout = || Verdict::NotScored(NotScoredReason::Ended(AgentEnding::TimedOut));
    let skipped = || Verdict::NotScored(NotScoredReason::Ended(AgentEnding::SetupFailed));
    for (verdicts, outcome, expected) in [
        (vec![Verdict::Pass], RunCompletion::Completed, 0),
        (vec![Verdict::Pass, Verdict::Fail], RunCompletion::Completed, 1),
        (vec![Verdict::Pass, timeout()], RunCompletion::Completed, 3),
        (vec![Verdict::Fail, timeout()], RunCompletion::Completed, 1),
        (vec![timeout()], RunCompletion::Completed, 3),
        (vec![Verdict::Pass, skipped()], RunCompletion::Completed, 3),
        (vec![Verdict::Pass, Verdict::NotScored(NotScoredReason::NotTrusted)], RunCompletion::Completed, 3),
        (vec![Verdict::Fail, skipped()], RunCompletion::Completed, 1),
        (vec![skipped()], RunCompletion::Completed, 3),
        (vec![Verdict::Fail], RunCompletion::Interrupted, 130),
        (vec![Verdict::Fail], RunCompletion::OverBudget, 4),
    ] {
        assert_eq!(exit(&verdicts, outcome), expected, "{verdicts:?} {outcome:?}");
    }
}

/// A query passes by the rate at which the skill was activated; inconclusive trials do not count.
#[test]
fn fire_rates() {
    let (yes, no) = (Some(true), Some(false));
    for (expect, runs, expected) in [
        (ActivationExpectation::Must, vec![yes, yes, no], 0),
        (ActivationExpectation::Must, vec![yes, no, no], 1),
        (ActivationExpectation::Must, vec![yes, no], 0),
        (ActivationExpectation::MustNot, vec![yes, no], 1),
        (ActivationExpectation::MustNot, vec![yes, no, no], 0),
        (ActivationExpectation::Must, vec![None, None], 3),
    ] {
        let mut tally = RunTally::default();
        for fired in &runs {
            let passed = *fired == Some(expect == ActivationExpectation::Must);
            let verdict = match fired {
                Some(_) if passed => Verdict::Pass,
                Some(_) => Verdict::Fail,
                None => Verdict::NotScored(NotScoredReason::Ended(AgentEnding::TimedOut)),
            };
            let record = TrialRecord { expect: Some(expect), fired: *fired, ..record("q", verdict) };
            let threshold = Ratio::new(0.5).expect("a share");
            tally.expect_case("s", "q", &record.condition, Some(ActivationRateRule { expect, threshold }));
            tally.add(&record);
        }
        let gate = Gate::new(GateName::AllCasesPass, Ratio::ONE);
        let gate = SuiteGate { suite: "s".into(), gate };
        let summary = tally.summary("r", &[gate], 1.0, RunCompletion::Completed);
        assert_eq!(u8::from(summary.exit), expected, "{expect:?} {runs:?}");
    }
}

#[test]
fn the_arm_without_the_skill_may_fail() {
    let mut tally = RunTally::default();
    tally.add(&record("a", Verdict::Pass));
    let mut without = record("a", Verdict::Fail);
    without.condition.arm = Arm::WithoutSkill;
    tally.add(&without);
    let gate = Gate::new(GateName::AllCasesPass, Ratio::ONE);
    let gate = SuiteGate { suite: "s".into(), gate };
    let summary = tally.summary("r", &[gate], 1.0, RunCompletion::Completed);
    assert_eq!((u8::from(summary.exit), summary.totals.failed), (0, 1));
}

#[test]
fn an_empty_suite_does_not_exit_0() {
    assert_eq!(exit(&[], RunCompletion::Completed), 3);
}

#[test]
fn an_unknown_cost_is_not_a_number() {
    let mut tally = RunTally::default();
    tally.add(&record("a", Verdict::Pass));
    tally.add(&TrialRecord { cost_usd: None, ..record("b", Verdict::Pass) });
    assert_eq!(tally.summary("r", &[], 1.0, RunCompletion::Completed).cost_usd, None);
}

fn gated(records: &[TrialRecord], name: GateName, threshold: f64, allowed: f64) -> Summary {
    let mut tally = RunTally::default();
    records.iter().for_each(|record| tally.add(record));
    tally.allow_unscored(Ratio::new(allowed).expect("a share"));
    let gate = Gate::new(name, Ratio::new(threshold).expect("a share"));
    tally.summary("r", &[SuiteGate { suite: "s".into(), gate }], 1.0, RunCompletion::Completed)
}

fn timed_out() -> Verdict {
    Verdict::NotScored(NotScoredReason::Ended(AgentEnding::TimedOut))
}

#[test]
fn no_gate_holds_on_the_best_case_alone() {
    let records = [
        record("a", Verdict::Pass),
        record("b", Verdict::Pass),
        record("c", Verdict::Pass),
        record("d", timed_out()),
    ];
    for (name, threshold, allowed, ok, exit) in [
        (GateName::PassRate, 0.8, 0.0, false, 3),
        (GateName::PassRate, 0.7, 0.0, true, 3),
        (GateName::PassRate, 0.8, 0.25, true, 0),
        (GateName::AllCasesPass, 1.0, 0.0, false, 3),
        (GateName::AllCasesPass, 1.0, 0.25, true, 0),
        (GateName::Stability, 0.5, 0.0, false, 3),
    ] {
        let summary = gated(&records, name, threshold, allowed);
        let gate = &summary.gates[0];
        assert_eq!((gate.ok, u8::from(summary.exit)), (ok, exit), "{name:?} {threshold} {allowed}");
        assert_eq!(gate.value, Some(1.0), "what has no answer is in no rate");
        assert!(gate.worst.is_some_and(|worst| worst <= 0.75), "{gate:?}");
    }
    let summary = gated(&records, GateName::PassRate, 0.5, 1.0);
    assert_eq!((summary.pass_rate.worst, summary.pass_rate.not_scored), (Some(0.75), 1));
}

fn activation(case: &str, expect: ActivationExpectation, about: &[&str], activated: &[&str]) -> TrialRecord {
    let own = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let fired = about.iter().any(|name| activated.contains(name));
    let passed = match expect {
        ActivationExpectation::Must => fired,
        ActivationExpectation::MustNot => !fired,
        ActivationExpectation::Either => true,
    };
    TrialRecord {
        expect: Some(expect),
        fired: Some(fired),
        skills: SkillUse { about: own(about), activated: own(activated), invoked: false },
        ..record(case, if passed { Verdict::Pass } else { Verdict::Fail })
    }
}

/// Two skills and a rival, expected and activated in every combination.
#[test]
fn confusion_per_skill_and_routing() {
    let both = ["a", "b"];
    let records = [
        activation("1", ActivationExpectation::Must, &["a"], &["a"]),
        activation("2", ActivationExpectation::Must, &["a"], &["b"]),
        activation("3", ActivationExpectation::Must, &["b"], &[]),
        activation("4", ActivationExpectation::MustNot, &["a"], &["b"]),
        activation("5", ActivationExpectation::MustNot, &both, &["rival"]),
        activation("6", ActivationExpectation::MustNot, &both, &["b"]),
        activation("7", ActivationExpectation::Either, &["a"], &["a"]),
        TrialRecord {
            fired: None,
            ended: AgentEnding::TimedOut,
            ..activation("8", ActivationExpectation::MustNot, &both, &[])
        },
    ];
    let summary = gated(&records, GateName::F1, 0.5, 1.0);
    let found = summary.activation.expect("activation");
    let counts = |of: &crate::model::ActivationRates| (of.tp, of.fp, of.tn, of.fn_, of.acceptable, of.error);
    assert_eq!(counts(&found.all), (1, 1, 2, 2, 1, 1));
    let skills: Vec<_> = found.skills.iter().map(|part| (part.name.as_str(), counts(&part.rates))).collect();
    assert_eq!(skills, [("a", (1, 0, 3, 1, 1, 1)), ("b", (0, 1, 1, 1, 0, 1))]);
    let name = |name: &Option<String>| name.clone().unwrap_or_else(|| "none".into());
    let routes: Vec<String> = found
        .routing
        .iter()
        .map(|route| format!("{}→{} {}", name(&route.expected), name(&route.fired), route.runs))
        .collect();
    assert_eq!(routes, ["none→b 2", "none→rival 1", "a→a 1", "a→b 1", "b→none 1"]);
    assert_eq!((found.unmeasured, found.invoked), (1, 0));
    assert_eq!(found.agents.len(), 1);
}

#[test]
fn a_skill_that_could_not_be_seen_is_not_counted_as_not_activated() {
    let blind = TrialRecord {
        verdict: Verdict::NotScored(NotScoredReason::InvalidArm(
            "the agent could not see the skill a".into(),
        )),
        ..activation("1", ActivationExpectation::Must, &["a"], &[])
    };
    let not_activated =
        TrialRecord { expect: Some(ActivationExpectation::MustNot), case: "2".into(), ..blind.clone() };
    let found = gated(&[blind, not_activated], GateName::F1, 0.5, 1.0).activation.expect("activation");
    assert_eq!((found.all.fn_, found.all.tn, found.all.error, found.unmeasured), (0, 0, 2, 2));
    assert_eq!(found.all.recall.value, None);
}

#[test]
fn a_skill_that_the_user_named_is_in_no_rate() {
    let mut named = activation("1", ActivationExpectation::Must, &["a"], &["a"]);
    named.skills.invoked = true;
    let found = gated(&[named], GateName::F1, 0.5, 1.0).activation.expect("activation");
    assert_eq!((found.all.tp, found.invoked, found.all.precision.value), (0, 1, None));
}

fn in_arm(case: &str, attempt: u32, arm: Arm, verdict: Verdict) -> TrialRecord {
    let mut record = TrialRecord { attempt, ..record(case, verdict) };
    record.condition.arm = arm;
    record
}

#[test]
fn arms_are_compared_on_the_same_cases() {
    let mut records = Vec::new();
    for case in ["a", "b", "c"] {
        for attempt in 1..=5 {
            records.push(in_arm(case, attempt, Arm::WithSkill, Verdict::Pass));
            records.push(in_arm(case, attempt, Arm::WithoutSkill, Verdict::Fail));
        }
    }
    records.push(in_arm("only with", 1, Arm::WithSkill, Verdict::Fail));
    let arms = gated(&records, GateName::PassRate, 0.5, 0.0).arms.expect("arms");
    assert_eq!((arms.before.as_str(), arms.after.as_str()), ("without", "with"));
    assert_eq!((arms.result.difference.value, arms.result.difference.n), (Some(1.0), 3));
    assert_eq!(arms.result.verdict.name(), "better");
    assert_eq!(arms.result.outlook.more_runs, None);
    assert!(gated(&records[..1], GateName::PassRate, 0.5, 0.0).arms.is_none());
}

/// The arm without the skill had it: neither that trial nor its partner counts, and the summary says so.
#[test]
fn a_failed_proof_voids_the_pair() {
    let leak = || Verdict::NotScored(NotScoredReason::InvalidArm("the agent could see the skill s".into()));
    let records = [
        in_arm("a", 1, Arm::WithSkill, Verdict::Pass),
        in_arm("a", 1, Arm::WithoutSkill, leak()),
        in_arm("a", 2, Arm::WithSkill, Verdict::Fail),
        in_arm("a", 2, Arm::WithoutSkill, Verdict::Fail),
    ];
    let arms = gated(&records, GateName::PassRate, 0.5, 1.0).arms.expect("arms");
    assert_eq!((arms.void_pairs, arms.result.difference.value), (1, Some(0.0)));
    assert_eq!((arms.voided[0].attempt, arms.voided[0].why.as_str()), (1, "the agent could see the skill s"));
    assert_eq!(arms.result.verdict.name(), "inconclusive");
    let (runs, usd) =
        (arms.result.outlook.more_runs.expect("runs"), arms.result.outlook.more_usd.expect("a price"));
    assert!(runs > 0 && (usd - runs as f64 * 0.5).abs() < 1e-9, "each run costs half a dollar");
}

#[test]
fn several_suites_are_corrected_for_their_number() {
    let mut records = Vec::new();
    for suite in ["s", "t"] {
        for case in ["a", "b", "c", "d", "e", "f"] {
            for (arm, verdict) in [(Arm::WithSkill, Verdict::Pass), (Arm::WithoutSkill, Verdict::Fail)] {
                records.push(TrialRecord { suite: suite.into(), ..in_arm(case, 1, arm, verdict) });
            }
        }
    }
    let arms = gated(&records, GateName::PassRate, 0.5, 0.0).arms.expect("arms");
    assert_eq!(arms.result.verdict.name(), "better");
    // Six wins to none have a chance of .03125 in one suite, and twice that in two suites.
    let verdicts: Vec<_> = arms.suites.iter().map(|one| one.result.verdict.name()).collect();
    assert_eq!(verdicts, ["inconclusive", "inconclusive"]);
}

#[test]
fn several_runs_of_a_case_tell_how_reliable_it_is() {
    let mut records = Vec::new();
    for (case, passes) in [("a", 5), ("b", 4), ("c", 2)] {
        for attempt in 1..=5 {
            let verdict = if attempt <= passes { Verdict::Pass } else { Verdict::Fail };
            records.push(in_arm(case, attempt, Arm::WithSkill, verdict));
        }
    }
    let summary = gated(&records, GateName::PassRate, 0.5, 0.0);
    let of = |k: u64| summary.reliability.iter().find(|of| of.k == k).expect("enough runs");
    assert!((of(2).pass_at_k - 0.9).abs() < 5e-5 && (of(5).pass_hat_k - 0.33333).abs() < 5e-5);
    let case = &summary.cases[1].pass_rate.rate;
    assert!(case.low.is_some_and(|low| (low - 0.2836).abs() < 5e-5), "{case:?}");
    assert!(gated(&records[..1], GateName::PassRate, 0.5, 0.0).reliability.is_empty());
}

/// Flaky cases cannot fail a gate while each of them, and all together, fail no more often than usual.
#[test]
fn what_is_known_to_be_flaky_is_spared_within_reason() {
    type Known = (u64, u64);
    // The known results of each case, how many of its trials pass and fail now, how many cases are spared, and how
    // many are too many.
    let usual: Known = (8, 10);
    for (cases, spared, too_many) in [
        (vec![(usual, 0, 1)], 1, 0),
        (vec![(usual, 0, 1); 2], 2, 0),
        (vec![(usual, 0, 1); 3], 0, 3),
        (vec![(usual, 0, 1); 8], 0, 8),
        // Four failures of twenty are usual; ten are not.
        ([vec![(usual, 0, 1); 4], vec![(usual, 1, 0); 16]].concat(), 4, 0),
        ([vec![(usual, 0, 1); 10], vec![(usual, 1, 0); 10]].concat(), 0, 10),
        // Little is known of these cases, so more failures are still usual.
        (vec![((1, 2), 0, 1); 3], 3, 0),
        (vec![((1, 2), 0, 1); 5], 0, 5),
        // A case that is clearly worse fails the gate, and a case that got better is not a failure.
        (vec![(usual, 0, 10)], 0, 0),
        (vec![((2, 10), 9, 1)], 1, 0),
        // A case that is not flaky is never spared.
        (vec![((10, 10), 0, 1)], 0, 0),
    ] {
        let (mut tally, mut noise) = (RunTally::default(), Noise::default());
        tally.add(&record("steady", Verdict::Pass));
        for (at, ((known, runs), passes, fails)) in cases.iter().enumerate() {
            let id = format!("c{at}");
            for _ in 0..*passes {
                tally.add(&record(&id, Verdict::Pass));
            }
            for _ in 0..*fails {
                tally.add(&record(&id, Verdict::Fail));
            }
            let condition = record(&id, Verdict::Pass).condition;
            noise.cases.push(NoisyCase {
                suite: "s".into(),
                id,
                agent: condition.agent,
                model: condition.model,
                mode: condition.mode.name().to_owned(),
                arm: condition.arm.name(),
                content: None,
                runs: *runs,
                passed: *known,
                flip_rate: None,
            });
        }
        tally.set_known_noise(&noise);
        let gate = SuiteGate { suite: "s".into(), gate: Gate::ALL_CASES_PASS };
        let summary = tally.summary("r", &[gate], 1.0, RunCompletion::Completed);
        let gate = &summary.gates[0];
        assert_eq!((gate.spared.len(), gate.too_many_flaky.len()), (spared, too_many), "{cases:?}");
        assert_eq!((gate.ok, u8::from(summary.exit)), (spared > 0, u8::from(spared == 0)), "{cases:?}");
    }
}

fn judged(case: &str, verdict: Verdict, weak: Option<&str>, uncovered: &[&str]) -> TrialRecord {
    let mut record = record(case, verdict.clone());
    record.checks = vec![CheckResult { weak: weak.map(str::to_owned), ..testing::check("c", verdict) }];
    record.remarks.uncovered = uncovered.iter().map(|text| (*text).to_owned()).collect();
    record
}

#[test]
fn agreement_is_the_share_that_found_what_most_found() {
    let none = || Verdict::NotScored(NotScoredReason::NotTrusted);
    for (verdicts, expected) in [
        (vec![Verdict::Pass, Verdict::Pass, Verdict::Pass], Some(1.0)),
        (vec![Verdict::Pass, Verdict::Fail, Verdict::Fail, Verdict::Fail], Some(0.75)),
        (vec![Verdict::Pass, Verdict::Fail, none()], Some(0.5)),
        (vec![Verdict::Pass, none()], None),
        (vec![Verdict::Fail], None),
        (vec![none(), none()], None),
    ] {
        let mut tally = RunTally::default();
        verdicts.iter().for_each(|verdict| tally.add(&judged("a", verdict.clone(), None, &[])));
        let summary = tally.summary("r", &[], 1.0, RunCompletion::Completed);
        assert_eq!(summary.cases[0].checks[0].agreement, expected, "{verdicts:?}");
    }
}

#[test]
fn remarks_of_judges_on_the_evals_are_listed_once_and_bounded() {
    let mut tally = RunTally::default();
    tally.expect_case("s", "a", &record("a", Verdict::Pass).condition, None);
    tally.add(&judged("b", Verdict::Pass, Some(&"x".repeat(5000)), &[]));
    tally.add(&judged("a", Verdict::Pass, Some("Anyone would."), &["tone"]));
    tally.add(&judged("a", Verdict::Pass, Some("In other words."), &["tone", "length"]));
    let summary = tally.summary("r", &[], 1.0, RunCompletion::Completed);
    let found: Vec<(&str, Option<&str>, &str, u64)> = summary
        .eval_findings
        .iter()
        .map(|of| (of.case.as_str(), of.weak_check.as_deref(), of.text.as_str(), of.trials))
        .collect();
    let long = format!("{}…", "x".repeat(600));
    let expected = [
        ("a", Some("c"), "Anyone would.", 2),
        ("a", None, "tone", 2),
        ("a", None, "length", 1),
        ("b", Some("c"), long.as_str(), 1),
    ];
    assert_eq!(found, expected);
    assert_eq!((summary.doubts.weak_checks, summary.doubts.uncovered), (2, 3));

    let mut tally = RunTally::default();
    for number in 0..1000 {
        let (case, said) = (format!("c{}", number % 100), format!("behaviour {number}"));
        tally.add(&judged(&case, Verdict::Pass, None, &[&said]));
    }
    let summary = tally.summary("r", &[], 1.0, RunCompletion::Completed);
    assert_eq!((summary.eval_findings.len(), summary.doubts.uncovered), (200, 1000));
}

#[test]
fn judgements_of_skills_do_not_stand_in_the_order_in_which_judges_answered() {
    let judged = |suite: &str| SkillJudgement {
        suite: suite.to_owned(),
        skill: suite.to_owned(),
        text: None,
        checks: Vec::new(),
        notes: Vec::new(),
        judging: None,
    };
    for order in [["a", "b", "a"], ["b", "a", "b"]] {
        let mut tally = RunTally::default();
        order.iter().for_each(|suite| tally.add_skill_judgement(&judged(suite)));
        let summary = tally.summary("r", &[], 1.0, RunCompletion::Completed);
        let suites: Vec<String> = summary.skills_judged.into_iter().map(|judged| judged.suite).collect();
        assert_eq!(suites, ["a", "b"]);
    }
}

/// The example that showed the fault: one case that always passes and one that always fails, stopped early, passed a
/// gate of 0.75, because the first had run more often.
#[test]
fn stopping_early_does_not_raise_the_pass_rate() {
    let mut tally = RunTally::default();
    for attempt in 1..=7 {
        for (case, verdict) in [("good", Verdict::Pass), ("bad", Verdict::Fail)] {
            let next = in_arm(case, attempt, Arm::WithSkill, verdict);
            if !tally.skip_if_decided("s", case, &next.condition) {
                tally.add(&next);
            }
        }
    }
    let gate = Gate::new(GateName::PassRate, Ratio::new(0.75).expect("a share"));
    let summary = tally.summary("r", &[SuiteGate { suite: "s".into(), gate }], 1.0, RunCompletion::Completed);
    assert_eq!((summary.totals.trials, summary.left_out), (9, Some(5)));
    assert_eq!(
        (summary.pass_rate.rate.value, summary.gates[0].value, summary.exit),
        (Some(0.5), Some(0.5), Outcome::Failed)
    );
    assert!(summary.pass_rate.rate.low.is_some() && summary.gates[0].low.is_some(), "with an interval");
    assert_eq!(summary.reliability.iter().map(|of| of.k).collect::<Vec<_>>(), [1, 2]);
    let good = summary.cases.iter().find(|case| case.id == "good").expect("the case").pass_rate.rate;
    // Wider than the interval for seven trials that were planned as seven, which begins at 0.59.
    assert!(good.low.is_some_and(|low| low > 0.4 && low < 0.59), "{good:?}");
}

/// Trials run side by side: a late one that is still running holds the decision back.
#[test]
fn a_case_is_decided_in_the_order_of_its_trials() {
    let mut tally = RunTally::default();
    let trial = |attempt, verdict| in_arm("a", attempt, Arm::WithSkill, verdict);
    let condition = trial(1, Verdict::Fail).condition;
    tally.add(&trial(2, Verdict::Fail));
    tally.add(&trial(3, Verdict::Fail));
    assert!(!tally.skip_if_decided("s", "a", &condition));
    tally.add(&trial(1, Verdict::Pass));
    assert!(tally.skip_if_decided("s", "a", &condition));
}

#[test]
fn a_number_of_runs_that_one_case_lacks_is_unknown() {
    let mut records = Vec::new();
    for (case, runs) in [("a", 5), ("b", 3)] {
        records.extend((1..=runs).map(|attempt| in_arm(case, attempt, Arm::WithSkill, Verdict::Pass)));
    }
    let summary = gated(&records, GateName::PassRate, 0.5, 0.0);
    assert_eq!(summary.reliability.iter().map(|of| of.k).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(summary.cases[0].reliability.len(), 5);
}

#[test]
fn a_gate_with_confidence_is_decided_by_the_bound() {
    for (cases, confidence, ok) in
        [(10, None, true), (10, Some(0.9), false), (11, Some(0.9), true), (11, Some(0.95), false)]
    {
        let mut tally = RunTally::default();
        (0..cases).for_each(|at| tally.add(&record(&format!("c{at}"), Verdict::Pass)));
        let gate = Gate::new(GateName::PassRate, Ratio::new(0.8).expect("a share"));
        let gate = confidence.map_or(gate, |sure| gate.with_confidence(sure).expect("sound"));
        let summary =
            tally.summary("r", &[SuiteGate { suite: "s".into(), gate }], 1.0, RunCompletion::Completed);
        let result = &summary.gates[0];
        assert_eq!(
            (result.ok, summary.exit),
            (ok, if ok { Outcome::Passed } else { Outcome::Failed }),
            "{cases} {confidence:?}"
        );
        assert_eq!(result.confidence, confidence);
        // All of n cases pass: the bound is the n-th root of the error.
        let bound = confidence.map(|sure| (1.0f64 - sure).powf(1.0 / f64::from(cases)));
        assert!(result.bound.zip(bound).is_none_or(|(a, b)| (a - b).abs() < 1e-6), "{result:?} {bound:?}");
    }
    let stability = Gate::new(GateName::Stability, Ratio::ONE);
    assert!(stability.with_confidence(0.9).is_err());
    for wrong in [0.4, 1.0, f64::NAN, -1.0] {
        assert!(Gate::ALL_CASES_PASS.with_confidence(wrong).is_err(), "{wrong}");
    }
}

/// What is missing counts against the bound as well.
#[test]
fn a_gate_with_confidence_does_not_hold_on_the_best_case_alone() {
    let mut tally = RunTally::default();
    (0..15).for_each(|at| tally.add(&record(&format!("c{at}"), Verdict::Pass)));
    (0..3).for_each(|at| tally.add(&record(&format!("t{at}"), timed_out())));
    let gate =
        Gate::new(GateName::PassRate, Ratio::new(0.8).expect("a share")).with_confidence(0.9).expect("sound");
    let summary = tally.summary("r", &[SuiteGate { suite: "s".into(), gate }], 1.0, RunCompletion::Completed);
    assert!(
        !summary.gates[0].ok && summary.gates[0].bound.is_some_and(|bound| bound > 0.8),
        "{:?}",
        summary.gates[0]
    );
}

#[test]
fn reused_trials_are_counted_and_cost_nothing_now() {
    let mut tally = RunTally::default();
    let usage = TokenUsage { input: 10, output: 5, ..TokenUsage::default() };
    let judging =
        JudgeUsage { model: "m".into(), usage: TokenUsage { input: 1, ..usage }, cost_usd: Some(0.25) };
    let spending = Some(JudgeUsage { cost_usd: Some(0.125), ..judging.clone() });
    let user = Some(UserRecord { replies: 1, ended: Some(UserEnding::Done), because: None, spending });
    let fresh = TrialRecord {
        usage,
        cost_usd: Some(0.5),
        judging: Some(judging),
        user,
        ..record("a", Verdict::Pass)
    };
    let from = |run: &str| Some(run.to_owned());
    let key = Some(Digest::of_bytes(b"k"));
    let reused =
        TrialRecord { reused_from: from("r0"), key: key.clone(), cost_usd: Some(2.0), ..fresh.clone() };
    // Graded again: the agent ran earlier, and the judge is asked now.
    let regraded = TrialRecord { reused_from: from("r0"), cost_usd: Some(4.0), ..fresh.clone() };
    for one in [&fresh, &reused, &regraded] {
        tally.add(one);
    }
    tally.set_stand_ins(true, false);
    let found = tally.summary("r", &[], 1.0, RunCompletion::Completed);
    let saved = found.saved.expect("saved");
    assert_eq!((found.totals.reused, found.cases[0].reused, found.scripted), (2, 2, true));
    assert_eq!((found.cost_usd, saved.cost_usd), (Some(0.5), Some(6.0)));
    assert_eq!((found.tokens.input, saved.tokens.input), (10, 20));
    let judge = |of: Option<JudgingSummary>| of.expect("a judge").cost_usd;
    assert_eq!((judge(found.judging), judge(saved.judging)), (Some(0.5), Some(0.25)));
    // The user of a trial that is graded again answered when its agent ran.
    assert_eq!((judge(found.simulated_users), judge(saved.simulated_users)), (Some(0.125), Some(0.25)));
    let none = RunTally::default().summary("r", &[], 1.0, RunCompletion::Completed);
    assert_eq!((none.saved, none.totals.reused), (None, 0));
}

#[test]
fn replayed_answers_cost_nothing_now() {
    let mut tally = RunTally::default();
    tally.set_stand_ins(false, true);
    let judging = JudgeUsage { model: "m".into(), usage: TokenUsage::default(), cost_usd: Some(0.25) };
    let replayed = TrialRecord { cost_usd: Some(0.5), judging: Some(judging), ..record("a", Verdict::Pass) };
    tally.add(&replayed);
    // Its judge is asked now.
    tally.add(&TrialRecord { reused_from: Some("r0".to_owned()), ..replayed });
    let found = tally.summary("r", &[], 1.0, RunCompletion::Completed);
    let saved = found.saved.expect("recorded earlier");
    assert_eq!((found.cost_usd, saved.cost_usd), (Some(0.0), Some(1.0)));
    let judge = |of: Option<JudgingSummary>| of.expect("a judge").cost_usd;
    assert_eq!((judge(found.judging), judge(saved.judging)), (Some(0.25), Some(0.25)));
}
