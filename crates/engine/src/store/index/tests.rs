//! Tests of the index.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::store::RunDir;
use practicum_core::aggregate::{ActivationRateRule, RunCompletion, RunTally, SuiteGate};
use practicum_core::event::{EventSink, RunEvent};
use practicum_core::model::testing::{self, record};
use practicum_core::model::{
    ActivationExpectation, AgentEnding, Arm, CheckResult, Gate, GateName, NotScoredReason, Ratio, ScoreScale,
    TrialId, TrialRecord, Verdict,
};

struct Store {
    folder: tempfile::TempDir,
}

impl Store {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder") }
    }

    fn project(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a run with its record, as the program leaves it.
    fn run(&self, id: &str, records: &[TrialRecord], finished: bool) -> RunDir {
        let run = RunDir::create(self.project(), id.to_owned()).expect("a run");
        std::fs::write(run.path().join("run.json"), r#"{"started": "2026-01-01T00:00:00Z"}"#)
            .expect("written");
        let at = "2026-01-01T00:00:00Z".to_owned();
        let started =
            RunEvent::RunStarted { schema_version: 1, run: id.to_owned(), at, trials: records.len() };
        self.log(&run, &[started]);
        for record in records {
            self.log(&run, &[RunEvent::TrialFinished { record: Box::new(record.clone()) }]);
        }
        if finished {
            let mut tally = RunTally::default();
            records.iter().for_each(|record| tally.add(record));
            let summary = Arc::new(tally.summary(id, &[], 1.0, RunCompletion::Completed));
            self.log(&run, &[RunEvent::RunFinished { summary }]);
        }
        run
    }

    fn log(&self, run: &RunDir, events: &[RunEvent]) {
        let mut text = String::new();
        for event in events {
            writeln!(text, "{}", serde_json::to_string(event).expect("JSON")).expect("written");
        }
        append(run, &text);
    }

    fn index(&self) -> Index {
        Index::open_updated(self.project()).expect("an index")
    }

    fn file(&self) -> PathBuf {
        index_path(self.project())
    }
}

fn append(run: &RunDir, text: &str) {
    let path = run.path().join("events.jsonl");
    let mut file = std::fs::File::options().create(true).append(true).open(path).expect("a log");
    file.write_all(text.as_bytes()).expect("written");
}

/// Reads everything from the index, without row numbers.
fn all(index: &Index) -> (Vec<RunRow>, Vec<TrialRow>, Vec<CheckCounts>) {
    let runs = index.runs(None, usize::MAX).expect("runs");
    let mut trials =
        index.trials(&TrialFilter::default(), TrialOrder::Newest, None, usize::MAX).expect("trials");
    trials.iter_mut().for_each(|trial| trial.n = 0);
    trials.sort_by(|a, b| (&a.run, &a.id).cmp(&(&b.run, &b.id)));
    (runs, trials, index.check_counts(None, usize::MAX).expect("checks"))
}

#[test]
fn an_index_that_followed_and_one_made_anew_tell_the_same() {
    let store = Store::new();
    let first = store.run("1", &[record("a", 1, Verdict::Pass)], true);
    store.run("2", &[record("a", 1, Verdict::Fail), record("b", 1, Verdict::Pass)], false);
    drop(store.index());
    // A resumed run reports a trial again, and has no end any more.
    let event = |record| RunEvent::TrialFinished { record: Box::new(record) };
    let started = RunEvent::RunStarted { schema_version: 1, run: "1".into(), at: "later".into(), trials: 2 };
    store.log(&first, &[started, event(record("a", 1, Verdict::Fail)), event(record("c", 1, Verdict::Pass))]);
    let followed = all(&store.index());
    assert_eq!((followed.0[1].exit, followed.0[1].passed, followed.0[1].failed), (None, 1, 1));
    let found = Index::rebuild(store.project()).expect("rebuilt");
    assert_eq!(found, IndexCounts { runs: 2, trials: 5 });
    assert_eq!(all(&store.index()), followed);
    std::fs::remove_file(store.file()).expect("removed");
    assert_eq!(all(&store.index()), followed);
}

#[test]
fn what_vanished_is_forgotten_and_what_came_is_found() {
    let store = Store::new();
    let gone = store.run("1", &[record("a", 1, Verdict::Pass)], true);
    std::fs::write(gone.path().join("trials/x"), "").expect("written");
    drop(store.index());
    std::fs::remove_dir_all(gone.path()).expect("removed");
    store.run("2", &[record("b", 1, Verdict::Pass)], true);
    std::fs::create_dir(store.project().join(".practicum/runs/no-run")).expect("created");
    let (runs, trials, _) = all(&store.index());
    assert_eq!(runs.iter().map(|run| run.id.as_str()).collect::<Vec<_>>(), ["2"]);
    assert_eq!(trials.iter().map(|trial| trial.case.as_str()).collect::<Vec<_>>(), ["b"]);
}

#[test]
fn a_line_that_a_kill_cut_short_is_taken_over_when_it_is_whole() {
    let store = Store::new();
    let run = store.run("1", &[], false);
    let line =
        serde_json::to_string(&RunEvent::TrialFinished { record: Box::new(record("a", 1, Verdict::Pass)) });
    let line = line.expect("JSON");
    append(&run, &line[..50]);
    assert_eq!(all(&store.index()).1.len(), 0);
    append(&run, &line[50..]);
    assert_eq!(all(&store.index()).1.len(), 0, "its end is not known yet");
    append(&run, "\nnot an event\n{\"event\":\"trial_finished\",\"record\":1}\n");
    assert_eq!(all(&store.index()).1.len(), 1);
}

#[test]
fn an_index_that_is_damaged_newer_or_out_of_reach_never_hides_a_run() {
    type Spoiling<'s> = (&'s str, &'s dyn Fn(&Store), Option<&'s str>);
    let spoil: [Spoiling<'_>; 5] = [
        ("fine", &|_| {}, None),
        (
            "not a database",
            &|store| std::fs::write(store.file(), "x".repeat(9000)).expect("written"),
            Some("damaged"),
        ),
        (
            "newer",
            &|store| {
                let db = Connection::open(store.file()).expect("open");
                db.pragma_update(None, "user_version", 99).expect("set");
            },
            Some("newer version"),
        ),
        (
            "torn",
            &|store| {
                database::remove(&store.file());
                let db = database::open(&store.file(), BUSY_TIMEOUT).expect("open");
                db.execute_batch("PRAGMA journal_mode = delete;").expect("set");
                drop(db);
                let mut bytes = std::fs::read(store.file()).expect("bytes");
                let length = bytes.len();
                bytes[200..length].fill(0xAA);
                std::fs::write(store.file(), bytes).expect("written");
            },
            Some("damaged"),
        ),
        (
            "a folder",
            &|store| {
                database::remove(&store.file());
                std::fs::create_dir(store.file()).expect("created");
            },
            Some("without it"),
        ),
    ];
    for (name, spoil, notice) in spoil {
        let store = Store::new();
        let run = store.run("1", &[record("a", 1, Verdict::Pass)], true);
        drop(store.index());
        spoil(&store);
        // The sink may fail without any effect on the run.
        let mut sink = IndexSink::new(store.project(), &run);
        let summary = Arc::new(RunTally::default().summary("1", &[], 1.0, RunCompletion::Completed));
        let _ = sink.receive(&RunEvent::RunFinished { summary });
        let index = store.index();
        assert_eq!(index.runs(None, 9).expect("runs").len(), 1, "{name}");
        match notice {
            Some(part) => assert!(
                index.notice().is_some_and(|notice| notice.contains(part)),
                "{name}: {:?}",
                index.notice()
            ),
            None => assert_eq!(index.notice(), None),
        }
    }
}

