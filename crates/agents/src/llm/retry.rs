//! Retries with limits, and a gate at which all clients of an API wait.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::LlmError;

/// How often a request is retried, and after which waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApiRetryPolicy {
    /// The number of requests in all, including the first.
    pub max_attempts: u32,
    /// The wait before the first retry. It doubles with every retry.
    pub first_wait: Duration,
    /// The longest wait. If the API asks for more, the request fails at once and says so.
    pub longest_wait: Duration,
}

impl Default for ApiRetryPolicy {
    fn default() -> Self {
        Self { max_attempts: 5, first_wait: Duration::from_secs(1), longest_wait: Duration::from_secs(60) }
    }
}

/// An attempt that failed.
#[derive(Debug)]
pub struct FailedAttempt {
    pub error: LlmError,
    pub retry: RetryAdvice,
}

/// What to do after a failed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryAdvice {
    Never,
    WithBackoff,
    After(Duration),
}

impl FailedAttempt {
    pub fn permanent(error: LlmError) -> Self {
        Self { error, retry: RetryAdvice::Never }
    }

    pub fn temporary(error: LlmError) -> Self {
        Self { error, retry: RetryAdvice::WithBackoff }
    }
}

/// A gate that is shut while an API limits the rate. All clients that share it wait together.
#[derive(Debug, Default)]
pub struct RateLimitGate {
    opens_at: Mutex<Option<Instant>>,
}

/// The longest time over which clients that waited together are spread when they start again.
const WIDEST_SPREAD: Duration = Duration::from_secs(2);

impl RateLimitGate {
    fn close_for(&self, wait: Duration) {
        let until = Instant::now() + wait;
        let mut opens = self.opens_at.lock().unwrap_or_else(PoisonError::into_inner);
        *opens = Some(opens.map_or(until, |known| known.max(until)));
    }

    fn remaining_wait(&self) -> Option<Duration> {
        let opens = *self.opens_at.lock().unwrap_or_else(PoisonError::into_inner);
        opens.map(|opens| opens.saturating_duration_since(Instant::now())).filter(|left| !left.is_zero())
    }

    /// Waits until the gate is open. It may be shut again in the meantime, so this looks again. Each wait has an
    /// end, and the number of attempts that can shut the gate is limited.
    async fn wait_until_open(&self) {
        while let Some(left) = self.remaining_wait() {
            tokio::time::sleep(left + (left / 4).min(WIDEST_SPREAD).mul_f64(random_fraction())).await;
        }
    }
}

/// The number and the waiting time of the retries of one model API.
#[derive(Debug, Clone, Default)]
pub struct ApiRetries {
    pub policy: ApiRetryPolicy,
    pub gate: Arc<RateLimitGate>,
}

impl ApiRetries {
    pub fn start_attempts(&self) -> RequestAttempts<'_> {
        RequestAttempts { retries: self, attempt_count: 0, wait: Duration::ZERO }
    }

    /// Gives the wait before the next attempt. It doubles from the first wait; a random part of up to half is left
    /// off, so that trials that failed together do not come back together.
    fn backoff(&self, tried: u32) -> Duration {
        let doubled = self.policy.first_wait.saturating_mul(1 << (tried - 1).min(16));
        doubled.min(self.policy.longest_wait).mul_f64(0.5 + random_fraction() / 2.0)
    }
}

/// The attempts of one request.
pub struct RequestAttempts<'p> {
    retries: &'p ApiRetries,
    attempt_count: u32,
    wait: Duration,
}

impl RequestAttempts<'_> {
    /// Waits until it is time for the next attempt.
    pub async fn wait_for_next(&mut self) {
        tokio::time::sleep(self.wait).await;
        self.retries.gate.wait_until_open().await;
        self.attempt_count += 1;
    }

    /// Records a failure. `Ok` if there is another attempt. A rate limit shuts the gate.
    pub fn record_failure(&mut self, failed: FailedAttempt) -> Result<(), LlmError> {
        let FailedAttempt { error, retry: again } = failed;
        let ApiRetries { policy: retry, gate } = self.retries;
        self.wait = match again {
            RetryAdvice::Never => return Err(error),
            RetryAdvice::WithBackoff => self.retries.backoff(self.attempt_count),
            RetryAdvice::After(wait) if wait > retry.longest_wait => return Err(error),
            RetryAdvice::After(wait) => wait,
        };
        if matches!(error, LlmError::RateLimited { .. }) {
            gate.close_for(self.wait);
        }
        if self.attempt_count >= retry.max_attempts { Err(error) } else { Ok(()) }
    }
}

/// Gives a random number from 0 to 1.
fn random_fraction() -> f64 {
    f64::from(uuid::Uuid::new_v4().as_u128() as u32) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited(millis: u64) -> FailedAttempt {
        let wait = Duration::from_millis(millis);
        FailedAttempt {
            error: LlmError::RateLimited { retry_after: Some(wait) },
            retry: RetryAdvice::After(wait),
        }
    }

    /// Retries until it succeeds, and gives how long after `began` that was.
    async fn insist(
        patience: &ApiRetries,
        began: Instant,
        mut failures: Vec<FailedAttempt>,
    ) -> (Result<Duration, LlmError>, u32) {
        let mut tries = patience.start_attempts();
        loop {
            tries.wait_for_next().await;
            let Some(failed) = failures.pop() else { return (Ok(began.elapsed()), tries.attempt_count) };
            if let Err(error) = tries.record_failure(failed) {
                return (Err(error), tries.attempt_count);
            }
        }
    }

    #[tokio::test]
    async fn a_rate_limit_pauses_everyone_who_shares_the_gate() {
        let patience = ApiRetries::default();
        let began = Instant::now();
        let other = patience.clone();
        let later = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            insist(&other, began, Vec::new()).await
        };
        let (limited_first, other) = tokio::join!(insist(&patience, began, vec![limited(300)]), later);
        for ((answered, tried), expected) in [(limited_first, 2), (other, 1)] {
            let after = answered.expect("answered").as_millis();
            assert!(after >= 300, "{after} ms");
            assert_eq!(tried, expected);
        }
    }

    #[tokio::test]
    async fn patience_ends() {
        let millis = Duration::from_millis;
        let retry = ApiRetryPolicy { max_attempts: 5, first_wait: millis(1), longest_wait: millis(4) };
        let patience = ApiRetries { policy: retry, ..ApiRetries::default() };
        for (again, expected) in [
            (RetryAdvice::Never, 1),
            (RetryAdvice::WithBackoff, 5),
            (RetryAdvice::After(millis(4)), 5),
            (RetryAdvice::After(millis(5)), 1),
        ] {
            let failed = || FailedAttempt { error: LlmError::Network("gone".to_owned()), retry: again };
            let failures = (0..9).map(|_| failed()).collect();
            let (answered, tried) = insist(&patience, Instant::now(), failures).await;
            assert!(answered.is_err());
            assert_eq!(tried, expected, "{again:?}");
        }
    }
}
