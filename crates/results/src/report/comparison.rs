//! A comparison for people: on a terminal, and as Markdown.

use super::markup::markdown as plain;
use super::{figures, safe};
use practicum_core::compare::{
    ActivationDifference, Best, BestMeasure, CaseName, Change, ComparedCase, Comparison, Comparisons, Counts,
    Delta, SideSummary,
};
use practicum_core::model::{Compared, Estimate, counted};
use practicum_skills::own_files::MARK;

/// How many cases of a kind are told one by one on a terminal.
const MOST_TOLD: usize = 20;

pub fn text(of: &Comparisons) -> String {
    let mut out = String::new();
    let with_rates = sides(of).any(|side| side.activation.is_some());
    for side in sides(of).filter(|_| with_rates) {
        out.push_str(&format!("{}: {}\n", safe(&side.name), rates(side)));
    }
    for one in &of.comparisons {
        out.push_str(&format!("{} → {}\n", safe(&one.before.name), safe(&one.after.name)));
        for line in &one.differs {
            out.push_str(&format!("  {}\n", safe(line)));
        }
        out.push_str(&format!("  pass rate {}\n", overall(one)));
        out.extend(one.activation.iter().map(|of| format!("  {}\n", differences(of))));
        for (title, cases) in listed(one) {
            if cases.is_empty() {
                continue;
            }
            out.push_str(&format!("  {title}:\n"));
            out.extend(cases.iter().take(MOST_TOLD).map(|case| format!("    {}\n", safe(case))));
            if cases.len() > MOST_TOLD {
                out.push_str(&format!("    and {} more\n", cases.len() - MOST_TOLD));
            }
        }
        for (name, delta, unit) in [("cost", one.cost_usd, " USD"), ("time", one.seconds, " s")] {
            out.extend(in_words(delta, unit).map(|words| format!("  {name} per run {words}\n")));
        }
    }
    if of.comparisons.is_empty() {
        out.push_str("there is nothing to compare\n");
    }
    out.extend(of.best.as_ref().map(|best| format!("{}\n", safe(&best_in_words(best)))));
    out
}

/// What is compared, what the others are compared with first.
fn sides(of: &Comparisons) -> impl Iterator<Item = &SideSummary> {
    let first = of.comparisons.first().map(|one| &one.before);
    first.into_iter().chain(of.comparisons.iter().map(|one| &one.after))
}

/// The rates of activation of one side, each with its interval and of how many runs it is.
fn rates(side: &SideSummary) -> String {
    let Some(of) = &side.activation else { return "no case is about activation".to_owned() };
    let rate = |name: &str, of: Estimate| format!("{name} {} (n {})", figures::estimate(of), of.n);
    let words = [rate("precision", of.precision), rate("recall", of.recall), rate("F1", of.f1)];
    let mut counts = format!("{} tp {} fp {} tn {} fn", of.tp, of.fp, of.tn, of.fn_);
    for (count, word) in [(of.acceptable, "acceptable"), (of.error, "cannot tell")] {
        if count > 0 {
            counts.push_str(&format!(", {count} {word}"));
        }
    }
    format!("{} · {counts}", words.join(" · "))
}

fn differences(of: &ActivationDifference) -> String {
    let named = [("precision", of.precision), ("recall", of.recall), ("F1", of.f1)];
    named.map(|(name, difference)| format!("{name} {}", figures::difference(difference))).join(" · ")
}

/// Which side is best, or that none is clearly better than all the others.
fn best_in_words(best: &Best) -> String {
    let measure = best.by.in_words();
    let Some(leads) = &best.leads else {
        return format!("no mode is clearly better: {measure} is undefined in at least one of them");
    };
    let words = lead_in_words(best, leads);
    match best.by {
        BestMeasure::Accuracy => {
            format!("F1 is undefined in at least one mode and cannot rank them; by accuracy, {words}")
        }
        BestMeasure::F1 | BestMeasure::PassRate => words,
    }
}

