use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;

use practicum_core::event::RunEvent;
use practicum_core::model::{ProbeRecord, SkillJudged, TrialId, TrialRecord};

/// The records of a run, the last of each trial. A line that a kill cut short is no record.
pub fn records(run: &Path) -> std::io::Result<BTreeMap<TrialId, TrialRecord>> {
    let mut records = BTreeMap::new();
    let file = std::fs::File::open(run.join("events.jsonl"))?;
    for line in BufReader::new(file).split(b'\n') {
        let line = line?;
        // Most lines are not about finished trials; they need no parsing to tell.
        if !tells_of_a_finished_trial(&line) {
            continue;
        }
        if let Ok(RunEvent::TrialFinished { record }) = serde_json::from_slice(&line) {
            records.insert(record.trial.clone(), *record);
        }
    }
    Ok(records)
}

/// The probes of a run, the last of each.
pub fn probes(run: &Path) -> std::io::Result<BTreeMap<TrialId, ProbeRecord>> {
    let mut probes = BTreeMap::new();
    let file = std::fs::File::open(run.join("events.jsonl"))?;
    for line in BufReader::new(file).split(b'\n') {
        let line = line?;
        if begins_with(&line, b"\"probe_finished\"")
            && let Ok(RunEvent::ProbeFinished { probe }) = serde_json::from_slice(&line)
        {
            probes.insert(probe.trial.clone(), *probe);
        }
    }
    Ok(probes)
}

/// What judges said of the texts of skills, in the order they were asked.
pub fn skills_judged(run: &Path) -> std::io::Result<Vec<SkillJudged>> {
    let mut all = Vec::new();
    let file = std::fs::File::open(run.join("events.jsonl"))?;
    for line in BufReader::new(file).split(b'\n') {
        let line = line?;
        if begins_with(&line, b"\"skill_judged\"")
            && let Ok(RunEvent::SkillJudged { judged }) = serde_json::from_slice(&line)
        {
            all.push(*judged);
        }
    }
    Ok(all)
}

pub(super) fn tells_of_a_finished_trial(line: &[u8]) -> bool {
    begins_with(line, b"\"trial_finished\"")
}

/// The event's name stands at the beginning of its line.
fn begins_with(line: &[u8], word: &[u8]) -> bool {
    line.windows(word.len()).take(64).any(|window| window == word)
}
