//! What went wrong in a run, as an adviser is told it.

use std::collections::BTreeMap;

use super::StoredRun;
use super::stored::asked;
use practicum_core::model::{Check, CheckKind, CheckResult, TrialRecord, Verdict, counted};
use practicum_engine::judge::cut;

/// A check that failed, and what an adviser may know of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// How it is referred to: `case/check`.
    pub name: String,
    pub text: String,
}

/// Cases beyond these are only named: a proposal for these comes first.
const MOST_CASES: usize = 10;
const LONGEST_CASE: usize = 40_000;
const LONGEST_OUTPUT: usize = 12_000;

/// The failed checks of the cases that may be shown, and what happened there.
pub struct Failures {
    pub failed: Vec<Failure>,
    /// What the agent was asked, said and did, by case.
    pub evidence: Vec<(String, String)>,
}

impl Failures {
    pub fn of(run: &StoredRun, may_show: &dyn Fn(&str, &str) -> bool) -> Self {
        let mut cases: BTreeMap<(&str, &str), Vec<&TrialRecord>> = BTreeMap::new();
        for record in run.with_skill().filter(|record| may_show(&record.suite, &record.case)) {
            if record.checks.iter().any(|check| check.verdict == Verdict::Fail) {
                cases.entry((&record.suite, &record.case)).or_default().push(record);
            }
        }
        let mut failures = Self { failed: Vec::new(), evidence: Vec::new() };
        for (at, ((suite, case), records)) in cases.iter().enumerate() {
            let Some((_, known)) = run.case(suite, case) else { continue };
            for (check, results) in failed_checks(records) {
                let wanted = known.checks.iter().find(|known| known.id == check).map(wanted);
                let found = results.first().map(|result| result.rationale.as_str()).unwrap_or_default();
                failures.failed.push(Failure {
                    name: format!("{case}/{check}"),
                    text: format!(
                        "wanted: {}\nfound, in {}: {}",
                        wanted.unwrap_or_else(|| "what this check demands".to_owned()),
                        counted(results.len(), "run"),
                        cut(found, 2_000)
                    ),
                });
            }
            if let Some(record) = records.first().filter(|_| at < MOST_CASES) {
                let text = format!(
                    "asked:\n{}\n\nsaid and made:\n{}\n\nthe transcript:\n{}",
                    asked(known),
                    cut(&run.output_of(record), LONGEST_OUTPUT),
                    run.transcript_of(record)
                );
                failures.evidence.push(((*case).to_owned(), cut(&text, LONGEST_CASE)));
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

    /// As exhibits of a question.
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

/// The failed checks of a case, with their results in each failed run.
fn failed_checks<'r>(records: &[&'r TrialRecord]) -> BTreeMap<&'r str, Vec<&'r CheckResult>> {
    let mut failed: BTreeMap<&str, Vec<&CheckResult>> = BTreeMap::new();
    for check in records.iter().flat_map(|record| &record.checks) {
        if check.verdict == Verdict::Fail {
            failed.entry(&check.check).or_default().push(check);
        }
    }
    failed
}

fn wanted(check: &Check) -> String {
    match &check.kind {
        CheckKind::Exact(rule) => format!("{}: {}", rule.key(), rule.value()),
        CheckKind::Judged(judged) => judged.statement.clone(),
        CheckKind::Sections(sections) => {
            let names: Vec<&str> = sections.iter().map(|section| section.name.as_str()).collect();
            format!("complete sections {}", names.join(", "))
        }
        CheckKind::Activation(activation) => format!(
            "the skill {} {}",
            activation.skills.join(" or "),
            match activation.expect {
                practicum_core::model::Expect::Must => "fires",
                practicum_core::model::Expect::MustNot => "stays quiet",
                practicum_core::model::Expect::Either => "may fire",
            }
        ),
    }
}
