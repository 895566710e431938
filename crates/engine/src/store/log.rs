//! The event log of a run.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use super::group_sync::GroupSync;
use super::{LineMarker, Scrubber};
use practicum_core::event::{EventSink, EventSinks, RunEvent};
use practicum_core::tree::append_unlinked;

/// The append-only log of a run, with one line for each event. Each line is written with one call, so that a
/// killed run leaves complete lines and at most one partial last line. Other sinks get an event only when it is on disk.
pub struct EventLog {
    file: File,
    scrubber: Scrubber,
    marker: LineMarker,
    sync: GroupSync,
}

impl EventLog {
    /// Creates the log file. Secrets that the scrubber knows are removed from every line. The other sinks get each
    /// event when the log, and the files of the trial, are on disk.
    pub fn create(
        path: &Path,
        scrubber: Scrubber,
        marker: LineMarker,
        others: EventSinks,
    ) -> std::io::Result<Self> {
        let file = append_unlinked(path)?;
        let sync = GroupSync::start(file.try_clone()?, others);
        Ok(Self { file, scrubber, marker, sync })
    }
}

impl EventSink for EventLog {
    fn name(&self) -> &'static str {
        "the record"
    }

    fn keeps_record(&self) -> bool {
        true
    }

    fn receive(&mut self, event: &RunEvent) -> std::io::Result<()> {
        let mut line = serde_json::to_vec(event)?;
        if let Some(clean) = self.scrubber.scrub_bytes(&line) {
            line = clean;
        }
        self.marker.add_to(&mut line);
        line.push(b'\n');
        self.file.write_all(&line)?;
        // The line of the end of a large run is large, and the other sinks need memory of their own.
        drop(line);
        self.sync.announce(event)?;
        match event {
            // The end of the run is reported when everything is on disk.
            RunEvent::RunFinished { .. } => self.sync.finish(),
            RunEvent::RunStarted { .. }
            | RunEvent::ProbeFinished { .. }
            | RunEvent::TrialStarted { .. }
            | RunEvent::TrialFinished { .. }
            | RunEvent::SkillJudged { .. }
            | RunEvent::Notice { .. } => Ok(()),
        }
    }
}
