//! A run as a table: its cases as rows, their conditions as columns.

use rusqlite::{Row, params};
use serde::Serialize;

use super::{Index, IndexError};

/// The condition of trials, with its parts in the order in which they are compared.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ConditionColumn {
    pub agent: String,
    pub model: Option<String>,
    pub mode: String,
    pub arm: String,
}

/// A suite in a table of cases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SuiteRow {
    pub suite: String,
    pub cells: Vec<CaseCell>,
}

/// A case in a table, with a cell for each condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CaseRow {
    pub suite: String,
    pub case: String,
    pub cells: Vec<CaseCell>,
}

/// The trials of a case under one condition, by their verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CaseCell {
    pub column: ConditionColumn,
    pub passed: u64,
    pub failed: u64,
    pub not_scored: u64,
    /// Whether the case passes, if a rate decides it rather than each trial. Set when the run has ended.
    pub passes: Option<bool>,
}

fn column(row: &Row<'_>, from: usize) -> rusqlite::Result<ConditionColumn> {
    Ok(ConditionColumn {
        agent: row.get(from)?,
        model: row.get(from + 1)?,
        arm: row.get(from + 2)?,
        mode: row.get(from + 3)?,
    })
}

fn cell(row: &Row<'_>, from: usize) -> rusqlite::Result<CaseCell> {
    let count = |at: usize| row.get::<_, i64>(from + at).map(i64::unsigned_abs);
    let (trials, scored, passed) = (count(4)?, count(5)?, count(6)?);
    let (failed, not_scored) = (scored - passed, trials - scored);
    Ok(CaseCell { column: column(row, from)?, passed, failed, not_scored, passes: None })
}

const CELL_COLUMNS: &str =
    "t.agent, t.model, t.arm, t.mode, count(*), count(t.verdict), ifnull(sum(t.verdict), 0)";

/// The SQL condition that joins trials with the decision on their case.
const CELL_JOIN: &str = "ON d.run = t.run AND d.suite = t.suite AND d.case_id = t.case_id
    AND d.agent = t.agent AND d.model IS t.model AND d.arm = t.arm AND d.mode = t.mode";

impl Index {
    /// Gives the suites of a run with a cell for each condition of their trials.
    pub fn suite_cells_of(&self, run: &str) -> Result<Vec<SuiteRow>, IndexError> {
        let sql = format!(
            "SELECT suite, {CELL_COLUMNS} FROM trials t WHERE run = (SELECT n FROM runs WHERE id = ?1)
             GROUP BY suite, agent, model, arm, mode ORDER BY suite, agent, model, mode, arm"
        );
        let mut query = self.db.prepare_cached(&sql)?;
        let mut rows = query.query([run])?;
        let mut suites: Vec<SuiteRow> = Vec::new();
        while let Some(row) = rows.next()? {
            let suite: String = row.get(0)?;
            match suites.last_mut().filter(|last| last.suite == suite) {
                Some(last) => last.cells.push(cell(row, 1)?),
                None => suites.push(SuiteRow { suite, cells: vec![cell(row, 1)?] }),
            }
        }
        Ok(suites)
    }

    /// Gives a page of a run's cases after the given suite and case, in the order of the plan within each suite.
    /// With `troubled`, only cases that did not pass everywhere.
    pub fn cases_of(
        &self,
        run: &str,
        after: Option<(&str, &str)>,
        troubled: bool,
        limit: usize,
    ) -> Result<Vec<CaseRow>, IndexError> {
        let (suite, case) = after.unwrap_or_default();
        let sql = format!(
            "WITH r (n) AS (SELECT n FROM runs WHERE id = ?1),
             page AS (
                 SELECT suite, case_id, place FROM cases
                 WHERE run = (SELECT n FROM r) AND (?4 OR (suite, place) > (
                     ?2, ifnull((SELECT place FROM cases WHERE run = (SELECT n FROM r) AND suite = ?2 AND case_id = ?3), 0)))
                 AND EXISTS (
                     SELECT 1 FROM trials t
                     LEFT JOIN decided d {CELL_JOIN}
                     WHERE t.run = cases.run AND t.suite = cases.suite AND t.case_id = cases.case_id
                     AND (NOT ?5 OR ifnull(d.passes, t.verdict) IS NOT 1))
                 ORDER BY suite, place LIMIT ?6)
             SELECT t.suite, t.case_id, max(d.passes), {CELL_COLUMNS} FROM page
             JOIN trials t ON t.run = (SELECT n FROM r) AND t.suite = page.suite AND t.case_id = page.case_id
             LEFT JOIN decided d {CELL_JOIN}
             GROUP BY t.suite, page.place, t.case_id, t.agent, t.model, t.arm, t.mode
             ORDER BY t.suite, page.place, t.agent, t.model, t.mode, t.arm"
        );
        let mut query = self.db.prepare_cached(&sql)?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut rows = query.query(params![run, suite, case, after.is_none(), troubled, limit])?;
        let mut cases: Vec<CaseRow> = Vec::new();
        while let Some(row) = rows.next()? {
            let (suite, case): (String, String) = (row.get(0)?, row.get(1)?);
            let cell = CaseCell { passes: row.get(2)?, ..cell(row, 3)? };
            match cases.last_mut().filter(|last| last.suite == suite && last.case == case) {
                Some(last) => last.cells.push(cell),
                None => cases.push(CaseRow { suite, case, cells: vec![cell] }),
            }
        }
        Ok(cases)
    }
}
