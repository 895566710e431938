//! The facts about a trial that its transcript and files do not contain.

use std::collections::BTreeSet;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Scrubber;
use practicum_core::model::{
    AgentEnding, Canary, FileChange, GivenFile, MockCall, RelPath, SkillTextFinding, TokenUsage,
};
use practicum_core::studies::SkillListing;
use practicum_core::tree::read_regular;

/// The facts that regrading needs and that a trial's transcript and files do not contain: `facts.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "Facts about a trial that its transcript does not contain (trials/*/facts.json)")]
pub struct TrialFacts {
    #[schemars(extend("const" = 1))]
    pub schema_version: u32,
    /// The name of the stream format of `transcript.jsonl`.
    pub stream: String,
    /// The user's messages, each with the part of the transcript that answers it.
    pub turns: Vec<TurnFacts>,
    pub ended: AgentEnding,
    pub ended_because: Option<String>,
    /// The files that the agent created, changed or deleted. Their stored copies are in the folder `files`.
    pub files: Vec<FileChange>,
    /// The skills under test, with their names in the workspace.
    pub skills: Vec<StagedSkill>,
    /// The random lines in the staged copies of skills, which show that a copy was read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub canaries: Vec<Canary>,
    /// Whether the texts of the skills reached the model, as the requests or the results of tools show it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub text_findings: Vec<SkillTextFinding>,
    /// What the agent told its model about the skills, as its first requests at the gateway show it. Measured in the first
    /// cases of a suite with several skills; `None` elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listing: Option<SkillListing>,
    /// The content of the workspace at the end; `None` if it is too large to list.
    pub left: Option<FolderListing>,
    /// The state of the given files after the run. Records of earlier versions do not have it.
    #[serde(default)]
    pub given: Vec<GivenFile>,
    /// The calls that mocks got, in order; `None` if nothing was mocked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mock_calls: Option<Vec<MockCall>>,
    /// The user's own skills that the agent listed, although no agent should see them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leaked: Vec<String>,
    /// Why a part of the agent's output is missing; `None` if all of it is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
    pub usage: TokenUsage,
    pub cost_usd: Option<f64>,
    pub seconds: f64,
    /// The start of the agent, in UTC. Records of earlier versions do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<String>,
    /// Whether no agent was run, because the case only asks for a prediction.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_predicted: bool,
}

/// A turn of a conversation: its prompt, and its part of the transcript.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnFacts {
    pub prompt: String,
    /// The length of this turn in the transcript, in bytes.
    pub bytes: u64,
    /// Whether a simulated user said it, and not the case.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_simulated_user: bool,
}

/// A skill under test, with its own name and its name in the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StagedSkill {
    pub name: String,
    pub staged_as: String,
}

/// The names in a folder, of everything below it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FolderListing {
    pub files: BTreeSet<RelPath>,
    pub folders: BTreeSet<RelPath>,
    /// Links and whatever else is neither.
    pub others: BTreeSet<RelPath>,
}

/// The most names that are listed for each trial.
const MOST_NAMES: usize = 5_000;

impl FolderListing {
    /// Lists everything below a folder. `None` if there is too much to list, or a name is not UTF-8.
    pub fn of_folder(folder: &Path) -> Option<Self> {
        let mut left = Self::default();
        let mut open = vec![folder.to_owned()];
        let mut count = 0;
        while let Some(next) = open.pop() {
            for entry in std::fs::read_dir(&next).ok()? {
                let entry = entry.ok()?;
                count += 1;
                let path = entry.path();
                let name = RelPath::new(path.strip_prefix(folder).ok()?.to_str()?)?;
                if count > MOST_NAMES {
                    return None;
                }
                let kind = entry.file_type().ok()?;
                if kind.is_dir() {
                    left.folders.insert(name);
                    open.push(path);
                } else if kind.is_file() {
                    left.files.insert(name);
                } else {
                    left.others.insert(name);
                }
            }
        }
        Some(left)
    }
}

impl TrialFacts {
    pub fn read(folder: &Path) -> Result<Self, String> {
        let path = folder.join("facts.json");
        let bytes = read_regular(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        serde_json::from_slice(&bytes).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Adjusts the lengths of the turns to a transcript that is about to be scrubbed.
    pub(super) fn with_scrubbed_lengths(
        mut self,
        transcript: &Path,
        scrubber: &Scrubber,
    ) -> std::io::Result<Self> {
        // A single turn is the whole transcript, however long it is.
        if self.turns.len() < 2 {
            return Ok(self);
        }
        if !scrubber.file_has_secret(transcript)? {
            return Ok(self);
        }
        let bytes = read_regular(transcript)?;
        let mut rest = bytes.as_slice();
        for turn in &mut self.turns {
            let length = usize::try_from(turn.bytes).unwrap_or(usize::MAX).min(rest.len());
            let (part, after) = rest.split_at(length);
            turn.bytes = scrubber.scrub_bytes(part).map_or(part.len(), |clean| clean.len()) as u64;
            rest = after;
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_scrubbed_transcript_is_cut_where_its_turns_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("transcript.jsonl");
        let parts = ["one sk-secret-123456\n", "two", "sk-secret-123456 three"];
        std::fs::write(&path, parts.concat()).expect("write");
        let scrubber = Scrubber::new(&BTreeMap::from([("A_KEY".to_owned(), "sk-secret-123456".to_owned())]));
        let facts = TrialFacts {
            schema_version: 1,
            stream: "text".into(),
            turns: parts
                .map(|part| TurnFacts {
                    prompt: "p".into(),
                    bytes: part.len() as u64,
                    by_simulated_user: false,
                })
                .into(),
            ended: AgentEnding::Finished,
            ended_because: None,
            files: Vec::new(),
            skills: Vec::new(),
            canaries: Vec::new(),
            text_findings: Vec::new(),
            listing: None,
            left: None,
            given: Vec::new(),
            mock_calls: None,
            leaked: Vec::new(),
            unread: None,
            usage: TokenUsage::default(),
            cost_usd: None,
            seconds: 0.0,
            started: None,
            only_predicted: false,
        };
        let lengths = facts.with_scrubbed_lengths(&path, &scrubber).expect("read").turns;
        let lengths: Vec<u64> = lengths.iter().map(|turn| turn.bytes).collect();
        assert_eq!(lengths, ["one [secret]\n", "two", "[secret] three"].map(|part| part.len() as u64));
    }

    #[test]
    fn everything_that_is_left_is_listed_and_links_are_told_apart() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(folder.path().join("a/empty")).expect("create");
        std::fs::write(folder.path().join("a/x.md"), "x").expect("write");
        std::os::unix::fs::symlink("a", folder.path().join("link")).expect("link");
        let left = FolderListing::of_folder(folder.path()).expect("few names");
        let names = |set: &BTreeSet<RelPath>| set.iter().map(RelPath::to_string).collect::<Vec<_>>();
        assert_eq!(names(&left.files), ["a/x.md"]);
        assert_eq!(names(&left.folders), ["a", "a/empty"]);
        assert_eq!(names(&left.others), ["link"]);
    }
}
