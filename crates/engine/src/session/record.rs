//! Makes the record of a run before its first trial.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use crate::plan::Plan;
use crate::plan::trial_key::digest_of_path;
use crate::store::{PlannedTrial, RunDir, RunInfo, RunSetting, RunSkill, RunSuite, RunSuites, SKILLS_FOLDER};
use practicum_core::model::{Case, Check, CheckKind, Digest, ScoreScale, SkillRef, Suite};
use practicum_skills::versions::SkillContents;

/// Makes the record of a run before its first trial. The command that starts it is added elsewhere.
pub fn run_info(plan: &Plan, run_dir: &RunDir, scripted: bool, notices: Vec<String>) -> RunInfo {
    let mut digests = Digests::default();
    let suites = plan.suites.iter().map(|planned| {
        let settings = planned.settings.explain().into_iter();
        let settings = settings
            .map(|(name, value, from)| (name.to_owned(), RunSetting { value, from: from.to_string() }));
        RunSuite {
            suite: planned.suite.clone(),
            skill: digests.under_test(&planned.suite),
            given_files: digests.given_files(&planned.suite),
            settings: settings.collect(),
        }
    });
    let trials = plan.trials.iter().map(|trial| {
        let (planned, case) = plan.suite_and_case(trial);
        PlannedTrial {
            id: trial.id.clone(),
            suite: planned.suite.name.clone(),
            case: case.id.clone(),
            condition: trial.condition.clone(),
            attempt: trial.attempt,
        }
    });
    RunInfo {
        schema_version: 1,
        run: run_dir.id().to_owned(),
        started: jiff::Timestamp::now().to_string(),
        practicum: env!("CARGO_PKG_VERSION").to_owned(),
        suites: RunSuites(suites.collect()),
        trials: trials.collect(),
        scripted,
        command: Vec::new(),
        folder: std::env::current_dir().unwrap_or_default(),
        project: run_dir.project().unwrap_or_default(),
        notices,
        graded_from: None,
        earlier_skill: None,
        not_in_history: None,
        replayed: false,
        gates: Vec::new(),
        sample: plan.sample.clone(),
        count_flaky: false,
        trusted_code: None,
        options: None,
    }
}

/// Describes the skill under test as it is now. `None` if there is none, or several, or it is not a folder.
pub fn skill_under_test(suite: &Suite) -> Option<RunSkill> {
    Digests::default().under_test(suite)
}

/// Copies skills whose trials may get scores from 1 to 5 into the record of a run. A history of gradings needs the
/// files of each version, even if the skill changes before a report is written. A copy that fails does not stop
/// the run; the returned notices say so.
pub(super) fn keep_graded_skills(info: &RunInfo, run: &RunDir) -> Vec<String> {
    let mut notices = Vec::new();
    for of in info.suites.iter() {
        let is_scored = |check: &Check| matches!(&check.kind, CheckKind::Judged(judged) if judged.scale == ScoreScale::OneToFive);
        let is_graded = of.suite.cases.iter().flat_map(|case| &case.checks).any(is_scored);
        if let Some(RunSkill { path, digest }) = of.skill.as_ref().filter(|_| is_graded) {
            let folder = run.path().join(SKILLS_FOLDER).join(digest.as_str());
            if !folder.exists() && keep(path, &folder).is_none() {
                notices.push(format!("the skill {} could not be kept in the record", path.display()));
            }
        }
    }
    notices
}

fn keep(skill: &Path, folder: &Path) -> Option<PathBuf> {
    std::fs::create_dir_all(folder).ok()?;
    SkillContents::scan(skill).ok()?.copy_to(folder).ok()
}

/// The digests of skills, files and folders, each computed once for all suites that use it.
#[derive(Default)]
pub struct Digests {
    skills: HashMap<PathBuf, Option<Digest>>,
    given: HashMap<PathBuf, Digest>,
}

impl Digests {
    /// Describes the skill under test of a suite. `None` if there is no skill, or several, or it is not a folder.
    pub(crate) fn under_test(&mut self, suite: &Suite) -> Option<RunSkill> {
        let [SkillRef { path: Some(path), .. }] = suite.skills.as_slice() else { return None };
        let held = || SkillContents::scan(path).and_then(|contents| contents.digest()).ok();
        let digest = self.skills.entry(path.clone()).or_insert_with(held).clone()?;
        Some(RunSkill { path: path.clone(), digest })
    }

    /// Gives the digest of the fixtures and overlays of each case, by the case's id. Cases without any are left out.
    pub fn given_files(&mut self, suite: &Suite) -> BTreeMap<String, Digest> {
        let mut of_cases = BTreeMap::new();
        for Case { id, workspace, .. } in &suite.cases {
            let paths = workspace.files.iter().map(|file| &file.source).chain(&workspace.overlays);
            let held = paths.map(|path| {
                self.given.entry(path.clone()).or_insert_with(|| digest_of_path(path)).as_str().to_owned()
            });
            let held: Vec<String> = held.collect();
            if !held.is_empty() {
                of_cases.insert(id.clone(), Digest::of_parts(held.iter().map(String::as_bytes)));
            }
        }
        of_cases
    }
}
