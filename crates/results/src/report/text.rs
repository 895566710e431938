//! The closing summary of a run for a terminal.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::Write;

use super::escaping::{to_one_line, truncate_text};
use super::styles::{BAD, FAINT, GOOD, UNSURE};
use super::{ReportFormat, ReportOutput, RunResults, display_path, figures, styles, terminal_safe};
use practicum_core::model::{
    ActivationExpectation, CaseActivationRate, CaseStatus, CaseSummary, CheckResult, GateName, GateResult,
    NotScoredReason, RunStatus, SkillJudgement, Summary, TrialRecord, TrialTotals, Verdict, count_with_noun,
};
use practicum_engine::store::RunInfo;

/// The closing summary for a terminal: the verdict first.
pub static REPORT: ReportFormat = ReportFormat {
    name: "text",
    description: "the closing summary, as a terminal shows it",
    output: ReportOutput::File(write),
    environment_file: None,
};

/// The greatest number of cases that are listed. With more, those that passed are only counted.
const MAX_LISTED_CASES: usize = 16;

/// The greatest number of cases of which the summary says why they did not pass.
const MAX_EXPLAINED_CASES: usize = 8;

/// The greatest length of one text, and the greatest number of lines of evidence.
const MAX_TEXT_LENGTH: usize = 200;

/// The greatest length of a reason for a missing verdict: the helpful part is often at its end.
const MAX_REASON_LENGTH: usize = 800;
const MAX_EVIDENCE_LINES: usize = 2;

fn write(results: &RunResults, out: &mut dyn Write) -> std::io::Result<()> {
    let summary = &results.summary;
    writeln!(out)?;
    write_verdict_line(results, out)?;
    if let Some(sample) = &summary.sample {
        writeln!(out, "  {UNSURE}not all cases were run{UNSURE:#}: {}", sample.describe())?;
    }
    writeln!(out)?;
    write_failed_probes(summary, out)?;
    write_cases(results, out)?;
    writeln!(out)?;
    write_figures(summary, out)?;
    let (gates, others) = figures::select_gates(&summary.gates);
    gates.into_iter().try_for_each(|gate| write_gate_line(gate, out))?;
    others.into_iter().try_for_each(|others| writeln!(out, "  {others}"))?;
    for rivals in &summary.rivals {
        writeln!(out, "  {}", to_one_line(&rivals.describe()))?;
    }
    for line in summary.skills_judged.iter().flat_map(SkillJudgement::describe) {
        writeln!(out, "  {}", truncate_text(&to_one_line(&line), MAX_TEXT_LENGTH))?;
    }
    if summary.status() == RunStatus::Ungated {
        let words = to_one_line(&summary.describe_missing_gate());
        let advice = match summary.tests_nothing() {
            // No gate can fail by such cases.
            true => "add a case in which it must, or must not, be activated".to_owned(),
            false => format!("--gate {} sets one", figures::suggested_gate(summary)),
        };
        writeln!(out, "  {UNSURE}no gate{UNSURE:#}: {words}; {advice}")?;
    }
    if summary.status() == RunStatus::Passed && !summary.has_gate() {
        let gate = figures::suggested_gate(summary);
        writeln!(out, "  no gate was set, so nothing could have failed this run; --gate {gate} sets one")?;
    }
    let doubts = summary.doubts.describe();
    if !doubts.is_empty() {
        writeln!(out, "  {UNSURE}doubts{UNSURE:#}: {}", doubts.join(", "))?;
    }
    let cost = figures::describe_cost(summary);
    let tokens = summary.tokens.input + summary.tokens.output;
    writeln!(out, "  {FAINT}{:.1} s · {tokens} tokens · {cost}{FAINT:#}", summary.seconds)?;
    if let Some(words) = figures::describe_failed_teardowns(summary) {
        writeln!(out, "  {UNSURE}note{UNSURE:#}: {}", truncate_text(&to_one_line(&words), MAX_TEXT_LENGTH))?;
    }
    write_notes_of_passed(summary, out)?;
    for words in suggest_next_steps(results) {
        writeln!(out, "  {words}")?;
    }
    if results.info.scripted {
        let words = "the model's answers came from a script, so this run tests the evals, not a model";
        writeln!(out, "  {UNSURE}scripted{UNSURE:#}: {words}")?;
    }
    if results.info.replayed {
        let words = "the model's answers were recorded earlier, and so were tokens and cost";
        writeln!(out, "  {UNSURE}replayed{UNSURE:#}: {words}")?;
    }
    if !results.written_reports.is_empty() {
        let paths: Vec<String> =
            results.written_reports.iter().map(|path| terminal_safe(&path.display().to_string())).collect();
        writeln!(out, "  reports: {}", paths.join(", "))?;
    }
    writeln!(out, "  {FAINT}record: {}{FAINT:#}", display_path(results.run.path()))?;
    match next_command(results) {
        Some(command) => writeln!(out, "  next: {command}"),
        None => Ok(()),
    }
}

