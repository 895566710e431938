//! Limits the memory that decoded transcripts use at the same time.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The memory that long transcripts share, from decoding until they are graded and stored. It keeps many
/// transcripts at once from using up the memory of the machine. Short transcripts are not counted.
#[derive(Clone)]
pub struct TranscriptMemory(Arc<Semaphore>);

/// A share of the memory, returned when dropped.
pub struct MemoryPermit(
    #[expect(dead_code, reason = "what counts is that it lives")] Option<OwnedSemaphorePermit>,
);

impl MemoryPermit {
    pub fn empty() -> Self {
        Self(None)
    }
}

const UNIT_BYTES: u64 = 64 * 1024;

/// The total, in units: 20 MB of transcripts take about twice that once decoded.
const TOTAL_UNITS: u32 = 320;

/// The number of units below which a transcript does not have to wait.
const FREE_UNITS: u64 = 8;

impl Default for TranscriptMemory {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(TOTAL_UNITS as usize)))
    }
}

impl TranscriptMemory {
    /// Waits until there is memory for a transcript of this many bytes. One that is larger than the total takes
    /// all of it. The caller must not hold another permit, or it could wait forever.
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
