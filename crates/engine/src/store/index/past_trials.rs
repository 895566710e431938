//! What trials took before.

use rusqlite::params;

use super::{Index, IndexError};

/// What earlier trials of a suite took. Sorted, so that the middle is the median.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PastTrialCosts {
    pub seconds: Vec<f64>,
    /// Of those whose cost is known.
    pub cost_usd: Vec<f64>,
}

/// Older ones tell little about now.
const MOST_PAST_TRIALS: i64 = 500;

impl Index {
    /// What the newest trials of a suite with an agent and model took, those that were really run.
    pub fn past_trial_costs(
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
