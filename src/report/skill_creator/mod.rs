//! What skill-creator and agentskills.io write about a run, for the viewers people already have: one
//! folder is one iteration.
//!
//! Both know only passed and failed, so that what has no answer is in no file but the notes.

mod benchmark;
mod grading;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use self::benchmark::Benchmark;
use super::{Form, Report, Results, safe};
use crate::model::{Arm, CaseSummary, TrialRecord};

pub static REPORT: Report = Report {
    name: "skill-creator",
    about: "skill-creator's grading, timing and benchmark, in a folder",
    form: Form::Folder(|results, folder| write(results, folder, Shape::SkillCreator)),
    adds: None,
};

pub static AGENTSKILLS: Report = Report {
    name: "agentskills",
    about: "the same files as agentskills.io describes them, in a folder",
    form: Form::Folder(|results, folder| write(results, folder, Shape::Agentskills)),
    adds: None,
};

/// Whose keys and layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    SkillCreator,
    Agentskills,
}

fn write(results: &Results, folder: &Path, shape: Shape) -> std::io::Result<()> {
    for (name, cases) in parts(results) {
        let folder = name.map_or_else(|| folder.to_owned(), |name| folder.join(name));
        part(results, &cases, &folder, shape)?;
    }
    Ok(())
}

/// The cases of a run, in folders of their own where more than the arms differ: the files have no room
/// for several suites, agents, models or modes.
fn parts(results: &Results) -> Vec<(Option<String>, Vec<&CaseSummary>)> {
    let mut parts: Vec<(String, Vec<&CaseSummary>)> = Vec::new();
    for case in &results.summary.cases {
        let words = [Some(&case.suite), Some(&case.agent), case.model.as_ref(), Some(&case.mode)];
        let name = words.map(|word| word.map_or("", String::as_str)).join(" ");
        match parts.iter_mut().find(|(known, _)| *known == name) {
            Some((_, cases)) => cases.push(case),
            None => parts.push((name, vec![case])),
        }
    }
    let alone = parts.len() == 1;
    let named = |(index, (name, cases)): (usize, (String, _))| {
        // Two names may look alike once they are names of folders.
        ((!alone).then(|| format!("{}-{}", index + 1, file_name(&name))), cases)
    };
    parts.into_iter().enumerate().map(named).collect()
}

fn part(results: &Results, cases: &[&CaseSummary], folder: &Path, shape: Shape) -> std::io::Result<()> {
    let ids = Ids::of(cases);
    let questions = results.questions();
    let mut benchmark = Benchmark::new(results, cases);
    for case in cases {
        let id = ids.of_case(&case.id);
        let eval = folder.join(format!("eval-{id}"));
        let runs = case.trials();
        for trial in results.trials(case) {
            let record = trial?;
            let run = run_folder(results, &eval, &record, runs, shape);
            std::fs::create_dir_all(&run)?;
            copy_outputs(&results.folder(&record), &run.join("outputs"))?;
            let graded = grading::graded(&record, &questions);
            let metrics = grading::metrics(results, &record);
            put(&run.join("timing.json"), &grading::timing(&record, shape))?;
            if !graded.expectations.is_empty() {
                put(&run.join("grading.json"), &grading::document(&record, &graded, &metrics, shape))?;
            }
            benchmark.add(id, configuration(results, &record), &record, &graded, &metrics);
        }
        let prompt = questions.prompts(&case.suite, &case.id).join("\n\n");
        let metadata = json!({"eval_id": id, "eval_name": safe(&case.id), "prompt": safe(&prompt),
            "assertions": case.checks.iter().map(|check| safe(&check.id)).collect::<Vec<String>>()});
        if shape == Shape::SkillCreator {
            put(&eval.join("eval_metadata.json"), &metadata)?;
        }
    }
    put(&folder.join("benchmark.json"), &benchmark.document(shape))
}

/// Where a run's files go. agentskills.io has one run of each eval; more of them get folders.
fn run_folder(results: &Results, eval: &Path, record: &TrialRecord, runs: u64, shape: Shape) -> PathBuf {
    let folder = eval.join(configuration(results, record));
    match shape {
        Shape::Agentskills if runs <= 1 => folder,
        Shape::Agentskills | Shape::SkillCreator => folder.join(format!("run-{}", record.attempt)),
    }
}

/// What the viewers call an arm.
fn configuration(results: &Results, record: &TrialRecord) -> String {
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

/// The numbers of the evals: their own where all have one, else their places.
struct Ids {
    names: Vec<String>,
    own: bool,
}

impl Ids {
    fn of(cases: &[&CaseSummary]) -> Self {
        let mut names: Vec<String> = Vec::new();
        for case in cases {
            if !names.contains(&case.id) {
                names.push(case.id.clone());
            }
        }
        // 01 and 1 are two cases and one number.
        let own =
            names.iter().all(|name| name.parse::<u32>().is_ok_and(|number| number.to_string() == *name));
        Self { names, own }
    }

    fn of_case(&self, id: &str) -> u32 {
        let place = self.names.iter().position(|name| name == id).unwrap_or_default();
        let place = u32::try_from(place + 1).unwrap_or(u32::MAX);
        if self.own { id.parse().unwrap_or(place) } else { place }
    }
}

/// What the agent said last and what it wrote, as far as it was kept.
fn copy_outputs(trial: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    let said = trial.join("output.txt");
    if said.is_file() {
        std::fs::copy(&said, to.join("output.txt"))?;
    }
    let files = trial.join("files");
    for entry in ignore::WalkBuilder::new(&files).standard_filters(false).follow_links(false).build() {
        let Ok(entry) = entry else { continue };
        let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
        let Some(below) = entry.path().strip_prefix(&files).ok().filter(|_| is_file) else { continue };
        let target = to.join(below);
        if let Some(folder) = target.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::copy(entry.path(), target)?;
    }
    Ok(())
}

fn file_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    name.chars().take(60).map(plain).collect()
}

fn put(path: &Path, document: &Value) -> std::io::Result<()> {
    std::fs::write(path, format!("{document:#}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evals_keep_their_numbers_where_all_have_one() {
        let ids = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let own = names.iter().all(|name| name.parse::<u32>().is_ok_and(|n| n.to_string() == *name));
            Ids { names, own }
        };
        assert_eq!(ids(&["7", "3"]).of_case("3"), 3);
        assert_eq!(ids(&["7", "three"]).of_case("three"), 2);
        assert_eq!(ids(&["1", "01"]).of_case("01"), 2, "two cases never share a number");
    }
}
