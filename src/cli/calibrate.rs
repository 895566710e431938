//! The command `practicum calibrate`: how right judges are, by the labels of people.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Context, anyhow, bail};

use super::{count_with_noun, print, print_json, report_error};
use crate::aggregate::{
    CalibratedRate, Calibration, DriftRow, JudgeCalibration, JudgedCriterion, LengthCheck,
};
use crate::model::{Arm, Outcome};
use crate::own_files;
use crate::plan::settings::project_root;
use crate::report::figures::format_estimate;
use crate::report::terminal_safe;
use crate::stats::ALPHA;
use crate::store::CalibrationInput;
use crate::store::history::{ExportFormat, write_table};

#[derive(clap::Args)]
#[command(after_help = "\
Compares the verdicts of judges with what people say of the same outputs, and corrects pass rates for the \
judge's errors. Label outputs in practicum view, or write them to a file with --export, fill in pass or \
fail, and read the file with --labels. Both hide the judge's verdict. docs/judges.md explains the figures.

Exit codes:
  0  done, whatever was found
  2  labels that cannot be used, or a run without verdicts of a judge
  3  no label yet

Examples:
  practicum calibrate --export labels.csv    what to label, in random order
  practicum calibrate --labels labels.csv    the newest run, with these labels
  practicum calibrate latest --against RUN   what another judge changed")]
pub struct CalibrateArgs {
    /// The runs: their ids, parts of them, or latest
    #[arg(value_name = "RUN", default_value = "latest")]
    runs: Vec<String>,
    /// Also use the labels of this file, CSV or JSON lines (repeatable)
    #[arg(long, value_name = "FILE")]
    labels: Vec<PathBuf>,
    /// Write the outputs without a label to this file (.csv, or else JSON lines), to be filled in, and stop
    #[arg(long, value_name = "FILE")]
    export: Option<PathBuf>,
    /// Also compare with this run, in which another judge graded the same outputs
    #[arg(long, value_name = "RUN")]
    against: Option<String>,
    /// The labels are a random sample, whatever order they were given in
    #[arg(long)]
    random_sample: bool,
    /// Print JSON, and nothing else, on standard output
    #[arg(long)]
    json: bool,
    /// The project, or anything in it
    #[arg(long, default_value = ".")]
    project: PathBuf,
}

/// The most problems of label files that are printed.
const MOST_PROBLEMS: usize = 10;

pub fn main(args: &CalibrateArgs) -> Outcome {
    run(args).unwrap_or_else(|error| report_error(&error))
}

fn run(args: &CalibrateArgs) -> anyhow::Result<Outcome> {
    let project = project_root(&std::path::absolute(&args.project)?);
    let mut input =
        CalibrationInput::read(&project, &args.runs, args.against.as_deref()).map_err(|why| anyhow!(why))?;
    let problems: Vec<String> =
        args.labels.iter().filter_map(|path| input.add_label_file(path).err()).flatten().collect();
    if !problems.is_empty() {
        problems.iter().take(MOST_PROBLEMS).for_each(|problem| say!("error: {}", terminal_safe(problem)));
        let more = problems.len().saturating_sub(MOST_PROBLEMS);
        let more = if more > 0 { format!("; {more} more like these") } else { String::new() };
        bail!("no label was used: {} cannot be used{more}", count_with_noun(problems.len(), "line"));
    }
    input.notices.iter().for_each(|notice| say!("note: {}", terminal_safe(notice)));
    if let Some(path) = &args.export {
        return export(&input, path);
    }
    let found = input.calibrate(args.random_sample);
    if found.judged == 0 {
        bail!("no judge decided anything in {}", found.runs.join(", "));
    }
    match args.json {
        true => print_json(&found)?,
        false => print(&describe(&found))?,
    }
    Ok(if found.labelled > 0 { Outcome::Passed } else { Outcome::Incomplete })
}

fn export(input: &CalibrationInput, path: &PathBuf) -> anyhow::Result<Outcome> {
    let lines = input.lines_to_fill();
    if lines.is_empty() {
        bail!("every verdict of a judge has a label, or there is none; nothing was written");
    }
    let count = lines.len();
    let is_csv = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("csv"));
    let format = if is_csv { ExportFormat::Csv } else { ExportFormat::Jsonl };
    let written = File::create(path).and_then(|file| {
        let mut out = BufWriter::new(file);
        write_table(lines, format, &mut out)?;
        out.flush()
    });
    written.with_context(|| format!("cannot write {}", path.display()))?;
    own_files::record_written_files(std::slice::from_ref(path));
    say!("{} to label; write pass or fail into \"passed\", from the top", count_with_noun(count, "output"));
    Ok(Outcome::Passed)
}

