//! The cases of the page, those that did not pass first, each with its trials.

use std::io::Write;

use maud::{Markup, html};

use super::steps::{TranscriptAllowance, transcript};
use super::{CONTENT, charts, render, write_around};
use crate::report::escaping::{to_one_line, truncate_text};
use crate::report::figures;
use crate::report::run_results::{CaseTexts, RunResults};
use practicum_core::model::{CaseStatus, CaseSummary, CheckResult, TrialRecord, Verdict, count_with_noun};

const MAX_TEXT_LENGTH: usize = 2000;
const MAX_LINE_LENGTH: usize = 200;
const MAX_EVIDENCE: usize = 12;

/// The greatest number of trials of which all checks are shown. With more, the checks of passed trials are only
/// counted.
const MAX_DETAILED_TRIALS: u64 = 2000;

/// A case in all its arms.
struct CaseGroup<'r> {
    arms: Vec<&'r CaseSummary>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum DisplayStatus {
    Failed,
    Unscored,
    Passed,
}

impl DisplayStatus {
    fn css_class(self) -> &'static str {
        match self {
            DisplayStatus::Failed => "fail",
            DisplayStatus::Unscored => "none",
            DisplayStatus::Passed => "pass",
        }
    }

    fn symbol(self) -> &'static str {
        match self {
            DisplayStatus::Failed => "✗",
            DisplayStatus::Unscored => "?",
            DisplayStatus::Passed => "✓",
        }
    }

    fn from_case(case: &CaseSummary) -> Self {
        match case.status() {
            CaseStatus::Failed => DisplayStatus::Failed,
            CaseStatus::Passed => DisplayStatus::Passed,
            CaseStatus::Unscored => DisplayStatus::Unscored,
        }
    }

    fn from_verdict(verdict: &Verdict) -> Self {
        match verdict {
            Verdict::Pass => DisplayStatus::Passed,
            Verdict::Fail => DisplayStatus::Failed,
            Verdict::NotScored(_) => DisplayStatus::Unscored,
        }
    }
}

impl<'r> CaseGroup<'r> {
    fn first(&self) -> &'r CaseSummary {
        self.arms[0]
    }

    /// Gives the status of the case in the arms that have to pass. The arm without the skill decides only if it is
    /// the only one.
    fn status(&self) -> DisplayStatus {
        let examined =
            self.arms.iter().filter(|case| case.is_under_test()).map(|case| DisplayStatus::from_case(case));
        examined.min().unwrap_or_else(|| DisplayStatus::from_case(self.first()))
    }
}

fn group_cases(results: &RunResults) -> Vec<CaseGroup<'_>> {
    let mut groups: Vec<CaseGroup<'_>> = Vec::new();
    let mut places = std::collections::HashMap::new();
    for case in &results.summary.cases {
        let key = (&case.suite, &case.id, &case.agent, &case.model, &case.mode);
        let place = *places.entry(key).or_insert_with(|| {
            groups.push(CaseGroup { arms: Vec::new() });
            groups.len() - 1
        });
        groups[place].arms.push(case);
    }
    // The arms that have to pass come before those that they are compared with.
    for group in &mut groups {
        group.arms.sort_by_key(|case| !case.is_under_test());
    }
    groups.sort_by_key(CaseGroup::status);
    groups
}

pub fn write_cases(results: &RunResults, out: &mut dyn Write) -> std::io::Result<()> {
    let groups = group_cases(results);
    let allowance = TranscriptAllowance::from_totals(&results.summary.totals);
    let around = html! {
        (toolbar(&groups))
        @if let Some(words) = allowance.describe_omissions(&results.summary.run) {
            p class="notice" { (words) }
        }
        section id="cases" { (CONTENT) }
        p id="nothing" hidden { "No case fits." }
    };
    let page = CasesPage { results, questions: results.case_texts(), allowance };
    write_around(&render(around), out, |out| groups.iter().try_for_each(|group| page.write_case(group, out)))
}

