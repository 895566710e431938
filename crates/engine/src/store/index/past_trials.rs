//! The time and cost of earlier trials.

use rusqlite::params;

use super::{Index, IndexError};

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
}
