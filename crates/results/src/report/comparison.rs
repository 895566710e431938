//! A comparison for people: on a terminal, and as Markdown.

use super::escaping::escape_markdown as plain;
use super::{figures, terminal_safe};
use practicum_core::compare::{
    ActivationDifference, BestMeasure, BestSide, CaseChange, CaseIdentity, ComparedCase, ComparisonDocument,
    MeanDelta, RunCounts, SideComparison, SideSummary,
};
use practicum_core::model::{ComparisonVerdict, Estimate, Outcome, count_with_noun};
use practicum_skills::own_files::OWN_FILE_MARK;

/// The greatest number of cases of a kind that a terminal lists one by one.
const MAX_LISTED_CASES: usize = 20;

/// Writes a comparison as text for a terminal.
pub fn render_text(of: &ComparisonDocument) -> String {
    let mut out = String::new();
    let with_rates = compared_sides(of).any(|side| side.activation.is_some());
    for side in compared_sides(of).filter(|_| with_rates) {
        out.push_str(&format!("{}: {}\n", terminal_safe(&side.name), describe_rates(side)));
    }
    for one in &of.comparisons {
        out.push_str(&format!("{} → {}\n", titled_side(&one.before), titled_side(&one.after)));
        for line in &one.differs {
            out.push_str(&format!("  {}\n", terminal_safe(line)));
        }
        out.push_str(&format!("  pass rate {}\n", describe_overall(one)));
        out.extend(one.activation.iter().map(|of| format!("  {}\n", describe_differences(of))));
        for (title, cases) in list_case_changes(one) {
            if cases.is_empty() {
                continue;
            }
            out.push_str(&format!("  {title}:\n"));
            out.extend(
                cases.iter().take(MAX_LISTED_CASES).map(|case| format!("    {}\n", terminal_safe(case))),
            );
            if cases.len() > MAX_LISTED_CASES {
                out.push_str(&format!("    and {} more\n", cases.len() - MAX_LISTED_CASES));
            }
        }
        for (name, delta, unit) in [("cost", one.cost_usd, " USD"), ("time", one.seconds, " s")] {
            out.extend(describe_delta(delta, unit).map(|words| format!("  {name} per run {words}\n")));
        }
    }
    if !of.frontier.is_empty() {
        out.push_str("cost against quality:\n");
    }
    out.extend(figures::describe_frontier(&of.frontier).into_iter().map(|line| format!("  {line}\n")));
    if of.comparisons.is_empty() {
        out.push_str("there is nothing to compare\n");
    }
    if of.exit == Outcome::Incomplete && of.has_open_loss() {
        out.push_str(
            "cannot tell whether a case got worse: run it more often (--repeat 5), confirm it (--against with \
             --confirm-losses), or count every loss (--strict)\n",
        );
    }
    out.extend(of.best.as_ref().map(|best| format!("{}\n", terminal_safe(&describe_best(best)))));
    out
}

/// Gives the name of a side, with what is not fresh about it: `main (3 of 5 runs reused, scripted)`.
fn titled_side(side: &SideSummary) -> String {
    let name = terminal_safe(&side.name);
    match figures::describe_origin(side.reused, side.scripted, side.replayed) {
        Some(words) => format!("{name} ({words})"),
        None => name,
    }
}

/// Gives the sides, first the one that the others are compared with.
fn compared_sides(of: &ComparisonDocument) -> impl Iterator<Item = &SideSummary> {
    let first = of.comparisons.first().map(|one| &one.before);
    first.into_iter().chain(of.comparisons.iter().map(|one| &one.after))
}

/// Describes the activation rates of one side, each with its interval and the number of trials.
fn describe_rates(side: &SideSummary) -> String {
    let Some(of) = &side.activation else { return "no case is about activation".to_owned() };
    let rate = |name: &str, of: Estimate| format!("{name} {} (n {})", figures::format_estimate(of), of.n);
    let words = [rate("precision", of.precision), rate("recall", of.recall), rate("F1", of.f1)];
    let mut counts = format!("{} tp {} fp {} tn {} fn", of.tp, of.fp, of.tn, of.fn_);
    for (count, word) in [(of.acceptable, "acceptable"), (of.error, "cannot tell")] {
        if count > 0 {
            counts.push_str(&format!(", {count} {word}"));
        }
    }
    format!("{} · {counts}", words.join(" · "))
}

