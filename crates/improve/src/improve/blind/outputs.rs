//! The outputs of each side of a blind comparison: from a stored run, files or folders.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{Criterion, OutputPair, documented_criteria};
use crate::improve::stored_run::{self, StoredRun, StoredRunError};
use crate::improve::{SkillContents, SkillContentsError};
use practicum_core::model::{Case, CasePrompt, CheckKind, Suite};
use practicum_core::tree::read_bounded;
use practicum_engine::grade::judge::shorten_text;
use practicum_skills::skill::SKILL_FILE;

/// The outputs of one side, by suite and case.
#[derive(Debug, Clone, Default)]
pub struct SideOutputs {
    pub name: String,
    cases: BTreeMap<(String, String), CaseOutput>,
}

#[derive(Debug, Clone)]
struct CaseOutput {
    brief: OutputTask,
    text: String,
}

/// The request that outputs answer, and the criteria for comparing them.
#[derive(Debug, Clone)]
pub struct OutputTask {
    request: String,
    criteria: Vec<Criterion>,
}

impl OutputTask {
    /// Gives the task of a case: its request, or `words` in its place, and its judged statements as criteria.
    pub fn from_case(suite: &Suite, case: &Case, words: Option<&str>) -> Result<Self, OutputsError> {
        let request = words.map_or_else(|| request_text(suite, case), |words| Ok(words.to_owned()))?;
        Ok(Self { request, criteria: case_criteria(suite, case) })
    }

    /// Gives a task without a case: the request with the documented criteria.
    pub fn with_documented_criteria(request: &str) -> Self {
        Self { request: request.to_owned(), criteria: documented_criteria() }
    }
}

/// An error: the outputs of a side cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum OutputsError {
    #[error(transparent)]
    Stored(#[from] StoredRunError),
    #[error(transparent)]
    Contents(#[from] SkillContentsError),
    #[error(
        "case {case} of {suite} is a bare command, which says nothing to a judge; say in \"user_prompt\" what a \
         user would ask for"
    )]
    MissingRequest { suite: String, case: String },
    #[error("cannot read {path}: {why}")]
    Unreadable { path: PathBuf, why: String },
}

/// The limits of the outputs of one side.
const LONGEST_FILE: usize = 40_000;
const LONGEST_OUTPUT: usize = 100_000;
const MOST_FILES: usize = 2_000;
const LARGEST_FILE: u64 = 32 * 1024 * 1024;

impl SideOutputs {
    /// Gives the outputs of a stored run: for each case, of its first attempt with the skill that ended normally.
    /// Cases that are only about activation have no output to compare.
    pub fn from_run(run: &StoredRun, only: &dyn Fn(&str, &str) -> bool) -> Result<Self, OutputsError> {
        let mut shown = BTreeMap::new();
        for record in run.trials_with_skill().filter(|record| record.ended.can_be_graded()) {
            let name = (record.suite.clone(), record.case.clone());
            let Some((suite, case)) = run.case(&record.suite, &record.case) else { continue };
            if shown.contains_key(&name) || is_about_activation(case) || !only(&record.suite, &record.case) {
                continue;
            }
            let brief = OutputTask::from_case(suite, case, None)?;
            let text = shorten_text(&run.output_of(record), LONGEST_OUTPUT);
            shown.insert(name, CaseOutput { brief, text });
        }
        Ok(Self { name: run.id.clone(), cases: shown })
    }

    /// Gives an error if some output of a suite could not be compared, before there are any.
    pub fn require_comparable(suite: &Suite) -> Result<(), OutputsError> {
        let worked_on = suite.cases.iter().filter(|case| !is_about_activation(case));
        worked_on.map(|case| request_text(suite, case)).try_for_each(|request| request.map(|_| ()))
    }

    /// Reads outputs from a path. A file is one output, and so is a skill; in any other folder, every file is an
    /// output.
    pub fn from_path(path: &Path, brief: &OutputTask) -> Result<Self, OutputsError> {
        let name = path.display().to_string();
        let mut shown = BTreeMap::new();
        let mut show = |case: String, text: String| {
            let text = shorten_text(&text, LONGEST_OUTPUT);
            shown.insert((String::new(), case), CaseOutput { brief: brief.clone(), text });
        };
        if path.join(SKILL_FILE).is_file() {
            show("skill".to_owned(), skill_text(path)?);
        } else if path.is_dir() {
            for (relative, file) in stored_run::files_below(path, MOST_FILES) {
                show(relative, read(&file)?);
            }
        } else {
            show("file".to_owned(), read(path)?);
        }
        Ok(Self { name, cases: shown })
    }

    #[must_use]
    pub fn with_name(self, name: String) -> Self {
        Self { name, ..self }
    }
}

/// Pairs the outputs of the cases that both sides have. Also gives the names of the cases that only one side has.
pub fn pair_outputs(first: &SideOutputs, second: &SideOutputs) -> (Vec<OutputPair>, Vec<String>) {
    let mut pairings = Vec::new();
    let mut unpaired = Vec::new();
    for ((suite, case), one) in &first.cases {
        match second.cases.get(&(suite.clone(), case.clone())) {
            Some(other) => pairings.push(OutputPair {
                suite: suite.clone(),
                case: case.clone(),
                request: one.brief.request.clone(),
                criteria: one.brief.criteria.clone(),
                first: one.text.clone(),
                second: other.text.clone(),
            }),
            None => unpaired.push(case.clone()),
        }
    }
    let only_second = second.cases.keys().filter(|key| !first.cases.contains_key(*key));
    unpaired.extend(only_second.map(|(_, case)| case.clone()));
    (pairings, unpaired)
}

pub fn is_about_activation(case: &Case) -> bool {
    case.checks.iter().all(|check| matches!(check.kind, CheckKind::Activation(_)))
}

/// Gives the request in a user's words.
fn request_text(suite: &Suite, case: &Case) -> Result<String, OutputsError> {
    match (&suite.judge_policy.user_prompt, &case.prompt) {
        (_, CasePrompt::Turns(turns)) => Ok(turns.join("\n\n")),
        (Some(prompt), CasePrompt::SkillCommand { .. }) => Ok(prompt.clone()),
        (None, CasePrompt::SkillCommand { .. }) => {
            Err(OutputsError::MissingRequest { suite: suite.name.clone(), case: case.id.clone() })
        }
    }
}

/// Gives the case's own judged statements as criteria. Gives the documented dimensions if the format documents
/// them or the case has no statements.
fn case_criteria(suite: &Suite, case: &Case) -> Vec<Criterion> {
    let own = case.checks.iter().filter_map(|check| match &check.kind {
        CheckKind::Judged(judged) => {
            Some(Criterion { id: check.id.clone(), meaning: judged.statement.clone() })
        }
        CheckKind::Rule(_) | CheckKind::Sections(_) | CheckKind::Activation(_) => None,
    });
    let own: Vec<Criterion> = own.filter(|_| suite.origin.dialect != "writing-skills").collect();
    if own.is_empty() { documented_criteria() } else { own }
}

fn skill_text(path: &Path) -> Result<String, OutputsError> {
    let texts = SkillContents::scan(path)?.text_files()?;
    let shown = texts.iter().map(|(path, text)| format!("## {path}\n{}\n", shorten_text(text, LONGEST_FILE)));
    Ok(shown.collect())
}

fn read(path: &Path) -> Result<String, OutputsError> {
    let unreadable = |why| OutputsError::Unreadable { path: path.to_owned(), why };
    let bytes = read_bounded(path, LARGEST_FILE).map_err(unreadable)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