#[test]
fn while_another_writes_a_run_goes_on_and_readers_read() {
    let store = Store::new();
    let run = store.run("1", &[record("a", 1, Verdict::Pass)], true);
    drop(store.index());
    let writer = database::open(&store.file(), BUSY_TIMEOUT).expect("open");
    writer.execute_batch("BEGIN IMMEDIATE; UPDATE runs SET planned = 7").expect("locked");
    store.log(&run, &[RunEvent::TrialFinished { record: Box::new(record("b", 1, Verdict::Pass)) }]);
    let summary = Arc::new(RunTally::default().summary("1", &[], 1.0, RunCompletion::Completed));
    let received = IndexSink::new(store.project(), &run).receive(&RunEvent::RunFinished { summary });
    assert!(received.is_ok(), "{received:?}");
    let index = store.index();
    assert_eq!(index.trials(&TrialFilter::default(), TrialOrder::Newest, None, 9).expect("trials").len(), 1);
    assert!(index.notice().is_some_and(|notice| notice.contains("being written")), "{:?}", index.notice());
    writer.execute_batch("ROLLBACK").expect("rolled back");
    assert_eq!(
        store.index().trials(&TrialFilter::default(), TrialOrder::Newest, None, 9).expect("trials").len(),
        2
    );
}

#[test]
fn several_who_follow_at_once_count_nothing_twice() {
    let store = Store::new();
    let records: Vec<TrialRecord> = (1..=300).map(|attempt| record("a", attempt, Verdict::Pass)).collect();
    store.run("1", &records, true);
    store.run("2", &records, true);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                Index::open_updated(store.project())
                    .map(|index| index.notice().map(str::to_owned))
                    .expect("an index")
            });
        }
    });
    let index = store.index();
    assert_eq!(
        index.trials(&TrialFilter::default(), TrialOrder::Newest, None, usize::MAX).expect("trials").len(),
        600
    );
}

