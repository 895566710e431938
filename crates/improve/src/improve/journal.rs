//! The journal of a loop: a line for each step that was done. Lines are only ever added, so that a kill loses at
//! most the current step.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::version_decision::ImproveGoal;
use practicum_core::model::Digest;
use practicum_core::tree::{append_unlinked, read_regular};

/// The inputs of a loop. A loop with other inputs is another loop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoopStart {
    pub schema_version: u32,
    pub goal: ImproveGoal,
    pub seed: u64,
    /// The evals and the settings of their runs: results under others cannot be compared.
    #[serde(rename = "exam")]
    pub evals_digest: Digest,
}

/// One line of the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum JournalLine {
    Begun(LoopStart),
    /// A run began. Until a later line gives its cost, only the run's own record has it.
    Running {
        run: String,
    },
    Done {
        step: String,
        value: Value,
        cost_usd: Option<f64>,
        seconds: f64,
    },
    /// The cost of a step that was stopped.
    Lost {
        cost_usd: Option<f64>,
        seconds: f64,
    },
    Finished,
}

/// The result of a step, and its cost if that is known.
#[derive(Debug, Clone, PartialEq)]
pub struct StepResult<T> {
    pub value: T,
    pub cost_usd: Option<f64>,
}

/// The journal of a loop, open for writing.
pub struct LoopJournal {
    path: PathBuf,
    file: File,
    /// The lock against a second loop, which would take this loop's steps for its own.
    _lock: File,
    done: BTreeMap<String, Value>,
    /// The total cost; `None` once the cost of a step is not known.
    pub cost_usd: Option<f64>,
    pub seconds: f64,
    /// A run that began and whose cost is not recorded yet.
    unaccounted_run: Option<String>,
    /// Whether this loop continues an earlier one that was stopped.
    pub resumed: bool,
    /// The new path of the journal of an earlier loop that was stopped and is not continued.
    pub abandoned_journal: Option<PathBuf>,
}

const JOURNAL_FILE: &str = "improve.jsonl";
const LOCK_FILE: &str = ".improve.lock";

/// Locks a file, unless another process has it. A process that is just starting holds its parent's locks for a
/// moment, so this tries several times.
fn try_lock(file: &File) -> bool {
    const LOCK_TRIES: u32 = 40;
    (0..LOCK_TRIES).any(|_| {
        let locked = file.try_lock().is_ok();
        if !locked {
            std::thread::sleep(Duration::from_millis(25));
        }
        locked
    })
}

impl LoopJournal {
    /// Continues a loop that began with the same inputs and did not finish, or begins a new one. The journal of
    /// another earlier loop is moved aside.
    pub fn open(workspace: &Path, begun: &LoopStart, anew: bool) -> std::io::Result<Self> {
        let path = workspace.join(JOURNAL_FILE);
        let lock = append_unlinked(workspace.join(LOCK_FILE))?;
        if !try_lock(&lock) {
            return Err(std::io::Error::other("another loop is at work on this skill"));
        }
        let bytes = match read_regular(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            read => read?,
        };
        // A line that was cut short by a kill does not count.
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let lines: Vec<JournalLine> = bytes[..whole]
            .split(|byte| *byte == b'\n')
            .filter_map(|line| serde_json::from_slice(line).ok())
            .collect();
        let same = matches!(lines.first(), Some(JournalLine::Begun(known)) if known == begun);
        let resumed = same && !anew && lines.last() != Some(&JournalLine::Finished);
        let mut given_up = None;
        if !resumed && !bytes.is_empty() {
            let mut aside = (1..).map(|n| workspace.join(format!("improve-{n}.jsonl")));
            if let Some(to) = aside.find(|path| !path.exists()) {
                std::fs::rename(&path, &to)?;
                given_up = Some(to).filter(|_| lines.last() != Some(&JournalLine::Finished));
            }
        }
        let file = append_unlinked(&path)?;
        let mut journal = Self {
            path,
            file,
            _lock: lock,
            done: BTreeMap::new(),
            cost_usd: Some(0.0),
            seconds: 0.0,
            unaccounted_run: None,
            resumed,
            abandoned_journal: given_up,
        };
        if resumed {
            journal.file.set_len(whole as u64)?;
            for line in lines {
                match line {
                    JournalLine::Running { run } => journal.unaccounted_run = Some(run),
                    JournalLine::Done { step, value, cost_usd, seconds } => {
                        journal.add_spending(cost_usd, seconds);
                        journal.done.insert(step, value);
                    }
                    JournalLine::Lost { cost_usd, seconds } => journal.add_spending(cost_usd, seconds),
                    JournalLine::Begun(_) | JournalLine::Finished => {}
                }
            }
        } else {
            journal.write_line(&JournalLine::Begun(begun.clone()))?;
        }
        Ok(journal)
    }

