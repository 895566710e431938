//! Progress as plain lines.

use std::io::Write;

use super::escaping::{to_one_line, truncate_text};
use super::terminal_safe;
use practicum_core::event::{EventSink, RunEvent};
use practicum_core::model::{Arm, SkillJudgement, TrialRecord, Verdict};

/// Whether a trial is named by its case alone, or also by its suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SuiteNaming {
    /// The run has one suite, so its name is left out.
    One,
    /// The run has several suites, so each case is shown with the name of its suite.
    Several,
}

impl SuiteNaming {
    /// Chooses by the number of suites.
    pub fn from_count(count: usize) -> Self {
        if count > 1 { SuiteNaming::Several } else { SuiteNaming::One }
    }

    /// Gives the text in parentheses after a trial.
    pub(super) fn describe_owner(self, suite: &str, agent: &str) -> String {
        match self {
            SuiteNaming::One => terminal_safe(agent),
            SuiteNaming::Several => format!("{}, {}", terminal_safe(suite), terminal_safe(agent)),
        }
    }
}

/// Plain progress on standard error, one line for each finished trial.
pub struct PlainProgress<W> {
    out: W,
    suite_naming: SuiteNaming,
    finished_trials: usize,
    trials: usize,
}

impl<W: Write + Send> PlainProgress<W> {
    /// Makes a sink that writes a line for each trial to `out`.
    pub fn new(out: W, suites: SuiteNaming) -> Self {
        Self { out, suite_naming: suites, finished_trials: 0, trials: 0 }
    }

    /// Writes a line in one call, because standard error has no buffer.
    fn write_line(&mut self, mut line: String) -> std::io::Result<()> {
        line.push('\n');
        self.out.write_all(line.as_bytes())
    }
}

impl<W: Write + Send> EventSink for PlainProgress<W> {
    fn name(&self) -> &'static str {
        "terminal"
    }

    fn receive(&mut self, event: &RunEvent) -> std::io::Result<()> {
        match event {
            RunEvent::RunStarted { trials, .. } => {
                self.trials = *trials;
                Ok(())
            }
            RunEvent::TrialStarted { .. } | RunEvent::RunFinished { .. } => Ok(()),
            RunEvent::TrialFinished { record } => {
                self.finished_trials += 1;
                self.write_line(finished_line(self.finished_trials, self.trials, record, self.suite_naming))
            }
            RunEvent::ProbeFinished { probe } => self.write_line(terminal_safe(&probe.describe())),
            RunEvent::SkillJudged { judged } => {
                skill_judgement_lines(judged).into_iter().try_for_each(|line| self.write_line(line))
            }
            RunEvent::Notice { text } => self.write_line(notice_line(text)),
        }
    }
}

pub(super) fn finished_line(done: usize, trials: usize, record: &TrialRecord, suites: SuiteNaming) -> String {
    let word = match &record.verdict {
        Verdict::Pass => "passed",
        Verdict::Fail => "failed",
        Verdict::NotScored(_) => "not scored",
    };
    let (case, whose) =
        (terminal_safe(&record.case), suites.describe_owner(&record.suite, &record.condition.agent));
    let arm = match record.condition.arm {
        Arm::WithSkill => String::new(),
        Arm::WithoutSkill | Arm::Version(_) => format!(", {}", record.condition.arm.name()),
    };
    let width = trials.to_string().len();
    let (attempt, seconds) = (record.attempt, record.seconds);
    let time = if record.is_reused() { "reused".to_owned() } else { format!("{seconds:.1} s") };
    format!("[{done:>width$}/{trials}] {word:<10} {case} #{attempt} ({whose}{arm}, {time})")
}

pub(super) fn skill_judgement_lines(judged: &SkillJudgement) -> Vec<String> {
    const MAX_LINE_LENGTH: usize = 200;
    judged.describe().into_iter().map(|line| truncate_text(&to_one_line(&line), MAX_LINE_LENGTH)).collect()
}

pub(super) fn notice_line(text: &str) -> String {
    format!("note: {}", terminal_safe(text))
}
