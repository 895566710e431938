//! Edits that a model proposes, and the rules for applying them.

use std::collections::BTreeMap;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{SkillContents, SkillContentsError, atomic_files, diff};
use practicum_core::model::{Diagnostics, RelPath};
use practicum_core::tree::TreeNode;
use practicum_skills::skill::{SKILL_FILE, read_frontmatter, split_frontmatter};

/// A change to a skill, in the shape that writing-skills documents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditSuggestion {
    /// The part of the skill that the edit changes.
    pub area: String,
    /// The text that is there now, which occurs once in the skill.
    pub before: String,
    /// The text to put in its place.
    pub after: String,
    /// Why the edit is an improvement.
    pub reasoning: String,
}

/// A suggestion that cannot be followed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RefusedSuggestion {
    pub suggestion: EditSuggestion,
    /// Why the edit was refused.
    pub why: String,
}

/// The texts of a skill during editing. Nothing is written until `write_to` is called.
#[derive(Debug, Clone)]
pub struct SkillEditDraft {
    /// The SKILL.md or command file.
    main_file: RelPath,
    before: BTreeMap<RelPath, String>,
    after: BTreeMap<RelPath, String>,
}

impl SkillEditDraft {
    pub fn from_contents(contents: &SkillContents) -> Result<Self, SkillContentsError> {
        let before: BTreeMap<RelPath, String> = contents.text_files()?.into_iter().collect();
        Ok(Self { main_file: contents.main_file().clone(), after: before.clone(), before })
    }

    pub fn texts(&self) -> impl Iterator<Item = (&RelPath, &str)> {
        self.after.iter().map(|(path, text)| (path, text.as_str()))
    }

    pub fn is_changed(&self) -> bool {
        self.before != self.after
    }

    /// Applies a suggestion, or says why not and changes nothing. A suggestion may name a file, but its old text
    /// decides where the change goes: it must occur exactly once.
    pub fn apply_suggestion(
        &mut self,
        suggestion: &EditSuggestion,
        file: Option<&str>,
    ) -> Result<(), String> {
        let EditSuggestion { before, after, .. } = suggestion;
        if before.trim().is_empty() {
            return Err("it does not say which text to change".to_owned());
        }
        if before == after {
            return Err("it changes nothing".to_owned());
        }
        if let Some(file) = file
            && !RelPath::new(file).is_some_and(|path| self.after.contains_key(&path))
        {
            return Err(format!("{file} is not a file of the skill, and no other file may be changed"));
        }
        let mut places = self.after.iter().flat_map(|(path, text)| {
            find_occurrences(text, before).into_iter().map(move |at| (path.clone(), at))
        });
        let (path, at) = match (places.next(), places.next()) {
            (None, _) => return Err("the text to change is not in the skill".to_owned()),
            (Some(_), Some(_)) => return Err("the text to change is there more than once".to_owned()),
            (Some(place), None) => place,
        };
        drop(places);
        if file.and_then(RelPath::new).is_some_and(|named| named != path) {
            return Err(format!("the text to change is in {path}"));
        }
        let old = &self.after[&path];
        let new = format!("{}{after}{}", &old[..at], &old[at + before.len()..]);
        if path == self.main_file {
            require_same_frontmatter(old, &new)?;
        }
        self.after.insert(path, new);
        Ok(())
    }

    /// Gives all changed files as one unified diff.
    pub fn diff(&self) -> String {
        let files = self
            .changed_files()
            .map(|(path, text)| diff::unified_diff(path.as_str(), &self.before[path], text));
        files.collect()
    }

    fn changed_files(&self) -> impl Iterator<Item = (&RelPath, &str)> {
        let differs = |(path, text): &(&RelPath, &String)| self.before.get(*path) != Some(*text);
        self.after.iter().filter(differs).map(|(path, text)| (path, text.as_str()))
    }

    /// Writes the changes into a folder with the same skill.
    pub fn write_to(&self, folder: &Path) -> std::io::Result<()> {
        self.changed_files()
            .try_for_each(|(path, text)| atomic_files::write_bytes(&path.join_to(folder), text.as_bytes()))
    }
}

/// Finds where a text occurs in another, also overlapping itself. Two occurrences are enough to know that it is
/// not unique.
fn find_occurrences(text: &str, wanted: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let mut from = 0;
    while found.len() < 2
        && let Some(at) = text[from..].find(wanted).map(|at| from + at)
    {
        found.push(at);
        from = at + text[at..].chars().next().map_or(1, char::len_utf8);
    }
    found
}