    /// Gives the result of a step, if it was done.
    pub fn find<T: DeserializeOwned>(&self, step: &str) -> Option<T> {
        serde_json::from_value(self.done.get(step)?.clone()).ok()
    }

    /// Records that a run begins, before anything is spent on it.
    pub fn begin_run(&mut self, run: &str) -> std::io::Result<()> {
        self.unaccounted_run = Some(run.to_owned());
        self.write_line(&JournalLine::Running { run: run.to_owned() })
    }

    /// Gives the run that was killed, if there is one.
    pub fn unaccounted_run(&self) -> Option<&str> {
        self.unaccounted_run.as_deref()
    }

    /// Records the result of a step. Only then may the next step begin.
    pub fn record_step<T: Serialize>(
        &mut self,
        step: &str,
        spent: &StepResult<T>,
        seconds: f64,
    ) -> std::io::Result<()> {
        let value = serde_json::to_value(&spent.value)?;
        self.add_spending(spent.cost_usd, seconds);
        self.done.insert(step.to_owned(), value.clone());
        self.write_line(&JournalLine::Done {
            step: step.to_owned(),
            value,
            cost_usd: spent.cost_usd,
            seconds,
        })
    }

    /// Records the cost of a step that gave no result.
    pub fn record_lost_cost(&mut self, cost_usd: Option<f64>, seconds: f64) -> std::io::Result<()> {
        self.add_spending(cost_usd, seconds);
        self.write_line(&JournalLine::Lost { cost_usd, seconds })
    }

    /// Records that the loop is over.
    pub fn finish(&mut self) -> std::io::Result<()> {
        self.write_line(&JournalLine::Finished)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    fn add_spending(&mut self, cost_usd: Option<f64>, seconds: f64) {
        self.cost_usd = self.cost_usd.zip(cost_usd).map(|(sum, more)| sum + more);
        self.seconds += seconds;
        self.unaccounted_run = None;
    }

    fn write_line(&mut self, line: &JournalLine) -> std::io::Result<()> {
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        self.file.write_all(&bytes)?;
        self.file.sync_data()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_killed_loop_goes_on_and_a_finished_one_does_not() {
        let room = tempfile::tempdir().expect("a folder");
        let evals_digest = || Digest::of_bytes(b"the evals");
        let begun = |seed| LoopStart {
            schema_version: 1,
            goal: ImproveGoal::Skill,
            seed,
            evals_digest: evals_digest(),
        };
        let open = |seed, anew| LoopJournal::open(room.path(), &begun(seed), anew).expect("a journal");
        let mut journal = open(1, false);
        journal.record_step("one", &StepResult { value: 7u32, cost_usd: Some(0.5) }, 2.0).expect("kept");
        drop(journal);
        let path = room.path().join(JOURNAL_FILE);
        let mut torn = std::fs::read(&path).expect("lines");
        torn.extend_from_slice(b"{\"done\":{\"step\":\"two\",\"val");
        std::fs::write(&path, torn).expect("write");

        let mut journal = open(1, false);
        assert!(journal.resumed);
        assert_eq!((journal.find::<u32>("one"), journal.find::<u32>("two")), (Some(7), None));
        assert_eq!((journal.cost_usd, journal.seconds), (Some(0.5), 2.0));
        journal.record_step("two", &StepResult { value: 8u32, cost_usd: None }, 1.0).expect("kept");
        drop(journal);
        let mut journal = open(1, false);
        assert_eq!((journal.find::<u32>("two"), journal.cost_usd), (Some(8), None));
        journal.begin_run("run-1").expect("kept");
        drop(journal);
        let mut journal = open(1, false);
        assert_eq!(journal.unaccounted_run(), Some("run-1"), "nobody recorded its cost");
        journal.record_lost_cost(Some(0.1), 4.0).expect("kept");
        assert_eq!(journal.unaccounted_run(), None);
        let twice = LoopJournal::open(room.path(), &begun(1), false).map(|_| ());
        assert!(twice.is_err_and(|error| error.to_string().contains("another loop")));
        drop(journal);
        let mut journal = open(1, false);
        assert!((journal.seconds - 7.0).abs() < 1e-9, "{}", journal.seconds);
        assert_eq!(journal.unaccounted_run(), None, "it is not counted twice");
        journal.finish().expect("finished");
        drop(journal);
        assert!(!open(1, false).resumed, "it was finished");
        assert!(open(1, false).resumed);
        assert!(!open(2, false).resumed, "it was begun otherwise");
        assert!(!open(2, true).resumed, "it is to begin anew");
        let other = LoopStart { evals_digest: Digest::of_bytes(b"other evals"), ..begun(2) };
        assert!(!LoopJournal::open(room.path(), &other, false).expect("a journal").resumed, "by other evals");
        assert!(room.path().join("improve-4.jsonl").exists());
    }
}