#[test]
fn pages_together_are_the_whole() {
    let store = Store::new();
    let records: Vec<TrialRecord> =
        (0..25).map(|n| record(&format!("case {n:02}"), 1, Verdict::Pass)).collect();
    store.run("1", &records, true);
    store.run("2", &records, true);
    let index = store.index();
    for (order, run) in
        TrialOrder::ALL.into_iter().flat_map(|order| [(order, None), (order, Some("1".to_owned()))])
    {
        let filter = TrialFilter { run, ..TrialFilter::default() };
        let whole = index.trials(&filter, order, None, usize::MAX).expect("trials");
        let mut seen = Vec::new();
        while let page =
            index.trials(&filter, order, seen.last().map(|row: &TrialRow| row.n), 7).expect("a page")
            && !page.is_empty()
        {
            seen.extend(page);
        }
        assert_eq!(seen, whole, "{order:?}");
        assert_eq!(seen.len(), if filter.run.is_some() { 25 } else { 50 });
    }
    let mut seen: Vec<CaseRow> = Vec::new();
    loop {
        let last = seen.last().map(|row| (row.suite.clone(), row.case.clone()));
        let after = last.as_ref().map(|(suite, case)| (suite.as_str(), case.as_str()));
        let page = index.cases_of("1", after, false, 10).expect("a page");
        if page.is_empty() {
            break;
        }
        seen.extend(page);
    }
    assert_eq!(seen, index.cases_of("1", None, false, 100).expect("all"));
    assert_eq!(seen.len(), 25);
    assert_eq!(index.cases_of("1", None, true, 100).expect("none"), []);
    assert_eq!(index.suites_of("1", 9).expect("suites"), ["s"]);
}

/// Trials that run at once end in any order, but users look for them in the order of their eval file.
#[test]
fn trials_and_cases_stand_in_the_order_of_the_plan_however_they_end() {
    let store = Store::new();
    let run = store.run("1", &[], false);
    let planned: Vec<TrialRecord> = [("zebra", 1), ("ant", 1), ("10", 1), ("9", 1), ("zebra", 2), ("ant", 2)]
        .map(|(case, attempt)| record(case, attempt, Verdict::Pass))
        .into();
    for record in &planned {
        let (trial, suite, case) = (record.trial.clone(), record.suite.clone(), record.case.clone());
        let (condition, attempt) = (record.condition.clone(), record.attempt);
        store.log(&run, &[RunEvent::TrialStarted { trial, suite, case, condition, attempt, worker: None }]);
    }
    for (seconds, record) in planned.iter().rev().enumerate() {
        let record = TrialRecord { seconds: seconds as f64, ..record.clone() };
        store.log(&run, &[RunEvent::TrialFinished { record: Box::new(record) }]);
    }
    let index = store.index();
    let filter = TrialFilter { run: Some("1".to_owned()), ..TrialFilter::default() };
    let listed = |order: TrialOrder| -> Vec<String> {
        let rows = index.trials(&filter, order, None, 99).expect("trials");
        rows.iter().map(|row| format!("{} {}", row.case, row.attempt)).collect()
    };
    assert_eq!(listed(TrialOrder::Case), ["zebra 1", "zebra 2", "ant 1", "ant 2", "10 1", "9 1"]);
    assert_eq!(listed(TrialOrder::Newest), ["zebra 1", "ant 1", "10 1", "9 1", "zebra 2", "ant 2"]);
    assert_eq!(listed(TrialOrder::Slowest), listed(TrialOrder::Newest));
    let cases = index.cases_of("1", None, false, 99).expect("cases");
    assert_eq!(cases.iter().map(|row| row.case.as_str()).collect::<Vec<_>>(), ["zebra", "ant", "10", "9"]);
}

