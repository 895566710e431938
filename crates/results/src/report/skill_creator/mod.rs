//! Reports in the formats of skill-creator and agentskills.io, for the viewers that people already have: one
//! folder is one iteration.
//!
//! Both formats know only passed and failed. So a run with an expectation without an answer has no grading and is
//! in no mean; the notes of the benchmark name it.

mod benchmark;
mod eval_numbers;
mod grading;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use self::benchmark::Benchmark;
use self::eval_numbers::EvalNumbers;
use super::folder_record::FolderRecord;
use super::run_results::CaseTexts;
use super::{ReportFormat, ReportOutput, RunResults, agent_files, printable_text};
use practicum_core::model::{Arm, CaseSummary, CheckSummary, TrialRecord, count_with_noun};

pub static REPORT: ReportFormat = ReportFormat {
    name: "skill-creator",
    description: "skill-creator's grading, timing and benchmark, in a folder",
    output: ReportOutput::Folder(|results, folder| {
        write(results, folder, BenchmarkLayout::SkillCreator, REPORT.name)
    }),
    environment_file: None,
};

pub static AGENTSKILLS_REPORT: ReportFormat = ReportFormat {
    name: "agentskills",
    description: "the same files as agentskills.io describes them, in a folder",
    output: ReportOutput::Folder(|results, folder| {
        write(results, folder, BenchmarkLayout::Agentskills, AGENTSKILLS_REPORT.name)
    }),
    environment_file: None,
};

/// The format whose keys and layout are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BenchmarkLayout {
    SkillCreator,
    Agentskills,
}

/// Writes the files of a run. Files that another run left in the folder are removed, because viewers treat all
/// files as one iteration.
fn write(
    results: &RunResults,
    folder: &Path,
    shape: BenchmarkLayout,
    report: &str,
) -> std::io::Result<Vec<String>> {
    let (cases, mut notes) = select_writable_cases(results);
    let mut record = FolderRecord::read(folder, report)?;
    record.refuse_later(results, |_| true)?;
    let removed = record.remove_files(results)?;
    if removed > 0 {
        notes.push(format!("{} of an earlier run replaced", count_with_noun(removed, "file")));
    }
    let mut files = Files { shape, written: Vec::new() };
    for (name, cases) in split_into_folders(&cases) {
        let folder = name.map_or_else(|| folder.to_owned(), |name| folder.join(name));
        write_part(results, &cases, &folder, &mut files)?;
    }
    notes.extend(note_others(folder, &files.written));
    let below = files.written.iter().filter_map(|path| path.strip_prefix(folder).ok()?.to_str());
    record.write(results, below.map(str::to_owned))?;
    Ok(notes)
}

/// Gives a note on gradings in the folder that no recorded run wrote, because viewers would show them as this
/// run's.
fn note_others(folder: &Path, written: &[PathBuf]) -> Option<String> {
    let is_eval = |entry: &ignore::DirEntry| entry.file_name().to_string_lossy().starts_with("eval-");
    let walk = ignore::WalkBuilder::new(folder)
        .standard_filters(false)
        .follow_links(false)
        .max_depth(Some(4))
        .filter_entry(move |entry| entry.depth() != 1 || is_eval(entry))
        .build();
    let gradings = walk.flatten().filter(|entry| entry.file_name() == "grading.json");
    let mut others: Vec<String> = gradings
        .filter(|entry| !written.iter().any(|path| path == entry.path()))
        .map(|entry| entry.path().strip_prefix(folder).unwrap_or(entry.path()).display().to_string())
        .collect();
    others.sort();
    let first = others.first()?;
    let count = count_with_noun(others.len(), "grading");
    Some(format!(
        "not of this run, but shown by viewers as if they were: {count} in the folder, such as {first}"
    ))
}

/// The files of the report that have been written.
struct Files {
    shape: BenchmarkLayout,
    written: Vec<PathBuf>,
}

impl Files {
    fn put(&mut self, path: PathBuf, document: &Value) -> std::io::Result<()> {
        std::fs::write(&path, format!("{document:#}\n"))?;
        self.written.push(path);
        Ok(())
    }

