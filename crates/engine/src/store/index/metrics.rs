//! The metrics that can be followed over runs.

use rusqlite::params_from_iter;
use rusqlite::types::Value;

use super::{Index, IndexError};
use practicum_core::stats::{ALPHA, Cluster, Interval, clustered_rate};

/// A metric that can be followed over runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    PassRate,
    CriteriaPassRate,
    MeanScore,
    Precision,
    Recall,
    F1,
    Accuracy,
    Unscored,
    Cost,
    Seconds,
    Tokens,
}

impl Metric {
    pub const ALL: [Metric; 11] = [
        Metric::PassRate,
        Metric::CriteriaPassRate,
        Metric::MeanScore,
        Metric::Precision,
        Metric::Recall,
        Metric::F1,
        Metric::Accuracy,
        Metric::Unscored,
        Metric::Cost,
        Metric::Seconds,
        Metric::Tokens,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Metric::PassRate => "pass_rate",
            Metric::CriteriaPassRate => "criteria_pass_rate",
            Metric::MeanScore => "mean_score",
            Metric::Precision => "precision",
            Metric::Recall => "recall",
            Metric::F1 => "f1",
            Metric::Accuracy => "accuracy",
            Metric::Unscored => "unscored",
            Metric::Cost => "cost_usd",
            Metric::Seconds => "seconds",
            Metric::Tokens => "tokens",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|metric| metric.name() == text)
    }

    /// Says whether the metric is always between 0 and 1.
    pub fn is_share(self) -> bool {
        match self {
            Metric::PassRate
            | Metric::CriteriaPassRate
            | Metric::MeanScore
            | Metric::Precision
            | Metric::Recall
            | Metric::F1
            | Metric::Accuracy
            | Metric::Unscored => true,
            Metric::Cost | Metric::Seconds | Metric::Tokens => false,
        }
    }

    /// Says whether the metric is a share of trials, of which each counts or does not.
    fn is_share_of_trials(self) -> bool {
        match self {
            Metric::PassRate | Metric::Precision | Metric::Recall | Metric::Accuracy | Metric::Unscored => {
                true
            }
            Metric::CriteriaPassRate
            | Metric::MeanScore
            | Metric::F1
            | Metric::Cost
            | Metric::Seconds
            | Metric::Tokens => false,
        }
    }

    /// Gives an SQL condition that at least one trial must meet for the metric to mean anything. Without a case in
    /// which the skill must not be activated, no activation can be wrong.
    fn required_trials_sql(self) -> &'static str {
        match self {
            Metric::Precision | Metric::F1 | Metric::Accuracy => "outcome IN ('fp', 'tn')",
            _ => "1",
        }
    }

    /// Gives the SQL of a sum over trials and of its divisor.
    fn sums_sql(self) -> (&'static str, &'static str) {
        match self {
            Metric::PassRate => ("verdict", "verdict IS NOT NULL"),
            Metric::CriteriaPassRate => ("criteria_passed", "criteria"),
            Metric::MeanScore => ("share_sum", "shares"),
            Metric::Precision => ("outcome = 'tp'", "outcome IN ('tp', 'fp')"),
            Metric::Recall => ("outcome = 'tp'", "outcome IN ('tp', 'fn')"),
            Metric::F1 => ("2 * (outcome = 'tp')", "(outcome = 'tp') + (outcome IN ('tp', 'fp', 'fn'))"),
            Metric::Accuracy => ("outcome IN ('tp', 'tn')", "outcome IN ('tp', 'fp', 'tn', 'fn')"),
            Metric::Unscored => ("verdict IS NULL", "1"),
            Metric::Cost => ("cost_usd", "cost_usd IS NOT NULL"),
            Metric::Seconds => ("seconds", "1"),
            Metric::Tokens => ("tokens", "1"),
        }
    }
}

/// The trials of which a metric is computed. An absent part means all. The arm without the skill counts only if it
/// is named, because it has no gate to pass.
#[derive(Debug, Clone, Default)]
pub struct MetricScope {
    pub suite: Option<String>,
    pub case: Option<String>,
    pub agent: Option<String>,
    pub arm: Option<String>,
    /// Whether to include runs of an earlier version of the skill, which were made only for comparison.
    pub earlier_skills: bool,
}

