//! How many trials there are at once: so many agents at work, and so many more whose agent is done.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

pub struct Seats {
    agents: usize,
    desks: usize,
    taken: Mutex<Taken>,
    freed: Notify,
}

#[derive(Default)]
struct Taken {
    agents: usize,
    desks: usize,
}

/// A trial's place. Dropping it frees the place.
pub struct Seat {
    seats: Arc<Seats>,
    with: With,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum With {
    Agent,
    /// Being judged, kept and cleared up.
    Desk,
}

impl Seats {
    pub fn new(agents: usize, desks: usize) -> Arc<Self> {
        Arc::new(Self { agents, desks, taken: Mutex::default(), freed: Notify::new() })
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
    /// The agent is done: another one may begin. Where no desk is free, the place is kept, so that rooms
    /// and transcripts do not pile up.
    pub fn leave_agent(&mut self) {
        let mut taken = self.seats.taken();
        if self.with == With::Agent && taken.desks < self.seats.desks {
            self.with = With::Desk;
            taken.agents -= 1;
            taken.desks += 1;
            self.seats.freed.notify_one();
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.seats.taken();
        match self.with {
            With::Agent => taken.agents -= 1,
            With::Desk => taken.desks -= 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whose_agent_is_done_gives_way_while_there_is_a_desk() {
        let seats = Seats::new(2, 1);
        let mut first = seats.take().expect("free");
        let mut second = seats.take().expect("free");
        assert!(seats.take().is_none() && !seats.is_free());
        first.leave_agent();
        first.leave_agent();
        seats.freed().await;
        let third = seats.take().expect("the first one's");
        second.leave_agent();
        assert!(seats.take().is_none(), "the desk is taken");
        drop(first);
        second.leave_agent();
        let fourth = seats.take().expect("the second one's");
        drop((second, third, fourth));
        let taken = seats.taken();
        assert_eq!((taken.agents, taken.desks), (0, 0));
    }
}
