//! Figures in a few words, with their intervals.

use std::collections::{BTreeMap, BTreeSet};

use super::terminal_safe;
use practicum_core::model::{
    ActivationRates, ActivationSummary, ArmsResult, ArmsSummary, CaseStatus, CaseSummary, ComparisonOutlook,
    ComparisonVerdict, Estimate, FrontierPoint, FrontierStanding, GateName, GateResult, JudgingSummary,
    NamedActivationRates, PassRate, PredictedActivation, Reliability, ScoreScale, Summary, TrialTotals,
    VarianceShares, count_with_noun, decimals_to_compare,
};
use practicum_core::stats::{TOO_FEW_CASES, describe_f1, describe_rate, is_no_difference};

/// Writes an estimate: `0.80 [0.38, 0.96]`, or a dash if it is undefined.
pub fn format_estimate(of: Estimate) -> String {
    match (of.value, of.low, of.high) {
        (None, ..) => "–".to_owned(),
        (Some(value), Some(low), Some(high)) => format!("{value:.2} [{low:.2}, {high:.2}]"),
        (Some(value), ..) => format!("{value:.2}"),
    }
}

/// Writes a difference like an estimate, with its sign.
pub fn format_difference(of: Estimate) -> String {
    match (of.value, of.low, of.high) {
        (None, ..) => "–".to_owned(),
        (Some(value), Some(low), Some(high)) => format!("{value:+.2} [{low:+.2}, {high:+.2}]"),
        (Some(value), ..) => format!("{value:+.2}"),
    }
}

/// Describes failed teardown scripts: `the teardown script failed in 2 trials: a of s, b of s`; `None` if none
/// failed.
pub fn describe_failed_teardowns(of: &Summary) -> Option<String> {
    let failed: Vec<_> = of.cases.iter().filter(|case| case.failed_teardowns > 0).collect();
    let trials: u64 = failed.iter().map(|case| case.failed_teardowns).sum();
    let names: BTreeSet<String> =
        failed.iter().map(|case| format!("{} of {}", case.id, case.suite)).collect();
    let names = names.into_iter().collect::<Vec<String>>().join(", ");
    (trials > 0)
        .then(|| format!("the teardown script failed in {}: {names}", count_with_noun(trials, "trial")))
}

/// Describes the totals: `4 of 6 trials passed, 1 failed, 1 not scored, 10 not run`.
pub fn describe_totals(of: &TrialTotals) -> String {
    let mut text = format!("{} of {} passed", of.passed, count_with_noun(of.trials, "trial"));
    for (count, word) in [
        (of.failed, "failed"),
        (of.not_scored, "not scored"),
        (of.not_run, "not run"),
        (of.reused, "reused from earlier runs"),
    ] {
        if count > 0 {
            text.push_str(&format!(", {count} {word}"));
        }
    }
    text
}

/// Describes cases that a rate decides: `2 of 3 cases pass by their rates`. `None` if the trials alone show the
/// result.
pub fn describe_cases_by_rate(of: &Summary) -> Option<String> {
    let decided = of.cases.iter().filter(|case| case.deciding_rate().is_some());
    let (mut all, mut passed) = (0_usize, 0);
    for case in decided {
        all += 1;
        passed += usize::from(case.status() == CaseStatus::Passed);
    }
    let pass = if all == 1 { "passes by its rate" } else { "pass by their rates" };
    (all > 0).then(|| format!("{passed} of {} {pass}", count_with_noun(all, "case")))
}

/// Describes the cost of this run: `$0.1200, judge $0.0300, simulated user $0.0100`, each only as far as it is known. What reused
/// trials had cost is said apart.
pub fn describe_cost(of: &Summary) -> String {
    let now = describe_spending(of.cost_usd, [of.judging, of.simulated_users, of.mock_models]);
    describe_saved(of).map_or_else(|| now.clone(), |saved| format!("{now}; {saved}"))
}