fn toolbar(groups: &[CaseGroup<'_>]) -> Markup {
    let count = |stand: DisplayStatus| groups.iter().filter(|group| group.status() == stand).count();
    let stands = [
        (DisplayStatus::Failed, "failed"),
        (DisplayStatus::Unscored, "not scored"),
        (DisplayStatus::Passed, "passed"),
    ];
    html! {
        div class="toolbar" {
            h2 { "Cases" }
            div class="chips" role="group" aria-label="Show" {
                button data-show="all" aria-pressed="true" { "all " (groups.len()) }
                @for (stand, word) in stands.into_iter().filter(|(stand, _)| count(*stand) > 0) {
                    button data-show=(stand.css_class()) class=(stand.css_class()) aria-pressed="false" {
                        (word) " " (count(stand))
                    }
                }
            }
            input id="search" type="search" placeholder="Search cases, checks, transcripts  ( / )" aria-label="Search";
        }
    }
}

/// What is needed to show any case of a run.
struct CasesPage<'r> {
    results: &'r RunResults,
    questions: CaseTexts<'r>,
    allowance: TranscriptAllowance,
}

impl CasesPage<'_> {
    fn write_case(&self, group: &CaseGroup<'_>, out: &mut dyn Write) -> std::io::Result<()> {
        write_around(&render(self.case_frame(group)?), out, |out| {
            group.arms.iter().try_for_each(|case| self.write_arm(case, group.arms.len() > 1, out))
        })
    }

    /// Shows a case without its trials.
    fn case_frame(&self, group: &CaseGroup<'_>) -> std::io::Result<Markup> {
        let (case, stand) = (group.first(), group.status());
        let mut about = vec![case.suite.clone(), case.agent.clone()];
        about.extend(case.model.clone());
        about.extend(Some(case.mode.clone()).filter(|mode| mode != "baseline"));
        let class = |case: &CaseSummary| if case.is_under_test() { stand.css_class() } else { "without" };
        let rates: Vec<_> = group.arms.iter().map(|case| (case.pass_rate.rate, class(case))).collect();
        let problem = match stand {
            DisplayStatus::Passed => None,
            DisplayStatus::Failed | DisplayStatus::Unscored => first_problem(self.results, case)?,
        };
        Ok(html! {
            details class="case" data-stand=(stand.css_class()) {
                summary {
                    (status_symbol(stand))
                    span class="name" {
                        b { (truncate_text(&case.id, MAX_TEXT_LENGTH)) } " " small { (about.join(" · ")) }
                        @if let Some(words) = problem { span class={ (stand.css_class()) " why" } { (words) } }
                    }
                    (charts::rate_chart(&rates, None))
                    span class="number" {
                        @for (index, case) in group.arms.iter().enumerate() {
                            @if index > 0 { br; }
                            small { @if group.arms.len() > 1 { (case.arm) } } " " (figures::passed(case))
                            @if case.reused > 0 { " " small { (case.reused) " reused" } }
                        }
                    }
                }
                @for prompt in self.questions.prompts(&case.suite, &case.id) {
                    pre class="prompt" dir="auto" { (truncate_text(prompt, MAX_TEXT_LENGTH)) }
                }
                @if let Some(note) = self.questions.note(&case.suite, &case.id) {
                    p class="faint" { (truncate_text(note, MAX_TEXT_LENGTH)) }
                }
                (CONTENT)
            }
        })
    }

    fn write_arm(&self, case: &CaseSummary, several: bool, out: &mut dyn Write) -> std::io::Result<()> {
        if several {
            let rate = figures::describe_pass_rate(&case.pass_rate);
            writeln!(
                out,
                "{}",
                render(html! { h3 { "arm " (case.arm) " " small { "pass rate " (rate) } } })
            )?;
        }
        for trial in self.results.trials(case) {
            writeln!(out, "{}", render(self.trial(&trial?)))?;
        }
        Ok(())
    }

    fn trial(&self, record: &TrialRecord) -> Markup {
        let stand = DisplayStatus::from_verdict(&record.verdict);
        let mut facts = vec![format!("{:.1} s", record.seconds)];
        facts.extend(record.cost_usd.map(|usd| format!("${usd:.4}")));
        facts.extend(record.model.clone());
        facts.extend(record.reused_from.as_ref().map(|run| format!("reused from {run}")));
        facts.extend(
            record.was_activated().map(|fired| if fired { "activated" } else { "not activated" }.to_owned()),
        );
        let why = record.not_scored_reason().map(|why| truncate_text(&why, MAX_TEXT_LENGTH));
        let brief =
            stand == DisplayStatus::Passed && self.results.summary.totals.trials > MAX_DETAILED_TRIALS;
        html! {
            details class="trial" data-trial=(record.trial) data-verdict=(record.verdict.name())
                open[stand != DisplayStatus::Passed] {
                summary {
                    (status_symbol(stand))
                    span { "run " (record.attempt) " " small { (facts.join(" · ")) } " " (why.unwrap_or_default()) }
                }
                @if brief {
                    p class="faint" { (count_with_noun(record.checks.len(), "check")) }
                } @else {
                    ul class="checks" { @for check in &record.checks { (self.check(record, check)) } }
                }
                @for note in &record.notes {
                    p class="faint" { "note: " (truncate_text(note, MAX_TEXT_LENGTH)) }
                }
                (remarks(record))
                (transcript(self.results, record, self.allowance))
            }
        }
    }

    fn check(&self, record: &TrialRecord, check: &CheckResult) -> Markup {
        let wording = self.questions.check_wording(&record.suite, &record.case, &check.check);
        let lines = check.evidence.iter().map(|line| (line, "evidence"));
        let weak = check.weak.as_ref().map(|why| format!("weak check: {why}"));
        let flags = check.flags.iter().chain(&weak).map(|line| (line, "flag"));
        html! {
            li {
                (status_symbol(DisplayStatus::from_verdict(&check.verdict)))
                div {
                    b dir="auto" { (truncate_text(wording.unwrap_or(&check.check), MAX_TEXT_LENGTH)) }
                    @for tag in check_tags(check) { " " small class="tag" { (tag) } }
                    " " span dir="auto" { (truncate_text(&check.rationale, MAX_TEXT_LENGTH)) }
                    // Doubts come first: they are few, and must not be lost behind much evidence.
                    @for (line, class) in flags.chain(lines).take(MAX_EVIDENCE) {
                        pre class=(class) dir="auto" { (truncate_text(line, MAX_TEXT_LENGTH)) }
                    }
                }
            }
        }
    }
}

