//! Estimates the time and cost of a run from earlier trials.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::store::{Index, IndexError};
use practicum_core::model::{count_with_noun, format_duration};

/// The properties of trials that their time and cost depend on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct EstimatedTrialKind {
    pub suite: String,
    pub agent: String,
    pub model: Option<String>,
    /// Whether a script answers for the model.
    pub scripted: bool,
}

/// The expected time and cost of a run, as far as earlier trials show them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RunEstimate {
    pub trials: u64,
    /// The sum of medians, over the trials of kinds that have a history.
    pub seconds: f64,
    pub timed_trials: u64,
    pub cost_usd: f64,
    pub priced_trials: u64,
}

/// Adds up the median time and cost of earlier trials of each kind.
pub fn estimate_run(
    index: &Index,
    wanted: &BTreeMap<EstimatedTrialKind, u64>,
) -> Result<RunEstimate, IndexError> {
    let mut whole = RunEstimate::default();
    for (kind, count) in wanted {
        let spent = index.past_trial_costs(&kind.suite, &kind.agent, kind.model.as_deref(), kind.scripted)?;
        whole.trials += count;
        if let Some(seconds) = median(&spent.seconds) {
            whole.seconds += seconds * *count as f64;
            whole.timed_trials += count;
        }
        if let Some(cost) = median(&spent.cost_usd) {
            whole.cost_usd += cost * *count as f64;
            whole.priced_trials += count;
        }
    }
    Ok(whole)
}

/// Gives the median of sorted values.
fn median(sorted: &[f64]) -> Option<f64> {
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        length if length % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

/// Writes seconds up to two minutes, then whole minutes, because it is only an estimate.
fn describe_duration(seconds: f64) -> String {
    let unit = if seconds > 120.0 { 60.0 } else { 1.0 };
    let whole = Duration::try_from_secs_f64((seconds / unit).ceil().max(1.0) * unit);
    whole.map_or_else(|_| "very long".to_owned(), format_duration)
}

impl RunEstimate {
    /// Describes the estimate if this many trials run at once.
    pub fn describe(&self, jobs: usize) -> String {
        let part = |of: u64| match of {
            of if of == self.trials => String::new(),
            of => format!(" for {of} of {}", count_with_noun(self.trials, "trial")),
        };
        let cost = match self.priced_trials {
            0 => "cost unknown".to_owned(),
            priced => format!("about ${:.2}{}", self.cost_usd, part(priced)),
        };
        let time = match self.timed_trials {
            0 => "time unknown".to_owned(),
            timed => {
                let at_once = (jobs as u64).clamp(1, self.trials.max(1));
                format!("about {}{}", describe_duration(self.seconds / at_once as f64), part(timed))
            }
        };
        match (self.priced_trials, self.timed_trials) {
            (0, 0) => "cost and time unknown, as nothing like it was run before".to_owned(),
            _ => format!("{cost}, {time}, by the median of earlier trials"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_said_and_not_zero() {
        let known =
            RunEstimate { trials: 4, seconds: 100.0, timed_trials: 4, cost_usd: 1.0, priced_trials: 4 };
        for (estimate, jobs, expected) in [
            (
                RunEstimate { trials: 4, ..RunEstimate::default() },
                2,
                "cost and time unknown, as nothing like it was run before",
            ),
            (known, 2, "about $1.00, about 50s, by the median of earlier trials"),
            (known, 100, "about $1.00, about 25s, by the median of earlier trials"),
            (
                RunEstimate { priced_trials: 0, timed_trials: 2, ..known },
                1,
                "cost unknown, about 100s for 2 of 4 trials, by the median of earlier trials",
            ),
        ] {
            assert_eq!(estimate.describe(jobs), expected);
        }
    }

    #[test]
    fn medians() {
        for (values, expected) in [
            (vec![], None),
            (vec![3.0], Some(3.0)),
            (vec![1.0, 2.0], Some(1.5)),
            (vec![1.0, 2.0, 9.0], Some(2.0)),
        ] {
            assert_eq!(median(&values), expected);
        }
    }
}