#[test]
fn what_is_only_compared_with_is_not_among_what_has_to_pass() {
    let store = Store::new();
    let without = |case: &str| {
        let mut record = record(case, 1, Verdict::Fail);
        record.condition.arm = Arm::WithoutSkill;
        record.trial = TrialId::new("s", case, &record.condition, 1);
        record
    };
    let both = [
        record("a", 1, Verdict::Pass),
        without("a"),
        record("b", 1, Verdict::NotScored(NotScoredReason::NotTrusted)),
    ];
    store.run("1", &both, true);
    store.run("2", &both, false);
    store.run("3", &[without("a")], true);
    let rows = store.index().runs(None, 9).expect("runs");
    let counts = |at: usize| {
        let of = rows[at].examined;
        [of.trials, of.passed, of.failed, of.not_scored]
    };
    assert_eq!([counts(0), counts(1), counts(2)], [[1, 0, 1, 0], [2, 1, 0, 1], [2, 1, 0, 1]]);
}

/// The viewer shows the decision of the rate, whatever the verdicts of the trials are.
#[test]
fn a_case_that_a_rate_decides_stands_as_the_rate_says() {
    let store = Store::new();
    let trial = |case: &str, attempt: u32, expect: ActivationExpectation, fired: bool| {
        let right = (expect == ActivationExpectation::Must) == fired;
        let verdict = if right { Verdict::Pass } else { Verdict::Fail };
        TrialRecord { expect: Some(expect), fired: Some(fired), ..record(case, attempt, verdict) }
    };
    let (must, must_not) = (ActivationExpectation::Must, ActivationExpectation::MustNot);
    let records = [
        trial("often", 1, must, true),
        trial("often", 2, must, false),
        trial("never", 1, must_not, false),
        trial("never", 2, must_not, false),
        record("plain", 1, Verdict::Pass),
    ];
    let run = store.run("1", &records, false);
    let mut tally = RunTally::default();
    for (case, expect, threshold) in [("often", must, 0.5), ("never", must_not, 0.0)] {
        let rule = ActivationRateRule { expect, threshold: Ratio::new(threshold).expect("a ratio") };
        tally.expect_case("s", case, &records[0].condition, Some(rule));
    }
    records.iter().for_each(|record| tally.add(record));
    let summary = Arc::new(tally.summary("1", &[], 1.0, RunCompletion::Completed));
    store.log(&run, &[RunEvent::RunFinished { summary }]);
    let index = store.index();
    let stand = |troubled: bool| -> Vec<(String, Option<bool>)> {
        let cases = index.cases_of("1", None, troubled, 9).expect("cases");
        cases.into_iter().map(|row| (row.case, row.cells[0].passes)).collect()
    };
    let case = |name: &str, passes| (name.to_owned(), passes);
    let all = [case("often", Some(true)), case("never", Some(false)), case("plain", None)];
    assert_eq!(stand(false), all);
    assert_eq!(stand(true), all[1..2]);
}

