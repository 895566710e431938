//! The summary of a run that skipped trials after looking at earlier results.

use crate::model::{ActivationRates, ComparisonOutlook, ComparisonVerdict, Estimate, Summary};

/// Removes the intervals and tests that are valid only for a number of trials that was fixed in advance. Here the
/// results so far decided how many trials ran, so they would claim too much. The intervals of pass rates allow for that
/// and stay.
pub fn without_fixed_intervals(mut summary: Summary) -> Summary {
    if let Some(activation) = &mut summary.activation {
        let parts = activation.skills.iter_mut().chain(&mut activation.modes).chain(&mut activation.agents);
        parts.map(|part| &mut part.rates).chain([&mut activation.all]).for_each(remove_rate_intervals);
    }
    if let Some(predicted) = &mut summary.predicted_activation {
        let parts = predicted.skills.iter_mut().map(|part| &mut part.rates);
        parts.chain([&mut predicted.all]).for_each(remove_rate_intervals);
    }
    if let Some(arms) = &mut summary.arms {
        let suites = arms.suites.iter_mut().map(|suite| &mut suite.result);
        for result in suites.chain([&mut arms.result]) {
            remove_interval(&mut result.difference);
            (result.verdict, result.chance) = (ComparisonVerdict::Inconclusive, 1.0);
            result.outlook = ComparisonOutlook::default();
        }
    }
    summary
}

fn remove_rate_intervals(rates: &mut ActivationRates) {
    let all = [&mut rates.precision, &mut rates.recall, &mut rates.f1, &mut rates.accuracy];
    all.into_iter().for_each(remove_interval);
}

fn remove_interval(estimate: &mut Estimate) {
    (estimate.low, estimate.high) = (None, None);
}
