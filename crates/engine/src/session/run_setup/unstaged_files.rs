//! Notices about files that are not staged although they seem to be in a skill's folder or a project, and about
//! staged files from elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::workspace::stage::is_skill_under_test;
use practicum_core::model::{Suite, WorkspaceBase};
use practicum_skills::project_files::{ProjectFiles, is_credential};
use practicum_skills::skill::{Skill, SkillCache, SkillForm, link_leads_out, links_leading_out};

/// The notices about projects. Each project is examined once.
#[derive(Debug, Default)]
pub struct ProjectNotices(BTreeMap<PathBuf, Option<String>>);

impl ProjectNotices {
    /// Gives a notice about files of the project that are not copied, if cases of the suite get a copy of it.
    pub fn uncopied_files_notice(
        &mut self,
        suite: &Suite,
        cache: &SkillCache,
        project: &Path,
    ) -> Option<String> {
        let gets_it = suite.cases.iter().any(|case| case.workspace.base == WorkspaceBase::Project);
        // Files of skills that are not staged are reported with the skills.
        let skills = suite.skills.iter().chain(&suite.rivals).filter_map(|skill| skill.path.as_deref());
        let skills = skills.filter_map(|path| cache.read(path).ok());
        let folders: Vec<PathBuf> = skills
            .filter(|skill| skill.form == SkillForm::Folder)
            .map(|skill| skill.folder().to_owned())
            .collect();
        let of_skill = |path: &Path| folders.iter().any(|folder| path.starts_with(folder));
        if gets_it && is_skill_under_test(project, &suite.skills) {
            return Some(format!(
                "the project {} is itself the skill under test, so workspaces have no other copy of its files",
                project.display()
            ));
        }
        let look = || {
            ProjectFiles::list(project, &|path, _| of_skill(path) && is_credential(path)).describe_left_out()
        };
        gets_it.then(|| self.0.entry(project.to_owned()).or_insert_with(look).clone()).flatten()
    }
}

/// Describes the overlays of a suite's cases that are not in the folder of its file.
pub fn outside_overlay_notices(suite: &Suite, project: &Path) -> Vec<String> {
    let folder = suite.origin.path.parent().unwrap_or(Path::new(""));
    let mut notices: Vec<String> = Vec::new();
    for overlay in suite.cases.iter().flat_map(|case| &case.workspace.overlays) {
        let shown = overlay.strip_prefix(project).unwrap_or(overlay).display();
        let words = format!("the overlay {shown} is laid into the workspaces of suite {}", suite.name);
        if !overlay.starts_with(folder) && !notices.contains(&words) {
            notices.push(words);
        }
    }
    notices
}

/// Describes the links in overlays of a suite's cases that lead out of them.
pub fn overlay_link_notices(suite: &Suite) -> Vec<String> {
    let overlays: BTreeSet<&PathBuf> = suite.cases.iter().flat_map(|case| &case.workspace.overlays).collect();
    let mut notices = Vec::new();
    for overlay in overlays {
        let walk = ignore::WalkBuilder::new(overlay).standard_filters(false).follow_links(false).build();
        let links = walk.flatten().filter(|entry| entry.depth() > 0 && entry.path_is_symlink());
        let out: Vec<String> = links
            .filter_map(|entry| {
                let target = std::fs::read_link(entry.path()).ok()?;
                link_leads_out(entry.path(), &target, overlay).then(|| {
                    let (link, target) = (entry.path().display(), target.display());
                    format!("{link} is a link that leads out of the overlay, to {target}, and is not staged")
                })
            })
            .collect();
        let (named, more) = out.split_at(out.len().min(MOST_NAMED_LINKS));
        notices.extend_from_slice(named);
        if !more.is_empty() {
            notices.push(format!("so do {} more links of the overlay {}", more.len(), overlay.display()));
        }
    }
    notices
}

/// The most links of one skill that are named. The rest is only counted.
const MOST_NAMED_LINKS: usize = 5;

/// Describes the links of a suite's skills that lead out of them. Skills that cannot be read are reported
/// elsewhere.
pub fn skill_link_notices(suite: &Suite, cache: &SkillCache) -> Vec<String> {
    let paths = suite.skills.iter().chain(&suite.rivals).filter_map(|skill| skill.path.as_deref());
    let skills = paths.filter_map(|path| cache.read(path).ok());
    skills.flat_map(|skill| link_notices_of_skill(&skill)).collect()
}

fn link_notices_of_skill(skill: &Skill) -> Vec<String> {
    let (name, links) = (&skill.name, links_leading_out(skill));
    let (named, more) = links.split_at(links.len().min(MOST_NAMED_LINKS));
    let mut notices: Vec<String> = named
        .iter()
        .map(|(link, target)| {
            let (link, target) = (link.display(), target.display());
            format!(
                "{link} of the skill {name} is a link that leads out of it, to {target}, and is not staged"
            )
        })
        .collect();
    if !more.is_empty() {
        notices.push(format!("so do {} more links of the skill {name}", more.len()));
    }
    notices
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_are_named_and_the_others_counted() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("SKILL.md"), "---\nname: s\n---\n").expect("written");
        for n in 1..=7 {
            std::os::unix::fs::symlink("../out", folder.path().join(format!("l{n}"))).expect("a link");
        }
        let notices = link_notices_of_skill(&Skill::read(folder.path()).expect("a skill"));
        assert_eq!(notices.len(), 6);
        assert_eq!(
            notices[0],
            "l1 of the skill s is a link that leads out of it, to ../out, and is not staged"
        );
        assert_eq!(notices[5], "so do 2 more links of the skill s");
    }
}
