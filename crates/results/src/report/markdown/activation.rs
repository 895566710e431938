//! The section on activation of the Markdown report, with the headings of skill-test.

use std::collections::BTreeMap;
use std::io::Write;

use super::{cases, estimate_cells, plain};
use crate::report::escaping::truncate_text;
use crate::report::figures;
use crate::report::run_results::{CaseTexts, RunResults};
use practicum_core::model::{
    ActivationOutcome, ActivationRates, CaseSummary, Estimate, NamedActivationRates, PredictedActivation,
    count_with_noun,
};
use practicum_core::stats::{TOO_FEW_CASES, describe_f1, describe_rate};

const MAX_PROMPT_LENGTH: usize = 300;

pub fn write(results: &RunResults, out: &mut dyn Write) -> std::io::Result<()> {
    let Some(found) = &results.summary.activation else { return Ok(()) };
    writeln!(out, "\n## Overall Metrics\n")?;
    write_metrics(&found.all, out)?;
    writeln!(out, "\n## Confusion Matrix\n")?;
    write_confusion(&found.all, out)?;
    if found.unmeasured > 0 {
        writeln!(
            out,
            "\n{} could not be measured: no run can tell.",
            count_with_noun(found.unmeasured, "case")
        )?;
    }
    if found.invoked > 0 {
        writeln!(
            out,
            "\nCounted in no rate: {} with the skill named in the prompt.",
            count_with_noun(found.invoked, "run")
        )?;
    }
    writeln!(out, "\n## Per-Skill Breakdown\n")?;
    write_by_skill(&found.skills, out)?;
    writeln!(out, "\n## Detailed Results")?;
    write_details(results, &found.all, out)
}

/// Writes predicted activation, under headings of its own.
pub fn write_predicted(predicted: &PredictedActivation, out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(out, "\n## Predicted Metrics\n")?;
    writeln!(out, "Guessed by a model from the skills' descriptions; no agent was seen to do it.\n")?;
    write_metrics(&predicted.all, out)?;
    writeln!(out, "\n## Predicted Confusion Matrix\n")?;
    write_confusion(&predicted.all, out)?;
    if predicted.skills.len() > 1 {
        writeln!(out, "\n## Predicted Per-Skill Breakdown\n")?;
        write_by_skill(&predicted.skills, out)?;
    }
    Ok(())
}

fn write_by_skill(parts: &[NamedActivationRates], out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(
        out,
        "| Skill | Precision | Recall | F1 | Accuracy | TP | FP | TN | FN | Acceptable | Errors |"
    )?;
    writeln!(out, "|{}", "---|".repeat(11))?;
    for part in parts {
        let of = &part.rates;
        let rates = [of.precision, of.recall, of.f1, of.accuracy].map(figures::format_estimate).join(" | ");
        let counts = [of.tp, of.fp, of.tn, of.fn_, of.acceptable, of.error].map(|count| count.to_string());
        writeln!(out, "| {} | {rates} | {} |", plain(&part.name), counts.join(" | "))?;
    }
    Ok(())
}

fn write_metrics(of: &ActivationRates, out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(out, "| Metric | Value | 95 % interval | Interpretation | Runs |\n|---|---|---|---|---|")?;
    for (name, rate, words) in [
        ("Precision", of.precision, describe_precision as fn(Estimate) -> Option<&'static str>),
        ("Recall", of.recall, describe_recall),
        ("F1 Score", of.f1, describe_f1),
    ] {
        writeln!(out, "| {name} | {} | {} | {} |", estimate_cells(rate), words(rate).unwrap_or("–"), rate.n)?;
    }
    writeln!(out, "| Accuracy | {} | | {} |", estimate_cells(of.accuracy), of.accuracy.n)
}

fn describe_precision(of: Estimate) -> Option<&'static str> {
    Some(match describe_rate(of)? {
        "Perfect" => "Perfect - never activates incorrectly",
        "Good" => "Good - few false activations",
        "Needs work" => "Needs work - noisy",
        TOO_FEW_CASES => TOO_FEW_CASES,
        _ => "Poor - mostly noise",
    })
}

fn describe_recall(of: Estimate) -> Option<&'static str> {
    Some(match describe_rate(of)? {
        "Perfect" => "Perfect - catches all valid triggers",
        "Good" => "Good - misses few",
        "Needs work" => "Needs work - missing triggers",
        TOO_FEW_CASES => TOO_FEW_CASES,
        _ => "Poor - misses most",
    })
}

