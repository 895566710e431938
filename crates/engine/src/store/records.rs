//! Reads trials, probes and judgements from the event log of a run.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;

use super::log_line::{LineMarker, is_damaged};
use practicum_core::event::RunEvent;
use practicum_core::model::{ProbeRecord, SkillJudgement, Summary, TrialId, TrialRecord};
use practicum_core::tree::open_regular;

/// Reads the records of a run: the last one of each trial. A line that was cut short by a kill or damaged is ignored.
pub fn read_records(run: &Path) -> std::io::Result<BTreeMap<TrialId, TrialRecord>> {
    read_records_of(run, |line| !is_damaged(line))
}

/// Reads the records of a run in lines that this installation wrote.
pub fn read_own_records(run: &Path, marker: &LineMarker) -> std::io::Result<BTreeMap<TrialId, TrialRecord>> {
    read_records_of(run, |line| marker.is_made_here(line))
}

fn read_records_of(
    run: &Path,
    counts: impl Fn(&[u8]) -> bool,
) -> std::io::Result<BTreeMap<TrialId, TrialRecord>> {
    let mut records = BTreeMap::new();
    read_lines(run, b"\"trial_finished\"", counts, |event| {
        if let RunEvent::TrialFinished { record } = event {
            records.insert(record.trial.clone(), *record);
        }
    })?;
    Ok(records)
}

/// Reads the probes of a run: the last record of each.
pub fn read_probes(run: &Path) -> std::io::Result<BTreeMap<TrialId, ProbeRecord>> {
    read_probes_of(run, |line| !is_damaged(line))
}

/// Reads the probes of a run in lines that this installation wrote.
pub fn read_own_probes(run: &Path, marker: &LineMarker) -> std::io::Result<BTreeMap<TrialId, ProbeRecord>> {
    read_probes_of(run, |line| marker.is_made_here(line))
}

fn read_probes_of(
    run: &Path,
    counts: impl Fn(&[u8]) -> bool,
) -> std::io::Result<BTreeMap<TrialId, ProbeRecord>> {
    let mut probes = BTreeMap::new();
    read_lines(run, b"\"probe_finished\"", counts, |event| {
        if let RunEvent::ProbeFinished { probe } = event {
            probes.insert(probe.trial.clone(), *probe);
        }
    })?;
    Ok(probes)
}

/// Reads the judgements on the texts of skills, in the order of the log.
pub fn read_skill_judgements(run: &Path) -> std::io::Result<Vec<SkillJudgement>> {
    read_judgements_of(run, |line| !is_damaged(line))
}

/// Reads the judgements on the texts of skills in lines that this installation wrote.
pub fn read_own_skill_judgements(run: &Path, marker: &LineMarker) -> std::io::Result<Vec<SkillJudgement>> {
    read_judgements_of(run, |line| marker.is_made_here(line))
}

fn read_judgements_of(run: &Path, counts: impl Fn(&[u8]) -> bool) -> std::io::Result<Vec<SkillJudgement>> {
    let mut all = Vec::new();
    read_lines(run, b"\"skill_judged\"", counts, |event| {
        if let RunEvent::SkillJudged { judged } = event {
            all.push(*judged);
        }
    })?;
    Ok(all)
}

/// Reads the summary of a run from its log. `None` if the run did not come to its end, or the line is damaged.
pub(super) fn read_logged_summary(run: &Path) -> Option<Summary> {
    let mut last = None;
    let read = read_lines(
        run,
        b"\"run_finished\"",
        |line| !is_damaged(line),
        |event| {
            if let RunEvent::RunFinished { summary } = event {
                last = Some(Arc::unwrap_or_clone(summary));
            }
        },
    );
    read.ok().and(last)
}

/// Reads the events of this name in the lines that count. Lines of other events are skipped without parsing.
fn read_lines(
    run: &Path,
    name: &[u8],
    counts: impl Fn(&[u8]) -> bool,
    mut receive: impl FnMut(RunEvent),
) -> std::io::Result<()> {
    let file = open_regular(run.join("events.jsonl"))?;
    for line in BufReader::new(file).split(b'\n') {
        let line = line?;
        if has_event_name(&line, name)
            && counts(&line)
            && let Ok(event) = serde_json::from_slice(&line)
        {
            receive(event);
        }
    }
    Ok(())
}

pub(super) fn is_trial_finished_event(line: &[u8]) -> bool {
    has_event_name(line, b"\"trial_finished\"")
}

/// Says whether a line is this event. The event's name is near the beginning of its line.
fn has_event_name(line: &[u8], word: &[u8]) -> bool {
    line.windows(word.len()).take(64).any(|window| window == word)
}
