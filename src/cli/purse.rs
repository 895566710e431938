//! What the runs of one command spend from, together.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use super::setting;
use crate::gateway::{Budget, Ledger, Prices};
use crate::report::safe;
use crate::settings::{Layers, MAX_COST, MAX_TOKENS};

/// Who has a clone of it spends from the same.
#[derive(Clone, Default)]
pub struct Purse(Arc<OnceLock<Arc<Ledger>>>);

impl Purse {
    /// Filled by the first who asks, as the settings say.
    pub fn open(&self, layers: &Layers, prices: Option<&Path>) -> anyhow::Result<Arc<Ledger>> {
        if let Some(ledger) = self.0.get() {
            return Ok(Arc::clone(ledger));
        }
        let ledger = Arc::new(filled(layers, prices)?);
        Ok(Arc::clone(self.0.get_or_init(|| ledger)))
    }
}

fn filled(layers: &Layers, prices: Option<&Path>) -> anyhow::Result<Ledger> {
    let max_cost = setting(layers, &MAX_COST)?;
    let max_tokens = setting(layers, &MAX_TOKENS)?;
    let prices = prices.map_or_else(|| Ok(Prices::default()), Prices::with_file)?;
    if let Some(usd) = max_cost {
        say!("note: at most ${usd}, by prices of {}", safe(&prices.date));
    }
    Ok(Ledger::new(Budget { max_cost, max_tokens }, prices))
}
