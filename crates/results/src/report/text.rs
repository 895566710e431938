use std::collections::BTreeSet;
use std::io::Write;

use super::markup::{cut, one_line};
use super::styles::{BAD, FAINT, GOOD, UNSURE};
use super::{Form, Report, Results, figures, safe, shown_path, styles};
use practicum_core::model::{
    CaseStanding, CaseSummary, CheckResult, CriteriaThresholds, Expect, FireRate, GateName, GateResult,
    SkillJudged, Standing, Summary, TrialRecord, Verdict, Why, counted,
};
use practicum_engine::store::RunInfo;

/// The closing summary for a terminal: the verdict first.
pub static REPORT: Report = Report {
    name: "text",
    about: "the closing summary, as a terminal shows it",
    form: Form::File(write),
    adds: None,
};

/// With more cases than this, those that passed are only counted.
const MOST_CASES: usize = 16;

/// Of how many cases it is told why they did not pass.
const MOST_EXPLAINED: usize = 8;

/// How much of one text is shown, and how many lines of evidence.
const WIDEST: usize = 200;

/// How much of a reason why there is no verdict: what helps often stands at its end.
const WIDEST_REASON: usize = 800;
const MOST_EVIDENCE: usize = 2;

fn write(results: &Results, out: &mut dyn Write) -> std::io::Result<()> {
    let summary = &results.summary;
    writeln!(out)?;
    verdict_line(results, out)?;
    if let Some(sample) = &summary.sample {
        writeln!(out, "  {UNSURE}not all cases were run{UNSURE:#}: {}", sample.in_words())?;
    }
    writeln!(out)?;
    probes(summary, out)?;
    cases(results, out)?;
    writeln!(out)?;
    figures_lines(summary, out)?;
    let (gates, others) = figures::gates(&summary.gates);
    gates.into_iter().try_for_each(|gate| gate_line(gate, out))?;
    others.into_iter().try_for_each(|others| writeln!(out, "  {others}"))?;
    for rivals in &summary.rivals {
        writeln!(out, "  {}", one_line(&rivals.in_words()))?;
    }
    for line in summary.skills_judged.iter().flat_map(SkillJudged::in_words) {
        writeln!(out, "  {}", cut(&one_line(&line), WIDEST))?;
    }
    if summary.standing() == Standing::Ungated {
        let words = summary.why_no_gate();
        writeln!(
            out,
            "  {UNSURE}no gate{UNSURE:#}: {words}; --gate {} sets one",
            figures::usual_gate(summary)
        )?;
    }
    if summary.standing() == Standing::Passed && !summary.has_gate() {
        let gate = figures::usual_gate(summary);
        writeln!(out, "  no gate was set, so nothing could have failed this run; --gate {gate} sets one")?;
    }
    let doubts = summary.doubts.in_words();
    if !doubts.is_empty() {
        writeln!(out, "  {UNSURE}doubts{UNSURE:#}: {}", doubts.join(", "))?;
    }
    let cost = figures::cost(summary);
    let tokens = summary.tokens.input + summary.tokens.output;
    writeln!(out, "  {FAINT}{:.1} s · {tokens} tokens · {cost}{FAINT:#}", summary.seconds)?;
    if let Some(words) = figures::failed_teardowns(summary) {
        writeln!(out, "  {UNSURE}note{UNSURE:#}: {}", cut(&one_line(&words), WIDEST))?;
    }
    notes_of_passed(summary, out)?;
    for words in ways_on(results) {
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
    if !results.written.is_empty() {
        let paths: Vec<String> =
            results.written.iter().map(|path| safe(&path.display().to_string())).collect();
        writeln!(out, "  reports: {}", paths.join(", "))?;
    }
    writeln!(out, "  {FAINT}record: {}{FAINT:#}", shown_path(results.run.path()))
}

/// What is worth telling of cases that passed. Those that did not say it themselves.
fn notes_of_passed(summary: &Summary, out: &mut dyn Write) -> std::io::Result<()> {
    let notes = figures::notes_of_passed(summary);
    for note in notes.iter().take(MOST_EXPLAINED) {
        writeln!(out, "  {UNSURE}note{UNSURE:#}: {}", cut(&one_line(note), WIDEST))?;
    }
    match notes.len().saturating_sub(MOST_EXPLAINED) {
        0 => Ok(()),
        more => writeln!(out, "  and {}", counted(more, "more note")),
    }
}

/// What helps a run that did not come to its end: the command that runs what is missing, or what must be changed
/// where that command would change nothing.
fn ways_on(results: &Results) -> Vec<String> {
    let summary = &results.summary;
    let advice = match summary.standing() {
        Standing::Passed | Standing::Failed | Standing::Ungated => return Vec::new(),
        Standing::Incomplete => changes_needed(summary),
        Standing::OverBudget | Standing::Interrupted => Vec::new(),
    };
    if is_answered_call(results) {
        return Vec::new();
    }
    // Grading again runs nothing that could be resumed.
    if results.info.graded_from.is_some() || !can_resume(summary) && !advice.is_empty() {
        return advice;
    }
    let info = RunInfo { run: from_here(results), ..results.info.clone() };
    if is_only_unjudged(summary) {
        let words = format!("practicum grade {} asks the judge", one_line(&info.run));
        return advice.into_iter().chain([words]).collect();
    }
    advice.into_iter().chain([one_line(&info.way_on())]).collect()
}

/// Whether all that the run lacks is the judge, which the user left out: resumed, it would be left out again.
fn is_only_unjudged(summary: &Summary) -> bool {
    let mut reasons = summary.cases.iter().flat_map(|case| &case.not_scored_because).peekable();
    summary.standing() == Standing::Incomplete
        && reasons.peek().is_some()
        && reasons.all(|why| why.contains("--no-judge was given"))
        && summary.cases.iter().all(|case| case.trials() > 0)
}

/// Whether running what has no result yet could give one: a trial did not run, or has no verdict for a reason that
/// may pass.
fn can_resume(summary: &Summary) -> bool {
    let may_pass =
        |case: &CaseSummary| case.trials() == 0 || case.not_run > 0 || case.not_scored > case.need_a_change;
    summary.standing() != Standing::Incomplete
        || summary.probes.iter().any(|probe| !probe.fired)
        || summary.cases.iter().any(may_pass)
}

/// What must be changed before a run can come to its end: in the evals, or in the command.
fn changes_needed(summary: &Summary) -> Vec<String> {
    let mut changes: Vec<String> = Vec::new();
    for case in &summary.cases {
        for change in &case.changes_needed {
            let id = one_line(&case.id);
            changes.push(format!("case {id} cannot be scored: {}", change.in_words()));
        }
    }
    for gate in summary.gates.iter().filter(|gate| gate.value.is_none()) {
        let cases: Vec<&CaseSummary> = summary.cases.iter().filter(|case| case.suite == gate.suite).collect();
        let asks = |expect: Expect| {
            cases.iter().any(|case| case.fire_rate.is_some_and(|rate| rate.expect == expect))
        };
        let why = match gate.name {
            GateName::F1 | GateName::Recall if !asks(Expect::Must) => {
                "no case must activate a skill; add one"
            }
            GateName::F1 | GateName::Precision | GateName::Accuracy if !asks(Expect::MustNot) => {
                "in no case a skill must not be activated; add one"
            }
            GateName::Precision => "no run activated a skill",
            GateName::F1 | GateName::Recall | GateName::Accuracy => {
                "every prompt names its skill; add cases that do not"
            }
            GateName::ActivationCasesPass => "no case says whether a skill must be activated; add one",
            GateName::CriteriaPassRate | GateName::MeanScore => "nothing is judged; add a check for a judge",
            GateName::AllCasesPass | GateName::PassRate | GateName::Stability => continue,
        };
        // Where trials have no verdict, they may be what the gate lacks.
        if cases.into_iter().all(|case| case.not_scored == 0 && case.trials() > 0) {
            changes.push(format!(
                "gate {} of {} cannot be measured: {why}",
                gate.name.name(),
                safe(&gate.about())
            ));
        }
    }
    changes.dedup();
    let more = changes.len().saturating_sub(MOST_EXPLAINED);
    changes.truncate(MOST_EXPLAINED);
    changes.extend((more > 0).then(|| format!("and {} of this kind", counted(more, "more problem"))));
    changes
}

/// Those that kept the run from beginning. Of the others the cases tell.
fn probes(summary: &Summary, out: &mut dyn Write) -> std::io::Result<()> {
    let failed: Vec<_> = summary.probes.iter().filter(|probe| !probe.fired).collect();
    for probe in failed.iter().take(MOST_EXPLAINED) {
        writeln!(out, "  {BAD}✗{BAD:#} {}", one_line(&probe.in_words()))?;
    }
    match failed.len().saturating_sub(MOST_EXPLAINED) {
        0 => Ok(()),
        more => writeln!(out, "  and {} that did not fire", counted(more, "more probe")),
    }
}

/// Whether the run called a skill by its own command and the agent finished.
fn is_answered_call(results: &Results) -> bool {
    results.info.is_call()
        && results.summary.standing() == Standing::Incomplete
        && !can_resume(&results.summary)
}

fn verdict_line(results: &Results, out: &mut dyn Write) -> std::io::Result<()> {
    let standing = results.summary.standing();
    let style = styles::standing(standing);
    let word = match standing {
        Standing::Passed => "PASS",
        Standing::Failed => "FAIL",
        Standing::Ungated => "NO GATE",
        Standing::Incomplete => "INCOMPLETE",
        Standing::OverBudget => "OVER BUDGET",
        Standing::Interrupted => "INTERRUPTED",
    };
    if is_answered_call(results) {
        return writeln!(out, "{style}CALLED{style:#}  the agent finished; nothing was to be graded");
    }
    let (examined, without) = results.totals();
    let line = match (examined.trials, without.trials) {
        (0, _) => figures::totals(&without),
        (_, 0) => figures::totals(&examined),
        (_, all) => {
            let missing = match without.not_scored {
                0 => String::new(),
                missing => format!(", {missing} not scored"),
            };
            let (examined, passed) = (figures::totals(&examined), without.passed);
            format!("{examined} · without the skill {passed} of {all}{missing}")
        }
    };
    let by_rate = figures::by_rate(&results.summary).map(|words| format!(" · {words}")).unwrap_or_default();
    writeln!(out, "{style}{word}{style:#}  {line}{by_rate}")
}

/// Those that did not pass, with why, then the others, or how many they are.
fn cases(results: &Results, out: &mut dyn Write) -> std::io::Result<()> {
    let all = &results.summary.cases;
    // Where nothing else ran, what is usually only compared with is all there is to show.
    let alone = !all.iter().any(CaseSummary::is_examined);
    let examined = all.iter().filter(|case| alone || case.is_examined());
    let (shown, not_run): (Vec<&CaseSummary>, Vec<&CaseSummary>) =
        examined.partition(|case| case.trials() > 0);
    let (troubled, passed): (Vec<&CaseSummary>, Vec<&CaseSummary>) =
        shown.iter().partition(|case| case.is_troubled());
    let mut told = BTreeSet::new();
    for (index, case) in troubled.iter().take(MOST_CASES).enumerate() {
        case_line(case, all, out)?;
        if index < MOST_EXPLAINED {
            troubles(results, case, &mut told, out)?;
        }
    }
    if troubled.len() > MOST_CASES {
        writeln!(out, "  and {} that did not pass", counted(troubled.len() - MOST_CASES, "more case"))?;
    }
    match passed.len() {
        0 => {}
        count if shown.len() > MOST_CASES => {
            writeln!(out, "  {GOOD}✓{GOOD:#} {} passed", counted(count, "case"))?
        }
        _ => passed.iter().try_for_each(|case| case_line(case, all, out))?,
    }
    // A run that was stopped has said nothing of them, neither good nor bad.
    match not_run.len() {
        0 => Ok(()),
        count => writeln!(out, "  {UNSURE}?{UNSURE:#} {} not run", counted(count, "case")),
    }
}

fn case_line(case: &CaseSummary, all: &[CaseSummary], out: &mut dyn Write) -> std::io::Result<()> {
    let (style, mark) = match case.standing() {
        CaseStanding::Passed => (GOOD, "✓"),
        CaseStanding::Failed => (BAD, "✗"),
        CaseStanding::Unscored => (UNSURE, "?"),
    };
    let runs = case.trials();
    let mut words = Vec::new();
    // Suites may well have cases of one name.
    if all.iter().any(|other| other.suite != case.suite) {
        words.push(format!("of {}", one_line(&case.suite)));
    }
    words.push(safe(&case.agent));
    words.extend(case.model.as_deref().map(safe));
    words.extend([&case.arm, &case.mode].into_iter().filter(|word| !is_usual(word)).map(|word| safe(word)));
    let interval = match (case.pass_rate.rate.low, case.pass_rate.rate.high) {
        (Some(low), Some(high)) if runs > 1 => format!(" [{low:.2}, {high:.2}]"),
        _ => String::new(),
    };
    words.push(match case.not_scored {
        0 => format!("{} passed{interval}", figures::passed(case)),
        _ => format!("{}{interval}", figures::passed(case)),
    });
    if case.not_run > 0 {
        words.push(format!("{} not run", case.not_run));
    }
    if let Some(without) = all.iter().find(|other| case.is_examined() && is_without(other, case)) {
        words.push(format!("without the skill {}", counts(without)));
    }
    if case.fired.yes + case.fired.no > 0 {
        let wanted = case.deciding_rate().and_then(FireRate::wanted);
        let wanted = wanted.map(|wanted| format!(", wants {wanted}")).unwrap_or_default();
        words.push(format!("fired {}/{}{wanted}", case.fired.yes, case.fired.yes + case.fired.no));
    }
    let (id, words) = (one_line(&case.id), words.join(" · "));
    writeln!(out, "  {style}{mark}{style:#} {id} {FAINT}{words}{FAINT:#}")?;
    match figures::scores(case) {
        Some(scores) => writeln!(out, "      {FAINT}{}{FAINT:#}", one_line(&scores)),
        None => Ok(()),
    }
}

/// `1/2`, and how many trials have no verdict and why: those have neither passed nor failed.
fn counts(of: &CaseSummary) -> String {
    let why = of.not_scored_because.first().and_then(|why| why.lines().next()).unwrap_or_default();
    match of.not_scored {
        0 => figures::passed(of),
        _ => format!("{}: {}", figures::passed(of), cut(&one_line(why), WIDEST)),
    }
}

fn is_usual(word: &str) -> bool {
    ["with", "baseline"].contains(&word)
}

/// Whether this is what the other case is compared with.
fn is_without(other: &CaseSummary, case: &CaseSummary) -> bool {
    !other.is_examined()
        && (&other.suite, &other.id, &other.agent) == (&case.suite, &case.id, &case.agent)
        && (&other.model, &other.mode) == (&case.model, &case.mode)
}

/// Why a case did not pass: its first such trial, and the command that shows all of it.
/// A reason that was `told` of a case before is not repeated.
fn troubles(
    results: &Results,
    case: &CaseSummary,
    told: &mut BTreeSet<String>,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    let mut first: Option<TrialRecord> = None;
    let failed = case.standing() == CaseStanding::Failed;
    if let Some(rate) = case.deciding_rate().filter(|_| failed) {
        writeln!(out, "      {BAD}✗{BAD:#} {}", rate.in_words())?;
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
    let shown = |text: &str| cut(&one_line(text), WIDEST);
    let deciding = deciding(&record);
    // A check that has no answer says itself why.
    if let Some(why) = record.why_not_scored().filter(|_| deciding.is_empty()) {
        // The first line says what happened; those below are what a script printed last.
        let mut lines = why.lines();
        let first = one_line(lines.next().unwrap_or_default());
        let is_new = told.insert(why.clone());
        match is_new {
            true => writeln!(out, "      not scored: {}", cut(&first, WIDEST_REASON))?,
            false => writeln!(out, "      not scored: the same as above")?,
        }
        for line in lines.filter(|_| is_new) {
            writeln!(out, "        {FAINT}{}{FAINT:#}", shown(line))?;
        }
    }
    if let Some(criteria) = CriteriaThresholds::in_words(&record.checks).filter(|_| failed) {
        writeln!(out, "      {}", shown(&format!("criteria: {criteria}")))?;
    }
    for check in deciding {
        let (style, mark) = match check.verdict {
            Verdict::Fail => (BAD, "✗"),
            Verdict::NotScored(_) | Verdict::Pass => (UNSURE, "?"),
        };
        let weight = check.weight();
        let (title, rationale) = (shown(&check.title()), shown(&check.rationale));
        writeln!(out, "      {style}{mark}{style:#} {title}{weight}: {rationale}")?;
        for line in check.evidence.iter().take(MOST_EVIDENCE) {
            writeln!(out, "        {FAINT}{}{FAINT:#}", shown(line))?;
        }
    }
    for note in &record.notes {
        writeln!(out, "      {FAINT}note: {}{FAINT:#}", shown(note))?;
    }
    let trial = record.trial.as_str();
    // The end of its id is enough to find it, and the rest is its case.
    let brief = trial.rsplit_once('-').map_or(trial, |(_, digest)| digest);
    writeln!(out, "      {FAINT}practicum show {} {brief}{FAINT:#}", from_here(results))
}

/// The run, in a way that leads to it from where we are: elsewhere than in its project by its folder.
fn from_here(results: &Results) -> String {
    let folder = results.run.path();
    let project = folder.ancestors().nth(3);
    let here = std::env::current_dir().ok();
    if here.as_deref() == project {
        return results.summary.run.clone();
    }
    let shortest = here.as_deref().and_then(|here| folder.strip_prefix(here).ok()).unwrap_or(folder);
    let path = safe(&shortest.display().to_string());
    let plain = path.chars().all(|c| c.is_alphanumeric() || "/._-+".contains(c));
    if plain { path } else { format!("'{}'", path.replace('\'', "'\\''")) }
}

/// The checks for which a trial did not pass: those that must, else all that did not.
fn deciding(record: &TrialRecord) -> Vec<&CheckResult> {
    // These verdicts do not come from the checks, and have a reason of their own.
    if matches!(record.verdict, Verdict::NotScored(Why::Ended(_) | Why::InvalidArm(_))) {
        return Vec::new();
    }
    let troubled: Vec<&CheckResult> =
        record.checks.iter().filter(|check| check.verdict != Verdict::Pass).collect();
    let required: Vec<&CheckResult> = troubled.iter().copied().filter(|check| check.required).collect();
    if required.is_empty() { troubled } else { required }
}

/// What the trials come to, with how sure that is.
fn figures_lines(summary: &Summary, out: &mut dyn Write) -> std::io::Result<()> {
    let reliability = figures::reliability(&summary.reliability).map(|text| format!(" · {text}"));
    let rate = figures::pass_rate(&summary.pass_rate);
    writeln!(out, "  pass rate {rate}{}", reliability.unwrap_or_default())?;
    if let Some(left_out) = summary.left_out.filter(|count| *count > 0) {
        writeln!(out, "  {} not needed: those before told enough", counted(left_out, "trial"))?;
    }
    let activation = summary.activation.as_ref().map(figures::activation);
    let predicted = summary.predicted_activation.as_ref().map(figures::predicted);
    let arms = summary.arms.as_ref().map(figures::arms);
    for line in activation.into_iter().chain(predicted).chain(arms).flatten() {
        writeln!(out, "  {line}")?;
    }
    Ok(())
}

fn gate_line(gate: &GateResult, out: &mut dyn Write) -> std::io::Result<()> {
    let (figures, word) = figures::gate(gate);
    let style = styles::gate(gate);
    writeln!(out, "  gate {} of {}: {figures} {style}{word}{style:#}", gate.name.name(), safe(&gate.about()))
}
