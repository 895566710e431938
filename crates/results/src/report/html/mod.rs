//! The whole run as one page that needs no other file: it opens from a mail, offline, on any machine.
//!
//! Every text is escaped by the macro that writes the elements. The page's policy allows only its own script and
//! style.

mod cases;
mod charts;
mod routing;
mod steps;

use std::io::Write;

use maud::{Markup, PreEscaped, Render, html};

use super::agent_matrix::{AgentMatrix, agent_matrix};
use super::escaping::truncate_text;
use super::{ReportFormat, ReportOutput, RunResults, figures, terminal_safe, timestamps};
use practicum_core::model::{
    ActivationRates, ActivationSummary, ArmsSummary, Estimate, EvalFinding, FrontierPoint, FrontierStanding,
    GateResult, ProbeRecord, RivalSkills, RunStatus, SkillJudgement, TrialTotals, count_with_noun,
};
use practicum_core::stats::{describe_f1, describe_rate};
use practicum_skills::own_files::OWN_FILE_MARK;

pub static REPORT: ReportFormat = ReportFormat {
    name: "html",
    description: "one self-contained page: charts, search, transcripts",
    output: ReportOutput::File(write),
    environment_file: None,
};

/// The greatest number of the judges' findings that are shown at once, and of the characters of each.
const MAX_SHOWN_FINDINGS: usize = 8;
const MAX_FINDING_LENGTH: usize = 1000;

pub(super) const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// The hashes in the page's policy, so that no other style or script runs. A test compares them with the files.
pub(super) const STYLE_HASH: &str = "sha256-7fllFXtJd9tOHUu98rjDKeLTP8c3XzlqN/GOS/tddEQ=";
const SCRIPT_HASH: &str = "sha256-oPpDfjGrzvpAPPJDTsyETf5bwt0ZamcWxa4Zf9qk+5c=";

/// The place in an element where its content is written later, one part at a time. No text can contain it, because
/// `<` is escaped in texts.
const CONTENT: PreEscaped<&str> = PreEscaped("<!---->");

fn write(results: &RunResults, out: &mut dyn Write) -> std::io::Result<()> {
    let names: Vec<String> = results.suite_names().into_iter().map(str::to_owned).collect();
    let title = terminal_safe(&figures::list_suites(&names));
    let policy = format!(
        "default-src 'none'; style-src '{STYLE_HASH}'; script-src '{SCRIPT_HASH}'; base-uri 'none'; form-action 'none'"
    );
    let page = html! {
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · practicum" }
                style { (PreEscaped(STYLE)) }
            }
            body { main { (CONTENT) } script { (PreEscaped(SCRIPT)) } }
        }
    };
    write!(out, "<!doctype html>\n{OWN_FILE_MARK}\n")?;
    // The page's own style and script must stay as their hashes say, so only what is inside is made safe.
    write_around(&page.into_string(), out, |out| {
        writeln!(out, "{}", render(header(results, &title)))?;
        writeln!(out, "{}", render(overview(results)))?;
        if let Some(found) = super::routing::routing_of_run(results) {
            writeln!(out, "{}", render(routing::routing_section(&found)))?;
        }
        cases::write_cases(results, out)?;
        write!(out, "{}", render(footer(results)))
    })
}

/// Renders elements without control characters, and without commands to a workflow runner that prints the page.
fn render(markup: Markup) -> String {
    terminal_safe(&markup.into_string())
}

