//! Finds and reads eval files.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use serde_json::json;

use super::fixture_paths::FixturePaths;
use super::{RunSetupError, find_missing_requirements, slash_commands, unfit_fixtures};
use crate::plan::options::{CaseKind, RunInputs};
use crate::plan::settings::{ProjectRoots, project_root};
use crate::plan::suite_quality;
use crate::plan::{CaseFilter, CaseGlob, MissingRequirements};
use practicum_core::model::{
    ActivationExpectation, CheckKind, LoadedSuite, SkillRef, Suite, count_with_noun,
};
use practicum_evals::dialects::{self, Dialect, EvalFileLocation, EvalRegistry, LoadedFile, LocatedSuite};
use practicum_evals::discover::{self, DiscoveryMethod, DiscoveryResult, EvalFile, EvalSearch, SkippedFile};
use practicum_skills::skill::{Skill, SkillCache};

/// The eval files that were found and read.
pub struct EvalFiles {
    pub files: Vec<LoadedFile>,
    /// The skill under test, if the user names one.
    skill: Option<SkillRef>,
    /// Notices about how the files were found.
    pub notices: Vec<String>,
    /// Files that were found but not read: they contain no evals, git ignores them, or they are dependencies.
    pub skipped: Vec<PathBuf>,
    /// The formats and checks that were known.
    pub(crate) registry: EvalRegistry,
    /// The skills that were read with the files.
    pub skills: SkillCache,
}

/// The codes of diagnostics about a skill that is not on this machine.
const MISSING_SKILL_CODES: [&str; 3] = ["skill-not-found", "several-skills", "unreadable-skill"];

impl EvalFiles {
    /// Makes the reading of one file that was made and not found.
    pub(super) fn of_file(file: LoadedFile) -> Self {
        Self {
            registry: EvalRegistry::default(),
            files: vec![file],
            skill: None,
            notices: Vec::new(),
            skipped: Vec::new(),
            skills: SkillCache::default(),
        }
    }

    /// Turns the warnings about missing skills into errors, for a run. Someone who only checks a file may not have
    /// its skill.
    pub(crate) fn refuse_missing_skills(&mut self) {
        for LoadedFile { lowered: LoadedSuite { suite, diagnostics }, .. } in &mut self.files {
            let Some(suite) = suite else { continue };
            let suite = with_tested_skill(suite, self.skill.as_ref());
            // A problem without a warning so far is reported when the suite is put together.
            if !find_missing_requirements(&suite, &self.skills).skills.is_empty() {
                diagnostics.raise_to_errors(&MISSING_SKILL_CODES);
            }
        }
    }

    /// Turns the warnings about missing files into errors, if a selected case needs one. The eval files themselves
    /// are usable: only the cases that need the missing files cannot run.
    pub fn refuse_missing_files(&mut self, filter: &CaseFilter) {
        for LoadedFile { lowered: LoadedSuite { suite, diagnostics }, .. } in &mut self.files {
            let Some(suite) = suite else { continue };
            let suite = with_tested_skill(suite, self.skill.as_ref());
            let wanted: HashSet<&str> =
                filter.wanted_cases(&suite).into_iter().map(|case| case.id.as_str()).collect();
            let MissingRequirements { mut files, .. } = find_missing_requirements(&suite, &self.skills);
            files.retain(|case, _| wanted.contains(case.as_str()));
            let unfit = unfit_fixtures(&suite, &self.skills).into_iter();
            for (case, why) in unfit.filter(|(case, _)| wanted.contains(case.as_str())) {
                diagnostics.error("unfit-file", None, format!("case {case}: {}", why.join("; ")));
            }
            if !files.is_empty() && !diagnostics.raise_to_errors(&["file-not-found"]) {
                for (case, why) in files {
                    diagnostics.error("file-not-found", None, format!("case {case}: {}", why.join("; ")));
                }
            }
        }
    }

    /// Leaves out what would keep the selected cases from running: broken cases of the same file, and missing
    /// skills that no selected case is about. What is left out stays a warning.
    pub(crate) fn leave_out_unselected(&mut self, filter: &CaseFilter) {
        if !filter.is_selective() {
            return;
        }
        for file in &mut self.files {
            // Of a broken case nobody knows its kind, only its id.
            let is_wanted = |id: &String| filter.cases.is_empty() || filter.wants_id(id);
            let rest = file.rest_of_suite.take_if(|rest| !rest.broken_cases.iter().any(is_wanted));
            let rest = rest.map(|rest| rest.suite).filter(|suite| filter.wants_some_of(suite));
            if let Some(suite) = rest {
                file.lowered.diagnostics.lower_to_warnings();
                suite_quality::review_suite(&suite, &file.text, &self.skills, &mut file.lowered.diagnostics);
                file.lowered.diagnostics.sort();
                file.lowered.suite = Some(suite);
            }
            if let Some(suite) = &mut file.lowered.suite {
                leave_out_unneeded_skills(suite, filter);
            }
        }
    }

