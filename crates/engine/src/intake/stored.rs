//! The evals of a run that was made, as they are today.

use std::collections::BTreeMap;
use std::path::Path;

use super::names::is_called;
use super::{IntakeError, read};
use crate::options::RunInputs;
use crate::settings::project_root;
use crate::store::{RunInfo, RunSuite};
use practicum_core::model::{Origin, SkillRef, Suite};
use practicum_evals::dialects::{self, Place, Placed};
use practicum_evals::discover::DiscoverError;
use practicum_skills::skill::Skill;

/// One suite of a stored run.
pub struct Stored {
    /// As it was when it ran; `None` if the record of it cannot be read.
    pub then: Option<Suite>,
    /// As its file says it today, or as it was where that is gone.
    pub today: Placed,
}

/// The suites of a run, in its order, with what the user should know of them.
pub fn stored_suites(
    info: &RunInfo,
    env: &BTreeMap<String, String>,
) -> Result<(Vec<Stored>, Vec<String>), IntakeError> {
    let mut notices = Vec::new();
    let mut suites = Vec::new();
    for kept in &info.suites {
        let then = as_it_was(kept);
        let Origin { path, .. } = &kept.origin;
        let today = match (today(kept, then.as_ref(), env)?, &then) {
            (Some(today), _) => today,
            (None, Some(then)) => {
                notices.push(format!(
                    "suite {} is no longer in {}, so its checks are those of the run",
                    then.name,
                    path.display()
                ));
                let root = path.parent().unwrap_or(path).to_owned();
                Placed { suite: then.clone(), project: project_root(&root), root }
            }
            (None, None) => {
                let problem = format!("the evals in {} are gone, and so is the run's copy", path.display());
                return Err(IntakeError::Missing(vec![problem]));
            }
        };
        suites.push(Stored { then, today });
    }
    Ok((suites, notices))
}

/// The suite as the run's record has it.
fn as_it_was(kept: &RunSuite) -> Option<Suite> {
    let folder = kept.origin.path.parent().unwrap_or(&kept.origin.path);
    let place = Place { root: folder.to_owned(), project: project_root(folder), plugins: None, skill: None };
    let text = kept.suite.to_string();
    let suite = dialects::load_text(&folder.join("stored.practicum.yaml"), text, &place).lowered.suite?;
    Some(Suite { origin: kept.origin.clone(), ..suite })
}

/// The suite as its file says it now, about the skill that was under test then. `None` where the file
/// or the suite in it is gone.
fn today(
    kept: &RunSuite,
    then: Option<&Suite>,
    env: &BTreeMap<String, String>,
) -> Result<Option<Placed>, IntakeError> {
    let dialect = dialects::dialect(&kept.origin.dialect).map(|dialect| dialect.name().to_owned());
    let ask = RunInputs { paths: vec![kept.origin.path.clone()], dialect, ..RunInputs::default() };
    let name = then.map(|then| then.name.as_str()).or_else(|| kept.suite["name"].as_str());
    // The user may have chosen the skill. A file may need one, and some formats name their suites after it.
    let chosen = then.and_then(|then| match then.skills.as_slice() {
        [SkillRef { path: Some(path), .. }] if Skill::read(path).is_ok() => Some(path.clone()),
        _ => None,
    });
    let found = match (named(&ask, name, env), chosen) {
        (Ok(None) | Err(IntakeError::Missing(_)), Some(skill)) => {
            named(&RunInputs { skill: Some(skill), ..ask }, name, env)?
        }
        (own, _) => own?,
    };
    let Some(mut placed) = found else { return Ok(None) };
    // The run may have been about a skill of the user's choice.
    if let Some([skill]) = then.map(|then| then.skills.as_slice())
        && placed.suite.skills.iter().all(|own| own.name != skill.name)
    {
        placed.suite.put_under_test(skill.clone());
    }
    // Or its activation predicted, whatever the file says.
    if then.is_some_and(Suite::predicts_activation) && !placed.suite.predicts_activation() {
        placed.suite.predict_activation();
    }
    Ok(Some(placed))
}

/// The suite of this name, which in the run may have stood beside others of the same.
fn named(
    ask: &RunInputs,
    name: Option<&str>,
    env: &BTreeMap<String, String>,
) -> Result<Option<Placed>, IntakeError> {
    let reading = match read(ask, env) {
        Err(IntakeError::Discover(
            DiscoverError::Missing(_) | DiscoverError::Nothing(_) | DiscoverError::Ignored { .. },
        )) => return Ok(None),
        reading => reading?,
    };
    if reading.has_errors() {
        return Err(IntakeError::Missing(ask.paths.iter().map(|path| broken(path)).collect()));
    }
    let Some(name) = name else { return Ok(None) };
    let mut suites = reading.into_suites()?.into_iter();
    Ok(suites.find(|placed| is_called(placed, name)).map(|mut placed| {
        name.clone_into(&mut placed.suite.name);
        placed
    }))
}

fn broken(path: &Path) -> String {
    format!("{0} cannot be understood any more; practicum check {0} says why", path.display())
}
