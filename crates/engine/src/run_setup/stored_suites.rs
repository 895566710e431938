//! Loads the suites of a stored run from their current files.

use std::collections::BTreeMap;
use std::path::Path;

use super::suite_names::may_have_had_name;
use super::{RunSetupError, read_eval_files};
use crate::options::RunInputs;
use crate::settings::project_root;
use crate::store::{RunInfo, RunSuite};
use practicum_core::model::{Origin, SkillRef, Suite};
use practicum_evals::dialects::{self, EvalFileLocation, LocatedSuite};
use practicum_evals::discover::DiscoverError;
use practicum_skills::skill::Skill;

/// One suite of a stored run.
pub struct StoredSuite {
    /// The suite as it ran; `None` if its record cannot be read.
    pub original: Option<Suite>,
    /// The suite as its file has it today, or as it ran if the file is gone.
    pub current: LocatedSuite,
}

/// Gives the suites of a run in its order, with notices for the user.
pub fn stored_suites(
    info: &RunInfo,
    env: &BTreeMap<String, String>,
) -> Result<(Vec<StoredSuite>, Vec<String>), RunSetupError> {
    let mut notices = Vec::new();
    let mut suites = Vec::new();
    for kept in &info.suites {
        let then = recorded_suite(kept);
        let Origin { path, .. } = &kept.origin;
        let today = match (current_suite(kept, then.as_ref(), env)?, &then) {
            (Some(today), _) => today,
            (None, Some(then)) => {
                notices.push(format!(
                    "suite {} is no longer in {}, so its checks are those of the run",
                    then.name,
                    path.display()
                ));
                let root = path.parent().unwrap_or(path).to_owned();
                LocatedSuite { suite: then.clone(), project: project_root(&root), root }
            }
            (None, None) => {
                let problem = format!("the evals in {} are gone, and so is the run's copy", path.display());
                return Err(RunSetupError::CannotRun(vec![problem]));
            }
        };
        suites.push(StoredSuite { original: then, current: today });
    }
    Ok((suites, notices))
}

/// Reads the suite from the run's record.
fn recorded_suite(kept: &RunSuite) -> Option<Suite> {
    let folder = kept.origin.path.parent().unwrap_or(&kept.origin.path);
    let place = EvalFileLocation {
        root: folder.to_owned(),
        project: project_root(folder),
        plugins: None,
        skill: None,
    };
    let text = kept.suite.to_string();
    let suite = dialects::load_text(&folder.join("stored.practicum.yaml"), text, &place).lowered.suite?;
    Some(Suite { origin: kept.origin.clone(), ..suite })
}

/// Reads the suite from its current file, for the skill that was under test then. `None` if the file or the suite
/// in it is gone.
fn current_suite(
    kept: &RunSuite,
    then: Option<&Suite>,
    env: &BTreeMap<String, String>,
) -> Result<Option<LocatedSuite>, RunSetupError> {
    let dialect = dialects::find_dialect(&kept.origin.dialect).map(|dialect| dialect.name().to_owned());
    let ask = RunInputs { paths: vec![kept.origin.path.clone()], dialect, ..RunInputs::default() };
    let name = then.map(|then| then.name.as_str()).or_else(|| kept.suite["name"].as_str());
    // The user may have chosen the skill. A file may need one, and some formats name their suites after it.
    let chosen = then.and_then(|then| match then.skills.as_slice() {
        [SkillRef { path: Some(path), .. }] if Skill::read(path).is_ok() => Some(path.clone()),
        _ => None,
    });
    let found = match (suite_by_name(&ask, name, env), chosen) {
        (Ok(None) | Err(RunSetupError::CannotRun(_)), Some(skill)) => {
            suite_by_name(&RunInputs { skill: Some(skill), ..ask }, name, env)?
        }
        (own, _) => own?,
    };
    let Some(mut placed) = found else { return Ok(None) };
    // The user may have chosen another skill for the run.
    if let Some([skill]) = then.map(|then| then.skills.as_slice())
        && placed.suite.skills.iter().all(|own| own.name != skill.name)
    {
        placed.suite.set_tested_skill(skill.clone());
    }
    // The user may also have asked for predicted activation, whatever the file says.
    if then.is_some_and(Suite::predicts_activation) && !placed.suite.predicts_activation() {
        placed.suite.switch_to_predicted_activation();
    }
    Ok(Some(placed))
}

/// Finds the suite of this name. In the run it may have had a longer name because others had the same.
fn suite_by_name(
    ask: &RunInputs,
    name: Option<&str>,
    env: &BTreeMap<String, String>,
) -> Result<Option<LocatedSuite>, RunSetupError> {
    let reading = match read_eval_files(ask, env) {
        Err(RunSetupError::Discover(
            DiscoverError::Missing(_) | DiscoverError::NoEvals(_) | DiscoverError::AllSkipped { .. },
        )) => return Ok(None),
        reading => reading?,
    };
    if reading.has_errors() {
        return Err(RunSetupError::CannotRun(
            ask.paths.iter().map(|path| unreadable_file_message(path)).collect(),
        ));
    }
    let Some(name) = name else { return Ok(None) };
    let mut suites = reading.into_suites()?.into_iter();
    Ok(suites.find(|placed| may_have_had_name(placed, name)).map(|mut placed| {
        name.clone_into(&mut placed.suite.name);
        placed
    }))
}

fn unreadable_file_message(path: &Path) -> String {
    format!("{0} cannot be understood any more; practicum check {0} says why", path.display())
}
