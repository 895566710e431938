//! The cases, those that did not pass first, each with its trials.

use std::io::Write;

use super::charts;
use super::steps::{Allowance, transcript};
use crate::report::figures;
use crate::report::markup::{cut, html, one_line};
use crate::report::results::{Questions, Results};
use practicum_core::model::{
    CaseStanding, CaseSummary, CheckResult, CriteriaThresholds, TrialRecord, Verdict, counted,
};

const LONGEST_TEXT: usize = 2000;
const LONGEST_LINE: usize = 200;
const MOST_EVIDENCE: usize = 12;

/// With more trials than this, the checks of those that passed are only counted.
const MOST_TOLD: u64 = 2000;

/// A case in all its arms.
struct Group<'r> {
    arms: Vec<&'r CaseSummary>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stand {
    Failed,
    Unscored,
    Passed,
}

impl Stand {
    fn class(self) -> &'static str {
        match self {
            Stand::Failed => "fail",
            Stand::Unscored => "none",
            Stand::Passed => "pass",
        }
    }

    fn mark(self) -> &'static str {
        match self {
            Stand::Failed => "✗",
            Stand::Unscored => "?",
            Stand::Passed => "✓",
        }
    }

    fn of_case(case: &CaseSummary) -> Self {
        match case.standing() {
            CaseStanding::Failed => Stand::Failed,
            CaseStanding::Passed => Stand::Passed,
            CaseStanding::Unscored => Stand::Unscored,
        }
    }

    fn of_verdict(verdict: &Verdict) -> Self {
        match verdict {
            Verdict::Pass => Stand::Passed,
            Verdict::Fail => Stand::Failed,
            Verdict::NotScored(_) => Stand::Unscored,
        }
    }
}

impl<'r> Group<'r> {
    fn first(&self) -> &'r CaseSummary {
        self.arms[0]
    }

    /// How it stands where it has to pass. The arm without the skill decides only where it is alone.
    fn stand(&self) -> Stand {
        let examined = self.arms.iter().filter(|case| case.is_examined()).map(|case| Stand::of_case(case));
        examined.min().unwrap_or_else(|| Stand::of_case(self.first()))
    }
}

fn groups(results: &Results) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut places = std::collections::HashMap::new();
    for case in &results.summary.cases {
        let key = (&case.suite, &case.id, &case.agent, &case.model, &case.mode);
        let place = *places.entry(key).or_insert_with(|| {
            groups.push(Group { arms: Vec::new() });
            groups.len() - 1
        });
        groups[place].arms.push(case);
    }
    // What has to pass comes before what it is compared with.
    for group in &mut groups {
        group.arms.sort_by_key(|case| !case.is_examined());
    }
    groups.sort_by_key(Group::stand);
    groups
}

pub fn write(results: &Results, out: &mut dyn Write) -> std::io::Result<()> {
    let groups = groups(results);
    toolbar(&groups, out)?;
    let allowance = Allowance::of(&results.summary.totals);
    if let Some(words) = allowance.in_words(&results.summary.run) {
        writeln!(out, "<p class=\"notice\">{}</p>", html(&words))?;
    }
    let questions = results.questions();
    writeln!(out, "<section id=\"cases\">")?;
    for group in &groups {
        one(results, &questions, group, allowance, out)?;
    }
    writeln!(out, "</section>\n<p id=\"nothing\" hidden>No case fits.</p>")
}

