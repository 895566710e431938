use std::io::Write;
use std::time::Duration;

use quick_junit::{NonSuccessKind, Property, TestCase, TestCaseStatus, TestSuite, XmlString};

use super::markup::{cut, one_line};
use super::{Form, Report, Results, safe};
use practicum_core::model::{
    Arm, CaseSummary, CheckResult, CriteriaThresholds, Ended, Totals, TrialRecord, Verdict, Why, counted,
};

/// For CI: each trial is a test. Failed checks are failures, broken runs errors, and what was not to be
/// scored is skipped. Where a rate decides a case, its trials pass or fail together.
pub static REPORT: Report = Report {
    name: "junit",
    about: "JUnit XML for CI, each trial a test",
    form: Form::File(write),
    adds: None,
};

/// Far more than anybody reads in a CI's page.
const LONGEST_TEXT: usize = 4000;

fn write(results: &Results, out: &mut dyn Write) -> std::io::Result<()> {
    let mut report = quick_junit::Report::new("practicum");
    report.set_time(seconds(results.summary.seconds));
    for name in results.suites() {
        for with_skill in [true, false] {
            report.test_suites.extend(suite(results, name, with_skill)?);
        }
    }
    report.tests = report.test_suites.iter().map(|suite| suite.tests).sum();
    report.failures = report.test_suites.iter().map(|suite| suite.failures).sum();
    report.errors = report.test_suites.iter().map(|suite| suite.errors).sum();
    report.skipped = report.test_suites.iter().map(|suite| suite.skipped).sum();
    report.serialize(&mut *out).map_err(std::io::Error::other)
}

/// The trials of a suite that have to pass, or those that are only compared with.
fn suite(results: &Results, name: &str, with_skill: bool) -> std::io::Result<Option<TestSuite>> {
    let belongs =
        |case: &&CaseSummary| case.suite == name && (case.arm != Arm::WithoutSkill.name()) == with_skill;
    let title = if with_skill { name.to_owned() } else { format!("{name} without the skill") };
    let mut suite = TestSuite::new(text(&title));
    let mut totals = Totals::default();
    let mut time = 0.0;
    for case in results.summary.cases.iter().filter(belongs) {
        for trial in results.trials(case) {
            let record = trial?;
            time += record.seconds;
            count(&record, &mut totals);
            suite.add_test_case(test(case, &record, results.summary.has_to_pass(case)));
        }
        if case.not_run > 0 {
            totals.not_run += case.not_run;
            suite.add_test_case(not_run(case, results.summary.has_to_pass(case)));
        }
    }
    if totals.trials + totals.not_run == 0 {
        return Ok(None);
    }
    suite.set_time(seconds(time));
    for (name, value) in [
        ("practicum.run", results.summary.run.clone()),
        ("practicum.passed", totals.passed.to_string()),
        ("practicum.failed", totals.failed.to_string()),
        ("practicum.not_scored", totals.not_scored.to_string()),
        ("practicum.not_run", totals.not_run.to_string()),
    ] {
        suite.add_property(Property::new(name, value));
    }
    if let Some(sample) = &results.summary.sample {
        suite.add_property(Property::new("practicum.sample", sample.in_words()));
    }
    Ok(Some(suite))
}

/// The planned trials of a case that were not run, as one test that did not succeed.
fn not_run(case: &CaseSummary, has_to_pass: bool) -> TestCase {
    let mut words = vec![case.agent.clone()];
    words.extend(case.model.clone());
    words.extend([case.arm.clone(), case.mode.clone()]);
    let mut status = match has_to_pass {
        true => TestCaseStatus::non_success(NonSuccessKind::Error),
        false => TestCaseStatus::skipped(),
    };
    status.set_message(text(&format!("{} not run", counted(case.not_run, "trial"))));
    let name = format!("{} not run ({})", one_line(&case.id), one_line(&words.join(", ")));
    let mut test = TestCase::new(text(&name), status);
    test.set_classname(text(&case.suite));
    test
}

fn count(record: &TrialRecord, totals: &mut Totals) {
    totals.trials += 1;
    let of = match record.verdict {
        Verdict::Pass => &mut totals.passed,
        Verdict::Fail => &mut totals.failed,
        Verdict::NotScored(_) => &mut totals.not_scored,
    };
    *of += 1;
}