/// Gives the command that most users need after a run that is complete. A run that is not has its own advice, and the
/// lines of failed cases name the command that shows them.
fn next_command(results: &RunResults) -> Option<String> {
    let is_example = results.info.scripted || results.info.replayed || is_answered_call(results);
    match results.summary.status() {
        RunStatus::Passed | RunStatus::Failed if !is_example => {
            Some("practicum view shows every trial in a browser".to_owned())
        }
        RunStatus::Passed | RunStatus::Failed | RunStatus::Ungated => None,
        RunStatus::Incomplete | RunStatus::OverBudget | RunStatus::Interrupted => None,
    }
}

/// Writes the notes on cases that passed. Cases that did not pass show their notes themselves.
fn write_notes_of_passed(summary: &Summary, out: &mut dyn Write) -> std::io::Result<()> {
    let notes = figures::notes_of_passed(summary);
    for note in notes.iter().take(MAX_EXPLAINED_CASES) {
        writeln!(out, "  {UNSURE}note{UNSURE:#}: {}", truncate_text(&to_one_line(note), MAX_TEXT_LENGTH))?;
    }
    match notes.len().saturating_sub(MAX_EXPLAINED_CASES) {
        0 => Ok(()),
        more => writeln!(out, "  and {}", count_with_noun(more, "more note")),
    }
}

/// Suggests what to do after a run that was not completed: the command that runs what is missing, or the change
/// that is needed if that command would not help.
fn suggest_next_steps(results: &RunResults) -> Vec<String> {
    let summary = &results.summary;
    let advice = match summary.status() {
        RunStatus::Passed | RunStatus::Failed | RunStatus::Ungated => return Vec::new(),
        RunStatus::Incomplete => describe_changes_needed(summary),
        RunStatus::OverBudget | RunStatus::Interrupted => Vec::new(),
    };
    if is_answered_call(results) {
        return Vec::new();
    }
    // A regrade runs no trials, so there is nothing to resume.
    if results.info.graded_from.is_some() || !can_resume(summary) && !advice.is_empty() {
        return advice;
    }
    let info = RunInfo { run: run_argument(results), ..results.info.clone() };
    if summary.status() == RunStatus::Interrupted && has_every_result(results) {
        return vec![format!("every trial has a result; {}", to_one_line(&info.verdict_hint()))];
    }
    if lacks_only_judge(summary) {
        let words = format!("practicum grade {} asks the judge", to_one_line(&info.run));
        return advice.into_iter().chain([words]).collect();
    }
    advice.into_iter().chain([to_one_line(&info.resume_hint())]).collect()
}

/// Says whether every planned trial has a verdict, so that nothing is left to run.
fn has_every_result(results: &RunResults) -> bool {
    let (examined, without) = results.totals();
    let scored = |totals: &TrialTotals| totals.trials - totals.not_scored;
    scored(&examined) + scored(&without) == results.info.trials.len() as u64
}

/// Says whether the run lacks only the judge, which the user left out: a resumed run would leave it out again.
fn lacks_only_judge(summary: &Summary) -> bool {
    let mut reasons = summary.cases.iter().flat_map(|case| &case.not_scored_because).peekable();
    summary.status() == RunStatus::Incomplete
        && reasons.peek().is_some()
        && reasons.all(|why| why.contains("--no-judge was given"))
        && summary.cases.iter().all(|case| case.trials() > 0)
}

/// Says whether a resumed run could give more results: a trial did not run, or has no verdict for a temporary
/// reason.
fn can_resume(summary: &Summary) -> bool {
    let may_pass =
        |case: &CaseSummary| case.trials() == 0 || case.not_run > 0 || case.not_scored > case.need_a_change;
    summary.status() != RunStatus::Incomplete
        || summary.probes.iter().any(|probe| !probe.fired)
        || summary.cases.iter().any(may_pass)
}

