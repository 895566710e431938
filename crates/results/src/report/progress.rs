use std::io::Write;

use super::markup::{cut, one_line};
use super::safe;
use practicum_core::event::{RunEvent, Sink};
use practicum_core::model::{SkillJudged, TrialRecord, Verdict};

/// Whether a trial is known by its case, or needs its suite as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suites {
    One,
    Several,
}

impl Suites {
    pub fn of(count: usize) -> Self {
        if count > 1 { Suites::Several } else { Suites::One }
    }

    /// What stands in parentheses behind a trial.
    pub(super) fn whose(self, suite: &str, agent: &str) -> String {
        match self {
            Suites::One => safe(agent),
            Suites::Several => format!("{}, {}", safe(suite), safe(agent)),
        }
    }
}

/// Plain progress, one line a finished trial, on standard error.
pub struct Progress<W> {
    out: W,
    suites: Suites,
    done: usize,
    trials: usize,
}

impl<W: Write + Send> Progress<W> {
    pub fn new(out: W, suites: Suites) -> Self {
        Self { out, suites, done: 0, trials: 0 }
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
                self.say(finished_line(self.done, self.trials, record, self.suites))
            }
            RunEvent::ProbeFinished { probe } => self.say(safe(&probe.in_words())),
            RunEvent::SkillJudged { judged } => {
                skill_lines(judged).into_iter().try_for_each(|line| self.say(line))
            }
            RunEvent::Notice { text } => self.say(notice_line(text)),
        }
    }
}

pub(super) fn finished_line(done: usize, trials: usize, record: &TrialRecord, suites: Suites) -> String {
    let word = match &record.verdict {
        Verdict::Pass => "passed",
        Verdict::Fail => "failed",
        Verdict::NotScored(_) => "not scored",
    };
    let (case, whose) = (safe(&record.case), suites.whose(&record.suite, &record.condition.agent));
    let width = trials.to_string().len();
    let (attempt, seconds) = (record.attempt, record.seconds);
    format!("[{done:>width$}/{trials}] {word:<10} {case} #{attempt} ({whose}, {seconds:.1} s)")
}

pub(super) fn skill_lines(judged: &SkillJudged) -> Vec<String> {
    const WIDEST: usize = 200;
    judged.in_words().into_iter().map(|line| cut(&one_line(&line), WIDEST)).collect()
}

pub(super) fn notice_line(text: &str) -> String {
    format!("note: {}", safe(text))
}
