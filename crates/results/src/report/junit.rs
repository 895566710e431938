//! The JUnit report.

use std::io::Write;
use std::time::Duration;

use quick_junit::{NonSuccessKind, Property, TestCase, TestCaseStatus, TestSuite, XmlString};

use super::escaping::{to_one_line, truncate_text};
use super::{ReportFormat, ReportOutput, RunResults, terminal_safe};
use practicum_core::model::{
    AgentEnding, Arm, CaseSummary, CheckResult, NotScoredReason, TrialRecord, TrialTotals, Verdict,
    count_with_noun,
};

/// The report for CI, in which each trial is a test. Failed checks are failures, broken runs are errors, and what
/// was left out on purpose is skipped. If a rate decides a case, its trials pass or fail together.
pub static REPORT: ReportFormat = ReportFormat {
    name: "junit",
    description: "JUnit XML for CI, each trial a test",
    output: ReportOutput::File(write),
    environment_file: None,
};

/// The longest text, far more than anybody reads on a CI page.
const MAX_TEXT_LENGTH: usize = 4000;

fn write(results: &RunResults, out: &mut dyn Write) -> std::io::Result<()> {
    let mut report = quick_junit::Report::new("practicum");
    report.set_time(duration_from_seconds(results.summary.seconds));
    for name in results.suite_names() {
        for with_skill in [true, false] {
            report.test_suites.extend(test_suite(results, name, with_skill)?);
        }
    }
    report.tests = report.test_suites.iter().map(|suite| suite.tests).sum();
    report.failures = report.test_suites.iter().map(|suite| suite.failures).sum();
    report.errors = report.test_suites.iter().map(|suite| suite.errors).sum();
    report.skipped = report.test_suites.iter().map(|suite| suite.skipped).sum();
    report.serialize(&mut *out).map_err(std::io::Error::other)
}

/// Makes the tests of a suite: of the trials that have to pass, or of those that they are compared with.
fn test_suite(results: &RunResults, name: &str, with_skill: bool) -> std::io::Result<Option<TestSuite>> {
    let belongs =
        |case: &&CaseSummary| case.suite == name && (case.arm != Arm::WithoutSkill.name()) == with_skill;
    let title = if with_skill { name.to_owned() } else { format!("{name} without the skill") };
    let mut suite = TestSuite::new(xml_text(&title));
    let mut totals = TrialTotals::default();
    let mut time = 0.0;
    for case in results.summary.cases.iter().filter(belongs) {
        for trial in results.trials(case) {
            let record = trial?;
            time += record.seconds;
            count_verdict(&record, &mut totals);
            suite.add_test_case(test_case(case, &record, results.summary.has_to_pass(case)));
        }
        if case.not_run > 0 {
            totals.not_run += case.not_run;
            suite.add_test_case(not_run_test(case, results.summary.has_to_pass(case)));
        }
    }
    if totals.trials + totals.not_run == 0 {
        return Ok(None);
    }
    suite.set_time(duration_from_seconds(time));
    for (name, value) in [
        ("practicum.run", results.summary.run.clone()),
        ("practicum.passed", totals.passed.to_string()),
        ("practicum.failed", totals.failed.to_string()),
        ("practicum.not_scored", totals.not_scored.to_string()),
        ("practicum.not_run", totals.not_run.to_string()),
        ("practicum.reused", totals.reused.to_string()),
        ("practicum.scripted", results.info.scripted.to_string()),
        ("practicum.replayed", results.info.replayed.to_string()),
    ] {
        suite.add_property(Property::new(name, value));
    }
    if let Some(sample) = &results.summary.sample {
        suite.add_property(Property::new("practicum.sample", sample.describe()));
    }
    Ok(Some(suite))
}

/// Makes one unsuccessful test for the planned trials of a case that were not run.
fn not_run_test(case: &CaseSummary, has_to_pass: bool) -> TestCase {
    let mut words = vec![case.agent.clone()];
    words.extend(case.model.clone());
    words.extend([case.arm.clone(), case.mode.clone()]);
    let mut status = match has_to_pass {
        true => TestCaseStatus::non_success(NonSuccessKind::Error),
        false => TestCaseStatus::skipped(),
    };
    status.set_message(xml_text(&format!("{} not run", count_with_noun(case.not_run, "trial"))));
    let name = format!("{} not run ({})", to_one_line(&case.id), to_one_line(&words.join(", ")));
    let mut test = TestCase::new(xml_text(&name), status);
    test.set_classname(xml_text(&case.suite));
    test
}

fn count_verdict(record: &TrialRecord, totals: &mut TrialTotals) {
    totals.trials += 1;
    totals.reused += u64::from(record.is_reused());
    let of = match record.verdict {
        Verdict::Pass => &mut totals.passed,
        Verdict::Fail => &mut totals.failed,
        Verdict::NotScored(_) => &mut totals.not_scored,
    };
    *of += 1;
}

fn test_case(case: &CaseSummary, record: &TrialRecord, has_to_pass: bool) -> TestCase {
    let condition = &record.condition;
    let mut words = vec![condition.agent.clone()];
    words.extend(condition.model.clone());
    words.extend([condition.arm.name(), condition.mode.name().to_owned()]);
    let name =
        format!("{} #{} ({})", to_one_line(&record.case), record.attempt, to_one_line(&words.join(", ")));
    let mut test = TestCase::new(xml_text(&name), test_status(case, record, has_to_pass));
    test.set_classname(xml_text(&record.suite)).set_time(duration_from_seconds(record.seconds));
    test.assertions = Some(record.checks.len());
    let own = case
        .deciding_rate()
        .map(|rate| format!("by itself: {}; {}", describe_outcome(record), rate.description));
    let reused = record.reused_from.as_ref().map(|run| format!("reused from run {run}"));
    let notes =
        own.into_iter().chain(reused).chain(record.notes.iter().cloned()).chain(record.unanswered_note());
    let notes: Vec<String> = notes.map(|note| format!("note: {}", to_one_line(&note))).collect();
    if !notes.is_empty() {
        test.set_system_out(xml_text(&notes.join("\n")));
    }
    test
}

