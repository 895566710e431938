use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The memory that long transcripts share from when they are decoded until they are marked and
/// kept, so that many at a time do not take many times as much. Short ones are not counted.
#[derive(Clone)]
pub struct TranscriptMemory(Arc<Semaphore>);

/// A part of the shared memory, given back when dropped.
pub struct MemoryPermit(
    #[expect(dead_code, reason = "what counts is that it lives")] Option<OwnedSemaphorePermit>,
);

impl MemoryPermit {
    pub fn empty() -> Self {
        Self(None)
    }
}

const UNIT_BYTES: u64 = 64 * 1024;

/// All there is, in units: 20 MB of transcripts are about twice that once decoded.
const TOTAL_UNITS: u32 = 320;

/// A transcript of fewer units is not worth waiting for.
const FREE_UNITS: u64 = 8;

impl Default for TranscriptMemory {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(TOTAL_UNITS as usize)))
    }
}

impl TranscriptMemory {
    /// Waits until there is room for a transcript of so many bytes. One that is larger than all
    /// there is has it for itself. Nobody may wait while holding some.
    pub async fn reserve(&self, bytes: u64) -> MemoryPermit {
        let units = bytes / UNIT_BYTES;
        if units < FREE_UNITS {
            return MemoryPermit::empty();
        }
        let units = u32::try_from(units).unwrap_or(TOTAL_UNITS).min(TOTAL_UNITS);
        // The semaphore is never closed.
        MemoryPermit(Arc::clone(&self.0).acquire_many_owned(units).await.ok())
    }
}
