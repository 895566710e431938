//! The progress of a running run, read from the end of its log.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures_util::{Stream, stream};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{ViewerError, ViewerState};
use practicum_core::tree::open_regular;
use practicum_engine::store::RunLock;

/// The interval at which the log is read.
const POLL_INTERVAL: Duration = Duration::from_millis(300);

/// The greatest number of bytes that are read at a time.
const READ_SIZE: u64 = 4 * 1024 * 1024;

/// The status of a running run: what runs now and how much is done. The page requests everything else itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
struct LiveRunStatus {
    planned: u64,
    done: u64,
    passed: u64,
    failed: u64,
    running: BTreeMap<String, String>,
    finished: bool,
}

#[derive(Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum LoggedEvent {
    RunStarted { trials: u64 },
    TrialStarted { trial: String, case: String },
    TrialFinished { record: LoggedRecord },
    RunFinished,
    Notice,
}

#[derive(Deserialize)]
struct LoggedRecord {
    trial: String,
    verdict: serde_json::Value,
}

impl LiveRunStatus {
    fn apply_line(&mut self, line: &[u8]) {
        match serde_json::from_slice(line) {
            Ok(LoggedEvent::RunStarted { trials }) => {
                self.planned = trials;
                self.running.clear();
                self.finished = false;
            }
            Ok(LoggedEvent::TrialStarted { trial, case }) => {
                self.running.insert(trial, case);
            }
            Ok(LoggedEvent::TrialFinished { record }) => {
                self.running.remove(&record.trial);
                self.done += 1;
                self.passed += u64::from(record.verdict == "pass");
                self.failed += u64::from(record.verdict == "fail");
            }
            Ok(LoggedEvent::RunFinished) => self.finished = true,
            Ok(LoggedEvent::Notice) | Err(_) => {}
        }
    }
}

/// The log, and how far it was read.
struct LogTail {
    run: PathBuf,
    offset: u64,
    partial: Vec<u8>,
    status: LiveRunStatus,
    last_sent: Option<LiveRunStatus>,
}

impl LogTail {
    /// Reads on. Says whether there was more.
    fn read_more(&mut self) -> std::io::Result<bool> {
        let mut file = open_regular(self.run.join("events.jsonl"))?;
        file.seek(SeekFrom::Start(self.offset))?;
        let mut bytes = Vec::new();
        file.take(READ_SIZE).read_to_end(&mut bytes)?;
        self.offset += bytes.len() as u64;
        let mut lines = bytes.split(|byte| *byte == b'\n').peekable();
        while let Some(line) = lines.next() {
            self.partial.extend_from_slice(line);
            if lines.peek().is_some() {
                let whole = std::mem::take(&mut self.partial);
                self.status.apply_line(&whole);
            }
        }
        Ok(!bytes.is_empty())
    }

    /// Waits for something new and gives the next status.
    async fn next_status(&mut self) -> Option<LiveRunStatus> {
        if self.last_sent.as_ref().is_some_and(|sent| sent.finished) {
            return None;
        }
        loop {
            while practicum_engine::workspace::run::run_blocking(|| self.read_more()).unwrap_or(false) {}
            // A run that was killed writes nothing more.
            if !RunLock::read(&self.run).is_some_and(|live| live.is_running()) {
                self.status.finished = true;
            }
            if self.last_sent.as_ref() != Some(&self.status) {
                self.last_sent = Some(self.status.clone());
                return self.last_sent.clone();
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}

pub async fn live(
    State(shared): State<ViewerState>,
    Path(id): Path<String>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, ViewerError> {
    let run = shared.find_run(&id)?.path().to_owned();
    let tail =
        LogTail { run, offset: 0, partial: Vec::new(), status: LiveRunStatus::default(), last_sent: None };
    let updates = stream::unfold(tail, |mut tail| async move {
        let standing = tail.next_status().await?;
        let event = Event::default().data(json!(standing).to_string());
        Some((Ok(event), tail))
    });
    Ok(Sse::new(updates).keep_alive(KeepAlive::default()))
}