    fn copy(&mut self, from: &Path, to: PathBuf) -> std::io::Result<()> {
        if let Some(folder) = to.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::copy(from, &to)?;
        self.written.push(to);
        Ok(())
    }
}

/// Selects the cases that are written, and gives notes on the others. The layout has no place for a suite that
/// only measures activation, and such a suite would force other suites into folders of their own.
fn select_writable_cases(results: &RunResults) -> (Vec<&CaseSummary>, Vec<String>) {
    let all = &results.summary.cases;
    let only_activation = |suite: &&str| {
        let mut cases = all.iter().filter(|case| case.suite == *suite);
        cases.all(CaseSummary::is_only_about_activation)
    };
    let (left_out, placed): (Vec<&str>, Vec<&str>) =
        results.suite_names().into_iter().partition(only_activation);
    if placed.is_empty() {
        return (all.iter().collect(), Vec::new());
    }
    let note =
        |suite: &&str| format!("{suite} only measures activation, which has no place among these files");
    let cases = all.iter().filter(|case| placed.contains(&case.suite.as_str())).collect();
    (cases, left_out.iter().map(note).collect())
}

/// Splits the cases of a run into folders if more than the arms differ: the files have no place for several
/// suites, agents, models or modes.
fn split_into_folders<'r>(cases: &[&'r CaseSummary]) -> Vec<(Option<String>, Vec<&'r CaseSummary>)> {
    let mut parts: Vec<(String, Vec<&CaseSummary>)> = Vec::new();
    for case in cases.iter().copied() {
        let words = [Some(&case.suite), Some(&case.agent), case.model.as_ref(), Some(&case.mode)];
        let name = words.map(|word| word.map_or("", String::as_str)).join(" ");
        match parts.iter_mut().find(|(known, _)| *known == name) {
            Some((_, cases)) => cases.push(case),
            None => parts.push((name, vec![case])),
        }
    }
    let alone = parts.len() == 1;
    let named = |(index, (name, cases)): (usize, (String, _))| {
        // Two different names may become the same folder name, so each folder gets a number.
        ((!alone).then(|| format!("{}-{}", index + 1, safe_file_name(&name))), cases)
    };
    parts.into_iter().enumerate().map(named).collect()
}

fn write_part(
    results: &RunResults,
    cases: &[&CaseSummary],
    folder: &Path,
    files: &mut Files,
) -> std::io::Result<()> {
    let shape = files.shape;
    let numbers = EvalNumbers::for_cases(results, cases);
    let questions = results.case_texts();
    let mut benchmark = Benchmark::new(results, cases, &numbers);
    for case in cases {
        let id = numbers.number_of_case(&case.id);
        let name = printable_text(eval_name(results, &questions, case).unwrap_or(&case.id));
        let eval = folder.join(format!("eval-{id}"));
        let runs = case.trials();
        let prompt = questions.prompts(&case.suite, &case.id).join("\n\n");
        let wording = |check: &CheckSummary| questions.check_wording(&case.suite, &case.id, &check.id);
        let said = |check: &CheckSummary| printable_text(wording(check).unwrap_or(&check.id));
        let metadata = json!({"eval_id": id, "eval_name": name, "prompt": printable_text(&prompt),
            "assertions": case.checks.iter().map(said).collect::<Vec<String>>()});
        for trial in results.trials(case) {
            let record = trial?;
            let run = run_folder(results, &eval, &record, runs, shape);
            std::fs::create_dir_all(&run)?;
            let outputs = run.join("outputs");
            copy_outputs(&results.trial_folder(&record), &outputs, files)?;
            let graded = grading::read_expectations(&record, &questions);
            let metrics = grading::collect_metrics(results, &record);
            files.put(run.join("timing.json"), &grading::timing_document(results, &record, shape))?;
            if shape == BenchmarkLayout::SkillCreator {
                // The viewer looks for the prompt here and in the folder above.
                files.put(run.join("eval_metadata.json"), &metadata)?;
                // A file of the agent's keeps its name.
                if !outputs.join("metrics.json").exists()
                    || !agent_files::exists(&results.trial_folder(&record), "metrics.json")
                {
                    files.put(outputs.join("metrics.json"), &grading::metrics_file_document(&metrics))?;
                }
            }
            let grading = run.join("grading.json");
            if graded.is_complete() {
                files.put(grading, &grading::grading_document(&record, &graded, &metrics, shape))?;
            } else if grading.symlink_metadata().is_ok() {
                // A grading that something else left here would be mistaken for this run's.
                std::fs::remove_file(&grading)?;
            }
            let eval = EvalLabel { id, name: &name };
            benchmark.add(eval, configuration_name(results, &record), &record, &graded, &metrics);
        }
        // The script that makes a benchmark looks for the number here.
        if shape == BenchmarkLayout::SkillCreator {
            std::fs::create_dir_all(&eval)?;
            files.put(eval.join("eval_metadata.json"), &metadata)?;
        }
    }
    std::fs::create_dir_all(folder)?;
    files.put(folder.join("benchmark.json"), &benchmark.document(shape))
}

