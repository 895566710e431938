//! What a run has spent, and whether it may spend more. One for all its trials and judges.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Prices;
use practicum_core::model::Usage;

/// The most a run may use.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Budget {
    pub max_cost: Option<f64>,
    /// All tokens, those from a cache included.
    pub max_tokens: Option<u64>,
}

/// Requests that are open when the budget is used up go on to their end, so a run can use more
/// than its budget by what was open at that moment.
#[derive(Default)]
pub struct Ledger {
    budget: Budget,
    prices: Prices,
    spent: Mutex<Spent>,
}

#[derive(Default)]
struct Spent {
    tokens: u64,
    cost: f64,
    /// Some of the money is not in `cost`, because nobody knows it.
    unknown: bool,
    /// Somebody was refused.
    cut: bool,
}

/// Why a request is not made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Denied {
    UsedUp(String),
    /// A limit in money cannot be kept with a model whose price nobody knows.
    NoPrice(String),
}

impl Ledger {
    pub fn new(budget: Budget, prices: Prices) -> Self {
        Self { budget, prices, spent: Mutex::default() }
    }

    fn spent(&self) -> MutexGuard<'_, Spent> {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn has_budget(&self) -> bool {
        self.budget != Budget::default()
    }

    pub fn prices(&self) -> &Prices {
        &self.prices
    }

    pub fn spend(&self, usage: Usage, cost: Option<f64>) {
        let mut spent = self.spent();
        spent.tokens = [usage.input, usage.output, usage.cache_read, usage.cache_write]
            .iter()
            .fold(spent.tokens, |sum, more| sum.saturating_add(*more));
        match cost {
            Some(cost) => spent.cost += cost,
            None => spent.unknown = true,
        }
    }

    /// What is used up, in words; `None` while there is something left.
    pub fn used_up(&self) -> Option<String> {
        let spent = self.spent();
        match self.budget {
            Budget { max_cost: Some(most), .. } if spent.cost >= most => {
                Some(format!("${:.4} of ${most} are spent", spent.cost))
            }
            Budget { max_tokens: Some(most), .. } if spent.tokens >= most => {
                Some(format!("{} of {most} tokens are used", spent.tokens))
            }
            Budget { .. } => None,
        }
    }

    /// Asked before a request is made.
    pub fn may_ask(&self, model: &str) -> Result<(), Denied> {
        if let Some(why) = self.used_up() {
            self.spent().cut = true;
            return Err(Denied::UsedUp(format!("the budget of the run is used up: {why}")));
        }
        if self.budget.max_cost.is_some() && self.prices.of(model).is_none() {
            return Err(Denied::NoPrice(format!(
                "the price of {model:?} is unknown, so the limit in money cannot be kept; say it with \
                 --prices, or limit tokens"
            )));
        }
        Ok(())
    }

    /// Whether the budget kept anybody from asking.
    pub fn cut(&self) -> bool {
        self.spent().cut
    }

    /// Whether a limit in money holds only for a part of what was spent.
    pub fn is_blind(&self) -> bool {
        self.budget.max_cost.is_some() && self.spent().unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_used_up() {
        let tokens = |output| Usage { input: 10, output, cache_read: 5, cache_write: 5 };
        let budget = |max_cost, max_tokens| Budget { max_cost, max_tokens };
        for (budget, model, used, cost, expected) in [
            (budget(None, None), "m", tokens(1_000_000), None, Ok(())),
            (budget(None, Some(100)), "m", tokens(79), None, Ok(())),
            (budget(None, Some(100)), "m", tokens(80), None, Err("100 of 100 tokens")),
            (budget(Some(0.5), None), "gpt-5.4", tokens(1), Some(0.4), Ok(())),
            (budget(Some(0.5), None), "gpt-5.4", tokens(1), Some(0.5), Err("$0.5000 of $0.5")),
            (budget(Some(0.5), None), "m", tokens(1), None, Err("the price of \"m\" is unknown")),
        ] {
            let ledger = Ledger::new(budget, Prices::default());
            ledger.spend(used, cost);
            match (ledger.may_ask(model), expected) {
                (Ok(()), Ok(())) => assert!(!ledger.cut()),
                (Err(Denied::UsedUp(why)), Err(part)) => assert!(why.contains(part) && ledger.cut(), "{why}"),
                (Err(Denied::NoPrice(why)), Err(part)) => {
                    assert!(why.contains(part) && !ledger.cut(), "{why}")
                }
                (found, expected) => panic!("{budget:?}: {found:?}, expected {expected:?}"),
            }
        }
    }
}
