//! Decides which trial starts next, and when.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use practicum_core::model::{AgentEnding, TokenUsage, TrialRecord};

/// How often, and after what time, a trial is repeated that failed for an outside reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    pub times: u32,
    /// The wait before the first retry. It doubles with each further one.
    pub wait: Duration,
    /// How long a run may pause until the limit of an account resets.
    pub longest_pause: Duration,
}

/// The longest wait before a retry, if nothing says when it may help.
const LONGEST_WAIT: Duration = Duration::from_secs(300);
/// How often one trial may wait until the limit of an account resets.
const MOST_PAUSES: u32 = 20;
/// The time after a reset at which the account is surely usable again.
const RESET_MARGIN: Duration = Duration::from_secs(2);

/// The trials of a plan in their order, and those that wait for a retry.
pub struct TrialQueue {
    next: usize,
    length: usize,
    waiting_retries: VecDeque<(Instant, usize)>,
    retry_histories: BTreeMap<usize, RetryHistory>,
    paused_until: Option<Instant>,
}

/// The number, causes and costs of the failed runs of one trial.
#[derive(Default)]
struct RetryHistory {
    times: u32,
    /// How often the trial waited until a limit was reset. That does not count as a retry.
    pauses: u32,
    why: Vec<String>,
    usage: TokenUsage,
    /// The cost so far; `None` once a part is unknown.
    cost_usd: Option<f64>,
}

/// The decision about a trial that has ended.
#[derive(Debug, PartialEq)]
pub enum TrialEndDecision {
    /// The trial is done. Its record includes what earlier failed runs cost.
    Done { record: Box<TrialRecord>, retried: bool },
    /// The trial is run again after `wait`; `everyone` says whether all other trials wait as well.
    Retry { wait: Duration, everyone: bool, why: String },
    /// The limit of the account resets too late. The trial is done, and no other one can start.
    LimitResetsTooLate { record: Box<TrialRecord>, retried: bool, wait: Duration },
}

impl TrialQueue {
    pub fn new(length: usize) -> Self {
        Self {
            next: 0,
            length,
            waiting_retries: VecDeque::new(),
            retry_histories: BTreeMap::new(),
            paused_until: None,
        }
    }

    /// Takes a trial that may start now.
    pub fn take_ready(&mut self, now: Instant) -> Option<usize> {
        if self.paused_until.is_some_and(|until| now < until) {
            return None;
        }
        self.paused_until = None;
        if let Some(ready) = self.waiting_retries.iter().position(|(at, _)| *at <= now) {
            return self.waiting_retries.remove(ready).map(|(_, index)| index);
        }
        let index = self.next;
        (index < self.length).then(|| {
            self.next += 1;
            index
        })
    }

    /// Gives the time when the next waiting trial may start. `None` if nothing waits for a time.
    pub fn next_wakeup(&self) -> Option<Instant> {
        if let Some(until) = self.paused_until {
            return (self.remaining() > 0).then_some(until);
        }
        self.waiting_retries.iter().map(|(at, _)| *at).min()
    }

    /// Says whether a trial was started before and is run again.
    pub fn is_retry(&self, index: usize) -> bool {
        self.retry_histories.contains_key(&index)
    }

    /// Gives the number of the try that a trial is at, from 1.
    pub fn current_try(&self, index: usize) -> u32 {
        self.retry_histories.get(&index).map_or(1, |tried| tried.times + tried.pauses + 1)
    }

    /// Counts the trials that have not started, or wait for a retry.
    pub fn remaining(&self) -> usize {
        self.length - self.next + self.waiting_retries.len()
    }