/// Describes what reused trials had cost in their own runs, and replayed answers when they were recorded; `None` if there
/// are none.
pub fn describe_saved(of: &Summary) -> Option<String> {
    let saved = of.saved?;
    let tokens = saved.tokens.input + saved.tokens.output;
    let how = if of.replayed { "recorded earlier" } else { "saved by reuse" };
    Some(format!(
        "{how}: {tokens} tokens, {}",
        describe_spending(saved.cost_usd, [saved.judging, saved.simulated_users, saved.mock_models])
    ))
}

/// The models beside the agent that a run may ask, in the order of the sums given to `describe_spending`.
pub const OTHER_MODELS: [&str; 3] = ["judge", "simulated user", "mock model"];

fn describe_spending(agents: Option<f64>, others: [Option<JudgingSummary>; 3]) -> String {
    let money = |usd: Option<f64>| usd.map(|usd| format!("${usd:.4}"));
    let mut text = money(agents).unwrap_or_else(|| "cost unknown".to_owned());
    for (who, spent) in OTHER_MODELS.into_iter().zip(others) {
        text.push_str(&match spent.map(|spent| money(spent.cost_usd)) {
            None => String::new(),
            Some(Some(cost)) => format!(", {who} {cost}"),
            Some(None) => format!(", {who}'s cost unknown"),
        });
    }
    text
}