/// Writes an element, with what `write_content` writes in place of [`CONTENT`]. So only a part of the page is held
/// in memory.
fn write_around(
    element: &str,
    out: &mut dyn Write,
    write_content: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> std::io::Result<()> {
    let (before, after) = element.split_once(CONTENT.0).unwrap_or((element, ""));
    writeln!(out, "{before}")?;
    write_content(out)?;
    writeln!(out, "{after}")
}

fn header(results: &RunResults, title: &str) -> Markup {
    let summary = &results.summary;
    let (class, word) = match summary.status() {
        RunStatus::Passed => ("pass", "Passed"),
        RunStatus::Failed => ("fail", "Failed"),
        RunStatus::Ungated => ("none", "No gate"),
        RunStatus::Incomplete => ("none", "Incomplete"),
        RunStatus::OverBudget => ("none", "Over budget"),
        RunStatus::Interrupted => ("none", "Interrupted"),
    };
    let sample = summary.sample.as_ref().map(|one| format!("Not all cases were run: {}", one.describe()));
    let teardowns = figures::describe_failed_teardowns(summary);
    let stand_ins = results.info.model_stand_ins();
    html! {
        header {
            p class={ "verdict " (class) } { (word) }
            h1 { (title) }
            p class="faint" {
                "Run " code { (summary.run) } " · " (timestamps::format_for_people(&results.info.started))
                " · practicum " (results.info.practicum)
            }
            @for notice in sample.into_iter().chain(teardowns) { p class="notice" { (notice) } }
            @for notice in stand_ins { p class="notice" { (notice) } }
            @if summary.totals.reused > 0 {
                p class="notice" {
                    (summary.totals.reused) " of " (count_with_noun(summary.totals.trials, "trial"))
                    " reused from earlier runs; " (figures::describe_saved(summary).unwrap_or_default())
                }
            }
        }
        (tiles(results))
    }
}

fn tiles(results: &RunResults) -> Markup {
    let summary = &results.summary;
    let (examined, without) = results.totals();
    let rate = summary.pass_rate.rate;
    let percentage =
        rate.value.map_or("–".to_owned(), |value| format!("{:.0}{THIN_SPACE}%", value * 100.0));
    let cost = summary.cost_usd.map_or("–".to_owned(), |usd| format!("${usd:.2}"));
    let tokens = group_thousands(summary.tokens.input + summary.tokens.output);
    let sums = [summary.judging, summary.simulated_users, summary.mock_models];
    let others = figures::OTHER_MODELS.into_iter().zip(sums).map(|(who, spent)| {
        match spent.map(|spent| spent.cost_usd) {
            None => String::new(),
            Some(Some(usd)) => format!(", {who} ${usd:.2}"),
            Some(None) => format!(", {who}’s cost unknown"),
        }
    });
    let judge: String = others.collect();
    let trials = match summary.totals.trials {
        1 => "1 trial".to_owned(),
        trials => format!("{} trials", group_thousands(trials)),
    };
    html! {
        section class="tiles" {
            @match (examined.trials, without.trials) {
                (0, _) => (counts_tile("Trials passed", &without)),
                (_, 0) => (counts_tile("Trials passed", &examined)),
                (_, _) => {
                    (counts_tile("With the skill", &examined))
                    (tile("Without the skill", passed_count(&without), html! {
                        (without.failed) " failed, " (without.not_scored) " not scored"
                        @if without.not_run > 0 { ", " (without.not_run) " not run" }
                    }))
                }
            }
            (tile("Pass rate", percentage, format_interval(rate)))
            (tile("Cost", cost, format!("{tokens} tokens{judge}")))
            (tile("Time", format_seconds(summary.seconds), trials))
        }
    }
}

fn counts_tile(title: &str, of: &TrialTotals) -> Markup {
    let parts = [
        (of.failed, "fail", "failed"),
        (of.not_scored, "none", "not scored"),
        (of.not_run, "none", "not run"),
    ];
    let rest = parts.iter().filter(|(count, _, _)| *count > 0);
    let rest = html! {
        @if rest.clone().next().is_none() { "all of them" }
        @for (index, (count, class, word)) in rest.enumerate() {
            @if index > 0 { ", " }
            span class=(class) { (count) " " (word) }
        }
    };
    tile(title, passed_count(of), rest)
}

fn passed_count(of: &TrialTotals) -> Markup {
    html! { (of.passed) small { " of " (of.trials) } }
}

fn tile(title: &str, value: impl Render, more: impl Render) -> Markup {
    html! { div class="tile" { h2 { (title) } p class="value" { (value) } p { (more) } } }
}

fn overview(results: &RunResults) -> Markup {
    let summary = &results.summary;
    let doubts = summary.doubts.describe();
    html! {
        section class="cards" {
            div class="stack" {
                @if !summary.gates.is_empty() { (gates_card(&summary.gates)) }
                @if let Some(found) = &summary.arms { (arms_card(found)) }
                @if let Some(words) = figures::describe_variance(summary) {
                    div class="card" { h2 { "Variance" } p { (words) } }
                }
                @if !summary.frontier.is_empty() { (frontier_card(&summary.frontier)) }
                @if let Some(matrix) = agent_matrix(summary) { (matrix_card(&matrix)) }
                @if !doubts.is_empty() {
                    div class="card" { h2 { "Doubts" } @for doubt in &doubts { p { (doubt) } } }
                }
                @if !summary.eval_findings.is_empty() { (findings_card(&summary.eval_findings)) }
            }
            @if let Some(found) = &summary.activation { (activation_card(found)) }
            @if let Some(found) = &summary.predicted_activation {
                (rates_card("Predicted activation, not seen", &found.all, html! {
                    p class="faint" { "Guessed by a model from the skills' descriptions." }
                }))
            }
        }
    }
}

/// Shows cost against quality: each agent, model, mode and version.
fn matrix_card(of: &AgentMatrix) -> Markup {
    html! {
        div class="card" {
            h2 { "Agents side by side" }
            p class="faint" { "Pass rates with their intervals" }
            table id="agents" {
                thead { tr { th { "Case" } @for name in &of.columns { th { (name) } } } }
                tbody {
                    @for row in &of.rows {
                        tr {
                            td { (row.suite) " / " (row.case) }
                            @for cell in &row.cells { td { (cell.as_deref().unwrap_or("–")) } }
                        }
                    }
                }
            }
        }
    }
}

fn frontier_card(of: &[FrontierPoint]) -> Markup {
    html! {
        div class="card" {
            h2 { "Cost against quality" }
            @for (point, line) in of.iter().zip(figures::describe_frontier(of)) {
                @let class = match point.standing {
                    Some(FrontierStanding::OnFrontier) => "pass",
                    Some(FrontierStanding::Behind) => "fail",
                    Some(FrontierStanding::Unclear) | None => "none",
                };
                p class=(class) { (line) }
            }
        }
    }
}

fn arms_card(of: &ArmsSummary) -> Markup {
    let words = |arm: &'_ str| match arm {
        "with" => "with the skill".to_owned(),
        "without" => "without it".to_owned(),
        version => version.to_owned(),
    };
    html! {
        div class="card" {
            h2 { "Pass rate " (words(&of.after)) " − " (words(&of.before)) }
            (charts::difference_chart(of.result.difference))
            @for line in figures::describe_arms(of) { p { (line) } }
        }
    }
}

