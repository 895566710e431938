//! The whole run as one page that needs no other file: it opens from a mail, offline, on any machine.
//!
//! Every text from agents and files is escaped. The page's policy allows only its own script and style.

mod cases;
mod charts;
mod steps;

use std::io::Write;

use super::escaping::{escape_html, truncate_text};
use super::{ReportFormat, ReportOutput, RunResults, figures, timestamps};
use practicum_core::model::{
    ActivationRates, ActivationSummary, ArmsSummary, Estimate, EvalFinding, GateResult, ProbeRecord,
    RivalSkills, RunStatus, SkillJudgement, TrialTotals, count_with_noun,
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

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// The hashes in the page's policy, so that no other style or script runs. A test compares them with the files.
const STYLE_HASH: &str = "sha256-o75gE5ZOOZla+mRuxrkyxFuVax+gVbD9IEgBvSeMNis=";
const SCRIPT_HASH: &str = "sha256-oPpDfjGrzvpAPPJDTsyETf5bwt0ZamcWxa4Zf9qk+5c=";

fn write(results: &RunResults, out: &mut dyn Write) -> std::io::Result<()> {
    let names: Vec<String> = results.suite_names().into_iter().map(str::to_owned).collect();
    let title = escape_html(&figures::list_suites(&names));
    write!(
        out,
        "<!doctype html>\n{OWN_FILE_MARK}\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src '{STYLE_HASH}'; script-src '{SCRIPT_HASH}'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title} · practicum</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
    )?;
    write_header(results, &title, out)?;
    write_overview(results, out)?;
    cases::write_cases(results, out)?;
    write_footer(results, out)?;
    write!(out, "</main>\n<script>{SCRIPT}</script>\n</body>\n</html>\n")
}

fn write_header(results: &RunResults, title: &str, out: &mut dyn Write) -> std::io::Result<()> {
    let summary = &results.summary;
    let (class, word) = match summary.status() {
        RunStatus::Passed => ("pass", "Passed"),
        RunStatus::Failed => ("fail", "Failed"),
        RunStatus::Ungated => ("none", "No gate"),
        RunStatus::Incomplete => ("none", "Incomplete"),
        RunStatus::OverBudget => ("none", "Over budget"),
        RunStatus::Interrupted => ("none", "Interrupted"),
    };
    let (examined, without) = results.totals();
    writeln!(out, "<header>\n<p class=\"verdict {class}\">{word}</p>\n<h1>{title}</h1>")?;
    writeln!(
        out,
        "<p class=\"faint\">Run <code>{}</code> · {} · practicum {}</p>",
        escape_html(&summary.run),
        escape_html(&timestamps::format_for_people(&results.info.started)),
        escape_html(&results.info.practicum)
    )?;
    if let Some(sample) = &summary.sample {
        writeln!(out, "<p class=\"notice\">Not all cases were run: {}</p>", escape_html(&sample.describe()))?;
    }
    if let Some(words) = figures::describe_failed_teardowns(summary) {
        writeln!(out, "<p class=\"notice\">{}</p>", escape_html(&words))?;
    }
    for words in results.info.model_stand_ins() {
        writeln!(out, "<p class=\"notice\">{words}</p>")?;
    }
    writeln!(out, "</header>\n<section class=\"tiles\">")?;
    match (examined.trials, without.trials) {
        (0, _) => write_counts("Trials passed", &without, out)?,
        (_, 0) => write_counts("Trials passed", &examined, out)?,
        (_, _) => {
            write_counts("With the skill", &examined, out)?;
            let mut more = format!("{} failed, {} not scored", without.failed, without.not_scored);
            if without.not_run > 0 {
                more.push_str(&format!(", {} not run", without.not_run));
            }
            write_tile("Without the skill", &passed_percentage(&without), &more, out)?;
        }
    }
    let rate = summary.pass_rate.rate;
    let value = rate.value.map_or_else(|| "–".to_owned(), |value| format!("{:.0}&thinsp;%", value * 100.0));
    write_tile("Pass rate", &value, &format_interval(rate), out)?;
    let cost = summary.cost_usd.map_or_else(|| "–".to_owned(), |usd| format!("${usd:.2}"));
    let tokens = summary.tokens.input + summary.tokens.output;
    let judge = match summary.judging.map(|judging| judging.cost_usd) {
        None => String::new(),
        Some(Some(usd)) => format!(", judge ${usd:.2}"),
        Some(None) => ", judge’s cost unknown".to_owned(),
    };
    write_tile("Cost", &cost, &format!("{} tokens{judge}", group_thousands(tokens)), out)?;
    let trials = match summary.totals.trials {
        1 => "1 trial".to_owned(),
        trials => format!("{} trials", group_thousands(trials)),
    };
    write_tile("Time", &format_seconds(summary.seconds), &trials, out)?;
    writeln!(out, "</section>")
}

fn write_counts(title: &str, of: &TrialTotals, out: &mut dyn Write) -> std::io::Result<()> {
    let mut rest = Vec::new();
    let parts = [
        (of.failed, "fail", "failed"),
        (of.not_scored, "none", "not scored"),
        (of.not_run, "none", "not run"),
    ];
    for (count, class, word) in parts {
        if count > 0 {
            rest.push(format!("<span class=\"{class}\">{count} {word}</span>"));
        }
    }
    let rest = if rest.is_empty() { "all of them".to_owned() } else { rest.join(", ") };
    write_tile(title, &passed_percentage(of), &rest, out)
}

fn passed_percentage(of: &TrialTotals) -> String {
    format!("{}<small> of {}</small>", of.passed, of.trials)
}

fn write_tile(title: &str, value: &str, more: &str, out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(out, "<div class=\"tile\"><h2>{title}</h2><p class=\"value\">{value}</p><p>{more}</p></div>")
}

fn write_overview(results: &RunResults, out: &mut dyn Write) -> std::io::Result<()> {
    let summary = &results.summary;
    writeln!(out, "<section class=\"cards\"><div class=\"stack\">")?;
    if !summary.gates.is_empty() {
        write_gates(&summary.gates, out)?;
    }
    if let Some(found) = &summary.arms {
        write_arms(found, out)?;
    }
    let doubts = summary.doubts.describe();
    if !doubts.is_empty() {
        let doubts: String = doubts.iter().map(|doubt| format!("<p>{}</p>", escape_html(doubt))).collect();
        writeln!(out, "<div class=\"card\"><h2>Doubts</h2>{doubts}</div>")?;
    }
    if !summary.eval_findings.is_empty() {
        write_eval_findings(&summary.eval_findings, out)?;
    }
    writeln!(out, "</div>")?;
    if let Some(found) = &summary.activation {
        write_activation(found, out)?;
    }
    if let Some(found) = &summary.predicted_activation {
        write_rates("Predicted activation, not seen", &found.all, out)?;
        writeln!(out, "<p class=\"faint\">Guessed by a model from the skills' descriptions.</p></div>")?;
    }
    writeln!(out, "</section>")
}

fn write_arms(of: &ArmsSummary, out: &mut dyn Write) -> std::io::Result<()> {
    let words = |arm: &str| match arm {
        "with" => "with the skill".to_owned(),
        "without" => "without it".to_owned(),
        version => escape_html(version),
    };
    writeln!(out, "<div class=\"card\"><h2>Pass rate {} − {}</h2>", words(&of.after), words(&of.before))?;
    writeln!(out, "{}", charts::difference_chart(of.result.difference))?;
    for line in figures::describe_arms(of) {
        writeln!(out, "<p>{}</p>", escape_html(&line))?;
    }
    writeln!(out, "</div>")
}

fn write_gates(gates: &[GateResult], out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(out, "<div class=\"card\"><h2>Gates</h2>")?;
    let (shown, others) = figures::select_gates(gates);
    write_gate_table(&shown, out)?;
    if let Some(others) = others {
        writeln!(out, "<details><summary>{}</summary>", escape_html(&others))?;
        let is_shown = |gate: &GateResult| shown.iter().any(|shown| std::ptr::eq(*shown, gate));
        let others: Vec<&GateResult> = gates.iter().filter(|gate| !is_shown(gate)).collect();
        write_gate_table(&others, out)?;
        writeln!(out, "</details>")?;
    }
    writeln!(out, "</div>")
}

/// Writes the judges' findings about the evals: a check that any answer meets proves nothing.
fn write_eval_findings(of: &[EvalFinding], out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(out, "<div class=\"card\"><h2>Findings about the evals</h2>")?;
    let line = |finding: &EvalFinding| escape_html(&truncate_text(&finding.describe(), MAX_FINDING_LENGTH));
    let (shown, more) = of.split_at(of.len().min(MAX_SHOWN_FINDINGS));
    for finding in shown {
        writeln!(out, "<p class=\"none\" dir=\"auto\">{}</p>", line(finding))?;
    }
    if !more.is_empty() {
        writeln!(out, "<details><summary>{}</summary>", count_with_noun(more.len(), "more finding"))?;
        for finding in more {
            writeln!(out, "<p class=\"none\" dir=\"auto\">{}</p>", line(finding))?;
        }
        writeln!(out, "</details>")?;
    }
    writeln!(out, "</div>")
}

fn write_gate_table(gates: &[&GateResult], out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(out, "<table class=\"gates\">")?;
    for gate in gates {
        let (_, word) = figures::describe_gate(gate);
        let class = match (gate.ok, gate.fails()) {
            (true, _) => "pass",
            (false, true) => "fail",
            (false, false) => "none",
        };
        let value = Estimate { value: gate.value, low: gate.low, high: gate.high, n: 0 };
        let spared = match (gate.spared.as_slice(), gate.too_many_flaky.as_slice()) {
            ([], []) => String::new(),
            ([], names) => {
                format!(" with more flaky failures than usual: {}", escape_html(&names.join(", ")))
            }
            (names, _) => format!(" without the flaky {}", escape_html(&names.join(", "))),
        };
        writeln!(
            out,
            "<tr><th>{}<small>{}{spared}</small></th><td>{}</td><td class=\"number\">{}</td><td class=\"{class}\">{word}</td></tr>",
            escape_html(&gate.name.name().replace('_', " ")),
            escape_html(&gate.subject()),
            charts::rate_chart(&[(value, class)], Some(gate.threshold)),
            escape_html(&figures::format_estimate(value)),
        )?;
    }
    writeln!(out, "</table>")
}

/// Writes the beginning of a card: counts and rates.
fn write_rates(title: &str, of: &ActivationRates, out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(out, "<div class=\"card\"><h2>{title}</h2><div class=\"beside\">")?;
    writeln!(out, "{}<table class=\"metrics\">", charts::confusion_chart(of))?;
    for (name, rate, band) in [
        ("Precision", of.precision, Some(describe_rate as fn(f64) -> &'static str)),
        ("Recall", of.recall, Some(describe_rate)),
        ("F1", of.f1, Some(describe_f1)),
        ("Accuracy", of.accuracy, None),
    ] {
        let word = band.zip(rate.value).map(|(band, value)| band(value)).unwrap_or_default();
        let figure = escape_html(&figures::format_estimate(rate));
        writeln!(
            out,
            "<tr><th>{name}</th><td class=\"number\">{figure}</td><td class=\"faint\">{word}</td></tr>"
        )?;
    }
    writeln!(out, "</table></div>")
}

fn write_activation(of: &ActivationSummary, out: &mut dyn Write) -> std::io::Result<()> {
    write_rates("Activation", &of.all, out)?;
    let mut rest = Vec::new();
    for (count, what, words) in [
        (of.all.acceptable, "run", "could do either"),
        (of.all.error, "run", "without an answer"),
        (of.unmeasured, "case", "could not be measured"),
        (of.invoked, "run", "told to use the skill by name"),
    ] {
        if count > 0 {
            rest.push(format!("{} {words}", count_with_noun(count, what)));
        }
    }
    if !rest.is_empty() {
        writeln!(out, "<p class=\"faint\">{}</p>", rest.join(" · "))?;
    }
    writeln!(out, "</div>")
}

fn write_footer(results: &RunResults, out: &mut dyn Write) -> std::io::Result<()> {
    let probes = results.summary.probes.iter().map(ProbeRecord::describe);
    let rivals = results.summary.rivals.iter().map(RivalSkills::describe);
    let skills = results.summary.skills_judged.iter().flat_map(SkillJudgement::describe);
    let notices = results.info.notices.iter().cloned().chain(rivals).chain(probes).chain(skills);
    let notices = notices.map(|notice| format!("<li>{}</li>", escape_html(&notice)));
    writeln!(
        out,
        "<footer class=\"faint\"><ul>{}</ul><p>Bars are 95&thinsp;% intervals; runs of one case count as one \
         cluster. What has no answer is in no rate. Recorded in <code>{}</code>.</p></footer>",
        notices.collect::<String>(),
        escape_html(&results.run.path().display().to_string())
    )
}

/// Writes an interval: `38 – 96 %`, or nothing if there is none.
fn format_interval(of: Estimate) -> String {
    let ends = of.low.zip(of.high);
    ends.map_or_else(String::new, |(low, high)| {
        format!("{:.0} – {:.0}&thinsp;%, n = {}", low * 100.0, high * 100.0, of.n)
    })
}

fn format_seconds(seconds: f64) -> String {
    match seconds {
        _ if seconds < 60.0 => format!("{seconds:.1}&thinsp;s"),
        _ if seconds < 3600.0 => format!("{:.0}&thinsp;min", seconds / 60.0),
        _ => format!("{:.1}&thinsp;h", seconds / 3600.0),
    }
}

/// Writes a number with thin spaces between the thousands.
fn group_thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push_str("&thinsp;");
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
        for (number, expected) in [(7, "7"), (1234, "1&thinsp;234"), (1_234_567, "1&thinsp;234&thinsp;567")] {
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
