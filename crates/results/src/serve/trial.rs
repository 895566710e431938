//! The viewer's page of one trial.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path as FilePath, PathBuf};

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{ViewerError, ViewerState, is_plain_name};
use crate::report::rich_text::read_rich_text;
use practicum_agents::agents::AgentRegistry;
use practicum_core::model::{RelPath, Step, TrialId, TrialRecord};
use practicum_core::tree::{open_regular, read_regular};
use practicum_engine::store::transcript;
use practicum_engine::store::{HumanLabel, RunDir, find_trials, read_records};

/// The greatest length of a text that is shown at once.
const TEXT_PIECE_LENGTH: usize = 16 * 1024;

/// The greatest number of steps that are shown at once.
const STEPS_PER_PAGE: usize = 200;

/// The greatest number of bytes that are read of a transcript; a longer one is shown up to here.
const MAX_TRANSCRIPT_BYTES: u64 = 64 * 1024 * 1024;

/// The greatest number of files that are listed.
const MAX_LISTED_FILES: usize = 2000;

/// A trial's folder and record.
pub(super) struct ViewedTrial {
    pub(super) run: RunDir,
    folder: PathBuf,
    pub(super) record: TrialRecord,
}

impl ViewedTrial {
    fn steps(&self) -> Vec<Step> {
        let known = AgentRegistry::default();
        transcript::read_steps(&self.folder, &self.record, MAX_TRANSCRIPT_BYTES, &known).steps
    }

    pub(super) fn find(shared: &ViewerState, run: &str, trial: &str) -> Result<Self, ViewerError> {
        let run = shared.find_run(run)?;
        let missing = || ViewerError::Missing("there is no such trial");
        if !is_plain_name(trial) {
            return Err(missing());
        }
        let mut folder = run.path().join("trials").join(trial);
        if !folder.join("checks.json").is_file() {
            let id = practicum_engine::workspace::run::run_blocking(|| resolve_trial_id(&run, trial))?;
            folder = run.path().join("trials").join(id.as_str());
        }
        let bytes = read_regular(folder.join("checks.json")).map_err(|_| missing())?;
        let record = serde_json::from_slice(&bytes)
            .map_err(|error| ViewerError::Internal(format!("its checks.json cannot be read: {error}")))?;
        Ok(Self { run, folder, record })
    }
}

/// Finds the one trial that this part of an id names, as `practicum show` does.
fn resolve_trial_id(run: &RunDir, part: &str) -> Result<TrialId, ViewerError> {
    let records = read_records(run.path()).map_err(|error| ViewerError::Internal(error.to_string()))?;
    let found = find_trials(&records, part).map_err(ViewerError::Unknown)?;
    match found.as_slice() {
        [one] => Ok(one.trial.clone()),
        several => {
            let ids: Vec<&str> = several.iter().take(10).map(|record| record.trial.as_str()).collect();
            Err(ViewerError::Unknown(format!("{} trials fit: {}", several.len(), ids.join(", "))))
        }
    }
}

pub async fn trial(
    State(shared): State<ViewerState>,
    Path((run, trial)): Path<(String, String)>,
) -> Result<Json<Value>, ViewerError> {
    let ViewedTrial { run, folder, record } = ViewedTrial::find(&shared, &run, &trial)?;
    let labels = HumanLabel::read_all(run.path()).unwrap_or_default().labels;
    let labels: Vec<&HumanLabel> = labels.iter().filter(|label| label.trial == record.trial).collect();
    let files = practicum_engine::workspace::run::run_blocking(|| list_files(&folder.join("files")));
    let why = record.not_scored_reason();
    let stderr = folder.join("stderr.txt").metadata().map(|file| file.len()).ok().filter(|bytes| *bytes > 0);
    Ok(Json(json!({
        "run": run.id(), "record": record, "verdict": record.verdict.name(), "why": why,
        "ended_in_words": record.ended.describe(),
        "files": files, "labels": labels, "stderr": stderr,
    })))
}