/// The value of a metric in one run.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricPoint {
    pub run: String,
    pub started: String,
    /// The value; `None` if nothing was measured.
    pub value: Option<f64>,
    /// The interval of the value, for shares of trials. Repeats of a case count as one cluster.
    pub interval: Option<Interval>,
    /// The number of trials, checks or agent runs that the value is computed from.
    pub n: u64,
    /// How many of the trials in scope were reused from earlier runs.
    pub reused: u64,
    /// Whether the model's answers came from a script or (`replayed`) from a recording.
    pub scripted: bool,
    pub replayed: bool,
}

impl Index {
    /// Gives a metric for each of the newest runs that have trials in scope, the oldest first.
    pub(crate) fn metric_points(
        &self,
        metric: Metric,
        scope: &MetricScope,
        runs: usize,
    ) -> Result<Vec<MetricPoint>, IndexError> {
        let ((sum, whole), needs) = (metric.sums_sql(), metric.required_trials_sql());
        let mut conditions = String::from("1");
        let mut values = Vec::new();
        let parts =
            [("suite", &scope.suite), ("case_id", &scope.case), ("agent", &scope.agent), ("arm", &scope.arm)];
        for (column, value) in parts {
            if let Some(value) = value {
                conditions.push_str(&format!(" AND {column} = ?"));
                values.push(Value::Text(value.clone()));
            }
        }
        if scope.arm.is_none() {
            conditions.push_str(" AND arm <> 'without'");
        }
        let of_run = if scope.earlier_skills { "1" } else { "earlier_skill IS NULL" };
        // The conditions are used twice: first to find the newest runs, then to add up only their trials.
        let limit = Value::Integer(i64::try_from(runs).unwrap_or(i64::MAX));
        values = [values.clone(), vec![limit], values].concat();
        let sql = format!(
            "WITH newest AS (
                 SELECT n, id, started, scripted, replayed FROM runs
                 WHERE {of_run} AND not_in_history IS NULL AND EXISTS (SELECT 1 FROM trials WHERE run = runs.n AND {conditions})
                 ORDER BY id DESC LIMIT ?)
             SELECT newest.id, newest.started, total({sum}), ifnull(sum({whole}), 0), ifnull(max({needs}), 0),
                 ifnull(sum(trials.reused), 0), newest.scripted, newest.replayed
             FROM newest JOIN trials ON trials.run = newest.n
             WHERE {conditions} GROUP BY newest.n, trials.suite, trials.case_id ORDER BY newest.id DESC"
        );
        let mut query = self.db.prepare(&sql)?;
        let rows = query.query_map(params_from_iter(values), |row| {
            let sums = CaseSums {
                sum: row.get(2)?,
                whole: row.get::<_, i64>(3)?.unsigned_abs(),
                means_something: row.get(4)?,
            };
            let point = MetricPoint {
                run: row.get(0)?,
                started: row.get(1)?,
                value: None,
                interval: None,
                n: 0,
                reused: row.get::<_, i64>(5)?.unsigned_abs(),
                scripted: row.get(6)?,
                replayed: row.get(7)?,
            };
            Ok((point, sums))
        })?;
        let mut runs: Vec<(MetricPoint, Vec<CaseSums>)> = Vec::new();
        for row in rows {
            let (point, sums) = row?;
            match runs.last_mut() {
                Some((last, cases)) if last.run == point.run => {
                    last.reused += point.reused;
                    cases.push(sums);
                }
                Some(_) | None => runs.push((point, vec![sums])),
            }
        }
        runs.reverse();
        Ok(runs.into_iter().map(|(point, cases)| point.with_cases(metric, &cases)).collect())
    }
}

/// What one case adds to a metric of a run.
struct CaseSums {
    sum: f64,
    whole: u64,
    /// Whether a trial of the case gives the metric a meaning.
    means_something: bool,
}

impl MetricPoint {
    fn with_cases(self, metric: Metric, cases: &[CaseSums]) -> Self {
        let sum: f64 = cases.iter().map(|case| case.sum).sum();
        let n: u64 = cases.iter().map(|case| case.whole).sum();
        let means_something = n > 0 && cases.iter().any(|case| case.means_something);
        // The sums of such a metric are whole numbers of trials.
        let cluster = |case: &CaseSums| Cluster::new(case.sum.max(0.0) as u64, case.whole);
        let clusters: Vec<Cluster> = cases.iter().map(cluster).collect();
        let interval = clustered_rate(&clusters, ALPHA).map(|(_, interval)| interval);
        Self {
            value: means_something.then(|| sum / n as f64),
            interval: interval.filter(|_| means_something && metric.is_share_of_trials()),
            n,
            ..self
        }
    }
}
