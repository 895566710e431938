//! Reads the trials of a run case by case, without holding all of them in memory.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::Path;

use serde::Deserialize;

use super::log_line::is_damaged;
use super::records::is_trial_finished_event;
use practicum_core::event::RunEvent;
use practicum_core::model::{CaseSummary, Condition, TrialId, TrialRecord};
use practicum_core::tree::open_regular;

/// The finished trials of a run, by case. Only the position of each record is in memory; records are read on
/// request.
#[derive(Debug)]
pub struct StoredTrials {
    log: File,
    cases: HashMap<StoredCaseKey, Vec<RecordPosition>>,
}

type StoredCaseKey = (String, String, Condition);

#[derive(Debug)]
struct RecordPosition {
    trial: TrialId,
    attempt: u32,
    offset: u64,
    length: usize,
}

/// The part of a record that identifies its trial.
#[derive(Deserialize)]
struct RecordLine {
    record: RecordIdentity,
}

#[derive(Deserialize)]
struct RecordIdentity {
    trial: TrialId,
    suite: String,
    case: String,
    condition: Condition,
    attempt: u32,
}

impl StoredTrials {
    /// Opens the stored trials of a run by the path of its folder.
    pub fn open(run: &Path) -> std::io::Result<Self> {
        let log = open_regular(run.join("events.jsonl"))?;
        let mut cases: HashMap<StoredCaseKey, Vec<RecordPosition>> = HashMap::new();
        let mut lines = BufReader::new(&log);
        let (mut line, mut from) = (Vec::new(), 0);
        loop {
            line.clear();
            let length = lines.read_until(b'\n', &mut line)?;
            if length == 0 {
                break;
            }
            // A line that was cut short by a kill is ignored.
            if is_trial_finished_event(&line)
                && !is_damaged(&line)
                && let Ok(RecordLine { record: RecordIdentity { trial, suite, case, condition, attempt } }) =
                    serde_json::from_slice(&line)
            {
                let places = cases.entry((suite, case, condition)).or_default();
                // The last record of each trial counts.
                places.retain(|place| place.trial != trial);
                places.push(RecordPosition { trial, attempt, offset: from, length });
            }
            from += length as u64;
        }
        for places in cases.values_mut() {
            places.sort_by_key(|place| place.attempt);
        }
        Ok(Self { log, cases })
    }

    /// Reads the trials of a case under its condition, in the order of their attempts.
    pub fn trials_of_case(&self, case: &CaseSummary) -> impl Iterator<Item = std::io::Result<TrialRecord>> {
        let key = case.condition().map(|condition| (case.suite.clone(), case.id.clone(), condition));
        let places = key.and_then(|key| self.cases.get(&key)).map(Vec::as_slice).unwrap_or_default();
        places.iter().map(|place| self.read(place))
    }

    fn read(&self, place: &RecordPosition) -> std::io::Result<TrialRecord> {
        let mut line = vec![0; place.length];
        self.log.read_exact_at(&mut line, place.offset)?;
        match serde_json::from_slice(&line)? {
            RunEvent::TrialFinished { record } => Ok(*record),
            RunEvent::RunStarted { .. }
            | RunEvent::ProbeFinished { .. }
            | RunEvent::TrialStarted { .. }
            | RunEvent::SkillJudged { .. }
            | RunEvent::Notice { .. }
            | RunEvent::RunFinished { .. } => Err(std::io::Error::other("the log has changed")),
        }
    }
}