    /// Says whether an invalid file may contain a selected case, and describes the other invalid files.
    pub(crate) fn invalid_files(&self, filter: &CaseFilter) -> (bool, Vec<String>) {
        let cases = self.files.iter().filter_map(|file| file.lowered.suite.as_ref()).flat_map(|of| &of.cases);
        let ids: HashSet<&str> = cases.map(|case| case.id.as_str()).collect();
        // If an id without wildcards was found, other files need not be searched for it.
        let is_found = |glob: &CaseGlob| glob.is_literal && ids.iter().any(|id| glob.matches(id));
        let all_found = !filter.cases.is_empty() && filter.cases.iter().all(is_found);
        let mut notices = Vec::new();
        let mut any = false;
        for file in self.files.iter().filter(|file| file.lowered.diagnostics.has_errors()) {
            let may_be_wanted = match self.case_id_of_file(file) {
                Some(id) => filter.wants_id(&id),
                None => !all_found || ids.iter().any(|id| filter.wants_id(id) && may_name(&file.text, id)),
            };
            let is_other_kind =
                filter.only == Some(CaseKind::Artifact) && dialects::is_trigger_file(&file.path);
            any |= may_be_wanted && !is_other_kind;
            let path = file.path.display();
            if is_other_kind {
                notices.push(format!("{path} cannot be understood; trigger queries are not asked for"));
            } else if !may_be_wanted {
                notices.push(format!("{path} cannot be understood, and does not name a case that is wanted"));
            }
        }
        (any, notices)
    }

    /// Gives the id of the only case of a file, if the format makes it from the file's path.
    pub fn case_id_of_file(&self, file: &LoadedFile) -> Option<String> {
        dialects::case_id_of_file(file, &self.registry)
    }

    /// Says whether no case that was read has an id that matches this pattern.
    pub fn has_no_case(&self, glob: &str) -> bool {
        let mut cases =
            self.files.iter().filter_map(|file| file.lowered.suite.as_ref()).flat_map(|of| &of.cases);
        CaseGlob::new(glob).is_none_or(|glob| !cases.any(|case| glob.matches(&case.id)))
    }