fn lead_in_words(best: &Best, leads: &str) -> String {
    let measure = best.by.in_words();
    let ahead: Vec<String> = best
        .differences
        .iter()
        .map(|lead| format!("{} against {}", figures::difference(lead.difference), lead.other))
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

/// What happened to the cases, what matters most first.
fn listed(one: &Comparison) -> [(&'static str, Vec<String>); 6] {
    let of = |change: Change| one.with_change(change).map(case_line).collect();
    let names = |names: &[CaseName]| names.iter().map(name).collect();
    [
        ("regressions", of(Change::Regression)),
        ("missing after, so that nothing is known of them", names(&one.missing)),
        ("fixes", of(Change::Fix)),
        ("flips within noise", of(Change::Flip)),
        ("not measured on both sides", of(Change::Unmeasured)),
        ("new", names(&one.new)),
    ]
}

fn overall(one: &Comparison) -> String {
    let rate = |side: &SideSummary| figures::pass_rate(&side.pass_rate);
    let verdict = one.verdict.map_or("", Compared::name);
    let more = match one.verdict {
        Some(Compared::Inconclusive) => {
            figures::to_tell(one.difference.value, one.sought, one.more_runs, one.more_usd)
        }
        Some(Compared::Better | Compared::Worse | Compared::Equivalent) | None => None,
    };
    let more = more.map(|more| format!("; {more}")).unwrap_or_default();
    let (difference, cases) = (figures::difference(one.difference), counted(one.difference.n, "case"));
    format!("{} → {}: {difference} over {cases}, {verdict}{more}", rate(&one.before), rate(&one.after))
}

fn name(of: &CaseName) -> String {
    let dimensions = [&of.agent, &of.model, &of.arm, &of.mode];
    let usual = |word: &&String| !["with", "baseline"].contains(&word.as_str());
    let more: Vec<&str> = dimensions.into_iter().flatten().filter(usual).map(String::as_str).collect();
    let more = if more.is_empty() { String::new() } else { format!(" ({})", more.join(", ")) };
    format!("{} of {}{more}", of.id, of.suite)
}

fn case_line(case: &ComparedCase) -> String {
    let counts = |of: Counts| {
        let silent =
            if of.not_scored > 0 { format!(" (+{} not scored)", of.not_scored) } else { String::new() };
        format!("{}/{}{silent}", of.passed, of.runs)
    };
    let known = case.flip_rate.map(|rate| format!(", flips {:.0} % of the time anyway", rate * 100.0));
    let chance = format!("chance {:.3}", case.chance);
    let (before, after) = (counts(case.before), counts(case.after));
    format!("{}: {before} → {after}, {chance}{}", name(&case.name), known.unwrap_or_default())
}

fn in_words(delta: Delta, unit: &str) -> Option<String> {
    let (before, after) = delta.before.zip(delta.after)?;
    let Estimate { value, low, high, .. } = delta.difference;
    let interval = low.zip(high).map(|(low, high)| format!(" [{low:+.3}, {high:+.3}]"));
    let change = value.map(|value| format!("{value:+.3}")).unwrap_or_default();
    Some(format!("{before:.3}{unit} → {after:.3}{unit}: {change}{}", interval.unwrap_or_default()))
}

/// The same as a document: the sides in one table, then what changed.
pub fn markdown(title: &str, of: &Comparisons) -> String {
    let mut out = format!("# {}\n\n## Overall\n\n", plain(title));
    out.push_str("| | runs | pass rate | precision | recall | F1 | accuracy | tp | fp | tn | fn | cannot tell | USD per run | s per run |\n");
    out.push_str(&format!("|{}\n", "---|".repeat(14)));
    for side in sides(of) {
        out.push_str(&row(side));
    }
    out.extend(of.best.as_ref().map(|best| format!("\n{}.\n", capitalised(&plain(&best_in_words(best))))));
    for one in &of.comparisons {
        out.push_str(&format!("\n## {} → {}\n\n", plain(&one.before.name), plain(&one.after.name)));
        out.push_str(&format!("Pass rate {}.\n", plain(&overall(one))));
        out.extend(one.activation.iter().map(|of| format!("\nActivation: {}.\n", plain(&differences(of)))));
        for (title, cases) in listed(one) {
            if !cases.is_empty() {
                out.push_str(&format!("\n### {}\n\n", capitalised(title)));
                out.extend(cases.iter().map(|case| format!("- {}\n", plain(case))));
            }
        }
    }
    out.push_str(METHOD);
    out.push_str(&format!("\n{MARK}\n"));
    out
}

const METHOD: &str = "
## Method

Every case was run on both sides and is paired by its id. Brackets are 95 % intervals; runs of one case
count as one cluster. A difference is called better or worse when its interval excludes zero and, with
few runs, an exact test agrees; equivalent when the interval lies within the margin; otherwise
inconclusive. A mode is called the best only when it is clearly better than each of the others. Runs that could not tell are in no rate. Undefined rates are shown as –.
";

fn row(side: &SideSummary) -> String {
    let number = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format!("{value:.3}"));
    let mut cells = vec![plain(&side.name), side.runs.to_string(), figures::pass_rate(&side.pass_rate)];
    match &side.activation {
        Some(of) => {
            let rates = [of.precision, of.recall, of.f1, of.accuracy];
            cells.extend(rates.map(|rate| format!("{} (n {})", figures::estimate(rate), rate.n)));
            cells.extend([of.tp, of.fp, of.tn, of.fn_, of.error].map(|count| count.to_string()));
        }
        None => cells.extend(std::iter::repeat_n("–".to_owned(), 9)),
    }
    cells.extend([number(side.usd_per_run), number(side.seconds_per_run)]);
    format!("| {} |\n", cells.join(" | "))
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
