//! A stored run, with its suites.

use std::path::{Path, PathBuf};

use crate::improve::SkillContents;
use practicum_core::model::{
    Arm, Case, CasePrompt, ProbeRecord, SkillJudgement, SkillRef, Suite, TrialRecord,
};
use practicum_core::tree::read_bounded;
use practicum_engine::grade::judge::shorten_text;
use practicum_engine::store::{RunDir, read_probes, read_records, read_skill_judgements};
use practicum_skills::skill::Skill;

/// The parts of a run that later steps need.
#[derive(Debug)]
pub struct StoredRun {
    pub id: String,
    pub suites: Vec<Suite>,
    /// Whether a script answered in place of the model.
    pub scripted: bool,
    /// The records, in the order of their attempts.
    pub records: Vec<TrialRecord>,
    probes: Vec<ProbeRecord>,
    /// The judge's statements about the texts of the run's skills.
    pub skills_judged: Vec<SkillJudgement>,
    path: PathBuf,
}

/// An error: a stored run cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum StoredRunError {
    #[error("cannot read run {run}: {why}")]
    Unreadable { run: String, why: String },
}

/// The limits of what is shown of a trial.
const LONGEST_OUTPUT: usize = 60_000;
const LONGEST_FILE: usize = 20_000;
const MOST_FILES_TOTAL: usize = 80_000;
const MOST_FILES: usize = 500;
const LONGEST_TRANSCRIPT: usize = 30_000;
const LARGEST_FILE_BYTES: u64 = 64 * 1024 * 1024;

impl StoredRun {
    pub fn read(run: &RunDir) -> Result<Self, StoredRunError> {
        let unreadable = |why: String| StoredRunError::Unreadable { run: run.id().to_owned(), why };
        let info = run.info().map_err(unreadable)?;
        let kept = read_records(run.path()).map_err(|error| unreadable(error.to_string()))?;
        let mut records: Vec<TrialRecord> = kept.into_values().collect();
        records.sort_by_key(|record| record.attempt);
        Ok(Self {
            id: run.id().to_owned(),
            suites: info.suites.0.into_iter().map(|of| of.suite).collect(),
            scripted: info.scripted,
            records,
            probes: read_probes(run.path())
                .map_err(|error| unreadable(error.to_string()))?
                .into_values()
                .collect(),
            skills_judged: read_skill_judgements(run.path())
                .map_err(|error| unreadable(error.to_string()))?,
            path: run.path().to_owned(),
        })
    }

    pub fn case(&self, suite: &str, case: &str) -> Option<(&Suite, &Case)> {
        let suite = self.suites.iter().find(|known| known.name == suite)?;
        Some((suite, suite.case(case)?))
    }

    /// Gives the cost of the run itself, with its judges and probes; `None` if a part is not known. Results reused
    /// from other runs cost nothing here.
    pub fn total_cost(&self) -> Option<f64> {
        let own = self.records.iter().filter(|record| record.reused_from.is_none());
        let judges = own.clone().map(|record| &record.judging);
        let judges = judges.chain(self.skills_judged.iter().map(|said| &said.judging)).flatten();
        let agents = own.map(|record| record.cost_usd).chain(self.probes.iter().map(|probe| probe.cost_usd));
        agents.chain(judges.map(|judging| judging.cost_usd)).sum()
    }

    /// Gives the trials in which the agent had the skill; only these say something about it.
    pub fn trials_with_skill(&self) -> impl Iterator<Item = &TrialRecord> {
        self.records.iter().filter(|record| match record.condition.arm {
            Arm::WithSkill | Arm::Version(_) => true,
            Arm::WithoutSkill => false,
        })
    }

    /// Gives the suites that test a skill, found by its folder or command file.
    pub fn suites_about(&self, skill: &Path) -> Vec<&Suite> {
        let name = Skill::read(skill).map(|skill| skill.name).unwrap_or_default();
        // A version runs from a copy that no longer exists, so only its name can be compared.
        let is_it = |known: &SkillRef| match known.path.as_deref().map(SkillContents::scan) {
            Some(Ok(contents)) => contents.skill_path() == skill,
            Some(Err(_)) => known.name == name,
            None => false,
        };
        let is_about = |suite: &&Suite| suite.skills.iter().any(is_it);
        self.suites.iter().filter(is_about).collect()
    }

    /// Gives the agent's last message, and the files that it created or changed.
    pub fn output_of(&self, record: &TrialRecord) -> String {
        let folder = self.folder_of(record);
        let said = read_bounded(&folder.join("output.txt"), LARGEST_FILE_BYTES).unwrap_or_default();
        let mut text = shorten_text(&String::from_utf8_lossy(&said), LONGEST_OUTPUT);
        let mut files = String::new();
        for (relative, path) in files_below(&folder.join("files"), MOST_FILES) {
            let text =
                read_bounded(&path, LARGEST_FILE_BYTES).ok().and_then(|bytes| String::from_utf8(bytes).ok());
            let content =
                text.map_or_else(|| "(not text)".to_owned(), |text| shorten_text(&text, LONGEST_FILE));
            files.push_str(&format!("\n## The file {relative}\n{content}\n"));
        }
        text.push_str(&shorten_text(&files, MOST_FILES_TOTAL));
        text
    }

    /// Gives the transcript from the agent's own stream.
    pub fn transcript_of(&self, record: &TrialRecord) -> String {
        let path = self.folder_of(record).join("transcript.jsonl");
        let bytes = read_bounded(&path, LARGEST_FILE_BYTES).unwrap_or_default();
        shorten_text(&String::from_utf8_lossy(&bytes), LONGEST_TRANSCRIPT)
    }

    fn folder_of(&self, record: &TrialRecord) -> PathBuf {
        self.path.join("trials").join(record.trial.as_str())
    }
}

/// Gives the user's messages of a case.
pub fn user_prompt(case: &Case) -> String {
    match &case.prompt {
        CasePrompt::Turns(turns) => turns.join("\n\n"),
        CasePrompt::SkillCommand { args } => format!("(the skill's own command) {args}"),
    }
}

/// Lists the files below a folder with their relative paths. Links are not followed.
pub fn files_below(folder: &Path, most: usize) -> Vec<(String, PathBuf)> {
    let walk = ignore::WalkBuilder::new(folder).standard_filters(false).follow_links(false).build();
    let files = walk.flatten().filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    let named = files.filter_map(|entry| {
        let relative = entry.path().strip_prefix(folder).ok()?.to_str()?.to_owned();
        Some((relative, entry.into_path()))
    });
    let mut found: Vec<(String, PathBuf)> = named.take(most).collect();
    found.sort();
    found
}
