use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;

use practicum_core::event::RunEvent;
use practicum_core::model::{ProbeRecord, SkillJudgement, TrialId, TrialRecord};

/// The records of a run, the last of each trial. A line that a kill cut short is no record.
pub fn read_records(run: &Path) -> std::io::Result<BTreeMap<TrialId, TrialRecord>> {
    let mut records = BTreeMap::new();
    let file = std::fs::File::open(run.join("events.jsonl"))?;
    for line in BufReader::new(file).split(b'\n') {
        let line = line?;
        // Most lines are not about finished trials; they need no parsing to tell.
        if !is_trial_finished_event(&line) {
            continue;
        }
        if let Ok(RunEvent::TrialFinished { record }) = serde_json::from_slice(&line) {
            records.insert(record.trial.clone(), *record);
        }
    }
    Ok(records)
}

/// The probes of a run, the last of each.
pub fn read_probes(run: &Path) -> std::io::Result<BTreeMap<TrialId, ProbeRecord>> {
    let mut probes = BTreeMap::new();
    let file = std::fs::File::open(run.join("events.jsonl"))?;
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

/// What judges said of the texts of skills, in the order they were asked.
pub fn read_skill_judgements(run: &Path) -> std::io::Result<Vec<SkillJudgement>> {
    let mut all = Vec::new();
    let file = std::fs::File::open(run.join("events.jsonl"))?;
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

/// The event's name stands at the beginning of its line.
fn has_event_name(line: &[u8], word: &[u8]) -> bool {
    line.windows(word.len()).take(64).any(|window| window == word)
}