/// Describes how many trials were reused and where the model's answers came from, in a few words: `2 reused, scripted`.
/// `None` if every trial ran now, with a model.
pub fn describe_origin(reused: u64, scripted: bool, replayed: bool) -> Option<String> {
    let reused = (reused > 0).then(|| format!("{reused} reused"));
    let stand_ins = [(scripted, "scripted"), (replayed, "replayed")];
    let stand_ins = stand_ins.into_iter().filter(|(so, _)| *so).map(|(_, word)| word.to_owned());
    let words: Vec<String> = reused.into_iter().chain(stand_ins).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// Describes what single results vary with: `what varies: 60 % between cases, 40 % between runs of a case`.
pub fn describe_variance(of: &Summary) -> Option<String> {
    let VarianceShares { case, run, judge } = of.variance?;
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let is_judged = of.cases.iter().flat_map(|case| &case.checks).any(|check| check.scale.is_some());
    let judge = match (judge, is_judged) {
        (Some(judge), _) => format!(", {} by the judge", percent(judge)),
        (None, true) => " (the judge among them; --judge-votes tells them apart)".to_owned(),
        (None, false) => String::new(),
    };
    Some(format!(
        "what varies: {} between cases, {} between runs of a case{judge}",
        percent(case),
        percent(run)
    ))
}

/// Describes cost against quality, a line for each agent, model, mode and version.
pub fn describe_frontier(of: &[FrontierPoint]) -> Vec<String> {
    of.iter().map(describe_frontier_point).collect()
}

fn describe_frontier_point(of: &FrontierPoint) -> String {
    let cost = match (of.cost_usd.value, of.cost_usd.low, of.cost_usd.high) {
        (Some(cost), Some(low), Some(high)) => format!("${cost:.4} [{low:.4}, {high:.4}] per trial"),
        (Some(cost), ..) => format!("${cost:.4} per trial"),
        (None, ..) => "cost unknown".to_owned(),
    };
    let standing = of.standing.map_or("cannot be placed", FrontierStanding::describe);
    let behind = of.behind.as_ref().map(|other| format!(" {}", terminal_safe(other))).unwrap_or_default();
    let (name, rate) = (terminal_safe(&of.name), format_estimate(of.pass_rate));
    format!("{name}: pass rate {rate}, {cost}, {standing}{behind}")
}

/// Describes a pass rate, and how low it would be with the worst results for trials without a verdict.
pub fn describe_pass_rate(of: &PassRate) -> String {
    let worst = match (of.not_scored, of.worst) {
        (1.., Some(worst)) => format!(", at worst {worst:.2}: {} not scored", of.not_scored),
        (_, Some(_) | None) => String::new(),
    };
    format!("{}{worst}", format_estimate(of.rate))
}

/// Describes the reliability with the greatest number of trials: `pass@3 0.97 · pass^3 0.47`.
pub fn describe_reliability(of: &[Reliability]) -> Option<String> {
    let Reliability { k, pass_at_k, pass_hat_k } = of.last().filter(|last| last.k > 1)?;
    Some(format!("pass@{k} {pass_at_k:.2} · pass^{k} {pass_hat_k:.2}"))
}

/// Describes the result of a gate: its figures, and its status in a word.
pub fn describe_gate(gate: &GateResult) -> (String, &'static str) {
    let open = !gate.ok && !gate.fails() && gate.value.is_some();
    let worst = gate.worst.filter(|_| open);
    let numbers = gate.value.into_iter().chain(worst).chain(gate.bound);
    let digits = decimals_to_compare(numbers, gate.threshold);
    let value = match (gate.value, gate.low, gate.high) {
        (None, ..) => "–".to_owned(),
        (Some(value), Some(low), Some(high)) => format!("{value:.digits$} [{low:.2}, {high:.2}]"),
        (Some(value), ..) => format!("{value:.digits$}"),
    };
    let sure = match (gate.confidence, gate.bound) {
        (Some(sure), Some(bound)) => {
            format!(", {bound:.digits$} or more with {:.0} % confidence", sure * 100.0)
        }
        (Some(sure), None) => format!(", nothing is known with {:.0} % confidence", sure * 100.0),
        (None, _) => String::new(),
    };
    let worst = worst.map(|worst| format!(", at worst {worst:.digits$}")).unwrap_or_default();
    let spared = match (gate.spared.as_slice(), gate.too_many_flaky.as_slice()) {
        ([], []) => String::new(),
        ([], names) => {
            format!(
                "; more of what is known to be flaky failed than usual: {}",
                terminal_safe(&names.join(", "))
            )
        }
        (names, _) => format!(", without what is known to be flaky: {}", terminal_safe(&names.join(", "))),
    };
    let not_run = match gate.not_run {
        0 => String::new(),
        trials => format!(", {} not run", count_with_noun(trials, "trial")),
    };
    let changes = describe_losses(gate);
    (
        format!("{value}{sure}{worst}{not_run} (needs {:.digits$}{spared}){changes}", gate.threshold),
        gate.status(),
    )
}

/// Describes what a gate on regressions found, with what it could not tell.
fn describe_losses(gate: &GateResult) -> String {
    let list = |words: &str, names: &[String]| match names {
        [] => String::new(),
        names => {
            let shown: Vec<String> = names.iter().take(MAX_LISTED).map(|name| terminal_safe(name)).collect();
            let more = match names.len().saturating_sub(MAX_LISTED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!("; {words}: {}{more}", shown.join(", "))
        }
    };
    let unknown = match (gate.name, gate.without_baseline, gate.value) {
        (GateName::NoRegression, _, None) => {
            "; there is no baseline of these cases (practicum baseline stores one)".to_owned()
        }
        (_, 0, _) => String::new(),
        (_, cases, _) => format!("; not in the baseline: {}", count_with_noun(cases, "case")),
    };
    let lost = list("worse than the baseline", &gate.lost);
    let unclear = list("cannot tell with so few runs", &gate.cannot_tell);
    format!("{lost}{unclear}{unknown}")
}

/// Describes the scores from 1 to 5 of each criterion of a case: the mean, and over several trials the lowest and
/// the highest; or why there is no score. `None` if the case has no such criteria.
pub fn describe_scores(of: &CaseSummary) -> Option<String> {
    let scored = of.checks.iter().filter(|check| check.scale == Some(ScoreScale::OneToFive));
    let words: Vec<String> = scored
        .map(|check| {
            let Some(mean) = check.mean_score else {
                let why = check.not_scored_because.as_deref().unwrap_or("the judge gave none");
                return format!("{} no score ({why})", check.id);
            };
            let range = check.min_score.zip(check.max_score).filter(|(low, high)| low < high);
            let range = range.map(|(low, high)| format!(" ({low:.0} to {high:.0})")).unwrap_or_default();
            let missing = match check.not_scored {
                0 => String::new(),
                missing => format!(", {missing} without a score"),
            };
            format!("{} {mean:.1}{range}{missing}", check.id)
        })
        .collect();
    (!words.is_empty()).then(|| format!("mean scores from 1 to 5: {}", words.join(", ")))
}

/// The greatest number of things of one kind that are listed; the others are counted.
const MAX_LISTED: usize = 12;

/// Selects the gates to list: all if they are few, otherwise those that fail, with a phrase about the others.
pub fn select_gates(of: &[GateResult]) -> (Vec<&GateResult>, Option<String>) {
    if of.len() <= MAX_LISTED {
        return (of.iter().collect(), None);
    }
    let shown: Vec<&GateResult> = of.iter().filter(|gate| gate.fails()).take(MAX_LISTED).collect();
    let mut others: BTreeMap<&str, usize> = BTreeMap::new();
    for gate in of {
        *others.entry(gate.status()).or_default() += 1;
    }
    if let Some(failing) = others.get_mut("fails") {
        *failing -= shown.len();
    }
    let others: Vec<String> = others
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(word, count)| format!("{count} {}", if word == "holds" && count > 1 { "hold" } else { word }))
        .collect();
    let more = if shown.is_empty() { "gates" } else { "other gates" };
    (shown, Some(format!("{more}: {}", others.join(", "))))
}

/// Describes how many trials of a case passed: `1/2`. Trials without a verdict are counted apart, because they did
/// not fail.
pub fn passed(of: &CaseSummary) -> String {
    match (of.passed + of.failed, of.not_scored) {
        (scored, 0) => format!("{}/{scored}", of.passed),
        (0, _) => "not scored".to_owned(),
        (scored, missing) => format!("{}/{scored}, {missing} not scored", of.passed),
    }
}

/// Lists the names of suites, or the first few of many.
pub fn list_suites(names: &[String]) -> String {
    const MAX_NAMES: usize = 6;
    match names {
        names if names.len() <= MAX_NAMES => names.join(", "),
        names => {
            let (first, others) = names.split_at(MAX_NAMES / 2);
            format!("{} and {}", first.join(", "), count_with_noun(others.len(), "more suite"))
        }
    }
}

/// Gives the gate that a run without one should set first.
pub fn suggested_gate(of: &Summary) -> &'static str {
    let has_f1 = of.activation.as_ref().is_some_and(|activation| activation.all.f1.value.is_some());
    if has_f1 && !of.has_gate() { "f1=0.8" } else { "pass_rate=0.8" }
}

