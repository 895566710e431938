use std::fs::File;
use std::io::Write;
use std::path::Path;

use super::Scrubber;
use practicum_core::event::{EventSink, RunEvent};

/// The append-only record of a run: one line an event. Each line is written with one call, so
/// that a kill leaves whole lines and at most one partial last one.
pub struct EventLog {
    file: File,
    scrubber: Scrubber,
}

impl EventLog {
    pub fn create(path: &Path, scrubber: Scrubber) -> std::io::Result<Self> {
        let file = File::options().create(true).append(true).open(path)?;
        Ok(Self { file, scrubber })
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
        line.push(b'\n');
        self.file.write_all(&line)
    }
}
