//! The cases of the page, those that did not pass first, each with its trials.

use std::io::Write;

use super::charts;
use super::steps::{TranscriptAllowance, write_transcript};
use crate::report::escaping::{escape_html, to_one_line, truncate_text};
use crate::report::figures;
use crate::report::run_results::{CaseTexts, RunResults};
use practicum_core::model::{
    CaseStatus, CaseSummary, CheckResult, CriteriaThresholds, TrialRecord, Verdict, count_with_noun,
};

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
    write_toolbar(&groups, out)?;
    let allowance = TranscriptAllowance::from_totals(&results.summary.totals);
    if let Some(words) = allowance.describe_omissions(&results.summary.run) {
        writeln!(out, "<p class=\"notice\">{}</p>", escape_html(&words))?;
    }
    let questions = results.case_texts();
    writeln!(out, "<section id=\"cases\">")?;
    for group in &groups {
        write_case(results, &questions, group, allowance, out)?;
    }
    writeln!(out, "</section>\n<p id=\"nothing\" hidden>No case fits.</p>")
}

fn write_toolbar(groups: &[CaseGroup<'_>], out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(
        out,
        "<div class=\"toolbar\"><h2>Cases</h2><div class=\"chips\" role=\"group\" aria-label=\"Show\">"
    )?;
    let count = |stand: DisplayStatus| groups.iter().filter(|group| group.status() == stand).count();
    writeln!(out, "<button data-show=\"all\" aria-pressed=\"true\">all {}</button>", groups.len())?;
    for (stand, word) in [
        (DisplayStatus::Failed, "failed"),
        (DisplayStatus::Unscored, "not scored"),
        (DisplayStatus::Passed, "passed"),
    ] {
        if count(stand) > 0 {
            let class = stand.css_class();
            writeln!(
                out,
                "<button data-show=\"{class}\" class=\"{class}\" aria-pressed=\"false\">{word} {}</button>",
                count(stand)
            )?;
        }
    }
    writeln!(
        out,
        "</div><input id=\"search\" type=\"search\" placeholder=\"Search cases, checks, transcripts  ( / )\" aria-label=\"Search\"></div>"
    )
}

fn write_case(
    results: &RunResults,
    questions: &CaseTexts<'_>,
    group: &CaseGroup<'_>,
    allowance: TranscriptAllowance,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    let case = group.first();
    let stand = group.status();
    let mut about = vec![case.suite.clone(), case.agent.clone()];
    about.extend(case.model.clone());
    about.extend(Some(case.mode.clone()).filter(|mode| mode != "baseline"));
    let rates: Vec<_> = group
        .arms
        .iter()
        .map(|case| (case.pass_rate.rate, if case.is_under_test() { stand.css_class() } else { "without" }))
        .collect();
    let passed: Vec<String> = group
        .arms
        .iter()
        .map(|case| {
            let arm = if group.arms.len() > 1 { escape_html(&case.arm) } else { String::new() };
            format!("<small>{arm}</small> {}", figures::passed(case))
        })
        .collect();
    let trouble = match stand {
        DisplayStatus::Passed => String::new(),
        DisplayStatus::Failed | DisplayStatus::Unscored => first_problem(results, case)?
            .map(|words| format!("<span class=\"{} why\">{}</span>", stand.css_class(), escape_html(&words)))
            .unwrap_or_default(),
    };
    writeln!(
        out,
        "<details class=\"case\" data-stand=\"{}\"><summary><span class=\"mark {}\">{}</span>\
         <span class=\"name\"><b>{}</b> <small>{}</small>{trouble}</span>{}<span class=\"number\">{}</span></summary>",
        stand.css_class(),
        stand.css_class(),
        stand.symbol(),
        escape_html(&truncate_text(&case.id, MAX_TEXT_LENGTH)),
        escape_html(&about.join(" · ")),
        charts::rate_chart(&rates, None),
        passed.join("<br>")
    )?;
    for prompt in questions.prompts(&case.suite, &case.id) {
        writeln!(
            out,
            "<pre class=\"prompt\" dir=\"auto\">{}</pre>",
            escape_html(&truncate_text(prompt, MAX_TEXT_LENGTH))
        )?;
    }
    if let Some(note) = questions.note(&case.suite, &case.id) {
        writeln!(out, "<p class=\"faint\">{}</p>", escape_html(&truncate_text(note, MAX_TEXT_LENGTH)))?;
    }
    for case in &group.arms {
        write_arm(results, questions, case, group.arms.len() > 1, allowance, out)?;
    }
    writeln!(out, "</details>")
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
            (Verdict::Fail, None) => CriteriaThresholds::describe_result(&record.checks)
                .unwrap_or_else(|| "too few of its judged checks pass".to_owned()),
        };
        return Ok(Some(truncate_text(&to_one_line(&words), MAX_LINE_LENGTH)));
    }
    Ok(None)
}

