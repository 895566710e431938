//! Loads a stored trial so that it can be graded again.
//!
//! In: a trial's folder in a run directory. Out: the observation of the trial, as far as it was stored; its stream
//! is decoded by the current decoder. Never: guesses what was not stored.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use crate::store::{FolderListing, TrialDigest, TrialFacts};
use crate::workspace::observe::{ProcessEnd, RawRun, RawTurn, observe};
use crate::workspace::run::decode;
use crate::workspace::stage::FolderView;
use practicum_agents::agents::AgentRegistry;
use practicum_core::model::{FileChangeKind, GivenFile, Observation, RelPath, WorkspaceView};
use practicum_core::tree::open_regular;

/// A stored trial that can be graded again.
pub struct ReloadedTrial {
    pub observation: Observation,
    pub workspace: StoredWorkspace,
    /// The skills under test: each with its own name and its name in the workspace.
    pub skills: Vec<(String, String)>,
    pub given_files: Vec<GivenFile>,
    /// Whether no agent was run because the case asked only for a prediction.
    pub only_predicted: bool,
}

/// Reads a trial's folder, with the decoders that are known. An error says what is missing.
pub fn reload_trial(folder: &Path, known: &AgentRegistry) -> Result<ReloadedTrial, String> {
    refuse_changed_files(folder)?;
    let facts = TrialFacts::read(folder)?;
    let turns = decode_turns(&facts, &folder.join("transcript.jsonl"), known)?;
    let raw = RawRun { turns, seconds: facts.seconds };
    let cut = facts.unread;
    let observed = observe(raw, facts.files.clone(), false);
    let mut seen = Observation {
        hides_tools: observed.hides_tools || cut.is_some(),
        unread: cut.or(observed.unread.clone()),
        // The stream alone does not say how the run ended and what it cost.
        ended: facts.ended,
        ended_because: facts.ended_because,
        limit_resets_at: None,
        usage: facts.usage,
        cost_usd: facts.cost_usd,
        leaked: facts.leaked,
        mock_calls: facts.mock_calls,
        ..observed
    };
    seen.apply_text_findings(facts.text_findings);
    seen.add_canary_evidence(&facts.canaries);
    let changes = facts.files.into_iter().map(|file| (file.path, file.change)).collect();
    let kept = folder.join("files");
    Ok(ReloadedTrial {
        observation: seen,
        workspace: StoredWorkspace { view: FolderView::new(&kept), changes, listing: facts.left },
        skills: facts.skills.into_iter().map(|skill| (skill.name, skill.staged_as)).collect(),
        given_files: facts.given,
        only_predicted: facts.only_predicted,
    })
}

/// Refuses a trial whose stored evidence is not as it was written. Records of earlier versions have no digests.
fn refuse_changed_files(folder: &Path) -> Result<(), String> {
    let Some(digest) = TrialDigest::read(folder) else { return Ok(()) };
    let evidence = digest.files.keys().filter(|name| !GRADES.contains(&name.as_str()));
    let changed = evidence.into_iter().find(|name| digest.is_changed(folder, name));
    let added = ["transcript.jsonl", "facts.json"]
        .into_iter()
        .find(|name| !digest.files.contains_key(*name) && folder.join(name).symlink_metadata().is_ok());
    match changed.map(String::as_str).or(added) {
        Some(name) => Err(format!("{name} is not as it was written")),
        None => Ok(()),
    }
}

/// The files of a trial that hold its grades. They are not evidence, and are made anew.
const GRADES: [&str; 2] = ["checks.json", "output.txt"];

fn decode_turns(facts: &TrialFacts, path: &Path, known: &AgentRegistry) -> Result<Vec<RawTurn>, String> {
    let kind = known
        .decoder(&facts.stream)
        .ok_or_else(|| format!("nothing here reads the stream {} of its transcript", facts.stream))?;
    let silent = facts.turns.iter().all(|turn| turn.bytes == 0);
    // An agent without output left no transcript.
    if !silent {
        open_regular(path).map_err(|error| format!("its transcript cannot be read: {error}"))?;
    }
    let mut from = 0;
    let mut turns = Vec::new();
    for turn in &facts.turns {
        // The last turn takes all that is left, whatever its stored length. Lengths matter only between turns.
        let is_last = turns.len() + 1 == facts.turns.len();
        let until = if is_last { u64::MAX } else { from + turn.bytes };
        let transcript = decode(path, from..until, kind);
        from = until;
        let (prompt, bytes) = (turn.prompt.clone(), turn.bytes);
        turns.push(RawTurn { prompt, transcript, bytes, process: ProcessEnd::Exited(0) });
    }
    // Without digests, at least something must be there of what the agent said.
    let has_digests = path.parent().is_some_and(|folder| TrialDigest::read(folder).is_some());
    let says_nothing = |turn: &RawTurn| {
        let said = &turn.transcript;
        said.steps.is_empty() && said.output.is_empty() && said.skills_listed.is_none()
    };
    if !silent && !has_digests && turns.iter().all(says_nothing) {
        return Err("nothing in its transcript can be read".to_owned());
    }
    Ok(turns)
}

