//! Progress on a terminal: the running trials and the total, redrawn in place.

mod frame;

use std::fmt::Write as _;
use std::io::Write;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use frame::{LiveFrame, RunningTrial};

use super::progress::{SuiteNaming, finished_line, notice_line, skill_judgement_lines};
use super::terminal_safe;
use practicum_core::event::{EventSink, RunEvent};
use practicum_core::model::Verdict;

/// The interval between two drawings.
const REDRAW_INTERVAL: Duration = Duration::from_millis(200);

/// The live view, which draws on standard error until the run is over.
pub struct LiveView {
    canvas: Arc<Mutex<LiveCanvas>>,
    /// The sender whose drop ends the drawing thread.
    stop_sender: Option<Sender<()>>,
    drawing_thread: Option<JoinHandle<()>>,
    finished_trials: usize,
    suite_naming: SuiteNaming,
}

struct LiveCanvas {
    frame: LiveFrame,
    /// The number of lines that are drawn now.
    drawn_lines: usize,
}

impl LiveCanvas {
    /// Writes lines that stay, above those that are redrawn, in one call: with two calls, the terminal would show
    /// the state in between.
    fn draw(&mut self, staying: &str, lines: &[String]) -> std::io::Result<()> {
        let mut text = String::from("\x1b[?2026h\r");
        if self.drawn_lines > 1 {
            let _ = write!(text, "\x1b[{}A", self.drawn_lines - 1);
        }
        for line in staying.lines() {
            let _ = write!(text, "{line}\x1b[K\r\n");
        }
        for (at, line) in lines.iter().enumerate() {
            let before = if at > 0 { "\r\n" } else { "" };
            let _ = write!(text, "{before}{line}\x1b[K");
        }
        text.push_str("\x1b[J\x1b[?2026l");
        self.drawn_lines = lines.len();
        std::io::stderr().write_all(text.as_bytes())
    }

    fn redraw(&mut self, staying: &str) -> std::io::Result<()> {
        let (width, height) = terminal_size();
        let lines = self.frame.lines(Instant::now(), width, height);
        self.draw(staying, &lines)
    }
}

impl LiveView {
    /// Starts to show the progress of a run on standard error.
    pub fn start(suites: SuiteNaming) -> Self {
        let scene = LiveFrame::new(0, Instant::now());
        let canvas = Arc::new(Mutex::new(LiveCanvas { frame: scene, drawn_lines: 0 }));
        let (end, ended) = channel();
        let shared = Arc::clone(&canvas);
        let drawing = std::thread::spawn(move || {
            while ended.recv_timeout(REDRAW_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                let Ok(mut canvas) = shared.lock() else { return };
                if canvas.redraw("").is_err() {
                    return;
                }
            }
        });
        Self {
            canvas,
            stop_sender: Some(end),
            drawing_thread: Some(drawing),
            finished_trials: 0,
            suite_naming: suites,
        }
    }

    /// Removes the view from the terminal. Nothing is drawn afterwards.
    fn clear(&mut self) {
        drop(self.stop_sender.take());
        if let Some(drawing) = self.drawing_thread.take() {
            // A thread that panicked has stopped drawing, too.
            let _ = drawing.join();
            if let Ok(mut canvas) = self.canvas.lock() {
                // A terminal that is gone needs no clearing.
                let _ = canvas.draw("", &[]);
            }
        }
    }
}

impl EventSink for LiveView {
    fn name(&self) -> &'static str {
        "terminal"
    }

    fn receive(&mut self, event: &RunEvent) -> std::io::Result<()> {
        if matches!(event, RunEvent::RunFinished { .. }) {
            self.clear();
            return Ok(());
        }
        let Ok(mut canvas) = self.canvas.lock() else { return Ok(()) };
        let scene = &mut canvas.frame;
        match event {
            RunEvent::RunStarted { trials, .. } => *scene = LiveFrame::new(*trials, Instant::now()),
            RunEvent::TrialStarted { trial, suite, case, condition, attempt, worker } => {
                let whose = self.suite_naming.describe_owner(suite, &condition.agent);
                let place = worker.as_ref().map(|worker| format!(" on {}", terminal_safe(worker)));
                let title =
                    format!("{} #{attempt} ({whose}){}", terminal_safe(case), place.unwrap_or_default());
                // A trial that is retried must not be listed twice.
                scene.running_trials.retain(|running| running.trial != *trial);
                scene.running_trials.push(RunningTrial {
                    trial: trial.clone(),
                    title,
                    started: Instant::now(),
                });
            }
            RunEvent::TrialFinished { record } => {
                self.finished_trials += 1;
                scene.finish_trial(record);
                // Passed trials are only counted; the others get a line that stays.
                if record.verdict != Verdict::Pass {
                    let line = finished_line(self.finished_trials, scene.trials, record, self.suite_naming);
                    return canvas.redraw(&line);
                }
            }
            RunEvent::ProbeFinished { probe } => return canvas.redraw(&terminal_safe(&probe.describe())),
            RunEvent::SkillJudged { judged } => {
                return skill_judgement_lines(judged).iter().try_for_each(|line| canvas.redraw(line));
            }
            RunEvent::Notice { text } => return canvas.redraw(&notice_line(text)),
            RunEvent::RunFinished { .. } => {}
        }
        Ok(())
    }
}

impl Drop for LiveView {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Gives the terminal's columns and lines. It is asked each time, because the size may change.
fn terminal_size() -> (usize, usize) {
    match rustix::termios::tcgetwinsize(std::io::stderr()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
        Ok(_) | Err(_) => (80, 24),
    }
}