fn status_symbol(of: DisplayStatus) -> Markup {
    html! { span class={ "mark " (of.css_class()) } { (of.symbol()) } }
}

/// Describes the problem in one line: the rate that decides, else the first trial that did not pass.
fn first_problem(results: &RunResults, case: &CaseSummary) -> std::io::Result<Option<String>> {
    if let Some(rate) = case.deciding_rate() {
        return Ok(Some(rate.description));
    }
    for trial in results.trials(case) {
        let record = trial?;
        let failed = record.checks.iter().find(|check| check.required && check.verdict == Verdict::Fail);
        let words = match (&record.verdict, failed) {
            (Verdict::Pass, _) => continue,
            (Verdict::NotScored(_), _) => record.not_scored_reason().unwrap_or_default(),
            (Verdict::Fail, Some(check)) => format!("{}: {}", check.title(), check.rationale),
            (Verdict::Fail, None) => TrialRecord::describe_total(&record.checks)
                .unwrap_or_else(|| "too few of its judged checks pass".to_owned()),
        };
        return Ok(Some(truncate_text(&to_one_line(&words), MAX_LINE_LENGTH)));
    }
    Ok(None)
}

/// Shows the judge's remarks beyond its answers.
fn remarks(record: &TrialRecord) -> Markup {
    let claims = record.remarks.claims.iter().filter(|claim| !claim.verified);
    let claims = claims.map(|claim| format!("claims without support: {} ({})", claim.claim, claim.evidence));
    html! {
        @for line in &record.remarks.uncovered {
            p class="faint" { "no check is about: " (truncate_text(line, MAX_TEXT_LENGTH)) }
        }
        @for claim in claims { p class="none" { (truncate_text(&claim, MAX_TEXT_LENGTH)) } }
    }
}

fn check_tags(check: &CheckResult) -> Vec<String> {
    let mut tags = Vec::new();
    if check.criteria.is_some() {
        tags.push("criterion".to_owned());
    } else if !check.required {
        tags.push("optional".to_owned());
    }
    if let Some((scale, score)) = check.scale.zip(check.score) {
        tags.push(format!("{score} on {}", scale.name()));
    } else if check.scale.is_some() {
        tags.push("judged".to_owned());
    }
    tags
}