/// Describes activation in a few lines: over all skills, then each skill if there are several.
pub fn describe_activation(of: &ActivationSummary) -> Vec<String> {
    let mut lines = vec![format!("activation: {}", describe_rates(&of.all))];
    if of.skills.len() > 1 {
        let wrong = |rates: &ActivationRates| rates.fp + rates.fn_ + rates.error > 0;
        let many = of.skills.len() > MAX_LISTED;
        let listed = of.skills.iter().filter(|part| !many || wrong(&part.rates)).take(MAX_LISTED);
        let before = lines.len();
        lines.extend(
            listed.map(|part| format!("  {}: {}", terminal_safe(&part.name), describe_rates(&part.rates))),
        );
        lines.extend(describe_unlisted(lines.len() - before, of.skills.len(), "skill"));
    }
    if of.unmeasured > 0 {
        lines.push(format!(
            "  {} could not be measured: no run can tell",
            count_with_noun(of.unmeasured, "case")
        ));
    }
    if of.invoked > 0 {
        lines.push(format!(
            "  counted in no rate: {} with the skill named in the prompt",
            count_with_noun(of.invoked, "run")
        ));
    }
    lines
}

/// Describes predicted activation in a few lines, which say that it was predicted.
pub fn describe_predicted_activation(of: &PredictedActivation) -> Vec<String> {
    let mut lines =
        vec![format!("predicted activation, by a model and not seen: {}", describe_rates(&of.all))];
    if of.skills.len() > 1 {
        let part = |part: &NamedActivationRates| {
            format!("  {}, predicted: {}", terminal_safe(&part.name), describe_rates(&part.rates))
        };
        lines.extend(of.skills.iter().map(part));
    }
    lines
}

/// Gives a line that counts what is not listed. Longer reports list everything.
fn describe_unlisted(listed: usize, all: usize, of: &str) -> Option<String> {
    (listed > 0 && listed < all)
        .then(|| format!("  and {}", count_with_noun(all - listed, &format!("more {of}"))))
}