fn write_confusion(of: &ActivationRates, out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(out, "| | Activated | Did not activate |\n|---|---|---|")?;
    writeln!(out, "| **Should activate** | {} (TP) | {} (FN) |", of.tp, of.fn_)?;
    writeln!(out, "| **Should not activate** | {} (FP) | {} (TN) |", of.fp, of.tn)?;
    writeln!(out, "\nAcceptable either way: {}. Errors: {}.", of.acceptable, of.error)
}

/// The cases with one kind of outcome, a line for each.
#[derive(Default)]
struct OutcomeCaseList {
    lines: Vec<String>,
}

fn write_details(results: &RunResults, all: &ActivationRates, out: &mut dyn Write) -> std::io::Result<()> {
    let questions = results.case_texts();
    let [mut missed, mut noise, mut errors]: [OutcomeCaseList; 3] = Default::default();
    for case in &results.summary.cases {
        let mut counts = [0_u64; 3];
        let (mut runs, mut why) = (0, None);
        let (mut instead, mut nothing_instead): (BTreeMap<String, u64>, u64) = Default::default();
        for trial in results.trials(case) {
            let record = trial?;
            let Some(outcome) = record.activation_outcome() else { continue };
            runs += 1;
            match outcome {
                ActivationOutcome::FalseNegative => {
                    counts[0] += 1;
                    for skill in record.skills.activated_instead() {
                        *instead.entry(skill.to_owned()).or_default() += 1;
                    }
                    nothing_instead += u64::from(record.skills.activated.is_empty());
                }
                ActivationOutcome::FalsePositive => {
                    counts[1] += 1;
                    why.get_or_insert_with(|| format!("activated {}", record.skills.activated.join(", ")));
                }
                ActivationOutcome::Error => {
                    counts[2] += 1;
                    let known = || record.not_scored_reason();
                    why.get_or_insert_with(|| known().unwrap_or_else(|| record.ended.describe().to_owned()));
                }
                ActivationOutcome::TruePositive
                | ActivationOutcome::TrueNegative
                | ActivationOutcome::Acceptable => {}
            }
        }
        let mut other: Vec<String> = instead
            .iter()
            .map(|(skill, runs)| format!("activated {skill} instead in {}", count_with_noun(*runs, "run")))
            .collect();
        other.extend(
            (nothing_instead > 0).then(|| "activated no skill".to_owned()).filter(|_| instead.is_empty()),
        );
        let whys = [Some(other.join(", ")).filter(|words| !words.is_empty()), why.clone(), why];
        for ((listing, count), why) in
            [&mut missed, &mut noise, &mut errors].into_iter().zip(counts).zip(whys)
        {
            if count > 0 {
                listing.lines.push(case_line(&questions, case, count, runs, why.as_deref()));
            }
        }
    }
    for (title, about, listing) in [
        ("False Negatives", "missed activations", missed),
        ("False Positives", "incorrect activations", noise),
        ("Errors", "test failures", errors),
    ] {
        writeln!(out, "\n### {title} ({about})\n")?;
        match listing.lines.is_empty() {
            true => writeln!(out, "None.")?,
            false => writeln!(out, "{}", listing.lines.join("\n"))?,
        }
    }
    writeln!(out, "\n### Success Summary\n")?;
    writeln!(out, "- {} activated the skill, as wanted (TP).", count_with_noun(all.tp, "run"))?;
    writeln!(out, "- {} left it alone, as wanted (TN).", count_with_noun(all.tn, "run"))?;
    writeln!(out, "- {} could do either (acceptable).", count_with_noun(all.acceptable, "run"))
}

/// Writes a case with its prompt, how often it had this outcome, and why it exists.
fn case_line(
    questions: &CaseTexts<'_>,
    case: &CaseSummary,
    count: u64,
    runs: u64,
    why: Option<&str>,
) -> String {
    let prompt = questions.prompts(&case.suite, &case.id).join(" / ");
    let mut words =
        vec![format!("{count} of {}", count_with_noun(runs, "run")), format!("with {}", case.agent)];
    words.extend(why.map(str::to_owned));
    if case.mode != "baseline" {
        words.push(format!("mode {}", case.mode));
    }
    let by_rate = cases::describe_rate_verdict(case).map(|words| format!("\n  - {}", plain(&words)));
    let note = questions.note(&case.suite, &case.id).map(|note| format!("\n  - Rationale: {}", plain(note)));
    format!(
        "- **{}** ({}): {}\n  - Prompt: {}{}{}",
        plain(&case.id),
        plain(&case.suite),
        plain(&words.join(", ")),
        plain(&truncate_text(&prompt, MAX_PROMPT_LENGTH)),
        by_rate.unwrap_or_default(),
        note.unwrap_or_default()
    )
}
