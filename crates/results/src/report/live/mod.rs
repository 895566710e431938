//! Progress on a terminal: what runs now, and how far all is, drawn over itself.

mod frame;

use std::fmt::Write as _;
use std::io::Write;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use frame::{Running, Scene};

use super::progress::{Suites, finished_line, notice_line, skill_lines};
use super::safe;
use practicum_core::event::{RunEvent, Sink};
use practicum_core::model::Verdict;

/// How often what is shown is drawn again.
const PACE: Duration = Duration::from_millis(200);

/// Draws on standard error until the run is over.
pub struct LiveView {
    canvas: Arc<Mutex<Canvas>>,
    /// Dropped to end the thread that draws.
    end: Option<Sender<()>>,
    drawing: Option<JoinHandle<()>>,
    done: usize,
    suites: Suites,
}

struct Canvas {
    scene: Scene,
    /// How many lines are drawn now.
    drawn: usize,
}

impl Canvas {
    /// Writes lines that stay, above those that are drawn over, in one call: in two, the terminal
    /// would show the state between.
    fn draw(&mut self, staying: &str, lines: &[String]) -> std::io::Result<()> {
        let mut text = String::from("\x1b[?2026h\r");
        if self.drawn > 1 {
            let _ = write!(text, "\x1b[{}A", self.drawn - 1);
        }
        for line in staying.lines() {
            let _ = write!(text, "{line}\x1b[K\r\n");
        }
        for (at, line) in lines.iter().enumerate() {
            let before = if at > 0 { "\r\n" } else { "" };
            let _ = write!(text, "{before}{line}\x1b[K");
        }
        text.push_str("\x1b[J\x1b[?2026l");
        self.drawn = lines.len();
        std::io::stderr().write_all(text.as_bytes())
    }

    fn redraw(&mut self, staying: &str) -> std::io::Result<()> {
        let (width, height) = size();
        let lines = self.scene.lines(Instant::now(), width, height);
        self.draw(staying, &lines)
    }
}

impl LiveView {
    pub fn begin(suites: Suites) -> Self {
        let scene = Scene::new(0, Instant::now());
        let canvas = Arc::new(Mutex::new(Canvas { scene, drawn: 0 }));
        let (end, ended) = channel();
        let shared = Arc::clone(&canvas);
        let drawing = std::thread::spawn(move || {
            while ended.recv_timeout(PACE) == Err(RecvTimeoutError::Timeout) {
                let Ok(mut canvas) = shared.lock() else { return };
                if canvas.redraw("").is_err() {
                    return;
                }
            }
        });
        Self { canvas, end: Some(end), drawing: Some(drawing), done: 0, suites }
    }

    /// Takes what is drawn off the terminal. Nothing is drawn after.
    fn clear(&mut self) {
        drop(self.end.take());
        if let Some(drawing) = self.drawing.take() {
            // A thread that panicked has stopped drawing too.
            let _ = drawing.join();
            if let Ok(mut canvas) = self.canvas.lock() {
                // A terminal that is gone needs no clearing.
                let _ = canvas.draw("", &[]);
            }
        }
    }
}

impl Sink for LiveView {
    fn name(&self) -> &'static str {
        "terminal"
    }

    fn hear(&mut self, event: &RunEvent) -> std::io::Result<()> {
        if matches!(event, RunEvent::RunFinished { .. }) {
            self.clear();
            return Ok(());
        }
        let Ok(mut canvas) = self.canvas.lock() else { return Ok(()) };
        let scene = &mut canvas.scene;
        match event {
            RunEvent::RunStarted { trials, .. } => *scene = Scene::new(*trials, Instant::now()),
            RunEvent::TrialStarted { trial, suite, case, condition, attempt } => {
                let whose = self.suites.whose(suite, &condition.agent);
                let title = format!("{} #{attempt} ({whose})", safe(case));
                // A trial that is tried again is not twice there.
                scene.running.retain(|running| running.trial != *trial);
                scene.running.push(Running { trial: trial.clone(), title, since: Instant::now() });
            }
            RunEvent::TrialFinished { record } => {
                self.done += 1;
                scene.finish(record);
                // What passed is counted; what did not is worth a line that stays.
                if record.verdict != Verdict::Pass {
                    let line = finished_line(self.done, scene.trials, record, self.suites);
                    return canvas.redraw(&line);
                }
            }
            RunEvent::ProbeFinished { probe } => return canvas.redraw(&safe(&probe.in_words())),
            RunEvent::SkillJudged { judged } => {
                return skill_lines(judged).iter().try_for_each(|line| canvas.redraw(line));
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

/// The terminal's columns and lines, asked each time because it may change.
fn size() -> (usize, usize) {
    match rustix::termios::tcgetwinsize(std::io::stderr()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
        Ok(_) | Err(_) => (80, 24),
    }
}