fn describe_rates(of: &ActivationRates) -> String {
    let words = [describe_rate(of.precision), describe_rate(of.recall), describe_f1(of.f1)];
    // What is true of all of them is said once.
    let too_few = words == [Some(TOO_FEW_CASES); 3];
    let banded = |name: &str, rate: Estimate, band: fn(Estimate) -> Option<&'static str>| {
        let word = band(rate).filter(|_| !too_few);
        let word = word.map(|word| format!(" {}", word.to_lowercase())).unwrap_or_default();
        format!("{name} {}{word}", format_estimate(rate))
    };
    let mut text = format!(
        "{} · {} · {} · accuracy {} · {} tp {} fp {} tn {} fn",
        banded("precision", of.precision, describe_rate),
        banded("recall", of.recall, describe_rate),
        banded("F1", of.f1, describe_f1),
        format_estimate(of.accuracy),
        of.tp,
        of.fp,
        of.tn,
        of.fn_,
    );
    for (count, word) in [(of.acceptable, "acceptable"), (of.error, "cannot tell")] {
        if count > 0 {
            text.push_str(&format!(", {count} {word}"));
        }
    }
    if too_few {
        text.push_str(&format!(" · {}", TOO_FEW_CASES.to_lowercase()));
    }
    text
}

/// Describes the comparison of arms: the difference, whether it is clear, and what could not be compared.
pub fn describe_arms(of: &ArmsSummary) -> Vec<String> {
    let title = format!("{} against {}", of.after, of.before);
    let mut lines = vec![format!("{title}: {}", describe_arms_result(&of.result))];
    let many = of.suites.len() > MAX_LISTED;
    let listed = of.suites.iter().filter(|one| !many || one.result.difference.n > 0).take(MAX_LISTED);
    let before = lines.len();
    lines.extend(
        listed.map(|one| format!("  {}: {}", terminal_safe(&one.suite), describe_arms_result(&one.result))),
    );
    lines.extend(describe_unlisted(lines.len() - before, of.suites.len(), "suite"));
    if of.void_pairs > 0 {
        lines.push(format!(
            "  {} void, because a trial was not in its arm",
            count_with_noun(of.void_pairs, "pair")
        ));
        for void in of.voided.iter().take(3) {
            lines.push(format!(
                "    {} #{}: {}",
                terminal_safe(&void.case),
                void.attempt,
                terminal_safe(&void.why)
            ));
        }
    }
    lines
}

fn describe_arms_result(of: &ArmsResult) -> String {
    let more = describe_outlook(of.verdict, of.difference, &of.outlook);
    let more = more.map(|more| format!("; {more}")).unwrap_or_default();
    let cases = count_with_noun(of.difference.n, "case");
    format!("{} over {cases}, {}{more}", format_difference(of.difference), of.verdict.name())
}

/// Describes what a comparison without a clear direction could have found, and what would settle it.
pub fn describe_outlook(
    verdict: ComparisonVerdict,
    difference: Estimate,
    of: &ComparisonOutlook,
) -> Option<String> {
    let smallest = match of.smallest_loss {
        Some(loss) => format!("the smallest loss that this design finds is {loss:.2}"),
        None => "this design finds no loss, however great".to_owned(),
    };
    match verdict {
        ComparisonVerdict::Better | ComparisonVerdict::Worse => None,
        // Nothing was compared.
        _ if difference.value.is_none() => None,
        ComparisonVerdict::Equivalent => Some(smallest),
        ComparisonVerdict::Inconclusive => {
            let none_seen =
                difference.value.is_some_and(is_no_difference).then(|| "no difference seen".to_owned());
            let words = none_seen.into_iter().chain([format!("cannot tell: {smallest}")]);
            Some(words.chain(describe_advice(of)).collect::<Vec<_>>().join("; "))
        }
    }
}

