//! The money that the runs of one command share.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use super::{RunLimits, RunOptions, SessionError};
use crate::intake::{Bench, IntakeError, Shared};
use crate::judge::Scrub;
use crate::settings::{Layers, MAX_COST, MAX_TOKENS};
use crate::store::Scrubber;
use practicum_agents::gateway::{Budget, Ledger, Prices, PricesError};

/// The budget of one command. Clones spend from the same money.
#[derive(Clone, Default)]
pub struct SharedBudget(Arc<OnceLock<Arc<Ledger>>>);

impl SharedBudget {
    /// The account of the budget. The first caller opens it, as the settings say; `tell` gets what the user should
    /// know about it.
    pub fn open(
        &self,
        layers: &Layers,
        max_cost_usd: Option<f64>,
        prices: Option<&Path>,
        tell: &mut dyn FnMut(&str),
    ) -> Result<Arc<Ledger>, SessionError> {
        if let Some(ledger) = self.0.get() {
            return Ok(Arc::clone(ledger));
        }
        let max_cost = match max_cost_usd {
            Some(usd) => Some(usd),
            None => layers.pick_global(&MAX_COST)?.value,
        };
        let max_tokens = layers.pick_global(&MAX_TOKENS)?.value;
        let prices = prices.map_or_else(|| Ok(Prices::default()), Prices::with_file)?;
        if let Some(usd) = max_cost {
            tell(&format!("at most ${usd}, by prices of {}", prices.date));
        }
        let ledger = Arc::new(Ledger::new(Budget { max_cost, max_tokens }, prices));
        Ok(Arc::clone(self.0.get_or_init(|| ledger)))
    }
}

impl From<PricesError> for SessionError {
    fn from(error: PricesError) -> Self {
        Self::Refused(error.to_string())
    }
}

/// What all gateways and judges of one run share.
pub fn shared_services(
    options: &RunOptions,
    limits: &RunLimits,
    layers: &Layers,
    project: &Path,
    scrubber: &Scrubber,
    tell: &mut dyn FnMut(&str),
) -> Result<Shared, SessionError> {
    let cleaner = scrubber.clone();
    let scrub: Scrub = Arc::new(move |text| cleaner.text(text));
    let bench = Bench::of(project, layers, &scrub, options.no_reuse).map_err(IntakeError::from)?;
    let ledger = limits.budget.open(layers, limits.max_cost_usd, options.prices.as_deref(), tell)?;
    Ok(Shared { ledger, scrub, bench })
}
