use std::fmt::Write as _;
use std::io::Write;

use super::safe;
use crate::event::{RunEvent, Sink};
use crate::model::Verdict;

/// Plain progress, one line a finished trial, on standard error.
pub struct Progress<W> {
    out: W,
    done: usize,
    trials: usize,
}

impl<W: Write + Send> Progress<W> {
    pub fn new(out: W) -> Self {
        Self { out, done: 0, trials: 0 }
    }
}

impl<W: Write + Send> Sink for Progress<W> {
    fn name(&self) -> &'static str {
        "terminal"
    }

    fn hear(&mut self, event: &RunEvent) -> std::io::Result<()> {
        match event {
            RunEvent::RunStarted { trials, .. } => {
                self.trials = *trials;
                Ok(())
            }
            RunEvent::TrialStarted { .. } | RunEvent::RunFinished { .. } => Ok(()),
            RunEvent::TrialFinished { record } => {
                self.done += 1;
                let word = match &record.verdict {
                    Verdict::Pass => "passed",
                    Verdict::Fail => "failed",
                    Verdict::NotScored(_) => "not scored",
                };
                say(
                    &mut self.out,
                    format_args!(
                        "[{}/{}] {word:<10} {} #{} ({}, {:.1} s)",
                        self.done,
                        self.trials,
                        safe(&record.case),
                        record.attempt,
                        safe(&record.condition.agent),
                        record.seconds
                    ),
                )
            }
            RunEvent::Notice { text } => say(&mut self.out, format_args!("note: {}", safe(text))),
        }
    }
}

/// Standard error has no buffer, so that a line in parts would be many calls.
fn say(out: &mut impl Write, line: std::fmt::Arguments<'_>) -> std::io::Result<()> {
    let mut text = String::new();
    let _ = writeln!(text, "{line}");
    out.write_all(text.as_bytes())
}
