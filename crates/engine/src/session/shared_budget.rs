//! The budget that the runs of one command share.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use super::{RunLimits, RunOptions, SessionError};
use crate::grade::judge::ScrubFn;
use crate::plan::settings::{MAX_COST, MAX_TOKENS, SettingLayers};
use crate::session::run_setup::{JudgePool, SharedServices};
use crate::store::Scrubber;
use practicum_agents::gateway::{PriceTable, PricesError, SpendingBudget, SpendingLedger};

/// The budget of one command. Clones share the same money.
#[derive(Clone, Default)]
pub struct SharedBudget(Arc<OnceLock<Arc<SpendingLedger>>>);

impl SharedBudget {
    /// Gives the ledger of the budget. The first caller opens it with the limits of the settings; `tell` gets
    /// notices about it.
    pub fn open(
        &self,
        layers: &SettingLayers,
        max_cost_usd: Option<f64>,
        prices: Option<&Path>,
        tell: &mut dyn FnMut(&str),
    ) -> Result<Arc<SpendingLedger>, SessionError> {
        if let Some(ledger) = self.0.get() {
            return Ok(Arc::clone(ledger));
        }
        let max_cost = match max_cost_usd {
            Some(usd) => Some(usd),
            None => layers.resolve_global(&MAX_COST)?.value,
        };
        let max_tokens = layers.resolve_global(&MAX_TOKENS)?.value;
        let prices = prices.map_or_else(|| Ok(PriceTable::default()), PriceTable::with_user_file)?;
        if let Some(usd) = max_cost {
            tell(&format!("at most ${usd}, by prices of {}", prices.date));
        }
        let ledger = Arc::new(SpendingLedger::new(SpendingBudget { max_cost, max_tokens }, prices));
        Ok(Arc::clone(self.0.get_or_init(|| ledger)))
    }
}

impl From<PricesError> for SessionError {
    fn from(error: PricesError) -> Self {
        Self::Refused(error.to_string())
    }
}

/// Makes the services that all gateways and judges of one run share.
pub fn shared_services(
    options: &RunOptions,
    limits: &RunLimits,
    layers: &SettingLayers,
    project: &Path,
    scrubber: &Scrubber,
    tell: &mut dyn FnMut(&str),
) -> Result<SharedServices, SessionError> {
    let cleaner = scrubber.clone();
    let scrub: ScrubFn = Arc::new(move |text| cleaner.scrub_text(text));
    let judges = JudgePool::for_project(project, layers, &scrub, options.no_reuse)?;
    let ledger = limits.budget.open(layers, limits.max_cost_usd, options.prices.as_deref(), tell)?;
    Ok(SharedServices { ledger, scrub, judges })
}
