//! Lists trials by their properties and their text, a page at a time.

use std::collections::BTreeSet;

use rusqlite::types::Value;
use rusqlite::{Row, params_from_iter};
use serde::Serialize;

use super::{Index, IndexError};

/// A trial in a list.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct TrialRow {
    /// The row number, from which the next page continues. It changes when the index is rebuilt.
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
    /// The verdict; `None` if there is no answer.
    pub passed: Option<bool>,
    /// The reason why there is no answer.
    pub why: Option<String>,
    pub ended: String,
    pub expect: Option<String>,
    pub fired: Option<bool>,
    pub cost_usd: Option<f64>,
    pub seconds: f64,
    pub tokens: u64,
    /// Whether the trial was reused from an earlier run.
    pub reused: bool,
}

/// A filter of trials. An absent part means all.
#[derive(Debug, Clone, Default)]
pub struct TrialFilter {
    pub run: Option<String>,
    pub suite: Option<String>,
    pub case: Option<String>,
    pub agent: Option<String>,
    pub arm: Option<String>,
    /// The verdict; `Some(None)` selects trials without an answer.
    pub passed: Option<Option<bool>>,
    /// Words in the agent's output and stream, or in the case's id.
    pub text: Option<String>,
}

/// The order of a list of trials.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TrialOrder {
    /// The order in which they ended, the last first.
    #[default]
    Newest,
    /// The order of the cases in the plan, and within a case by condition.
    Case,
    Slowest,
    /// The most expensive first. Trials of unknown cost come last.
    MostExpensive,
}

impl TrialOrder {
    pub const ALL: [TrialOrder; 4] =
        [TrialOrder::Newest, TrialOrder::Case, TrialOrder::Slowest, TrialOrder::MostExpensive];

    pub fn name(self) -> &'static str {
        match self {
            TrialOrder::Newest => "newest",
            TrialOrder::Case => "case",
            TrialOrder::Slowest => "slowest",
            TrialOrder::MostExpensive => "dearest",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|order| order.name() == text)
    }

    /// Gives the sort keys, all in the same direction, so that a page continues with one comparison. The row
    /// number comes last, because two trials may be equal in all other keys.
    fn keys(self) -> &'static [&'static str] {
        match self {
            TrialOrder::Newest => &["trials.n"],
            TrialOrder::Case => &[
                "cases.run",
                "cases.suite",
                "cases.place",
                "agent",
                "ifnull(model, '')",
                "mode",
                "arm",
                "attempt",
                "trials.n",
            ],
            TrialOrder::Slowest => &["trials.seconds", "trials.n"],
            TrialOrder::MostExpensive => &["ifnull(trials.cost_usd, -1)", "trials.n"],
        }
    }

    /// Gives the tables in the order in which SQLite must go through them. Left alone, SQLite would sometimes sort
    /// everything before it gives the first page.
    fn tables(self) -> &'static str {
        match self {
            TrialOrder::Newest | TrialOrder::Slowest | TrialOrder::MostExpensive => {
                "trials CROSS JOIN runs ON runs.n = trials.run"
            }
            TrialOrder::Case => {
                "runs CROSS JOIN cases ON cases.run = runs.n CROSS JOIN trials
                 ON trials.run = cases.run AND trials.suite = cases.suite AND trials.case_id = cases.case_id"
            }
        }
    }

    fn is_descending(self) -> bool {
        match self {
            TrialOrder::Newest | TrialOrder::Slowest | TrialOrder::MostExpensive => true,
            TrialOrder::Case => false,
        }
    }
}

const COLUMNS: &str = "
    trials.n, runs.id, trials.id, trials.suite, trials.case_id, agent, model, arm, mode, attempt, verdict, why, ended, expect,
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

/// The values that a filter of trials can have.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TrialFilterValues {
    pub suites: BTreeSet<String>,
    pub agents: BTreeSet<String>,
    pub arms: BTreeSet<String>,
}