fn describe_differences(of: &ActivationDifference) -> String {
    let named = [("precision", of.precision), ("recall", of.recall), ("F1", of.f1)];
    named.map(|(name, difference)| format!("{name} {}", figures::format_difference(difference))).join(" · ")
}

/// Says which side is best, or that none is clearly better than all the others.
fn describe_best(best: &BestSide) -> String {
    let measure = best.by.describe();
    let Some(leads) = &best.leads else {
        return format!("no mode is clearly better: {measure} is undefined in at least one of them");
    };
    let words = describe_lead(best, leads);
    match best.by {
        BestMeasure::Accuracy => {
            format!("F1 is undefined in at least one mode and cannot rank them; by accuracy, {words}")
        }
        BestMeasure::F1 | BestMeasure::PassRate => words,
    }
}

fn describe_lead(best: &BestSide, leads: &str) -> String {
    let measure = best.by.describe();
    let ahead: Vec<String> = best
        .differences
        .iter()
        .map(|lead| format!("{} against {}", figures::format_difference(lead.difference), lead.other))
        .collect();
    let level = best.differences.iter().any(|lead| lead.difference.value == Some(0.0));
    match (best.clear, level) {
        (true, _) => format!("best: {leads}, {measure} {}", ahead.join(", ")),
        (false, false) => {
            format!("no mode is clearly better; {leads} has the highest {measure}: {}", ahead.join(", "))
        }
        (false, true) => format!("no mode is clearly better: {leads} in {measure} {}", ahead.join(", ")),
    }
}