/// Gives the folder of a run's files. agentskills.io has one run of each eval; several runs get folders.
fn run_folder(
    results: &RunResults,
    eval: &Path,
    record: &TrialRecord,
    runs: u64,
    shape: BenchmarkLayout,
) -> PathBuf {
    let folder = eval.join(configuration_name(results, record));
    match shape {
        BenchmarkLayout::Agentskills if runs <= 1 => folder,
        BenchmarkLayout::Agentskills | BenchmarkLayout::SkillCreator => {
            folder.join(format!("run-{}", record.attempt))
        }
    }
}

/// Gives the viewers' name for an arm.
fn configuration_name(results: &RunResults, record: &TrialRecord) -> String {
    match record.condition.arm {
        Arm::WithSkill => "with_skill".to_owned(),
        Arm::WithoutSkill => "without_skill".to_owned(),
        Arm::Version(number) => match &results.summary.arms {
            Some(arms) if arms.after == record.condition.arm.name() => "with_skill".to_owned(),
            Some(arms) if arms.before == record.condition.arm.name() => "old_skill".to_owned(),
            Some(_) | None => format!("v{number}"),
        },
    }
}

/// The number and name of an eval in the files.
#[derive(Clone, Copy)]
struct EvalLabel<'n> {
    id: u32,
    name: &'n str,
}

/// Gives the name of the eval, if it has one beside its id. In other formats than skill-creator's, a note is not a
/// name but a reason.
fn eval_name<'r>(results: &RunResults, questions: &CaseTexts<'r>, case: &CaseSummary) -> Option<&'r str> {
    let names_in_notes = results.info.suite(&case.suite)?.suite.origin.dialect == "skill-creator";
    questions.note(&case.suite, &case.id).filter(|_| names_in_notes)
}

/// Copies the agent's last answer and its files, as far as they were kept.
fn copy_outputs(trial: &Path, to: &Path, files: &mut Files) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    let kept = trial.join("files");
    let said = trial.join("output.txt");
    if said.is_file() {
        files.copy(&said, to.join(unused_answer_name(&kept)))?;
    }
    for entry in ignore::WalkBuilder::new(&kept).standard_filters(false).follow_links(false).build() {
        let Ok(entry) = entry else { continue };
        let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
        let Some(below) = entry.path().strip_prefix(&kept).ok().filter(|_| is_file) else { continue };
        // A file that the agent put into a folder for outputs goes directly into this one, unless the name is
        // taken.
        let inner = below.strip_prefix("outputs").ok().filter(|inner| !kept.join(inner).exists());
        files.copy(entry.path(), to.join(inner.unwrap_or(below)))?;
    }
    Ok(())
}

/// Finds a name for the final answer that no file of the agent has.
fn unused_answer_name(files: &Path) -> String {
    let first = ["output.txt", "final-answer.txt"].map(str::to_owned);
    let names = first.into_iter().chain((2..=u32::MAX).map(|number| format!("final-answer-{number}.txt")));
    let is_free = |name: &String| files.join(name).symlink_metadata().is_err();
    names.into_iter().find(is_free).unwrap_or_default()
}

pub fn safe_file_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    name.chars().take(60).map(plain).collect()
}