fn gates_card(gates: &[GateResult]) -> Markup {
    let (shown, others) = figures::select_gates(gates);
    let is_shown = |gate: &GateResult| shown.iter().any(|shown| std::ptr::eq(*shown, gate));
    html! {
        div class="card" {
            h2 { "Gates" }
            (gate_table(shown.iter().copied()))
            @if let Some(others) = others {
                details {
                    summary { (others) }
                    (gate_table(gates.iter().filter(|gate| !is_shown(gate))))
                }
            }
        }
    }
}

/// Shows the judges' findings about the evals: a check that any answer meets proves nothing.
fn findings_card(of: &[EvalFinding]) -> Markup {
    let (shown, more) = of.split_at(of.len().min(MAX_SHOWN_FINDINGS));
    let lines = |findings: &[EvalFinding]| {
        html! {
            @for finding in findings {
                p class="none" dir="auto" { (truncate_text(&finding.describe(), MAX_FINDING_LENGTH)) }
            }
        }
    };
    html! {
        div class="card" {
            h2 { "Findings about the evals" }
            (lines(shown))
            @if !more.is_empty() {
                details { summary { (count_with_noun(more.len(), "more finding")) } (lines(more)) }
            }
        }
    }
}

fn gate_table<'g>(gates: impl Iterator<Item = &'g GateResult>) -> Markup {
    html! { table class="gates" { @for gate in gates { (gate_row(gate)) } } }
}

fn gate_row(gate: &GateResult) -> Markup {
    let (_, word) = figures::describe_gate(gate);
    let class = match (gate.ok, gate.fails()) {
        (true, _) => "pass",
        (false, true) => "fail",
        (false, false) => "none",
    };
    let value = Estimate { value: gate.value, low: gate.low, high: gate.high, n: 0 };
    let spared = match (gate.spared.as_slice(), gate.too_many_flaky.as_slice()) {
        ([], []) => String::new(),
        ([], names) => format!(" with more flaky failures than usual: {}", names.join(", ")),
        (names, _) => format!(" without the flaky {}", names.join(", ")),
    };
    html! {
        tr {
            th { (gate.name.name().replace('_', " ")) small { (gate.subject()) (spared) } }
            td { (charts::rate_chart(&[(value, class)], Some(gate.threshold))) }
            td class="number" { (figures::format_estimate(value)) }
            td class=(class) { (word) }
        }
    }
}