/// Lists the changes of cases, the most important first.
fn list_case_changes(one: &SideComparison) -> [(&'static str, Vec<String>); 7] {
    let of = |change: CaseChange| one.cases_with_change(change).map(case_line).collect();
    let names = |names: &[CaseIdentity]| names.iter().map(case_label).collect();
    let unclear = |is_settled: bool| {
        let flips = one.cases_with_change(CaseChange::Flip);
        flips.filter(|case| case.could_tell == is_settled).map(case_line).collect()
    };
    [
        ("regressions", of(CaseChange::Regression)),
        ("missing after, so that nothing is known of them", names(&one.missing)),
        ("fixes", of(CaseChange::Fix)),
        ("cannot tell: so few runs of a case cannot show that it changed", unclear(false)),
        ("flips within noise", unclear(true)),
        ("not measured on both sides", of(CaseChange::Unmeasured)),
        ("new", names(&one.new)),
    ]
}

fn describe_overall(one: &SideComparison) -> String {
    let rate = |side: &SideSummary| figures::describe_pass_rate(&side.pass_rate);
    let verdict = one.verdict.map_or("", ComparisonVerdict::name);
    let more =
        one.verdict.and_then(|verdict| figures::describe_outlook(verdict, one.difference, &one.outlook));
    let more = more.map(|more| format!("; {more}")).unwrap_or_default();
    let (difference, cases) =
        (figures::format_difference(one.difference), count_with_noun(one.difference.n, "case"));
    format!("{} → {}: {difference} over {cases}, {verdict}{more}", rate(&one.before), rate(&one.after))
}

fn case_label(of: &CaseIdentity) -> String {
    let dimensions = [&of.agent, &of.model, &of.arm, &of.mode];
    let usual = |word: &&String| !["with", "baseline"].contains(&word.as_str());
    let more: Vec<&str> = dimensions.into_iter().flatten().filter(usual).map(String::as_str).collect();
    let more = if more.is_empty() { String::new() } else { format!(" ({})", more.join(", ")) };
    format!("{} of {}{more}", of.id, of.suite)
}

fn case_line(case: &ComparedCase) -> String {
    let counts = |of: RunCounts| {
        let silent =
            if of.not_scored > 0 { format!(" (+{} not scored)", of.not_scored) } else { String::new() };
        let reused = if of.reused > 0 { format!(" ({} reused)", of.reused) } else { String::new() };
        format!("{}/{}{silent}{reused}", of.passed, of.runs)
    };
    let known = case.flip_rate.map(|rate| format!(", flips {:.0} % of the time anyway", rate * 100.0));
    let chance = format!("chance {:.3}", case.chance);
    let earlier = |of: Option<RunCounts>| {
        of.map(|of| format!(" (and {}/{} in earlier runs)", of.passed, of.runs)).unwrap_or_default()
    };
    let before = format!("{}{}", counts(case.before), earlier(case.known_before));
    let after = format!("{}{}", counts(case.after), earlier(case.known_after));
    let open = match (case.change, case.smallest_loss) {
        (CaseChange::Flip, Some(loss)) => {
            format!("; the smallest loss that so many runs of it find is {loss:.2}")
        }
        (CaseChange::Flip, None) => "; so many runs of it find no loss, however great".to_owned(),
        _ => String::new(),
    };
    let fresh = case.confirmation.map(|of| {
        let word = if of.is_confirmed { "confirmed" } else { "not confirmed" };
        let (before, after) = (counts(of.before), counts(of.after));
        format!("; {word} by fresh runs: {before} → {after}, chance {:.3}", of.chance)
    });
    let known = known.unwrap_or_default();
    let line = format!("{}: {before} → {after}, {chance}{known}", case_label(&case.name));
    // What fresh runs say counts more than what the first ones could have said.
    fresh.map_or_else(|| format!("{line}{open}"), |fresh| format!("{line}{fresh}"))
}

fn describe_delta(delta: MeanDelta, unit: &str) -> Option<String> {
    let (before, after) = delta.before.zip(delta.after)?;
    let Estimate { value, low, high, .. } = delta.difference;
    let interval = low.zip(high).map(|(low, high)| format!(" [{low:+.3}, {high:+.3}]"));
    let change = value.map(|value| format!("{value:+.3}")).unwrap_or_default();
    Some(format!("{before:.3}{unit} → {after:.3}{unit}: {change}{}", interval.unwrap_or_default()))
}

/// Writes the comparison as a Markdown document: the sides in one table, then what changed.
pub fn render_markdown(title: &str, of: &ComparisonDocument) -> String {
    let mut out = format!("# {}\n\n## Overall\n\n", plain(title));
    out.push_str("| | runs | reused | pass rate | precision | recall | F1 | accuracy | tp | fp | tn | fn | cannot tell | USD per run | s per run |\n");
    out.push_str(&format!("|{}\n", "---|".repeat(15)));
    for side in compared_sides(of) {
        out.push_str(&side_row(side));
    }
    out.extend(of.best.as_ref().map(|best| format!("\n{}.\n", capitalise(&plain(&describe_best(best))))));
    for one in &of.comparisons {
        out.push_str(&format!("\n## {} → {}\n\n", plain(&one.before.name), plain(&one.after.name)));
        out.push_str(&format!("Pass rate {}.\n", plain(&describe_overall(one))));
        out.extend(
            one.activation.iter().map(|of| format!("\nActivation: {}.\n", plain(&describe_differences(of)))),
        );
        for (title, cases) in list_case_changes(one) {
            if !cases.is_empty() {
                out.push_str(&format!("\n### {}\n\n", capitalise(title)));
                out.extend(cases.iter().map(|case| format!("- {}\n", plain(case))));
            }
        }
    }
    if !of.frontier.is_empty() {
        out.push_str("\n## Cost against quality\n\n");
    }
    out.extend(figures::describe_frontier(&of.frontier).iter().map(|line| format!("- {}\n", plain(line))));
    out.push_str(METHOD_NOTE);
    out.push_str(&format!("\n{OWN_FILE_MARK}\n"));
    out
}

const METHOD_NOTE: &str = "
## Method

Every case was run on both sides and is paired by its id. Brackets are 95 % intervals; runs of one case
count as one cluster. A difference is called better or worse when an exact test over the runs and a test
over the cases agree; equivalent when a loss and a gain of the margin are both ruled out; otherwise
inconclusive. Runs of the same setup outside the two sides count in the tests of single cases. A mode is called the best only when it is clearly better than each of the others. Runs that could not tell are in no rate. Undefined rates are shown as –.
";

fn side_row(side: &SideSummary) -> String {
    let number = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format!("{value:.3}"));
    let mut cells = vec![plain(&titled_side(side)), side.runs.to_string(), side.reused.to_string()];
    cells.push(figures::describe_pass_rate(&side.pass_rate));
    match &side.activation {
        Some(of) => {
            let rates = [of.precision, of.recall, of.f1, of.accuracy];
            cells.extend(rates.map(|rate| format!("{} (n {})", figures::format_estimate(rate), rate.n)));
            cells.extend([of.tp, of.fp, of.tn, of.fn_, of.error].map(|count| count.to_string()));
        }
        None => cells.extend(std::iter::repeat_n("–".to_owned(), 9)),
    }
    cells.extend([number(side.usd_per_run), number(side.seconds_per_run)]);
    format!("| {} |\n", cells.join(" | "))
}

fn capitalise(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
