//! The time, cost and results of earlier trials.

use std::collections::BTreeSet;

use rusqlite::params;

use super::{Index, IndexError};
use practicum_core::compare::CaseHistory;
use practicum_core::model::Digest;
use practicum_core::stats::Cluster;

/// The times and costs of earlier trials of a suite, sorted.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PastTrialCosts {
    pub seconds: Vec<f64>,
    /// The costs of the trials whose cost is known.
    pub cost_usd: Vec<f64>,
}

/// The most trials that are considered. Older ones say little about the present.
const MOST_PAST_TRIALS: i64 = 500;

impl Index {
    /// Gives the times and costs of the newest trials of a suite with an agent and model, without reused ones.
    pub(crate) fn past_trial_costs(
        &self,
        suite: &str,
        agent: &str,
        model: Option<&str>,
        scripted: bool,
    ) -> Result<PastTrialCosts, IndexError> {
        let mut query = self.db.prepare_cached(
            "SELECT trials.seconds, trials.cost_usd FROM trials JOIN runs ON runs.n = trials.run
             WHERE suite = ?1 AND agent = ?2 AND model IS ?3 AND runs.scripted = ?4 AND NOT runs.replayed
                 AND NOT reused AND ended IN ('finished', 'timed_out', 'asked_user')
             ORDER BY trials.n DESC LIMIT ?5",
        )?;
        let rows = query.query_map(params![suite, agent, model, scripted, MOST_PAST_TRIALS], |row| {
            Ok((row.get::<_, f64>(0)?, row.get::<_, Option<f64>>(1)?))
        })?;
        let mut spent = PastTrialCosts::default();
        for row in rows {
            let (seconds, cost_usd) = row?;
            spent.seconds.push(seconds);
            spent.cost_usd.extend(cost_usd);
        }
        spent.seconds.sort_by(f64::total_cmp);
        spent.cost_usd.sort_by(f64::total_cmp);
        Ok(spent)
    }

    /// Gives the results of the newest trials of each of these setups, without reused ones and without those of the runs
    /// that are left out. Replays repeat old answers, so they say nothing new.
    pub fn results_of_setups(
        &self,
        setups: &BTreeSet<Digest>,
        left_out: &BTreeSet<String>,
    ) -> Result<CaseHistory, IndexError> {
        let mut query = self.db.prepare_cached(
            "SELECT runs.id, trials.verdict FROM trials JOIN runs ON runs.n = trials.run
             WHERE setup = ?1 AND verdict IS NOT NULL AND NOT reused AND NOT runs.replayed
             ORDER BY trials.n DESC LIMIT ?2",
        )?;
        let mut history = CaseHistory::new();
        for setup in setups {
            let rows = query.query_map(params![setup.as_str(), MOST_PAST_TRIALS], |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, bool>(1)?))
            })?;
            let mut known = Cluster::default();
            for row in rows {
                let (run, passed) = row?;
                if !left_out.contains(&run) {
                    known = Cluster::new(known.passed + u64::from(passed), known.runs + 1);
                }
            }
            history.insert(setup.clone(), known);
        }
        Ok(history)
    }
}
