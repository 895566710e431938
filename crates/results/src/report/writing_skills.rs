//! The report in the format of writing-skills.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::folder_record::FolderRecord;
use super::grading::GradingDocument;
use super::skill_creator::safe_file_name;
use super::{ReportFormat, ReportOutput, RunResults, printable_text, timestamps};
use practicum_core::model::{
    Arm, Check, CheckKind, Condition, Digest, ScoreScale, SkillRef, TYPE_ALIGNMENT_ID, TrialRecord,
    count_with_noun,
};
use practicum_core::tree::read_bounded;
use practicum_engine::store::{PlannedTrial, RunSkill, SKILLS_FOLDER};
use practicum_skills::lint::{ConventionCompliance, SkillFileDraft, convention_compliance};
use practicum_skills::skill::{SKILL_FILE, Skill};
use practicum_skills::versions::{GradedSkill, GradingHistory, SkillContents};

/// The report in the files of writing-skills: a grading of each trial whose criteria have scores from 1 to 5, and
/// the history of the versions that ran.
pub static REPORT: ReportFormat = ReportFormat {
    name: "writing-skills",
    description: "writing-skills' grading files and history.json, in a folder",
    output: ReportOutput::Folder(write),
    environment_file: None,
};

/// Writes the files of one skill into the folder, and those of several skills into a folder for each, because a
/// history belongs to one skill. Several agents, models or modes have folders of their own, too: a grading does not
/// say which of them it is of, and a mean over them is of none.
fn write(results: &RunResults, folder: &Path) -> std::io::Result<Vec<String>> {
    let mut suites_of: BTreeMap<(Option<PathBuf>, Runner), BTreeSet<String>> = BTreeMap::new();
    let with_criteria = cases_with_criteria(results);
    let mut planned = results.info.trials.iter().filter(|trial| with_criteria.contains(&case_of(trial)));
    // Only a version of the skill has a place in a history.
    for trial in planned.clone().filter(|trial| trial.condition.arm != Arm::WithoutSkill) {
        let skill = tested_skill(results, &trial.suite).map(|(path, _)| path);
        suites_of.entry((skill, runner_of(&trial.condition))).or_default().insert(trial.suite.clone());
    }
    if suites_of.is_empty() {
        let why = match planned.next() {
            Some(_) => "every trial is without the skill, and gradings are of versions of the skill",
            None => "no case has criteria with scores from 1 to 5",
        };
        return Ok(vec![format!("no gradings and no history are written: {why}")]);
    }
    let skills: BTreeSet<&Option<PathBuf>> = suites_of.keys().map(|(skill, _)| skill).collect();
    let one_skill = skills.len() == 1;
    let runners: Vec<Runner> = suites_of.keys().map(|(_, runner)| runner.clone()).collect();
    let (mut names, mut notes) = (BTreeSet::new(), Vec::new());
    let mut folders: BTreeMap<Option<PathBuf>, PathBuf> = BTreeMap::new();
    for ((skill, runner), suites) in suites_of {
        let path = skill.clone();
        let name = skill.and_then(|path| Some(Skill::read(&path).ok()?.folder().file_name()?.to_owned()));
        let name = name.map(|name| name.to_string_lossy().into_owned());
        let part = name.clone().unwrap_or_else(|| "skill".to_owned());
        let own_folder =
            || if one_skill { folder.to_owned() } else { folder.join(unused_name(&part, &mut names)) };
        let of_skill = folders.entry(path).or_insert_with(own_folder);
        let folder = of_skill.join(safe_file_name(&differing_words(&runner, &runners)));
        notes.extend(SkillReport { results, folder: &folder, name, suites, runner }.write()?);
    }
    Ok(notes)
}

/// The report of one skill.
struct SkillReport<'r> {
    results: &'r RunResults,
    folder: &'r Path,
    /// The name of the skill's folder.
    name: Option<String>,
    /// The suites that tested it.
    suites: BTreeSet<String>,
    /// What it was tested with.
    runner: Runner,
}

/// The agent, the model and the mode of a trial.
type Runner = [String; 3];

fn runner_of(condition: &Condition) -> Runner {
    [condition.agent.clone(), condition.model.clone().unwrap_or_default(), condition.mode.name().to_owned()]
}

/// Gives the words by which a runner differs from the others; none if there are no others.
fn differing_words(runner: &Runner, all: &[Runner]) -> String {
    let differs = |index: &usize| all.iter().any(|other| other[*index] != runner[*index]);
    let words: Vec<&str> = (0..runner.len()).filter(differs).map(|index| runner[index].as_str()).collect();
    words.join("_")
}

