//! The results of checks over all their trials.

use rusqlite::params;
use serde::Serialize;

use super::{Index, IndexError};

/// One check of one trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CheckRow {
    pub id: String,
    pub required: bool,
    pub judged: bool,
    /// The verdict; `None` if there is no answer.
    pub passed: Option<bool>,
    pub score: Option<f64>,
}

/// The counts of a check's results.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckCounts {
    pub suite: String,
    pub case: String,
    pub check: String,
    pub runs: u64,
    pub passed: u64,
    pub failed: u64,
    pub not_scored: u64,
    /// The passes and fails in the arm without the skill.
    pub passed_without: u64,
    pub failed_without: u64,
    /// The number of groups of trials with the same case and condition in one run of which several have an answer,
    /// and the number of such groups with different answers.
    pub repeated: u64,
    pub divided: u64,
}

impl Index {
    /// Gives the checks of a trial, in the order of their ids.
    pub fn checks_of(&self, trial: i64) -> Result<Vec<CheckRow>, IndexError> {
        let mut query = self.db.prepare_cached(
            "SELECT id, required, judged, verdict, score FROM checks WHERE trial = ?1 ORDER BY id",
        )?;
        let rows = query.query_map([trial], |row| {
            Ok(CheckRow {
                id: row.get(0)?,
                required: row.get(1)?,
                judged: row.get(2)?,
                passed: row.get(3)?,
                score: row.get(4)?,
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Counts the results of every check in the newest runs, at most `runs` of them.
    pub(crate) fn check_counts(
        &self,
        suite: Option<&str>,
        runs: usize,
    ) -> Result<Vec<CheckCounts>, IndexError> {
        // The query first groups equal trials of one run, then all results of a check. Reused trials are left out,
        // because they would count again for every run that reused them.
        let sql = "
            WITH newest AS (SELECT n FROM runs WHERE not_in_history IS NULL ORDER BY id DESC LIMIT ?2),
            groups AS (
                SELECT t.run, t.suite, t.case_id, c.id AS check_id, t.arm = 'without' AS without,
                    count(*) AS n, count(c.verdict) AS scored, ifnull(sum(c.verdict), 0) AS passed
                FROM trials t JOIN checks c ON c.trial = t.n
                WHERE t.run IN newest AND (?1 IS NULL OR t.suite = ?1) AND NOT t.reused
                GROUP BY t.run, t.suite, t.case_id, c.id, t.agent, t.model, t.arm, t.mode)
            SELECT suite, case_id, check_id, count(DISTINCT run), sum(passed), sum(scored - passed), sum(n - scored),
                sum(iif(without, passed, 0)), sum(iif(without, scored - passed, 0)),
                sum(scored > 1), sum(passed > 0 AND passed < scored)
            FROM groups GROUP BY suite, case_id, check_id ORDER BY suite, case_id, check_id";
        let mut query = self.db.prepare(sql)?;
        let rows = query.query_map(params![suite, i64::try_from(runs).unwrap_or(i64::MAX)], |row| {
            let count = |at: usize| row.get::<_, i64>(at).map(i64::unsigned_abs);
            Ok(CheckCounts {
                suite: row.get(0)?,
                case: row.get(1)?,
                check: row.get(2)?,
                runs: count(3)?,
                passed: count(4)?,
                failed: count(5)?,
                not_scored: count(6)?,
                passed_without: count(7)?,
                failed_without: count(8)?,
                repeated: count(9)?,
                divided: count(10)?,
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}
