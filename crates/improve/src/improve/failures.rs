//! Collects the failed checks of a run, as an adviser sees them.

use std::collections::BTreeMap;

use super::StoredRun;
use super::stored_run::user_prompt;
use practicum_core::model::{Check, CheckKind, CheckResult, TrialRecord, Verdict, count_with_noun};
use practicum_engine::grade::judge::shorten_text;

/// A failed check, with what an adviser may know about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedCheck {
    /// The name to refer to it: `case/check`.
    pub name: String,
    pub text: String,
}

/// The largest number of cases with full evidence. Further cases are only named, because edits for these come
/// first.
const MOST_CASES: usize = 10;
const LONGEST_CASE: usize = 40_000;
const LONGEST_OUTPUT: usize = 12_000;

/// The failed checks of the cases that may be shown, and what happened there.
pub struct FailedChecks {
    pub failed: Vec<FailedCheck>,
    /// The prompt, the output and the transcript, by case.
    pub evidence: Vec<(String, String)>,
}

impl FailedChecks {
    pub fn from_run(run: &StoredRun, may_show: &dyn Fn(&str, &str) -> bool) -> Self {
        let mut cases: BTreeMap<(&str, &str), Vec<&TrialRecord>> = BTreeMap::new();
        for record in run.trials_with_skill().filter(|record| may_show(&record.suite, &record.case)) {
            if record.checks.iter().any(|check| check.verdict == Verdict::Fail) {
                cases.entry((&record.suite, &record.case)).or_default().push(record);
            }
        }
        let mut failures = Self { failed: Vec::new(), evidence: Vec::new() };
        for (at, ((suite, case), records)) in cases.iter().enumerate() {
            let Some((_, known)) = run.case(suite, case) else { continue };
            for (check, results) in failed_checks_by_id(records) {
                let wanted = known.checks.iter().find(|known| known.id == check).map(describe_check);
                let found = results.first().map(|result| result.rationale.as_str()).unwrap_or_default();
                failures.failed.push(FailedCheck {
                    name: format!("{case}/{check}"),
                    text: format!(
                        "wanted: {}\nfound, in {}: {}",
                        wanted.unwrap_or_else(|| "what this check demands".to_owned()),
                        count_with_noun(results.len(), "run"),
                        shorten_text(found, 2_000)
                    ),
                });
            }
            if let Some(record) = records.first().filter(|_| at < MOST_CASES) {
                let text = format!(
                    "asked:\n{}\n\nsaid and made:\n{}\n\nthe transcript:\n{}",
                    user_prompt(known),
                    shorten_text(&run.output_of(record), LONGEST_OUTPUT),
                    run.transcript_of(record)
                );
                failures.evidence.push(((*case).to_owned(), shorten_text(&text, LONGEST_CASE)));
            }
        }
        failures
    }

    pub fn is_empty(&self) -> bool {
        self.failed.is_empty()
    }

    pub fn has(&self, name: &str) -> bool {
        self.failed.iter().any(|failure| failure.name == name)
    }

    /// Gives the failures as exhibits for a question.
    pub fn exhibits(&self) -> Vec<(String, String)> {
        let list: Vec<String> =
            self.failed.iter().map(|failure| format!("check {}\n{}", failure.name, failure.text)).collect();
        let mut exhibits = vec![("The checks that failed".to_owned(), list.join("\n\n"))];
        for (number, (case, text)) in self.evidence.iter().enumerate() {
            exhibits.push((format!("What happened, {}", number + 1), format!("case {case}\n{text}")));
        }
        exhibits
    }
}

/// Gives the failed checks of a case, with their results in each failed trial.
fn failed_checks_by_id<'r>(records: &[&'r TrialRecord]) -> BTreeMap<&'r str, Vec<&'r CheckResult>> {
    let mut failed: BTreeMap<&str, Vec<&CheckResult>> = BTreeMap::new();
    for check in records.iter().flat_map(|record| &record.checks) {
        if check.verdict == Verdict::Fail {
            failed.entry(&check.check).or_default().push(check);
        }
    }
    failed
}

fn describe_check(check: &Check) -> String {
    match &check.kind {
        CheckKind::Rule(rule) => format!("{}: {}", rule.key(), rule.value()),
        CheckKind::Judged(judged) => judged.statement.clone(),
        CheckKind::Sections(sections) => {
            let names: Vec<&str> = sections.iter().map(|section| section.name.as_str()).collect();
            format!("complete sections {}", names.join(", "))
        }
        CheckKind::Activation(activation) => format!(
            "the skill {} {}",
            activation.skills.join(" or "),
            match activation.expect {
                practicum_core::model::ActivationExpectation::Must => "is activated",
                practicum_core::model::ActivationExpectation::MustNot => "is not activated",
                practicum_core::model::ActivationExpectation::Either => "may be activated",
            }
        ),
    }
}