#[derive(Serialize)]
pub(super) struct TrialFileEntry {
    path: String,
    bytes: u64,
}

/// Lists the files that an agent left, by their paths. Links are not followed.
pub(super) fn list_files(folder: &FilePath) -> Vec<TrialFileEntry> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(&next).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                open.push(entry.path());
            } else if kind.is_file() && found.len() < MAX_LISTED_FILES {
                let path = entry.path();
                let name = path.strip_prefix(folder).ok().and_then(FilePath::to_str).map(str::to_owned);
                let bytes = entry.metadata().map_or(0, |file| file.len());
                found.extend(name.map(|path| TrialFileEntry { path, bytes }));
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

#[derive(Deserialize)]
pub struct StepsQuery {
    #[serde(default)]
    from: usize,
}

/// A piece of a text, with the length of the whole text.
#[derive(Debug, PartialEq, Serialize)]
struct TextPiece {
    text: String,
    /// The length of the whole text, in bytes.
    whole: usize,
    /// The position at which the rest begins, if there is more.
    next: Option<usize>,
}

impl TextPiece {
    fn from_offset(text: &str, from: usize) -> Self {
        let start = next_char_boundary(text, from);
        let end = next_char_boundary(text, start.saturating_add(TEXT_PIECE_LENGTH));
        let next = (end < text.len()).then_some(end);
        Self { text: text[start..end].to_owned(), whole: text.len(), next }
    }
}

/// Finds the next position at which a text can be cut.
fn next_char_boundary(text: &str, mut at: usize) -> usize {
    while at < text.len() && !text.is_char_boundary(at) {
        at += 1;
    }
    at.min(text.len())
}

fn step_document(step: &Step) -> Value {
    match step {
        Step::User(text) => json!({"kind": "user", "text": TextPiece::from_offset(text, 0)}),
        Step::Text(text) => {
            let piece = TextPiece::from_offset(text, 0);
            // Only a text that is shown as a whole can be formatted.
            let rich = piece.next.is_none().then(|| read_rich_text(text)).flatten();
            json!({"kind": "text", "text": piece, "rich": rich})
        }
        Step::Tool(call) => json!({
            "kind": "tool",
            "name": TextPiece::from_offset(&call.name, 0).text,
            "gist": transcript::summarise_tool_input(&call.input),
            "input": TextPiece::from_offset(&transcript::describe_tool_input(&call.input), 0),
            "result": call.result.as_deref().map(|text| TextPiece::from_offset(text, 0)),
            "ok": call.ok,
        }),
    }
}

pub async fn steps(
    State(shared): State<ViewerState>,
    Path((run, trial)): Path<(String, String)>,
    Query(asked): Query<StepsQuery>,
) -> Result<Json<Value>, ViewerError> {
    let kept = ViewedTrial::find(&shared, &run, &trial)?;
    let all = practicum_engine::workspace::run::run_blocking(|| kept.steps());
    let page: Vec<Value> = all.iter().skip(asked.from).take(STEPS_PER_PAGE).map(step_document).collect();
    let next = asked.from.saturating_add(page.len());
    Ok(Json(json!({"steps": page, "total": all.len(), "next": (next < all.len()).then_some(next)})))
}

#[derive(Deserialize)]
pub struct StepQuery {
    step: usize,
    part: String,
    #[serde(default)]
    from: usize,
}

/// Gives the next piece of a step's text.
pub async fn step(
    State(shared): State<ViewerState>,
    Path((run, trial)): Path<(String, String)>,
    Query(asked): Query<StepQuery>,
) -> Result<Json<Value>, ViewerError> {
    let kept = ViewedTrial::find(&shared, &run, &trial)?;
    let all = practicum_engine::workspace::run::run_blocking(|| kept.steps());
    let text = match (all.get(asked.step), asked.part.as_str()) {
        (Some(Step::User(text) | Step::Text(text)), "text") => text.clone(),
        (Some(Step::Tool(call)), "input") => transcript::describe_tool_input(&call.input),
        (Some(Step::Tool(call)), "result") => call.result.clone().unwrap_or_default(),
        _ => return Err(ViewerError::Missing("there is no such text")),
    };
    Ok(Json(json!(TextPiece::from_offset(&text, asked.from))))
}

#[derive(Deserialize)]
pub struct FileQuery {
    path: String,
    #[serde(default)]
    from: u64,
}

/// Opens a file of a trial's folder: one that the agent left, or its standard error.
pub(super) fn open_trial_file(kept: &ViewedTrial, path: &str) -> Result<File, ViewerError> {
    let missing = || ViewerError::Missing("there is no such file");
    let below = match path {
        "stderr.txt" | "output.txt" | "transcript.jsonl" => kept.folder.clone(),
        _ => kept.folder.join("files"),
    };
    let path = RelPath::new(path).ok_or_else(missing)?;
    let whole = below.join(path.as_str()).canonicalize().map_err(|_| missing())?;
    // A link could lead anywhere.
    let inside = below.canonicalize().is_ok_and(|below| whole.starts_with(below));
    if !inside || !whole.is_file() {
        return Err(missing());
    }
    open_regular(whole).map_err(|_| missing())
}

/// Gives a piece of a file, if it is text.
pub async fn file(
    State(shared): State<ViewerState>,
    Path((run, trial)): Path<(String, String)>,
    Query(asked): Query<FileQuery>,
) -> Result<Json<Value>, ViewerError> {
    let kept = ViewedTrial::find(&shared, &run, &trial)?;
    let mut file = open_trial_file(&kept, &asked.path)?;
    let broken = |error: std::io::Error| ViewerError::Internal(error.to_string());
    let whole = file.metadata().map_err(broken)?.len();
    file.seek(SeekFrom::Start(asked.from)).map_err(broken)?;
    let mut bytes = Vec::new();
    file.take(TEXT_PIECE_LENGTH as u64).read_to_end(&mut bytes).map_err(broken)?;
    if bytes.contains(&0) {
        return Ok(Json(json!({"text": null, "whole": whole, "next": null})));
    }
    // A character that the end of the piece cuts in two belongs to the next piece.
    let read = bytes.utf8_chunks().fold((0, 0), |(valid, _), chunk| {
        (valid + chunk.valid().len() + chunk.invalid().len(), chunk.invalid().len())
    });
    let end = asked.from + bytes.len() as u64;
    let cut = if end < whole && read.1 > 0 && read.1 < 4 { read.1 } else { 0 };
    let text = String::from_utf8_lossy(&bytes[..bytes.len() - cut]).into_owned();
    let next = end - cut as u64;
    Ok(Json(json!({"text": text, "whole": whole, "next": (next < whole).then_some(next)})))
}

/// Gives a file as a download, so that the browser never displays it.
pub async fn download(
    State(shared): State<ViewerState>,
    Path((run, trial)): Path<(String, String)>,
    Query(asked): Query<FileQuery>,
) -> Result<Response, ViewerError> {
    let kept = ViewedTrial::find(&shared, &run, &trial)?;
    let mut bytes = Vec::new();
    let file = open_trial_file(&kept, &asked.path)?;
    practicum_engine::workspace::run::run_blocking(|| file.take(64 * 1024 * 1024).read_to_end(&mut bytes))
        .map_err(|error| ViewerError::Internal(error.to_string()))?;
    let headers = [(CONTENT_TYPE, "application/octet-stream"), (CONTENT_DISPOSITION, "attachment")];
    Ok((headers, Body::from(bytes)).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_together_are_the_whole() {
        for text in [String::new(), "short".to_owned(), "ä€🙂".repeat(9000)] {
            let mut joined = String::new();
            let mut from = Some(0);
            while let Some(at) = from {
                let piece = TextPiece::from_offset(&text, at);
                assert!(piece.text.len() <= TEXT_PIECE_LENGTH + 4 && piece.whole == text.len());
                joined.push_str(&piece.text);
                from = piece.next;
            }
            assert_eq!(joined, text);
        }
    }
}