fn toolbar(groups: &[Group<'_>], out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(
        out,
        "<div class=\"toolbar\"><h2>Cases</h2><div class=\"chips\" role=\"group\" aria-label=\"Show\">"
    )?;
    let count = |stand: Stand| groups.iter().filter(|group| group.stand() == stand).count();
    writeln!(out, "<button data-show=\"all\" aria-pressed=\"true\">all {}</button>", groups.len())?;
    for (stand, word) in
        [(Stand::Failed, "failed"), (Stand::Unscored, "not scored"), (Stand::Passed, "passed")]
    {
        if count(stand) > 0 {
            let class = stand.class();
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

fn one(
    results: &Results,
    questions: &Questions<'_>,
    group: &Group<'_>,
    allowance: Allowance,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    let case = group.first();
    let stand = group.stand();
    let mut about = vec![case.suite.clone(), case.agent.clone()];
    about.extend(case.model.clone());
    about.extend(Some(case.mode.clone()).filter(|mode| mode != "baseline"));
    let rates: Vec<_> = group
        .arms
        .iter()
        .map(|case| (case.pass_rate.rate, if case.is_examined() { stand.class() } else { "without" }))
        .collect();
    let passed: Vec<String> = group
        .arms
        .iter()
        .map(|case| {
            let arm = if group.arms.len() > 1 { html(&case.arm) } else { String::new() };
            format!("<small>{arm}</small> {}", figures::passed(case))
        })
        .collect();
    let trouble = match stand {
        Stand::Passed => String::new(),
        Stand::Failed | Stand::Unscored => first_trouble(results, case)?
            .map(|words| format!("<span class=\"{} why\">{}</span>", stand.class(), html(&words)))
            .unwrap_or_default(),
    };
    writeln!(
        out,
        "<details class=\"case\" data-stand=\"{}\"><summary><span class=\"mark {}\">{}</span>\
         <span class=\"name\"><b>{}</b> <small>{}</small>{trouble}</span>{}<span class=\"number\">{}</span></summary>",
        stand.class(),
        stand.class(),
        stand.mark(),
        html(&cut(&case.id, LONGEST_TEXT)),
        html(&about.join(" · ")),
        charts::rate(&rates, None),
        passed.join("<br>")
    )?;
    for prompt in questions.prompts(&case.suite, &case.id) {
        writeln!(out, "<pre class=\"prompt\" dir=\"auto\">{}</pre>", html(&cut(prompt, LONGEST_TEXT)))?;
    }
    if let Some(note) = questions.note(&case.suite, &case.id) {
        writeln!(out, "<p class=\"faint\">{}</p>", html(&cut(note, LONGEST_TEXT)))?;
    }
    for case in &group.arms {
        arm(results, questions, case, group.arms.len() > 1, allowance, out)?;
    }
    writeln!(out, "</details>")
}

/// What was wrong, in one line: the rate that decides, else the first trial that did not pass.
fn first_trouble(results: &Results, case: &CaseSummary) -> std::io::Result<Option<String>> {
    if let Some(rate) = case.deciding_rate() {
        return Ok(Some(rate.in_words()));
    }
    for trial in results.trials(case) {
        let record = trial?;
        let failed = record.checks.iter().find(|check| check.required && check.verdict == Verdict::Fail);
        let words = match (&record.verdict, failed) {
            (Verdict::Pass, _) => continue,
            (Verdict::NotScored(_), _) => record.why_not_scored().unwrap_or_default(),
            (Verdict::Fail, Some(check)) => format!("{}: {}", check.title(), check.rationale),
            (Verdict::Fail, None) => CriteriaThresholds::in_words(&record.checks)
                .unwrap_or_else(|| "too few of its judged checks pass".to_owned()),
        };
        return Ok(Some(cut(&one_line(&words), LONGEST_LINE)));
    }
    Ok(None)
}

fn arm(
    results: &Results,
    questions: &Questions<'_>,
    case: &CaseSummary,
    several: bool,
    allowance: Allowance,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    if several {
        let rate = html(&figures::pass_rate(&case.pass_rate));
        writeln!(out, "<h3>arm {} <small>pass rate {rate}</small></h3>", html(&case.arm))?;
    }
    for trial in results.trials(case) {
        let record = trial?;
        one_trial(results, questions, &record, allowance, out)?;
    }
    Ok(())
}

fn one_trial(
    results: &Results,
    questions: &Questions<'_>,
    record: &TrialRecord,
    allowance: Allowance,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    let stand = Stand::of_verdict(&record.verdict);
    let mut facts = vec![format!("{:.1} s", record.seconds)];
    facts.extend(record.cost_usd.map(|usd| format!("${usd:.4}")));
    facts.extend(record.model.as_deref().map(html));
    facts.extend(
        record.observed_firing().map(|fired| if fired { "fired" } else { "did not fire" }.to_owned()),
    );
    let why = record.why_not_scored().map(|why| html(&cut(&why, LONGEST_TEXT))).unwrap_or_default();
    let open = if stand == Stand::Passed { "" } else { " open" };
    writeln!(
        out,
        "<details class=\"trial\" data-trial=\"{}\" data-verdict=\"{}\"{open}><summary><span class=\"mark {}\">{}</span>\
         <span>run {} <small>{}</small> {why}</span></summary>",
        html(record.trial.as_str()),
        record.verdict.name(),
        stand.class(),
        stand.mark(),
        record.attempt,
        facts.join(" · ")
    )?;
    let brief = stand == Stand::Passed && results.summary.totals.trials > MOST_TOLD;
    if brief {
        writeln!(out, "<p class=\"faint\">{}</p>", counted(record.checks.len(), "check"))?;
    } else {
        checks(questions, record, out)?;
    }
    for note in &record.notes {
        writeln!(out, "<p class=\"faint\">note: {}</p>", html(&cut(note, LONGEST_TEXT)))?;
    }
    remarks(record, out)?;
    transcript(results, record, allowance, out)?;
    writeln!(out, "</details>")
}

fn checks(questions: &Questions<'_>, record: &TrialRecord, out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(out, "<ul class=\"checks\">")?;
    for check in &record.checks {
        let stand = Stand::of_verdict(&check.verdict);
        let wording = questions.wording(&record.suite, &record.case, &check.check);
        let name = html(&cut(wording.unwrap_or(&check.check), LONGEST_TEXT));
        writeln!(
            out,
            "<li><span class=\"mark {}\">{}</span><div><b dir=\"auto\">{name}</b>{} <span dir=\"auto\">{}</span>",
            stand.class(),
            stand.mark(),
            tags(check),
            html(&cut(&check.rationale, LONGEST_TEXT))
        )?;
        let lines = check.evidence.iter().map(|line| (line, "evidence"));
        let weak = check.weak.as_ref().map(|why| format!("weak check: {why}"));
        let flags = check.flags.iter().chain(&weak).map(|line| (line, "flag"));
        // Doubts come first: they are few, and must not be lost behind much evidence.
        for (line, class) in flags.chain(lines).take(MOST_EVIDENCE) {
            writeln!(out, "<pre class=\"{class}\" dir=\"auto\">{}</pre>", html(&cut(line, LONGEST_TEXT)))?;
        }
        writeln!(out, "</div></li>")?;
    }
    writeln!(out, "</ul>")
}

/// What the judge noticed beside what it was asked.
fn remarks(record: &TrialRecord, out: &mut dyn Write) -> std::io::Result<()> {
    for line in &record.remarks.uncovered {
        writeln!(out, "<p class=\"faint\">no check is about: {}</p>", html(&cut(line, LONGEST_TEXT)))?;
    }
    for claim in record.remarks.claims.iter().filter(|claim| !claim.verified) {
        let words = format!("claims without support: {} ({})", claim.claim, claim.evidence);
        writeln!(out, "<p class=\"none\">{}</p>", html(&cut(&words, LONGEST_TEXT)))?;
    }
    Ok(())
}

fn tags(check: &CheckResult) -> String {
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
