//! Limits how many trials are active at once: a number of running agents, and a number of trials whose agent is
//! done.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The slots for running agents, and those for trials that are being finished.
pub struct AgentSlots {
    agent_slots: usize,
    finishing_slots: usize,
    used: Mutex<UsedSlots>,
    slot_freed: Notify,
}

#[derive(Default)]
struct UsedSlots {
    agents: usize,
    finishing: usize,
}

/// A trial's slot. Dropping it frees the slot.
pub struct SlotPermit {
    slots: Arc<AgentSlots>,
    kind: SlotKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SlotKind {
    Agent,
    /// The trial is being judged, stored and cleaned up.
    Finishing,
}

impl AgentSlots {
    pub fn new(agents: usize, desks: usize) -> Arc<Self> {
        Arc::new(Self {
            agent_slots: agents,
            finishing_slots: desks,
            used: Mutex::default(),
            slot_freed: Notify::new(),
        })
    }

    /// Takes an agent slot for a new trial, if one is free.
    pub fn try_acquire(self: &Arc<Self>) -> Option<SlotPermit> {
        let mut taken = self.lock_used();
        (taken.agents < self.agent_slots).then(|| {
            taken.agents += 1;
            SlotPermit { slots: Arc::clone(self), kind: SlotKind::Agent }
        })
    }

    pub fn has_free_slot(&self) -> bool {
        self.lock_used().agents < self.agent_slots
    }

    /// Waits until a trial gives up its agent slot before it has ended.
    pub async fn wait_for_free_slot(&self) {
        self.slot_freed.notified().await;
    }

    fn lock_used(&self) -> MutexGuard<'_, UsedSlots> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SlotPermit {
    /// Gives up the agent slot because the agent is done, so that another can start. If no finishing slot is free,
    /// the agent slot is kept, so that workspaces and transcripts do not pile up.
    pub fn release_agent_slot(&mut self) {
        let mut taken = self.slots.lock_used();
        if self.kind == SlotKind::Agent && taken.finishing < self.slots.finishing_slots {
            self.kind = SlotKind::Finishing;
            taken.agents -= 1;
            taken.finishing += 1;
            self.slots.slot_freed.notify_one();
        }
    }
}

impl Drop for SlotPermit {
    fn drop(&mut self) {
        let mut taken = self.slots.lock_used();
        match self.kind {
            SlotKind::Agent => taken.agents -= 1,
            SlotKind::Finishing => taken.finishing -= 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whose_agent_is_done_gives_way_while_there_is_a_desk() {
        let seats = AgentSlots::new(2, 1);
        let mut first = seats.try_acquire().expect("free");
        let mut second = seats.try_acquire().expect("free");
        assert!(seats.try_acquire().is_none() && !seats.has_free_slot());
        first.release_agent_slot();
        first.release_agent_slot();
        seats.wait_for_free_slot().await;
        let third = seats.try_acquire().expect("the first one's");
        second.release_agent_slot();
        assert!(seats.try_acquire().is_none(), "the desk is taken");
        drop(first);
        second.release_agent_slot();
        let fourth = seats.try_acquire().expect("the second one's");
        drop((second, third, fourth));
        let taken = seats.lock_used();
        assert_eq!((taken.agents, taken.finishing), (0, 0));
    }
}