#[test]
fn any_text_can_be_searched_for() {
    let store = Store::new();
    let found = record("a", 1, Verdict::Pass);
    let run = store.run("1", &[], false);
    let folder = run.create_trial_folder(&found.trial).expect("a folder");
    std::fs::write(folder.join("output.txt"), "The lighthouse's keeper said: \"never\" (twice).")
        .expect("written");
    store.log(&run, &[RunEvent::TrialFinished { record: Box::new(found) }]);
    let index = store.index();
    for (text, expected) in [
        ("lighthouse", 1),
        ("light keeper", 0),
        ("keeper LIGHTHOUSE", 1),
        ("lighth", 1),
        ("  never ", 1),
        ("\"never\"", 1),
        ("NEAR(", 0),
        ("\" OR *", 0),
        ("it's -x AND ^y: {z}", 0),
        ("\0", 0),
        ("A", 1),
        ("", 1),
    ] {
        let filter = TrialFilter { text: Some(text.to_owned()), ..TrialFilter::default() };
        let rows = index
            .trials(&filter, TrialOrder::Newest, None, 9)
            .unwrap_or_else(|error| panic!("{text:?}: {error}"));
        assert_eq!(rows.len(), expected, "{text:?}");
    }
}

fn verdicts() -> impl Strategy<Value = Verdict> {
    prop_oneof![
        Just(Verdict::Pass),
        Just(Verdict::Fail),
        Just(Verdict::NotScored(NotScoredReason::NotTrusted)),
        Just(Verdict::NotScored(NotScoredReason::InvalidArm("it could not see the skill".into()))),
    ]
}

fn check(id: &str, verdict: Verdict, score: f64) -> CheckResult {
    CheckResult {
        score: (!matches!(verdict, Verdict::NotScored(_))).then_some(score),
        scale: (id == "judged").then_some(ScoreScale::Unit),
        ..testing::check(id, verdict)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// A trend shows the same numbers that gates compare.
    #[test]
    fn a_trend_and_a_gate_agree(
        rows in prop::collection::vec(
            (
                verdicts(),
                verdicts(),
                0.0f64..=1.0,
                prop::option::of(prop_oneof![Just(ActivationExpectation::Must), Just(ActivationExpectation::MustNot), Just(ActivationExpectation::Either)]),
                prop::option::of(any::<bool>()),
                any::<bool>(),
                any::<bool>(),
                any::<bool>(),
            ),
            0..20,
        )
    ) {
        let mut records = Vec::new();
        for (number, (verdict, judged, score, expect, fired, finished, with, named)) in rows.into_iter().enumerate() {
            let mut one = record(&format!("c{number}"), 1, verdict.clone());
            one.checks = vec![check("exact", verdict, 0.0), check("judged", judged, score)];
            (one.expect, one.fired) = (expect, fired);
            one.skills.invoked = named;
            one.ended = if finished { AgentEnding::Finished } else { AgentEnding::TimedOut };
            one.condition.arm = if with { Arm::WithSkill } else { Arm::WithoutSkill };
            records.push(one);
        }
        // A run with only trials without the skill is a baseline: it has only the gates that the user sets, and is
        // in no trend.
        prop_assume!(records.is_empty() || records.iter().any(|record| record.condition.arm.has_skill()));
        let store = Store::new();
        store.run("1", &records, true);
        let mut tally = RunTally::default();
        records.iter().for_each(|record| tally.add(record));
        let pairs = [
            (GateName::PassRate, Metric::PassRate),
            (GateName::CriteriaPassRate, Metric::CriteriaPassRate),
            (GateName::MeanScore, Metric::MeanScore),
            (GateName::Precision, Metric::Precision),
            (GateName::Recall, Metric::Recall),
            (GateName::F1, Metric::F1),
            (GateName::Accuracy, Metric::Accuracy),
        ];
        let threshold = Ratio::new(0.5).expect("a share");
        let gates = pairs.map(|(name, _)| SuiteGate { suite: "s".into(), gate: Gate::new(name, threshold) });
        let summary = tally.summary("1", &gates, 1.0, RunCompletion::Completed);
        let index = store.index();
        for (result, (_, metric)) in summary.gates.iter().zip(pairs) {
            let points = index.metric_points(metric, &MetricScope::default(), 9).expect("points");
            let value = points.first().and_then(|point| point.value);
            match (value, result.value) {
                (Some(ours), Some(gate)) => prop_assert!((ours - gate).abs() < 1e-9, "{metric:?}: {ours} {gate}"),
                (ours, gate) => prop_assert_eq!(ours, gate, "{:?}", metric),
            }
        }
    }
}