/// Gives an error unless the new text keeps the frontmatter, the name and a description.
fn require_same_frontmatter(old: &str, new: &str) -> Result<(), String> {
    let Some((before, was_valid)) = parse_frontmatter(old) else {
        let adds = split_frontmatter(old).0.is_none() && split_frontmatter(new).0.is_some();
        return if adds { Err("it would add a frontmatter".to_owned()) } else { Ok(()) };
    };
    // A frontmatter that only some agents can read is no improvement.
    let after = parse_frontmatter(new).filter(|(_, is_valid)| *is_valid || !was_valid);
    let (after, _) = after.ok_or("it would break the frontmatter")?;
    for entry in before.as_map().unwrap_or_default() {
        if !after.has(&entry.key) {
            return Err(format!("it would remove \"{}\" from the frontmatter", entry.key));
        }
    }
    // Some keys allow tools or run commands. Only the author decides what a skill may do.
    for entry in after.as_map().unwrap_or_default() {
        let same = before.get(&entry.key).map(TreeNode::to_value) == Some(entry.value.to_value());
        if !same && entry.key != "description" && entry.key != "name" {
            return Err(format!("it would change \"{}\" in the frontmatter", entry.key));
        }
    }
    if before.get("name").and_then(TreeNode::as_text) != after.get("name").and_then(TreeNode::as_text) {
        return Err("it would rename the skill".to_owned());
    }
    let described = |front: &TreeNode| {
        front.get("description").and_then(TreeNode::as_text).is_some_and(|text| !text.trim().is_empty())
    };
    if described(&before) && !described(&after) {
        return Err("it would leave the skill without a description".to_owned());
    }
    Ok(())
}

/// Parses a frontmatter, and says whether it is valid YAML.
fn parse_frontmatter(text: &str) -> Option<(TreeNode, bool)> {
    let front = split_frontmatter(text).0.filter(|front| !front.trim().is_empty())?;
    let mut diagnostics = Diagnostics::default();
    let root = read_frontmatter(Path::new(SKILL_FILE), front, &mut diagnostics)?;
    root.as_map().is_some().then(|| (root, diagnostics.iter().next().is_none()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SKILL: &str = "---\nname: gull\ndescription: Speaks.\nlicense: MIT\n---\n\nSay hello. Say aaa.\n";

    fn draft() -> SkillEditDraft {
        let room = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(room.path().join("evals")).expect("create");
        std::fs::write(room.path().join(SKILL_FILE), SKILL).expect("write");
        std::fs::write(room.path().join("notes.md"), "Gulls say kee-ow. Speaks.\n").expect("write");
        std::fs::write(room.path().join("evals/evals.json"), "the answers").expect("write");
        SkillEditDraft::from_contents(&SkillContents::scan(room.path()).expect("a skill")).expect("texts")
    }

    fn suggestion(before: &str, after: &str) -> EditSuggestion {
        EditSuggestion { area: "a".into(), before: before.into(), after: after.into(), reasoning: "r".into() }
    }

    #[test]
    fn only_what_stands_once_in_the_skill_is_changed() {
        for (file, before, after, expected) in [
            (None, "Say hello.", "Say kee-ow.", None),
            (Some("notes.md"), "Gulls say kee-ow.", "Gulls shout.", None),
            (Some("./SKILL.md"), "hello", "ahoy", None),
            (None, "description: Speaks.", "description: Speaks like a gull.", None),
            (None, "goodbye", "x", Some("not in the skill")),
            (None, "Speaks.", "x", Some("more than once")),
            (None, "aa", "x", Some("more than once")),
            (None, "", "x", Some("does not say")),
            (None, "hello", "hello", Some("changes nothing")),
            (Some("notes.md"), "hello", "x", Some("is in SKILL.md")),
            (Some("evals/evals.json"), "the answers", "x", Some("not a file of the skill")),
            (Some("../elsewhere.md"), "hello", "x", Some("not a file of the skill")),
            (Some("/etc/passwd"), "hello", "x", Some("not a file of the skill")),
            (None, "the answers", "x", Some("not in the skill")),
            (
                None,
                "---\nname: gull\ndescription: Speaks.\nlicense: MIT\n---\n",
                "",
                Some("break the frontmatter"),
            ),
            (None, "license: MIT\n---\n", "", Some("break the frontmatter")),
            (None, "license: MIT\n", "", Some("remove \"license\"")),
            (None, "name: gull", "name: crow", Some("rename")),
            (None, "description: Speaks.\n", "description: ' '\n", Some("without a description")),
            (None, "license: MIT", "license: [", Some("break the frontmatter")),
            (None, "license: MIT", "license: MIT\nallowed-tools: Bash(*)", Some("change \"allowed-tools\"")),
            (None, "license: MIT", "license: none", Some("change \"license\"")),
        ] {
            let mut draft = draft();
            let followed = draft.apply_suggestion(&suggestion(before, after), file);
            match expected {
                None => assert_eq!((followed, draft.is_changed()), (Ok(()), true), "{before}"),
                Some(part) => {
                    let why = followed.expect_err(before);
                    assert!(why.contains(part), "{before}: {why}");
                    assert!(!draft.is_changed());
                }
            }
        }
    }

    #[test]
    fn what_changed_is_shown_and_written() {
        let mut draft = draft();
        draft.apply_suggestion(&suggestion("hello", "kee-ow"), None).expect("followed");
        draft.apply_suggestion(&suggestion("Say kee-ow.", "Say kee-ow twice."), None).expect("followed");
        assert!(
            draft.diff().ends_with("-Say hello. Say aaa.\n+Say kee-ow twice. Say aaa.\n"),
            "{}",
            draft.diff()
        );
        let folder = tempfile::tempdir().expect("a folder");
        draft.write_to(folder.path()).expect("written");
        let written: Vec<_> = std::fs::read_dir(folder.path()).expect("a folder").flatten().collect();
        assert_eq!(written.len(), 1);
    }
}
