//! The scheduler of trials and probes, and of trials that are regraded: as many at once as there are slots, again after
//! a wait where that can help.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::{Id, JoinSet};

use super::agent_slots::{AgentSlots, SlotPermit};
use super::queue::{RetryPolicy, TrialEndDecision, TrialQueue};
use super::run_context::unix_time;
use practicum_core::model::TrialRecord;

/// The trials of a list: those that are still to start, those that wait for a retry, and those that run. Each is known
/// by its position in the list. `R` is the result of a trial.
pub struct Scheduler<R> {
    slots: Arc<AgentSlots>,
    queue: TrialQueue,
    running: JoinSet<R>,
    in_flight: BTreeMap<Id, usize>,
}

/// A trial that ended, with its result; or with the words of its panic, which must not end the run.
pub type EndedTrial<R> = (usize, Result<R, String>);

impl<R: Send + 'static> Scheduler<R> {
    /// Makes the scheduler of a list of trials: so many run at once, and so many more are judged and stored meanwhile.
    pub fn new(length: usize, agent_slots: usize, finishing_slots: usize) -> Self {
        Self {
            slots: AgentSlots::new(agent_slots, finishing_slots),
            queue: TrialQueue::new(length),
            running: JoinSet::new(),
            in_flight: BTreeMap::new(),
        }
    }

    /// Takes the next trial that may start now, if a slot is free.
    pub fn take_next(&mut self) -> Option<(usize, SlotPermit)> {
        let permit = self.slots.try_acquire()?;
        Some((self.queue.take_ready(Instant::now())?, permit))
    }

    /// Runs a trial in the background.
    pub fn spawn(&mut self, index: usize, trial: impl Future<Output = R> + Send + 'static) {
        let handle = self.running.spawn(trial);
        self.in_flight.insert(handle.id(), index);
    }

    /// Says whether nothing runs, and nothing will start: no trial is left, or none may start any more.
    pub fn is_done(&self, may_start: bool) -> bool {
        self.running.is_empty() && self.wakes_at(may_start).is_none()
    }

    /// Waits until a trial has ended. Gives `None` if a trial may start: a slot became free, or a wait is over.
    pub async fn wait(&mut self, may_start: bool) -> Option<EndedTrial<R>> {
        let wakes_at = self.wakes_at(may_start);
        tokio::select! {
            Some(joined) = self.running.join_next_with_id() => {
                let (id, ended) = match joined {
                    Ok((id, result)) => (id, Ok(result)),
                    Err(error) => (error.id(), Err(error.to_string())),
                };
                Some((self.in_flight.remove(&id)?, ended))
            }
            () = sleep_until(wakes_at) => None,
            () = self.slots.wait_for_free_slot() => None,
        }
    }

    /// Decides whether a trial that has ended is run again.
    pub fn decide_trial_end(
        &mut self,
        index: usize,
        record: TrialRecord,
        retry: Option<RetryPolicy>,
    ) -> TrialEndDecision {
        let resets_in = record.limit_resets_at.map(|at| Duration::from_secs(at.saturating_sub(unix_time())));
        self.queue.decide_trial_end(index, record, retry, resets_in, Instant::now())
    }

    /// Says whether a trial was started before and is run again.
    pub fn is_retry(&self, index: usize) -> bool {
        self.queue.is_retry(index)
    }

    /// Gives the number of the try that a trial is at, from 1.
    pub fn current_try(&self, index: usize) -> u32 {
        self.queue.current_try(index)
    }

    /// Counts the trials that have not started, or wait for a retry.
    pub fn remaining(&self) -> usize {
        self.queue.remaining()
    }

    fn wakes_at(&self, may_start: bool) -> Option<Instant> {
        self.queue.next_wakeup().filter(|_| may_start && self.slots.has_free_slot())
    }
}

/// Sleeps until a time, or forever if there is none. Each sleep is short, so that a cancelled run is noticed soon.
async fn sleep_until(until: Option<Instant>) {
    const MAX_SLEEP: Duration = Duration::from_millis(100);
    match until {
        Some(until) => tokio::time::sleep_until(until.min(Instant::now() + MAX_SLEEP).into()).await,
        None => std::future::pending().await,
    }
}

/// Results that come in any order, and are given on in the order of their list.
pub struct InOrder<T> {
    next: usize,
    early: BTreeMap<usize, T>,
}

impl<T> InOrder<T> {
    pub fn new() -> Self {
        Self { next: 0, early: BTreeMap::new() }
    }

    /// Takes a result, and gives those that are next.
    pub fn add(&mut self, index: usize, result: T) -> Vec<T> {
        self.early.insert(index, result);
        std::iter::from_fn(|| self.early.remove(&self.next).inspect(|_| self.next += 1)).collect()
    }

    /// Gives the results behind one that never came, because no trial may start any more.
    pub fn rest(self) -> impl Iterator<Item = T> {
        self.early.into_values()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use super::*;

    #[test]
    fn results_leave_in_the_order_of_their_list() {
        let mut results = InOrder::new();
        assert_eq!(results.add(1, "b"), [""; 0]);
        assert_eq!(results.add(0, "a"), ["a", "b"]);
        assert_eq!(results.add(3, "d"), [""; 0]);
        assert_eq!(results.rest().collect::<Vec<&str>>(), ["d"]);
    }

    #[tokio::test]
    async fn no_more_run_at_once_than_there_are_slots_and_a_panic_ends_only_its_trial() {
        let mut scheduler = Scheduler::new(5, 2, 0);
        let (active, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let mut ended = BTreeMap::new();
        loop {
            while let Some((index, permit)) = scheduler.take_next() {
                let (active, most) = (Arc::clone(&active), Arc::clone(&most));
                scheduler.spawn(index, async move {
                    most.fetch_max(active.fetch_add(1, SeqCst) + 1, SeqCst);
                    tokio::task::yield_now().await;
                    active.fetch_sub(1, SeqCst);
                    assert!(index != 3, "the third fails");
                    drop(permit);
                    index * 10
                });
            }
            if scheduler.is_done(true) {
                break;
            }
            ended.extend(scheduler.wait(true).await);
        }
        assert_eq!((most.load(SeqCst), scheduler.remaining()), (2, 0));
        assert!(ended.remove(&3).is_some_and(|ended| ended.is_err()));
        assert_eq!(ended, [(0, Ok(0)), (1, Ok(10)), (2, Ok(20)), (4, Ok(40))].into());
    }
}
