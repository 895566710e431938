//! Trying again, with bounds; and a gate that everyone who asks the same API waits at.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::LlmError;

/// How often and how long a request is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// Requests in all, the first included.
    pub tries: u32,
    /// Doubles with every try.
    pub first_wait: Duration,
    /// If the API asks for more, the request fails at once and says so.
    pub longest_wait: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self { tries: 5, first_wait: Duration::from_secs(1), longest_wait: Duration::from_secs(60) }
    }
}

/// One try that failed.
#[derive(Debug)]
pub struct Failed {
    pub error: LlmError,
    pub again: Again,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    Never,
    Soon,
    After(Duration),
}

impl Failed {
    pub fn for_good(error: LlmError) -> Self {
        Self { error, again: Again::Never }
    }

    pub fn for_now(error: LlmError) -> Self {
        Self { error, again: Again::Soon }
    }
}

/// Shut while an API wants to be left alone. Whoever shares it waits with the one who was told.
#[derive(Debug, Default)]
pub struct Gate {
    opens: Mutex<Option<Instant>>,
}

/// Those who waited together come back spread over a part of the wait, but over no more than this.
const WIDEST_SPREAD: Duration = Duration::from_secs(2);

impl Gate {
    fn shut(&self, wait: Duration) {
        let until = Instant::now() + wait;
        let mut opens = self.opens.lock().unwrap_or_else(PoisonError::into_inner);
        *opens = Some(opens.map_or(until, |known| known.max(until)));
    }

    fn left(&self) -> Option<Duration> {
        let opens = *self.opens.lock().unwrap_or_else(PoisonError::into_inner);
        opens.map(|opens| opens.saturating_duration_since(Instant::now())).filter(|left| !left.is_zero())
    }

    /// It may be shut again in the meantime, so this looks until it is open. Each wait has an end,
    /// and so has the number of tries that can shut it.
    async fn pass(&self) {
        while let Some(left) = self.left() {
            tokio::time::sleep(left + (left / 4).min(WIDEST_SPREAD).mul_f64(random())).await;
        }
    }
}

/// Patience with one API.
#[derive(Debug, Clone, Default)]
pub struct Patience {
    pub retry: Retry,
    pub gate: Arc<Gate>,
}

impl Patience {
    pub fn tries(&self) -> Tries<'_> {
        Tries { patience: self, tried: 0, wait: Duration::ZERO }
    }

    /// Doubles from the first wait, and keeps between half and all of it, so that trials that
    /// failed together do not come back together.
    fn backoff(&self, tried: u32) -> Duration {
        let doubled = self.retry.first_wait.saturating_mul(1 << (tried - 1).min(16));
        doubled.min(self.retry.longest_wait).mul_f64(0.5 + random() / 2.0)
    }
}

/// The tries of one request.
pub struct Tries<'p> {
    patience: &'p Patience,
    tried: u32,
    wait: Duration,
}

impl Tries<'_> {
    /// Waits until it is time for the next try.
    pub async fn turn(&mut self) {
        tokio::time::sleep(self.wait).await;
        self.patience.gate.pass().await;
        self.tried += 1;
    }

    /// Whether there is another try. A rate limit shuts the gate.
    pub fn failed(&mut self, failed: Failed) -> Result<(), LlmError> {
        let Failed { error, again } = failed;
        let Patience { retry, gate } = self.patience;
        self.wait = match again {
            Again::Never => return Err(error),
            Again::Soon => self.patience.backoff(self.tried),
            Again::After(wait) if wait > retry.longest_wait => return Err(error),
            Again::After(wait) => wait,
        };
        if matches!(error, LlmError::RateLimited { .. }) {
            gate.shut(self.wait);
        }
        if self.tried >= retry.tries { Err(error) } else { Ok(()) }
    }
}

/// From 0 to 1.
fn random() -> f64 {
    f64::from(uuid::Uuid::new_v4().as_u128() as u32) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited(millis: u64) -> Failed {
        let wait = Duration::from_millis(millis);
        Failed { error: LlmError::RateLimited { retry_after: Some(wait) }, again: Again::After(wait) }
    }

    /// Tries until it succeeds, and says how long after `began` that was.
    async fn insist(
        patience: &Patience,
        began: Instant,
        mut failures: Vec<Failed>,
    ) -> (Result<Duration, LlmError>, u32) {
        let mut tries = patience.tries();
        loop {
            tries.turn().await;
            let Some(failed) = failures.pop() else { return (Ok(began.elapsed()), tries.tried) };
            if let Err(error) = tries.failed(failed) {
                return (Err(error), tries.tried);
            }
        }
    }

    #[tokio::test]
    async fn a_rate_limit_pauses_everyone_who_shares_the_gate() {
        let patience = Patience::default();
        let began = Instant::now();
        let other = patience.clone();
        let later = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            insist(&other, began, Vec::new()).await
        };
        let (told, other) = tokio::join!(insist(&patience, began, vec![limited(300)]), later);
        for ((answered, tried), expected) in [(told, 2), (other, 1)] {
            let after = answered.expect("answered").as_millis();
            assert!(after >= 300, "{after} ms");
            assert_eq!(tried, expected);
        }
    }

    #[tokio::test]
    async fn patience_ends() {
        let millis = Duration::from_millis;
        let retry = Retry { tries: 5, first_wait: millis(1), longest_wait: millis(4) };
        let patience = Patience { retry, ..Patience::default() };
        for (again, expected) in
            [(Again::Never, 1), (Again::Soon, 5), (Again::After(millis(4)), 5), (Again::After(millis(5)), 1)]
        {
            let failed = || Failed { error: LlmError::Network("gone".to_owned()), again };
            let failures = (0..9).map(|_| failed()).collect();
            let (answered, tried) = insist(&patience, Instant::now(), failures).await;
            assert!(answered.is_err());
            assert_eq!(tried, expected, "{again:?}");
        }
    }
}
