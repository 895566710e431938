use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The memory that long transcripts share from when they are decoded until they are marked and
/// kept, so that many at a time do not take many times as much. Short ones are not counted.
#[derive(Clone)]
pub struct Memory(Arc<Semaphore>);

/// A part of the shared memory, given back when dropped.
pub struct Held(#[expect(dead_code, reason = "what counts is that it lives")] Option<OwnedSemaphorePermit>);

impl Held {
    pub fn nothing() -> Self {
        Self(None)
    }
}

const UNIT: u64 = 64 * 1024;

/// All there is, in units: 20 MB of transcripts are about twice that once decoded.
const ALL: u32 = 320;

/// A transcript of fewer units is not worth waiting for.
const FREE: u64 = 8;

impl Default for Memory {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(ALL as usize)))
    }
}

impl Memory {
    /// Waits until there is room for a transcript of so many bytes. One that is larger than all
    /// there is has it for itself. Nobody may wait while holding some.
    pub async fn room_for(&self, bytes: u64) -> Held {
        let units = bytes / UNIT;
        if units < FREE {
            return Held::nothing();
        }
        let units = u32::try_from(units).unwrap_or(ALL).min(ALL);
        // The semaphore is never closed.
        Held(Arc::clone(&self.0).acquire_many_owned(units).await.ok())
    }
}
