//! Eval files, found and read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::given_away::GivenAway;
use super::{Ask, IntakeError, slash_commands};
use crate::dialects::{self, Dialect, Loaded, Place, Placed};
use crate::discover::{self, By, Found, Search};
use crate::model::{Expect, SkillRef};
use crate::quality;
use crate::settings::{Projects, project_root};
use crate::skill::Skill;

/// The files that were found, read.
pub struct Reading {
    pub files: Vec<Loaded>,
    /// For each file, the project it belongs to.
    projects: Vec<PathBuf>,
    /// The skill under test, if the user names one.
    skill: Option<SkillRef>,
}

impl Reading {
    /// Has each of these skills examined as it is elsewhere. `moved` gives where, or `None` to leave a skill
    /// as it is. Gives how many were moved.
    pub fn examine_elsewhere<E>(
        &mut self,
        mut moved: impl FnMut(&Path) -> Result<Option<PathBuf>, E>,
    ) -> Result<usize, E> {
        let suites = self.files.iter_mut().filter_map(|file| file.lowered.suite.as_mut());
        let skills = suites.flat_map(|suite| suite.skills.iter_mut());
        let mut count = 0;
        for path in skills.chain(&mut self.skill).filter_map(|skill| skill.path.as_mut()) {
            if let Some(elsewhere) = moved(path)? {
                *path = elsewhere;
                count += 1;
            }
        }
        Ok(count)
    }

    pub fn has_errors(&self) -> bool {
        self.files.iter().any(|file| file.lowered.diagnostics.has_errors())
    }

    /// The suites that could be understood.
    pub fn into_suites(self) -> Result<Vec<Placed>, IntakeError> {
        let placed = self.files.into_iter().zip(self.projects).filter_map(|(file, project)| {
            Some(Placed { suite: file.lowered.suite?, root: file.root, project })
        });
        let mut suites = dialects::merge_folders(placed);
        if let Some(skill) = &self.skill {
            for Placed { suite, .. } in &mut suites {
                if !suite.put_under_test(skill.clone()) {
                    let (skill, suite) = (skill.name.clone(), suite.name.clone());
                    return Err(IntakeError::NotOfSuite { skill, suite });
                }
            }
        }
        Ok(suites)
    }
}

/// Finds and reads eval files.
pub fn read(ask: &Ask, env: &BTreeMap<String, String>) -> Result<Reading, IntakeError> {
    let forced: Option<&'static dyn Dialect> = ask.dialect.and_then(dialects::dialect);
    let search = Search { paths: ask.paths.clone(), evals: ask.evals.clone(), skillet: skillet_dir(env) };
    let found = discover::discover(&search, &project_root)?;
    let named_skill = ask.skill.clone().or_else(|| search.skill_of_evals());
    let plugins = env.get("CLAUDE_1337_PLUGINS").filter(|path| !path.is_empty()).map(PathBuf::from);
    let mut projects = Projects::default();
    let skill = match &named_skill {
        Some(path) => Some(skill_at(path)?),
        None => None,
    };
    let under_test = skill.as_ref().and_then(|skill| skill.path.clone());
    let mut places = Vec::new();
    let mut sought = Vec::new();
    for Found { file, root, skill, by } in found {
        let project = projects.of(&file);
        let skill = under_test.clone().or(skill);
        places.push((file, Place { root, project, plugins: plugins.clone(), skill }));
        sought.push(by);
    }
    let mut files = load_all(&places, forced);
    let given: Vec<PathBuf> = search.named_skills();
    for (file, (_, place)) in files.iter_mut().zip(&places) {
        put_under_given(file, place, &given);
    }
    let projects = places.into_iter().map(|(_, place)| place.project);
    let given = GivenAway::by(&files);
    let kept = files.into_iter().zip(projects).zip(sought).filter_map(|((file, project), by)| {
        let is_exam = by == By::Name || !given.has(&file.path);
        is_exam.then_some((file, project))
    });
    let (mut files, projects): (Vec<Loaded>, Vec<PathBuf>) = kept.unzip();
    // A skill that cannot be read is told of where it is staged.
    let beside = ask.with_skills.iter().filter_map(|path| skill_at(path).ok());
    let named: Vec<SkillRef> = skill.iter().cloned().chain(beside).collect();
    slash_commands::review(&mut files, &projects, &named);
    Ok(Reading { files, projects, skill })
}

/// Where Skillet keeps evals, if not in the home of the user.
const SKILLET_DIR: &str = "SKILLET_DIR";

fn skillet_dir(env: &BTreeMap<String, String>) -> Option<PathBuf> {
    let own = env.get(SKILLET_DIR).filter(|path| !path.is_empty()).map(PathBuf::from);
    own.or_else(|| env.get("HOME").map(|home| Path::new(home).join(".skillet")))
}

/// Evals that name no skill are about the one that the user names and they were found for.
fn put_under_given(file: &mut Loaded, place: &Place, given: &[PathBuf]) {
    let Some(suite) = file.lowered.suite.as_mut().filter(|suite| suite.skills.is_empty()) else { return };
    let around = given.iter().filter(|skill| file.path.starts_with(skill));
    let skill = place.skill.as_ref().or_else(|| around.max_by_key(|skill| skill.components().count()));
    // A skill that cannot be read is told of by those who name it.
    if let Some(skill) = skill.and_then(|path| skill_at(path).ok()) {
        suite.put_under_test(skill);
    }
}

pub(super) fn skill_at(path: &Path) -> Result<SkillRef, IntakeError> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    Ok(SkillRef { name: Skill::read(&path)?.name, path: Some(path), plugin: None })
}

/// A suite that no file holds: one prompt, and whether the skill must fire.
pub fn one_prompt(prompt: &str, skill: &Path, expect: Expect, runs: u32) -> Result<Reading, IntakeError> {
    let path = std::path::absolute(skill).unwrap_or_else(|_| skill.to_owned());
    let skill = Skill::read(&path)?;
    let document = json!({
        "practicum": 1,
        "name": "try",
        "skill": {"name": skill.name, "path": path},
        "workspace": "empty",
        "run": {"repeat": runs},
        "cases": [{"id": "prompt", "prompt": prompt, "activation": expect.name()}],
    });
    let here = std::env::current_dir().unwrap_or_default();
    let place = Place { root: here.clone(), project: project_root(&here), plugins: None, skill: None };
    let file = dialects::load_text(&here.join("try.practicum.yaml"), document.to_string(), &place);
    Ok(Reading { files: vec![file], projects: vec![place.project], skill: None })
}

/// Reads the files on as many threads as there are cores, and gives them in their order.
fn load_all(places: &[(PathBuf, Place)], forced: Option<&'static dyn Dialect>) -> Vec<Loaded> {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let share = places.len().div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        let readers: Vec<_> = places
            .chunks(share)
            .map(|chunk| {
                scope.spawn(move || {
                    chunk.iter().map(|(file, place)| load_one(file, place, forced)).collect::<Vec<_>>()
                })
            })
            .collect();
        readers
            .into_iter()
            .flat_map(|reader| reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

fn load_one(file: &Path, place: &Place, forced: Option<&'static dyn Dialect>) -> Loaded {
    let mut loaded = dialects::load(file, place, forced);
    if let Some(suite) = &loaded.lowered.suite {
        quality::review(suite, &loaded.text, &mut loaded.lowered.diagnostics);
    }
    loaded.lowered.diagnostics.sort();
    loaded
}
