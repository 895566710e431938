//! Trials by what they are and what was said in them, a page at a time.

use rusqlite::types::Value;
use rusqlite::{Row, params_from_iter};
use serde::Serialize;

use super::{Index, IndexError};

/// A trial in a list.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct TrialRow {
    /// Its place in the index, which is where the next page goes on from. Not kept over a rebuild.
    pub n: i64,
    pub run: String,
    pub id: String,
    pub suite: String,
    pub case: String,
    pub agent: String,
    pub model: Option<String>,
    pub arm: String,
    pub mode: String,
    pub attempt: u32,
    /// `None` for no answer.
    pub passed: Option<bool>,
    /// Why there is no answer.
    pub why: Option<String>,
    pub ended: String,
    pub expect: Option<String>,
    pub fired: Option<bool>,
    pub cost_usd: Option<f64>,
    pub seconds: f64,
    pub tokens: u64,
    /// Whether it was taken over from an earlier run.
    pub reused: bool,
}

/// Which trials. An absent part means all.
#[derive(Debug, Clone, Default)]
pub struct TrialFilter {
    pub run: Option<String>,
    pub suite: Option<String>,
    pub case: Option<String>,
    pub agent: Option<String>,
    pub arm: Option<String>,
    /// `Some(None)` is those without an answer.
    pub passed: Option<Option<bool>>,
    /// Words that stand in what the agent said last or in the case's id.
    pub text: Option<String>,
}

const COLUMNS: &str = "
    trials.n, runs.id, trials.id, suite, trials.case_id, agent, model, arm, mode, attempt, verdict, why, ended, expect,
    fired, trials.cost_usd, trials.seconds, tokens, reused";

fn trial_row(row: &Row<'_>) -> rusqlite::Result<TrialRow> {
    Ok(TrialRow {
        n: row.get(0)?,
        run: row.get(1)?,
        id: row.get(2)?,
        suite: row.get(3)?,
        case: row.get(4)?,
        agent: row.get(5)?,
        model: row.get(6)?,
        arm: row.get(7)?,
        mode: row.get(8)?,
        attempt: row.get(9)?,
        passed: row.get(10)?,
        why: row.get(11)?,
        ended: row.get(12)?,
        expect: row.get(13)?,
        fired: row.get(14)?,
        cost_usd: row.get(15)?,
        seconds: row.get(16)?,
        tokens: row.get::<_, i64>(17)?.unsigned_abs(),
        reused: row.get(18)?,
    })
}

impl TrialFilter {
    /// From where and under which conditions, and what stands for their question marks.
    fn sql(&self) -> (String, Vec<Value>) {
        let mut sql = String::from("trials JOIN runs ON runs.n = trials.run WHERE 1");
        let mut values = Vec::new();
        if let Some(text) = self.text.as_deref().filter(|text| !text.trim().is_empty()) {
            // What has the words comes first and in order, so that a page needs no more of it than it shows.
            sql = "said CROSS JOIN trials ON trials.n = said.rowid JOIN runs ON runs.n = trials.run
                   WHERE said MATCH ?"
                .to_owned();
            values.push(Value::Text(words(text)));
        }
        let equal = [
            ("trials.run = (SELECT n FROM runs WHERE id = ?)", &self.run),
            ("suite = ?", &self.suite),
            ("trials.case_id = ?", &self.case),
            ("agent = ?", &self.agent),
            ("arm = ?", &self.arm),
        ];
        for (condition, value) in equal {
            if let Some(value) = value {
                sql.push_str(&format!(" AND {condition}"));
                values.push(Value::Text(value.clone()));
            }
        }
        match self.passed {
            None => {}
            Some(None) => sql.push_str(" AND verdict IS NULL"),
            Some(Some(passed)) => {
                sql.push_str(" AND verdict = ?");
                values.push(Value::Integer(passed.into()));
            }
        }
        (sql, values)
    }

    /// What its rows are in order of.
    fn place(&self) -> &'static str {
        match self.text.as_deref().is_some_and(|text| !text.trim().is_empty()) {
            true => "said.rowid",
            false => "trials.n",
        }
    }
}

/// What is searched for, as words that all must stand there, the last perhaps only begun. Quoted,
/// because people do not know FTS5's operators.
fn words(text: &str) -> String {
    let quoted: Vec<String> =
        text.split_whitespace().map(|word| format!("\"{}\"", word.replace(['"', '\0'], ""))).collect();
    format!("{} *", quoted.join(" "))
}

impl Index {
    /// A page of trials after the place `after`: in order within a run, the newest first elsewhere.
    pub fn trials(
        &self,
        filter: &TrialFilter,
        after: Option<i64>,
        limit: usize,
    ) -> Result<Vec<TrialRow>, IndexError> {
        let (mut rows, mut values) = filter.sql();
        let place = filter.place();
        let (beyond, direction) = if filter.run.is_some() { (">", "ASC") } else { ("<", "DESC") };
        if let Some(after) = after {
            rows.push_str(&format!(" AND {place} {beyond} ?"));
            values.push(Value::Integer(after));
        }
        values.push(Value::Integer(i64::try_from(limit).unwrap_or(i64::MAX)));
        let sql = format!("SELECT {COLUMNS} FROM {rows} ORDER BY {place} {direction} LIMIT ?");
        let mut query = self.db.prepare(&sql)?;
        let rows = query.query_map(params_from_iter(values), trial_row)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Every trial, one at a time.
    pub fn each_trial(
        &self,
        filter: &TrialFilter,
        mut each: impl FnMut(TrialRow) -> std::io::Result<()>,
    ) -> Result<std::io::Result<()>, IndexError> {
        let (rows, values) = filter.sql();
        let sql = format!("SELECT {COLUMNS} FROM {rows} ORDER BY {}", filter.place());
        let mut query = self.db.prepare(&sql)?;
        let mut rows = query.query(params_from_iter(values))?;
        while let Some(row) = rows.next()? {
            if let Err(error) = each(trial_row(row)?) {
                return Ok(Err(error));
            }
        }
        Ok(Ok(()))
    }
}