fn test(case: &CaseSummary, record: &TrialRecord, has_to_pass: bool) -> TestCase {
    let condition = &record.condition;
    let mut words = vec![condition.agent.clone()];
    words.extend(condition.model.clone());
    words.extend([condition.arm.name(), condition.mode.name().to_owned()]);
    let name = format!("{} #{} ({})", one_line(&record.case), record.attempt, one_line(&words.join(", ")));
    let mut test = TestCase::new(text(&name), status(case, record, has_to_pass));
    test.set_classname(text(&record.suite)).set_time(seconds(record.seconds));
    test.assertions = Some(record.checks.len());
    let own = case.deciding_rate().map(|rate| format!("by itself: {}; {}", outcome(record), rate.in_words()));
    let notes = own.into_iter().chain(record.notes.iter().cloned()).chain(record.unanswered_note());
    let notes: Vec<String> = notes.map(|note| format!("note: {}", one_line(&note))).collect();
    if !notes.is_empty() {
        test.set_system_out(text(&notes.join("\n")));
    }
    test
}

/// What a trial alone came to, in words.
fn outcome(record: &TrialRecord) -> String {
    match &record.verdict {
        Verdict::Pass => "passed".to_owned(),
        Verdict::Fail => message(record),
        Verdict::NotScored(_) => record.why_not_scored().unwrap_or_default(),
    }
}

fn status(case: &CaseSummary, record: &TrialRecord, has_to_pass: bool) -> TestCaseStatus {
    let decided = case.deciding_rate().and_then(|rate| Some((rate.passes?, rate)));
    match (&record.verdict, decided) {
        (Verdict::Pass | Verdict::Fail, Some((true, _))) => TestCaseStatus::success(),
        (Verdict::Pass | Verdict::Fail, Some((false, rate))) => {
            broken(NonSuccessKind::Failure, "fire rate", &rate.in_words(), record)
        }
        (Verdict::Pass, None) => TestCaseStatus::success(),
        // Without the skill nothing has to pass, and a CI must not turn red because of it.
        (Verdict::Fail, None) if !has_to_pass => {
            skipped(&format!("failed without the skill: {}", message(record)))
        }
        (Verdict::Fail, None) => broken(NonSuccessKind::Failure, "check failed", &message(record), record),
        (Verdict::NotScored(why), _) => {
            let words = record.why_not_scored().unwrap_or_default();
            match is_broken(why) {
                true => broken(NonSuccessKind::Error, "not scored", &words, record),
                false => skipped(&words),
            }
        }
    }
}

/// Whether something broke, as opposed to what was left out on purpose.
fn is_broken(why: &Why) -> bool {
    match why {
        Why::Ended(ended) => match ended {
            Ended::TimedOut
            | Ended::RateLimited
            | Ended::AuthFailed
            | Ended::ApiFailed
            | Ended::Crashed
            | Ended::NotLaunched
            | Ended::NotStarted
            | Ended::SetupFailed => true,
            Ended::Finished | Ended::AskedUser | Ended::OverBudget | Ended::Cancelled => false,
        },
        // A CI that only counts failures and errors must not look green where scripts were not allowed to run.
        Why::JudgeFailed(_)
        | Why::CheckFailed(_)
        | Why::InvalidArm(_)
        | Why::NotTrusted
        | Why::NoCheck
        | Why::NoRequiredCheck
        | Why::NetworkNotAllowed => true,
        Why::NotJudged(_) => false,
    }
}

fn broken(kind: NonSuccessKind, word: &str, message: &str, record: &TrialRecord) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(kind);
    let troubled = record.checks.iter().filter(|check| check.verdict != Verdict::Pass);
    let details: Vec<String> = troubled.map(detail).collect();
    status.set_message(text(&one_line(message))).set_type(word).set_description(text(&details.join("\n")));
    status
}

fn skipped(message: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::skipped();
    status.set_message(text(&one_line(message)));
    status
}

/// The first required check that failed, and how many more.
fn message(record: &TrialRecord) -> String {
    let failed: Vec<&CheckResult> =
        record.checks.iter().filter(|check| check.required && check.verdict == Verdict::Fail).collect();
    match failed.as_slice() {
        [] => CriteriaThresholds::in_words(&record.checks)
            .unwrap_or_else(|| "too few of its judged checks pass".to_owned()),
        [one] => format!("{}: {}", one.title(), one.rationale),
        [one, more @ ..] => format!("{}: {} (and {} more)", one.title(), one.rationale, more.len()),
    }
}

fn detail(check: &CheckResult) -> String {
    let weight = check.weight();
    let head = format!("{}{weight}: {}", one_line(&check.title()), one_line(&check.rationale));
    let evidence = check.evidence.iter().map(|line| format!("  {}", one_line(line)));
    std::iter::once(head).chain(evidence).collect::<Vec<String>>().join("\n")
}

/// Without what XML cannot hold, and without what nobody reads here.
fn text(text: &str) -> XmlString {
    XmlString::new(cut(&safe(text), LONGEST_TEXT).replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}"))
}

fn seconds(of: f64) -> Duration {
    Duration::try_from_secs_f64(of).unwrap_or_default()
}
