use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Value, json};

use super::grading::{Grading, mean};
use super::{Form, Report, Results, when};
use crate::lint::{ConventionCompliance, Draft, convention_compliance};
use crate::model::{Arm, TYPE_ALIGNMENT};
use crate::skill::{SKILL_FILE, tidy};

/// The files of writing-skills: a grading of each run whose criteria have scores from 1 to 5, and the
/// history of the versions that ran.
pub static REPORT: Report = Report {
    name: "writing-skills",
    about: "writing-skills' grading files and history.json, in a folder",
    form: Form::Folder(write),
    adds: None,
};

/// The scores of a version's runs.
type Versions = BTreeMap<u32, Vec<f64>>;

fn write(results: &Results, folder: &Path) -> std::io::Result<Vec<String>> {
    let gradings = folder.join("grading");
    std::fs::create_dir_all(&gradings)?;
    let mut versions = Versions::new();
    let mut conventions: BTreeMap<String, ConventionCompliance> = BTreeMap::new();
    let mut names = BTreeSet::new();
    for trial in results.all_trials() {
        let record = trial?;
        let Some(version) = version(record.condition.arm) else { continue };
        let scores = versions.entry(version).or_default();
        let suite = &record.suite;
        let compliance = conventions.entry(suite.clone()).or_insert_with(|| compliance(results, suite));
        let Some(grading) = Grading::of(&record, version, compliance) else { continue };
        let grading = grading.measured_in(&results.folder(&record));
        scores.push(grading.overall_score);
        put(&gradings.join(format!("{}.json", free(&grading.file_stem(), &mut names))), &grading)?;
    }
    put(&folder.join("history.json"), &history(results, &versions))?;
    Ok(Vec::new())
}

/// A name that nothing has yet: there may be several agents, or ids that only look alike.
pub fn free(name: &str, taken: &mut BTreeSet<String>) -> String {
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    names.find(|name| taken.insert(name.clone())).unwrap_or_else(|| name.to_owned())
}

/// Without the skill there is no version of it.
fn version(arm: Arm) -> Option<u32> {
    match arm {
        Arm::WithSkill => Some(0),
        Arm::Version(number) => Some(number),
        Arm::WithoutSkill => None,
    }
}

/// The conventions that code can decide, of the skill as it is now, and what a judge said of it.
fn compliance(results: &Results, suite: &str) -> ConventionCompliance {
    let said = results.summary.skills_judged.iter().find(|said| said.suite == suite);
    convention_compliance(&Draft::read(&skill_file(results, suite).unwrap_or_default()))
        .judged(said.and_then(|said| said.check(TYPE_ALIGNMENT)))
}

fn skill_file(results: &Results, suite: &str) -> Option<PathBuf> {
    let asked = results.info.suites.iter().find(|of| of.suite["name"] == *suite)?;
    let path = asked.suite["skill"]["path"].as_str()?;
    let path = tidy(&asked.origin.path.parent()?.join(path));
    Some(if path.is_dir() { path.join(SKILL_FILE) } else { path })
}

fn history(results: &Results, versions: &Versions) -> Value {
    let version = |(number, scores): (&u32, &Vec<f64>)| {
        json!({
            "version": number,
            "timestamp": when::to_the_second(&results.info.started),
            "description": if *number == 0 { "baseline" } else { "" },
            "git_hash": null,
            "path": format!("v{number}/skill"),
            "average_score": mean(scores.iter().copied()),
        })
    };
    let current = versions.keys().next_back().copied().unwrap_or_default();
    json!({"versions": versions.iter().map(version).collect::<Vec<Value>>(), "current_version": current})
}

fn put(path: &Path, document: &impl Serialize) -> std::io::Result<()> {
    std::fs::write(path, format!("{:#}\n", serde_json::to_value(document)?))
}
