//! The content of the live view at one moment.

use std::time::{Duration, Instant};

use crate::report::line_wrap::{char_width, display_width};
use practicum_core::model::{TrialId, TrialRecord, Verdict};

/// The progress of a run.
pub struct LiveFrame {
    pub trials: usize,
    pub started: Instant,
    pub running_trials: Vec<RunningTrial>,
    pub passed: usize,
    pub failed: usize,
    pub not_scored: usize,
    spending: LiveSpending,
    /// The number of trials that were executed, and how long they took together. Reused trials took no time.
    executed_trials: (usize, Duration),
}

/// A running trial on the terminal.
pub struct RunningTrial {
    pub trial: TrialId,
    /// The title, safe for a terminal.
    pub title: String,
    pub started: Instant,
}

/// The money spent, as far as it is known.
#[derive(Default)]
struct LiveSpending {
    usd: f64,
    partly_unknown: bool,
}

impl LiveFrame {
    pub fn new(trials: usize, begun: Instant) -> Self {
        Self {
            trials,
            started: begun,
            running_trials: Vec::new(),
            passed: 0,
            failed: 0,
            not_scored: 0,
            spending: LiveSpending::default(),
            executed_trials: (0, Duration::ZERO),
        }
    }

    pub fn finish_trial(&mut self, record: &TrialRecord) {
        if let Some(at) = self.running_trials.iter().position(|running| running.trial == record.trial) {
            self.running_trials.remove(at);
            self.executed_trials.0 += 1;
            self.executed_trials.1 += Duration::try_from_secs_f64(record.seconds).unwrap_or_default();
            match record.cost_usd {
                Some(usd) => self.spending.usd += usd,
                None => self.spending.partly_unknown = true,
            }
        }
        match record.verdict {
            Verdict::Pass => self.passed += 1,
            Verdict::Fail => self.failed += 1,
            Verdict::NotScored(_) => self.not_scored += 1,
        }
    }

    fn finished_trials(&self) -> usize {
        self.passed + self.failed + self.not_scored
    }

    /// Estimates the remaining time at the pace so far. `None` before the first trial has ended.
    fn estimated_remaining(&self, now: Instant) -> Option<Duration> {
        let each = self.executed_trials.1.checked_div(u32::try_from(self.executed_trials.0).ok()?)?;
        let at_once = u32::try_from(self.running_trials.len()).ok().filter(|at_once| *at_once > 0)?;
        let waiting =
            u32::try_from(self.trials.saturating_sub(self.finished_trials() + self.running_trials.len()))
                .ok()?;
        let of_running =
            self.running_trials.iter().map(|running| each.saturating_sub(now - running.started)).max()?;
        Some(of_running + each * waiting / at_once)
    }

    /// Gives the lines to show: the running trials, the longest first, and then the total progress.
    pub fn lines(&self, now: Instant, width: usize, height: usize) -> Vec<String> {
        let most = height.saturating_sub(3).clamp(1, MAX_RUNNING_LINES);
        let mut lines: Vec<String> = self
            .running_trials
            .iter()
            .take(most)
            .map(|running| format!("  {:>7}  {}", format_clock(now - running.started), running.title))
            .collect();
        if let Some(more) = self.running_trials.len().checked_sub(most).filter(|more| *more > 0) {
            lines.push(format!("           and {more} more"));
        }
        lines.push(self.total_line(now, width));
        lines.into_iter().map(|line| cut_to_width(&line, width)).collect()
    }

    /// Gives the line with the total progress: with symbols if words have no room, and with a bar as long as there
    /// is room.
    fn total_line(&self, now: Instant, width: usize) -> String {
        let room = width.saturating_sub(1);
        let in_words = self.status_line(now, [" passed", " failed", " not scored"], "about ");
        let standing = match display_width(&in_words) > room {
            true => self.status_line(now, [" ✓", " ✗", " ?"], "≈"),
            false => in_words,
        };
        match room.saturating_sub(display_width(&standing) + 1).min(MAX_BAR_LENGTH) {
            length @ MIN_BAR_LENGTH.. => {
                format!("{} {standing}", progress_bar(self.finished_trials(), self.trials, length))
            }
            _ => standing,
        }
    }