/// Describes the changes in the evals or in the command that are needed before the run can be completed.
fn describe_changes_needed(summary: &Summary) -> Vec<String> {
    let mut changes: Vec<String> = Vec::new();
    for case in &summary.cases {
        for change in &case.changes_needed {
            let id = to_one_line(&case.id);
            changes.push(format!("case {id} cannot be scored: {}", change.describe()));
        }
    }
    for gate in summary.gates.iter().filter(|gate| !gate.cannot_tell.is_empty()) {
        changes.push(format!(
            "gate {} of {} cannot tell with so few runs: --repeat 5 or more would, or a baseline of more runs",
            gate.name.name(),
            terminal_safe(&gate.subject())
        ));
    }
    for gate in summary.gates.iter().filter(|gate| gate.value.is_none()) {
        let cases: Vec<&CaseSummary> = summary.cases.iter().filter(|case| case.suite == gate.suite).collect();
        let asks = |expect: ActivationExpectation| {
            cases.iter().any(|case| case.fire_rate.is_some_and(|rate| rate.expect == expect))
        };
        let why = match gate.name {
            GateName::F1 | GateName::Recall if !asks(ActivationExpectation::Must) => {
                "no case must activate a skill; add one"
            }
            GateName::F1 | GateName::Precision | GateName::Accuracy
                if !asks(ActivationExpectation::MustNot) =>
            {
                "in no case a skill must not be activated; add one"
            }
            GateName::Precision => "no run activated a skill",
            GateName::F1 | GateName::Recall | GateName::Accuracy => {
                "every prompt names its skill; add cases that do not"
            }
            GateName::ActivationCasesPass => "no case says whether a skill must be activated; add one",
            GateName::CriteriaPassRate | GateName::MeanScore => "nothing is judged; add a check for a judge",
            GateName::AllCasesPass | GateName::PassRate | GateName::Stability => continue,
            GateName::NoRegression => "no baseline has one of its cases; practicum baseline stores one",
        };
        // If trials have no verdict, they may be what the gate lacks.
        if cases.into_iter().all(|case| case.not_scored == 0 && case.trials() > 0) {
            changes.push(format!(
                "gate {} of {} cannot be measured: {why}",
                gate.name.name(),
                terminal_safe(&gate.subject())
            ));
        }
    }
    changes.dedup();
    let more = changes.len().saturating_sub(MAX_EXPLAINED_CASES);
    changes.truncate(MAX_EXPLAINED_CASES);
    changes.extend((more > 0).then(|| format!("and {} of this kind", count_with_noun(more, "more problem"))));
    changes
}

/// Writes the probes that kept the run from starting. Other problems are shown with the cases.
fn write_failed_probes(summary: &Summary, out: &mut dyn Write) -> std::io::Result<()> {
    let failed: Vec<_> = summary.probes.iter().filter(|probe| !probe.fired).collect();
    for probe in failed.iter().take(MAX_EXPLAINED_CASES) {
        writeln!(out, "  {BAD}✗{BAD:#} {}", to_one_line(&probe.describe()))?;
    }
    match failed.len().saturating_sub(MAX_EXPLAINED_CASES) {
        0 => Ok(()),
        more => writeln!(out, "  and {} that failed", count_with_noun(more, "more probe")),
    }
}

/// Says whether the run called a skill by its own command and the agent finished.
fn is_answered_call(results: &RunResults) -> bool {
    results.info.is_skill_call()
        && results.summary.status() == RunStatus::Incomplete
        && !can_resume(&results.summary)
}

fn write_verdict_line(results: &RunResults, out: &mut dyn Write) -> std::io::Result<()> {
    let standing = results.summary.status();
    let style = styles::status_style(standing);
    let word = match standing {
        RunStatus::Passed => "PASS",
        RunStatus::Failed => "FAIL",
        RunStatus::Ungated => "NO GATE",
        RunStatus::Incomplete => "INCOMPLETE",
        RunStatus::OverBudget => "OVER BUDGET",
        RunStatus::Interrupted => "INTERRUPTED",
    };
    if is_answered_call(results) {
        return writeln!(out, "{style}CALLED{style:#}  the agent finished; nothing was to be graded");
    }
    let (examined, without) = results.totals();
    let line = match (examined.trials, without.trials) {
        (0, _) => figures::describe_totals(&without),
        (_, 0) => figures::describe_totals(&examined),
        (_, all) => {
            let missing = match without.not_scored {
                0 => String::new(),
                missing => format!(", {missing} not scored"),
            };
            let (examined, passed) = (figures::describe_totals(&examined), without.passed);
            format!("{examined} · without the skill {passed} of {all}{missing}")
        }
    };
    let by_rate = figures::describe_cases_by_rate(&results.summary)
        .map(|words| format!(" · {words}"))
        .unwrap_or_default();
    writeln!(out, "{style}{word}{style:#}  {line}{by_rate}")
}