/// The stored part of a workspace: the files that the agent made or changed, and the names of the others.
pub struct StoredWorkspace {
    view: FolderView,
    changes: BTreeMap<RelPath, FileChangeKind>,
    listing: Option<FolderListing>,
}

impl StoredWorkspace {
    /// Says whether a path leads through a link. Only the names of links were stored.
    fn is_linked(&self, path: &RelPath) -> bool {
        let Some(left) = &self.listing else { return false };
        with_parent_folders(path).any(|above| left.others.contains(&above))
    }
}

/// Gives a path and all folders above it.
fn with_parent_folders(path: &RelPath) -> impl Iterator<Item = RelPath> {
    Path::new(path.as_str()).ancestors().filter_map(|above| RelPath::new(above.to_str()?))
}

fn not_stored_error(why: &str) -> io::Error {
    io::Error::other(format!("the workspace is gone, and {why}"))
}

impl WorkspaceView for StoredWorkspace {
    fn read(&self, path: &RelPath) -> io::Result<Option<Vec<u8>>> {
        match self.changes.get(path) {
            Some(FileChangeKind::Deleted) => return Ok(None),
            Some(FileChangeKind::Created | FileChangeKind::Changed) => {
                let kept = self.view.read(path)?;
                return kept.map(Some).ok_or_else(|| not_stored_error("this file was not kept"));
            }
            None if self.is_linked(path) => return Err(not_stored_error("links are not kept")),
            None => {}
        }
        match &self.listing {
            Some(left) if !left.files.contains(path) => Ok(None),
            Some(_) | None => Err(not_stored_error("files that the agent did not change are not kept")),
        }
    }

    fn exists(&self, path: &RelPath) -> io::Result<bool> {
        if self.is_linked(path) {
            return Err(not_stored_error("links are not kept"));
        }
        if let Some(left) = &self.listing {
            return Ok(left.files.contains(path) || left.folders.contains(path));
        }
        let made =
            |path: &RelPath| self.changes.get(path).is_some_and(|change| *change != FileChangeKind::Deleted);
        let folder_of_made = || {
            self.changes
                .keys()
                .any(|file| made(file) && with_parent_folders(file).any(|above| above == *path))
        };
        match self.changes.get(path) {
            Some(FileChangeKind::Deleted) => Ok(false),
            _ if folder_of_made() => Ok(true),
            _ => Err(not_stored_error("there was too much in it to list")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> RelPath {
        RelPath::new(text).expect("a path")
    }

    /// Describes what is known about a path: whether it exists, and its content.
    fn said(workspace: &StoredWorkspace, name: &str) -> String {
        let exists = workspace.exists(&path(name)).map_or("?".to_owned(), |there| there.to_string());
        let text = match workspace.read(&path(name)) {
            Ok(Some(bytes)) => String::from_utf8_lossy(&bytes).into_owned(),
            Ok(None) => "-".to_owned(),
            Err(_) => "?".to_owned(),
        };
        format!("{exists} {text}")
    }

    #[test]
    fn what_was_not_kept_is_not_guessed() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("out")).expect("create");
        std::fs::write(folder.path().join("out/new.md"), "new").expect("write");
        let changes = || {
            let all = [
                ("out/new.md", FileChangeKind::Created),
                ("out/large.bin", FileChangeKind::Created),
                ("old.md", FileChangeKind::Deleted),
            ];
            all.map(|(name, change)| (path(name), change)).into()
        };
        let names = |list: &[&str]| list.iter().map(|name| path(name)).collect();
        let left = FolderListing {
            files: names(&["out/new.md", "out/large.bin", "given.md"]),
            folders: names(&["out", "empty"]),
            others: names(&["link"]),
        };
        let workspace = |left| StoredWorkspace {
            view: FolderView::new(folder.path()),
            changes: changes(),
            listing: left,
        };
        let (listed, unlisted) = (workspace(Some(left)), workspace(None));
        for (name, with_names, without) in [
            ("out/new.md", "true new", "true new"),
            ("out/large.bin", "true ?", "true ?"),
            ("old.md", "false -", "false -"),
            ("out", "true -", "true ?"),
            ("empty", "true -", "? ?"),
            ("given.md", "true ?", "? ?"),
            ("never.md", "false -", "? ?"),
            ("link", "? ?", "? ?"),
            ("link/below.md", "? ?", "? ?"),
        ] {
            assert_eq!(said(&listed, name), with_names, "{name}");
            assert_eq!(said(&unlisted, name), without, "{name}");
        }
        let time_limit = std::time::Duration::from_secs(1);
        let command = practicum_core::model::CheckCommand { run: "true", time_limit, input: None };
        assert!(listed.run_command(&command).is_none());
    }
}
