//! The spending of a run, and whether it may spend more. All its trials and judges share one ledger.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::PriceTable;
use practicum_core::model::TokenUsage;

/// The most that a run may spend.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SpendingBudget {
    pub max_cost: Option<f64>,
    /// All tokens, including those from a cache.
    pub max_tokens: Option<u64>,
}

/// The account of a run's spending. Requests that are open when the budget is used up continue to their end, so a
/// run can exceed its budget by what was open at that moment.
#[derive(Default)]
pub struct SpendingLedger {
    budget: SpendingBudget,
    prices: PriceTable,
    totals: Mutex<LedgerTotals>,
}

#[derive(Default)]
struct LedgerTotals {
    tokens: u64,
    cost: f64,
    /// Whether `cost` lacks a part, because its price is unknown.
    cost_unknown: bool,
    /// Whether a request was refused.
    refused_any: bool,
}

/// The reason why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpendingDenial {
    BudgetUsedUp(String),
    /// A limit in money cannot be kept with a model whose price is unknown.
    UnknownPrice(String),
}

impl SpendingLedger {
    pub fn new(budget: SpendingBudget, prices: PriceTable) -> Self {
        Self { budget, prices, totals: Mutex::default() }
    }

    fn lock_totals(&self) -> MutexGuard<'_, LedgerTotals> {
        self.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn budget(&self) -> SpendingBudget {
        self.budget
    }

    pub fn has_budget(&self) -> bool {
        self.budget != SpendingBudget::default()
    }

    pub fn prices(&self) -> &PriceTable {
        &self.prices
    }

    pub fn record_spending(&self, usage: TokenUsage, cost: Option<f64>) {
        let mut spent = self.lock_totals();
        spent.tokens = [usage.input, usage.output, usage.cache_read, usage.cache_write]
            .iter()
            .fold(spent.tokens, |sum, more| sum.saturating_add(*more));
        match cost {
            Some(cost) => spent.cost += cost,
            None => spent.cost_unknown = true,
        }
    }

    /// Describes what is used up; `None` while something is left.
    pub fn describe_used_up(&self) -> Option<String> {
        let spent = self.lock_totals();
        match self.budget {
            SpendingBudget { max_cost: Some(most), .. } if spent.cost >= most => {
                Some(format!("${:.4} of ${most} are spent", spent.cost))
            }
            SpendingBudget { max_tokens: Some(most), .. } if spent.tokens >= most => {
                Some(format!("{} of {most} tokens are used", spent.tokens))
            }
            SpendingBudget { .. } => None,
        }
    }

    /// Says whether a request may be made. Called before each request.
    pub fn check_request_allowed(&self, model: &str) -> Result<(), SpendingDenial> {
        if let Some(why) = self.describe_used_up() {
            self.lock_totals().refused_any = true;
            return Err(SpendingDenial::BudgetUsedUp(format!("the budget of the run is used up: {why}")));
        }
        if self.budget.max_cost.is_some() && self.prices.price_of(model).is_none() {
            return Err(SpendingDenial::UnknownPrice(format!(
                "the price of {model:?} is unknown, so the limit in money cannot be kept; say it with \
                 --prices, or limit tokens"
            )));
        }
        Ok(())
    }

    /// Says whether the budget refused a request.
    pub fn has_refused_requests(&self) -> bool {
        self.lock_totals().refused_any
    }

    /// Says whether a limit in money covers only a part of the spending.
    pub fn has_unknown_costs(&self) -> bool {
        self.budget.max_cost.is_some() && self.lock_totals().cost_unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_used_up() {
        let tokens = |output| TokenUsage { input: 10, output, cache_read: 5, cache_write: 5 };
        let budget = |max_cost, max_tokens| SpendingBudget { max_cost, max_tokens };
        for (budget, model, used, cost, expected) in [
            (budget(None, None), "m", tokens(1_000_000), None, Ok(())),
            (budget(None, Some(100)), "m", tokens(79), None, Ok(())),
            (budget(None, Some(100)), "m", tokens(80), None, Err("100 of 100 tokens")),
            (budget(Some(0.5), None), "gpt-5.4", tokens(1), Some(0.4), Ok(())),
            (budget(Some(0.5), None), "gpt-5.4", tokens(1), Some(0.5), Err("$0.5000 of $0.5")),
            (budget(Some(0.5), None), "m", tokens(1), None, Err("the price of \"m\" is unknown")),
        ] {
            let ledger = SpendingLedger::new(budget, PriceTable::default());
            ledger.record_spending(used, cost);
            match (ledger.check_request_allowed(model), expected) {
                (Ok(()), Ok(())) => assert!(!ledger.has_refused_requests()),
                (Err(SpendingDenial::BudgetUsedUp(why)), Err(part)) => {
                    assert!(why.contains(part) && ledger.has_refused_requests(), "{why}")
                }
                (Err(SpendingDenial::UnknownPrice(why)), Err(part)) => {
                    assert!(why.contains(part) && !ledger.has_refused_requests(), "{why}")
                }
                (found, expected) => panic!("{budget:?}: {found:?}, expected {expected:?}"),
            }
        }
    }
}
