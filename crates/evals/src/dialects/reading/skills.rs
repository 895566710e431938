//! Finds the skill that an eval file is about, if only the file's location shows it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::super::EvalFileLocation;
use practicum_core::model::{Diagnostics, SkillRef, Span};
use practicum_skills::project_files::{has_unreadable_ignore_file, skip_unreadable_ignore_files};
use practicum_skills::skill::{SKILL_FILE, SkillCache, SkillError, normalise_path};

/// The name that a file gives its skill.
#[derive(Debug, Clone, Copy)]
pub struct SkillHint<'h> {
    pub name: &'h str,
    pub span: Span,
    /// Whether the name counts before the folder's name, or is only documentation.
    pub is_decisive: bool,
}

impl SkillHint<'_> {
    /// Reports that the file names another skill than the one it is about.
    fn report_mismatch(self, skill: &SkillRef, place: &Path, diagnostics: &mut Diagnostics) {
        if self.name != skill.name && self.name != folder_name(place) {
            let message =
                format!("the file says \"{}\", but it lies with the skill \"{}\"", self.name, skill.name);
            diagnostics.notice("other-skill-name", self.span, message);
        }
    }
}

pub fn is_skill(folder: &Path) -> bool {
    folder.join(SKILL_FILE).is_file()
}

/// Gives the skill in a folder that is known to be a skill. It is read only once, whichever formats ask for it.
pub fn skill_in_folder(folder: &Path, skills: &SkillCache, diagnostics: &mut Diagnostics) -> SkillRef {
    let name = match skills.read(folder) {
        Ok(skill) => skill.name.clone(),
        Err(problem) => {
            report_missing_skill(&problem, None, diagnostics);
            folder_name(folder)
        }
    };
    SkillRef { name, path: Some(normalise_path(folder)), plugin: None }
}

/// Reports that there is no skill where a file names one; the user can still name another with `--skill`. A skill
/// that exists but cannot be read is reported when it is staged.
pub fn report_missing_skill(problem: &SkillError, span: Option<Span>, diagnostics: &mut Diagnostics) {
    match problem {
        SkillError::Missing(_) => diagnostics.warning("skill-not-found", span, problem.to_string()),
        SkillError::Frontmatter(..) | SkillError::Unreadable(..) => {}
    }
}