    /// Decides what happens after a trial's end. `retry` is `None` if another run could not help; `resets_in` is the time
    /// until the limit resets that ended the trial, if that is known.
    pub fn decide_trial_end(
        &mut self,
        index: usize,
        mut record: TrialRecord,
        retry: Option<RetryPolicy>,
        resets_in: Option<Duration>,
        now: Instant,
    ) -> TrialEndDecision {
        let (tried, pauses) =
            self.retry_histories.get(&index).map_or((0, 0), |tried| (tried.times, tried.pauses));
        let pause = resets_in
            .filter(|_| record.ended == AgentEnding::RateLimited)
            .map(|until_reset| until_reset + RESET_MARGIN);
        let is_too_long = retry.zip(pause).is_some_and(|(retry, pause)| pause > retry.longest_pause);
        let retry = retry.filter(|retry| match pause {
            Some(_) => !is_too_long && pauses < MOST_PAUSES,
            None => tried < retry.times && is_temporary_failure(record.ended),
        });
        let Some(retry) = retry else {
            let tried = self.retry_histories.remove(&index);
            let retried = tried.is_some();
            if let Some(tried) = tried {
                record.notes.splice(0..0, tried.why);
                record.usage.add(tried.usage);
                record.cost_usd = record.cost_usd.zip(tried.cost_usd).map(|(last, before)| last + before);
            }
            let record = Box::new(record);
            return match pause.filter(|_| is_too_long) {
                Some(wait) => TrialEndDecision::LimitResetsTooLate { record, retried, wait },
                None => TrialEndDecision::Done { record, retried },
            };
        };
        let wait = pause.unwrap_or_else(|| retry.wait.saturating_mul(1 << tried.min(16)).min(LONGEST_WAIT));
        let everyone = record.ended == AgentEnding::RateLimited;
        let because = record.ended_because.map_or(String::new(), |why| format!(": {why}"));
        let why = format!("{}{because}", record.ended.describe());
        let kept = self
            .retry_histories
            .entry(index)
            .or_insert_with(|| RetryHistory { cost_usd: Some(0.0), ..RetryHistory::default() });
        match pause {
            Some(_) => kept.pauses += 1,
            None => kept.times += 1,
        }
        kept.why.push(format!("tried again, because {why}"));
        kept.usage.add(record.usage);
        kept.cost_usd = kept.cost_usd.zip(record.cost_usd).map(|(before, this)| before + this);
        self.waiting_retries.push_back((now + wait, index));
        if everyone {
            self.paused_until = self.paused_until.max(Some(now + wait));
        }
        TrialEndDecision::Retry { wait, everyone, why }
    }
}