    /// Replaces the folders of skills. `moved` gives the new folder of a skill, or `None` to leave it. Returns how
    /// many were replaced.
    pub fn redirect_skills<E>(
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

    /// Says whether the user names the skill under test, whatever the files say.
    pub fn names_skill(&self) -> bool {
        self.skill.is_some()
    }

    /// Gives the suites that could be read.
    pub fn into_suites(self) -> Result<Vec<LocatedSuite>, RunSetupError> {
        let placed = self.files.into_iter().filter_map(|file| {
            Some(LocatedSuite { suite: file.lowered.suite?, root: file.root, project: file.project })
        });
        let mut suites = dialects::merge_folders(placed, &self.registry);
        if let Some(skill) = &self.skill {
            for LocatedSuite { suite, .. } in &mut suites {
                if !suite.set_tested_skill(skill.clone()) {
                    let (skill, suite) = (skill.name.clone(), suite.name.clone());
                    return Err(RunSetupError::SkillNotInSuite { skill, suite });
                }
            }
        }
        Ok(suites)
    }
}

/// Finds and reads eval files, in the formats and with the checks that are known.
pub fn read_eval_files(
    ask: &RunInputs,
    env: &BTreeMap<String, String>,
    registry: &EvalRegistry,
) -> Result<EvalFiles, RunSetupError> {
    let forced: Option<&'static dyn Dialect> = ask.dialect.as_deref().and_then(|name| registry.format(name));
    let search = EvalSearch {
        paths: ask.paths.clone(),
        evals: ask.evals.clone(),
        skillet: dialects::skillet_folder(env),
        registry: registry.clone(),
    };
    let DiscoveryResult { files: found, skipped, skill: beside } =
        discover::discover(&search, &project_root)?;
    if let (Some(skill), Some(beside)) = (&ask.skill, &beside) {
        let problem = format!("{} has no evals, and --skill names {}", beside.display(), skill.display());
        return Err(RunSetupError::CannotRun(vec![problem]));
    }
    let mut notices: Vec<String> = beside
        .iter()
        .map(|skill| format!("{} has no evals of its own; it is the skill under test", skill.display()))
        .collect();
    let named_skill = ask.skill.clone().or_else(|| search.skill_of_evals()).or(beside);
    let plugins = dialects::plugins_folder(env);
    let mut projects = ProjectRoots::default();
    let skill = match &named_skill {
        Some(path) => Some(skill_ref_at(path)?),
        None => None,
    };
    let under_test = skill.as_ref().and_then(|skill| skill.path.clone());
    let skills = SkillCache::default();
    let mut places = Vec::new();
    let mut sought = Vec::new();
    for EvalFile { file, root, skill, found_by: by } in found {
        let project = projects.root_of(&file);
        let skill = under_test.clone().or(skill);
        places.push((
            file,
            EvalFileLocation {
                root,
                project,
                plugins: plugins.clone(),
                skill,
                registry: registry.clone(),
                skills: skills.clone(),
            },
        ));
        sought.push(by);
    }
    let mut files = load_all(&places, forced);
    let given: Vec<PathBuf> = search.named_skills();
    for (file, (_, place)) in files.iter_mut().zip(&places) {
        assign_named_skill(file, place, &given);
    }
    let given = FixturePaths::from_files(&files);
    let kept = files.into_iter().zip(sought);
    let kept = kept.filter(|(file, by)| *by == DiscoveryMethod::Name || !given.has(&file.path));
    let mut files: Vec<LoadedFile> = kept.map(|(file, _)| file).collect();
    // A skill that cannot be read is reported when it is staged.
    let beside = ask.with_skills.iter().filter_map(|path| skill_ref_at(path).ok());
    let named: Vec<SkillRef> = skill.iter().cloned().chain(beside).collect();
    slash_commands::warn_unstaged_commands(&mut files, &named);
    let of_plugins = ask.plugins.iter().flat_map(|root| slash_commands::skills_of_plugin(root));
    let staged: Vec<SkillRef> = named.into_iter().chain(of_plugins).collect();
    slash_commands::warn_unstaged_skills(&mut files, &staged);
    let skipped: Vec<SkippedFile> = skipped.into_iter().filter(|skipped| !given.has(&skipped.path)).collect();
    notices.extend(describe_skipped_files(skipped.iter()));
    let skipped = skipped.into_iter().map(|skipped| skipped.path).collect();
    Ok(EvalFiles { files, skill, notices, skipped, registry: registry.clone(), skills })
}

/// Gives a suite with the skill that the user names, if there is one.
fn with_tested_skill<'s>(suite: &'s Suite, skill: Option<&SkillRef>) -> Cow<'s, Suite> {
    match skill {
        // A suite of ten thousand cases is large, so it is copied only if it has to be changed.
        None => Cow::Borrowed(suite),
        Some(skill) => {
            let mut suite = suite.clone();
            suite.set_tested_skill(skill.clone());
            Cow::Owned(suite)
        }
    }
}

/// Removes from a suite the skills that are not on this machine, if no selected case is about them and others are
/// here.
fn leave_out_unneeded_skills(suite: &mut Suite, filter: &CaseFilter) {
    let is_here = |skill: &SkillRef| skill.path.as_deref().is_some_and(|path| Skill::read(path).is_ok());
    if suite.skills.iter().all(is_here) || !suite.skills.iter().any(is_here) {
        return;
    }
    let mut needed: HashSet<String> = HashSet::new();
    for check in filter.wanted_cases(suite).into_iter().flat_map(|case| &case.checks) {
        if let CheckKind::Activation(activation) = &check.kind {
            needed.extend(activation.skills.iter().cloned());
        }
    }
    suite.skills.retain(|skill| is_here(skill) || needed.contains(&skill.name));
}

/// Says whether a text may name a case with this id. Ids are often made from prompts, so only letters and digits
/// of the last part are compared.
fn may_name(text: &str, id: &str) -> bool {
    let plain = |text: &str| -> String {
        text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    let last = plain(id.rsplit('/').next().unwrap_or(id));
    last.is_empty() || plain(text).contains(&last)
}

/// Writes a notice such as `skipped 3 files: …`; `None` if none was skipped.
fn describe_skipped_files<'p>(skipped: impl Iterator<Item = &'p SkippedFile>) -> Option<String> {
    const MOST_NAMED_FILES: usize = 5;
    let all: Vec<&SkippedFile> = skipped.collect();
    let named = all.iter().take(MOST_NAMED_FILES);
    let mut names: Vec<String> =
        named.map(|SkippedFile { path, why }| format!("{} ({why})", path.display())).collect();
    let more = all.len().saturating_sub(MOST_NAMED_FILES);
    names.extend((more > 0).then(|| format!("and {more} more")));
    (!all.is_empty()).then(|| {
        format!("skipped {}: {}; name a file to use it", count_with_noun(all.len(), "file"), names.join(", "))
    })
}