/// Describes what to add to a comparison so that it becomes clear.
fn describe_advice(of: &ComparisonOutlook) -> Option<String> {
    let price = of.more_usd.filter(|usd| *usd > 0.0).map(|usd| format!(", ≈ ${usd:.2}")).unwrap_or_default();
    let runs = format!("{}{price}", count_with_noun(of.more_runs?, "more run"));
    Some(match (of.more_cases, of.repeat) {
        (Some(cases), Some(repeat)) => format!(
            "to settle it, add about {} or run each {repeat} times on each side (about {runs})",
            count_with_noun(cases, "case")
        ),
        (Some(cases), None) => {
            let cases = count_with_noun(cases, "case");
            format!("to settle it, add about {cases} (about {runs}); more repeats cannot settle this")
        }
        (None, Some(repeat)) => {
            format!("to settle it, run it about {repeat} times on each side (about {runs})")
        }
        (None, None) => format!("about {runs} to settle it"),
    })
}

/// Gives the notes on cases that passed. Cases that did not pass show their notes themselves.
pub fn notes_of_passed(summary: &Summary) -> Vec<String> {
    let passed = summary.cases.iter().filter(|case| case.is_under_test() && !case.needs_attention());
    passed.flat_map(|case| case.notes.iter().map(|note| format!("case {}: {note}", case.id))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_undefined_is_a_dash() {
        assert_eq!(format_estimate(Estimate::undefined(0)), "–");
        assert_eq!(format_difference(Estimate::undefined(0)), "–");
        assert_eq!(format_estimate(Estimate::new(Some(0.8), Some((0.376, 0.964)), 5)), "0.80 [0.38, 0.96]");
        assert_eq!(
            format_difference(Estimate::new(Some(-0.2), Some((-0.5, 0.1)), 5)),
            "-0.20 [-0.50, +0.10]"
        );
    }

    #[test]
    fn many_suites_are_not_all_named() {
        let names: Vec<String> = (0..7).map(|n| format!("s{n}")).collect();
        assert_eq!(list_suites(&names[..6]), "s0, s1, s2, s3, s4, s5");
        assert_eq!(list_suites(&names), "s0, s1, s2 and 4 more suites");
    }

    #[test]
    fn a_pass_rate_is_never_shown_without_what_is_missing() {
        let rate = Estimate::new(Some(1.0), Some((0.5, 1.0)), 4);
        let shown = describe_pass_rate(&PassRate { rate, worst: Some(0.8), not_scored: 1 });
        assert_eq!(shown, "1.00 [0.50, 1.00], at worst 0.80: 1 not scored");
    }

    #[test]
    fn an_unclear_comparison_says_what_it_could_find_and_what_would_settle_it() {
        let outlook = |smallest_loss, more_cases, repeat, more_usd| ComparisonOutlook {
            smallest_loss,
            more_cases,
            repeat,
            more_runs: Some(40),
            more_usd,
            sought: Some(0.1),
        };
        let finds = "cannot tell: the smallest loss that this design finds is 0.30; to settle it, ";
        for (seen, of, expected) in [
            (
                0.3,
                outlook(Some(0.3), Some(20), None, Some(1.2)),
                format!("{finds}add about 20 cases (about 40 more runs, ≈ $1.20); more repeats cannot settle this"),
            ),
            (
                0.3,
                outlook(Some(0.3), Some(1), Some(9), None),
                format!("{finds}add about 1 case or run each 9 times on each side (about 40 more runs)"),
            ),
            (
                0.0,
                outlook(None, None, Some(9), None),
                "no difference seen; cannot tell: this design finds no loss, however great; to settle it, run it about 9 \
                 times on each side (about 40 more runs)"
                    .to_owned(),
            ),
        ] {
            let difference = Estimate::new(Some(seen), None, 5);
            assert_eq!(describe_outlook(ComparisonVerdict::Inconclusive, difference, &of), Some(expected));
        }
        let of = outlook(Some(0.2), None, None, None);
        let words = describe_outlook(ComparisonVerdict::Equivalent, Estimate::new(Some(0.0), None, 50), &of);
        assert_eq!(words.as_deref(), Some("the smallest loss that this design finds is 0.20"));
        let difference = Estimate::new(Some(0.3), None, 5);
        assert_eq!(describe_outlook(ComparisonVerdict::Better, difference, &of), None);
        assert_eq!(describe_outlook(ComparisonVerdict::Inconclusive, Estimate::undefined(0), &of), None);
    }
}
