use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;

use super::grading::Grading;
use super::{Form, Report, Results, printable, when};
use practicum_core::model::{Arm, Digest, Scale, TYPE_ALIGNMENT, TrialRecord, counted};
use practicum_core::tree::read_bounded;
use practicum_engine::store::{RunSkill, SKILLS};
use practicum_skills::lint::{ConventionCompliance, Draft, convention_compliance};
use practicum_skills::skill::{SKILL_FILE, Skill, tidy};
use practicum_skills::versions::{Contents, GradedSkill, Ledger};

/// The files of writing-skills: a grading of each run whose criteria have scores from 1 to 5, and the
/// history of the versions that ran.
pub static REPORT: Report = Report {
    name: "writing-skills",
    about: "writing-skills' grading files and history.json, in a folder",
    form: Form::Folder(write),
    adds: None,
};

/// Writes the files of one skill into the folder, and those of several into a folder for each: a history is that
/// of one skill.
fn write(results: &Results, folder: &Path) -> std::io::Result<Vec<String>> {
    let mut suites_of: BTreeMap<Option<PathBuf>, BTreeSet<String>> = BTreeMap::new();
    let mut without_skill = false;
    for trial in results.all_trials() {
        let record = trial?;
        let is_without = record.condition.arm == Arm::WithoutSkill;
        without_skill |= is_without;
        // Only what has a grading, and is of a version of the skill, has a place in a history.
        if !is_without && Grading::of(&record, 0, &ConventionCompliance::unknown("")).is_some() {
            let skill = under_test(results, &record.suite).map(|(path, _)| path);
            suites_of.entry(skill).or_default().insert(record.suite);
        }
    }
    if suites_of.is_empty() {
        let why = match without_skill {
            true => {
                "no trial with the skill has scores from 1 to 5, and gradings are of versions of the skill"
            }
            false => "no trial has scores from 1 to 5",
        };
        return Ok(vec![format!("no gradings and no history are written: {why}")]);
    }
    if suites_of.len() < 2 {
        return write_skill(results, folder, &|_| true);
    }
    let (mut names, mut notes) = (BTreeSet::new(), Vec::new());
    for (skill, suites) in suites_of {
        let name = skill.and_then(|path| Some(Skill::read(&path).ok()?.folder().file_name()?.to_owned()));
        let name = name.map_or_else(|| "skill".to_owned(), |name| name.to_string_lossy().into_owned());
        let folder = folder.join(free(&name, &mut names));
        notes.extend(write_skill(results, &folder, &|suite| suites.contains(suite))?);
    }
    Ok(notes)
}