/// Writes the cases: those that did not pass, with why, then the others, or how many there are.
fn write_cases(results: &RunResults, out: &mut dyn Write) -> std::io::Result<()> {
    let all = &results.summary.cases;
    // If there is nothing else, the arm without the skill is shown, too.
    let alone = !all.iter().any(CaseSummary::is_under_test);
    let examined = all.iter().filter(|case| alone || case.is_under_test());
    let (shown, not_run): (Vec<&CaseSummary>, Vec<&CaseSummary>) =
        examined.partition(|case| case.trials() > 0);
    let (troubled, passed): (Vec<&CaseSummary>, Vec<&CaseSummary>) =
        shown.iter().partition(|case| case.needs_attention());
    let mut reported_reasons = BTreeSet::new();
    for (index, case) in troubled.iter().take(MAX_LISTED_CASES).enumerate() {
        write_case_line(case, all, out)?;
        if index < MAX_EXPLAINED_CASES {
            write_failure_reasons(results, case, &mut reported_reasons, out)?;
        }
    }
    if troubled.len() > MAX_LISTED_CASES {
        writeln!(
            out,
            "  and {} that did not pass",
            count_with_noun(troubled.len() - MAX_LISTED_CASES, "more case")
        )?;
    }
    match passed.len() {
        0 => {}
        count if shown.len() > MAX_LISTED_CASES => {
            writeln!(out, "  {GOOD}✓{GOOD:#} {} passed", count_with_noun(count, "case"))?
        }
        count @ 2.. if troubled.is_empty() && passed.iter().all(|case| is_told_by_totals(case, all)) => {
            writeln!(
                out,
                "  {GOOD}✓{GOOD:#} {}, and every run of each passed",
                count_with_noun(count, "case")
            )?
        }
        _ => passed.iter().try_for_each(|case| write_case_line(case, all, out))?,
    }
    // A stopped run has no results for them, neither good nor bad.
    match not_run.len() {
        0 => Ok(()),
        count => writeln!(out, "  {UNSURE}?{UNSURE:#} {} not run", count_with_noun(count, "case")),
    }
}

/// Whether the line of a case would say nothing but that every run of it passed.
fn is_told_by_totals(case: &CaseSummary, all: &[CaseSummary]) -> bool {
    case.pass_rate.rate.value == Some(1.0)
        && case.not_scored + case.not_run == 0
        && case.deciding_rate().is_none()
        && figures::describe_scores(case).is_none()
        && all
            .iter()
            .all(|other| other.is_under_test() && (&other.agent, &other.model) == (&case.agent, &case.model))
}

