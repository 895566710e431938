//! How many trials are in the room: so many agents at work, and so many more that only wait for a judge.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

pub struct Seats {
    agents: usize,
    judges: usize,
    taken: Mutex<Taken>,
    freed: Notify,
}

#[derive(Default)]
struct Taken {
    agents: usize,
    judges: usize,
}

/// A trial's place. Dropping it frees the place.
pub struct Seat {
    seats: Arc<Seats>,
    with: With,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum With {
    Agent,
    Judge,
}

impl Seats {
    pub fn new(agents: usize, judges: usize) -> Arc<Self> {
        Arc::new(Self { agents, judges, taken: Mutex::default(), freed: Notify::new() })
    }

    /// A place for a trial that begins, if there is one.
    pub fn take(self: &Arc<Self>) -> Option<Seat> {
        let mut taken = self.taken();
        (taken.agents < self.agents).then(|| {
            taken.agents += 1;
            Seat { seats: Arc::clone(self), with: With::Agent }
        })
    }

    pub fn is_free(&self) -> bool {
        self.taken().agents < self.agents
    }

    /// Until an agent's place was left before its trial came to its end.
    pub async fn freed(&self) {
        self.freed.notified().await;
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seat {
    /// The agent is done and the judge is next: another agent may begin. Where too many wait for judges
    /// already, the place is kept, so that rooms and transcripts do not pile up.
    pub fn wait_for_judge(&mut self) {
        let mut taken = self.seats.taken();
        if self.with == With::Agent && taken.judges < self.seats.judges {
            self.with = With::Judge;
            taken.agents -= 1;
            taken.judges += 1;
            self.seats.freed.notify_one();
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.seats.taken();
        match self.with {
            With::Agent => taken.agents -= 1,
            With::Judge => taken.judges -= 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_waits_for_a_judge_gives_way_to_agents_while_others_do_not() {
        let seats = Seats::new(2, 1);
        let mut first = seats.take().expect("free");
        let mut second = seats.take().expect("free");
        assert!(seats.take().is_none() && !seats.is_free());
        first.wait_for_judge();
        first.wait_for_judge();
        seats.freed().await;
        let third = seats.take().expect("the first one's");
        second.wait_for_judge();
        assert!(seats.take().is_none(), "one waits already");
        drop(first);
        second.wait_for_judge();
        let fourth = seats.take().expect("the second one's");
        drop((second, third, fourth));
        let taken = seats.taken();
        assert_eq!((taken.agents, taken.judges), (0, 0));
    }
}
