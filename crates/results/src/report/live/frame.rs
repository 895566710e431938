//! What the live view shows at one moment.

use std::time::{Duration, Instant};

use crate::report::fold::{columns, columns_of};
use practicum_core::model::{TrialId, TrialRecord, Verdict};

/// How far a run is.
pub struct Scene {
    pub trials: usize,
    pub begun: Instant,
    pub running: Vec<Running>,
    pub passed: usize,
    pub failed: usize,
    pub not_scored: usize,
    spent: Spent,
    /// How long the trials took that ran, all together. Those taken over took no time.
    ran: (usize, Duration),
}

pub struct Running {
    pub trial: TrialId,
    /// Safe for a terminal.
    pub title: String,
    pub since: Instant,
}

/// Money, as far as it is known.
#[derive(Default)]
struct Spent {
    usd: f64,
    partly_unknown: bool,
}

impl Scene {
    pub fn new(trials: usize, begun: Instant) -> Self {
        Self {
            trials,
            begun,
            running: Vec::new(),
            passed: 0,
            failed: 0,
            not_scored: 0,
            spent: Spent::default(),
            ran: (0, Duration::ZERO),
        }
    }

    pub fn finish(&mut self, record: &TrialRecord) {
        if let Some(at) = self.running.iter().position(|running| running.trial == record.trial) {
            self.running.remove(at);
            self.ran.0 += 1;
            self.ran.1 += Duration::try_from_secs_f64(record.seconds).unwrap_or_default();
            match record.cost_usd {
                Some(usd) => self.spent.usd += usd,
                None => self.spent.partly_unknown = true,
            }
        }
        match record.verdict {
            Verdict::Pass => self.passed += 1,
            Verdict::Fail => self.failed += 1,
            Verdict::NotScored(_) => self.not_scored += 1,
        }
    }

    fn done(&self) -> usize {
        self.passed + self.failed + self.not_scored
    }

    /// What is left, at the pace so far. Nothing is said before the first has ended.
    fn remaining(&self, now: Instant) -> Option<Duration> {
        let each = self.ran.1.checked_div(u32::try_from(self.ran.0).ok()?)?;
        let at_once = u32::try_from(self.running.len()).ok().filter(|at_once| *at_once > 0)?;
        let waiting = u32::try_from(self.trials.saturating_sub(self.done() + self.running.len())).ok()?;
        let of_running = self.running.iter().map(|running| each.saturating_sub(now - running.since)).max()?;
        Some(of_running + each * waiting / at_once)
    }

    /// The lines to show: who is running, the longest first, and then how far all is.
    pub fn lines(&self, now: Instant, width: usize, height: usize) -> Vec<String> {
        let most = height.saturating_sub(3).clamp(1, MOST_RUNNING);
        let mut lines: Vec<String> = self
            .running
            .iter()
            .take(most)
            .map(|running| format!("  {:>7}  {}", clock(now - running.since), running.title))
            .collect();
        if let Some(more) = self.running.len().checked_sub(most).filter(|more| *more > 0) {
            lines.push(format!("           and {more} more"));
        }
        lines.push(self.total(now, width));
        lines.into_iter().map(|line| cut(&line, width)).collect()
    }

    /// How far all is: in signs where words have no room, and with a bar as long as there is room for.
    fn total(&self, now: Instant, width: usize) -> String {
        let room = width.saturating_sub(1);
        let in_words = self.standing(now, [" passed", " failed", " not scored"], "about ");
        let standing = match columns(&in_words) > room {
            true => self.standing(now, [" ✓", " ✗", " ?"], "≈"),
            false => in_words,
        };
        match room.saturating_sub(columns(&standing) + 1).min(LONGEST_BAR) {
            length @ SHORTEST_BAR.. => format!("{} {standing}", bar(self.done(), self.trials, length)),
            _ => standing,
        }
    }

    fn standing(&self, now: Instant, verdicts: [&str; 3], about: &str) -> String {
        let mut parts = vec![format!("{}/{}", self.done(), self.trials)];
        let counts = [self.passed, self.failed, self.not_scored].into_iter().zip(verdicts);
        parts.extend(counts.filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count}{word}")));
        if self.spent.usd > 0.0 {
            let or_more = if self.spent.partly_unknown { "+" } else { "" };
            parts.push(format!("${:.2}{or_more}", self.spent.usd));
        }
        parts.push(clock(now - self.begun));
        if let Some(remaining) = self.remaining(now) {
            parts.push(format!("{about}{} left", clock(remaining)));
        }
        parts.join(" · ")
    }
}

const MOST_RUNNING: usize = 12;

const LONGEST_BAR: usize = 20;
const SHORTEST_BAR: usize = 4;

fn bar(done: usize, all: usize, length: usize) -> String {
    let full = (done * length).checked_div(all).unwrap_or(length);
    format!("{}{}", "█".repeat(full), "░".repeat(length - full))
}

fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, seconds) => format!("{minutes}m{seconds:02}s"),
        (hours, minutes, _) => format!("{hours}h{minutes:02}m"),
    }
}

/// A line that wrapped would be one more than we know of.
fn cut(line: &str, width: usize) -> String {
    let most = width.saturating_sub(1);
    if columns(line) <= most {
        return line.to_owned();
    }
    let mut left = most.saturating_sub(1);
    let fits = |c: &char| {
        let fits = columns_of(*c) <= left;
        left = left.saturating_sub(columns_of(*c));
        fits
    };
    line.chars().take_while(fits).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use practicum_core::model::{Arm, Condition, Mode};

    fn scene(running: usize) -> (Scene, Instant) {
        let begun = Instant::now();
        let mut scene = Scene::new(50, begun);
        (scene.passed, scene.failed, scene.not_scored) = (7, 2, 1);
        scene.spent.usd = 1.234;
        scene.ran = (10, Duration::from_secs(600));
        let condition =
            Condition { agent: "a".into(), model: None, arm: Arm::WithSkill, mode: Mode::Baseline };
        scene.running = (0..running)
            .map(|n| Running {
                trial: TrialId::new("s", &n.to_string(), &condition, 1),
                title: format!("case-{n} #1 (claude)"),
                since: begun + Duration::from_secs(10 * n as u64),
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
            assert!(lines.iter().all(|line| columns(line) <= width.max(1)), "{width}: {lines:?}");
        }
        let mut wide = self::scene(1).0;
        wide.running[0].title = "潮汐表".repeat(20);
        assert!(wide.lines(now, 40, 24).iter().all(|line| columns(line) < 40), "signs of two columns");
        assert!(scene.lines(now, 80, 24).iter().any(|line| line.contains("and 18 more")));
    }

    #[test]
    fn nothing_is_foretold_before_anything_is_known() {
        let scene = Scene::new(0, Instant::now());
        let line = scene.lines(scene.begun, 80, 24).remove(0);
        assert_eq!(line, format!("{} 0/0 · 0s", "█".repeat(LONGEST_BAR)));
    }
}
