//! Captured trials, kept beside a skill's evals as examples for new ones.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::stored_run::{files_below, user_prompt};
use super::{StoredRun, atomic_files};
use practicum_core::model::{TrialRecord, Verdict};
use practicum_core::tree::read_bounded;
use practicum_skills::skill::evals_folder;

/// A stored trial as an example for new cases: `evals/captured/*.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "A run kept as an example (evals/captured/*.json)")]
pub struct CapturedTrial {
    #[schemars(extend("const" = 1))]
    pub schema_version: u32,
    pub run: String,
    pub suite: String,
    pub case: String,
    /// The prompts of the user.
    pub asked: String,
    /// The agent's last message, and the files that it created or changed.
    pub gave: String,
    /// `None` where it has no verdict.
    pub passed: Option<bool>,
}

const MOST_CAPTURES: usize = 20;
const LARGEST_CAPTURE_BYTES: u64 = 4 * 1024 * 1024;

/// Gives the folder of a skill's captures: with its evals, where no agent sees them.
pub fn captures_folder(skill: &Path) -> PathBuf {
    match skill.is_file() {
        true => evals_folder(skill).join("captured").join(skill.file_stem().unwrap_or_default()),
        false => evals_folder(skill).join("captured"),
    }
}

impl CapturedTrial {
    pub fn from_record(run: &StoredRun, record: &TrialRecord) -> Option<Self> {
        let (_, case) = run.case(&record.suite, &record.case)?;
        Some(Self {
            schema_version: 1,
            run: run.id.clone(),
            suite: record.suite.clone(),
            case: record.case.clone(),
            asked: user_prompt(case),
            gave: run.output_of(record),
            passed: match record.verdict {
                Verdict::Pass => Some(true),
                Verdict::Fail => Some(false),
                Verdict::NotScored(_) => None,
            },
        })
    }

    /// Writes the capture under a name such as the trial's id, which is a valid file name whatever the case's name.
    pub fn write(&self, skill: &Path, name: &str) -> std::io::Result<PathBuf> {
        let folder = captures_folder(skill);
        std::fs::create_dir_all(&folder)?;
        let path = folder.join(format!("{name}.json"));
        atomic_files::write_json(&path, self)?;
        Ok(path)
    }

    /// Reads all captures as texts to show. Other files are ignored.
    pub fn read_all(skill: &Path) -> Vec<(String, String)> {
        let kept = files_below(&captures_folder(skill), MOST_CAPTURES).into_iter();
        let read = kept.filter_map(|(_, path)| {
            let capture: Self =
                serde_json::from_slice(&read_bounded(&path, LARGEST_CAPTURE_BYTES).ok()?).ok()?;
            let text = format!("asked:\n{}\n\ngave:\n{}", capture.asked, capture.gave);
            Some((format!("case {}", capture.case), text))
        });
        read.collect()
    }
}