    fn status_line(&self, now: Instant, verdicts: [&str; 3], about: &str) -> String {
        let mut parts = vec![format!("{}/{}", self.finished_trials(), self.trials)];
        let counts = [self.passed, self.failed, self.not_scored].into_iter().zip(verdicts);
        parts.extend(counts.filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count}{word}")));
        if self.spending.usd > 0.0 {
            let or_more = if self.spending.partly_unknown { "+" } else { "" };
            parts.push(format!("${:.2}{or_more}", self.spending.usd));
        }
        parts.push(format_clock(now - self.started));
        if let Some(remaining) = self.estimated_remaining(now) {
            parts.push(format!("{about}{} left", format_clock(remaining)));
        }
        parts.join(" · ")
    }
}

const MAX_RUNNING_LINES: usize = 12;

const MAX_BAR_LENGTH: usize = 20;
const MIN_BAR_LENGTH: usize = 4;

fn progress_bar(done: usize, all: usize, length: usize) -> String {
    let full = (done * length).checked_div(all).unwrap_or(length);
    format!("{}{}", "█".repeat(full), "░".repeat(length - full))
}

fn format_clock(time: Duration) -> String {
    let seconds = time.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, seconds) => format!("{minutes}m{seconds:02}s"),
        (hours, minutes, _) => format!("{hours}h{minutes:02}m"),
    }
}

/// Cuts a line, because a line that wraps would take one line more than the view counts.
fn cut_to_width(line: &str, width: usize) -> String {
    let most = width.saturating_sub(1);
    if display_width(line) <= most {
        return line.to_owned();
    }
    let mut left = most.saturating_sub(1);
    let fits = |c: &char| {
        let fits = char_width(*c) <= left;
        left = left.saturating_sub(char_width(*c));
        fits
    };
    line.chars().take_while(fits).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use practicum_core::model::{Arm, Condition, SkillUseMode};

    fn scene(running: usize) -> (LiveFrame, Instant) {
        let begun = Instant::now();
        let mut scene = LiveFrame::new(50, begun);
        (scene.passed, scene.failed, scene.not_scored) = (7, 2, 1);
        scene.spending.usd = 1.234;
        scene.executed_trials = (10, Duration::from_secs(600));
        let condition =
            Condition { agent: "a".into(), model: None, arm: Arm::WithSkill, mode: SkillUseMode::Baseline };
        scene.running_trials = (0..running)
            .map(|n| RunningTrial {
                trial: TrialId::new("s", &n.to_string(), &condition, 1),
                title: format!("case-{n} #1 (claude)"),
                started: begun + Duration::from_secs(10 * n as u64),
            })
            .collect();
        (scene, begun + Duration::from_secs(95))
    }

    #[test]
    fn a_moment_of_a_run() {
        let (scene, now) = scene(2);
        assert_eq!(
            scene.lines(now, 120, 40),
            [
                "    1m35s  case-0 #1 (claude)",
                "    1m25s  case-1 #1 (claude)",
                "████░░░░░░░░░░░░░░░░ 10/50 · 7 passed · 2 failed · 1 not scored · $1.23 · 1m35s · about 19m00s left",
            ]
        );
        for (width, total) in [
            (90, "██░░░░░░░░ 10/50 · 7 passed · 2 failed · 1 not scored · $1.23 · 1m35s · about 19m00s left"),
            (60, "░░░░ 10/50 · 7 ✓ · 2 ✗ · 1 ? · $1.23 · 1m35s · ≈19m00s left"),
            (40, "10/50 · 7 ✓ · 2 ✗ · 1 ? · $1.23 · 1m35…"),
        ] {
            assert_eq!(scene.lines(now, width, 40).pop().as_deref(), Some(total), "{width}");
        }
    }

    #[test]
    fn it_fits_the_terminal() {
        let (scene, now) = scene(30);
        for (width, height) in [(20, 6), (80, 24), (1, 1), (200, 100)] {
            let lines = scene.lines(now, width, height);
            assert!(lines.len() <= height.max(3), "{width}x{height}: {}", lines.len());
            assert!(lines.iter().all(|line| display_width(line) <= width.max(1)), "{width}: {lines:?}");
        }
        let mut wide = self::scene(1).0;
        wide.running_trials[0].title = "潮汐表".repeat(20);
        assert!(wide.lines(now, 40, 24).iter().all(|line| display_width(line) < 40), "signs of two columns");
        assert!(scene.lines(now, 80, 24).iter().any(|line| line.contains("and 18 more")));
    }

    #[test]
    fn nothing_is_foretold_before_anything_is_known() {
        let scene = LiveFrame::new(0, Instant::now());
        let line = scene.lines(scene.started, 80, 24).remove(0);
        assert_eq!(line, format!("{} 0/0 · 0s", "█".repeat(MAX_BAR_LENGTH)));
    }
}
