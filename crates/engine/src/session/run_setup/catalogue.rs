//! A catalogue of skills that are staged together, and the suite that measures which prompt activates which of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::EvalFiles;
use crate::plan::settings::project_root;
use practicum_core::model::{Diagnostics, SkillRef, count_with_noun};
use practicum_core::studies::CatalogueFacts;
use practicum_core::tree::closest_word;
use practicum_evals::dialects::{self, EvalFileLocation};
use practicum_evals::routing_prompts::RoutingPrompt;
use practicum_skills::lint::{FindError, find_skill_files};
use practicum_skills::skill::{SKILL_FILE, Skill, SkillError};

/// An error: a catalogue cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    /// No skills were found.
    #[error(transparent)]
    Find(#[from] FindError),
    /// A skill cannot be read.
    #[error(transparent)]
    Skill(#[from] SkillError),
    /// Two skills have the same name, so an agent would have only one of them.
    #[error("the skills {} and {} are both called {name}; an agent can only have one of them", one.display(), other.display())]
    SameName {
        /// The name.
        name: String,
        /// The path of the first.
        one: PathBuf,
        /// The path of the second.
        other: PathBuf,
    },
    /// There is only one skill, so there is nothing to choose.
    #[error("{} has only one skill; a catalogue needs two or more", .0.display())]
    OnlyOne(PathBuf),
}

/// Skills that are staged together.
pub struct SkillCatalogue {
    /// The skills, in the order of their paths.
    pub skills: Vec<Skill>,
}

impl SkillCatalogue {
    /// Reads all skills at and below these paths.
    pub fn read(paths: &[PathBuf]) -> Result<Self, CatalogueError> {
        let mut skills: Vec<Skill> = Vec::new();
        let mut known: BTreeMap<String, PathBuf> = BTreeMap::new();
        for file in find_skill_files(paths)? {
            let path = std::path::absolute(&file).unwrap_or(file);
            let skill = Skill::read(&path)?;
            if let Some(one) = known.insert(skill.name.clone(), skill.file.clone()) {
                return Err(CatalogueError::SameName { name: skill.name, one, other: skill.file });
            }
            skills.push(skill);
        }
        match skills.as_slice() {
            [only] => Err(CatalogueError::OnlyOne(only.file.clone())),
            _ => Ok(Self { skills }),
        }
    }

    /// Gives each skill's name and description.
    pub fn descriptions(&self) -> Vec<(String, String)> {
        let told = |skill: &Skill| (skill.name.clone(), skill.description.clone().unwrap_or_default());
        self.skills.iter().map(told).collect()
    }

    /// Reports the prompts that expect a skill that is not there.
    pub fn report_unknown_skills(&self, prompts: &[RoutingPrompt], diagnostics: &mut Diagnostics) {
        let names: Vec<&str> = self.skills.iter().map(|skill| skill.name.as_str()).collect();
        for prompt in prompts {
            for name in prompt.expected.iter().filter(|name| !names.contains(&name.as_str())) {
                let meant = closest_word(name, &names).map(|meant| format!("; did you mean \"{meant}\"?"));
                let problem = format!(
                    "the prompt {} expects the skill \"{name}\", which is not among the {}{}",
                    prompt.id,
                    count_with_noun(names.len(), "skill"),
                    meant.unwrap_or_default()
                );
                diagnostics.error("unknown-skill", None, problem);
            }
        }
    }

    /// Makes a suite in which every prompt is a case, with all skills staged. `rounds` gives how often a prompt is run,
    /// `goal` is stored for reports. The suite has no gates.
    pub fn evals(
        &self,
        prompts: &[RoutingPrompt],
        rounds: impl Fn(&RoutingPrompt) -> u32,
        goal: f64,
        folder: &Path,
    ) -> EvalFiles {
        let told =
            self.descriptions().into_iter().map(|(name, text)| name.chars().count() + text.chars().count());
        let facts = CatalogueFacts { goal, characters: told.sum::<usize>() as u64 };
        let names: Vec<&str> = self.skills.iter().map(|skill| skill.name.as_str()).collect();
        let case = |prompt: &RoutingPrompt| {
            let activation = match prompt.expected.as_slice() {
                [] => json!({"skills": names, "expect": "must_not"}),
                expected => json!({"skills": expected, "expect": "must"}),
            };
            let RoutingPrompt { id, prompt: text, .. } = prompt;
            json!({"id": id, "prompt": text, "activation": activation, "repeat": rounds(prompt)})
        };
        let document = json!({
            "practicum": 1,
            "name": "route",
            "workspace": "empty",
            "meta": facts.to_meta(),
            "cases": prompts.iter().map(case).collect::<Vec<_>>(),
        });
        let place = EvalFileLocation::new(folder.to_owned(), project_root(folder));
        let mut file =
            dialects::load_text(&folder.join("route.practicum.yaml"), document.to_string(), &place);
        if let Some(suite) = &mut file.lowered.suite {
            suite.skills = self.skills.iter().map(skill_ref).collect();
            suite.gates.clear();
        }
        EvalFiles::of_file(file)
    }
}

fn skill_ref(skill: &Skill) -> SkillRef {
    let is_folder = skill.file.file_name().is_some_and(|name| name == SKILL_FILE);
    let path = skill.file.parent().filter(|_| is_folder).unwrap_or(&skill.file);
    SkillRef { name: skill.name.clone(), path: Some(path.to_owned()), plugin: None }
}