impl TrialFilter {
    /// Gives the search as an FTS5 query: all words must occur, and the last may be only the beginning of a word.
    /// The words are quoted, because users do not know the operators of FTS5.
    fn search_query(&self) -> Option<String> {
        let text = self.text.as_deref().filter(|text| !text.trim().is_empty())?;
        let quoted: Vec<String> =
            text.split_whitespace().map(|word| format!("\"{}\"", word.replace(['"', '\0'], ""))).collect();
        Some(format!("{} *", quoted.join(" ")))
    }

    /// Gives the tables and conditions in SQL, and the values of its placeholders.
    fn conditions_sql(&self, order: TrialOrder) -> (String, Vec<Value>) {
        let mut sql = format!("{} WHERE 1", order.tables());
        let mut values = Vec::new();
        if let Some(text) = self.search_query() {
            // The text search comes first and in row order, so that a page reads only the matches that it shows.
            sql = format!("said CROSS JOIN {} WHERE trials.n = said.rowid AND said MATCH ?", order.tables());
            values.push(Value::Text(text));
        }
        let equal = [
            ("trials.run = (SELECT n FROM runs WHERE id = ?)", &self.run),
            ("trials.suite = ?", &self.suite),
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
}

impl Index {
    /// Gives a page of trials after the one with the row number `after`.
    pub fn trials(
        &self,
        filter: &TrialFilter,
        order: TrialOrder,
        after: Option<i64>,
        limit: usize,
    ) -> Result<Vec<TrialRow>, IndexError> {
        let (mut rows, mut values) = filter.conditions_sql(order);
        let (beyond, direction) = if order.is_descending() { ("<", " DESC") } else { (">", "") };
        // Matches come in row order, so they need not be sorted.
        let keys = if order == TrialOrder::Newest && filter.search_query().is_some() {
            &["said.rowid"]
        } else {
            order.keys()
        };
        if let Some(after) = after {
            let of_after = match order {
                TrialOrder::Newest => "?".to_owned(),
                TrialOrder::Case | TrialOrder::Slowest | TrialOrder::MostExpensive => {
                    format!("SELECT {} FROM {} WHERE trials.n = ?", keys.join(", "), order.tables())
                }
            };
            rows.push_str(&format!(" AND ({}) {beyond} ({of_after})", keys.join(", ")));
            values.push(Value::Integer(after));
        }
        values.push(Value::Integer(i64::try_from(limit).unwrap_or(i64::MAX)));
        let ordered: Vec<String> = keys.iter().map(|key| format!("{key}{direction}")).collect();
        let sql = format!("SELECT {COLUMNS} FROM {rows} ORDER BY {} LIMIT ?", ordered.join(", "));
        let mut query = self.db.prepare(&sql)?;
        let rows = query.query_map(params_from_iter(values), trial_row)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Calls `each` for every trial, ordered by run and case.
    pub(crate) fn each_trial(
        &self,
        filter: &TrialFilter,
        mut each: impl FnMut(TrialRow) -> std::io::Result<()>,
    ) -> Result<std::io::Result<()>, IndexError> {
        let (rows, values) = filter.conditions_sql(TrialOrder::Case);
        let sql = format!("SELECT {COLUMNS} FROM {rows} ORDER BY {}", TrialOrder::Case.keys().join(", "));
        let mut query = self.db.prepare(&sql)?;
        let mut rows = query.query(params_from_iter(values))?;
        while let Some(row) = rows.next()? {
            if let Err(error) = each(trial_row(row)?) {
                return Ok(Err(error));
            }
        }
        Ok(Ok(()))
    }

    /// Gives the possible filter values: those of a run, or else those of the newest runs.
    pub fn trial_filter_values(&self, run: Option<&str>) -> Result<TrialFilterValues, IndexError> {
        let mut query = self.db.prepare_cached(
            "SELECT DISTINCT suite, agent, arm FROM trials
             WHERE run IN (SELECT n FROM runs WHERE ?1 IS NULL OR id = ?1 ORDER BY id DESC LIMIT 50)",
        )?;
        let mut choices = TrialFilterValues::default();
        let mut rows = query.query([run])?;
        while let Some(row) = rows.next()? {
            choices.suites.insert(row.get(0)?);
            choices.agents.insert(row.get(1)?);
            choices.arms.insert(row.get(2)?);
        }
        Ok(choices)
    }
}