fn write_skill(
    results: &Results,
    folder: &Path,
    is_of_skill: &dyn Fn(&str) -> bool,
) -> std::io::Result<Vec<String>> {
    let gradings = folder.join("grading");
    std::fs::create_dir_all(&gradings)?;
    let mut ledger = Ledger::open(folder).map_err(std::io::Error::other)?;
    let when = when::to_the_second(&results.info.started);
    let mut graded_trials: BTreeMap<u32, Vec<TrialRecord>> = BTreeMap::new();
    let mut conventions: BTreeMap<String, ConventionCompliance> = BTreeMap::new();
    let mut versions: BTreeMap<String, u32> = BTreeMap::new();
    let mut names = BTreeSet::new();
    let mut moved: BTreeMap<u32, usize> = BTreeMap::new();
    let of_skill = results.summary.cases.iter().filter(|case| is_of_skill(&case.suite));
    let ran: BTreeSet<&str> = of_skill.map(|case| case.id.as_str()).collect();
    for trial in results.all_trials() {
        let record = trial?;
        let suite = &record.suite;
        if !is_of_skill(suite) {
            continue;
        }
        let compliance = conventions.entry(suite.clone()).or_insert_with(|| compliance(results, suite));
        let Some(mut grading) = Grading::of(&record, 0, compliance) else { continue };
        grading.version = match record.condition.arm {
            Arm::WithSkill => match versions.get(suite) {
                Some(version) => *version,
                None => {
                    let version = ledger.version_of(&graded(results, suite, &when));
                    let version = version.map_err(std::io::Error::other)?;
                    versions.insert(suite.clone(), version);
                    version
                }
            },
            Arm::Version(number) => number,
            // Without the skill there is no version of it.
            Arm::WithoutSkill => continue,
        };
        let grading = grading.measured_in(&results.folder(&record));
        let version = grading.version;
        if let Entry::Vacant(first) = moved.entry(version) {
            first.insert(move_earlier(&gradings, version, &ran)?);
        }
        put(&gradings.join(format!("{}.json", free(&grading.file_stem(), &mut names))), &grading)?;
        graded_trials.entry(version).or_default().push(record);
    }
    let mut notes = Vec::new();
    for (version, records) in graded_trials {
        let mut scores = scores_in(&gradings, version)?;
        for record in &records {
            // A grading's file has whole scores, and the record the mean of several judges.
            scores.entry(record.case.clone()).or_default().insert(record.attempt, mean_score(record));
        }
        let missing: BTreeSet<String> = cases_with_criteria(results, is_of_skill)
            .into_iter()
            .filter(|case| scores.get(case).is_none_or(|runs| runs.values().any(Option::is_none)))
            .collect();
        let mean = |scores: Vec<f64>| scores.iter().sum::<f64>() / scores.len().max(1) as f64;
        let cases: Vec<f64> = scores
            .values()
            .map(|runs| runs.values().copied().flatten().collect::<Vec<f64>>())
            .filter(|runs| !runs.is_empty())
            .map(mean)
            .collect();
        let average =
            (!cases.is_empty() && missing.is_empty()).then(|| (mean(cases) * 100.0).round() / 100.0);
        if !missing.is_empty() {
            let listed = missing.iter().take(10).map(|case| printable(case)).collect::<Vec<_>>().join(", ");
            notes.push(format!(
                "v{version} has no average_score in history.json, because {} {} no score here: {listed}",
                counted(missing.len(), "case"),
                if missing.len() == 1 { "has" } else { "have" },
            ));
        }
        ledger.keep_score(version, average, &when).map_err(std::io::Error::other)?;
    }
    ledger.close().map_err(std::io::Error::other)?;
    notes.extend(moved.into_iter().filter(|(_, count)| *count > 0).map(|(version, count)| {
        let gradings = counted(count, "grading");
        format!("{gradings} of v{version} from an earlier run moved to {EARLIER}")
    }));
    Ok(notes)
}

/// The mean score of the criteria from 1 to 5. `None` where one of them has no score.
fn mean_score(record: &TrialRecord) -> Option<f64> {
    let criteria = record.checks.iter().filter(|check| check.scale == Some(Scale::OneToFive));
    let scores = criteria.map(|check| check.score).collect::<Option<Vec<f64>>>()?;
    (!scores.is_empty()).then(|| scores.iter().sum::<f64>() / scores.len() as f64)
}

/// Where gradings of a version go that a later run of this version replaces, in the folder of gradings.
const EARLIER: &str = "earlier";

/// Moves the gradings of a version out of the way whose cases were run again, so that those of two runs are never
/// taken for one. Gives how many there were.
fn move_earlier(gradings: &Path, version: u32, ran: &BTreeSet<&str>) -> std::io::Result<usize> {
    let all = gradings_in(gradings)?.into_iter();
    let is_replaced =
        |grading: &Grading| grading.version == version && ran.contains(grading.case_id.as_str());
    let mut found: Vec<PathBuf> =
        all.filter(|(_, grading)| is_replaced(grading)).map(|(path, _)| path).collect();
    found.sort();
    let earlier = gradings.join(EARLIER);
    for path in &found {
        std::fs::create_dir_all(&earlier)?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let numbered = (2..).map(|number| format!("{stem}-{number}"));
        let mut places = std::iter::once(stem.clone()).chain(numbered);
        let place = places.find(|name| !earlier.join(format!("{name}.json")).exists()).unwrap_or(stem);
        std::fs::rename(path, earlier.join(format!("{place}.json")))?;
    }
    Ok(found.len())
}

/// The gradings in a folder, with their files.
fn gradings_in(folder: &Path) -> std::io::Result<Vec<(PathBuf, Grading)>> {
    const LARGEST: u64 = 4 * 1024 * 1024;
    let mut gradings = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let read = read_bounded(&path, LARGEST).ok();
        if let Some(grading) = read.and_then(|bytes| serde_json::from_slice(&bytes).ok()) {
            gradings.push((path, grading));
        }
    }
    Ok(gradings)
}

