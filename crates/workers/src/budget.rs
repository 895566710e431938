//! The budget that all workers of a run share: an amount is reserved before a trial starts, and what it really cost is
//! booked when it has ended.

use std::collections::BTreeMap;
use std::time::Duration;

use async_nats::jetstream::kv;
use practicum_agents::gateway::SpendingBudget;
use practicum_core::model::TrialRecord;
use serde::{Deserialize, Serialize};

use crate::WorkersError;
use crate::messages::BUDGET_KEY;

/// An amount of money and tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Amount {
    /// In USD.
    pub cost: f64,
    /// All tokens, including those from a cache.
    pub tokens: u64,
}

impl Amount {
    /// Gives what a trial cost, with its judge and its simulated user. A cost that is unknown counts as nothing.
    pub fn of_record(record: &TrialRecord) -> Self {
        let mut amount = Self::default();
        for (usage, cost) in record.spending() {
            let tokens = [usage.input, usage.output, usage.cache_read, usage.cache_write];
            let tokens = tokens.into_iter().fold(0_u64, u64::saturating_add);
            amount.add(Self { cost: cost.unwrap_or_default(), tokens });
        }
        amount
    }

    fn add(&mut self, other: Self) {
        self.cost += other.cost;
        self.tokens = self.tokens.saturating_add(other.tokens);
    }

    fn raise_to(&mut self, other: Self) {
        self.cost = self.cost.max(other.cost);
        self.tokens = self.tokens.max(other.tokens);
    }
}

/// The answer to a reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reservation {
    /// The trial may start.
    Granted,
    /// The rest is reserved for trials that run. When they end, something may be left.
    Wait,
    /// Everything is spent.
    UsedUp,
}

/// The budget of a run and what became of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BudgetAccount {
    max_cost: Option<f64>,
    max_tokens: Option<u64>,
    spent: Amount,
    /// The most that one trial has cost so far, which is reserved for the next.
    largest: Amount,
    /// What is reserved, by the trial that it is for.
    reserved: BTreeMap<String, Amount>,
}

impl BudgetAccount {
    /// Opens the account of a budget. `None` if nothing is limited.
    pub fn open(budget: SpendingBudget) -> Option<Self> {
        let SpendingBudget { max_cost, max_tokens } = budget;
        (max_cost.is_some() || max_tokens.is_some()).then(|| Self { max_cost, max_tokens, ..Self::default() })
    }

    /// Reserves an amount for a trial. A trial that is given to another worker keeps its reservation.
    pub fn reserve(&mut self, trial: &str) -> Reservation {
        if self.is_reached_by(self.spent) {
            return Reservation::UsedUp;
        }
        let mut committed = self.spent;
        let others = self.reserved.iter().filter(|(name, _)| *name != trial);
        others.for_each(|(_, amount)| committed.add(*amount));
        if self.is_reached_by(committed) {
            return Reservation::Wait;
        }
        self.reserved.insert(trial.to_owned(), self.largest);
        Reservation::Granted
    }

    /// Books what a trial cost, and gives its reservation back.
    pub fn settle(&mut self, trial: &str, amount: Amount) {
        self.reserved.remove(trial);
        self.spent.add(amount);
        self.largest.raise_to(amount);
    }

    /// Gives back the reservation of a trial that nobody runs any more.
    pub fn release(&mut self, trial: &str) {
        self.reserved.remove(trial);
    }

    /// Gives what was spent so far.
    pub fn spent(&self) -> Amount {
        self.spent
    }

    fn is_reached_by(&self, amount: Amount) -> bool {
        self.max_cost.is_some_and(|most| amount.cost >= most)
            || self.max_tokens.is_some_and(|most| amount.tokens >= most)
    }
}

/// Changes the account of a run: reads it, changes it and writes it, and begins again if another worker was faster.
/// Gives `None` if the run has no budget.
pub async fn change_account<T>(
    bucket: &kv::Store,
    mut change: impl FnMut(&mut BudgetAccount) -> T,
) -> Result<Option<T>, WorkersError> {
    loop {
        let entry = bucket.entry(BUDGET_KEY).await.map_err(WorkersError::request("read the budget"))?;
        let Some(entry) = entry else { return Ok(None) };
        let read = serde_json::from_slice::<BudgetAccount>(&entry.value);
        let mut account = read.map_err(WorkersError::request("read the budget"))?;
        let before = account.clone();
        let result = change(&mut account);
        if account == before {
            return Ok(Some(result));
        }
        let bytes = serde_json::to_vec(&account).map_err(WorkersError::request("write the budget"))?;
        match bucket.update(BUDGET_KEY, bytes.into(), entry.revision).await {
            Ok(_) => return Ok(Some(result)),
            Err(error) if error.kind() == kv::UpdateErrorKind::WrongLastRevision => {
                let wait = u64::from(uuid::Uuid::new_v4().as_bytes()[0]) % 20;
                tokio::time::sleep(Duration::from_millis(wait)).await;
            }
            Err(error) => return Err(WorkersError::request("write the budget")(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dollars(cost: f64) -> Amount {
        Amount { cost, tokens: 0 }
    }

    #[test]
    fn a_reservation_is_what_the_most_expensive_trial_cost() {
        let budget = SpendingBudget { max_cost: Some(1.0), max_tokens: None };
        let mut account = BudgetAccount::open(budget).expect("a budget");
        assert_eq!(account.reserve("a"), Reservation::Granted);
        assert_eq!(account.reserve("b"), Reservation::Granted, "nothing is known about the cost yet");
        account.settle("a", dollars(0.4));
        account.settle("b", dollars(0.3));
        assert_eq!(account.reserve("c"), Reservation::Granted);
        assert_eq!(account.reserve("d"), Reservation::Wait, "0.7 are spent and 0.4 are reserved");
        assert_eq!(account.reserve("c"), Reservation::Granted, "it was given to another worker");
        account.settle("c", dollars(0.1));
        assert_eq!(account.reserve("d"), Reservation::Granted);
        account.settle("d", dollars(0.4));
        assert_eq!(account.reserve("e"), Reservation::UsedUp);
        assert!((account.spent().cost - 1.2).abs() < 1e-9);
        assert_eq!(BudgetAccount::open(SpendingBudget::default()), None);
    }

    #[test]
    fn tokens_are_limited_as_money_is() {
        let budget = SpendingBudget { max_cost: None, max_tokens: Some(100) };
        let mut account = BudgetAccount::open(budget).expect("a budget");
        account.settle("a", Amount { cost: 0.0, tokens: 60 });
        assert_eq!(account.reserve("b"), Reservation::Granted);
        assert_eq!(account.reserve("c"), Reservation::Wait);
        account.settle("b", Amount { cost: 0.0, tokens: 60 });
        assert_eq!(account.reserve("c"), Reservation::UsedUp);
    }

    #[test]
    fn a_lost_trial_keeps_nothing_from_the_others() {
        let budget = SpendingBudget { max_cost: None, max_tokens: Some(100) };
        let mut account = BudgetAccount::open(budget).expect("a budget");
        account.settle("a", Amount { cost: 0.0, tokens: 60 });
        assert_eq!(account.reserve("lost"), Reservation::Granted);
        assert_eq!(account.reserve("b"), Reservation::Wait);
        account.release("lost");
        assert_eq!(account.reserve("b"), Reservation::Granted);
    }
}
