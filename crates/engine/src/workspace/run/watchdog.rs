//! Watches what the processes of a trial use, while they run.

use std::time::{Duration, Instant};

use super::process_tree::TrialProcesses;
use crate::workspace::limits::TrialLimits;

/// The shortest pauses between two looks at the processes and at the disk.
const PROCESS_PAUSE: Duration = Duration::from_millis(30);
const DISK_PAUSE: Duration = Duration::from_millis(300);

/// How many times longer than a look the pause after it is, so that watching takes little of a processor.
const PAUSE_PER_LOOK: u32 = 10;

/// Waits until a limit is exceeded, and says which.
pub async fn wait_until_exceeded(limits: &TrialLimits, processes: &TrialProcesses) -> String {
    tokio::select! {
        why = look_again_and_again(PROCESS_PAUSE, || {
            let (limits, processes) = (limits.clone(), processes.clone());
            move || processes.excess(&limits)
        }) => why,
        why = look_again_and_again(DISK_PAUSE, || {
            let limits = limits.clone();
            move || limits.disk_excess()
        }) => why,
    }
}

async fn look_again_and_again<L>(shortest: Duration, make_look: impl Fn() -> L) -> String
where
    L: FnOnce() -> Option<String> + Send + 'static,
{
    let mut pause = shortest;
    loop {
        tokio::time::sleep(pause).await;
        let began = Instant::now();
        // A look that panicked says nothing; the next one follows.
        if let Ok(Some(why)) = tokio::task::spawn_blocking(make_look()).await {
            return why;
        }
        pause = shortest.max(began.elapsed() * PAUSE_PER_LOOK);
    }
}