/// The versions that ran, by suite and arm, and the cases that were to run with each.
#[derive(Default)]
struct VersionsRun {
    numbers: BTreeMap<(String, String), u32>,
    cases: BTreeMap<u32, BTreeSet<String>>,
}

impl SkillReport<'_> {
    fn write(&self) -> std::io::Result<Vec<String>> {
        let (results, gradings) = (self.results, self.folder.join("grading"));
        std::fs::create_dir_all(&gradings)?;
        let mut ledger = GradingHistory::open(self.folder).map_err(std::io::Error::other)?;
        let mut record = FolderRecord::read(self.folder, REPORT.name)?;
        record.refuse_other_skill(self.name.clone())?;
        let when = timestamps::format_to_second(&results.info.started);
        let versions = self.versions_run(&mut ledger, &when)?;
        let replaced: BTreeSet<String> = versions
            .cases
            .iter()
            .flat_map(|(version, cases)| cases.iter().map(|case| gradings_of(case, *version)))
            .collect();
        record.refuse_later(results, |gradings| replaced.contains(gradings))?;
        let mut notes = Vec::new();
        for (version, cases) in &versions.cases {
            let is_own = |case: &str| record.is_of(results, &gradings_of(case, *version));
            let moved = move_replaced_gradings(&gradings, *version, cases, &is_own)?;
            if moved > 0 {
                let moved = count_with_noun(moved, "grading");
                notes.push(format!(
                    "{moved} of v{version} from an earlier run moved to {EARLIER_GRADINGS_FOLDER}"
                ));
            }
        }
        let graded = self.write_gradings(&gradings, &versions)?;
        if graded.is_empty() {
            notes.push(
                "no gradings are written: every trial lacks the score of a required criterion".to_owned(),
            );
        }
        for version in versions.cases.keys() {
            let records = graded.get(version).map(Vec::as_slice).unwrap_or_default();
            let (average, note) = self.average(&gradings, *version, &versions.cases[version], records)?;
            notes.extend(note);
            ledger.record_score(*version, average, &when).map_err(std::io::Error::other)?;
        }
        ledger.close().map_err(std::io::Error::other)?;
        record.write(results, replaced)?;
        Ok(notes)
    }

    /// Finds the versions in the plan and not in the gradings: a trial without a grading belongs to a version,
    /// too, and the gradings of an earlier run must not replace it.
    fn versions_run(&self, ledger: &mut GradingHistory, when: &str) -> std::io::Result<VersionsRun> {
        let mut run = VersionsRun::default();
        let with_criteria = cases_with_criteria(self.results);
        let of_skill = |trial: &&PlannedTrial| {
            self.suites.contains(&trial.suite)
                && with_criteria.contains(&case_of(trial))
                && runner_of(&trial.condition) == self.runner
        };
        for trial in self.results.info.trials.iter().filter(of_skill) {
            let key = (trial.suite.clone(), trial.condition.arm.name());
            let version = match (run.numbers.get(&key), trial.condition.arm) {
                (Some(version), _) => *version,
                (None, Arm::Version(number)) => number,
                // An arm without the skill has no version.
                (None, Arm::WithoutSkill) => continue,
                (None, Arm::WithSkill) => {
                    let version = ledger.version_of(&graded_skill(self.results, &trial.suite, when));
                    version.map_err(std::io::Error::other)?
                }
            };
            run.numbers.insert(key, version);
            run.cases.entry(version).or_default().insert(printable_text(&trial.case));
        }
        Ok(run)
    }

    /// Writes the gradings, and gives the trials that have one, by version.
    fn write_gradings(
        &self,
        gradings: &Path,
        versions: &VersionsRun,
    ) -> std::io::Result<BTreeMap<u32, Vec<TrialRecord>>> {
        let mut graded_trials: BTreeMap<u32, Vec<TrialRecord>> = BTreeMap::new();
        let mut conventions: BTreeMap<String, ConventionCompliance> = BTreeMap::new();
        let mut names = BTreeSet::new();
        for trial in self.results.all_trials() {
            let record = trial?;
            let key = (record.suite.clone(), record.condition.arm.name());
            let is_own = runner_of(&record.condition) == self.runner;
            let Some(version) = versions.numbers.get(&key).filter(|_| is_own) else { continue };
            let new = || skill_compliance(self.results, &record.suite);
            let compliance = conventions.entry(record.suite.clone()).or_insert_with(new);
            let Some(grading) = GradingDocument::from_record(&record, *version, compliance) else { continue };
            let grading = grading.with_agent_files(&self.results.trial_folder(&record));
            write_document(
                &gradings.join(format!("{}.json", unused_name(&grading.file_stem(), &mut names))),
                &grading,
            )?;
            graded_trials.entry(*version).or_default().push(record);
        }
        Ok(graded_trials)
    }

    /// Gives the mean over the cases of a version, by all its gradings in the folder. `None`, with a note, while a
    /// case of the evals has no score. `ran` are the cases of this run, which `records` tell about.
    fn average(
        &self,
        gradings: &Path,
        version: u32,
        ran: &BTreeSet<String>,
        records: &[TrialRecord],
    ) -> std::io::Result<(Option<f64>, Option<String>)> {
        let mut scores = read_scores(gradings, version)?;
        // A grading's file has whole scores, and the record has the mean of several judges.
        scores.retain(|case, _| !ran.contains(case));
        for record in records {
            scores.entry(printable_text(&record.case)).or_default().push(mean_score(record));
        }
        let missing: BTreeSet<String> = cases_with_criteria(self.results)
            .into_iter()
            .filter(|(suite, _)| self.suites.contains(*suite))
            .map(|(_, case)| printable_text(case))
            .filter(|case| scores.get(case).is_none_or(|runs| runs.iter().any(Option::is_none)))
            .collect();
        let mean = |scores: Vec<f64>| scores.iter().sum::<f64>() / scores.len().max(1) as f64;
        let cases: Vec<f64> = scores
            .values()
            .map(|runs| runs.iter().copied().flatten().collect::<Vec<f64>>())
            .filter(|runs| !runs.is_empty())
            .map(mean)
            .collect();
        if cases.is_empty() || !missing.is_empty() {
            let listed = missing.iter().take(10).cloned().collect::<Vec<_>>().join(", ");
            let note = format!(
                "v{version} has no average_score in history.json, because {} {} no score here: {listed}",
                count_with_noun(missing.len(), "case"),
                if missing.len() == 1 { "has" } else { "have" },
            );
            return Ok((None, Some(note)));
        }
        Ok((Some((mean(cases) * 100.0).round() / 100.0), None))
    }
}

