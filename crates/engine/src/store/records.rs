//! Reads trials, probes and judgements from the event log of a run.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;

use practicum_core::event::RunEvent;
use practicum_core::model::{ProbeRecord, SkillJudgement, TrialId, TrialRecord};
use practicum_core::tree::open_regular;

/// Reads the records of a run: the last one of each trial. A line that was cut short by a kill is ignored.
pub fn read_records(run: &Path) -> std::io::Result<BTreeMap<TrialId, TrialRecord>> {
    let mut records = BTreeMap::new();
    let file = open_regular(run.join("events.jsonl"))?;
    for line in BufReader::new(file).split(b'\n') {
        let line = line?;
        // Most lines are other events. They are skipped without parsing.
        if !is_trial_finished_event(&line) {
            continue;
        }
        if let Ok(RunEvent::TrialFinished { record }) = serde_json::from_slice(&line) {
            records.insert(record.trial.clone(), *record);
        }
    }
    Ok(records)
}

/// Reads the probes of a run: the last record of each.
pub fn read_probes(run: &Path) -> std::io::Result<BTreeMap<TrialId, ProbeRecord>> {
    let mut probes = BTreeMap::new();
    let file = open_regular(run.join("events.jsonl"))?;
    for line in BufReader::new(file).split(b'\n') {
        let line = line?;
        if has_event_name(&line, b"\"probe_finished\"")
            && let Ok(RunEvent::ProbeFinished { probe }) = serde_json::from_slice(&line)
        {
            probes.insert(probe.trial.clone(), *probe);
        }
    }
    Ok(probes)
}

/// Reads the judgements on the texts of skills, in the order of the log.
pub fn read_skill_judgements(run: &Path) -> std::io::Result<Vec<SkillJudgement>> {
    let mut all = Vec::new();
    let file = open_regular(run.join("events.jsonl"))?;
    for line in BufReader::new(file).split(b'\n') {
        let line = line?;
        if has_event_name(&line, b"\"skill_judged\"")
            && let Ok(RunEvent::SkillJudged { judged }) = serde_json::from_slice(&line)
        {
            all.push(*judged);
        }
    }
    Ok(all)
}

pub(super) fn is_trial_finished_event(line: &[u8]) -> bool {
    has_event_name(line, b"\"trial_finished\"")
}

/// Says whether a line is this event. The event's name is near the beginning of its line.
fn has_event_name(line: &[u8], word: &[u8]) -> bool {
    line.windows(word.len()).take(64).any(|window| window == word)
}