/// Describes the outcome of a single trial.
fn describe_outcome(record: &TrialRecord) -> String {
    match &record.verdict {
        Verdict::Pass => "passed".to_owned(),
        Verdict::Fail => failure_message(record),
        Verdict::NotScored(_) => record.not_scored_reason().unwrap_or_default(),
    }
}

fn test_status(case: &CaseSummary, record: &TrialRecord, has_to_pass: bool) -> TestCaseStatus {
    let decided = case.deciding_rate().and_then(|rate| Some((rate.passes?, rate)));
    match (&record.verdict, decided) {
        (Verdict::Pass | Verdict::Fail, Some((true, _))) => TestCaseStatus::success(),
        (Verdict::Pass | Verdict::Fail, Some((false, rate))) => {
            non_success_status(NonSuccessKind::Failure, rate.name, &rate.description, record)
        }
        (Verdict::Pass, None) => TestCaseStatus::success(),
        // Trials without the skill do not have to pass, so they must not fail a CI job.
        (Verdict::Fail, None) if !has_to_pass => {
            skipped_status(&format!("failed without the skill: {}", failure_message(record)))
        }
        (Verdict::Fail, None) => {
            non_success_status(NonSuccessKind::Failure, "check failed", &failure_message(record), record)
        }
        (Verdict::NotScored(why), _) => {
            let words = record.not_scored_reason().unwrap_or_default();
            match is_broken(why) {
                true => non_success_status(NonSuccessKind::Error, "not scored", &words, record),
                false => skipped_status(&words),
            }
        }
    }
}

/// Says whether something broke, as opposed to what was left out on purpose.
fn is_broken(why: &NotScoredReason) -> bool {
    match why {
        NotScoredReason::Ended(ended) => match ended {
            AgentEnding::TimedOut
            | AgentEnding::RateLimited
            | AgentEnding::AuthFailed
            | AgentEnding::ApiFailed
            | AgentEnding::Crashed
            | AgentEnding::NotLaunched
            | AgentEnding::NotStarted
            | AgentEnding::SetupFailed
            | AgentEnding::NoReply
            | AgentEnding::OverLimit
            | AgentEnding::Lost => true,
            AgentEnding::Finished
            | AgentEnding::AskedUser
            | AgentEnding::OverBudget
            | AgentEnding::Cancelled => false,
        },
        // A CI that counts only failures and errors must not be green if scripts were not allowed to run.
        NotScoredReason::JudgeFailed(_)
        | NotScoredReason::CheckFailed(_)
        | NotScoredReason::InvalidArm(_)
        | NotScoredReason::NotTrusted
        | NotScoredReason::NoCheck
        | NotScoredReason::NoRequiredCheck
        | NotScoredReason::NetworkNotAllowed
        | NotScoredReason::Unsupported
        | NotScoredReason::NothingDone
        | NotScoredReason::UnmockedCall(_)
        | NotScoredReason::MockFailed(_) => true,
        NotScoredReason::NotJudged(_) => false,
    }
}

fn non_success_status(
    kind: NonSuccessKind,
    word: &str,
    message: &str,
    record: &TrialRecord,
) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(kind);
    let troubled = record.checks.iter().filter(|check| check.verdict != Verdict::Pass);
    let details: Vec<String> = troubled.map(describe_check).collect();
    status
        .set_message(xml_text(&to_one_line(message)))
        .set_type(word)
        .set_description(xml_text(&details.join("\n")));
    status
}

fn skipped_status(message: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::skipped();
    status.set_message(xml_text(&to_one_line(message)));
    status
}

/// Names the first required check that failed, and how many more did.
fn failure_message(record: &TrialRecord) -> String {
    let failed: Vec<&CheckResult> =
        record.checks.iter().filter(|check| check.required && check.verdict == Verdict::Fail).collect();
    match failed.as_slice() {
        [] => TrialRecord::describe_total(&record.checks)
            .unwrap_or_else(|| "too few of its judged checks pass".to_owned()),
        [one] => format!("{}: {}", one.title(), one.rationale),
        [one, more @ ..] => format!("{}: {} (and {} more)", one.title(), one.rationale, more.len()),
    }
}

fn describe_check(check: &CheckResult) -> String {
    let weight = check.describe_weight();
    let head = format!("{}{weight}: {}", to_one_line(&check.title()), to_one_line(&check.rationale));
    let evidence = check.evidence.iter().map(|line| format!("  {}", to_one_line(line)));
    std::iter::once(head).chain(evidence).collect::<Vec<String>>().join("\n")
}

/// Removes characters that XML cannot contain, and shortens the text.
fn xml_text(text: &str) -> XmlString {
    XmlString::new(
        truncate_text(&terminal_safe(text), MAX_TEXT_LENGTH).replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}"),
    )
}

fn duration_from_seconds(of: f64) -> Duration {
    Duration::try_from_secs_f64(of).unwrap_or_default()
}