/// Gives a planned trial's suite and case.
fn case_of(trial: &PlannedTrial) -> (&str, &str) {
    (&trial.suite, &trial.case)
}

/// Gives the mean score of the criteria from 1 to 5. `None` if one of them has no score.
fn mean_score(record: &TrialRecord) -> Option<f64> {
    let criteria = record.checks.iter().filter(|check| check.scale == Some(ScoreScale::OneToFive));
    let scores = criteria.map(|check| check.score).collect::<Option<Vec<f64>>>()?;
    (!scores.is_empty()).then(|| scores.iter().sum::<f64>() / scores.len() as f64)
}

/// The folder for gradings of a version that a later run of this version replaced.
const EARLIER_GRADINGS_FOLDER: &str = "earlier";

/// Moves the gradings of a version away if its cases were run again, so that the gradings of two runs are never
/// mistaken for one. Removes those that this run itself wrote before. Gives how many were moved.
fn move_replaced_gradings(
    gradings: &Path,
    version: u32,
    ran: &BTreeSet<String>,
    is_own: &dyn Fn(&str) -> bool,
) -> std::io::Result<usize> {
    let is_replaced =
        |grading: &GradingDocument| grading.version == version && ran.contains(&grading.case_id);
    let mut found = read_gradings(gradings)?;
    found.retain(|(_, grading)| is_replaced(grading));
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    let earlier = gradings.join(EARLIER_GRADINGS_FOLDER);
    let mut moved = 0;
    for (path, grading) in &found {
        if is_own(&grading.case_id) {
            std::fs::remove_file(path)?;
            continue;
        }
        std::fs::create_dir_all(&earlier)?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let numbered = (2..).map(|number| format!("{stem}-{number}"));
        let mut places = std::iter::once(stem.clone()).chain(numbered);
        let place = places.find(|name| !earlier.join(format!("{name}.json")).exists()).unwrap_or(stem);
        std::fs::rename(path, earlier.join(format!("{place}.json")))?;
        moved += 1;
    }
    Ok(moved)
}

/// Gives the name of the gradings of a case and a version in the folder's record.
fn gradings_of(case: &str, version: u32) -> String {
    format!("{case}_v{version}")
}

/// Reads the gradings in a folder, with their files.
fn read_gradings(folder: &Path) -> std::io::Result<Vec<(PathBuf, GradingDocument)>> {
    const MAX_GRADING_SIZE: u64 = 4 * 1024 * 1024;
    let mut gradings = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let read = read_bounded(&path, MAX_GRADING_SIZE).ok();
        if let Some(grading) = read.and_then(|bytes| serde_json::from_slice(&bytes).ok()) {
            gradings.push((path, grading));
        }
    }
    Ok(gradings)
}

