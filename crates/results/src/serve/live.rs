//! A run while it goes on, from the end of its log.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures_util::{Stream, stream};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Failure, Shared};
use practicum_engine::store::Live;

/// How often the log is looked at.
const PACE: Duration = Duration::from_millis(300);

/// How much of it is read at a time.
const PIECE: u64 = 4 * 1024 * 1024;

/// What is told of a run that goes on: what runs now and how much is done. A page that wants more
/// asks for it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
struct Standing {
    planned: u64,
    done: u64,
    passed: u64,
    failed: u64,
    running: BTreeMap<String, String>,
    finished: bool,
}

#[derive(Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Heard {
    RunStarted { trials: u64 },
    TrialStarted { trial: String, case: String },
    TrialFinished { record: Record },
    RunFinished,
    Notice,
}

#[derive(Deserialize)]
struct Record {
    trial: String,
    verdict: serde_json::Value,
}

impl Standing {
    fn hear(&mut self, line: &[u8]) {
        match serde_json::from_slice(line) {
            Ok(Heard::RunStarted { trials }) => {
                self.planned = trials;
                self.running.clear();
                self.finished = false;
            }
            Ok(Heard::TrialStarted { trial, case }) => {
                self.running.insert(trial, case);
            }
            Ok(Heard::TrialFinished { record }) => {
                self.running.remove(&record.trial);
                self.done += 1;
                self.passed += u64::from(record.verdict == "pass");
                self.failed += u64::from(record.verdict == "fail");
            }
            Ok(Heard::RunFinished) => self.finished = true,
            Ok(Heard::Notice) | Err(_) => {}
        }
    }
}

/// The log, as far as it was read.
struct Tail {
    run: PathBuf,
    at: u64,
    partial: Vec<u8>,
    standing: Standing,
    told: Option<Standing>,
}

impl Tail {
    /// Reads on. Gives whether there was more.
    fn read_on(&mut self) -> std::io::Result<bool> {
        let mut file = File::open(self.run.join("events.jsonl"))?;
        file.seek(SeekFrom::Start(self.at))?;
        let mut bytes = Vec::new();
        file.take(PIECE).read_to_end(&mut bytes)?;
        self.at += bytes.len() as u64;
        let mut lines = bytes.split(|byte| *byte == b'\n').peekable();
        while let Some(line) = lines.next() {
            self.partial.extend_from_slice(line);
            if lines.peek().is_some() {
                let whole = std::mem::take(&mut self.partial);
                self.standing.hear(&whole);
            }
        }
        Ok(!bytes.is_empty())
    }

    /// What to tell next, once there is something new.
    async fn next(&mut self) -> Option<Standing> {
        if self.told.as_ref().is_some_and(|told| told.finished) {
            return None;
        }
        loop {
            while practicum_engine::run::run_blocking(|| self.read_on()).unwrap_or(false) {}
            // One that was killed says nothing more.
            if !Live::read(&self.run).is_some_and(|live| live.is_running()) {
                self.standing.finished = true;
            }
            if self.told.as_ref() != Some(&self.standing) {
                self.told = Some(self.standing.clone());
                return self.told.clone();
            }
            tokio::time::sleep(PACE).await;
        }
    }
}

pub async fn live(
    State(shared): State<Shared>,
    Path(id): Path<String>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Failure> {
    let run = shared.run(&id)?.path().to_owned();
    let tail = Tail { run, at: 0, partial: Vec::new(), standing: Standing::default(), told: None };
    let told = stream::unfold(tail, |mut tail| async move {
        let standing = tail.next().await?;
        let event = Event::default().data(json!(standing).to_string());
        Some((Ok(event), tail))
    });
    Ok(Sse::new(told).keep_alive(KeepAlive::default()))
}
