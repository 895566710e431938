//! Loads the suites of a stored run from their current files.

use std::collections::BTreeMap;
use std::path::Path;

use super::suite_names::may_have_had_name;
use super::{RunSetupError, read_eval_files};
use crate::plan::options::RunInputs;
use crate::plan::settings::project_root;
use crate::store::RunInfo;
use practicum_core::model::{SkillRef, Suite};
use practicum_evals::dialects::{self, EvalRegistry, LocatedSuite};
use practicum_evals::discover::DiscoverError;
use practicum_skills::skill::Skill;

/// One suite of a stored run.
pub struct StoredSuite {
    /// The suite as it ran.
    pub original: Suite,
    /// The suite as its file has it today, or as it ran if the file is gone.
    pub current: LocatedSuite,
}

/// Gives the suites of a run in its order, with notices for the user.
pub fn stored_suites(
    info: &RunInfo,
    env: &BTreeMap<String, String>,
    registry: &EvalRegistry,
) -> Result<(Vec<StoredSuite>, Vec<String>), RunSetupError> {
    let mut notices = Vec::new();
    let mut suites = Vec::new();
    for kept in info.suites.iter() {
        let then = with_known_checks(&kept.suite, registry)?;
        let current = current_suite(&then, env, registry)?.unwrap_or_else(|| {
            let path = &then.origin.path;
            notices.push(format!(
                "suite {} is no longer in {}, so its checks are those of the run",
                then.name,
                path.display()
            ));
            let root = path.parent().unwrap_or(path).to_owned();
            LocatedSuite { suite: then.clone(), project: project_root(&root), root }
        });
        suites.push(StoredSuite { original: then, current });
    }
    Ok((suites, notices))
}

/// Reads the checks of a recorded suite again that the record was read without: those a program adds.
fn with_known_checks(suite: &Suite, registry: &EvalRegistry) -> Result<Suite, RunSetupError> {
    let document = dialects::encode_stored_suite(suite);
    dialects::decode_stored_suite(&document, suite.origin.clone(), registry)
        .map_err(|why| RunSetupError::CannotRun(vec![why]))
}

/// Reads the suite from its current file, for the skill that was under test then. `None` if the file or the suite
/// in it is gone.
fn current_suite(
    then: &Suite,
    env: &BTreeMap<String, String>,
    registry: &EvalRegistry,
) -> Result<Option<LocatedSuite>, RunSetupError> {
    let dialect = registry.format(&then.origin.dialect).map(|dialect| dialect.name().to_owned());
    let ask = RunInputs { paths: vec![then.origin.path.clone()], dialect, ..RunInputs::default() };
    let name = then.name.as_str();
    // The user may have chosen the skill. A file may need one, and some formats name their suites after it.
    let chosen = match then.skills.as_slice() {
        [SkillRef { path: Some(path), .. }] if Skill::read(path).is_ok() => Some(path.clone()),
        _ => None,
    };
    let found = match (suite_by_name(&ask, name, env, registry), chosen) {
        (Ok(None) | Err(RunSetupError::CannotRun(_)), Some(skill)) => {
            suite_by_name(&RunInputs { skill: Some(skill), ..ask }, name, env, registry)?
        }
        (own, _) => own?,
    };
    let Some(mut placed) = found else { return Ok(None) };
    // The user may have chosen another skill for the run.
    if let [skill] = then.skills.as_slice()
        && placed.suite.skills.iter().all(|own| own.name != skill.name)
    {
        placed.suite.set_tested_skill(skill.clone());
    }
    // The user may also have asked for predicted activation, whatever the file says.
    if then.predicts_activation() && !placed.suite.predicts_activation() {
        placed.suite.switch_to_predicted_activation();
    }
    Ok(Some(placed))
}

/// Finds the suite of this name. In the run it may have had a longer name because others had the same.
fn suite_by_name(
    ask: &RunInputs,
    name: &str,
    env: &BTreeMap<String, String>,
    registry: &EvalRegistry,
) -> Result<Option<LocatedSuite>, RunSetupError> {
    let reading = match read_eval_files(ask, env, registry) {
        Err(RunSetupError::Discover(
            DiscoverError::Missing(_) | DiscoverError::NoEvals { .. } | DiscoverError::AllSkipped { .. },
        )) => return Ok(None),
        reading => reading?,
    };
    if reading.has_errors() {
        return Err(RunSetupError::CannotRun(
            ask.paths.iter().map(|path| unreadable_file_message(path)).collect(),
        ));
    }
    let mut suites = reading.into_suites()?.into_iter();
    Ok(suites.find(|placed| may_have_had_name(placed, name)).map(|mut placed| {
        name.clone_into(&mut placed.suite.name);
        placed
    }))
}

fn unreadable_file_message(path: &Path) -> String {
    format!("{0} cannot be understood any more; practicum check {0} says why", path.display())
}
