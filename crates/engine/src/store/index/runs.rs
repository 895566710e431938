//! The list of runs, the newest first.

use rusqlite::{OptionalExtension, Row, params};
use serde::Serialize;

use super::{Index, IndexError};
use practicum_core::model::{Outcome, RunStatus, TrialTotals};

/// A run in the list.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunRow {
    pub id: String,
    /// The time when it started; empty if unknown.
    pub started: String,
    /// Whether the model's answers came from a script or (`replayed`) from a recording.
    pub scripted: bool,
    pub replayed: bool,
    /// Whether the run counts in trends and badges. It does not if criteria were left out or nothing was checked.
    #[serde(skip)]
    pub in_history: bool,
    /// A description of the part of the cases that was run; `None` if it was all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample: Option<String>,
    /// The number of planned trials.
    pub planned: u64,
    /// The exit code; `None` until the run has ended.
    pub exit: Option<Outcome>,
    /// Whether trials failed that no gate covers.
    pub ungated: bool,
    /// Finished trials, by their verdict.
    pub passed: u64,
    pub failed: u64,
    pub not_scored: u64,
    /// The number of trials whose results come from earlier runs.
    pub reused: u64,
    /// The totals of the trials that have to pass: without those that only serve as a comparison, unless there are
    /// no others.
    pub examined: TrialTotals,
    /// The cost; `None` if any part of it is unknown.
    pub cost_usd: Option<f64>,
    pub seconds: Option<f64>,
}

impl RunRow {
    pub fn trials(&self) -> u64 {
        self.passed + self.failed + self.not_scored
    }

    /// Gives the status of the run; `None` until the run has ended.
    pub fn status(&self) -> Option<RunStatus> {
        self.exit.map(|exit| RunStatus::from_outcome(exit, self.ungated))
    }

    pub fn totals(&self) -> TrialTotals {
        let Self { passed, failed, not_scored, .. } = *self;
        TrialTotals { trials: self.trials(), passed, failed, not_scored, reused: self.reused, not_run: 0 }
    }
}

/// The columns of a run. A run that has ended has its numbers in its row; for others they are counted.
const COLUMNS: &str = "
    id, started, scripted, replayed, planned, exit, cost_usd, seconds,
    iif(exit IS NULL, (SELECT count(*) FROM trials WHERE run = runs.n), trials),
    iif(exit IS NULL, (SELECT ifnull(sum(verdict), 0) FROM trials WHERE run = runs.n), passed),
    iif(exit IS NULL, (SELECT count(verdict) - ifnull(sum(verdict), 0) FROM trials WHERE run = runs.n), failed),
    iif(exit IS NULL, (SELECT count(*) FROM trials WHERE run = runs.n AND arm <> 'without'), examined),
    iif(exit IS NULL, (SELECT ifnull(sum(verdict), 0) FROM trials WHERE run = runs.n AND arm <> 'without'),
        examined_passed),
    iif(exit IS NULL, (SELECT count(verdict) - ifnull(sum(verdict), 0) FROM trials
                       WHERE run = runs.n AND arm <> 'without'), examined_failed),
    ungated, not_in_history IS NULL, sample,
    (SELECT count(*) FROM trials WHERE run = runs.n AND reused)";

fn run_row(row: &Row<'_>) -> rusqlite::Result<RunRow> {
    let count = |at: usize| row.get::<_, i64>(at).map(i64::unsigned_abs);
    let totals = |from: usize| -> rusqlite::Result<TrialTotals> {
        let (trials, passed, failed) = (count(from)?, count(from + 1)?, count(from + 2)?);
        let not_scored = trials.saturating_sub(passed + failed);
        Ok(TrialTotals { trials, passed, failed, not_scored, ..TrialTotals::default() })
    };
    let (all, examined) = (totals(8)?, totals(11)?);
    Ok(RunRow {
        id: row.get(0)?,
        started: row.get(1)?,
        scripted: row.get(2)?,
        replayed: row.get(3)?,
        planned: count(4)?,
        exit: row.get::<_, Option<u8>>(5)?.map(Outcome::from),
        ungated: row.get(14)?,
        in_history: row.get(15)?,
        sample: row.get(16)?,
        reused: count(17)?,
        passed: all.passed,
        failed: all.failed,
        not_scored: all.not_scored,
        examined: if examined.trials == 0 { all } else { examined },
        cost_usd: row.get(6)?,
        seconds: row.get(7)?,
    })
}

impl Index {
    /// Lists runs, the newest first: those before `before`, at most `limit` of them.
    pub fn runs(&self, before: Option<&str>, limit: usize) -> Result<Vec<RunRow>, IndexError> {
        let sql = format!("SELECT {COLUMNS} FROM runs WHERE ?1 IS NULL OR id < ?1 ORDER BY id DESC LIMIT ?2");
        let mut query = self.db.prepare(&sql)?;
        let rows = query.query_map(params![before, i64::try_from(limit).unwrap_or(i64::MAX)], run_row)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    pub fn run(&self, id: &str) -> Result<Option<RunRow>, IndexError> {
        let sql = format!("SELECT {COLUMNS} FROM runs WHERE id = ?1");
        Ok(self.db.query_row(&sql, [id], run_row).optional()?)
    }

    /// Gives the names of a run's suites, at most `limit` of them.
    pub fn suites_of(&self, run: &str, limit: usize) -> Result<Vec<String>, IndexError> {
        // The query jumps from one suite to the next, so that its time does not depend on the number of trials.
        let sql = "
            WITH RECURSIVE suites (name) AS (
                SELECT min(suite) FROM trials WHERE run = (SELECT n FROM runs WHERE id = ?1)
                UNION ALL
                SELECT (SELECT min(suite) FROM trials
                        WHERE run = (SELECT n FROM runs WHERE id = ?1) AND suite > suites.name)
                FROM suites WHERE suites.name IS NOT NULL)
            SELECT name FROM suites WHERE name IS NOT NULL LIMIT ?2";
        let mut query = self.db.prepare_cached(sql)?;
        let rows =
            query.query_map(params![run, i64::try_from(limit).unwrap_or(i64::MAX)], |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}