fn folder_name(folder: &Path) -> String {
    normalise_path(folder)
        .file_name()
        .map_or_else(|| "skill".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Gives the skill that the evals in `folder` are about: the one that the user names, otherwise the one in whose
/// folder they lie, otherwise the one with the name that the folder or the file gives, anywhere in the project
/// where such evals may lie. A missing skill is a warning, because the user can still name it with `--skill`.
pub fn skill_of_evals(
    folder: &Path,
    place: &EvalFileLocation,
    hint: Option<SkillHint<'_>>,
    diagnostics: &mut Diagnostics,
) -> SkillRef {
    let project = place.project.as_path();
    if let Some(named) = &place.skill {
        return skill_in_folder(named, &place.skills, diagnostics);
    }
    let around = [Some(folder), folder.parent()];
    if let Some(found) = around.into_iter().flatten().find(|folder| is_skill(folder)) {
        let skill = skill_in_folder(found, &place.skills, diagnostics);
        if let Some(hint) = hint {
            hint.report_mismatch(&skill, found, diagnostics);
        }
        return skill;
    }
    let own = folder_name(folder);
    let by_place = if own == "evals" { folder.parent().map(folder_name) } else { Some(own) };
    let by_hint = hint.map(|hint| hint.name.to_owned());
    let words = hint.filter(|hint| !hint.is_decisive);
    let names = if words.is_some() { [by_place, by_hint] } else { [by_hint, by_place] };
    let names: Vec<String> = names.into_iter().flatten().collect();
    for name in &names {
        let found = skills_named(name, folder, project);
        match found.as_slice() {
            [] => {}
            [one] => {
                let skill = skill_in_folder(one, &place.skills, diagnostics);
                if let Some(words) = words {
                    words.report_mismatch(&skill, one, diagnostics);
                }
                return skill;
            }
            several => {
                let list: Vec<String> = several.iter().map(|path| path.display().to_string()).collect();
                diagnostics.warning_with_help(
                    "several-skills",
                    hint.map(|hint| hint.span),
                    format!("there are several skills \"{name}\": {}", list.join(", ")),
                    "choose one with --skill",
                );
                return SkillRef { name: name.clone(), path: None, plugin: None };
            }
        }
    }
    let name = names.into_iter().next().unwrap_or_else(|| "skill".to_owned());
    diagnostics.warning_with_help(
        "skill-not-found",
        hint.map(|hint| hint.span),
        format!("no skill \"{name}\" was found around {} or in {}", folder.display(), project.display()),
        "name its folder with --skill",
    );
    SkillRef { name, path: None, plugin: None }
}

/// The folders in which projects keep their skills, the likeliest first.
const SKILL_FOLDERS: [&str; 4] = [".claude/skills", "skills", ".agents/skills", ".codex/skills"];

/// Says whether the project has a skill of this name that the evals in `folder` may be about.
pub fn has_skill(name: &str, folder: &Path, project: &Path) -> bool {
    !skills_named(name, folder, project).is_empty()
}

fn skills_named(name: &str, folder: &Path, project: &Path) -> Vec<PathBuf> {
    // The name becomes a folder's name here, so it must not lead anywhere else.
    if name.is_empty() || name == "." || name == ".." || name.contains(['/', '\\', '\0']) {
        return Vec::new();
    }
    // Evals in `X/evals/<name>/` belong to the skill in `X/<anything>/<name>/`.
    let above = folder.parent().and_then(Path::parent).filter(|above| above.starts_with(project));
    let siblings = above.map(|above| children_named(above, name)).unwrap_or_default();
    if !siblings.is_empty() {
        return siblings;
    }
    if let Some(home) =
        SKILL_FOLDERS.iter().map(|home| project.join(home).join(name)).find(|path| is_skill(path))
    {
        return vec![home];
    }
    search_project(name, project)
}

fn children_named(above: &Path, name: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(above) else { return Vec::new() };
    let found = entries.flatten().take(MOST_ENTRIES).map(|entry| entry.path().join(name));
    distinct_paths(found.filter(|path| is_skill(path)))
}

/// The number of entries after which the search stops: in a project that large, the user must name the skill.
const MOST_ENTRIES: usize = 20_000;
const DEEPEST_FOLDER: usize = 8;

/// Folders in which only a copy of a skill can be, not the skill itself.
const FOLDERS_WITHOUT_SKILLS: [&str; 7] =
    [".git", "node_modules", "target", ".practicum", "evals", ".venv", "dist"];

fn is_folder(entry: &ignore::DirEntry) -> bool {
    entry.file_type().is_some_and(|kind| kind.is_dir())
}

fn search_project(name: &str, project: &Path) -> Vec<PathBuf> {
    let mut walk = ignore::WalkBuilder::new(project);
    walk.hidden(false).max_depth(Some(DEEPEST_FOLDER));
    skip_unreadable_ignore_files(&mut walk, project);
    let walk = walk
        .filter_entry(|entry| {
            entry.file_name().to_str().is_none_or(|name| !FOLDERS_WITHOUT_SKILLS.contains(&name))
                && !(is_folder(entry) && has_unreadable_ignore_file(entry.path()))
        })
        .build();
    let folders = walk
        .take(MOST_ENTRIES)
        .flatten()
        .filter(|entry| entry.file_name().to_str() == Some(name))
        .map(ignore::DirEntry::into_path);
    distinct_paths(folders.filter(|path| is_skill(path)))
}

/// Gives the paths in order; a folder that is reached in two ways comes once.
fn distinct_paths(paths: impl Iterator<Item = PathBuf>) -> Vec<PathBuf> {
    let sorted: BTreeSet<PathBuf> = paths.collect();
    let mut real = BTreeSet::new();
    sorted
        .into_iter()
        .filter(|path| real.insert(std::fs::canonicalize(path).unwrap_or_else(|_| path.clone())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests the search with skills in these folders and evals in this one: the skill found, and the diagnostics.
    fn check(
        skills: &[&str],
        evals: &str,
        hint: Option<(&str, bool)>,
        expected: (&str, Option<&str>),
        said: &[&str],
    ) {
        let project = tempfile::tempdir().expect("a folder");
        let root = project.path();
        for skill in skills {
            std::fs::create_dir_all(root.join(skill)).expect("create");
            std::fs::write(root.join(skill).join(SKILL_FILE), "---\ndescription: d\n---\n").expect("write");
        }
        std::fs::create_dir_all(root.join(evals)).expect("create");
        let mut diagnostics = Diagnostics::default();
        let hint =
            hint.map(|(name, decides)| SkillHint { name, span: Span::default(), is_decisive: decides });
        let place = EvalFileLocation::new(root.to_owned(), root.to_owned());
        let found = skill_of_evals(&root.join(evals), &place, hint, &mut diagnostics);
        let path = found.path.as_deref().and_then(|path| path.strip_prefix(root).ok()).and_then(Path::to_str);
        assert_eq!((found.name.as_str(), path), expected, "{skills:?} {evals}");
        let codes: Vec<&str> = diagnostics.iter().map(|diagnostic| diagnostic.code).collect();
        assert_eq!(codes, said, "{skills:?} {evals}");
    }

    #[test]
    fn the_skill_is_found_from_its_evals() {
        check(&["skills/a"], "skills/a/evals", None, ("a", Some("skills/a")), &[]);
        check(&["skills/a"], "skills/a/evals", Some(("a", true)), ("a", Some("skills/a")), &[]);
        check(
            &["skills/a"],
            "skills/a/evals",
            Some(("b", true)),
            ("a", Some("skills/a")),
            &["other-skill-name"],
        );
        check(&["x/skills/a"], "x/evals/a", None, ("a", Some("x/skills/a")), &[]);
        check(&[".claude/skills/a"], "evals/a", None, ("a", Some(".claude/skills/a")), &[]);
        check(&["src/core/deep/a"], "evals/core/a", None, ("a", Some("src/core/deep/a")), &[]);
        check(&["src/b"], "tests/a", Some(("b", true)), ("b", Some("src/b")), &[]);
        check(&["src/b"], "tests/a", Some(("b", false)), ("b", Some("src/b")), &[]);
        let both = &["src/a", "src/b"];
        check(both, "evals/a", Some(("b", true)), ("b", Some("src/b")), &[]);
        check(both, "evals/a", Some(("b", false)), ("a", Some("src/a")), &["other-skill-name"]);
        check(&["src/1/2/a", "src/3/4/a"], "evals/a", None, ("a", None), &["several-skills"]);
        // A dependency's copy in an overlay is not the skill under test.
        check(&["evals/a/setup/a"], "evals/a", None, ("a", None), &["skill-not-found"]);
        check(&["node_modules/x/a"], "evals/a", None, ("a", None), &["skill-not-found"]);
        check(&[], "evals", Some(("../../etc", true)), ("../../etc", None), &["skill-not-found"]);
    }
}