fn write_case_line(case: &CaseSummary, all: &[CaseSummary], out: &mut dyn Write) -> std::io::Result<()> {
    let (style, symbol) = match case.status() {
        CaseStatus::Passed => (GOOD, "✓"),
        CaseStatus::Failed => (BAD, "✗"),
        CaseStatus::Unscored => (UNSURE, "?"),
    };
    let runs = case.trials();
    let mut words = Vec::new();
    // Several suites may have cases of the same name.
    if all.iter().any(|other| other.suite != case.suite) {
        words.push(format!("of {}", to_one_line(&case.suite)));
    }
    words.push(terminal_safe(&case.agent));
    words.extend(case.model.as_deref().map(terminal_safe));
    words.extend(
        [&case.arm, &case.mode]
            .into_iter()
            .filter(|word| !is_default_word(word))
            .map(|word| terminal_safe(word)),
    );
    // The interval is about the trials with a verdict. Where some have none, the count before it is of all trials.
    let scored = case.pass_rate.rate.n;
    let interval = match (case.pass_rate.rate.low, case.pass_rate.rate.high) {
        (Some(low), Some(high)) if scored > 1 && scored == runs => format!(" [{low:.2}, {high:.2}]"),
        (Some(low), Some(high)) if scored > 1 => format!(", of {scored} scored [{low:.2}, {high:.2}]"),
        _ => String::new(),
    };
    words.push(match case.not_scored {
        0 => format!("{} passed{interval}", figures::passed(case)),
        _ => format!("{}{interval}", figures::passed(case)),
    });
    words.extend((case.reused > 0).then(|| format!("{} reused", case.reused)));
    let stability = case.stability.filter(|_| case.failed > 0);
    words.extend(stability.map(|stability| format!("wants a share of {:.2} or more", stability.threshold)));
    if case.not_run > 0 {
        words.push(format!("{} not run", case.not_run));
    }
    if let Some(without) = all.iter().find(|other| case.is_under_test() && is_baseline_of(other, case)) {
        words.push(format!("without the skill {}", describe_counts(without)));
    }
    if case.fired.yes + case.fired.no > 0 {
        let wanted = case.deciding_activation_rate().and_then(CaseActivationRate::describe_passing_rates);
        let wanted = wanted.map(|wanted| format!(", wants {wanted}")).unwrap_or_default();
        words.push(format!("activated {}/{}{wanted}", case.fired.yes, case.fired.yes + case.fired.no));
    }
    let (id, words) = (to_one_line(&case.id), words.join(" · "));
    writeln!(out, "  {style}{symbol}{style:#} {id} {FAINT}{words}{FAINT:#}")?;
    match figures::describe_scores(case) {
        Some(scores) => writeln!(out, "      {FAINT}{}{FAINT:#}", to_one_line(&scores)),
        None => Ok(()),
    }
}

/// Describes the counts: `1/2`, and how many trials have no verdict and why, because they neither passed nor
/// failed.
fn describe_counts(of: &CaseSummary) -> String {
    let why = of.not_scored_because.first().and_then(|why| why.lines().next()).unwrap_or_default();
    match of.not_scored {
        0 => figures::passed(of),
        _ => format!("{}: {}", figures::passed(of), truncate_text(&to_one_line(why), MAX_TEXT_LENGTH)),
    }
}

fn is_default_word(word: &str) -> bool {
    ["with", "baseline"].contains(&word)
}

/// Says whether `other` is the case without the skill that `case` is compared with.
fn is_baseline_of(other: &CaseSummary, case: &CaseSummary) -> bool {
    !other.is_under_test()
        && (&other.suite, &other.id, &other.agent) == (&case.suite, &case.id, &case.agent)
        && (&other.model, &other.mode) == (&case.model, &case.mode)
}

/// Writes why a case did not pass: its first such trial, and the command that shows all of it. A reason that is
/// already in `reported_reasons` is not repeated.
fn write_failure_reasons(
    results: &RunResults,
    case: &CaseSummary,
    reported_reasons: &mut BTreeSet<String>,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    let mut first: Option<TrialRecord> = None;
    let failed = case.status() == CaseStatus::Failed;
    if let Some(rate) = case.deciding_rate().filter(|_| failed) {
        writeln!(out, "      {BAD}✗{BAD:#} {}", rate.description)?;
    }
    for trial in results.trials(case) {
        let record = trial?;
        match (&record.verdict, &first) {
            (Verdict::Fail, _) if !failed => {}
            (Verdict::Fail, _) => {
                first = Some(record);
                break;
            }
            (Verdict::NotScored(_), None) => first = Some(record),
            (Verdict::NotScored(_), Some(_)) | (Verdict::Pass, _) => {}
        }
    }
    let Some(record) = first else { return Ok(()) };
    let shown = |text: &str| truncate_text(&to_one_line(text), MAX_TEXT_LENGTH);
    let deciding = deciding_checks(&record);
    // A check without an answer shows the reason itself.
    if let Some(why) = record.not_scored_reason().filter(|_| deciding.is_empty()) {
        // The first line says what happened; those below are the last output of a script.
        let mut lines = why.lines();
        let first = to_one_line(lines.next().unwrap_or_default());
        let is_new = reported_reasons.insert(why.clone());
        match is_new {
            true => writeln!(out, "      not scored: {}", truncate_text(&first, MAX_REASON_LENGTH))?,
            false => writeln!(out, "      not scored: the same as above")?,
        }
        for line in lines.filter(|_| is_new) {
            writeln!(out, "        {FAINT}{}{FAINT:#}", shown(line))?;
        }
    }
    if let Some(criteria) = TrialRecord::describe_total(&record.checks).filter(|_| failed) {
        writeln!(out, "      {}", shown(&format!("criteria: {criteria}")))?;
    }
    for check in deciding {
        let (style, symbol) = match check.verdict {
            Verdict::Fail => (BAD, "✗"),
            Verdict::NotScored(_) | Verdict::Pass => (UNSURE, "?"),
        };
        let weight = check.describe_weight();
        let (title, rationale) = (shown(&check.title()), shown(&check.rationale));
        writeln!(out, "      {style}{symbol}{style:#} {title}{weight}: {rationale}")?;
        for line in check.evidence.iter().take(MAX_EVIDENCE_LINES) {
            writeln!(out, "        {FAINT}{}{FAINT:#}", shown(line))?;
        }
    }
    for note in &record.notes {
        writeln!(out, "      {FAINT}note: {}{FAINT:#}", shown(note))?;
    }
    let trial = record.trial.as_str();
    // The end of the id is enough to find the trial; the rest is the name of its case.
    let brief = trial.rsplit_once('-').map_or(trial, |(_, digest)| digest);
    writeln!(out, "      {FAINT}practicum show {} {brief}{FAINT:#}", run_argument(results))
}