/// What each case of a version got in each run, by the gradings in a folder. `None` where a grading has no overall
/// score.
fn scores_in(folder: &Path, version: u32) -> std::io::Result<BTreeMap<String, BTreeMap<u32, Option<f64>>>> {
    let mut scores: BTreeMap<String, BTreeMap<u32, Option<f64>>> = BTreeMap::new();
    let of_version = gradings_in(folder)?.into_iter().map(|(_, grading)| grading);
    for grading in of_version.filter(|grading| grading.version == version) {
        let results = grading.results.iter().map(|of| f64::from(of.score)).collect::<Vec<f64>>();
        let mean = results.iter().sum::<f64>() / results.len().max(1) as f64;
        let score = grading.overall_score.map(|_| mean);
        scores.entry(grading.case_id).or_default().insert(grading.run, score);
    }
    Ok(scores)
}

/// The cases of a skill's evals that have criteria from 1 to 5, whether they ran or not.
fn cases_with_criteria(results: &Results, is_of_skill: &dyn Fn(&str) -> bool) -> BTreeSet<String> {
    let suites = results.info.suites.iter().map(|of| &of.suite);
    let suites = suites.filter(|suite| suite["name"].as_str().is_some_and(is_of_skill));
    let cases = suites.flat_map(|suite| suite["cases"].as_array().into_iter().flatten());
    let has_criteria = |case: &&Value| {
        let mut checks = case["checks"].as_array().into_iter().flatten();
        checks.any(|check| check["judge"]["scale"] == Scale::OneToFive.name())
    };
    cases.filter(has_criteria).filter_map(|case| Some(case["id"].as_str()?.to_owned())).collect()
}

/// A name that nothing has yet: there may be several agents, or ids that only look alike.
pub fn free(name: &str, taken: &mut BTreeSet<String>) -> String {
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    names.find(|name| taken.insert(name.clone())).unwrap_or_else(|| name.to_owned())
}

/// The skill that a suite examined. What its record does not say is looked up; what is gone is told by
/// its run.
fn graded(results: &Results, suite: &str, when: &str) -> GradedSkill {
    let (path, digest) = under_test(results, suite).unzip();
    let digest = digest.flatten().unwrap_or_else(|| Digest::of(results.info.run.as_bytes()));
    let kept = kept_skill(results, &digest);
    GradedSkill { path, digest, kept, when: when.to_owned() }
}

/// The copy of a skill in the record of this run, or of the run whose trials were graded again.
fn kept_skill(results: &Results, digest: &Digest) -> Option<PathBuf> {
    let earlier =
        results.info.graded_from.as_deref().and_then(|id| Some(results.run.path().parent()?.join(id)));
    let runs = std::iter::once(results.run.path().to_owned()).chain(earlier);
    runs.map(|run| run.join(SKILLS).join(digest.as_str())).find(|folder| folder.is_dir())
}

/// The skill that a suite examined: where it lies, and what it held when it ran.
fn under_test(results: &Results, suite: &str) -> Option<(PathBuf, Option<Digest>)> {
    let of_suite = results.info.suites.iter().find(|of| of.suite["name"] == *suite)?;
    match of_suite.skill.clone() {
        Some(RunSkill { path, digest }) => Some((path, Some(digest))),
        None => skill_file(results, suite).map(|path| {
            let now = digest_now(&path);
            (path, now)
        }),
    }
}

fn digest_now(skill: &Path) -> Option<Digest> {
    Contents::of(skill).ok()?.digest().ok()
}

/// The conventions that code can decide, of the skill that ran, and what a judge said of it.
fn compliance(results: &Results, suite: &str) -> ConventionCompliance {
    let said = results.summary.skills_judged.iter().find(|said| said.suite == suite);
    let seen = match under_test(results, suite) {
        Some((path, digest)) if digest.is_some() && digest_now(&path) == digest => {
            let file = if path.is_dir() { path.join(SKILL_FILE) } else { path };
            convention_compliance(&Draft::read(&file))
        }
        _ => ConventionCompliance::unknown("the skill has changed since it was graded, or is gone"),
    };
    seen.judged(said.and_then(|said| said.check(TYPE_ALIGNMENT)))
}

fn skill_file(results: &Results, suite: &str) -> Option<PathBuf> {
    let asked = results.info.suites.iter().find(|of| of.suite["name"] == *suite)?;
    let path = asked.suite["skill"]["path"].as_str()?;
    let path = tidy(&asked.origin.path.parent()?.join(path));
    Some(if path.is_dir() { path.join(SKILL_FILE) } else { path })
}

fn put(path: &Path, document: &impl Serialize) -> std::io::Result<()> {
    std::fs::write(path, format!("{:#}\n", serde_json::to_value(document)?))
}
