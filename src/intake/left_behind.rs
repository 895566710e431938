//! What a skill's folder seems to hold, and no room does.

use crate::model::Suite;
use crate::skill::{Skill, links_out};

/// Of more links than this of one skill only the number is told.
const MOST_NAMED: usize = 5;

/// The links of a suite's skills that lead out of them, in words. Skills that cannot be read are told of
/// elsewhere.
pub fn left_behind(suite: &Suite) -> Vec<String> {
    let paths = suite.skills.iter().chain(&suite.rivals).filter_map(|skill| skill.path.as_deref());
    let skills = paths.filter_map(|path| Skill::read(path).ok());
    skills.flat_map(|skill| of_skill(&skill)).collect()
}

fn of_skill(skill: &Skill) -> Vec<String> {
    let (name, links) = (&skill.name, links_out(skill));
    let (named, more) = links.split_at(links.len().min(MOST_NAMED));
    let mut told: Vec<String> = named
        .iter()
        .map(|(link, target)| {
            let (link, target) = (link.display(), target.display());
            format!(
                "{link} of the skill {name} is a link that leads out of it, to {target}, and is not staged"
            )
        })
        .collect();
    if !more.is_empty() {
        told.push(format!("so do {} more links of the skill {name}", more.len()));
    }
    told
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
        let told = of_skill(&Skill::read(folder.path()).expect("a skill"));
        assert_eq!(told.len(), 6);
        assert_eq!(told[0], "l1 of the skill s is a link that leads out of it, to ../out, and is not staged");
        assert_eq!(told[5], "so do 2 more links of the skill s");
    }
}