/// Gives the argument that names the run from the current folder: its id inside its project, otherwise the path of
/// its folder.
fn run_argument(results: &RunResults) -> String {
    let folder = results.run.path();
    let project = folder.ancestors().nth(3);
    let here = std::env::current_dir().ok();
    if here.as_deref() == project {
        return results.summary.run.clone();
    }
    let shortest = here.as_deref().and_then(|here| folder.strip_prefix(here).ok()).unwrap_or(folder);
    let path = terminal_safe(&shortest.display().to_string());
    shlex::try_quote(&path).map_or_else(|_| path.clone(), Cow::into_owned)
}

/// Finds the checks because of which a trial did not pass: the required ones, else all that did not pass.
fn deciding_checks(record: &TrialRecord) -> Vec<&CheckResult> {
    // These verdicts do not come from the checks, and have a reason of their own.
    if matches!(
        record.verdict,
        Verdict::NotScored(NotScoredReason::Ended(_) | NotScoredReason::InvalidArm(_))
    ) {
        return Vec::new();
    }
    let troubled: Vec<&CheckResult> =
        record.checks.iter().filter(|check| check.verdict != Verdict::Pass).collect();
    let required: Vec<&CheckResult> = troubled.iter().copied().filter(|check| check.required).collect();
    if required.is_empty() { troubled } else { required }
}

/// Writes the figures over all trials, with their intervals.
fn write_figures(summary: &Summary, out: &mut dyn Write) -> std::io::Result<()> {
    let reliability = figures::describe_reliability(&summary.reliability).map(|text| format!(" · {text}"));
    let rate = figures::describe_pass_rate(&summary.pass_rate);
    writeln!(out, "  pass rate {rate}{}", reliability.unwrap_or_default())?;
    if summary.pass_rate.rate.low.is_some() {
        let words = "in brackets: the range in which the true rate lies, with 95 % confidence";
        writeln!(out, "    {FAINT}{words}; more cases make it narrower{FAINT:#}")?;
    }
    if let Some(left_out) = summary.left_out.filter(|count| *count > 0) {
        writeln!(out, "  {} not needed: earlier ones decided the case", count_with_noun(left_out, "trial"))?;
    }
    let activation = summary.activation.as_ref().map(figures::describe_activation);
    let predicted = summary.predicted_activation.as_ref().map(figures::describe_predicted_activation);
    let arms = summary.arms.as_ref().map(figures::describe_arms);
    for line in activation.into_iter().chain(predicted).chain(arms).flatten() {
        writeln!(out, "  {line}")?;
    }
    if let Some(words) = figures::describe_variance(summary) {
        writeln!(out, "  {words}")?;
    }
    if !summary.frontier.is_empty() {
        writeln!(out, "  cost against quality:")?;
    }
    for line in figures::describe_frontier(&summary.frontier) {
        writeln!(out, "    {line}")?;
    }
    Ok(())
}

fn write_gate_line(gate: &GateResult, out: &mut dyn Write) -> std::io::Result<()> {
    let (figures, word) = figures::describe_gate(gate);
    let style = styles::gate_style(gate);
    writeln!(
        out,
        "  gate {} of {}: {figures} {style}{word}{style:#}",
        gate.name.name(),
        terminal_safe(&gate.subject())
    )
}