/// Says whether the cause of the failure may go away by itself.
fn is_temporary_failure(ended: AgentEnding) -> bool {
    match ended {
        AgentEnding::RateLimited | AgentEnding::ApiFailed => true,
        AgentEnding::Finished
        | AgentEnding::TimedOut
        | AgentEnding::AskedUser
        | AgentEnding::AuthFailed
        | AgentEnding::Crashed
        | AgentEnding::NotLaunched
        | AgentEnding::NotStarted
        | AgentEnding::SetupFailed
        | AgentEnding::OverBudget
        | AgentEnding::OverLimit
        | AgentEnding::NoReply
        | AgentEnding::Cancelled
        | AgentEnding::Lost => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::testing::ended_record;

    const RETRY: Option<RetryPolicy> = Some(RetryPolicy {
        times: 2,
        wait: Duration::from_secs(10),
        longest_pause: Duration::from_secs(3600),
    });

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn a_rate_limit_pauses_everyone_and_then_all_go_on() {
        let (mut queue, start) = (TrialQueue::new(3), Instant::now());
        assert_eq!((queue.take_ready(start), queue.take_ready(start)), (Some(0), Some(1)));
        let next = queue.decide_trial_end(0, ended_record(AgentEnding::RateLimited), RETRY, None, start);
        assert!(
            matches!(next, TrialEndDecision::Retry { wait, everyone: true, .. } if wait == seconds(10)),
            "{next:?}"
        );
        assert_eq!(
            (queue.take_ready(start), queue.next_wakeup(), queue.remaining()),
            (None, Some(start + seconds(10)), 2)
        );
        let later = start + seconds(10);
        assert_eq!(
            (queue.take_ready(later), queue.take_ready(later), queue.take_ready(later)),
            (Some(0), Some(2), None)
        );
        assert_eq!((queue.next_wakeup(), queue.remaining()), (None, 0));
    }

    #[test]
    fn a_failed_api_holds_up_only_its_own_trial_and_longer_each_time() {
        let (mut queue, start) = (TrialQueue::new(2), Instant::now());
        assert_eq!(queue.take_ready(start), Some(0));
        for (tried, wait) in [(1, 10), (2, 20)] {
            let next = queue.decide_trial_end(0, ended_record(AgentEnding::ApiFailed), RETRY, None, start);
            assert!(
                matches!(next, TrialEndDecision::Retry { wait: w, everyone: false, .. } if w == seconds(wait)),
                "{tried}"
            );
            assert_eq!(queue.take_ready(start), (tried == 1).then_some(1), "{tried}");
            assert_eq!(queue.take_ready(start + seconds(wait)), Some(0), "{tried}");
        }
        let TrialEndDecision::Done { record, retried: true } =
            queue.decide_trial_end(0, ended_record(AgentEnding::ApiFailed), RETRY, None, start)
        else {
            panic!("it was tried often enough");
        };
        assert_eq!(record.notes.len(), 2, "{:?}", record.notes);
    }

    #[test]
    fn what_the_tries_cost_adds_up_and_unknown_stays_unknown() {
        for (costs, expected) in [([Some(1.0), Some(2.0)], Some(3.0)), ([None, Some(2.0)], None)] {
            let (mut queue, now) = (TrialQueue::new(1), Instant::now());
            queue.take_ready(now);
            let [first, last] =
                costs.map(|cost_usd| TrialRecord { cost_usd, ..ended_record(AgentEnding::ApiFailed) });
            assert!(matches!(
                queue.decide_trial_end(0, first, RETRY, None, now),
                TrialEndDecision::Retry { .. }
            ));
            let last = TrialRecord { ended: AgentEnding::Finished, ..last };
            let TrialEndDecision::Done { record, retried: true } =
                queue.decide_trial_end(0, last, RETRY, None, now)
            else {
                panic!("it finished")
            };
            assert_eq!(record.cost_usd, expected);
        }
    }

    #[test]
    fn only_what_may_pass_is_tried_again() {
        for ended in AgentEnding::ALL {
            let mut queue = TrialQueue::new(1);
            let next = queue.decide_trial_end(0, ended_record(ended), RETRY, None, Instant::now());
            let again = matches!(next, TrialEndDecision::Retry { .. });
            assert_eq!(
                again,
                matches!(ended, AgentEnding::RateLimited | AgentEnding::ApiFailed),
                "{ended:?}"
            );
            let mut queue = TrialQueue::new(1);
            let next = queue.decide_trial_end(0, ended_record(ended), None, None, Instant::now());
            assert!(
                matches!(next, TrialEndDecision::Done { retried: false, .. }),
                "{ended:?} where trying again cannot help"
            );
        }
    }

    #[test]
    fn a_limit_that_resets_is_waited_for_and_is_no_retry() {
        let mut queue = TrialQueue::new(1);
        let mut now = Instant::now();
        // More often than there are retries.
        for _ in 0..5 {
            assert_eq!(queue.take_ready(now), Some(0));
            let limited = ended_record(AgentEnding::RateLimited);
            let next = queue.decide_trial_end(0, limited, RETRY, Some(seconds(1800)), now);
            let TrialEndDecision::Retry { wait, everyone: true, .. } = next else { panic!("{next:?}") };
            assert_eq!(wait, seconds(1802));
            assert_eq!(queue.take_ready(now + seconds(1800)), None);
            now += wait;
        }
        assert_eq!(queue.take_ready(now), Some(0));
        let limited = ended_record(AgentEnding::RateLimited);
        let next = queue.decide_trial_end(0, limited, RETRY, Some(seconds(4000)), now);
        assert!(matches!(next, TrialEndDecision::LimitResetsTooLate { retried: true, .. }), "{next:?}");
        // Only a limit has a time to wait for.
        let crashed = ended_record(AgentEnding::Crashed);
        let next = queue.decide_trial_end(0, crashed, RETRY, Some(seconds(10)), now);
        assert!(matches!(next, TrialEndDecision::Done { .. }), "{next:?}");
    }
}