/// Assigns a skill to evals that name none: the skill that the user names and for which they were found.
fn assign_named_skill(file: &mut LoadedFile, place: &EvalFileLocation, given: &[PathBuf]) {
    let Some(suite) = file.lowered.suite.as_mut().filter(|suite| suite.skills.is_empty()) else { return };
    let around = given.iter().filter(|skill| file.path.starts_with(skill));
    let skill = place.skill.as_ref().or_else(|| around.max_by_key(|skill| skill.components().count()));
    // A skill that cannot be read is reported where it is named.
    if let Some(skill) = skill.and_then(|path| skill_ref_at(path).ok()) {
        suite.set_tested_skill(skill);
    }
}

pub(super) fn skill_ref_at(path: &Path) -> Result<SkillRef, RunSetupError> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    Ok(SkillRef { name: Skill::read(&path)?.name, path: Some(path), plugin: None })
}

/// Makes a suite without a file: one prompt, and whether the skill must be activated. The skill is given by its
/// path. If the path does not exist, it is taken as a name, and the skills beside it are staged too.
pub fn single_prompt_evals(
    prompt: &str,
    skill: &Path,
    expect: ActivationExpectation,
    runs: u32,
    env: &BTreeMap<String, String>,
) -> Result<EvalFiles, RunSetupError> {
    let here = std::env::current_dir().unwrap_or_default();
    let plugins = dialects::plugins_folder(env);
    let place = EvalFileLocation { plugins, ..EvalFileLocation::new(here.clone(), project_root(&here)) };
    let path = std::path::absolute(skill).unwrap_or_else(|_| skill.to_owned());
    let by_name = skill.to_str().filter(|name| !path.exists() && !name.contains('/'));
    let (skills, rivals, plugins) =
        match by_name.map(|name| dialects::suite_for_skill_name(name, &here, &place)) {
            Some(Ok(Suite { skills, rivals, plugins, .. })) => (skills, rivals, plugins),
            Some(Err(choices)) if choices.is_empty() => {
                return Err(RunSetupError::NoSkillNamed(skill.display().to_string()));
            }
            Some(Err(choices)) => {
                let (name, choices) = (skill.display().to_string(), choices.join(" or "));
                return Err(RunSetupError::SeveralSkillsNamed { name, choices });
            }
            None => (vec![skill_ref_at(&path)?], Vec::new(), Vec::new()),
        };
    let names: Vec<&str> = skills.iter().map(|skill| skill.name.as_str()).collect();
    let activation = json!({"skills": names, "expect": expect.name()});
    let document = json!({
        "practicum": 1,
        "name": "try",
        "workspace": "empty",
        "run": {"repeat": runs},
        "cases": [{"id": "prompt", "prompt": prompt, "activation": activation}],
    });
    let mut file = dialects::load_text(&here.join("try.practicum.yaml"), document.to_string(), &place);
    if let Some(suite) = &mut file.lowered.suite {
        (suite.skills, suite.rivals, suite.plugins) = (skills, rivals, plugins);
    }
    Ok(EvalFiles::of_file(file))
}

/// Makes a suite that calls a skill once by its own command with these arguments and only wants an answer.
pub fn single_command_evals(args: &str, skill: &Path) -> Result<EvalFiles, RunSetupError> {
    let path = std::path::absolute(skill).unwrap_or_else(|_| skill.to_owned());
    let skill = Skill::read(&path)?;
    let document = json!({
        "practicum": 1,
        "name": "call",
        "skill": {"name": skill.name, "path": path},
        "run": {"repeat": 1},
        "cases": [{"id": "call", "command": args, "checks": [{"id": "answered", "min_length": 1, "required": false}]}],
    });
    let here = std::env::current_dir().unwrap_or_default();
    let place = EvalFileLocation::new(here.clone(), project_root(&here));
    let file = dialects::load_text(&here.join("call.practicum.yaml"), document.to_string(), &place);
    Ok(EvalFiles::of_file(file))
}

/// Reads the files on as many threads as there are cores, and gives them in their order.
fn load_all(places: &[(PathBuf, EvalFileLocation)], forced: Option<&'static dyn Dialect>) -> Vec<LoadedFile> {
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

fn load_one(file: &Path, place: &EvalFileLocation, forced: Option<&'static dyn Dialect>) -> LoadedFile {
    let mut loaded = dialects::load_eval_file(file, place, forced);
    if let Some(suite) = &loaded.lowered.suite {
        suite_quality::review_suite(suite, &loaded.text, &place.skills, &mut loaded.lowered.diagnostics);
    }
    loaded.lowered.diagnostics.sort();
    loaded
}