fn describe(found: &Calibration) -> String {
    let mut out = format!(
        "{}: {} of judges, {} labelled\n",
        terminal_safe(&found.runs.join(", ")),
        count_with_noun(found.judged, "verdict"),
        found.labelled
    );
    if found.labels_not_blind > 0 {
        out += &format!(
            "{} not counted: the verdict had been seen\n",
            count_with_noun(found.labels_not_blind, "label")
        );
    }
    if found.labelled == 0 {
        out += "no label yet: practicum view shows outputs to label, --export writes them to a file\n";
    }
    for judge in found.judges.iter().filter(|judge| judge.table.labels() > 0) {
        out += &describe_judge(judge);
    }
    if let Some(drift) = &found.drift {
        out += &format!(
            "\nfrom {} ({}) to {} ({})\n",
            terminal_safe(&drift.from_run),
            terminal_safe(&drift.from_judges.join(", ")),
            terminal_safe(&drift.to_run),
            terminal_safe(&drift.to_judges.join(", "))
        );
        drift.changes.iter().for_each(|row| out += &describe_drift(row));
        if drift.only_in_one > 0 {
            out += &format!("  {} in only one of the runs\n", count_with_noun(drift.only_in_one, "verdict"));
        }
    }
    out
}

fn name_criterion(criterion: Option<&JudgedCriterion>) -> String {
    criterion.map_or_else(
        || "all criteria".to_owned(),
        |of| format!("{} of {}", terminal_safe(&of.check), terminal_safe(&of.suite)),
    )
}

fn describe_judge(judge: &JudgeCalibration) -> String {
    let table = judge.table;
    let mut out = format!(
        "\n{}, {}: {}\n",
        terminal_safe(&judge.judge),
        name_criterion(judge.criterion.as_ref()),
        count_with_noun(table.labels(), "label")
    );
    out += "                people: pass  people: fail\n";
    out += &format!("  judge: pass  {:>15}{:>14}\n", table.both_passed, table.only_judge_passed);
    out += &format!("  judge: fail  {:>15}{:>14}\n", table.only_person_passed, table.both_failed);
    out += &format!("  passes what people pass  {}\n", format_estimate(judge.sensitivity));
    out += &format!("  fails what people fail   {}\n", format_estimate(judge.specificity));
    out += &format!("  agreement, Cohen's κ     {}\n", format_estimate(judge.kappa));
    judge.rates.iter().for_each(|rate| out += &describe_rate(rate));
    out + &describe_length(judge.length.as_ref())
}

fn describe_rate(rate: &CalibratedRate) -> String {
    let arm = match rate.arm {
        Arm::WithSkill => "with the skill".to_owned(),
        Arm::WithoutSkill => "without the skill".to_owned(),
        Arm::Version(_) => format!("with version {}", rate.arm.name()),
    };
    let because = |why: &Option<String>| why.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
    format!(
        "  pass rate {arm}, {}\n    by the judge        {}\n    corrected           {}{}\n    prediction-powered  {}{}\n",
        count_with_noun(rate.by_judge.n, "verdict"),
        format_estimate(rate.by_judge),
        format_estimate(rate.corrected),
        because(&rate.not_corrected),
        format_estimate(rate.prediction_powered),
        because(&rate.not_prediction_powered)
    )
}

fn describe_length(length: Option<&LengthCheck>) -> String {
    let Some(of) = length else {
        return "  length of the answer: too few labels to say\n".to_owned();
    };
    let words = match of.prefers_longer {
        Some(true) => "the judge prefers longer answers",
        Some(false) => "the judge prefers shorter answers",
        None => "no sign that it matters",
    };
    let halves = [("people passed", of.people_passed), ("people failed", of.people_failed)];
    let shares = halves.map(|(name, of)| {
        format!(
            "of what {name} the judge passed {}/{} shorter, {}/{} longer",
            of.shorter_passed, of.shorter, of.longer_passed, of.longer
        )
    });
    format!("  length of the answer: {words} (p = {:.3})\n    {}\n", of.chance, shares.join("\n    "))
}

fn describe_drift(row: &DriftRow) -> String {
    let name = name_criterion(row.criterion.as_ref());
    let changed = row.now_passed + row.now_failed;
    let words = match row.chance <= ALPHA {
        true if row.now_passed > row.now_failed => "the second judge is more lenient",
        true => "the second judge is stricter",
        false if changed == 0 => "no verdict changed",
        false => "no clear direction",
    };
    format!(
        "  {name}: {changed} of {} changed, {} to pass, {} to fail: {words} (p = {:.3}); by labels {} right now, {} wrong now\n",
        count_with_noun(row.outputs, "verdict"),
        row.now_passed,
        row.now_failed,
        row.chance,
        row.corrected,
        row.made_wrong
    )
}
