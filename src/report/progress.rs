use std::io::Write;

use super::markup::{cut, one_line};
use super::safe;
use crate::event::{RunEvent, Sink};
use crate::model::{SkillJudged, TrialRecord, Verdict};

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

    /// In one call: standard error has no buffer.
    fn say(&mut self, mut line: String) -> std::io::Result<()> {
        line.push('\n');
        self.out.write_all(line.as_bytes())
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
                self.say(finished_line(self.done, self.trials, record))
            }
            RunEvent::ProbeFinished { probe } => self.say(safe(&probe.in_words())),
            RunEvent::SkillJudged { judged } => {
                skill_lines(judged).into_iter().try_for_each(|line| self.say(line))
            }
            RunEvent::Notice { text } => self.say(notice_line(text)),
        }
    }
}

pub(super) fn finished_line(done: usize, trials: usize, record: &TrialRecord) -> String {
    let word = match &record.verdict {
        Verdict::Pass => "passed",
        Verdict::Fail => "failed",
        Verdict::NotScored(_) => "not scored",
    };
    let (case, agent) = (safe(&record.case), safe(&record.condition.agent));
    format!("[{done}/{trials}] {word:<10} {case} #{} ({agent}, {:.1} s)", record.attempt, record.seconds)
}

pub(super) fn skill_lines(judged: &SkillJudged) -> Vec<String> {
    const WIDEST: usize = 200;
    judged.in_words().into_iter().map(|line| cut(&one_line(&line), WIDEST)).collect()
}

pub(super) fn notice_line(text: &str) -> String {
    format!("note: {}", safe(text))
}