/// Reads the score of each case of a version in each run from the gradings in a folder. `None` if a grading has no
/// overall score.
fn read_scores(folder: &Path, version: u32) -> std::io::Result<BTreeMap<String, Vec<Option<f64>>>> {
    let mut scores: BTreeMap<String, Vec<Option<f64>>> = BTreeMap::new();
    let of_version = read_gradings(folder)?.into_iter().map(|(_, grading)| grading);
    for grading in of_version.filter(|grading| grading.version == version) {
        let results = grading.results.iter().map(|of| f64::from(of.score)).collect::<Vec<f64>>();
        let mean = results.iter().sum::<f64>() / results.len().max(1) as f64;
        let score = grading.overall_score.map(|_| mean);
        scores.entry(grading.case_id).or_default().push(score);
    }
    Ok(scores)
}

/// Gives the cases that have criteria from 1 to 5, whether they ran or not, each with its suite.
fn cases_with_criteria(results: &RunResults) -> BTreeSet<(&str, &str)> {
    let is_criterion = |check: &Check| matches!(&check.kind, CheckKind::Judged(judged) if judged.scale == ScoreScale::OneToFive);
    let suites = results.info.suites.iter().map(|of| &of.suite);
    let cases = suites.flat_map(|suite| suite.cases.iter().map(|case| (suite.name.as_str(), case)));
    let cases = cases.filter(|(_, case)| case.checks.iter().any(is_criterion));
    cases.map(|(suite, case)| (suite, case.id.as_str())).collect()
}

/// Gives a name that is not taken yet: ids may become the same name.
pub fn unused_name(name: &str, taken: &mut BTreeSet<String>) -> String {
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    names.find(|name| taken.insert(name.clone())).unwrap_or_else(|| name.to_owned())
}

/// Gives the skill that a suite tested. What its record lacks is looked up on the disk; a skill that is gone is
/// known by its run alone.
fn graded_skill(results: &RunResults, suite: &str, when: &str) -> GradedSkill {
    let (path, digest) = tested_skill(results, suite).unzip();
    let digest = digest.flatten().unwrap_or_else(|| Digest::of_bytes(results.info.run.as_bytes()));
    let kept = stored_skill_copy(results, &digest);
    GradedSkill { path, digest, run_copy: kept, run_started: when.to_owned() }
}

/// Finds the copy of a skill in the record of this run, or of the run whose trials were regraded.
fn stored_skill_copy(results: &RunResults, digest: &Digest) -> Option<PathBuf> {
    let earlier =
        results.info.graded_from.as_deref().and_then(|id| Some(results.run.path().parent()?.join(id)));
    let runs = std::iter::once(results.run.path().to_owned()).chain(earlier);
    runs.map(|run| run.join(SKILLS_FOLDER).join(digest.as_str())).find(|folder| folder.is_dir())
}

/// Gives the skill that a suite tested: its path, and the digest of its content when it ran.
fn tested_skill(results: &RunResults, suite: &str) -> Option<(PathBuf, Option<Digest>)> {
    match results.info.suite(suite)?.skill.clone() {
        Some(RunSkill { path, digest }) => Some((path, Some(digest))),
        None => skill_file(results, suite).map(|path| {
            let now = current_digest(&path);
            (path, now)
        }),
    }
}

fn current_digest(skill: &Path) -> Option<Digest> {
    SkillContents::scan(skill).ok()?.digest().ok()
}

/// Gives the conventions that code can decide for the skill that ran, and the judge's answer about it.
fn skill_compliance(results: &RunResults, suite: &str) -> ConventionCompliance {
    let said = results.summary.skills_judged.iter().find(|said| said.suite == suite);
    let seen = match tested_skill(results, suite) {
        Some((path, digest)) if digest.is_some() && current_digest(&path) == digest => {
            let file = if path.is_dir() { path.join(SKILL_FILE) } else { path };
            convention_compliance(&SkillFileDraft::read(&file))
        }
        _ => ConventionCompliance::unknown("the skill has changed since it was graded, or is gone"),
    };
    seen.with_judge_answer(said.and_then(|said| said.check(TYPE_ALIGNMENT_ID)))
}

fn skill_file(results: &RunResults, suite: &str) -> Option<PathBuf> {
    let [SkillRef { path: Some(path), .. }] = results.info.suite(suite)?.suite.skills.as_slice() else {
        return None;
    };
    Some(if path.is_dir() { path.join(SKILL_FILE) } else { path.clone() })
}

fn write_document(path: &Path, document: &impl Serialize) -> std::io::Result<()> {
    std::fs::write(path, format!("{:#}\n", serde_json::to_value(document)?))
}