/// Shows counts and rates of activation, and `more` below them.
fn rates_card(title: &str, of: &ActivationRates, more: Markup) -> Markup {
    let rates = [
        ("Precision", of.precision, Some(describe_rate as fn(Estimate) -> Option<&'static str>)),
        ("Recall", of.recall, Some(describe_rate)),
        ("F1", of.f1, Some(describe_f1)),
        ("Accuracy", of.accuracy, None),
    ];
    html! {
        div class="card" {
            h2 { (title) }
            div class="beside" {
                (charts::confusion_chart(of))
                table class="metrics" {
                    @for (name, rate, band) in rates {
                        tr {
                            th { (name) }
                            td class="number" { (figures::format_estimate(rate)) }
                            td class="faint" { @if let Some(word) = band.and_then(|band| band(rate)) { (word) } }
                        }
                    }
                }
            }
            (more)
        }
    }
}

fn activation_card(of: &ActivationSummary) -> Markup {
    let counts = [
        (of.all.acceptable, "run", "could do either"),
        (of.all.error, "run", "without an answer"),
        (of.unmeasured, "case", "could not be measured"),
        (of.invoked, "run", "with the skill named in the prompt"),
    ];
    let some = counts.into_iter().filter(|(count, _, _)| *count > 0);
    let rest: Vec<String> =
        some.map(|(count, what, words)| format!("{} {words}", count_with_noun(count, what))).collect();
    let rest = html! { @if !rest.is_empty() { p class="faint" { (rest.join(" · ")) } } };
    rates_card("Activation", &of.all, rest)
}

fn footer(results: &RunResults) -> Markup {
    let probes = results.summary.probes.iter().map(ProbeRecord::describe);
    let rivals = results.summary.rivals.iter().map(RivalSkills::describe);
    let skills = results.summary.skills_judged.iter().flat_map(SkillJudgement::describe);
    let notices = results.info.notices.iter().cloned().chain(rivals).chain(probes).chain(skills);
    html! {
        footer class="faint" {
            ul { @for notice in notices { li { (notice) } } }
            p {
                "Bars are 95" (THIN_SPACE) "% intervals; runs of one case count as one cluster. What has no answer is \
                 in no rate. Recorded in " code { (results.run.path().display()) } "."
            }
        }
    }
}

/// The space between a number and its unit.
const THIN_SPACE: char = '\u{2009}';

/// Writes an interval: `38 – 96 %`, or nothing if there is none.
fn format_interval(of: Estimate) -> String {
    let ends = of.low.zip(of.high);
    ends.map_or_else(String::new, |(low, high)| {
        format!("{:.0} – {:.0}{THIN_SPACE}%, n = {}", low * 100.0, high * 100.0, of.n)
    })
}

fn format_seconds(seconds: f64) -> String {
    match seconds {
        _ if seconds < 60.0 => format!("{seconds:.1}{THIN_SPACE}s"),
        _ if seconds < 3600.0 => format!("{:.0}{THIN_SPACE}min", seconds / 60.0),
        _ => format!("{:.1}{THIN_SPACE}h", seconds / 3600.0),
    }
}

/// Writes a number with thin spaces between the thousands.
fn group_thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(THIN_SPACE);
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn thousands_stand_apart() {
        for (number, expected) in [(7, "7"), (1234, "1\u{2009}234"), (1_234_567, "1\u{2009}234\u{2009}567")] {
            assert_eq!(group_thousands(number), expected);
        }
    }

    /// If the policy named another script than the page has, the page would not work.
    #[test]
    fn the_policy_names_the_script_and_the_style() {
        for (content, hash) in [(STYLE, STYLE_HASH), (SCRIPT, SCRIPT_HASH)] {
            let digest = "import base64,hashlib,sys; sys.stdout.write('sha256-' + base64.b64encode(hashlib.sha256(sys.stdin.buffer.read()).digest()).decode())";
            let mut python = Command::new("python3")
                .args(["-c", digest])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .expect("python3 starts");
            python.stdin.take().expect("piped").write_all(content.as_bytes()).expect("written");
            let output = python.wait_with_output().expect("python3 ends");
            assert_eq!(String::from_utf8_lossy(&output.stdout), hash);
        }
    }

    #[test]
    fn the_page_s_own_script_cannot_end_itself() {
        assert!(!SCRIPT.contains("</script") && !STYLE.contains("</style"));
    }
}