fn write_arm(
    results: &RunResults,
    questions: &CaseTexts<'_>,
    case: &CaseSummary,
    several: bool,
    allowance: TranscriptAllowance,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    if several {
        let rate = escape_html(&figures::describe_pass_rate(&case.pass_rate));
        writeln!(out, "<h3>arm {} <small>pass rate {rate}</small></h3>", escape_html(&case.arm))?;
    }
    for trial in results.trials(case) {
        let record = trial?;
        write_trial(results, questions, &record, allowance, out)?;
    }
    Ok(())
}

fn write_trial(
    results: &RunResults,
    questions: &CaseTexts<'_>,
    record: &TrialRecord,
    allowance: TranscriptAllowance,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    let stand = DisplayStatus::from_verdict(&record.verdict);
    let mut facts = vec![format!("{:.1} s", record.seconds)];
    facts.extend(record.cost_usd.map(|usd| format!("${usd:.4}")));
    facts.extend(record.model.as_deref().map(escape_html));
    facts.extend(record.was_activated().map(|fired| if fired { "fired" } else { "did not fire" }.to_owned()));
    let why = record
        .not_scored_reason()
        .map(|why| escape_html(&truncate_text(&why, MAX_TEXT_LENGTH)))
        .unwrap_or_default();
    let open = if stand == DisplayStatus::Passed { "" } else { " open" };
    writeln!(
        out,
        "<details class=\"trial\" data-trial=\"{}\" data-verdict=\"{}\"{open}><summary><span class=\"mark {}\">{}</span>\
         <span>run {} <small>{}</small> {why}</span></summary>",
        escape_html(record.trial.as_str()),
        record.verdict.name(),
        stand.css_class(),
        stand.symbol(),
        record.attempt,
        facts.join(" · ")
    )?;
    let brief = stand == DisplayStatus::Passed && results.summary.totals.trials > MAX_DETAILED_TRIALS;
    if brief {
        writeln!(out, "<p class=\"faint\">{}</p>", count_with_noun(record.checks.len(), "check"))?;
    } else {
        write_checks(questions, record, out)?;
    }
    for note in &record.notes {
        writeln!(out, "<p class=\"faint\">note: {}</p>", escape_html(&truncate_text(note, MAX_TEXT_LENGTH)))?;
    }
    write_remarks(record, out)?;
    write_transcript(results, record, allowance, out)?;
    writeln!(out, "</details>")
}

fn write_checks(questions: &CaseTexts<'_>, record: &TrialRecord, out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(out, "<ul class=\"checks\">")?;
    for check in &record.checks {
        let stand = DisplayStatus::from_verdict(&check.verdict);
        let wording = questions.check_wording(&record.suite, &record.case, &check.check);
        let name = escape_html(&truncate_text(wording.unwrap_or(&check.check), MAX_TEXT_LENGTH));
        writeln!(
            out,
            "<li><span class=\"mark {}\">{}</span><div><b dir=\"auto\">{name}</b>{} <span dir=\"auto\">{}</span>",
            stand.css_class(),
            stand.symbol(),
            check_tags(check),
            escape_html(&truncate_text(&check.rationale, MAX_TEXT_LENGTH))
        )?;
        let lines = check.evidence.iter().map(|line| (line, "evidence"));
        let weak = check.weak.as_ref().map(|why| format!("weak check: {why}"));
        let flags = check.flags.iter().chain(&weak).map(|line| (line, "flag"));
        // Doubts come first: they are few, and must not be lost behind much evidence.
        for (line, class) in flags.chain(lines).take(MAX_EVIDENCE) {
            writeln!(
                out,
                "<pre class=\"{class}\" dir=\"auto\">{}</pre>",
                escape_html(&truncate_text(line, MAX_TEXT_LENGTH))
            )?;
        }
        writeln!(out, "</div></li>")?;
    }
    writeln!(out, "</ul>")
}

/// Writes the judge's remarks beyond its answers.
fn write_remarks(record: &TrialRecord, out: &mut dyn Write) -> std::io::Result<()> {
    for line in &record.remarks.uncovered {
        writeln!(
            out,
            "<p class=\"faint\">no check is about: {}</p>",
            escape_html(&truncate_text(line, MAX_TEXT_LENGTH))
        )?;
    }
    for claim in record.remarks.claims.iter().filter(|claim| !claim.verified) {
        let words = format!("claims without support: {} ({})", claim.claim, claim.evidence);
        writeln!(out, "<p class=\"none\">{}</p>", escape_html(&truncate_text(&words, MAX_TEXT_LENGTH)))?;
    }
    Ok(())
}

fn check_tags(check: &CheckResult) -> String {
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
    tags.iter().map(|tag| format!(" <small class=\"tag\">{tag}</small>")).collect()
}
